//! Handlers' functions over one coordinator: topics that exist and do not, several groups.

use std::cell::RefCell;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use crate::outgoing::AnswerRoom;
use protocol::messages::{
    DeleteGroupsRequest, DescribeGroupsRequest, OffsetFetchRequestOffsetFetchRequestTopic,
};
use protocol::{Array, ErrorCode, Message, Str, Uuid};

use super::super::runtime::Caller;
use super::super::tests::harness::{
    Bench, FOO_ID, GROUP, commit, commit_as, error_of, join, sync, text,
};
use super::super::wire::*;
use super::super::{Request, Response, refuse};
use super::{Router, Topics};

/// All groups live in one coordinator, except "elsewhere", which has none.
struct OneCoordinator(RefCell<Bench>);

impl Router for OneCoordinator {
    async fn ask(&self, group_id: &Str, caller: &Caller, request: Request) -> Response {
        if *group_id == "elsewhere" {
            return refuse(&request, ErrorCode::NotCoordinator);
        }
        self.0.borrow_mut().ask(caller.api_version, request)
    }

    async fn ask_all(&self, caller: &Caller, request: Request) -> Vec<Response> {
        let elsewhere = refuse(&request, ErrorCode::NotCoordinator);
        vec![
            self.0.borrow_mut().ask(caller.api_version, request),
            elsewhere,
        ]
    }
}

/// "foo" with two partitions, and "bar" with one.
struct TwoTopics;

const BAR_ID: Uuid = Uuid([8; 16]);

impl Topics for TwoTopics {
    fn topic_id(&self, name: &str) -> Option<Uuid> {
        match name {
            "foo" => Some(FOO_ID),
            "bar" => Some(BAR_ID),
            _ => None,
        }
    }

    fn topic_name(&self, id: Uuid) -> Option<Str> {
        ["foo", "bar"]
            .into_iter()
            .find(|name| self.topic_id(name) == Some(id))
            .map(Str::from)
    }

    fn has_partition(&self, name: &str, partition: i32) -> bool {
        match name {
            "foo" => (0..2).contains(&partition),
            "bar" => partition == 0,
            _ => false,
        }
    }
}

fn router() -> OneCoordinator {
    OneCoordinator(RefCell::new(Bench::new()))
}

fn caller(api_version: i16) -> Caller {
    Caller {
        api_version,
        client_id: text("client"),
        client_host: text("/127.0.0.1"),
    }
}

/// The result of a future that has nothing to wait for.
fn now<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    match future
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
    {
        Poll::Ready(result) => result,
        Poll::Pending => panic!("the coordinator does not answer"),
    }
}

fn topic(name: &str, topic_id: Uuid, partitions: &[i32]) -> CommitTopic {
    let partitions = partitions.iter().map(|&partition_index| CommitPartition {
        partition_index,
        committed_offset: 10 + i64::from(partition_index),
        ..Default::default()
    });
    CommitTopic {
        name: text(name),
        topic_id,
        partitions: partitions.collect(),
    }
}

fn outcome(response: &OffsetCommitResponse) -> Vec<(i32, ErrorCode)> {
    let partitions = response.topics.iter().flat_map(|topic| &topic.partitions);
    partitions
        .map(|partition| (partition.partition_index, error_of(partition.error_code)))
        .collect()
}

fn encodes<M: Message>(message: &M, version: i16) {
    message
        .encode(&mut protocol::wire::Writer::new(), version)
        .unwrap();
}

#[test]
fn commits_by_name_are_checked_against_the_metadata() {
    let router = router();
    let mut request = commit(0, 1);
    request.topics = [
        topic("missing", Uuid::ZERO, &[0]),
        topic("foo", Uuid::ZERO, &[0, 2, 1]),
        topic("bar", Uuid::ZERO, &[5]),
    ]
    .into();
    let response = now(super::commit::offset_commit(
        &router,
        &TwoTopics,
        &caller(8),
        request,
    ));
    let unknown = ErrorCode::UnknownTopicOrPartition;
    assert_eq!(
        outcome(&response),
        [
            (0, unknown),
            (2, unknown),
            (0, ErrorCode::None),
            (1, ErrorCode::None),
            (5, unknown)
        ]
    );
    encodes(&response, 8);
    let mut bench = router.0.borrow_mut();
    assert_eq!((bench.offset("foo", 0), bench.offset("foo", 1)), (10, 11));
    assert_eq!(bench.offset("bar", 5), -1);
}

#[test]
fn commits_by_id_find_the_name() {
    let router = router();
    let mut request = commit(0, 1);
    request.topics = [topic("", BAR_ID, &[0]), topic("", Uuid([1; 16]), &[0])].into();
    let response = now(super::commit::offset_commit(
        &router,
        &TwoTopics,
        &caller(10),
        request,
    ));
    assert_eq!(
        outcome(&response),
        [(0, ErrorCode::None), (0, ErrorCode::UnknownTopicId)]
    );
    assert_eq!(response.topics[0].topic_id, BAR_ID);
    encodes(&response, 10);
    assert_eq!(router.0.borrow_mut().offset("bar", 0), 10);
}

#[test]
fn a_commit_of_unknown_topics_only_does_not_bother_the_group() {
    let router = router();
    let mut request = commit_as("stranger", 1, 1);
    request.topics = [topic("missing", Uuid::ZERO, &[0])].into();
    let response = now(super::commit::offset_commit(
        &router,
        &TwoTopics,
        &caller(8),
        request,
    ));
    assert_eq!(
        outcome(&response),
        [(0, ErrorCode::UnknownTopicOrPartition)]
    );
}

fn fetch_group(group: &str, topics: Option<Vec<OffsetFetchTopic>>) -> OffsetFetchGroup {
    OffsetFetchGroup {
        group_id: text(group),
        topics: topics.map(Array::from),
        ..Default::default()
    }
}

fn fetch_topic(name: &str, topic_id: Uuid) -> OffsetFetchTopic {
    OffsetFetchTopic {
        name: text(name),
        topic_id,
        partition_indexes: [0, 1].into(),
    }
}

fn fetch(
    router: &OneCoordinator,
    version: i16,
    request: OffsetFetchRequest,
) -> OffsetFetchResponse {
    let response = now(super::fetch::offset_fetch(
        router,
        &TwoTopics,
        &caller(version),
        request,
        AnswerRoom::new(usize::MAX),
    ));
    encodes(&response, version);
    response
}

#[test]
fn several_groups_are_fetched_by_name_each_with_its_own_error() {
    let router = router();
    router.0.borrow_mut().commit(commit(0, 7));
    let groups = vec![
        fetch_group(GROUP, Some(vec![fetch_topic("foo", Uuid::ZERO)])),
        fetch_group("elsewhere", Some(vec![fetch_topic("foo", Uuid::ZERO)])),
        fetch_group("unknown", None),
    ];
    let request = OffsetFetchRequest {
        groups: groups.into(),
        ..Default::default()
    };
    let response = fetch(&router, 9, request);
    let offsets: Vec<i64> = response.groups[0].topics[0]
        .partitions
        .iter()
        .map(|partition| partition.committed_offset)
        .collect();
    assert_eq!(offsets, [7, -1]);
    assert_eq!(
        error_of(response.groups[1].error_code),
        ErrorCode::NotCoordinator
    );
    assert!(response.groups[1].topics.is_empty());
    assert_eq!(
        (
            response.groups[2].error_code,
            response.groups[2].topics.len()
        ),
        (0, 0)
    );
}

#[test]
fn fetch_by_id() {
    let router = router();
    router.0.borrow_mut().commit(commit(0, 7));
    let mut gone = commit(0, 8);
    gone.topics[0].name = text("gone");
    router.0.borrow_mut().commit(gone);
    let groups = vec![
        fetch_group(
            GROUP,
            Some(vec![
                fetch_topic("", Uuid([1; 16])),
                fetch_topic("", FOO_ID),
            ]),
        ),
        fetch_group(GROUP, None),
    ];
    let response = fetch(
        &router,
        10,
        OffsetFetchRequest {
            groups: groups.into(),
            ..Default::default()
        },
    );
    let topics = &response.groups[0].topics;
    assert_eq!(
        (topics[0].topic_id, topics[0].partitions[0].committed_offset),
        (FOO_ID, 7)
    );
    assert_eq!(
        error_of(topics[1].partitions[0].error_code),
        ErrorCode::UnknownTopicId
    );
    let all = &response.groups[1].topics;
    assert_eq!(
        (all.len(), all[0].topic_id),
        (1, FOO_ID),
        "a topic that is gone has no id"
    );
}

#[test]
fn a_topic_created_again_does_not_inherit_offsets() {
    let router = router();
    let mut old = commit(0, 7);
    old.topics[0].topic_id = Uuid([1; 16]);
    router.0.borrow_mut().commit(old);
    let groups = vec![fetch_group(
        GROUP,
        Some(vec![fetch_topic("foo", Uuid::ZERO)]),
    )];
    let response = fetch(
        &router,
        8,
        OffsetFetchRequest {
            groups: groups.into(),
            ..Default::default()
        },
    );
    assert_eq!(
        response.groups[0].topics[0].partitions[0].committed_offset,
        -1
    );
}

#[test]
fn old_versions_fetch_one_group() {
    let router = router();
    router.0.borrow_mut().commit(commit(0, 7));
    let request = |group: &str, topics: bool| OffsetFetchRequest {
        group_id: text(group),
        topics: topics.then(|| {
            [OffsetFetchRequestOffsetFetchRequestTopic {
                name: text("foo"),
                partition_indexes: [0, 1].into(),
            }]
            .into()
        }),
        ..Default::default()
    };
    let response = fetch(&router, 1, request(GROUP, true));
    assert_eq!(response.topics[0].partitions[0].committed_offset, 7);
    let response = fetch(&router, 2, request(GROUP, false));
    assert_eq!((response.error_code, response.topics.len()), (0, 1));
    // An error stands at the top from version 2, and in every partition before.
    let response = fetch(&router, 2, request("elsewhere", true));
    assert_eq!(error_of(response.error_code), ErrorCode::NotCoordinator);
    assert!(response.topics.is_empty());
    let response = fetch(&router, 1, request("elsewhere", true));
    let codes: Vec<ErrorCode> = response.topics[0]
        .partitions
        .iter()
        .map(|partition| error_of(partition.error_code))
        .collect();
    assert_eq!(codes, [ErrorCode::NotCoordinator; 2]);
    assert_eq!(response.topics[0].partitions[0].committed_offset, -1);
}

#[test]
fn deletes_check_topics_but_the_group_goes_first() {
    let router = router();
    let delete = |group: &str| {
        let asked = [
            ("missing", vec![0]),
            ("foo", vec![0]),
            ("foo", vec![]),
            ("foo", vec![9]),
        ];
        let topics = asked.map(|(name, indexes)| {
            let indexes = indexes.into_iter();
            DeleteTopic {
                name: text(name),
                partitions: indexes
                    .map(|partition_index| DeletePartition { partition_index })
                    .collect(),
            }
        });
        let request = OffsetDeleteRequest {
            group_id: text(group),
            topics: topics.to_vec().into(),
        };
        now(super::delete::offset_delete(
            &router,
            &TwoTopics,
            &caller(0),
            request,
        ))
    };
    let response = delete("unknown");
    assert_eq!(error_of(response.error_code), ErrorCode::GroupIdNotFound);
    assert!(response.topics.is_empty());
    router.0.borrow_mut().commit(commit(0, 7));
    let response = delete(GROUP);
    let codes: Vec<ErrorCode> = response
        .topics
        .iter()
        .map(|topic| error_of(topic.partitions[0].error_code))
        .collect();
    let unknown = ErrorCode::UnknownTopicOrPartition;
    assert_eq!(codes, [unknown, ErrorCode::None, unknown]);
    assert_eq!(router.0.borrow_mut().offset("foo", 0), -1);
}

#[test]
fn groups_are_listed_described_and_deleted() {
    let router = router();
    router.0.borrow_mut().commit(commit(0, 7));
    let listed = now(super::list_groups(
        &router,
        &caller(5),
        ListGroupsRequest::default(),
    ));
    assert_eq!((listed.error_code, listed.groups.len()), (0, 1));
    let names = vec![text(GROUP), text("elsewhere"), text("unknown")];
    let request = DescribeGroupsRequest {
        groups: names.clone().into(),
        ..Default::default()
    };
    let room = || AnswerRoom::new(usize::MAX);
    let described = now(super::describe_groups(&router, &caller(6), request, room()));
    let codes: Vec<ErrorCode> = described
        .groups
        .iter()
        .map(|group| error_of(group.error_code))
        .collect();
    let (none, elsewhere) = (ErrorCode::None, ErrorCode::NotCoordinator);
    assert_eq!(codes, [none, elsewhere, ErrorCode::GroupIdNotFound]);
    encodes(&described, 6);
    let request = DeleteGroupsRequest {
        groups_names: names.into(),
    };
    let deleted = now(super::delete_groups(&router, &caller(2), request));
    let codes: Vec<ErrorCode> = deleted
        .results
        .iter()
        .map(|group| error_of(group.error_code))
        .collect();
    assert_eq!(codes, [none, elsewhere, ErrorCode::GroupIdNotFound]);
}

#[test]
fn every_version_of_an_answer_can_be_written() {
    let router = router();
    for version in 0..=9 {
        let request = join("stranger");
        let response = now(super::join_group(&router, &caller(version), request));
        assert_ne!(response.error_code, 0);
        encodes(&response, version);
    }
    for version in 0..=5 {
        let request = sync("stranger", 1, &[]);
        encodes(
            &now(super::sync_group(&router, &caller(version), request)),
            version,
        );
        let request = LeaveGroupRequest {
            group_id: text(GROUP),
            ..Default::default()
        };
        encodes(
            &now(super::leave_group(&router, &caller(version), request)),
            version,
        );
        let request = HeartbeatRequest {
            group_id: text(GROUP),
            ..Default::default()
        };
        encodes(
            &now(super::heartbeat(&router, &caller(version), request)),
            version.min(4),
        );
    }
}

#[test]
fn what_finds_no_room_in_an_answer_is_refused() {
    let router = router();
    let groups = vec![text(GROUP); 3];
    let codes = |bytes, version| {
        let request = DescribeGroupsRequest {
            groups: groups.clone().into(),
            ..Default::default()
        };
        let room = AnswerRoom::new(bytes);
        let described = now(super::describe_groups(
            &router,
            &caller(version),
            request,
            room,
        ));
        encodes(&described, version);
        let codes = described
            .groups
            .iter()
            .map(|group| error_of(group.error_code));
        codes.collect::<Vec<_>>()
    };
    let (none, refused) = (ErrorCode::None, ErrorCode::InvalidRequest);
    // The group is not there, which version 5 cannot say.
    for (version, described) in [(5, none), (6, ErrorCode::GroupIdNotFound)] {
        assert_eq!(codes(1, version), [described, refused, refused]);
        assert_eq!(codes(1 << 20, version), [described; 3]);
    }

    let group = OffsetFetchGroup {
        group_id: text(GROUP),
        topics: None,
        ..Default::default()
    };
    let request = OffsetFetchRequest {
        groups: vec![group; 2].into(),
        ..Default::default()
    };
    let fetched = now(super::fetch::offset_fetch(
        &router,
        &TwoTopics,
        &caller(8),
        request,
        AnswerRoom::new(1),
    ));
    encodes(&fetched, 8);
    let codes = fetched
        .groups
        .iter()
        .map(|group| error_of(group.error_code));
    assert_eq!(codes.collect::<Vec<_>>(), [none, refused]);
}
