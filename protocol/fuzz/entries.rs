//! What the fuzz targets do with some bytes, one function a group of decoders. `cargo test` runs
//! the same functions over seeded mutations.
//!
//! Each answers whether the bytes could be read, and panics where a promise is broken.

use bytes::Bytes;
use protocol::frame::RequestHeader;
use protocol::hot::{TopicEntry, TopicKey, fetch, produce};
use protocol::messages::{self, FetchRequest, ProduceRequest};
use protocol::records::{legacy, split_batches};
use protocol::stored::{self, GroupKey, GroupValue, MetadataRecord};
use protocol::wire::{DecodeError, EncodeErrorKind, Reader, Writer};
use protocol::{Array, MessageInfo, RecodeError, Str, Uuid};

/// Records may unpack to this many bytes.
const UNPACKED_MAX: usize = 64 << 10;

/// Takes the first bytes to choose a message and its version; the rest is the message.
fn choose(catalog: &'static [MessageInfo], data: &[u8]) -> Option<(MessageInfo, i16, Bytes)> {
    let ([low, high, version], rest) = data.split_first_chunk()?;
    let info = catalog[usize::from(u16::from_le_bytes([*low, *high])) % catalog.len()];
    let span = info.versions.max - info.versions.min + 1;
    let version = info.versions.min + i16::from(*version) % span;
    Some((info, version, Bytes::copy_from_slice(rest)))
}

pub fn any_message(data: &[u8]) -> bool {
    choose(messages::CATALOG, data)
        .is_some_and(|(info, version, bytes)| message(&info, version, &bytes))
}

pub fn any_stored(data: &[u8]) -> bool {
    choose(stored::CATALOG, data)
        .is_some_and(|(info, version, bytes)| message(&info, version, &bytes))
}

/// What can be read at all can be written, and then is stable.
pub fn message(info: &MessageInfo, version: i16, bytes: &Bytes) -> bool {
    let mut first = Writer::new();
    let mut reader = Reader::new(bytes.clone());
    match (info.recode)(&mut reader, version, &mut first, version) {
        Err(RecodeError::Decode(_)) => return false,
        // Repaired text may have grown beyond what a string can be.
        Err(RecodeError::Encode(error)) => {
            assert!(matches!(error.kind, EncodeErrorKind::TooLong(_)), "{error}");
            return true;
        }
        Ok(()) => {}
    }
    let first = first.freeze();
    let mut second = Writer::new();
    let mut reader = Reader::with_budget(first.clone(), usize::MAX);
    let result = (info.recode)(&mut reader, version, &mut second, version);
    assert_eq!(result, Ok(()), "{} v{version}", info.name);
    assert_eq!(reader.remaining(), 0, "{} v{version}", info.name);
    assert_eq!(second.freeze(), first, "{} v{version}", info.name);
    true
}

/// Request headers, and stored records with what stands before them.
pub fn envelopes(data: &[u8]) -> bool {
    let bytes = Bytes::copy_from_slice(data);
    let mut read = false;
    if let Ok(header) = RequestHeader::decode(&mut Reader::new(bytes.clone())) {
        let mut writer = Writer::new();
        // Fails only for a client id that repair made too long.
        if header.encode(&mut writer).is_ok() {
            let again = RequestHeader::decode(&mut Reader::new(writer.freeze()));
            assert_eq!(again.as_ref(), Ok(&header));
        }
        read = true;
    }
    if let Ok((record, version)) = MetadataRecord::decode(bytes.clone()) {
        if let Ok(again) = record.encode(version) {
            assert_eq!(
                MetadataRecord::decode(again).map(|(_, version)| version),
                Ok(version)
            );
        }
        read = true;
    }
    if let Ok(key) = GroupKey::decode(bytes.clone()) {
        if let Ok(again) = key.encode() {
            assert_eq!(GroupKey::decode(again), Ok(key));
        }
        read = true;
    }
    for type_id in 0..24 {
        if let Ok((value, version)) = GroupValue::decode(type_id, bytes.clone())
            && let Ok(again) = value.encode(version)
        {
            assert_eq!(GroupValue::decode(type_id, again), Ok((value, version)));
            read = true;
        }
    }
    read
}

/// Runs of record batches and of old message sets: walked to the end or to the first error.
pub fn record_batches(data: &[u8]) -> bool {
    let bytes = Bytes::copy_from_slice(data);
    let mut read = false;
    for batch in split_batches(bytes.clone()).map_while(Result::ok) {
        read = true;
        let Ok(records) = batch.records(UNPACKED_MAX) else {
            continue;
        };
        for record in records.map_while(Result::ok) {
            let key = record.key.map_or(0, |key| key.len());
            assert!(key + record.value.map_or(0, |value| value.len()) <= UNPACKED_MAX + data.len());
        }
    }
    read | legacy::split_entries(bytes)
        .map_while(Result::ok)
        .count()
        .gt(&0)
}

/// The first byte chooses the version, the rest is the request.
pub fn any_produce(data: &[u8]) -> bool {
    data.split_first().is_some_and(|(first, rest)| {
        let version = produce::VERSIONS.min + i16::from(first % 11);
        produce_request(&Bytes::copy_from_slice(rest), version, usize::MAX)
    })
}

/// The first byte chooses the version, the rest is the request.
pub fn any_fetch(data: &[u8]) -> bool {
    data.split_first().is_some_and(|(first, rest)| {
        let version = fetch::VERSIONS.min + i16::from(first % 15);
        fetch_request(&Bytes::copy_from_slice(rest), version)
    })
}

/// None if both parsers refuse, for the same message; panics if only one does.
fn same_verdict<A, B>(
    generated: Result<A, DecodeError>,
    by_hand: Result<B, DecodeError>,
) -> Option<(A, B)> {
    match (generated, by_hand) {
        (Ok(generated), Ok(by_hand)) => Some((generated, by_hand)),
        (Err(generated), Err(by_hand)) => {
            assert_eq!(by_hand.message, generated.message);
            assert_eq!(by_hand.version, generated.version);
            None
        }
        (Err(generated), Ok(_)) => panic!("only the generated parser refuses: {generated}"),
        (Ok(_), Err(by_hand)) => panic!("only the parser by hand refuses: {by_hand}"),
    }
}

/// The entries of all topics as the generated parser has them, in the form of the other.
fn flat<T, P, E>(
    by_id: bool,
    topics: &Array<T>,
    split: impl Fn(&T) -> (&Str, Uuid, &Array<P>),
    entry: impl Fn(&P) -> E,
) -> Vec<TopicEntry<E>> {
    let mut all = Vec::new();
    for (topic_index, topic) in topics.iter().enumerate() {
        let (name, id, partitions) = split(topic);
        for one in partitions {
            let topic = if by_id {
                TopicKey::Id(id)
            } else {
                TopicKey::Name(name.clone())
            };
            all.push(TopicEntry {
                topic_index,
                topic,
                entry: entry(one),
            });
        }
    }
    all
}

/// Both parsers on the same bytes: same verdict, same content, same end.
///
/// `budget` is what the parser by hand may use.
pub fn produce_request(bytes: &Bytes, version: i16, budget: usize) -> bool {
    let mut generated = Reader::with_budget(bytes.clone(), usize::MAX);
    let mut by_hand = Reader::with_budget(bytes.clone(), budget);
    let Some((expected, got)) = same_verdict(
        ProduceRequest::decode(&mut generated, version),
        produce::ProduceRequest::parse(&mut by_hand, version),
    ) else {
        return false;
    };
    assert_eq!(by_hand.position(), generated.position());
    assert_eq!(got.transactional_id, expected.transactional_id);
    assert_eq!(
        (got.acks, got.timeout_ms),
        (expected.acks, expected.timeout_ms)
    );
    let partitions = flat(
        version >= 13,
        &expected.topic_data,
        |topic| (&topic.name, topic.topic_id, &topic.partition_data),
        |one| produce::ProducePartition {
            partition: one.index,
            records: one.records.clone(),
        },
    );
    assert_eq!(got.partitions().len(), partitions.len());
    assert_eq!(got.partitions().collect::<Vec<_>>(), partitions);
    true
}

/// Both parsers on the same bytes: same verdict, same content, same end.
pub fn fetch_request(bytes: &Bytes, version: i16) -> bool {
    let mut generated = Reader::with_budget(bytes.clone(), usize::MAX);
    let mut by_hand = Reader::with_budget(bytes.clone(), usize::MAX);
    let Some((expected, got)) = same_verdict(
        FetchRequest::decode(&mut generated, version),
        fetch::FetchRequest::parse(&mut by_hand, version),
    ) else {
        return false;
    };
    assert_eq!(by_hand.position(), generated.position());
    let state = &expected.replica_state;
    let replica_id = if version < 15 {
        expected.replica_id
    } else {
        state.replica_id
    };
    assert_eq!(got.cluster_id, expected.cluster_id);
    assert_eq!(
        (got.replica_id, got.replica_epoch),
        (replica_id, state.replica_epoch)
    );
    assert_eq!(
        (got.max_wait_ms, got.min_bytes),
        (expected.max_wait_ms, expected.min_bytes)
    );
    assert_eq!(got.max_bytes, expected.max_bytes);
    assert_eq!(got.isolation_level, expected.isolation_level);
    assert_eq!(
        (got.session_id, got.session_epoch),
        (expected.session_id, expected.session_epoch)
    );
    assert_eq!(got.rack_id, expected.rack_id);
    let partitions = flat(
        version >= 13,
        &expected.topics,
        |topic| (&topic.topic, topic.topic_id, &topic.partitions),
        |one| fetch::FetchPartition {
            partition: one.partition,
            current_leader_epoch: one.current_leader_epoch,
            fetch_offset: one.fetch_offset,
            last_fetched_epoch: one.last_fetched_epoch,
            log_start_offset: one.log_start_offset,
            max_bytes: one.partition_max_bytes,
            replica_directory_id: one.replica_directory_id,
            high_watermark: one.high_watermark,
        },
    );
    assert_eq!(got.partitions().len(), partitions.len());
    assert_eq!(got.partitions().collect::<Vec<_>>(), partitions);
    let forgotten = flat(
        version >= 13,
        &expected.forgotten_topics_data,
        |topic| (&topic.topic, topic.topic_id, &topic.partitions),
        |partition| fetch::ForgottenPartition(*partition),
    );
    assert_eq!(got.forgotten().len(), forgotten.len());
    assert_eq!(got.forgotten().collect::<Vec<_>>(), forgotten);
    true
}
