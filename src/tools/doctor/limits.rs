//! Limits that were reached, and clients that speak old versions: what only a broker of ours tells.

use serde_json::Value;

use super::super::Failure;
use super::http::Metrics;
use super::report::Report;
use super::{Patient, plural, some_of};

/// A part of a budget beyond which it is as good as used up.
const FULL: f64 = 0.9;

/// Budgets: what they are for, what is in use, what there is, the count of waits, the number of those who wait.
pub(super) const BUDGETS: &[(&str, &str, &str, &str, &str)] = &[
    (
        "memory for requests",
        "ringmain_request_memory_bytes",
        "ringmain_request_memory_limit_bytes",
        "ringmain_request_memory_waits_total",
        "ringmain_request_memory_waiting",
    ),
    (
        "memory for answers",
        "ringmain_response_memory_bytes",
        "ringmain_response_memory_limit_bytes",
        "ringmain_response_memory_waits_total",
        "ringmain_response_memory_waiting",
    ),
];

/// Counters that move only when a limit is reached or somebody misbehaves: what happened, and what to do.
pub(super) const SIGNS: &[(&str, &str, &str)] = &[
    (
        "ringmain_connections_refused_total",
        "connections were closed because their address has as many as it may have",
        "find the client that opens so many, or raise max.connections.per.ip",
    ),
    (
        "ringmain_core_recv_pool_limit_hits_total",
        "connections waited for memory to receive into",
        "give the process more memory, or spread the clients over more brokers",
    ),
    (
        "ringmain_core_lane_overflow_total",
        "messages between cores found their queue full",
        "a core is overloaded: look at ringmain_core_busy_seconds_total by core",
    ),
    (
        "ringmain_storage_full_failures_total",
        "appends failed because a disk was full",
        "make space on that disk",
    ),
    (
        "ringmain_storage_io_failures_total",
        "appends failed on a disk",
        "the log names the file and the error; repair the disk",
    ),
];

/// Tasks that held their core for too long: on a busy machine that is no fault of the broker.
pub(super) const STALLS: &str = "ringmain_core_stalls_total";
/// Those who wait for `max.connections`.
pub(super) const PARKED: &str = "ringmain_parked";
const WAITS_FOR_CONNECTIONS: &str = "accept_waits_for_max_connections";

pub(super) fn examine(
    patient: &mut Patient,
    before: Option<Metrics>,
    report: &mut Report<'_>,
) -> Result<(), Failure> {
    report.section("Limits and clients")?;
    let Some(port) = &patient.http else {
        report.note(
            "not asked: the Kafka protocol does not tell them; for a Ringmain broker set ringmain.http.listener, or name it with --http",
        )?;
        return Ok(());
    };
    let (Some(before), Ok(now), Ok(state)) = (before, port.metrics(), port.state()) else {
        report.note(&format!(
            "not asked: the HTTP port at {} does not answer",
            port.address()
        ))?;
        return Ok(());
    };
    let mut well = budgets(&before, &now, report)?;
    if now
        .by(PARKED, "reason")
        .get(WAITS_FOR_CONNECTIONS)
        .is_some_and(|count| *count > 0.0)
    {
        well = false;
        report.bad(
            "no further client is let in: there are as many connections as max.connections allows",
            "raise max.connections, or find out who opens so many (ringmain_clients)",
        )?;
    }
    for (name, what, remedy) in SIGNS {
        let (grown, all) = (now.sum(name) - before.sum(name), now.sum(name));
        if grown > 0.0 {
            well = false;
            report.bad(
                &format!("{what}: {grown} times in {} s", patient.watch.as_secs()),
                remedy,
            )?;
        } else if all > 0.0 {
            report.note(&format!("{what}: {all} times since the start, not now"))?;
        }
    }
    let stalls = now.sum(STALLS) - before.sum(STALLS);
    if stalls > 0.0 {
        report.note(&format!(
            "a task held its core for too long, {} while this watched; the log names it",
            plural(stalls as usize, "time")
        ))?;
    }
    if well {
        report.ok("no limit of memory, queues or connections is reached")?;
    }
    old_clients(&state, report)
}

fn budgets(before: &Metrics, now: &Metrics, report: &mut Report<'_>) -> Result<bool, Failure> {
    let mut well = true;
    for (what, used, limit, waits, waiting) in BUDGETS {
        let (used, limit) = (now.sum(used), now.sum(limit));
        let (held_back, grown) = (now.sum(waiting), now.sum(waits) - before.sum(waits));
        if used >= FULL * limit || held_back > 0.0 || grown > 0.0 {
            well = false;
            let mib = |bytes: f64| (bytes / f64::from(1 << 20)).ceil();
            report.bad(
                &format!(
                    "the {what} is used up: {} of {} MiB, {held_back} wait for it, {grown} had to wait while this watched",
                    mib(used),
                    mib(limit)
                ),
                "clients that send slowly or do not read their answers hold it: the log has their addresses, in lines with `closing a connection` and `the client was slow`; where it is honest load, give the process more memory, or raise queued.max.request.bytes",
            )?;
        } else if now.sum(waits) > 0.0 {
            report.note(&format!(
                "somebody had to wait for {what} {} times since the start, not now",
                now.sum(waits)
            ))?;
        }
    }
    Ok(well)
}

fn old_clients(state: &Value, report: &mut Report<'_>) -> Result<(), Failure> {
    let all: Vec<&Value> = state["old_clients"]
        .as_array()
        .into_iter()
        .flatten()
        .collect();
    let of = |answered: bool| -> Vec<String> {
        let those = all.iter().filter(|it| it["answered"] == answered);
        those.map(|it| client(it)).collect()
    };
    let (refused, served) = (of(false), of(true));
    if !refused.is_empty() {
        report.bad(
            &format!(
                "clients that cannot work here, because Kafka 4 dropped what they speak: {}",
                some_of(&refused)
            ),
            "update those clients: version 2.1 of Kafka's clients or newer",
        )?;
    }
    if !served.is_empty() {
        report.bad(
            &format!(
                "clients that speak deprecated versions: {}",
                some_of(&served)
            ),
            "update those clients before these versions are dropped",
        )?;
    }
    if all.is_empty() {
        report.ok("no client has used a deprecated version")?;
    }
    Ok(())
}

fn client(one: &Value) -> String {
    let text = |key: &str| one[key].as_str().unwrap_or_default();
    let software = format!("{} {}", text("software"), text("software_version"));
    format!(
        "{} ({}) at {}: {} version {}, {}",
        match text("client_id") {
            "" => "a client without client.id",
            id => id,
        },
        software.trim(),
        text("address"),
        text("api"),
        one["version"],
        plural(one["requests"].as_u64().unwrap_or(0) as usize, "request")
    )
}
