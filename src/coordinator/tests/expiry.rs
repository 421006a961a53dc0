//! Expiry of offsets and groups: KIP-211.

use std::time::Duration;

use super::super::settings::Settings;
use super::super::wire::{LeaveGroupRequest, LeavingMember};
use super::super::{Request, TimerKey};
use super::harness::*;
use protocol::ErrorCode;

const MINUTE: Duration = Duration::from_secs(60);

/// `offsets.retention.minutes=1`, looked at every ten seconds.
fn short_retention() -> Settings {
    Settings {
        offsets_retention_ms: 60_000,
        offsets_retention_check_interval: Duration::from_secs(10),
        ..Settings::default()
    }
}

fn leave(bench: &mut Bench, id: &str) {
    let members = vec![LeavingMember {
        member_id: text(id),
        ..Default::default()
    }];
    let request = LeaveGroupRequest {
        group_id: text(GROUP),
        members: members.into(),
        ..Default::default()
    };
    bench.ask(5, Request::LeaveGroup(request));
}

#[test]
fn offsets_of_a_group_in_use_stay_and_go_a_retention_after_it_is_empty() {
    let mut bench = Bench::with(short_retention());
    let ids = bench.stable_group(1);
    assert_eq!(bench.commit(commit_as(&ids[0], 1, 5)), [ErrorCode::None]);
    for _ in 0..60 {
        bench.advance_ms(5_000);
        assert_eq!(bench.heartbeat(&ids[0], 1), ErrorCode::None);
    }
    assert_eq!(
        bench.offset("foo", 0),
        5,
        "five minutes without a commit, but alive"
    );
    leave(&mut bench, &ids[0]);
    bench.advance(MINUTE - Duration::from_secs(1));
    assert_eq!(bench.offset("foo", 0), 5);
    bench.advance_ms(11_000);
    assert_eq!(bench.offset("foo", 0), -1);
    assert_eq!(bench.describe(GROUP).group_state, "Dead");
    assert_eq!(
        bench.machine.durable().groups().count(),
        0,
        "a tombstone for the group too"
    );
}

#[test]
fn the_clock_of_an_empty_group_survives_a_failover() {
    let mut bench = Bench::with(short_retention());
    let ids = bench.stable_group(1);
    bench.commit(commit_as(&ids[0], 1, 5));
    bench.advance_ms(5_000);
    leave(&mut bench, &ids[0]);
    bench.advance_ms(45_000);
    let mut bench = bench.failover();
    bench.advance_ms(10_000);
    assert_eq!(bench.offset("foo", 0), 5, "not early");
    bench.advance_ms(15_000);
    assert_eq!(bench.offset("foo", 0), -1, "not started again");
}

#[test]
fn offsets_without_a_group_expire_from_their_commit() {
    let mut bench = Bench::with(short_retention());
    bench.commit(commit(0, 1));
    bench.advance_ms(40_000);
    bench.commit(commit(1, 2));
    bench.advance_ms(30_000);
    assert_eq!((bench.offset("foo", 0), bench.offset("foo", 1)), (-1, 2));
    assert_eq!(bench.state(), "Empty");
    bench.advance_ms(40_000);
    assert_eq!(bench.offset("foo", 1), -1);
    assert_eq!(bench.describe(GROUP).group_state, "Dead");
}

#[test]
fn offsets_of_a_topic_that_nobody_subscribes_to_any_more_expire() {
    let mut bench = Bench::with(short_retention());
    let mut old = commit(0, 1);
    old.topics[0].name = text("bar");
    bench.commit(old);
    bench.commit(commit(0, 2));
    let ids = bench.stable_group(1);
    for _ in 0..20 {
        bench.advance_ms(5_000);
        bench.heartbeat(&ids[0], 1);
    }
    assert_eq!((bench.offset("bar", 0), bench.offset("foo", 0)), (-1, 2));
    assert_eq!(bench.state(), "Stable");
}

#[test]
fn nothing_expires_during_a_rebalance_or_if_subscriptions_are_unknown() {
    let mut bench = Bench::with(short_retention());
    let mut old = commit(0, 1);
    old.topics[0].name = text("bar");
    bench.commit(old);
    let mut request = join("");
    request.protocols[0].metadata = bytes::Bytes::from_static(b"no subscription");
    request.rebalance_timeout_ms = 600_000;
    request.session_timeout_ms = 600_000;
    let token = bench.join(3, request);
    bench.advance_ms(120_000);
    let id = joined(bench.take(token)).member_id.to_string();
    assert_eq!(bench.offset("bar", 0), 1);
    let token = bench.sync(sync(&id, 1, &[]));
    bench.take(token);
    bench.advance_ms(120_000);
    assert_eq!(bench.offset("bar", 0), 1);
}

#[test]
fn a_retention_of_its_own_counts_instead() {
    let mut bench = Bench::with(short_retention());
    let mut request = commit(0, 1);
    request.retention_time_ms = 200_000;
    let token = bench.send_as(4, Request::OffsetCommit(request));
    bench.take(token);
    bench.advance_ms(190_000);
    assert_eq!(bench.offset("foo", 0), 1);
    bench.advance_ms(20_000);
    assert_eq!(bench.offset("foo", 0), -1);
}

#[test]
fn an_empty_group_without_offsets_goes() {
    let mut bench = Bench::with(short_retention());
    bench.member_id();
    assert_eq!(bench.machine.durable().groups().count(), 1);
    bench.advance_ms(20_000);
    assert_eq!(bench.machine.durable().groups().count(), 0);
    assert_eq!(
        bench.timers().cloned().collect::<Vec<_>>(),
        [TimerKey::Expiry]
    );
}

#[test]
fn a_commit_on_its_way_saves_its_group() {
    let mut bench = Bench::with(short_retention());
    bench.commit(commit(0, 1));
    bench.advance_ms(59_000);
    bench.hold = true;
    let token = bench.send_as(9, Request::OffsetCommit(commit(0, 2)));
    bench.advance_ms(30_000);
    bench.hold = false;
    bench.write_next();
    assert_eq!(committed(bench.take(token)), [ErrorCode::None]);
    assert_eq!(bench.offset("foo", 0), 2);
    bench.advance_ms(20_000);
    assert_eq!(bench.offset("foo", 0), 2);
}
