//! Work of the processor alone, without kernel or clock: the same instructions each time.

use anyhow::{Context, Result, anyhow};
use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::TopicName;
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::protocol::{Encodable, StrBytes};
use protocol::hot::produce::ProduceRequest;
use protocol::records::validate::{Origin, Rules};
use protocol::records::{
    BatchBuilder, Compression, Scratch, TimestampType, TopicCompression, validate,
};
use protocol::wire::Reader;
use storage::index::OffsetEntries;

/// The time of all records, in milliseconds.
const NOW: i64 = 1_760_000_000_000;
/// Version of the produce request: the last that names topics.
const PRODUCE_VERSION: i16 = 12;

/// One piece of work that can be repeated.
pub struct Work {
    pub name: &'static str,
    /// Bytes that it goes through, 0 where that says nothing.
    pub bytes: u64,
    pub run: Box<dyn FnMut() -> u64>,
}

/// All of them.
pub fn all() -> Result<Vec<Work>> {
    Ok(vec![
        batch_check(
            "check a batch of 60 records of 1 KiB",
            60,
            1024,
            Compression::None,
        )?,
        batch_check(
            "check a batch of 1 record of 100 bytes",
            1,
            100,
            Compression::None,
        )?,
        batch_check(
            "check a batch of 10 records of 100 bytes",
            10,
            100,
            Compression::None,
        )?,
        batch_check(
            "check a batch of 60 records of 1 KiB, lz4",
            60,
            1024,
            Compression::Lz4,
        )?,
        batch_check(
            "check a batch of 60 records of 1 KiB, zstd",
            60,
            1024,
            Compression::Zstd,
        )?,
        frame_parse("parse a produce request of 1 partition", 1)?,
        frame_parse("parse a produce request of 100 partitions", 100)?,
        index_lookup(),
    ])
}

fn batch(records: usize, size: usize, codec: Compression) -> Result<Bytes> {
    let mut builder = BatchBuilder::new(0).codec(codec);
    for number in 0..records {
        // Compresses about as real records do: half of it repeats.
        let value: Vec<u8> = (0..size)
            .map(|at| {
                if at % 2 == 0 {
                    (at % 61) as u8
                } else {
                    (number * 131 + at * 7919) as u8
                }
            })
            .collect();
        builder.append(NOW, None, Some(&value), &[]);
    }
    builder.build_bytes().map_err(|error| anyhow!("{error}"))
}

/// What a topic with default settings asks.
fn rules() -> Rules {
    Rules {
        origin: Origin::Client,
        max_message_bytes: 1_048_588,
        compacted: false,
        timestamp_type: TimestampType::CreateTime,
        timestamp_before_max_ms: i64::MAX,
        timestamp_after_max_ms: 3_600_000,
        compression: TopicCompression::Producer,
        max_record_bytes: 100 << 20,
        max_decompressed: 1 << 30,
    }
}

fn batch_check(
    name: &'static str,
    records: usize,
    size: usize,
    codec: Compression,
) -> Result<Work> {
    let (bytes, rules, mut scratch) = (batch(records, size, codec)?, rules(), Scratch::default());
    validate(&bytes, &rules, NOW, &mut scratch)
        .map_err(|rejection| anyhow!("{name}: {rejection:?}"))?;
    let run = move || {
        validate(&bytes, &rules, NOW, &mut scratch).map_or(0, |valid| valid.records_count() as u64)
    };
    Ok(Work {
        name,
        bytes: (records * size) as u64,
        run: Box::new(run),
    })
}

fn frame_parse(name: &'static str, partitions: i32) -> Result<Work> {
    let records = batch(1, 100, Compression::None)?;
    let partition = |index| {
        PartitionProduceData::default()
            .with_index(index)
            .with_records(Some(records.clone()))
    };
    let topic = TopicProduceData::default()
        .with_name(TopicName(StrBytes::from_static_str("payments")))
        .with_partition_data((0..partitions).map(partition).collect());
    let request = kafka_protocol::messages::ProduceRequest::default()
        .with_acks(-1)
        .with_timeout_ms(30_000)
        .with_topic_data(vec![topic]);
    let mut frame = BytesMut::new();
    request.encode(&mut frame, PRODUCE_VERSION)?;
    let frame = frame.freeze();
    let walk = |frame: &Bytes| -> Option<u64> {
        let request =
            ProduceRequest::parse(&mut Reader::new(frame.clone()), PRODUCE_VERSION).ok()?;
        Some(request.partitions().count() as u64)
    };
    (walk(&frame) == Some(partitions as u64))
        .then_some(())
        .context("the request is not read as it was written")?;
    Ok(Work {
        name,
        bytes: frame.len() as u64,
        run: Box::new(move || walk(&frame).unwrap_or(0)),
    })
}

/// A full index of a 1 GiB segment: 262,144 entries of 8 bytes.
fn index_lookup() -> Work {
    const ENTRIES: u32 = 262_144;
    let mut bytes = Vec::with_capacity(ENTRIES as usize * 8);
    for entry in 0..ENTRIES {
        bytes.extend_from_slice(&(entry * 40).to_be_bytes());
        bytes.extend_from_slice(&(entry * 4096).to_be_bytes());
    }
    let mut wanted = 1_u32;
    let run = move || {
        wanted = wanted.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        u64::from(OffsetEntries(&bytes).position_before(wanted % (ENTRIES * 40)))
    };
    Work {
        name: "look up an offset in a full index",
        bytes: 0,
        run: Box::new(run),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_piece_of_work_does_something() {
        for mut work in all().expect("all pieces") {
            // The first look-ups of the index may be at its beginning.
            let done: u64 = (0..5).map(|_| (work.run)()).sum();
            assert!(done > 0, "{}", work.name);
        }
    }
}
