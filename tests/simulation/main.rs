//! The whole broker under simulation: see README.md.

mod broker;
mod client;

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use ::broker as _;
use bytes::Bytes;
use protocol::messages::*;
use protocol::records::BatchBuilder;
use shards::sim::World;
use shards::{Core, RuntimeOptions};

use broker::Broker;
use client::{Connection, Lost};

fn first(seed: u64) -> (u64, u64) {
    let world = World::new(seed);
    let broker = Broker::new(&world, 2, &[("offsets.topic.num.partitions", "2")]);
    let client = world.node(RuntimeOptions {
        cores: 1,
        ..RuntimeOptions::default()
    });
    broker.boot(&world);
    let got = Rc::new(RefCell::new(None));
    let (address, result) = (broker.address, got.clone());
    let main = move |core: Core| async move {
        let outcome = talk(&core, address).await;
        *result.borrow_mut() = Some(outcome);
    };
    let boot = world.boot(client).expect("boots");
    boot.run_local(vec![Box::new(move |core| Box::pin(main(core)))])
        .expect("starts");
    assert!(
        world.run_until_stopped(client, Duration::from_secs(600)),
        "{:?}",
        broker.start_failure()
    );
    let got = got
        .borrow_mut()
        .take()
        .expect("an outcome")
        .expect("no failure");
    assert!(got.windows(5).any(|w| w == b"hello"));
    world.trace_digest()
}

async fn talk(core: &Core, address: std::net::SocketAddr) -> Result<Bytes, Lost> {
    let connection = loop {
        if let Ok(connection) = Connection::open(core, address).await {
            break connection;
        }
        core.sleep(Duration::from_millis(100)).await;
    };
    let create = CreateTopicsRequest {
        topics: vec![CreateTopicsRequestCreatableTopic {
            name: "t".into(),
            num_partitions: 1,
            replication_factor: 1,
            ..Default::default()
        }],
        ..Default::default()
    };
    let created = connection.call(7, &create).await?;
    let id = created.topics[0].topic_id;
    assert_eq!(created.topics[0].error_code, 0);
    let mut batch = BatchBuilder::new(0);
    batch.append(core.wall_clock_ms(), None, Some(b"hello"), &[]);
    let produce = ProduceRequest {
        acks: -1,
        timeout_ms: 1000,
        topic_data: vec![ProduceRequestTopicProduceData {
            topic_id: id,
            partition_data: vec![ProduceRequestPartitionProduceData {
                index: 0,
                records: Some(batch.build_bytes().expect("builds")),
            }],
            ..Default::default()
        }],
        ..Default::default()
    };
    let produced = connection.call(13, &produce).await?;
    assert_eq!(produced.responses[0].partition_responses[0].error_code, 0);
    let fetch = FetchRequest {
        max_wait_ms: 100,
        min_bytes: 1,
        topics: vec![FetchRequestFetchTopic {
            topic_id: id,
            partitions: vec![FetchRequestFetchPartition {
                partition_max_bytes: 1000,
                ..Default::default()
            }],
            ..Default::default()
        }],
        ..Default::default()
    };
    let fetched = connection.call(13, &fetch).await?;
    Ok(fetched.responses[0].partitions[0]
        .records
        .clone()
        .expect("records"))
}

#[test]
fn same() {
    assert_eq!(first(1), first(1));
    assert_ne!(first(1), first(2));
}
