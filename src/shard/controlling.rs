//! What a core asks of the controller, which lives on core 0.

use std::future::Future;
use std::rc::Rc;

use protocol::{ErrorCode, Str};
use shards::{CoreId, TaskClass};

use super::Shard;
use crate::config::BrokerConfig;
use crate::controller::{AutoTopic, Controller, ControllerError, PRODUCER_ID_BLOCK};
use crate::metadata::OFFSETS_TOPIC;

/// The core of the controller.
const CONTROLLER_CORE: CoreId = CoreId(0);

/// Runs `ask` with the controller, on its core.
///
/// # Errors
/// The controller's, or `Stopping` where there is none (yet, or any more).
pub async fn ask_controller<R, F, Fut>(shard: &Rc<Shard>, ask: F) -> Result<R, ControllerError>
where
    R: Send + 'static,
    F: FnOnce(Rc<Controller>) -> Fut + Send + 'static,
    Fut: Future<Output = Result<R, ControllerError>> + 'static,
{
    let there = move |shard: &Rc<Shard>| {
        let asked = shard
            .controller
            .get()
            .map(|controller| ask(controller.clone()));
        async move {
            match asked {
                Some(asked) => asked.await,
                None => Err(ControllerError::Stopping),
            }
        }
    };
    shard
        .mesh()
        .call(CONTROLLER_CORE, TaskClass::Background, there)
        .await
}

/// Creates topics that somebody asked for by name. Returns those that could not be, with the
/// reason. On return every core serves the others.
pub async fn auto_create(shard: &Rc<Shard>, names: Vec<Str>) -> Vec<(Str, ErrorCode)> {
    let topics: Vec<AutoTopic> = names
        .iter()
        .map(|name| auto_topic(&shard.config, name.detached()))
        .collect();
    let created = ask_controller(shard, |controller| async move {
        Ok(controller.auto_create(topics).await)
    });
    created
        .await
        .unwrap_or_else(|error| names.into_iter().map(|name| (name, error.code())).collect())
}

/// How a topic is created that nobody created: Kafka's own ones have settings of their own.
fn auto_topic(config: &BrokerConfig, name: Str) -> AutoTopic {
    if &*name != OFFSETS_TOPIC {
        return AutoTopic {
            name,
            ..AutoTopic::default()
        };
    }
    let offsets = &config.offsets;
    AutoTopic {
        name,
        partitions: Some(offsets.topic_partitions),
        replication: Some(offsets.topic_replication_factor),
        configs: offsets
            .topic_overrides()
            .into_iter()
            .map(|(key, value)| (Str::from(key), Str::from(value)))
            .collect(),
    }
}

/// A producer id that nobody has: from this core's block, or the first of a new block.
///
/// # Errors
/// The controller's code.
pub async fn next_producer_id(shard: &Rc<Shard>) -> Result<i64, ErrorCode> {
    loop {
        if let Some(id) = shard.producer_ids.borrow_mut().next() {
            return Ok(id);
        }
        let asked = ask_controller(shard, |controller| async move {
            controller.producer_ids().await
        });
        let first = asked.await.map_err(|error| error.code())?;
        let mut ids = shard.producer_ids.borrow_mut();
        // Another request may have brought a block meanwhile; this one is then left unused.
        if ids.is_empty() {
            *ids = first..first + PRODUCER_ID_BLOCK;
        }
    }
}
