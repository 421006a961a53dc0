//! The hand-made fetch parser and encoder agree with the generated codec.

use bytes::Bytes;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use protocol::frame;
use protocol::hot::fetch::{self, FetchAnswer, NodeEndpoint, Part, PartitionAnswer};
use protocol::messages::{
    FetchResponse, FetchResponseAbortedTransaction, FetchResponseEpochEndOffset,
    FetchResponseFetchableTopicResponse, FetchResponseLeaderIdAndEpoch, FetchResponsePartitionData,
    FetchResponseSnapshotId,
};
use protocol::wire::Writer;
use protocol::{Str, Uuid};

use crate::entries;
use crate::interpreter::{self, Noise};
use crate::random::Random;

proptest! {
    #[test]
    fn fetch_requests_are_equal(
        version in fetch::VERSIONS.iter(),
        seed: u64,
        noise: bool,
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
        other_version in fetch::VERSIONS.iter(),
    ) {
        let message = schema_of_requests();
        let value = interpreter::generate(&message, version, &mut Random::new(seed));
        let noise = if noise { Noise::UnknownTags } else { Noise::None };
        let whole = Bytes::from(interpreter::write(&message, &value, version, noise).unwrap());
        prop_assert!(entries::fetch_request(&whole, version));
        entries::fetch_request(&whole.slice(..cut.index(whole.len())), version);
        entries::fetch_request(&whole, other_version);
        let mut damaged = whole.to_vec();
        for (at, byte) in damage {
            let at = at.index(damaged.len());
            damaged[at] = byte;
        }
        entries::fetch_request(&damaged.into(), version);
    }
}

fn schema_of_requests() -> crate::schema::Message {
    let text = include_str!("../../schema/api/001_fetch.txt");
    let messages = crate::schema::parse(text).expect("a schema").messages;
    messages
        .into_iter()
        .find(|message| message.name == "FetchRequest")
        .expect("FetchRequest")
}

fn partition_answer() -> impl Strategy<Value = PartitionAnswer> {
    let small = || -1..3i32;
    let offset = || prop_oneof![-1..3i64, any::<i64>()];
    // Few topics, so that neighbours share one and topics come back.
    let topic = (0..3u8, any::<i32>(), any::<i16>());
    let offsets = (
        offset(),
        offset(),
        offset(),
        option::of(vec((offset(), offset()), 0..3)),
    );
    let tagged = (
        option::weighted(0.2, (small(), offset())),
        option::weighted(0.2, (small(), small())),
        option::weighted(0.2, (offset(), small())),
    );
    let preferred = prop_oneof![4 => Just(-1), 1 => any::<i32>()];
    let records = prop_oneof![Just(0), 1..300usize];
    (topic, offsets, tagged, preferred, records).prop_map(
        |((topic, partition, error_code), offsets, tagged, preferred_read_replica, records_len)| {
            PartitionAnswer {
                topic: Str::from(format!("topic-{topic}")),
                topic_id: Uuid([topic; 16]),
                partition,
                error_code,
                high_watermark: offsets.0,
                last_stable_offset: offsets.1,
                log_start_offset: offsets.2,
                aborted_transactions: offsets.3,
                preferred_read_replica,
                diverging_epoch: tagged.0,
                current_leader: tagged.1,
                snapshot_id: tagged.2,
                records_len,
            }
        },
    )
}

fn node() -> impl Strategy<Value = NodeEndpoint> {
    (
        any::<i32>(),
        "[a-z]{0,9}",
        any::<i32>(),
        option::of("[a-z]{0,9}"),
    )
        .prop_map(|(node_id, host, port, rack)| NodeEndpoint {
            node_id,
            host: host.into(),
            port,
            rack: rack.map(Str::from),
        })
}

fn records_of(index: usize, len: usize) -> Bytes {
    (0..len).map(|at| (index * 31 + at) as u8).collect()
}

/// The same answer for the generated codec.
fn generated(answer: &FetchAnswer<'_>, version: i16) -> FetchResponse {
    let mut responses: Vec<FetchResponseFetchableTopicResponse> = Vec::new();
    for (index, one) in answer.partitions.iter().enumerate() {
        let by_id = version >= 13;
        let same = responses.last().is_some_and(|last| {
            if by_id {
                last.topic_id == one.topic_id
            } else {
                last.topic == one.topic
            }
        });
        if !same {
            responses.push(FetchResponseFetchableTopicResponse {
                topic: if by_id {
                    Str::default()
                } else {
                    one.topic.clone()
                },
                topic_id: if by_id { one.topic_id } else { Uuid::ZERO },
                partitions: [].into(),
            });
        }
        let aborted = one.aborted_transactions.as_ref().map(|all| {
            let one = |&(producer_id, first_offset): &(i64, i64)| FetchResponseAbortedTransaction {
                producer_id,
                first_offset,
            };
            all.iter().map(one).collect()
        });
        let diverging = one.diverging_epoch.unwrap_or((-1, -1));
        let leader = one.current_leader.unwrap_or((-1, -1));
        let snapshot = one.snapshot_id.unwrap_or((-1, -1));
        responses
            .last_mut()
            .expect("just pushed")
            .partitions
            .push(FetchResponsePartitionData {
                partition_index: one.partition,
                error_code: one.error_code,
                high_watermark: one.high_watermark,
                last_stable_offset: one.last_stable_offset,
                log_start_offset: one.log_start_offset,
                diverging_epoch: FetchResponseEpochEndOffset {
                    epoch: diverging.0,
                    end_offset: diverging.1,
                },
                current_leader: FetchResponseLeaderIdAndEpoch {
                    leader_id: leader.0,
                    leader_epoch: leader.1,
                },
                snapshot_id: FetchResponseSnapshotId {
                    end_offset: snapshot.0,
                    epoch: snapshot.1,
                },
                aborted_transactions: aborted,
                preferred_read_replica: one.preferred_read_replica,
                records: Some(records_of(index, one.records_len)),
            });
    }
    FetchResponse {
        throttle_time_ms: answer.throttle_time_ms,
        error_code: answer.error_code,
        session_id: answer.session_id,
        responses: responses.into(),
        node_endpoints: answer.node_endpoints.to_vec().into(),
    }
}

proptest! {
    #[test]
    fn fetch_answers_are_equal(
        version in fetch::VERSIONS.iter(),
        throttle_time_ms: i32,
        error_code: i16,
        session_id in prop_oneof![Just(0), any::<i32>()],
        correlation_id: i32,
        partitions in vec(partition_answer(), 0..8),
        nodes in prop_oneof![3 => Just(Vec::new()), 1 => vec(node(), 0..3)],
    ) {
        let answer = FetchAnswer {
            throttle_time_ms,
            error_code,
            session_id,
            partitions: &partitions,
            node_endpoints: &nodes,
        };
        let expected = frame::encode_response(&generated(&answer, version), version, correlation_id);
        let parts = answer.encode(version, correlation_id);
        prop_assert_eq!(parts.is_ok(), expected.is_ok(), "{:?} {:?}", parts, expected);
        let (Ok(parts), Ok(expected)) = (parts, expected) else { return Ok(()) };
        let mut sent = Writer::new();
        for part in &parts {
            match part {
                Part::Header(bytes) => sent.raw(bytes),
                Part::Records(index) => {
                    sent.raw(&records_of(*index, partitions[*index].records_len));
                }
            }
        }
        let expected = expected.concat();
        prop_assert_eq!(fetch::parts_len(&parts), expected.len());
        prop_assert_eq!(sent.freeze(), expected);
    }
}

#[test]
fn an_answer_too_long_for_its_length_is_refused() {
    let partitions = [(); 3].map(|()| PartitionAnswer {
        records_len: 1 << 30,
        ..PartitionAnswer::default()
    });
    let answer = |partitions| FetchAnswer {
        throttle_time_ms: 0,
        error_code: 0,
        session_id: 0,
        partitions,
        node_endpoints: &[],
    };
    let parts = answer(&partitions[..1]).encode(12, 1).unwrap();
    assert_eq!(parts.len(), 3);
    assert!(answer(&partitions).encode(12, 1).is_err());
}

/// Version 4, byte by byte.
#[test]
fn bytes_of_an_answer() {
    let partitions = [PartitionAnswer {
        topic: "t".into(),
        partition: 2,
        high_watermark: 9,
        last_stable_offset: 8,
        records_len: 6,
        ..PartitionAnswer::default()
    }];
    let answer = FetchAnswer {
        throttle_time_ms: 5,
        error_code: 0,
        session_id: 0,
        partitions: &partitions,
        node_endpoints: &[],
    };
    let head = [
        &b"\0\0\0\x37\0\0\0\x07"[..],   // length, correlation id
        b"\0\0\0\x05\0\0\0\x01\0\x01t", // throttle time, one topic, its name
        b"\0\0\0\x01\0\0\0\x02\0\0",    // one partition, its number, no error
        b"\0\0\0\0\0\0\0\x09",          // high watermark
        b"\0\0\0\0\0\0\0\x08",          // last stable offset
        b"\xff\xff\xff\xff\0\0\0\x06",  // aborted transactions: null; length of the records
    ]
    .concat();
    let parts = answer.encode(4, 7).unwrap();
    assert_eq!(parts, [Part::Header(head.into()), Part::Records(0)]);
}
