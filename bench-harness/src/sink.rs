//! A broker that answers at once: it checks nothing, writes nothing and remembers the last batches of each partition
//! only. What the generator reaches against it is the generator's own limit.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::Duration;

use anyhow::{Result, anyhow, bail, ensure};
use bytes::{Bytes, BytesMut};
use futures_lite::{AsyncReadExt, AsyncWriteExt};
use glommio::net::{TcpListener, TcpStream};
use glommio::{GlommioError, LocalExecutorBuilder, Placement};
use kafka_protocol::messages::api_versions_response::ApiVersion;
use kafka_protocol::messages::create_topics_response::CreatableTopicResult;
use kafka_protocol::messages::delete_topics_response::DeletableTopicResult;
use kafka_protocol::messages::fetch_response::{FetchableTopicResponse, PartitionData};
use kafka_protocol::messages::list_offsets_response::{
    ListOffsetsPartitionResponse, ListOffsetsTopicResponse,
};
use kafka_protocol::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use kafka_protocol::messages::produce_response::{PartitionProduceResponse, TopicProduceResponse};
use kafka_protocol::messages::*;
use kafka_protocol::protocol::{
    Decodable, Encodable, HeaderVersion, Request, StrBytes, decode_request_header_from_buffer,
};

use rustix::process::Signal;

use crate::batches::BatchHeader;

/// Batches that a partition remembers. Older ones are made up from the last when they are read.
const KEPT_BYTES: usize = 4 << 20;
const LARGEST_REQUEST: usize = 128 << 20;
/// Lowest and highest version of each API that the sink answers.
const SERVED: [(ApiKey, i16, i16); 8] = [
    (ApiKey::Produce, 3, 12),
    (ApiKey::Fetch, 4, 12),
    (ApiKey::ListOffsets, 1, 7),
    (ApiKey::Metadata, 1, 9),
    (ApiKey::ApiVersions, 0, 3),
    (ApiKey::CreateTopics, 2, 6),
    (ApiKey::DeleteTopics, 1, 5),
    (ApiKey::InitProducerId, 0, 4),
];

#[derive(Default)]
struct Log {
    batches: VecDeque<(i64, Bytes)>,
    bytes: usize,
    end: i64,
}

#[derive(Default)]
struct State {
    topics: HashMap<TopicName, Vec<Log>>,
    waiting: Vec<Waker>,
    /// Counts appends, so that a fetch that waits sees that something came.
    appends: u64,
    address: (String, i32),
}

type Shared = Rc<RefCell<State>>;

/// Serves until the process ends, or with the process that started it.
pub fn serve(address: &str, with_parent: bool) -> Result<()> {
    if with_parent {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    }
    let (host, _) = address
        .rsplit_once(':')
        .ok_or_else(|| anyhow!("--listen {address}: HOST:PORT"))?;
    let (host, address) = (host.to_owned(), address.to_owned());
    let serve = LocalExecutorBuilder::new(Placement::Unbound)
        .name("sink")
        .spawn(move || async move {
            let explain = |error: GlommioError<()>| anyhow!("cannot listen on {address}: {error}");
            let listener = TcpListener::bind(&address).map_err(explain)?;
            // Port 0 asks for any that is free.
            let port = listener.local_addr().map_err(explain)?.port();
            crate::say(&format!("sink on {host}:{port}"));
            let state: Shared = Rc::new(RefCell::new(State {
                address: (host, port.into()),
                ..State::default()
            }));
            loop {
                let stream = listener
                    .accept()
                    .await
                    .map_err(|error| anyhow!("cannot accept on {address}: {error}"))?;
                let state = state.clone();
                // A connection that breaks is the end of that connection.
                glommio::spawn_local(async move { drop(connection(stream, state).await) }).detach();
            }
        })
        .map_err(|error| anyhow!("cannot start: {error}"))?;
    serve.join().map_err(|error| anyhow!("{error}"))?
}

async fn connection(mut stream: TcpStream, state: Shared) -> Result<()> {
    stream
        .set_nodelay(true)
        .map_err(|error| anyhow!("{error}"))?;
    let mut answer = BytesMut::new();
    loop {
        let mut length = [0; 4];
        stream.read_exact(&mut length).await?;
        let length = usize::try_from(i32::from_be_bytes(length))?;
        ensure!(length <= LARGEST_REQUEST, "a request of {length} bytes");
        let mut frame = BytesMut::zeroed(length);
        stream.read_exact(&mut frame).await?;
        answer.clear();
        if handle(frame.freeze(), &state, &mut answer).await? {
            stream.write_all(&answer).await?;
        }
        glommio::yield_if_needed().await;
    }
}

/// Answers one request into `out`; false where none is wanted.
async fn handle(mut frame: Bytes, state: &Shared, out: &mut BytesMut) -> Result<bool> {
    let header = decode_request_header_from_buffer(&mut frame)?;
    let (version, correlation) = (header.request_api_version, header.correlation_id);
    let key = ApiKey::try_from(header.request_api_key).map_err(|()| anyhow!("unknown API"))?;
    let Some((_, least, most)) = SERVED.iter().find(|(served, _, _)| *served == key) else {
        bail!("an API that the sink does not serve")
    };
    ensure!(
        (*least..=*most).contains(&version),
        "a version that the sink does not serve"
    );
    macro_rules! answer {
        ($request:ty, $make:expr) => {{
            let request = <$request>::decode(&mut frame, version)?;
            let made = $make(request);
            write::<$request>(out, correlation, version, &made)?;
        }};
    }
    match key {
        ApiKey::Produce => {
            let request = ProduceRequest::decode(&mut frame, version)?;
            let wanted = request.acks != 0;
            let made = produce(request, &mut state.borrow_mut());
            write::<ProduceRequest>(out, correlation, version, &made)?;
            return Ok(wanted);
        }
        ApiKey::Fetch => {
            let request = FetchRequest::decode(&mut frame, version)?;
            let made = fetch(&request, state).await;
            write::<FetchRequest>(out, correlation, version, &made)?;
        }
        ApiKey::ListOffsets => answer!(ListOffsetsRequest, |request| list_offsets(
            request,
            &state.borrow()
        )),
        ApiKey::Metadata => answer!(MetadataRequest, |request| metadata(
            &request,
            &state.borrow()
        )),
        ApiKey::ApiVersions => answer!(ApiVersionsRequest, |_| api_versions(&SERVED)),
        ApiKey::CreateTopics => answer!(CreateTopicsRequest, |request| create_topics(
            request,
            &mut state.borrow_mut()
        )),
        ApiKey::DeleteTopics => answer!(DeleteTopicsRequest, |request| delete_topics(
            request,
            &mut state.borrow_mut()
        )),
        _ => answer!(InitProducerIdRequest, |_| InitProducerIdResponse::default()
            .with_producer_id(ProducerId(1))
            .with_producer_epoch(0)),
    }
    Ok(true)
}

/// Writes an answer as a frame, with its length and header.
///
/// # Errors
/// Where the answer cannot be expressed in that version.
pub fn write<R: Request>(
    out: &mut BytesMut,
    correlation: i32,
    version: i16,
    answer: &R::Response,
) -> Result<()> {
    let begin = out.len();
    out.extend_from_slice(&[0; 4]);
    ResponseHeader::default()
        .with_correlation_id(correlation)
        .encode(out, R::Response::header_version(version))?;
    answer.encode(out, version)?;
    let length = i32::try_from(out.len() - begin - 4)?;
    out[begin..begin + 4].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

/// Names what is served: each API with its lowest and highest version.
pub fn api_versions(served: &[(ApiKey, i16, i16)]) -> ApiVersionsResponse {
    let served = served.iter().map(|(key, least, most)| {
        ApiVersion::default()
            .with_api_key(*key as i16)
            .with_min_version(*least)
            .with_max_version(*most)
    });
    ApiVersionsResponse::default().with_api_keys(served.collect())
}

fn metadata(request: &MetadataRequest, state: &State) -> MetadataResponse {
    let broker = MetadataResponseBroker::default()
        .with_node_id(BrokerId(1))
        .with_host(StrBytes::from_string(state.address.0.clone()))
        .with_port(state.address.1);
    let topic = |name: &TopicName| {
        let partitions = state.topics.get(name).map_or(0, Vec::len);
        let partition = |index: usize| {
            MetadataResponsePartition::default()
                .with_partition_index(index as i32)
                .with_leader_id(BrokerId(1))
                .with_replica_nodes(vec![BrokerId(1)])
                .with_isr_nodes(vec![BrokerId(1)])
        };
        MetadataResponseTopic::default()
            .with_name(Some(name.clone()))
            .with_error_code(if partitions == 0 { 3 } else { 0 })
            .with_partitions((0..partitions).map(partition).collect())
    };
    let topics = request
        .topics
        .iter()
        .flatten()
        .filter_map(|asked| asked.name.as_ref())
        .map(topic);
    MetadataResponse::default()
        .with_brokers(vec![broker])
        .with_controller_id(BrokerId(1))
        .with_topics(topics.collect())
}

fn create_topics(request: CreateTopicsRequest, state: &mut State) -> CreateTopicsResponse {
    let results = request.topics.into_iter().map(|topic| {
        let logs = (0..topic.num_partitions.max(1))
            .map(|_| Log::default())
            .collect();
        state.topics.insert(topic.name.clone(), logs);
        CreatableTopicResult::default().with_name(topic.name)
    });
    CreateTopicsResponse::default().with_topics(results.collect())
}

fn delete_topics(request: DeleteTopicsRequest, state: &mut State) -> DeleteTopicsResponse {
    let results = request.topic_names.into_iter().map(|name| {
        state.topics.remove(&name);
        DeletableTopicResult::default().with_name(Some(name))
    });
    DeleteTopicsResponse::default().with_responses(results.collect())
}

fn produce(request: ProduceRequest, state: &mut State) -> ProduceResponse {
    let mut topics = Vec::with_capacity(request.topic_data.len());
    for topic in request.topic_data {
        let mut partitions = Vec::with_capacity(topic.partition_data.len());
        let mut logs = state.topics.get_mut(&topic.name);
        for partition in topic.partition_data {
            let answer = PartitionProduceResponse::default().with_index(partition.index);
            let log = logs
                .as_mut()
                .and_then(|logs| logs.get_mut(usize::try_from(partition.index).ok()?));
            let appended = log
                .zip(partition.records)
                .and_then(|(log, records)| log.append(&records));
            partitions.push(match appended {
                Some(base) => answer.with_base_offset(base),
                None => answer.with_error_code(3),
            });
        }
        topics.push(
            TopicProduceResponse::default()
                .with_name(topic.name)
                .with_partition_responses(partitions),
        );
    }
    state.appends += 1;
    state.waiting.drain(..).for_each(Waker::wake);
    ProduceResponse::default().with_responses(topics)
}

impl Log {
    fn append(&mut self, records: &Bytes) -> Option<i64> {
        let base = self.end;
        self.end += i64::from(BatchHeader::read(records)?.records);
        self.bytes += records.len();
        self.batches.push_back((base, records.clone()));
        while self.bytes > KEPT_BYTES && self.batches.len() > 1 {
            self.bytes -= self.batches.pop_front().map_or(0, |(_, bytes)| bytes.len());
        }
        Some(base)
    }

    /// Batches from an offset on.
    fn read(&self, mut offset: i64, limit: usize) -> Option<Bytes> {
        let (_, last) = self.batches.back()?;
        let kept_from = self.batches.front().map_or(0, |(base, _)| *base);
        let mut out = BytesMut::new();
        let mut add = |base: i64, batch: &Bytes| {
            let at = out.len();
            out.extend_from_slice(batch);
            out[at..at + 8].copy_from_slice(&base.to_be_bytes());
            out.len() < limit
        };
        let step = i64::from(BatchHeader::read(last)?.records).max(1);
        let mut room = true;
        while room && offset < kept_from {
            room = add(offset, last);
            offset += step;
        }
        let first = self.batches.partition_point(|(base, _)| *base < offset);
        for (base, batch) in self.batches.range(first..) {
            if !room {
                break;
            }
            room = add(*base, batch);
        }
        (!out.is_empty()).then(|| out.freeze())
    }
}

/// Waits for records as a broker does: until there are some, or the client's patience ends.
async fn fetch(request: &FetchRequest, state: &Shared) -> FetchResponse {
    let patience = Duration::from_millis(u64::try_from(request.max_wait_ms).unwrap_or(0));
    let mut seen = state.borrow().appends;
    loop {
        let (answer, found) = read(request, &state.borrow());
        if found || patience.is_zero() {
            return answer;
        }
        let appended = std::future::poll_fn(|context| {
            let mut state = state.borrow_mut();
            if state.appends != seen {
                seen = state.appends;
                return Poll::Ready(true);
            }
            state.waiting.push(context.waker().clone());
            Poll::Pending
        });
        let timeout = async {
            glommio::timer::sleep(patience).await;
            false
        };
        if !futures_lite::future::or(appended, timeout).await {
            return answer;
        }
    }
}

fn read(request: &FetchRequest, state: &State) -> (FetchResponse, bool) {
    let mut left = usize::try_from(request.max_bytes).unwrap_or(0);
    let mut found = false;
    let mut topics = Vec::with_capacity(request.topics.len());
    for topic in &request.topics {
        let logs = state.topics.get(&topic.topic);
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        for asked in &topic.partitions {
            let answer = PartitionData::default()
                .with_partition_index(asked.partition)
                .with_records(Some(Bytes::new()));
            let Some(log) = logs.and_then(|logs| logs.get(usize::try_from(asked.partition).ok()?))
            else {
                partitions.push(answer.with_error_code(3));
                continue;
            };
            let answer = answer
                .with_high_watermark(log.end)
                .with_last_stable_offset(log.end)
                .with_log_start_offset(0);
            let limit = left.min(usize::try_from(asked.partition_max_bytes).unwrap_or(0));
            let records = if limit == 0 {
                None
            } else {
                log.read(asked.fetch_offset, limit)
            };
            left = left.saturating_sub(records.as_ref().map_or(0, Bytes::len));
            found |= records.is_some();
            partitions.push(answer.with_records(Some(records.unwrap_or_default())));
        }
        topics.push(
            FetchableTopicResponse::default()
                .with_topic(topic.topic.clone())
                .with_partitions(partitions),
        );
    }
    (FetchResponse::default().with_responses(topics), found)
}

fn list_offsets(request: ListOffsetsRequest, state: &State) -> ListOffsetsResponse {
    let topics = request.topics.into_iter().map(|topic| {
        let logs = state.topics.get(&topic.name);
        let partitions = topic.partitions.iter().map(|asked| {
            let log = logs.and_then(|logs| logs.get(usize::try_from(asked.partition_index).ok()?));
            ListOffsetsPartitionResponse::default()
                .with_partition_index(asked.partition_index)
                .with_offset(log.map_or(-1, |log| if asked.timestamp == -2 { 0 } else { log.end }))
                .with_error_code(if log.is_some() { 0 } else { 3 })
        });
        let partitions = partitions.collect();
        ListOffsetsTopicResponse::default()
            .with_name(topic.name)
            .with_partitions(partitions)
    });
    ListOffsetsResponse::default().with_topics(topics.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(records: u32) -> Bytes {
        let mut bytes = BytesMut::zeroed(100);
        bytes[8..12].copy_from_slice(&88_i32.to_be_bytes());
        bytes[57..61].copy_from_slice(&(records as i32).to_be_bytes());
        bytes.freeze()
    }

    #[test]
    fn what_was_appended_is_read_at_its_offset() {
        let mut log = Log::default();
        assert_eq!(
            (log.append(&batch(3)), log.append(&batch(2))),
            (Some(0), Some(3))
        );
        let read = log.read(3, 1000).expect("a batch");
        let header = BatchHeader::read(&read).expect("a header");
        assert_eq!(
            (header.base_offset, header.records, read.len()),
            (3, 2, 100)
        );
        assert!(log.read(5, 1000).is_none());
    }

    #[test]
    fn memory_is_bounded_and_what_was_forgotten_is_made_up() {
        let mut log = Log::default();
        for _ in 0..100_000 {
            log.append(&batch(1));
        }
        assert!(log.bytes <= KEPT_BYTES);
        let read = log.read(7, 250).expect("batches");
        assert_eq!(BatchHeader::read(&read).expect("a header").base_offset, 7);
        assert_eq!(
            BatchHeader::read(&read[100..])
                .expect("a header")
                .base_offset,
            8
        );
    }
}
