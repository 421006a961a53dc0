//! `ringmain get-offsets`: the offsets of a moment in each partition.

use std::collections::BTreeMap;
use std::io::Write;

use clap::Args;
use protocol::Str;

use super::Failure;
use super::admin::{describe_topics, list_offsets, list_topics};
use super::client::{Client, Partition};
use super::flags::Brokers;
use super::pattern::Pattern;

/// How many partitions one answer may describe.
const DESCRIBE_LIMIT: i32 = 2000;

#[derive(Args, Debug)]
pub struct GetOffsetsArgs {
    #[command(flatten)]
    brokers: Brokers,
    /// Topics and partitions: TOPIC:1, TOPIC:0-3 (3 is not in), TOPIC:5-, TOPIC:-3, TOPIC, :1; the topic is a regular expression
    #[arg(long, value_name = "PATTERN,...", conflicts_with_all = ["topic", "partitions"])]
    topic_partitions: Option<String>,
    /// The topics, as a regular expression; without it all
    #[arg(long)]
    topic: Option<String>,
    /// The partitions; without it all
    #[arg(long, value_name = "NUMBER,...")]
    partitions: Option<String>,
    /// The moment: earliest, latest, max-timestamp, earliest-local, latest-tiered, earliest-pending-upload, or a time in
    /// milliseconds
    #[arg(
        long,
        value_name = "MOMENT",
        default_value = "latest",
        allow_hyphen_values = true
    )]
    time: String,
    /// Leave out the topics that brokers write themselves
    #[arg(long)]
    exclude_internal_topics: bool,
}

pub(super) fn run(arguments: &GetOffsetsArgs, out: &mut dyn Write) -> Result<(), Failure> {
    run_or_say(arguments, out).map_err(|failure| Failure::new(format!("Error occurred: {failure}")))
}

fn run_or_say(arguments: &GetOffsetsArgs, out: &mut dyn Write) -> Result<(), Failure> {
    let moment = moment(&arguments.time)?;
    let choice = Choice::new(arguments)?;
    let mut client = arguments.brokers.connect()?;
    let wanted: BTreeMap<Partition, i64> = chosen(&mut client, &choice, arguments)?
        .into_iter()
        .map(|partition| (partition, moment))
        .collect();
    if wanted.is_empty() {
        return Err(Failure::new(
            "Could not match any topic-partitions with the specified filters",
        ));
    }
    let mut lines = Vec::new();
    for (partition, result) in list_offsets(&mut client, &wanted)? {
        match result {
            Ok(offset) if offset >= 0 => lines.push((partition.to_string(), partition, offset)),
            Ok(_) => {}
            // Not the end of the tool: others have their offsets.
            Err(error) => {
                let _ = writeln!(
                    std::io::stderr(),
                    "Skip getting offsets for topic-partition {partition} due to error: {error}"
                );
            }
        }
    }
    // Kafka's order is that of the names with their numbers as text.
    lines.sort();
    for (_, partition, offset) in lines {
        writeln!(out, "{}:{}:{offset}", partition.topic, partition.number)?;
    }
    Ok(())
}

fn moment(text: &str) -> Result<i64, Failure> {
    match text {
        "latest" => Ok(-1),
        "earliest" => Ok(-2),
        "max-timestamp" => Ok(-3),
        "earliest-local" => Ok(-4),
        "latest-tiered" => Ok(-5),
        "earliest-pending-upload" => Ok(-6),
        number => number.parse().map_err(|_| {
            Failure::new(format!(
                "Malformed time argument {number}. Please use -1 or latest / -2 or earliest / -3 or max-timestamp / \
                 -4 or earliest-local / -5 or latest-tiered / -6 or earliest-pending-upload, or a specified long \
                 format timestamp"
            ))
        }),
    }
}

fn chosen(
    client: &mut Client,
    choice: &Choice,
    arguments: &GetOffsetsArgs,
) -> Result<Vec<Partition>, Failure> {
    let names: Vec<Str> = list_topics(client)?
        .into_iter()
        .filter(|topic| !(arguments.exclude_internal_topics && topic.internal))
        .map(|topic| topic.name)
        .filter(|name| choice.rules.iter().any(|(topic, _)| topic.matches(name)))
        .collect();
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let mut partitions = Vec::new();
    for topic in describe_topics(client, &names, DESCRIBE_LIMIT)? {
        let numbers = topic.partitions.iter().map(|partition| partition.number);
        let fitting = numbers.filter(|&number| choice.has(&topic.name, number));
        partitions.extend(fitting.map(|number| Partition {
            topic: topic.name.clone(),
            number,
        }));
    }
    Ok(partitions)
}

/// Which partitions are asked for: one rule of these must fit.
struct Choice {
    rules: Vec<(Pattern, Numbers)>,
}

/// Which numbers a rule lets through.
#[derive(Debug, PartialEq, Eq)]
enum Numbers {
    All,
    These(Vec<i32>),
    /// The second is not in.
    Range(i32, i32),
}

impl Choice {
    fn new(arguments: &GetOffsetsArgs) -> Result<Choice, Failure> {
        let rules = match &arguments.topic_partitions {
            Some(list) => list.split(',').map(rule).collect::<Result<_, _>>()?,
            None => {
                let topic = Pattern::of_list(arguments.topic.as_deref().unwrap_or(".*"))?;
                let numbers = arguments.partitions.as_deref().unwrap_or_default();
                vec![(topic, listed(numbers)?)]
            }
        };
        Ok(Choice { rules })
    }

    fn has(&self, topic: &str, number: i32) -> bool {
        self.rules.iter().any(|(pattern, numbers)| {
            pattern.matches(topic)
                && match numbers {
                    Numbers::All => true,
                    Numbers::These(these) => these.contains(&number),
                    Numbers::Range(from, to) => (*from..*to).contains(&number),
                }
        })
    }
}

fn listed(text: &str) -> Result<Numbers, Failure> {
    if text.is_empty() {
        return Ok(Numbers::All);
    }
    let numbers: Result<Vec<i32>, _> = text.split(',').map(str::parse).collect();
    numbers.map(Numbers::These).map_err(|_| {
        Failure::new(format!(
            "--partitions expects a comma separated list of numeric partition ids, but received: {text}"
        ))
    })
}

/// `TOPIC`, `TOPIC:NUMBER`, `TOPIC:FROM-TO`, either end of it left out.
fn rule(text: &str) -> Result<(Pattern, Numbers), Failure> {
    let wrong = || Failure::new(format!("Invalid rule specification: {text}"));
    let (topic, numbers) = text.split_once(':').unwrap_or((text, ""));
    let number = |part: &str, without: i32| match part {
        "" => Ok(without),
        part => part.parse::<i32>().map_err(|_| wrong()),
    };
    let numbers = match numbers.split_once('-') {
        Some((from, to)) => Numbers::Range(number(from, 0)?, number(to, i32::MAX)?),
        None if numbers.is_empty() => Numbers::All,
        None => Numbers::These(vec![number(numbers, 0)?]),
    };
    let topic = if topic.is_empty() { ".*" } else { topic };
    Ok((Pattern::of_list(topic)?, numbers))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_name_topics_and_ranges() {
        let numbers = |text: &str| rule(text).ok().map(|(_, numbers)| numbers);
        assert_eq!(numbers("a"), Some(Numbers::All));
        assert_eq!(numbers("a:3"), Some(Numbers::These(vec![3])));
        assert_eq!(numbers(":0-3"), Some(Numbers::Range(0, 3)));
        assert_eq!(numbers("a:5-"), Some(Numbers::Range(5, i32::MAX)));
        assert_eq!(numbers("a:-3"), Some(Numbers::Range(0, 3)));
        assert_eq!(numbers("a:x"), None);
    }
}
