//! Groups that do not get out of a rebalance, and whom they wait for.

use std::collections::BTreeMap;
use std::thread::sleep;

use protocol::Str;
use protocol::messages::{
    ConsumerGroupDescribeRequest, DescribeGroupsRequest, DescribeGroupsResponseDescribedGroup,
    ListGroupsRequest,
};

use super::super::Failure;
use super::super::client::{Client, ClientError, Node};
use super::super::waiting::waiting_for;
use super::Patient;
use super::report::Report;

/// States in which members get nothing to do.
const UNSETTLED: &[&str] = &[
    "PreparingRebalance",
    "CompletingRebalance",
    "Assigning",
    "Reconciling",
];
/// Groups that are looked at in detail.
const NAMED_MAX: usize = 20;

/// A group in the middle of a rebalance.
struct Unsettled {
    node: Node,
    group: Str,
    state: String,
    /// With the newer protocol (KIP-848).
    newer: bool,
}

pub(super) fn examine(patient: &mut Patient, report: &mut Report<'_>) -> Result<(), Failure> {
    report.section("Groups")?;
    let nodes: Vec<_> = patient
        .brokers
        .iter()
        .map(|(id, node, _)| (*id, *node))
        .collect();
    let (mut count, mut unsettled) = (0, Vec::new());
    for (id, node) in nodes {
        match list(&mut patient.client, node) {
            Ok((here, in_rebalance)) => {
                count += here;
                unsettled.extend(in_rebalance);
            }
            Err(error) => report.bad(
                &format!("broker {id} does not tell of its groups: {error}"),
                "look whether it runs; while it loads __consumer_offsets this passes",
            )?,
        }
    }
    // What moves is well: only who stands still is stuck.
    let watching = waiting_for(|| "watching groups and limits".to_owned());
    sleep(patient.watch);
    drop(watching);
    let waits = waits(patient);
    let mut stuck = 0;
    for before in unsettled.iter().take(NAMED_MAX) {
        if let Some(found) = still(&mut patient.client, before)? {
            stuck += 1;
            tell(before, &found, &waits, report)?;
        }
    }
    if stuck == 0 {
        report.ok(&format!("{}, none stuck", super::plural(count, "group")))?;
    }
    Ok(())
}

fn list(client: &mut Client, node: Node) -> Result<(usize, Vec<Unsettled>), ClientError> {
    let answer = client.send(node, &ListGroupsRequest::default())?;
    ClientError::check(answer.error_code, None)?;
    let count = answer.groups.len();
    let mut unsettled = Vec::new();
    for group in answer.groups {
        let newer = group.group_type.eq_ignore_ascii_case("consumer");
        // Brokers before 2.6 do not say the state: it is asked for.
        if UNSETTLED.contains(&&*group.group_state) || group.group_state.is_empty() {
            let state = group.group_state.to_string();
            unsettled.push(Unsettled {
                node,
                group: group.group_id,
                state,
                newer,
            });
        }
    }
    Ok((count, unsettled))
}

/// What a group that has not moved looks like: its state, and its members with those that are behind first.
struct Found {
    state: String,
    members: Vec<String>,
    behind: Vec<String>,
}

/// None where it has settled, or is in another state than before.
fn still(client: &mut Client, before: &Unsettled) -> Result<Option<Found>, ClientError> {
    let found = match before.newer {
        true => newer(client, before)?,
        false => classic(client, before)?,
    };
    let same = before.state.is_empty() || before.state == found.state;
    Ok(Some(found).filter(|it| same && UNSETTLED.contains(&&*it.state)))
}

fn classic(client: &mut Client, before: &Unsettled) -> Result<Found, ClientError> {
    let request = DescribeGroupsRequest {
        groups: [before.group.clone()].into(),
        ..DescribeGroupsRequest::default()
    };
    let answer = client.send(before.node, &request)?;
    let group: DescribeGroupsResponseDescribedGroup =
        answer.groups.into_iter().next().unwrap_or_default();
    let members = group.members.iter();
    Ok(Found {
        state: group.group_state.to_string(),
        members: members
            .map(|it| member(&it.member_id, &it.client_id, &it.client_host))
            .collect(),
        behind: Vec::new(),
    })
}

fn newer(client: &mut Client, before: &Unsettled) -> Result<Found, ClientError> {
    let request = ConsumerGroupDescribeRequest {
        group_ids: [before.group.clone()].into(),
        ..ConsumerGroupDescribeRequest::default()
    };
    let answer = client.send(before.node, &request)?;
    let group = answer.groups.into_iter().next().unwrap_or_default();
    let named = |late: bool| {
        let members = group.members.iter();
        members
            .filter(|it| {
                !late
                    || it.member_epoch < group.group_epoch
                    || it.assignment != it.target_assignment
            })
            .map(|it| member(&it.member_id, &it.client_id, &it.client_host))
            .collect()
    };
    Ok(Found {
        state: group.group_state.to_string(),
        members: named(false),
        behind: named(true),
    })
}

fn member(id: &str, client: &str, host: &str) -> String {
    format!("{client} at {} (member {id})", host.trim_start_matches('/'))
}

/// Whom each group waits for and since when, where the broker says so.
fn waits(patient: &Patient) -> BTreeMap<String, (Option<u64>, Vec<String>)> {
    let state = patient.http.as_ref().and_then(|port| port.state().ok());
    let state = state.unwrap_or_default();
    let all = state["rebalances"].as_array().into_iter().flatten();
    all.filter_map(|one| {
        let awaited = one["awaited"].as_array()?.iter();
        let text =
            |value: &serde_json::Value, key: &str| value[key].as_str().unwrap_or("").to_owned();
        let awaited = awaited
            .map(|it| {
                member(
                    &text(it, "member_id"),
                    &text(it, "client_id"),
                    &text(it, "host"),
                )
            })
            .collect();
        Some((
            one["group"].as_str()?.to_owned(),
            (one["seconds"].as_u64(), awaited),
        ))
    })
    .collect()
}

fn tell(
    group: &Unsettled,
    found: &Found,
    waits: &BTreeMap<String, (Option<u64>, Vec<String>)>,
    report: &mut Report<'_>,
) -> Result<(), Failure> {
    let known = waits.get(&*group.group);
    let seconds = known.and_then(|(seconds, _)| *seconds);
    let since = seconds.map_or_else(String::new, |seconds| format!(" for {seconds} s"));
    let awaited = known.map_or(&found.behind, |(_, awaited)| awaited);
    let whom = match awaited.as_slice() {
        [] if found.members.is_empty() => String::new(),
        [] => format!("; its members are {}", super::some_of(&found.members)),
        awaited => format!("; it waits for {}", super::some_of(awaited)),
    };
    report.bad(
        &format!("group {} is in {}{since}{whom}", group.group, found.state),
        "look at that client: it holds its place and does not call poll; it is thrown out after its max.poll.interval.ms",
    )?;
    Ok(())
}
