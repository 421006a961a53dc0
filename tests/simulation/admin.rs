//! Topics that come and go, and those that stay.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;
use protocol::messages::{
    CreateTopicsRequest, CreateTopicsRequestCreatableTopic,
    CreateTopicsRequestCreatableTopicConfig, DeleteTopicsRequest,
    DeleteTopicsRequestDeleteTopicState, FetchRequest, FetchRequestFetchPartition,
    FetchRequestFetchTopic, MetadataRequest, MetadataRequestMetadataRequestTopic,
};
use protocol::{ErrorCode, Str, Uuid};

use crate::client::{Client, Lost};
use crate::fetching::Fetcher;
use crate::model::Presence;
use crate::producing::produce_request;
use crate::record::{Id, Place, batch};
use crate::stage::{Phase, Topic};

/// Names at a time.
const NAMES: u64 = 2;

/// Makes the topics that stay; nothing fails meanwhile.
pub async fn prepare(client: &Client) {
    let scenario = &client.stage.scenario;
    for (index, partitions) in scenario.topics.iter().enumerate() {
        let name = format!("stays-{index}");
        let settings = scenario.topic_settings();
        let created = loop {
            if let Ok(created) = create(client, &name, *partitions, &settings).await {
                break created;
            }
        };
        let Created::Now(id) = created else {
            return client
                .stage
                .model
                .violation(format!("{name} was not created: {created:?}"));
        };
        client.stage.model.set_topic(&name, Presence::There(id));
        client.stage.topics.borrow_mut().push(Topic {
            name: name.into(),
            id,
            partitions: *partitions,
        });
    }
}

/// Creates and deletes topics, and looks whether they are there, until all is calm.
pub async fn run(client: Client) {
    // A name whose fate is not known is not used again: the request may still arrive, and what was half
    // written may come true at the next start.
    let mut fresh = NAMES;
    let mut names: Vec<u64> = (0..NAMES).collect();
    loop {
        let last_round = client.stage.phase.get() == Phase::Calm;
        let slot = client.below(NAMES) as usize;
        let name = format!("goes-{}", names[slot]);
        let _ = step(&client, &name).await;
        if client.stage.model.topic(&name) == Presence::Unknown {
            names[slot] = fresh;
            fresh += 1;
        }
        client.pause(200).await;
        if last_round {
            break;
        }
    }
    client.stage.doing(&client.name, "");
}

async fn step(client: &Client, name: &str) -> Result<(), Lost> {
    let model = &client.stage.model;
    look(client, name).await?;
    match model.topic(name) {
        Presence::Unknown => {}
        Presence::There(id) if client.chance(50) => {
            model.set_topic(name, Presence::Unknown);
            if delete(client, name).await? {
                model.set_topic(name, Presence::Gone);
                look(client, name).await?;
                must_not_serve(client, name, id).await?;
            }
        }
        Presence::There(id) => write_and_read(client, id).await?,
        Presence::Gone => {
            model.set_topic(name, Presence::Unknown);
            match create(client, name, 1, &[]).await? {
                Created::Now(id) => model.set_topic(name, Presence::There(id)),
                Created::Before => model.violation(format!(
                    "{name} cannot be created: it is there, though deleted"
                )),
                Created::Not => {}
            }
        }
    }
    Ok(())
}

#[derive(Debug)]
enum Created {
    Now(Uuid),
    Before,
    Not,
}

async fn create(
    client: &Client,
    name: &str,
    partitions: i32,
    settings: &[(&'static str, String)],
) -> Result<Created, Lost> {
    let configs = settings
        .iter()
        .map(|(key, value)| CreateTopicsRequestCreatableTopicConfig {
            name: (*key).into(),
            value: Some(value.clone().into()),
        });
    let topic = CreateTopicsRequestCreatableTopic {
        name: Str::from(name.to_owned()),
        num_partitions: partitions,
        replication_factor: 1,
        configs: configs.collect(),
        ..Default::default()
    };
    let request = CreateTopicsRequest {
        topics: [topic].into(),
        timeout_ms: 3000,
        ..Default::default()
    };
    let answer = client.ask(7, &request).await?;
    let topic = &answer.topics[0];
    match ErrorCode::from_i16(topic.error_code) {
        Some(ErrorCode::None) => Ok(Created::Now(topic.topic_id)),
        Some(ErrorCode::TopicAlreadyExists) => Ok(Created::Before),
        Some(ErrorCode::RequestTimedOut) => Ok(Created::Not),
        Some(_) if client.stage.disk_may_fail() => Ok(Created::Not),
        code => {
            client.stage.model.violation(format!(
                "{name} was not created: {code:?} {:?}",
                topic.error_message
            ));
            Ok(Created::Not)
        }
    }
}

async fn delete(client: &Client, name: &str) -> Result<bool, Lost> {
    let state = DeleteTopicsRequestDeleteTopicState {
        name: Some(Str::from(name.to_owned())),
        ..Default::default()
    };
    let request = DeleteTopicsRequest {
        topics: [state].into(),
        timeout_ms: 3000,
        ..Default::default()
    };
    let answer = client.ask(6, &request).await?;
    let code = ErrorCode::from_i16(answer.responses[0].error_code);
    match code {
        Some(ErrorCode::None) => return Ok(true),
        Some(ErrorCode::RequestTimedOut) => {}
        Some(_) if client.stage.disk_may_fail() => {}
        _ => client
            .stage
            .model
            .violation(format!("{name} was not deleted: {code:?}")),
    }
    Ok(false)
}

/// Asks whether there is such a topic.
async fn look(client: &Client, name: &str) -> Result<(), Lost> {
    let topic = MetadataRequestMetadataRequestTopic {
        name: Some(Str::from(name.to_owned())),
        ..Default::default()
    };
    let request = MetadataRequest {
        topics: Some([topic].into()),
        allow_auto_topic_creation: false,
        ..Default::default()
    };
    let answer = client.ask(12, &request).await?;
    let topic = &answer.topics[0];
    let found = (topic.error_code == 0).then_some(topic.topic_id);
    client.stage.model.saw_topic(name, found);
    Ok(())
}

/// Writes a batch, and reads from the start.
async fn write_and_read(client: &Client, topic: Uuid) -> Result<(), Lost> {
    let place = Place {
        topic,
        partition: 0,
    };
    let model = &client.stage.model;
    if !write(client, place).await? {
        return Ok(());
    }
    let expected = model.expect(place);
    let answer = client.ask(13, &fetch_request(place)).await?;
    let answer = &answer.responses[0].partitions[0];
    match ErrorCode::from_i16(answer.error_code) {
        Some(ErrorCode::None) => drop(model.fetched(&expected, 0, -1, answer)),
        Some(_) if client.stage.disk_may_fail() => {}
        code => model.violation(format!("a fetch from {place} was refused with {code:?}")),
    }
    Ok(())
}

/// Writes one batch with acks=all; whether that was acknowledged.
async fn write(client: &Client, place: Place) -> Result<bool, Lost> {
    let maker = client.stage.new_maker();
    let ids: Vec<Id> = (0..3).map(|number| Id { maker, number }).collect();
    let model = &client.stage.model;
    let expected = model.expect(place);
    model.sending(place, &ids, false);
    let bytes = batch(place, &ids, client.core.wall_clock_ms(), None);
    let request = produce_request(13, -1, place, Str::default(), bytes);
    let answer = client.ask(13, &request).await?;
    let answer = &answer.responses[0].partition_responses[0];
    match ErrorCode::from_i16(answer.error_code) {
        Some(ErrorCode::None) => model.acknowledged(&expected, &ids, answer.base_offset),
        Some(_) if client.stage.disk_may_fail() => return Ok(false),
        code => model.violation(format!("a batch for {place} was refused with {code:?}")),
    }
    Ok(true)
}

/// A topic that was deleted gives nothing.
async fn must_not_serve(client: &Client, name: &str, topic: Uuid) -> Result<(), Lost> {
    let place = Place {
        topic,
        partition: 0,
    };
    let answer = client.ask(13, &fetch_request(place)).await?;
    let code = ErrorCode::from_i16(answer.responses[0].partitions[0].error_code);
    if code != Some(ErrorCode::UnknownTopicId) {
        client.stage.model.violation(format!(
            "{name} was deleted, and a fetch from {place} gets {code:?}"
        ));
    }
    Ok(())
}

fn fetch_request(place: Place) -> FetchRequest {
    let partition = FetchRequestFetchPartition {
        partition: place.partition,
        partition_max_bytes: 1 << 20,
        ..Default::default()
    };
    FetchRequest {
        max_wait_ms: 0,
        max_bytes: 1 << 20,
        topics: [FetchRequestFetchTopic {
            topic_id: place.topic,
            partitions: [partition].into(),
            ..Default::default()
        }]
        .into(),
        ..Default::default()
    }
}

/// Consumers that wait at the end of a partition are woken by what is written there.
pub async fn probe(readers: [&Client; 2], writer: &Client, place: Place) {
    let began = writer.core.now();
    let late_write = async {
        writer.core.sleep(Duration::from_millis(500)).await;
        write(writer, place).await
    };
    let waits = readers.map(|reader| wait_at_end(reader, place));
    let (read, written) = futures_util::future::join(join_all(waits), late_write).await;
    let took = writer.core.now() - began;
    if written.is_err() || read.iter().any(Result::is_err) || took > Duration::from_secs(2) {
        let what = format!("fetches that waited in {place} took {took:?} to see a record");
        writer.stage.model.violation(what);
    }
}

async fn wait_at_end(reader: &Client, place: Place) -> Result<(), Lost> {
    let mut positions = BTreeMap::from([(place, reader.stage.model.known_end(place))]);
    let mut fetcher = Fetcher::new(reader, false);
    fetcher
        .fetch(reader, &mut positions, Duration::from_secs(20))
        .await
}
