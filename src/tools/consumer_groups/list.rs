use std::io::Write;

use protocol::Str;

use super::{ConsumerGroupsArgs, Trouble};
use crate::tools::admin::{ListedGroup, list_groups};
use crate::tools::client::{Client, ClientError};
use crate::tools::columns::{line, widest};

/// The states that a consumer group can be in.
const STATES: [&str; 7] = [
    "PreparingRebalance",
    "CompletingRebalance",
    "Stable",
    "Dead",
    "Empty",
    "Assigning",
    "Reconciling",
];
const TYPES: [&str; 2] = ["Classic", "Consumer"];

/// Groups of consumers, and those that only commit offsets.
pub(super) fn consumer_groups(
    client: &mut Client,
    states: &[Str],
    types: &[Str],
) -> Result<Vec<ListedGroup>, ClientError> {
    let all = list_groups(client, states, types)?;
    let is_consumer = |group: &ListedGroup| {
        let kind = &group.group_type;
        (group.protocol_type.is_empty() || group.protocol_type == "consumer")
            && (kind.is_empty() || TYPES.iter().any(|known| kind.eq_ignore_ascii_case(known)))
    };
    Ok(all.into_iter().filter(is_consumer).collect())
}

pub(super) fn list(
    client: &mut Client,
    arguments: &ConsumerGroupsArgs,
    out: &mut dyn Write,
) -> Result<(), Trouble> {
    let states = parse("state", arguments.state.as_deref(), &STATES)?;
    let types = parse("types", arguments.types.as_deref(), &TYPES)?;
    let groups = consumer_groups(client, &states, &types)?;
    if arguments.state.is_none() && arguments.types.is_none() {
        for group in groups {
            writeln!(out, "{}", group.group_id)?;
        }
        return Ok(());
    }
    let width = widest(groups.iter().map(|group| &*group.group_id)).max(15) + 10;
    let mut print = |group: &str, kind: &str, state: &str| {
        let kind = arguments.types.as_ref().map(|_| kind);
        let state = arguments.state.as_ref().map(|_| state);
        let cells: Vec<&str> = [group].into_iter().chain(kind).chain(state).collect();
        writeln!(out, "{}", line(&[width, 20, 20], &cells))
    };
    print("GROUP", "TYPE", "STATE")?;
    let known = |text: &str| {
        if text.is_empty() {
            "Unknown".to_owned()
        } else {
            text.to_owned()
        }
    };
    for group in &groups {
        print(
            &group.group_id,
            &known(&group.group_type),
            &known(&group.group_state),
        )?;
    }
    Ok(())
}

/// Names with commas, in any case, as brokers spell them.
fn parse(what: &str, text: Option<&str>, known: &[&'static str]) -> Result<Vec<Str>, Trouble> {
    let text = text.unwrap_or_default();
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let parse = |name: &str| {
        let found = known
            .iter()
            .find(|known| known.eq_ignore_ascii_case(name.trim()));
        found.map(|name| Str::from_static(name)).ok_or_else(|| {
            let valid = known.join(", ");
            Trouble::Usage(format!(
                "Invalid {what} list '{text}'. Valid {what} are: {valid}"
            ))
        })
    };
    text.split(',').map(parse).collect()
}
