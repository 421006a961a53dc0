//! The answer to a fetch: the frame around record slices.

use protocol::hot::fetch::{
    FetchAnswer, FetchRequest, NodeEndpoint, Part as FramePart, PartitionAnswer as Wire,
};
use protocol::hot::{TopicEntry, TopicKey};
use protocol::{ErrorCode, Str, Uuid};
use shards::sync::Permit;

use super::api::Call;
use crate::outgoing::{Answer, Outgoing, Part};
use crate::replication::fetch_session::{AnswerShape, PartitionKey, PartitionOutcome};

/// First version of Fetch whose answers name the leader (KIP-951).
const LEADERS_NAMED_SINCE: i16 = 16;
/// First version of Fetch that names topics by their ids.
const TOPIC_IDS_SINCE: i16 = 13;
/// Last version of Fetch whose clients take KAFKA_STORAGE_ERROR for fatal.
const STORAGE_ERROR_UNKNOWN_UNTIL: i16 = 5;

/// One partition of the answer, and its records.
pub struct PartitionAnswer {
    /// What goes on the wire, without records.
    pub data: Wire,
    /// The records.
    pub parts: Vec<Part>,
    /// Their bytes.
    pub bytes: usize,
    /// Epoch of the leader that answered.
    pub leader_epoch: i32,
}

impl PartitionAnswer {
    /// An empty answer, or one that only tells an error.
    pub fn new(key: PartitionKey, refused: Option<ErrorCode>) -> Self {
        let (topic, topic_id) = match key.topic {
            TopicKey::Name(name) => (name, Uuid::ZERO),
            TopicKey::Id(id) => (Str::default(), id),
        };
        let data = Wire {
            topic,
            topic_id,
            partition: key.partition,
            error_code: refused.unwrap_or(ErrorCode::None).code(),
            ..Wire::default()
        };
        PartitionAnswer {
            data,
            parts: Vec::new(),
            bytes: 0,
            leader_epoch: -1,
        }
    }

    /// What cannot be read at all has an empty list of aborted transactions in Kafka, where errors of reading have none.
    pub fn missing(key: PartitionKey, error: ErrorCode) -> Self {
        let mut answer = Self::new(key, Some(error));
        answer.data.aborted_transactions = Some(Vec::new());
        answer
    }

    /// Tells an error: nothing else of the partition is known to the client then.
    pub fn fail(&mut self, error: ErrorCode) {
        let (topic, topic_id) = (std::mem::take(&mut self.data.topic), self.data.topic_id);
        let partition = self.data.partition;
        self.drop_records();
        let error_code = error.code();
        self.data = Wire {
            topic,
            topic_id,
            partition,
            error_code,
            ..Wire::default()
        };
    }

    /// Leaves the records out.
    pub fn drop_records(&mut self) {
        self.parts.clear();
        self.bytes = 0;
    }

    /// Whether the client's log left ours.
    pub fn diverges(&self) -> bool {
        self.data.diverging_epoch.is_some()
    }

    /// What the session has to know.
    pub fn outcome(&self) -> PartitionOutcome {
        PartitionOutcome {
            high_watermark: self.data.high_watermark,
            log_start_offset: self.data.log_start_offset,
            has_records: self.bytes > 0,
            must_respond: self.data.error_code != 0 || self.diverges(),
        }
    }
}

/// A whole request that failed.
pub fn encode_error(call: &Call, error: ErrorCode) -> Answer {
    let answer = FetchAnswer {
        throttle_time_ms: 0,
        error_code: error.code(),
        session_id: 0,
        partitions: &[],
        node_endpoints: &[],
    };
    frame(call, &answer, Vec::new(), None)
}

/// A whole request that makes no sense: each of its partitions says so, where these are named.
pub fn encode_refusal(call: &Call, request: &FetchRequest, error: ErrorCode) -> Answer {
    let named = call.version() < TOPIC_IDS_SINCE;
    let partitions: Vec<Wire> = request
        .partitions()
        .filter(|_| named)
        .map(|TopicEntry { topic, entry, .. }| {
            let partition = entry.partition;
            PartitionAnswer::missing(PartitionKey { topic, partition }, error).data
        })
        .collect();
    let records = partitions.iter().map(|_| Vec::new()).collect();
    let answer = FetchAnswer {
        throttle_time_ms: 0,
        error_code: error.code(),
        session_id: request.session_id,
        partitions: &partitions,
        node_endpoints: &[],
    };
    frame(call, &answer, records, None)
}

/// The answer with the partitions that the session lets through. `permit` stands for the memory
/// that it refers to, until it has been sent.
pub fn encode_answer(
    call: &Call,
    shape: AnswerShape,
    answers: Vec<PartitionAnswer>,
    follower: bool,
    permit: Option<Permit>,
) -> Answer {
    let mut partitions = Vec::with_capacity(answers.len());
    let mut records = Vec::with_capacity(answers.len());
    let included = answers
        .into_iter()
        .zip(shape.include)
        .filter(|(_, include)| *include);
    for (mut answer, _) in included {
        answer.data.records_len = answer.bytes;
        adapt_error(call, &mut answer.data);
        partitions.push(answer.data);
        records.push(answer.parts);
    }
    for part in records.iter().flatten() {
        let counted = match part {
            Part::Memory(_) => &call.shard.metrics.fetched_from_memory,
            Part::File { .. } => &call.shard.metrics.fetched_from_files,
        };
        counted.add(part.len() as u64);
    }
    let mut node_endpoints = name_leaders(call, &mut partitions);
    if follower {
        // It has its addresses from the metadata.
        node_endpoints.clear();
    }
    let answer = FetchAnswer {
        throttle_time_ms: 0,
        error_code: ErrorCode::None.code(),
        session_id: shape.session_id,
        partitions: &partitions,
        node_endpoints: &node_endpoints,
    };
    frame(call, &answer, records, permit)
}

fn frame(
    call: &Call,
    answer: &FetchAnswer<'_>,
    mut records: Vec<Vec<Part>>,
    permit: Option<Permit>,
) -> Answer {
    call.header.count_error(answer.error_code);
    for partition in answer.partitions {
        call.header.count_error(partition.error_code);
    }
    let pieces = match answer.encode(call.version(), call.header.correlation_id) {
        Ok(pieces) => pieces,
        Err(error) => {
            tracing::error!(%error, "a fetch answer could not be encoded; closing the connection");
            return Answer::Close;
        }
    };
    let mut parts = Vec::with_capacity(pieces.len() + 4);
    for piece in pieces {
        match piece {
            FramePart::Header(bytes) => parts.push(Part::Memory(bytes)),
            FramePart::Records(index) => parts.append(&mut records[index]),
        }
    }
    Answer::Send(Outgoing::new(parts).holding(permit))
}

/// Old clients know fewer errors.
fn adapt_error(call: &Call, answer: &mut Wire) {
    let storage_error = answer.error_code == ErrorCode::KafkaStorageError.code();
    if storage_error && call.version() <= STORAGE_ERROR_UNKNOWN_UNTIL {
        answer.error_code = ErrorCode::NotLeaderOrFollower.code();
    }
}

/// KIP-951: who is told that this is not the leader is told at once who is.
fn name_leaders(call: &Call, partitions: &mut [Wire]) -> Vec<NodeEndpoint> {
    let moved = [
        ErrorCode::NotLeaderOrFollower.code(),
        ErrorCode::FencedLeaderEpoch.code(),
    ];
    let mut nodes: Vec<NodeEndpoint> = Vec::new();
    if call.version() < LEADERS_NAMED_SINCE {
        return nodes;
    }
    let image = call.shard.image();
    for answer in partitions
        .iter_mut()
        .filter(|answer| moved.contains(&answer.error_code))
    {
        let Some(partition) = image.partition(answer.topic_id, answer.partition) else {
            continue;
        };
        answer.current_leader = Some((partition.leader, partition.leader_epoch));
        let known = nodes.iter().any(|node| node.node_id == partition.leader);
        let node = call
            .shard
            .node_address(&image, partition.leader, call.caller.listener);
        if let Some(node) = node.filter(|_| !known) {
            nodes.push(NodeEndpoint {
                node_id: partition.leader,
                host: node.host,
                port: node.port,
                rack: node.rack,
            });
        }
    }
    nodes
}
