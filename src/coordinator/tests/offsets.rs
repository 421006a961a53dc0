//! OffsetCommit, OffsetFetch, OffsetDelete, and offsets of deleted topics.

use protocol::{ErrorCode, Uuid};

use super::super::record::{LogRecord, Record, Stored};
use super::super::wire::*;
use super::super::{Event, Request, Response};
use super::harness::*;

fn fetch(bench: &mut Bench, group: OffsetFetchGroup, require_stable: bool) -> OffsetFetchedGroup {
    match bench.ask(
        10,
        Request::OffsetFetch {
            group,
            require_stable,
        },
    ) {
        Response::OffsetFetch(fetched) => fetched,
        other => panic!("{other:?}"),
    }
}

fn all_topics() -> OffsetFetchGroup {
    OffsetFetchGroup {
        group_id: text(GROUP),
        topics: None,
        ..Default::default()
    }
}

fn one_partition(topic_id: Uuid) -> OffsetFetchGroup {
    OffsetFetchGroup {
        topics: Some(
            [OffsetFetchTopic {
                name: text("foo"),
                topic_id,
                partition_indexes: [0].into(),
            }]
            .into(),
        ),
        ..all_topics()
    }
}

fn delete(bench: &mut Bench, topic: &str, partitions: &[i32]) -> OffsetDeleteResponse {
    let partitions = partitions.iter().map(|index| DeletePartition {
        partition_index: *index,
    });
    let request = OffsetDeleteRequest {
        group_id: text(GROUP),
        topics: [DeleteTopic {
            name: text(topic),
            partitions: partitions.collect(),
        }]
        .into(),
    };
    match bench.ask(0, Request::OffsetDelete(request)) {
        Response::OffsetDelete(response) => response,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_consumer_without_a_group_commits_and_reads_back() {
    let mut bench = Bench::new();
    assert_eq!(bench.offset("foo", 0), -1);
    assert_eq!(bench.commit(commit(0, 100)), [ErrorCode::None]);
    assert_eq!(bench.offset("foo", 0), 100);
    assert_eq!(bench.offset("foo", 1), -1);
    assert_eq!(bench.offset("bar", 0), -1);
    let all = fetch(&mut bench, all_topics(), false);
    assert_eq!(
        (
            all.topics.len(),
            all.topics[0].partitions[0].committed_offset
        ),
        (1, 100)
    );
    assert_eq!(bench.state(), "Empty");
    let Stored::Offset {
        value: Some(value), ..
    } = &bench.written(0)[0]
    else {
        panic!()
    };
    assert_eq!((value.commit_timestamp, value.topic_id), (START_MS, FOO_ID));
    let mut bench = bench.failover();
    assert_eq!(bench.offset("foo", 0), 100);
}

#[test]
fn records_have_kafkas_bytes() {
    let mut bench = Bench::new();
    let mut request = commit(3, 42);
    request.topics[0].partitions[0].committed_metadata = Some(text("m"));
    request.topics[0].partitions[0].committed_leader_epoch = 5;
    bench.commit(request.clone());
    let key = b"\x00\x01\x00\x05group\x00\x03foo\x00\x00\x00\x03";
    assert_eq!(&bench.log[0].key[..], key);
    let mut value = b"\x00\x04".to_vec();
    value.extend(42i64.to_be_bytes());
    value.extend(5i32.to_be_bytes());
    value.extend(b"\x02m");
    value.extend(START_MS.to_be_bytes());
    value.extend(b"\x01\x00\x10");
    value.extend(FOO_ID.0);
    assert_eq!(&bench.log[0].value.as_ref().unwrap()[..], &value[..]);
    // A retention of its own is kept in version 1, which has no leader epoch.
    request.retention_time_ms = 1_000;
    let token = bench.send_as(2, Request::OffsetCommit(request));
    bench.take(token);
    let mut value = b"\x00\x01".to_vec();
    value.extend(42i64.to_be_bytes());
    value.extend(b"\x00\x01m");
    value.extend(START_MS.to_be_bytes());
    value.extend((START_MS + 1_000).to_be_bytes());
    assert_eq!(&bench.log[1].value.as_ref().unwrap()[..], &value[..]);
}

#[test]
fn members_commit_with_their_id_and_generation() {
    let mut bench = Bench::new();
    let ids = bench.stable_group(2);
    for (request, error) in [
        (commit_as(&ids[0], 1, 1), ErrorCode::None),
        (commit_as(&ids[0], 2, 2), ErrorCode::IllegalGeneration),
        (commit_as(&ids[0], -1, 2), ErrorCode::IllegalGeneration),
        (commit_as("stranger", 1, 2), ErrorCode::UnknownMemberId),
        (commit(0, 2), ErrorCode::UnknownMemberId),
    ] {
        assert_eq!(bench.commit(request), [error]);
    }
    // During the join phase a member may still commit what it has done so far.
    let token = bench.join(9, join(&ids[0]));
    assert_eq!(bench.commit(commit_as(&ids[1], 1, 3)), [ErrorCode::None]);
    bench.join(9, join(&ids[1]));
    bench.take(token);
    assert_eq!(
        bench.commit(commit_as(&ids[1], 2, 4)),
        [ErrorCode::RebalanceInProgress]
    );
    assert_eq!(bench.offset("foo", 0), 3);
}

#[test]
fn a_commit_to_a_group_that_is_not_there() {
    let mut bench = Bench::new();
    assert_eq!(
        bench.commit(commit_as("x", 1, 1)),
        [ErrorCode::GroupIdNotFound]
    );
    let token = bench.send_as(8, Request::OffsetCommit(commit_as("x", 1, 1)));
    assert_eq!(committed(bench.take(token)), [ErrorCode::IllegalGeneration]);
    assert_eq!(bench.log.len(), 0);
}

#[test]
fn a_commit_keeps_the_session() {
    let mut bench = Bench::new();
    let ids = bench.stable_group(1);
    for offset in 0..5 {
        bench.advance_ms(9_000);
        assert_eq!(
            bench.commit(commit_as(&ids[0], 1, offset)),
            [ErrorCode::None]
        );
    }
}

#[test]
fn metadata_has_a_limit_for_each_partition() {
    let mut bench = Bench::new();
    let mut request = commit(0, 1);
    let mut long = request.topics[0].partitions[0].clone();
    long.partition_index = 1;
    long.committed_metadata = Some(text(&"é".repeat(4_097)));
    let mut fits = long.clone();
    fits.partition_index = 2;
    fits.committed_metadata = Some(text(&"é".repeat(4_096)));
    request.topics[0].partitions.extend([long, fits]);
    assert_eq!(
        bench.commit(request),
        [
            ErrorCode::None,
            ErrorCode::OffsetMetadataTooLarge,
            ErrorCode::None
        ]
    );
    assert_eq!((bench.offset("foo", 1), bench.offset("foo", 2)), (-1, 1));
}

#[test]
fn offsets_of_another_topic_of_the_same_name_are_not_seen() {
    let mut bench = Bench::new();
    bench.commit(commit(0, 7));
    let of = |bench: &mut Bench, id: Uuid| {
        fetch(bench, one_partition(id), false).topics[0].partitions[0].committed_offset
    };
    assert_eq!(of(&mut bench, FOO_ID), 7);
    assert_eq!(of(&mut bench, Uuid([9; 16])), -1);
    assert_eq!(
        of(&mut bench, Uuid::ZERO),
        7,
        "versions without ids go by name"
    );
}

#[test]
fn reads_see_only_what_is_written() {
    let mut bench = Bench::new();
    bench.commit(commit(0, 1));
    bench.hold = true;
    let commit_token = bench.send_as(9, Request::OffsetCommit(commit(0, 2)));
    assert_eq!(bench.offset("foo", 0), 1);
    let group = one_partition(Uuid::ZERO);
    let stable = bench.send_as(
        9,
        Request::OffsetFetch {
            group,
            require_stable: true,
        },
    );
    assert!(!bench.is_answered(stable), "waits for the commit before it");
    assert!(!bench.is_answered(commit_token));
    bench.write_next();
    assert_eq!(committed(bench.take(commit_token)), [ErrorCode::None]);
    let Response::OffsetFetch(fetched) = bench.take(stable) else {
        panic!()
    };
    assert_eq!(fetched.topics[0].partitions[0].committed_offset, 2);
}

#[test]
fn an_open_transaction_makes_offsets_unstable() {
    let mut bench = Bench::new();
    bench.commit(commit(0, 1));
    let record = transactional(0, 50);
    let mut machine = super::super::Coordinator::new(bench.settings.clone());
    machine.replay(0, &LogRecord::decode(&bench.log[0]));
    machine.replay(1, &record);
    machine.loaded(START_MS);
    let pending = |machine: &super::super::Coordinator| {
        machine.durable().is_unstable(&text(GROUP), &text("foo"), 0)
    };
    assert!(pending(&machine));
    let offset = |machine: &super::super::Coordinator| {
        machine
            .durable()
            .offset(&text(GROUP), &text("foo"), 0)
            .map(|found| found.offset)
    };
    assert_eq!(offset(&machine), Some(1));
    let end = |commit| LogRecord {
        producer_id: 9,
        stored: Stored::EndTransaction { commit },
    };
    machine.replay(2, &end(true));
    assert!(!pending(&machine));
    assert_eq!(offset(&machine), Some(50));
    // An aborted one leaves nothing.
    machine.replay(3, &transactional(0, 60));
    machine.replay(4, &end(false));
    assert_eq!(offset(&machine), Some(50));
    // A plain commit that came after the transactional one wins over it.
    machine.replay(5, &transactional(0, 70));
    machine.replay(6, &LogRecord::decode(&bench.log[0]));
    machine.replay(7, &end(true));
    assert_eq!(offset(&machine), Some(1));
}

fn transactional(partition: i32, offset: i64) -> LogRecord {
    let value = protocol::stored::OffsetCommitValue {
        offset,
        ..Default::default()
    };
    let record = Record::offset(&text(GROUP), &text("foo"), partition, value);
    LogRecord {
        producer_id: 9,
        ..LogRecord::decode(&record)
    }
}

#[test]
fn offsets_are_deleted_but_not_of_subscribed_topics() {
    let mut bench = Bench::new();
    let response = delete(&mut bench, "foo", &[0]);
    assert_eq!(error_of(response.error_code), ErrorCode::GroupIdNotFound);
    bench.commit(commit(0, 1));
    let ids = bench.stable_group(1);
    let mut other = commit_as(&ids[0], 1, 5);
    other.topics[0].name = text("bar");
    bench.commit(other);
    let response = delete(&mut bench, "foo", &[0]);
    let code = response.topics[0].partitions[0].error_code;
    assert_eq!(error_of(code), ErrorCode::GroupSubscribedToTopic);
    let before = bench.log.len();
    let response = delete(&mut bench, "bar", &[0, 1]);
    assert_eq!(response.topics[0].partitions.len(), 2);
    assert!(
        response.topics[0]
            .partitions
            .iter()
            .all(|partition| partition.error_code == 0)
    );
    assert_eq!(
        bench.log.len(),
        before + 1,
        "only what is there gets a tombstone"
    );
    assert_eq!((bench.offset("foo", 0), bench.offset("bar", 0)), (1, -1));
}

#[test]
fn other_groups_in_use_keep_their_offsets() {
    let mut bench = Bench::new();
    bench.commit(commit(0, 1));
    let mut request = join("");
    request.protocol_type = text("connect");
    bench.join(3, request);
    let response = delete(&mut bench, "foo", &[0]);
    assert_eq!(error_of(response.error_code), ErrorCode::NonEmptyGroup);
}

#[test]
fn an_offset_on_its_way_can_be_deleted_once() {
    let mut bench = Bench::new();
    bench.hold = true;
    bench.send_as(9, Request::OffsetCommit(commit(0, 1)));
    let request = || OffsetDeleteRequest {
        group_id: text(GROUP),
        topics: [DeleteTopic {
            name: text("foo"),
            partitions: [DeletePartition { partition_index: 0 }].into(),
        }]
        .into(),
    };
    let first = bench.send_as(0, Request::OffsetDelete(request()));
    let second = bench.send_as(0, Request::OffsetDelete(request()));
    assert_eq!(
        bench.held.len(),
        2,
        "the second delete has nothing to write"
    );
    assert!(!bench.is_answered(first) && !bench.is_answered(second));
    bench.write_next();
    assert!(!bench.is_answered(second));
    bench.write_next();
    assert!(bench.is_answered(first) && bench.is_answered(second));
    assert_eq!(bench.offset("foo", 0), -1);
}

#[test]
fn offsets_go_with_their_topic_but_not_with_its_namesake() {
    let mut bench = Bench::new();
    bench.commit(commit(0, 1));
    let mut without_id = commit(1, 1);
    without_id.topics[0].topic_id = Uuid::ZERO;
    bench.commit(without_id);
    let mut later = commit(2, 1);
    later.topics[0].topic_id = Uuid([8; 16]);
    bench.commit(later);
    bench.hold = true;
    bench.send_as(9, Request::OffsetCommit(commit(3, 1)));
    bench.event(Event::TopicsDeleted(vec![(FOO_ID, text("foo"))]));
    bench.write_next();
    bench.write_next();
    bench.hold = false;
    let left: Vec<i64> = (0..4)
        .map(|partition| bench.offset("foo", partition))
        .collect();
    assert_eq!(left, [-1, -1, 1, -1]);
}
