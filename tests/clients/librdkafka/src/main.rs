//! The driver of librdkafka; README.md of the folder above has the commands.
mod consume;
mod group;
mod produce;
mod record;

use std::error::Error;
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;

pub type Outcome = Result<(), Box<dyn Error>>;

/// How long one poll may wait before it looks at standard input again.
pub const POLL: Duration = Duration::from_millis(200);

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [command, bootstrap, rest @ ..] = arguments.as_slice() else {
        return Err("wanted: COMMAND BOOTSTRAP ARGUMENTS...".into());
    };
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", bootstrap);
    let mut words = Vec::new();
    for argument in rest {
        match argument.split_once('=') {
            Some((name, value)) => {
                config.set(name, value);
            }
            None => words.push(argument.as_str()),
        }
    }
    match (command.as_str(), words.as_slice()) {
        ("create", topics) => create(&config, topics),
        ("produce", [topic]) => produce::run(config, topic),
        ("consume", [topic, partitions]) => consume::run(config, topic, partitions.parse()?),
        ("group", [topic, group]) => group::run(config, topic, group),
        _ => Err(format!("no command {command} with {words:?}").into()),
    }
}

fn create(config: &ClientConfig, topics: &[&str]) -> Outcome {
    let admin: AdminClient<DefaultClientContext> = config.create()?;
    let mut wanted = Vec::new();
    for topic in topics {
        let (name, partitions) = topic.split_once(':').ok_or("wanted: TOPIC:PARTITIONS")?;
        wanted.push(NewTopic::new(
            name,
            partitions.parse()?,
            TopicReplication::Fixed(1),
        ));
    }
    let created = admin.create_topics(&wanted, &AdminOptions::new());
    for result in futures_executor::block_on(created)? {
        let name = result.map_err(|(name, code)| format!("{name}: {code}"))?;
        println!("created {name}");
    }
    Ok(())
}
