//! Requests of a megabyte that name the same thing again and again: what they cost is bounded, and nobody waits long.
use std::time::Duration;

use bytes::{Buf, Bytes};
use protocol::frame::{decode_response, encode_request};
use protocol::messages::*;
use protocol::{Request, Uuid};

use crate::client::Connection;
use crate::common::{creatable, create};
use crate::support::broker::Broker;
use crate::support::clock;

const GROUP: &str = "amplified";
/// Far above what a broker of these tests takes, and far below what an answer as large as the request asks for would.
const RESIDENT_KIB_MAX: u64 = 400 << 10;

fn ask<R: Request>(name: &str, version: i16, request: &R) -> (String, Bytes) {
    let frame = encode_request(request, version, 7, Some("wire".into()));
    (name.to_owned(), frame.expect("a request"))
}

fn call<R: Request>(connection: &mut Connection, version: i16, request: &R) -> R::Response {
    connection.send_raw(&ask("", version, request).1);
    let answer = connection.receive_frame().expect("an answer");
    decode_response(answer, version)
        .expect("an answer of that version")
        .1
}

/// A group of one member with half a megabyte to say, and with long offsets of every partition.
fn prepare_group(connection: &mut Connection, topic: &str, partitions: i32) {
    let join = JoinGroupRequest {
        group_id: GROUP.into(),
        session_timeout_ms: 60_000,
        rebalance_timeout_ms: 60_000,
        protocol_type: "consumer".into(),
        protocols: [JoinGroupRequestJoinGroupRequestProtocol {
            name: "range".into(),
            metadata: Bytes::from(vec![0; 300_000]),
        }]
        .into(),
        ..Default::default()
    };
    let find = FindCoordinatorRequest {
        key: GROUP.into(),
        ..Default::default()
    };
    let joined = clock::wait_for("the coordinator", || {
        call(connection, 3, &find);
        let joined = call(connection, 3, &join);
        (joined.error_code == 0).then_some(joined)
    });
    let sync = SyncGroupRequest {
        group_id: GROUP.into(),
        generation_id: joined.generation_id,
        member_id: joined.member_id.clone(),
        assignments: [SyncGroupRequestSyncGroupRequestAssignment {
            member_id: joined.member_id.clone(),
            assignment: Bytes::from(vec![0; 300_000]),
        }]
        .into(),
        ..Default::default()
    };
    assert_eq!(call(connection, 3, &sync).error_code, 0);
    let partition = |index| OffsetCommitRequestOffsetCommitRequestPartition {
        partition_index: index,
        committed_offset: 1,
        committed_metadata: Some("m".repeat(4000).into()),
        ..Default::default()
    };
    let commit = OffsetCommitRequest {
        group_id: GROUP.into(),
        generation_id_or_member_epoch: joined.generation_id,
        member_id: joined.member_id,
        topics: [OffsetCommitRequestOffsetCommitRequestTopic {
            name: topic.to_owned().into(),
            partitions: (0..partitions).map(partition).collect(),
            ..Default::default()
        }]
        .into(),
        ..Default::default()
    };
    let committed = call(connection, 8, &commit);
    let mut codes = committed.topics[0]
        .partitions
        .iter()
        .map(|one| one.error_code);
    assert!(codes.all(|code| code == 0), "{committed:?}");
}

fn many<T: Clone>(count: usize, one: T) -> Vec<T> {
    vec![one; count]
}

#[expect(clippy::too_many_lines, reason = "a table of requests")]
fn questions(topic: &str, id: Uuid) -> Vec<(String, Bytes)> {
    let broker = DescribeConfigsRequestDescribeConfigsResource {
        resource_type: 4,
        resource_name: "1".into(),
        configuration_keys: None,
    };
    let of_topic = DescribeConfigsRequestDescribeConfigsResource {
        resource_type: 2,
        resource_name: topic.to_owned().into(),
        configuration_keys: None,
    };
    let describe = |resources| DescribeConfigsRequest {
        resources,
        include_synonyms: true,
        include_documentation: true,
    };
    let named = MetadataRequestMetadataRequestTopic {
        name: Some(topic.to_owned().into()),
        ..Default::default()
    };
    let by_id = MetadataRequestMetadataRequestTopic {
        topic_id: id,
        name: None,
    };
    let metadata = |topics| MetadataRequest {
        topics: Some(topics),
        ..Default::default()
    };
    let group = OffsetFetchRequestOffsetFetchRequestGroup {
        group_id: GROUP.into(),
        topics: None,
        ..Default::default()
    };
    vec![
        ask(
            "DescribeConfigs of a broker",
            4,
            &describe(many(100_000, broker).into()),
        ),
        ask(
            "DescribeConfigs of a topic",
            4,
            &describe(many(60_000, of_topic).into()),
        ),
        ask(
            "Metadata by name",
            12,
            &metadata(many(30_000, named).into()),
        ),
        ask("Metadata by id", 12, &metadata(many(50_000, by_id).into())),
        ask(
            "Metadata of names that cannot be",
            1,
            &metadata(
                many(
                    500_000,
                    MetadataRequestMetadataRequestTopic {
                        name: Some("".into()),
                        ..Default::default()
                    },
                )
                .into(),
            ),
        ),
        ask(
            "DescribeGroups",
            5,
            &DescribeGroupsRequest {
                groups: many(90_000, GROUP.into()).into(),
                ..Default::default()
            },
        ),
        ask(
            "OffsetFetch",
            8,
            &OffsetFetchRequest {
                groups: many(70_000, group).into(),
                ..Default::default()
            },
        ),
        ask(
            "FindCoordinator",
            5,
            &FindCoordinatorRequest {
                coordinator_keys: many(90_000, GROUP.into()).into(),
                ..Default::default()
            },
        ),
        ask(
            "ListOffsets",
            7,
            &ListOffsetsRequest {
                topics: [ListOffsetsRequestListOffsetsTopic {
                    name: topic.to_owned().into(),
                    partitions: many(60_000, ListOffsetsRequestListOffsetsPartition::default())
                        .into(),
                }]
                .into(),
                ..Default::default()
            },
        ),
        ask(
            "OffsetForLeaderEpoch",
            4,
            &OffsetForLeaderEpochRequest {
                topics: [OffsetForLeaderEpochRequestOffsetForLeaderTopic {
                    topic: topic.to_owned().into(),
                    partitions: many(
                        70_000,
                        OffsetForLeaderEpochRequestOffsetForLeaderPartition::default(),
                    )
                    .into(),
                }]
                .into(),
                ..Default::default()
            },
        ),
        ask(
            "Fetch",
            13,
            &FetchRequest {
                topics: [FetchRequestFetchTopic {
                    topic_id: id,
                    partitions: many(
                        25_000,
                        FetchRequestFetchPartition {
                            partition_max_bytes: 1 << 20,
                            ..Default::default()
                        },
                    )
                    .into(),
                    ..Default::default()
                }]
                .into(),
                max_wait_ms: 100,
                ..Default::default()
            },
        ),
        ask(
            "DeleteGroups",
            2,
            &DeleteGroupsRequest {
                groups_names: many(30_000, "nobody".into()).into(),
            },
        ),
        ask(
            "CreateTopics",
            7,
            &CreateTopicsRequest {
                topics: (0..40_000)
                    .map(|number| CreateTopicsRequestCreatableTopic {
                        name: format!("amplified-{number}").into(),
                        num_partitions: i32::MAX,
                        replication_factor: 1,
                        ..Default::default()
                    })
                    .collect(),
                timeout_ms: 1000,
                ..Default::default()
            },
        ),
    ]
}

#[test]
fn what_is_asked_again_and_again_costs_no_more_than_its_limit() {
    let broker = Broker::start("amplified", &[("ringmain.shards", "2")]);
    let topic = create(
        &mut Connection::open(broker.port),
        creatable("amplified", 50),
        false,
    );
    prepare_group(&mut Connection::open(broker.port), &topic.name, 50);
    let mut witnesses: Vec<Connection> = (0..2).map(|_| Connection::open(broker.port)).collect();
    for (name, frame) in questions(&topic.name, Uuid(topic.topic_id.into_bytes())) {
        assert!(frame.len() < 2 << 20, "{name}: {}", frame.len());
        let mut connection = Connection::open(broker.port);
        let start = clock::now();
        connection.send_raw(&frame);
        let mut answer = connection
            .receive_frame()
            .unwrap_or_else(|| panic!("{name}: an answer"));
        let took = start.elapsed();
        let served = clock::now();
        for witness in &mut witnesses {
            let api_versions = ask("", 0, &ApiVersionsRequest::default()).1;
            witness.send_raw(&api_versions);
            let answer = witness.receive_frame();
            assert!(answer.is_some(), "{name}: others are served");
        }
        let resident = broker.resident_kib().expect("it runs");
        println!(
            "{name}: {} bytes asked, {} answered in {took:?}, others after {:?}, {resident} KiB",
            frame.len(),
            answer.len(),
            served.elapsed(),
        );
        assert_eq!(answer.get_i32(), 7, "{name}");
        assert!(resident < RESIDENT_KIB_MAX, "{name}: {resident} KiB");
        assert!(took < Duration::from_secs(20), "{name}: {took:?}");
    }
}
