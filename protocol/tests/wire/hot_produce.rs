//! The hand-made produce parser gives what the generated one gives.

use bytes::Bytes;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use protocol::hot::produce;
use protocol::messages::{
    ProduceRequest, ProduceRequestPartitionProduceData, ProduceRequestTopicProduceData,
};
use protocol::wire::{Reader, Writer};
use protocol::{Str, Uuid};

use crate::entries;

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
                partition_data: partition_data.into(),
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
                    topic_data: topic_data.into(),
                },
            )
        })
    })
}

proptest! {
    #[test]
    fn produce_requests_are_equal((version, request) in request()) {
        let mut writer = Writer::new();
        request.encode(&mut writer, version).unwrap();
        writer.raw(b"behind");
        // By hand, no memory is needed.
        prop_assert!(entries::produce_request(&writer.freeze(), version, 0));
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
        entries::produce_request(&whole.slice(..cut.index(whole.len())), version, 0);
        entries::produce_request(&whole, other_version, usize::MAX);
        let mut damaged = whole.to_vec();
        for (at, byte) in damage {
            let at = at.index(damaged.len());
            damaged[at] = byte;
        }
        entries::produce_request(&damaged.into(), version, usize::MAX);
    }
}

#[test]
fn records_are_slices_of_the_frame() {
    let request = ProduceRequest {
        acks: 1,
        topic_data: [ProduceRequestTopicProduceData {
            name: "t".into(),
            partition_data: [ProduceRequestPartitionProduceData {
                index: 3,
                records: Some(Bytes::from_static(b"batch")),
            }]
            .into(),
            ..Default::default()
        }]
        .into(),
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
