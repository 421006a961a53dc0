//! SyncGroup, heartbeats and sessions.

use super::super::Request;
use super::super::wire::HeartbeatRequest;
use super::harness::*;
use protocol::ErrorCode;

/// Two members of generation 1, not synced; the leader first.
fn joined_pair(bench: &mut Bench) -> [String; 2] {
    let ids = [bench.member_id(), bench.member_id()];
    let tokens = [bench.join(9, join(&ids[0])), bench.join(9, join(&ids[1]))];
    bench.advance_ms(10_000);
    let leader = joined(bench.take(tokens[0])).leader.to_string();
    bench.take(tokens[1]);
    let [a, b] = ids;
    if a == leader { [a, b] } else { [b, a] }
}

#[test]
fn followers_wait_for_the_leader() {
    let mut bench = Bench::new();
    let [leader, follower] = joined_pair(&mut bench);
    let waiting = bench.sync(sync(&follower, 1, &[]));
    assert!(!bench.is_answered(waiting));
    let token = bench.sync(sync(&leader, 1, &[(&leader, "one"), (&follower, "two")]));
    assert_eq!(&synced(bench.take(token)).assignment[..], b"one");
    let response = synced(bench.take(waiting));
    assert_eq!(&response.assignment[..], b"two");
    assert_eq!(response.protocol_name, Some(text("range")));
}

#[test]
fn a_late_follower_gets_its_assignment_and_a_forgotten_one_an_empty_one() {
    let mut bench = Bench::new();
    let [leader, follower] = joined_pair(&mut bench);
    let token = bench.sync(sync(&leader, 1, &[(&leader, "one"), ("nobody", "x")]));
    bench.take(token);
    let token = bench.sync(sync(&follower, 1, &[]));
    let response = synced(bench.take(token));
    assert_eq!((response.error_code, response.assignment.len()), (0, 0));
}

#[test]
fn sync_is_checked() {
    let mut bench = Bench::new();
    let [leader, _] = joined_pair(&mut bench);
    let mut wrong_type = sync(&leader, 1, &[]);
    wrong_type.protocol_type = Some(text("connect"));
    let mut wrong_name = sync(&leader, 1, &[]);
    wrong_name.protocol_name = Some(text("sticky"));
    let mut no_name = sync(&leader, 1, &[]);
    no_name.protocol_name = None;
    let mut no_group = sync(&leader, 1, &[]);
    no_group.group_id = text("");
    let mut other_group = sync(&leader, 1, &[]);
    other_group.group_id = text("other");
    for (request, error) in [
        (sync("stranger", 1, &[]), ErrorCode::UnknownMemberId),
        (sync(&leader, 0, &[]), ErrorCode::IllegalGeneration),
        (sync(&leader, 2, &[]), ErrorCode::IllegalGeneration),
        (wrong_type, ErrorCode::InconsistentGroupProtocol),
        (wrong_name, ErrorCode::InconsistentGroupProtocol),
        (no_name, ErrorCode::InconsistentGroupProtocol),
        (no_group, ErrorCode::InvalidGroupId),
        (other_group, ErrorCode::UnknownMemberId),
    ] {
        let token = bench.sync(request);
        assert_eq!(error_of(synced(bench.take(token)).error_code), error);
    }
}

#[test]
fn members_that_do_not_sync_are_dropped_at_the_rebalance_timeout() {
    let mut bench = Bench::new();
    let [leader, follower] = joined_pair(&mut bench);
    let token = bench.sync(sync(&leader, 1, &[]));
    bench.take(token);
    for _ in 0..12 {
        bench.advance_ms(5_000);
        bench.heartbeat(&leader, 1);
        bench.heartbeat(&follower, 1);
    }
    assert_eq!(bench.state(), "PreparingRebalance");
    assert_eq!(bench.heartbeat(&follower, 1), ErrorCode::UnknownMemberId);
    let token = bench.join(9, join(&leader));
    assert_eq!(joined(bench.take(token)).generation_id, 2);
}

#[test]
fn a_leader_that_never_syncs_is_dropped_and_waiting_followers_rejoin() {
    let mut bench = Bench::new();
    let [leader, follower] = joined_pair(&mut bench);
    let waiting = bench.sync(sync(&follower, 1, &[]));
    for _ in 0..12 {
        bench.advance_ms(5_000);
        bench.heartbeat(&leader, 1);
    }
    let response = synced(bench.take(waiting));
    assert_eq!(
        error_of(response.error_code),
        ErrorCode::RebalanceInProgress
    );
    let token = bench.join(9, join(&follower));
    assert_eq!(joined(bench.take(token)).leader, follower.as_str());
}

#[test]
fn a_join_while_the_assignment_is_written_makes_it_void() {
    let mut bench = Bench::new();
    let [leader, follower] = joined_pair(&mut bench);
    bench.hold = true;
    let leader_sync = bench.sync(sync(&leader, 1, &[(&leader, "one"), (&follower, "two")]));
    let mut changed = join(&follower);
    changed.protocols = [protocol("range", "bar")].into();
    let rejoin = bench.join(9, changed);
    let response = synced(bench.take(leader_sync));
    assert_eq!(
        error_of(response.error_code),
        ErrorCode::RebalanceInProgress
    );
    bench.write_next();
    assert_eq!(
        bench.state(),
        "PreparingRebalance",
        "the written assignment is stale"
    );
    bench.join(9, join(&leader));
    let response = joined(bench.take(rejoin));
    assert_eq!(response.generation_id, 2);
    let stale = bench.sync(sync(&follower, 1, &[]));
    assert_eq!(
        error_of(synced(bench.take(stale)).error_code),
        ErrorCode::IllegalGeneration
    );
}

#[test]
fn a_second_sync_of_a_member_ends_the_first() {
    let mut bench = Bench::new();
    let [leader, follower] = joined_pair(&mut bench);
    let first = bench.sync(sync(&follower, 1, &[]));
    let second = bench.sync(sync(&follower, 1, &[]));
    assert_eq!(
        error_of(synced(bench.take(first)).error_code),
        ErrorCode::RebalanceInProgress
    );
    bench.sync(sync(&leader, 1, &[(&follower, "two")]));
    assert_eq!(&synced(bench.take(second)).assignment[..], b"two");
}

#[test]
fn heartbeats_are_checked_and_keep_the_session() {
    let mut bench = Bench::new();
    let ids = bench.stable_group(1);
    for _ in 0..10 {
        bench.advance_ms(9_000);
        assert_eq!(bench.heartbeat(&ids[0], 1), ErrorCode::None);
    }
    assert_eq!(bench.heartbeat(&ids[0], 0), ErrorCode::IllegalGeneration);
    assert_eq!(bench.heartbeat("stranger", 1), ErrorCode::UnknownMemberId);
    let request = HeartbeatRequest {
        member_id: text("x"),
        ..Default::default()
    };
    let response = bench.ask(4, Request::Heartbeat(request));
    let super::super::Response::Heartbeat(response) = response else {
        panic!()
    };
    assert_eq!(error_of(response.error_code), ErrorCode::InvalidGroupId);

    bench.advance_ms(10_000);
    assert_eq!(bench.heartbeat(&ids[0], 1), ErrorCode::UnknownMemberId);
    assert_eq!(bench.state(), "Empty");
    let last = bench.written(bench.log.len() - 1);
    let super::super::record::Stored::Group {
        value: Some(value), ..
    } = &last[0]
    else {
        panic!()
    };
    assert_eq!((value.generation, value.members.len()), (2, 0));
    assert_eq!(value.protocol_type, "consumer");
    assert_eq!(value.protocol, None);
    assert_eq!(value.leader, None);
}

#[test]
fn sessions_start_anew_when_a_group_is_loaded() {
    let mut bench = Bench::new();
    let ids = bench.stable_group(2);
    bench.advance_ms(9_000);
    let mut bench = bench.failover();
    assert_eq!(bench.state(), "Stable");
    bench.advance_ms(9_999);
    assert_eq!(bench.heartbeat(&ids[0], 1), ErrorCode::None);
    bench.advance_ms(1);
    assert_eq!(bench.heartbeat(&ids[1], 1), ErrorCode::UnknownMemberId);
    assert_eq!(bench.heartbeat(&ids[0], 1), ErrorCode::RebalanceInProgress);
}

#[test]
fn a_parked_request_needs_no_heartbeat() {
    let mut bench = Bench::new();
    let ids = bench.stable_group(2);
    let token = bench.join(9, join(&ids[0]));
    for _ in 0..8 {
        bench.advance_ms(5_000);
        bench.heartbeat(&ids[1], 1);
    }
    assert!(
        !bench.is_answered(token),
        "40 s parked with a session of 10 s"
    );
    bench.join(9, join(&ids[1]));
    assert_eq!(joined(bench.take(token)).members.len(), 2);
}
