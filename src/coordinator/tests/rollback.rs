//! Appends that fail, and coordinators that go away: the right error, and no state kept.

use super::super::wire::OffsetFetchGroup;
use super::super::{Coordinator, Effect, Event, Request, RequestToken, Response};
use super::harness::*;
use protocol::ErrorCode;

#[test]
fn a_failed_commit_leaves_nothing() {
    for (error, answer) in [
        (
            ErrorCode::NotEnoughReplicas,
            ErrorCode::CoordinatorNotAvailable,
        ),
        (
            ErrorCode::RequestTimedOut,
            ErrorCode::CoordinatorNotAvailable,
        ),
        (ErrorCode::NotLeaderOrFollower, ErrorCode::NotCoordinator),
        (ErrorCode::KafkaStorageError, ErrorCode::NotCoordinator),
        (ErrorCode::RecordListTooLarge, ErrorCode::UnknownServerError),
    ] {
        let mut bench = Bench::new();
        bench.hold = true;
        let token = bench.send_as(9, Request::OffsetCommit(commit(0, 1)));
        bench.fail_next(error);
        assert_eq!(committed(bench.take(token)), [answer]);
        assert_eq!(bench.offset("foo", 0), -1);
        assert_eq!(
            bench.state(),
            "Dead",
            "the group came with the commit and goes with it"
        );
        assert_eq!(
            bench.commit_error_of_generation_1(),
            ErrorCode::GroupIdNotFound
        );
    }
}

impl Bench {
    fn commit_error_of_generation_1(&mut self) -> ErrorCode {
        self.commit(commit_as("x", 1, 1))[0]
    }
}

#[test]
fn a_later_commit_is_independent_of_a_failed_one() {
    let mut bench = Bench::new();
    bench.commit(commit(0, 1));
    bench.hold = true;
    let first = bench.send_as(9, Request::OffsetCommit(commit(0, 2)));
    let second = bench.send_as(9, Request::OffsetCommit(commit(1, 3)));
    bench.fail_next(ErrorCode::KafkaStorageError);
    bench.write_next();
    assert_eq!(committed(bench.take(first)), [ErrorCode::NotCoordinator]);
    assert_eq!(committed(bench.take(second)), [ErrorCode::None]);
    assert_eq!((bench.offset("foo", 0), bench.offset("foo", 1)), (1, 3));
}

#[test]
fn a_failed_assignment_makes_everybody_rejoin() {
    let mut bench = Bench::new();
    let id = bench.member_id();
    let token = bench.join(9, join(&id));
    bench.advance_ms(3_000);
    bench.take(token);
    bench.hold = true;
    let token = bench.sync(sync(&id, 1, &[(&id, "x")]));
    bench.fail_next(ErrorCode::NotEnoughReplicas);
    let response = synced(bench.take(token));
    assert_eq!(
        error_of(response.error_code),
        ErrorCode::CoordinatorNotAvailable
    );
    assert!(response.assignment.is_empty());
    bench.hold = false;
    assert_eq!(bench.state(), "PreparingRebalance");
    let token = bench.join(9, join(&id));
    assert_eq!(joined(bench.take(token)).generation_id, 2);
    let token = bench.sync(sync(&id, 2, &[(&id, "x")]));
    assert_eq!(synced(bench.take(token)).error_code, 0);
}

#[test]
fn a_group_whose_first_record_fails_is_gone() {
    let mut bench = Bench::new();
    bench.hold = true;
    let token = bench.join(3, join(""));
    assert!(!bench.is_answered(token));
    bench.fail_next(ErrorCode::NotLeaderOrFollower);
    assert_eq!(
        error_of(joined(bench.take(token)).error_code),
        ErrorCode::NotCoordinator
    );
    bench.advance_ms(400_000);
    assert_eq!(bench.state(), "Dead");
    assert_eq!(bench.log.len(), 0);
}

#[test]
fn a_group_whose_tombstone_fails_comes_back() {
    let mut bench = Bench::new();
    bench.commit(commit(0, 1));
    bench.hold = true;
    let token = bench.send_as(2, Request::DeleteGroup(text(GROUP)));
    bench.fail_next(ErrorCode::NotEnoughReplicas);
    let refused = Response::DeleteGroup(text(GROUP), ErrorCode::CoordinatorNotAvailable);
    assert_eq!(bench.take(token), refused);
    assert_eq!(bench.state(), "Empty");
    assert_eq!(bench.offset("foo", 0), 1);
}

#[test]
fn whoever_waits_is_sent_away_when_the_coordinator_goes() {
    let mut bench = Bench::new();
    let ids = bench.stable_group(2);
    let parked_join = bench.join(9, join(&ids[0]));
    bench.hold = true;
    let parked_commit = bench.send_as(9, Request::OffsetCommit(commit_as(&ids[1], 1, 3)));
    let group = OffsetFetchGroup {
        group_id: text(GROUP),
        topics: None,
        ..Default::default()
    };
    let parked_fetch = bench.send_as(
        9,
        Request::OffsetFetch {
            group,
            require_stable: true,
        },
    );
    let settings = bench.settings.clone();
    let machine = std::mem::replace(&mut bench.machine, Coordinator::new(settings));
    let mut answers = std::collections::BTreeMap::new();
    for effect in machine.unload(bench.now_ms) {
        let Effect::Reply { token, response } = effect else {
            panic!("{effect:?}")
        };
        answers.insert(token, *response);
    }
    let mut take = |token: RequestToken| answers.remove(&token).unwrap();
    let error = ErrorCode::NotCoordinator;
    assert_eq!(error_of(joined(take(parked_join)).error_code), error);
    assert_eq!(committed(take(parked_commit)), [error]);
    let Response::OffsetFetch(fetched) = take(parked_fetch) else {
        panic!()
    };
    assert_eq!(error_of(fetched.error_code), error);
    assert!(answers.is_empty());
    bench.log.clear();
    bench.held.clear();
}

#[test]
fn a_late_report_of_an_append_is_harmless() {
    let mut bench = Bench::new();
    let sequence = super::super::Sequence(99);
    bench.event(Event::Written {
        sequence,
        base_offset: 0,
    });
    assert_eq!(bench.log.len(), 0);
}
