//! The hand-made produce parser gives what the generated one gives.

use bytes::Bytes;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use protocol::hot::produce;
use protocol::hot::{TopicEntry, TopicKey};
use protocol::messages::{
    ProduceRequest, ProduceRequestPartitionProduceData, ProduceRequestTopicProduceData,
};
use protocol::wire::{Reader, Writer};
use protocol::{Str, Uuid};

fn partition() -> impl Strategy<Value = ProduceRequestPartitionProduceData> {
    (any::<i32>(), option::of(vec(any::<u8>(), 0..200))).prop_map(|(index, records)| {
        ProduceRequestPartitionProduceData {
            index,
            records: records.map(Bytes::from),
        }
    })
}

fn topic(version: i16) -> impl Strategy<Value = ProduceRequestTopicProduceData> {
    ("[a-z.é]{0,20}", any::<[u8; 16]>(), vec(partition(), 0..4)).prop_map(
        move |(name, id, partition_data)| {
            let by_id = version >= 13;
            ProduceRequestTopicProduceData {
                name: if by_id {
                    Str::default()
                } else {
                    Str::from(name)
                },
                topic_id: if by_id { Uuid(id) } else { Uuid::ZERO },
                partition_data,
            }
        },
    )
}

fn request() -> impl Strategy<Value = (i16, ProduceRequest)> {
    produce::VERSIONS.iter().prop_flat_map(|version| {
        let parts = (
            option::of("[a-z]{0,9}"),
            any::<i16>(),
            any::<i32>(),
            vec(topic(version), 0..4),
        );
        parts.prop_map(move |(transactional_id, acks, timeout_ms, topic_data)| {
            let transactional_id = transactional_id.map(Str::from);
            (
                version,
                ProduceRequest {
                    transactional_id,
                    acks,
                    timeout_ms,
                    topic_data,
                },
            )
        })
    })
}

fn flat(request: &ProduceRequest, version: i16) -> Vec<TopicEntry<produce::ProducePartition>> {
    let topics = request.topic_data.iter().enumerate();
    topics
        .flat_map(|(topic_index, topic)| {
            topic.partition_data.iter().map(move |one| TopicEntry {
                topic_index,
                topic: if version >= 13 {
                    TopicKey::Id(topic.topic_id)
                } else {
                    TopicKey::Name(topic.name.clone())
                },
                entry: produce::ProducePartition {
                    partition: one.index,
                    records: one.records.clone(),
                },
            })
        })
        .collect()
}

/// Both parsers on the same bytes: same verdict, same content, same end.
fn assert_equal(bytes: &Bytes, version: i16, budget: usize) {
    let mut generated = Reader::with_budget(bytes.clone(), usize::MAX);
    let mut hot = Reader::with_budget(bytes.clone(), budget);
    let expected = ProduceRequest::decode(&mut generated, version);
    let got = produce::ProduceRequest::parse(&mut hot, version);
    match (expected, got) {
        (Ok(expected), Ok(got)) => {
            assert_eq!(got.transactional_id, expected.transactional_id);
            assert_eq!(
                (got.acks, got.timeout_ms),
                (expected.acks, expected.timeout_ms)
            );
            let partitions = got.partitions();
            assert_eq!(partitions.len(), flat(&expected, version).len());
            assert_eq!(partitions.collect::<Vec<_>>(), flat(&expected, version));
            assert_eq!(hot.position(), generated.position());
        }
        (Err(expected), Err(got)) => {
            assert_eq!(
                (got.message, got.version),
                (expected.message, expected.version)
            );
        }
        (expected, got) => panic!("generated: {expected:?}\nby hand: {got:?}"),
    }
}

proptest! {
    #[test]
    fn produce_requests_are_equal((version, request) in request()) {
        let mut writer = Writer::new();
        request.encode(&mut writer, version).unwrap();
        writer.raw(b"behind");
        // By hand, no memory is needed.
        assert_equal(&writer.freeze(), version, 0);
    }

    #[test]
    fn damaged_produce_requests_are_equal(
        (version, request) in request(),
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
        other_version in produce::VERSIONS.iter(),
    ) {
        let mut writer = Writer::new();
        request.encode(&mut writer, version).unwrap();
        let whole = writer.freeze();
        assert_equal(&whole.slice(..cut.index(whole.len())), version, 0);
        assert_equal(&whole, other_version, usize::MAX);
        let mut damaged = whole.to_vec();
        for (at, byte) in damage {
            let at = at.index(damaged.len());
            damaged[at] = byte;
        }
        assert_equal(&damaged.into(), version, usize::MAX);
    }
}

#[test]
fn records_are_slices_of_the_frame() {
    let request = ProduceRequest {
        acks: 1,
        topic_data: vec![ProduceRequestTopicProduceData {
            name: "t".into(),
            partition_data: vec![ProduceRequestPartitionProduceData {
                index: 3,
                records: Some(Bytes::from_static(b"batch")),
            }],
            ..Default::default()
        }],
        ..Default::default()
    };
    let mut writer = Writer::new();
    request.encode(&mut writer, 9).unwrap();
    let frame = writer.freeze();
    let parsed = produce::ProduceRequest::parse(&mut Reader::new(frame.clone()), 9).unwrap();
    let records = parsed.partitions().next().unwrap().entry.records.unwrap();
    let frame = frame.as_ptr_range();
    assert!(frame.contains(&records.as_ptr()));
    assert_eq!(records, "batch");
}

#[test]
fn a_count_that_lies_costs_nothing() {
    // v9: no transactional id, acks, timeout, then the largest count there is.
    let bytes = b"\0\0\x01\0\0\0\0\xff\xff\xff\xff\x0f\x02a";
    let mut reader = Reader::with_budget(Bytes::from_static(bytes), 0);
    assert!(produce::ProduceRequest::parse(&mut reader, 9).is_err());
}
