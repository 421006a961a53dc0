//! A client that works on a topic of its own while others attack.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use protocol::frame::{decode_response, encode_request};
use protocol::messages::*;
use protocol::records::{BatchBuilder, BatchView};
use protocol::{Request, Str, Uuid};
use shards::Core;

use crate::generate::TOPICS;
use crate::known::Known;
use crate::link::{Came, Link, Owed};

/// Nobody else knows it.
const TOPIC: &str = "witness";
const PATIENCE: Duration = Duration::from_secs(60);
/// It works after so many requests of the others.
const EVERY: u64 = 16;
const PRODUCE: i16 = 13;
const FETCH: i16 = 18;
const METADATA: i16 = 13;
const LIST_OFFSETS: i16 = 8;
/// Far from those of the others.
const FIRST_CORRELATION: i32 = 1 << 30;

pub struct Witness {
    link: Link,
    topic: Uuid,
    /// Records written so far; the value of each is its number.
    written: i64,
    /// Requests of the others since it worked.
    others: u64,
    metadata: MetadataResponse,
}

/// Makes all topics; what a client would know then.
pub async fn prepare(core: Core, address: SocketAddr) -> (Witness, Known) {
    let mut link = Link::open(&core, address, FIRST_CORRELATION).await;
    let names = TOPICS.iter().copied().chain([TOPIC]);
    let create = CreateTopicsRequest {
        topics: names
            .map(|name| CreateTopicsRequestCreatableTopic {
                name: name.into(),
                num_partitions: if name == TOPIC { 1 } else { 2 },
                replication_factor: 1,
                ..Default::default()
            })
            .collect(),
        timeout_ms: 30_000,
        ..Default::default()
    };
    let created = call(&mut link, 7, &create).await;
    let mut ids: Vec<Uuid> = Vec::new();
    for topic in &created.topics {
        assert_eq!(topic.error_code, 0, "{}", &*topic.name);
        ids.push(topic.topic_id);
    }
    let topic = ids.pop().expect("the witness's own");
    let known = Known {
        topics: ids,
        ..Known::default()
    };
    let metadata = call(&mut link, METADATA, &metadata_of_it()).await;
    let witness = Witness {
        link,
        topic,
        written: 0,
        others: 0,
        metadata,
    };
    (witness, known)
}

fn metadata_of_it() -> MetadataRequest {
    MetadataRequest {
        topics: Some(
            [MetadataRequestMetadataRequestTopic {
                name: Some(TOPIC.into()),
                ..Default::default()
            }]
            .into(),
        ),
        ..Default::default()
    }
}

impl Witness {
    /// Another request was sent.
    pub async fn notice(&mut self) {
        self.others += 1;
        if self.others.is_multiple_of(EVERY) {
            self.work().await;
        }
    }

    /// Writes, reads back, and looks at what the cluster says of its topic.
    pub async fn work(&mut self) {
        let produced = call(&mut self.link, PRODUCE, &produce(self.topic, self.written)).await;
        let answer = &produced.responses[0].partition_responses[0];
        assert_eq!((answer.error_code, answer.base_offset), (0, self.written));
        self.written += 1;
        self.look().await;
    }

    /// The last record, the end of the log and the metadata are what they must be. Asked for all at once.
    async fn look(&mut self) {
        let (topic, last) = (self.topic, self.written - 1);
        let link = &mut self.link;
        if last >= 0 {
            ask(link, FETCH, &fetch(topic, last)).await;
        }
        ask(link, LIST_OFFSETS, &latest()).await;
        ask(link, METADATA, &metadata_of_it()).await;
        if last >= 0 {
            let fetched = answer::<FetchRequest>(link).await;
            assert_eq!((fetched.error_code, fetched.session_id), (0, 0));
            let answer = &fetched.responses[0].partitions[0];
            let end = (
                answer.error_code,
                answer.high_watermark,
                answer.log_start_offset,
            );
            assert_eq!(end, (0, self.written, 0));
            let records = answer.records.clone().expect("a record");
            assert_eq!(values(&records), [last.to_string()]);
        }
        let listed = answer::<ListOffsetsRequest>(link).await;
        let end = &listed.topics[0].partitions[0];
        assert_eq!((end.error_code, end.offset), (0, self.written));
        let metadata = answer::<MetadataRequest>(link).await;
        assert_eq!(metadata, self.metadata);
    }

    pub async fn after_a_restart(mut self, core: &Core, address: SocketAddr) {
        self.link = Link::open(core, address, FIRST_CORRELATION).await;
        // The epoch of the leader is a new one.
        for topic in &mut self.metadata.topics {
            for partition in &mut topic.partitions {
                partition.leader_epoch += 1;
            }
        }
        self.look().await;
    }
}

fn produce(topic: Uuid, number: i64) -> ProduceRequest {
    let mut batch = BatchBuilder::new(0);
    batch.append(
        1_750_000_000_000,
        None,
        Some(number.to_string().as_bytes()),
        &[],
    );
    let partition = ProduceRequestPartitionProduceData {
        index: 0,
        records: Some(batch.build_bytes().expect("a batch")),
    };
    ProduceRequest {
        acks: -1,
        timeout_ms: 60_000,
        topic_data: [ProduceRequestTopicProduceData {
            topic_id: topic,
            partition_data: [partition].into(),
            ..Default::default()
        }]
        .into(),
        ..Default::default()
    }
}

fn fetch(topic: Uuid, offset: i64) -> FetchRequest {
    let partition = FetchRequestFetchPartition {
        fetch_offset: offset,
        partition_max_bytes: 1 << 20,
        ..Default::default()
    };
    FetchRequest {
        min_bytes: 1,
        session_epoch: -1,
        topics: [FetchRequestFetchTopic {
            topic_id: topic,
            partitions: [partition].into(),
            ..Default::default()
        }]
        .into(),
        ..Default::default()
    }
}

fn latest() -> ListOffsetsRequest {
    ListOffsetsRequest {
        replica_id: -1,
        topics: [ListOffsetsRequestListOffsetsTopic {
            name: TOPIC.into(),
            partitions: [ListOffsetsRequestListOffsetsPartition {
                timestamp: -1,
                ..Default::default()
            }]
            .into(),
        }]
        .into(),
        ..Default::default()
    }
}

fn values(records: &Bytes) -> Vec<String> {
    let batch = BatchView::parse(records).expect("a batch");
    assert_eq!(batch.bytes().len(), records.len(), "one batch");
    let records = batch.records(1 << 20).expect("records");
    records
        .map(|record| record.expect("a record").value.unwrap_or_default())
        .map(|value| String::from_utf8_lossy(&value).into_owned())
        .collect()
}

async fn ask<R: Request>(link: &mut Link, version: i16, request: &R) {
    let correlation = link.next_correlation();
    let frame = encode_request(request, version, correlation, Some(Str::from("witness")));
    link.owed.push_back(Owed {
        correlation,
        api: R::API,
        version,
        certain: true,
    });
    link.send(frame.expect("a sound request")).await;
}

/// The next answer, which is one to that request.
async fn answer<R: Request>(link: &mut Link) -> R::Response {
    match link.receive(PATIENCE).await {
        Came::Answer(api, version, answer) => {
            assert_eq!(api, R::API);
            let decoded = decode_response::<R::Response>(answer, version);
            decoded.expect("an answer of that version").1
        }
        Came::Closed => panic!("the witness's connection is closed"),
        Came::Nothing => panic!("the witness gets no answer to {:?}", R::API),
    }
}

async fn call<R: Request>(link: &mut Link, version: i16, request: &R) -> R::Response {
    ask(link, version, request).await;
    answer::<R>(link).await
}
