//! Static members: KIP-345, and KIP-814 for leaders that come back.

use super::super::record::Stored;
use super::super::wire::HeartbeatRequest;
use super::super::{Request, RequestToken, Response};
use super::harness::*;
use protocol::ErrorCode;

/// A stable group of two static members, `leader` and `follower`; their member ids.
fn stable_pair(bench: &mut Bench) -> [String; 2] {
    let leader = bench.join(9, static_join("", "leader"));
    bench.advance_ms(100);
    let follower = bench.join(9, static_join("", "follower"));
    bench.advance_ms(10_000);
    let leader = joined(bench.take(leader));
    let follower = joined(bench.take(follower));
    assert_eq!(leader.leader, leader.member_id, "the first one leads");
    let ids = [leader.member_id.to_string(), follower.member_id.to_string()];
    assert!(ids[0].starts_with("leader-"), "{}", ids[0]);
    let waiting = bench.sync(static_sync(&ids[1], "follower", &[]));
    let parts = [(ids[0].as_str(), "one"), (ids[1].as_str(), "two")];
    let token = bench.sync(static_sync(&ids[0], "leader", &parts));
    bench.take(token);
    bench.take(waiting);
    ids
}

fn static_sync(
    id: &str,
    instance: &str,
    assignments: &[(&str, &str)],
) -> super::super::wire::SyncGroupRequest {
    super::super::wire::SyncGroupRequest {
        group_instance_id: Some(text(instance)),
        ..sync(id, 1, assignments)
    }
}

#[test]
fn the_id_of_a_member_is_no_longer_than_a_string_can_be() {
    let mut bench = Bench::new();
    let instance = "ä".repeat(i16::MAX as usize / 2);
    let token = bench.join(9, static_join("", &instance));
    bench.advance_ms(10_000);
    let id = joined(bench.take(token)).member_id;
    assert!(id.len() <= i16::MAX as usize && id.starts_with("ää"));
    let (prefix, random) = id.split_at(id.len() - 36);
    assert!(prefix.ends_with("ä-") && !random.contains('ä'), "{random}");
}

fn static_heartbeat(bench: &mut Bench, id: &str, instance: &str, generation: i32) -> ErrorCode {
    let request = HeartbeatRequest {
        group_id: text(GROUP),
        generation_id: generation,
        member_id: text(id),
        group_instance_id: Some(text(instance)),
    };
    match bench.ask(4, Request::Heartbeat(request)) {
        Response::Heartbeat(response) => error_of(response.error_code),
        other => panic!("{other:?}"),
    }
}

fn join_error(bench: &mut Bench, token: RequestToken) -> ErrorCode {
    error_of(joined(bench.take(token)).error_code)
}

#[test]
fn a_follower_that_restarts_keeps_its_assignment_without_a_rebalance() {
    let mut bench = Bench::new();
    let ids = stable_pair(&mut bench);
    let before = bench.log.len();
    let token = bench.join(9, static_join("", "follower"));
    let response = joined(bench.take(token));
    assert_eq!((response.error_code, response.generation_id), (0, 1));
    assert_ne!(response.member_id, ids[1].as_str());
    assert_eq!(response.leader, ids[0].as_str());
    assert!(!response.skip_assignment);
    assert_eq!(bench.state(), "Stable");
    assert_eq!(bench.log.len(), before + 1, "the new id is in the log");
    let new_id = response.member_id.to_string();
    let token = bench.sync(static_sync(&new_id, "follower", &[]));
    assert_eq!(&synced(bench.take(token)).assignment[..], b"two");
    // The old one is fenced.
    assert_eq!(
        static_heartbeat(&mut bench, &ids[1], "follower", 1),
        ErrorCode::FencedInstanceId
    );
    assert_eq!(
        static_heartbeat(&mut bench, &new_id, "follower", 1),
        ErrorCode::None
    );
    let token = bench.join(9, static_join(&ids[1], "follower"));
    assert_eq!(join_error(&mut bench, token), ErrorCode::FencedInstanceId);
    // And so it is after a failover.
    let mut bench = bench.failover();
    assert_eq!(
        static_heartbeat(&mut bench, &new_id, "follower", 1),
        ErrorCode::None
    );
}

#[test]
fn a_leader_that_restarts_learns_of_the_members_but_does_not_assign() {
    let mut bench = Bench::new();
    stable_pair(&mut bench);
    let token = bench.join(9, static_join("", "leader"));
    let response = joined(bench.take(token));
    assert!(response.skip_assignment);
    assert_eq!(response.members.len(), 2);
    assert_eq!(response.leader, response.member_id);
    let id = response.member_id.to_string();
    let token = bench.sync(static_sync(&id, "leader", &[]));
    assert_eq!(&synced(bench.take(token)).assignment[..], b"one");
    assert_eq!(bench.state(), "Stable");
}

#[test]
fn a_leader_without_skip_assignment_does_not_know_that_it_leads() {
    let mut bench = Bench::new();
    let ids = stable_pair(&mut bench);
    let token = bench.join(8, static_join("", "leader"));
    let response = joined(bench.take(token));
    assert_eq!(response.leader, ids[0].as_str(), "its own old id");
    assert_ne!(response.leader, response.member_id);
    assert!(response.members.is_empty() && !response.skip_assignment);
}

#[test]
fn a_change_of_the_chosen_protocol_rebalances() {
    let mut bench = Bench::new();
    let ids = stable_pair(&mut bench);
    let mut request = static_join("", "follower");
    request.protocols = [protocol("range", "foo"), protocol("sticky", "foo")].into();
    let token = bench.join(9, request.clone());
    assert_eq!(
        joined(bench.take(token)).generation_id,
        1,
        "`range` is still the choice"
    );
    let mut leader = static_join(&ids[0], "leader");
    leader.protocols = [protocol("sticky", "foo"), protocol("range", "foo")].into();
    bench.join(9, leader);
    assert_eq!(bench.state(), "PreparingRebalance");
}

#[test]
fn a_static_member_keeps_its_place_until_its_session_ends() {
    let mut bench = Bench::new();
    let ids = stable_pair(&mut bench);
    // The leader rejoins; the follower is away for longer than the rebalance timeout, but its
    // session is kept.
    let token = bench.join(9, static_join(&ids[0], "leader"));
    for _ in 0..12 {
        bench.advance_ms(5_000);
        static_heartbeat(&mut bench, &ids[1], "follower", 1);
    }
    let response = joined(bench.take(token));
    assert_eq!(
        (response.generation_id, response.members.len()),
        (2, 2),
        "kept, though absent"
    );
    bench.advance_ms(10_000);
    let described = bench.describe(GROUP);
    assert_eq!(described.members.len(), 0, "both sessions are over");
}

#[test]
fn the_same_instance_twice_during_a_rebalance_fences_the_first() {
    let mut bench = Bench::new();
    let first = bench.join(9, static_join("", "one"));
    let second = bench.join(9, static_join("", "one"));
    assert_eq!(join_error(&mut bench, first), ErrorCode::FencedInstanceId);
    bench.advance_ms(10_000);
    let response = joined(bench.take(second));
    assert_eq!((response.generation_id, response.members.len()), (1, 1));
}

#[test]
fn a_restart_between_join_and_sync_rebalances() {
    let mut bench = Bench::new();
    let leader = bench.join(9, static_join("", "leader"));
    let follower = bench.join(9, static_join("", "follower"));
    bench.advance_ms(10_000);
    let leader_id = joined(bench.take(leader)).member_id.to_string();
    let follower_id = joined(bench.take(follower)).member_id.to_string();
    let waiting = bench.sync(static_sync(&follower_id, "follower", &[]));
    let token = bench.join(9, static_join("", "follower"));
    assert_eq!(
        error_of(synced(bench.take(waiting)).error_code),
        ErrorCode::FencedInstanceId
    );
    assert_eq!(bench.state(), "PreparingRebalance");
    bench.join(9, static_join(&leader_id, "leader"));
    assert_eq!(joined(bench.take(token)).generation_id, 2);
}

#[test]
fn an_unknown_instance_or_a_wrong_id_is_refused() {
    let mut bench = Bench::new();
    let ids = stable_pair(&mut bench);
    let token = bench.join(9, static_join(&ids[0], "nobody"));
    assert_eq!(join_error(&mut bench, token), ErrorCode::UnknownMemberId);
    let token = bench.join(9, static_join("wrong", "leader"));
    assert_eq!(join_error(&mut bench, token), ErrorCode::FencedInstanceId);
    let token = bench.sync(static_sync("wrong", "leader", &[]));
    assert_eq!(
        error_of(synced(bench.take(token)).error_code),
        ErrorCode::FencedInstanceId
    );
    let mut request = commit_as("wrong", 1, 5);
    request.group_instance_id = Some(text("leader"));
    assert_eq!(bench.commit(request), [ErrorCode::FencedInstanceId]);
}

#[test]
fn when_the_new_id_cannot_be_written_the_old_one_stays() {
    let mut bench = Bench::new();
    let ids = stable_pair(&mut bench);
    bench.hold = true;
    let token = bench.join(9, static_join("", "follower"));
    assert!(!bench.is_answered(token));
    bench.fail_next(ErrorCode::NotEnoughReplicas);
    let response = joined(bench.take(token));
    assert_eq!(
        error_of(response.error_code),
        ErrorCode::CoordinatorNotAvailable
    );
    assert_eq!(response.member_id, "");
    bench.hold = false;
    assert_eq!(
        static_heartbeat(&mut bench, &ids[1], "follower", 1),
        ErrorCode::None
    );
    let Stored::Group {
        value: Some(value), ..
    } = &bench.written(bench.log.len() - 1)[0]
    else {
        panic!()
    };
    assert!(
        value
            .members
            .iter()
            .any(|member| member.member_id == ids[1].as_str())
    );
}
