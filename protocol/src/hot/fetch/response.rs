use bytes::Bytes;

use crate::frame::{LENGTH_BYTES, encode_response_header};
use crate::messages::FetchResponse;
use crate::wire::{EncodeError, EncodeErrorKind, TagWriter, Writer};
use crate::{ApiKey, Message, Str, Uuid};

use super::{TOPIC_IDS_FROM, VERSIONS};

/// An answer to a fetch, without the records themselves.
#[derive(Clone, Copy, Debug)]
pub struct FetchAnswer<'a> {
    pub throttle_time_ms: i32,
    pub error_code: i16,
    pub session_id: i32,
    /// Neighbours of the same topic are put below one topic.
    pub partitions: &'a [PartitionAnswer],
    /// Where the leaders named in `current_leader` are (KIP-951). Only from version 16 on.
    pub node_endpoints: &'a [NodeEndpoint],
}

pub use crate::messages::FetchResponseNodeEndpoint as NodeEndpoint;

/// One partition's part of the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionAnswer {
    /// Sent up to version 12.
    pub topic: Str,
    /// Sent from version 13 on.
    pub topic_id: Uuid,
    pub partition: i32,
    pub error_code: i16,
    pub high_watermark: i64,
    pub last_stable_offset: i64,
    pub log_start_offset: i64,
    /// Producer id and first offset of each; null for who reads uncommitted.
    pub aborted_transactions: Option<Vec<(i64, i64)>>,
    /// A node to fetch from instead; -1 is none.
    pub preferred_read_replica: i32,
    /// Epoch and end offset from which the follower's log differs. Only from version 12 on, as
    /// the next two.
    pub diverging_epoch: Option<(i32, i64)>,
    /// Leader and its epoch.
    pub current_leader: Option<(i32, i32)>,
    /// End offset and epoch of the snapshot to fetch instead.
    pub snapshot_id: Option<(i64, i32)>,
    /// Bytes of the records that will be sent. No records are sent as empty ones, never as null,
    /// for the sake of clients that fail on null.
    pub records_len: usize,
}

impl Default for PartitionAnswer {
    fn default() -> Self {
        PartitionAnswer {
            topic: Str::default(),
            topic_id: Uuid::ZERO,
            partition: 0,
            error_code: 0,
            high_watermark: -1,
            last_stable_offset: -1,
            log_start_offset: -1,
            aborted_transactions: None,
            preferred_read_replica: -1,
            diverging_epoch: None,
            current_leader: None,
            snapshot_id: None,
            records_len: 0,
        }
    }
}

/// A piece of the frame to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    Header(Bytes),
    /// Here the records of the partition with this index go, all `records_len` bytes of them.
    Records(usize),
}

/// Bytes of the whole frame, its length field too, as it stands in the first part.
pub fn parts_len(parts: &[Part]) -> usize {
    match parts.first() {
        Some(Part::Header(bytes)) => match bytes.first_chunk() {
            Some(length) => LENGTH_BYTES + i32::from_be_bytes(*length).unsigned_abs() as usize,
            None => 0,
        },
        _ => 0,
    }
}

impl FetchAnswer<'_> {
    /// The whole frame in pieces, from its length on. Memory goes to what stands around the
    /// records only.
    ///
    /// Fails as the generated codec does: where something is set that the version lacks, and
    /// where the frame would be longer than its length field can say.
    pub fn encode(&self, version: i16, correlation_id: i32) -> Result<Vec<Part>, EncodeError> {
        if !VERSIONS.contains(version) {
            let error = EncodeError::from(EncodeErrorKind::UnsupportedVersion);
            return Err(error.in_message(FetchResponse::NAME, version));
        }
        let flexible = ApiKey::Fetch.is_flexible(version);
        let mut encoder = Encoder {
            writer: Writer::in_pieces(64 + 96 * self.partitions.len()),
            version,
            flexible,
            cuts: Vec::with_capacity(self.partitions.len()),
        };
        encoder
            .frame(self, correlation_id)
            .and_then(|()| encoder.finish(self.partitions))
            .map_err(|error| error.in_message(FetchResponse::NAME, version))
    }
}

struct Encoder {
    writer: Writer,
    version: i16,
    flexible: bool,
    /// Where records go: behind how many pieces of the writer, and index of the partition.
    cuts: Vec<(usize, usize)>,
}

impl Encoder {
    fn frame(&mut self, answer: &FetchAnswer<'_>, correlation_id: i32) -> Result<(), EncodeError> {
        self.writer.i32(0);
        encode_response_header(
            &mut self.writer,
            ApiKey::Fetch,
            self.version,
            correlation_id,
        );
        self.writer.i32(answer.throttle_time_ms);
        if self.version >= 7 {
            self.writer.i16(answer.error_code);
            self.writer.i32(answer.session_id);
        } else if answer.session_id != 0 {
            return Err(EncodeError::absent("session_id"));
        }
        let by_id = self.version >= TOPIC_IDS_FROM;
        let same_topic = |one: &PartitionAnswer, other: &PartitionAnswer| {
            if by_id {
                one.topic_id == other.topic_id
            } else {
                one.topic == other.topic
            }
        };
        let topics = || answer.partitions.chunk_by(same_topic);
        self.writer.length(self.flexible, Some(topics().count()))?;
        let mut index = 0;
        for partitions in topics() {
            if by_id {
                self.writer.uuid(partitions[0].topic_id);
            } else {
                self.writer.string(self.flexible, &partitions[0].topic)?;
            }
            self.writer.length(self.flexible, Some(partitions.len()))?;
            for partition in partitions {
                self.writer.turn_the_page();
                self.partition(partition, index)?;
                index += 1;
            }
            self.no_tags();
        }
        self.node_endpoints(answer.node_endpoints)
    }

    fn partition(&mut self, answer: &PartitionAnswer, index: usize) -> Result<(), EncodeError> {
        let (version, flexible) = (self.version, self.flexible);
        let writer = &mut self.writer;
        writer.i32(answer.partition);
        writer.i16(answer.error_code);
        writer.i64(answer.high_watermark);
        writer.i64(answer.last_stable_offset);
        if version >= 5 {
            writer.i64(answer.log_start_offset);
        }
        let aborted = answer.aborted_transactions.as_deref();
        writer.length(flexible, aborted.map(<[_]>::len))?;
        for (producer_id, first_offset) in aborted.unwrap_or_default() {
            writer.i64(*producer_id);
            writer.i64(*first_offset);
            if flexible {
                writer.no_tags();
            }
        }
        if version >= 11 {
            writer.i32(answer.preferred_read_replica);
        } else if answer.preferred_read_replica != -1 {
            return Err(EncodeError::absent("preferred_read_replica"));
        }
        writer.length(flexible, Some(answer.records_len))?;
        if answer.records_len > 0 {
            // Never an empty piece: a length stands before the records.
            self.cuts.push((self.writer.seal(), index));
        }
        self.partition_tags(answer)
    }

    fn partition_tags(&mut self, answer: &PartitionAnswer) -> Result<(), EncodeError> {
        // What is set to the schema's default counts as not set.
        let diverging_epoch = answer.diverging_epoch.filter(|one| *one != (-1, -1));
        let current_leader = answer.current_leader.filter(|one| *one != (-1, -1));
        let snapshot_id = answer.snapshot_id.filter(|one| *one != (-1, -1));
        if diverging_epoch.is_none() && current_leader.is_none() && snapshot_id.is_none() {
            self.no_tags();
            return Ok(());
        }
        if !self.flexible {
            return Err(EncodeError::absent(
                "diverging_epoch, current_leader or snapshot_id",
            ));
        }
        let mut tags = TagWriter::default();
        if let Some((epoch, end_offset)) = diverging_epoch {
            tags.put(0, |writer| {
                writer.i32(epoch);
                writer.i64(end_offset);
                writer.no_tags();
                Ok(())
            })?;
        }
        if let Some((leader_id, leader_epoch)) = current_leader {
            tags.put(1, |writer| {
                writer.i32(leader_id);
                writer.i32(leader_epoch);
                writer.no_tags();
                Ok(())
            })?;
        }
        if let Some((end_offset, epoch)) = snapshot_id {
            tags.put(2, |writer| {
                writer.i64(end_offset);
                writer.i32(epoch);
                writer.no_tags();
                Ok(())
            })?;
        }
        tags.finish(&mut self.writer)
    }

    fn node_endpoints(&mut self, nodes: &[NodeEndpoint]) -> Result<(), EncodeError> {
        if nodes.is_empty() {
            self.no_tags();
            return Ok(());
        }
        if self.version < 16 {
            return Err(EncodeError::absent("node_endpoints"));
        }
        let version = self.version;
        let mut tags = TagWriter::default();
        tags.put(0, |writer| {
            writer.length(true, Some(nodes.len()))?;
            let mut nodes = nodes.iter();
            nodes.try_for_each(|node| node.write(writer, version))
        })?;
        tags.finish(&mut self.writer)
    }

    fn no_tags(&mut self) {
        if self.flexible {
            self.writer.no_tags();
        }
    }

    /// Fills in the length of the frame, and cuts it where records go.
    fn finish(self, partitions: &[PartitionAnswer]) -> Result<Vec<Part>, EncodeError> {
        let Encoder {
            mut writer, cuts, ..
        } = self;
        let records: usize = cuts
            .iter()
            .map(|(_, index)| partitions[*index].records_len)
            .sum();
        let size = writer.len() - LENGTH_BYTES + records;
        let length = i32::try_from(size).map_err(|_| EncodeErrorKind::TooLong(size))?;
        writer.patch_front(length);
        let pieces = writer.into_pieces();
        let mut parts = Vec::with_capacity(pieces.len() + cuts.len());
        let mut cuts = cuts.into_iter().peekable();
        for (before, piece) in (1..).zip(pieces) {
            parts.push(Part::Header(piece));
            if let Some((_, index)) = cuts.next_if(|(pieces, _)| *pieces == before) {
                parts.push(Part::Records(index));
            }
        }
        Ok(parts)
    }
}
