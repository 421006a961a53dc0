//! JoinGroup and the join phase.

use super::super::record::Stored;
use super::super::settings::Settings;
use super::super::wire::JoinGroupRequest;
use super::harness::*;
use protocol::ErrorCode;

#[test]
fn a_first_group_reaches_stable() {
    let mut bench = Bench::new();
    let id = bench.member_id();
    assert!(id.starts_with("client-"), "{id}");
    let token = bench.join(9, join(&id));
    assert!(!bench.is_answered(token), "the initial delay runs");
    bench.advance_ms(2_999);
    assert!(!bench.is_answered(token));
    bench.advance_ms(1);
    let response = joined(bench.take(token));
    assert_eq!(response.generation_id, 1);
    assert_eq!(response.leader, id.as_str());
    assert_eq!(response.members.len(), 1);
    assert_eq!(response.protocol_name, Some(text("range")));
    assert_eq!(response.protocol_type, Some(text("consumer")));
    assert!(!response.skip_assignment);
    assert_eq!(bench.state(), "CompletingRebalance");

    let token = bench.sync(sync(&id, 1, &[(&id, "all")]));
    let response = synced(bench.take(token));
    assert_eq!(&response.assignment[..], b"all");
    assert_eq!(bench.state(), "Stable");
    let described = bench.describe(GROUP);
    assert_eq!(described.protocol_data, "range");
    assert_eq!(described.members[0].client_host, "/127.0.0.1");
    assert_eq!(&described.members[0].member_assignment[..], b"all");

    // The empty group first, then the group with its assignment.
    let Stored::Group {
        value: Some(first), ..
    } = &bench.written(0)[0]
    else {
        panic!()
    };
    assert_eq!((first.generation, first.members.len()), (0, 0));
    let Stored::Group {
        value: Some(last), ..
    } = &bench.written(1)[0]
    else {
        panic!()
    };
    assert_eq!(
        (last.generation, &last.members[0].assignment[..]),
        (1, &b"all"[..])
    );
    assert_eq!(bench.log.len(), 2);
}

#[test]
fn without_delay_the_first_generation_comes_at_once() {
    let settings = Settings {
        initial_rebalance_delay_ms: 0,
        ..Settings::default()
    };
    let mut bench = Bench::with(settings);
    let id = bench.member_id();
    let token = bench.join(9, join(&id));
    bench.advance_ms(0);
    assert_eq!(joined(bench.take(token)).generation_id, 1);
}

#[test]
fn new_members_extend_the_initial_delay_up_to_the_rebalance_timeout() {
    let mut bench = Bench::new();
    let request = |id: &str| {
        let mut request = join(id);
        request.rebalance_timeout_ms = 7_000;
        request
    };
    let first = bench.join(3, request(""));
    bench.advance_ms(2_000);
    let second = bench.join(3, request(""));
    bench.advance_ms(1_000);
    assert!(
        !bench.is_answered(first),
        "somebody came, so three more seconds"
    );
    bench.advance_ms(2_000);
    let third = bench.join(3, request(""));
    bench.advance_ms(1_000);
    assert!(
        !bench.is_answered(first),
        "again, but only one second is left of seven"
    );
    bench.advance_ms(1_000);
    for token in [first, second, third] {
        assert_eq!(joined(bench.take(token)).generation_id, 1);
    }
}

#[test]
fn requests_are_checked_before_they_reach_a_group() {
    let mut bench = Bench::new();
    for (group_id, member_id, session_timeout_ms, error) in [
        ("", "", 10_000, ErrorCode::InvalidGroupId),
        (GROUP, "", 5_999, ErrorCode::InvalidSessionTimeout),
        (GROUP, "", 1_800_001, ErrorCode::InvalidSessionTimeout),
        (GROUP, "stranger", 10_000, ErrorCode::UnknownMemberId),
    ] {
        let group_id = text(group_id);
        let request = JoinGroupRequest {
            group_id,
            session_timeout_ms,
            ..join(member_id)
        };
        let token = bench.join(9, request);
        let response = joined(bench.take(token));
        assert_eq!(error_of(response.error_code), error);
        assert_eq!(response.member_id, member_id);
        assert_eq!(response.generation_id, -1);
    }
    assert_eq!(bench.log.len(), 0);
}

#[test]
fn a_group_has_one_protocol_type_and_a_common_protocol() {
    let mut bench = Bench::new();
    bench.stable_group(1);
    let mut other_type = join("");
    other_type.protocol_type = text("connect");
    let mut no_common = join("");
    no_common.protocols = [protocol("sticky", "foo")].into();
    let mut none = join("");
    none.protocols.clear();
    for request in [other_type, no_common, none] {
        let token = bench.join(9, request);
        let response = joined(bench.take(token));
        assert_eq!(
            error_of(response.error_code),
            ErrorCode::InconsistentGroupProtocol
        );
    }
    // Also the very first member has to bring one.
    let mut bench = Bench::new();
    let mut none = join("");
    none.protocols.clear();
    let token = bench.join(9, none);
    assert_eq!(
        error_of(joined(bench.take(token)).error_code),
        ErrorCode::InconsistentGroupProtocol
    );
}

#[test]
fn the_protocol_with_most_votes_among_common_ones_is_chosen() {
    let mut bench = Bench::new();
    let mut tokens = Vec::new();
    for names in [
        ["range", "sticky", "x"],
        ["sticky", "range", "y"],
        ["sticky", "range", "z"],
    ] {
        let mut request = join("");
        request.protocols = names.iter().map(|name| protocol(name, "foo")).collect();
        tokens.push(bench.join(3, request));
    }
    bench.advance_ms(10_000);
    for token in tokens {
        assert_eq!(
            joined(bench.take(token)).protocol_name,
            Some(text("sticky"))
        );
    }
}

#[test]
fn old_versions_join_without_an_id_first() {
    let mut bench = Bench::new();
    let token = bench.join(0, join(""));
    bench.advance_ms(10_000);
    let response = joined(bench.take(token));
    assert_eq!(response.generation_id, 1);
    assert!(!response.member_id.is_empty());
    // Version 0 has no rebalance timeout; the session timeout holds.
    let id = response.member_id.to_string();
    let mut request = sync(&id, 1, &[(&id, "x")]);
    request.protocol_name = None;
    request.protocol_type = None;
    let token = bench.send_as(0, super::super::Request::SyncGroup(request));
    assert_eq!(synced(bench.take(token)).error_code, 0);
    let Stored::Group {
        value: Some(value), ..
    } = &bench.written(1)[0]
    else {
        panic!()
    };
    assert_eq!(value.members[0].rebalance_timeout, 10_000);
}

#[test]
fn before_version_7_a_protocol_name_is_never_null() {
    let mut bench = Bench::new();
    let ids = bench.stable_group(1);
    let token = bench.join(9, join("stranger"));
    let response = joined(bench.take(token));
    assert_eq!(error_of(response.error_code), ErrorCode::UnknownMemberId);
    assert_eq!(response.protocol_name, None);
    let token = bench.join(6, join("stranger"));
    assert_eq!(joined(bench.take(token)).protocol_name, Some(text("")));
    assert_eq!(bench.heartbeat(&ids[0], 1), ErrorCode::None);
}

#[test]
fn a_pending_member_that_does_not_come_back_is_forgotten() {
    let mut bench = Bench::new();
    let id = bench.member_id();
    bench.advance_ms(10_000);
    let token = bench.join(9, join(&id));
    assert_eq!(
        error_of(joined(bench.take(token)).error_code),
        ErrorCode::UnknownMemberId
    );
}

#[test]
fn a_pending_member_holds_the_join_phase_only_until_its_session_ends() {
    let mut bench = Bench::new();
    let ids = bench.stable_group(1);
    let pending = bench.member_id();
    let token = bench.join(9, join(&ids[0]));
    assert!(
        !bench.is_answered(token),
        "the pending member may still come"
    );
    bench.advance_ms(9_999);
    assert!(!bench.is_answered(token));
    bench.advance_ms(1);
    assert_eq!(joined(bench.take(token)).generation_id, 2);
    assert_eq!(bench.heartbeat(&pending, 2), ErrorCode::UnknownMemberId);
}

#[test]
fn a_pending_member_has_no_instance_id() {
    let mut bench = Bench::new();
    let id = bench.member_id();
    let token = bench.join(9, static_join(&id, "instance"));
    assert_eq!(
        error_of(joined(bench.take(token)).error_code),
        ErrorCode::UnknownServerError
    );
}

#[test]
fn a_follower_that_rejoins_unchanged_gets_the_current_generation() {
    let mut bench = Bench::new();
    let ids = bench.stable_group(2);
    let token = bench.join(9, join(&ids[1]));
    let response = joined(bench.take(token));
    assert_eq!((response.generation_id, response.members.len()), (1, 0));
    assert_eq!(response.leader, ids[0].as_str());
    assert_eq!(bench.state(), "Stable");
}

#[test]
fn a_rejoining_leader_or_changed_follower_starts_a_rebalance() {
    let mut bench = Bench::new();
    let ids = bench.stable_group(2);
    let leader = bench.join(9, join(&ids[0]));
    assert_eq!(bench.state(), "PreparingRebalance");
    assert_eq!(bench.heartbeat(&ids[1], 1), ErrorCode::RebalanceInProgress);
    let follower = bench.join(9, join(&ids[1]));
    let response = joined(bench.take(leader));
    assert_eq!((response.generation_id, response.members.len()), (2, 2));
    assert_eq!(joined(bench.take(follower)).members.len(), 0);

    let token = bench.sync(sync(&ids[0], 2, &[]));
    bench.take(token);
    let token = bench.sync(sync(&ids[1], 2, &[]));
    assert_eq!(synced(bench.take(token)).error_code, 0);
    let mut changed = join(&ids[1]);
    changed.protocols = [protocol("range", "bar")].into();
    let token = bench.join(9, changed);
    assert!(!bench.is_answered(token));
    assert_eq!(bench.state(), "PreparingRebalance");
    bench.join(9, join(&ids[0]));
    assert_eq!(joined(bench.take(token)).generation_id, 3);
}

#[test]
fn a_member_that_lost_the_answer_gets_it_again_before_the_sync() {
    let mut bench = Bench::new();
    let id = bench.member_id();
    let first = bench.join(9, join(&id));
    bench.advance_ms(3_000);
    assert_eq!(joined(bench.take(first)).generation_id, 1);
    let again = bench.join(9, join(&id));
    let response = joined(bench.take(again));
    assert_eq!((response.generation_id, response.members.len()), (1, 1));
}

#[test]
fn a_second_join_of_a_member_ends_the_first() {
    let mut bench = Bench::new();
    let ids = bench.stable_group(2);
    let first = bench.join(9, join(&ids[0]));
    let second = bench.join(9, join(&ids[0]));
    let displaced = joined(bench.take(first));
    assert_eq!(
        error_of(displaced.error_code),
        ErrorCode::RebalanceInProgress
    );
    bench.join(9, join(&ids[1]));
    assert_eq!(joined(bench.take(second)).generation_id, 2);
}

#[test]
fn members_that_do_not_rejoin_are_dropped_at_the_rebalance_timeout() {
    let mut bench = Bench::new();
    let ids = bench.stable_group(3);
    let token = bench.join(9, join(&ids[0]));
    for _ in 0..12 {
        // Alive, but not rejoining.
        bench.advance_ms(5_000);
        bench.heartbeat(&ids[1], 1);
        bench.heartbeat(&ids[2], 1);
    }
    let response = joined(bench.take(token));
    assert_eq!((response.generation_id, response.members.len()), (2, 1));
    assert_eq!(bench.heartbeat(&ids[1], 2), ErrorCode::UnknownMemberId);
}

#[test]
fn the_next_member_leads_when_the_leader_does_not_rejoin() {
    let mut bench = Bench::new();
    let ids = bench.stable_group(2);
    let newcomer = bench.member_id();
    let newcomer_token = bench.join(9, join(&newcomer));
    let token = bench.join(9, join(&ids[1]));
    bench.advance_ms(60_000);
    let leader = joined(bench.take(token)).leader;
    assert!(leader == ids[1].as_str() || leader == newcomer.as_str());
    assert_eq!(joined(bench.take(newcomer_token)).leader, leader);
}

#[test]
fn a_new_member_that_does_not_answer_is_dropped_after_five_minutes() {
    let mut bench = Bench::new();
    let ids = bench.stable_group(1);
    let mut slow = join(&ids[0]);
    slow.rebalance_timeout_ms = 3_600_000;
    let token = bench.join(9, slow);
    assert_eq!(joined(bench.take(token)).generation_id, 2);
    let token = bench.sync(sync(&ids[0], 2, &[]));
    bench.take(token);
    let newcomer = bench.join(3, join(""));
    for _ in 0..59 {
        bench.advance_ms(5_000);
        bench.heartbeat(&ids[0], 2);
    }
    assert!(!bench.is_answered(newcomer));
    bench.advance_ms(5_000);
    let response = joined(bench.take(newcomer));
    assert_eq!(error_of(response.error_code), ErrorCode::UnknownMemberId);
}

#[test]
fn a_full_group_turns_newcomers_away() {
    let settings = Settings {
        max_group_size: 2,
        ..Settings::default()
    };
    let mut bench = Bench::with(settings);
    let ids = bench.stable_group(2);
    let token = bench.join(9, join(""));
    let response = joined(bench.take(token));
    assert_eq!(
        error_of(response.error_code),
        ErrorCode::GroupMaxSizeReached
    );
    assert_eq!(response.member_id, "");
    let token = bench.join(9, join(&ids[1]));
    assert_eq!(
        joined(bench.take(token)).error_code,
        0,
        "who is in stays in"
    );
}

#[test]
fn an_oversized_group_shrinks_when_it_is_loaded() {
    let mut bench = Bench::new();
    let ids = bench.stable_group(4);
    let settings = Settings {
        max_group_size: 2,
        ..Settings::default()
    };
    let mut bench = Bench::from_log(settings, bench.log.clone(), bench.now_ms);
    assert_eq!(bench.state(), "PreparingRebalance");
    let tokens: Vec<_> = ids.iter().map(|id| bench.join(9, join(id))).collect();
    let refused: Vec<ErrorCode> = tokens
        .into_iter()
        .filter(|token| bench.is_answered(*token))
        .collect::<Vec<_>>()
        .into_iter()
        .map(|token| error_of(joined(bench.take(token)).error_code))
        .collect();
    let turned_away = refused
        .iter()
        .filter(|e| **e == ErrorCode::GroupMaxSizeReached)
        .count();
    assert_eq!(turned_away, 2);
    assert_eq!(bench.describe(GROUP).members.len(), 2);
    assert_eq!(
        bench.state(),
        "CompletingRebalance",
        "nobody is left to wait for"
    );
}
