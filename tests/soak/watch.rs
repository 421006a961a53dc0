//! Looks at the broker from time to time, and says at the end whether anything has grown.
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::Until;
use crate::support::clock;
use crate::support::scrape::sums;

type Sample = BTreeMap<String, f64>;

const SHOWN: &[(&str, &str)] = &[
    ("MiB", "process_resident_bytes"),
    ("cache", "storage_cache_bytes"),
    ("fds", "process_open_descriptors"),
    ("tasks", "core_tasks_alive"),
    ("mail", "core_mailbox_depth"),
    ("overflow", "core_lane_overflow_waiting"),
    ("flight", "core_operations_in_flight"),
    ("open", "connections"),
    ("unanswered", "unanswered_requests"),
    ("parts", "partitions"),
    ("offline", "partitions_offline"),
    ("groups", "groups"),
    ("sessions", "fetch_sessions"),
    ("requests", "requests_total"),
    ("errors", "request_errors_total"),
    ("bad", "bad_requests_total"),
    ("stalls", "core_stalls_total"),
    ("cpu s", "process_cpu_seconds_total"),
];

fn value(sample: &Sample, name: &str) -> f64 {
    sample
        .get(&format!("ringmain_{name}"))
        .copied()
        .unwrap_or_default()
}

/// Resident memory without the caches, which have budgets of their own and fill up.
fn own_memory(sample: &Sample) -> f64 {
    value(sample, "process_resident_bytes")
        - value(sample, "storage_cache_bytes")
        - value(sample, "storage_index_cache_bytes")
}

fn show(sample: &Sample, seconds: u64) {
    let shown = SHOWN.iter().map(|(word, name)| {
        let value = value(sample, name);
        let value = if name.ends_with("_bytes") {
            value / f64::from(1 << 20)
        } else {
            value
        };
        format!("{word} {value:.0}")
    });
    println!("{seconds:>5} s  {}", shown.collect::<Vec<_>>().join("  "));
}

/// Samples until the end, more of them at first.
pub fn run(http: u16, until: Until, started: Instant) -> Vec<Sample> {
    let mut samples = Vec::new();
    while until.goes_on() {
        let sample = sums(http);
        let seconds = (clock::now() - started).as_secs();
        show(&sample, seconds);
        samples.push(sample);
        let next = clock::now() + Duration::from_secs(5.max(seconds / 10).min(60));
        while until.goes_on() && clock::now() < next {
            clock::pause(Duration::from_millis(200));
        }
    }
    samples
}

/// At rest again, there is no more of anything than there was early in the work.
pub fn judge(http: u16, samples: &[Sample]) {
    // Connections that were left alone are closed by the broker, so what they held is gone.
    let rest = clock::wait_for("the broker to be at rest", || {
        let now = sums(http);
        let quiet = [
            "connections",
            "unanswered_requests",
            "parked",
            "core_mailbox_depth",
            // Members that were killed at the end are waited for until their session is over.
            "groups_rebalancing",
        ];
        quiet
            .iter()
            .all(|name| value(&now, name) == 0.0)
            .then_some(now)
    });
    println!("at rest:");
    show(&rest, 0);
    for name in ["core_lane_overflow_waiting", "partitions_offline"] {
        assert_eq!(value(&rest, name), 0.0, "{name}");
    }
    assert_eq!(value(&rest, "request_memory_bytes"), 0.0);
    assert_eq!(value(&rest, "response_memory_bytes"), 0.0);
    let early = &samples[samples.len() / 4];
    let grown = |name: &str| value(&rest, name) - value(early, name);
    assert!(
        grown("process_open_descriptors") < 16.0,
        "descriptors: {}",
        grown("process_open_descriptors")
    );
    assert!(
        grown("core_tasks_alive") < 16.0,
        "tasks: {}",
        grown("core_tasks_alive")
    );
    assert!(grown("core_operations_in_flight") < 16.0);
    // Half as much again, and what an allocator keeps.
    let (before, after) = (own_memory(early), own_memory(&rest));
    assert!(
        after < 1.5 * before + f64::from(32 << 20),
        "memory grew from {before} to {after}"
    );
}
