//! Byte budgets from the memory that the process may use: the control group's limit, else the
//! host's memory. Everything the broker buffers is a share of it.

use std::fs;
use std::path::Path;

const MIB: u64 = 1 << 20;

/// What each core may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budgets {
    /// Requests that were read and not answered. One request at a time may come on top, see
    /// [`shards::sync::Permit::grow_to`].
    pub requests: u64,
    /// Record bytes that answers refer to.
    pub responses: u64,
    /// Recent batches kept for readers.
    pub batch_cache: u64,
    /// Indexes of sealed segments.
    pub index_cache: u64,
    /// Buffers that the kernel receives into.
    pub receive_pool: u64,
}

impl Budgets {
    /// Shares of `total` bytes for each of `cores`. Together they stay below half of it: the rest is
    /// for the page cache, and for what is counted in pieces and not in bytes.
    pub fn new(total: u64, cores: u64, queued_max_bytes: Option<u64>) -> Self {
        let share = |part: u64, least: u64, most: u64| {
            let all = (total / part).clamp(least, most);
            (all / cores).max(MIB)
        };
        Budgets {
            requests: match queued_max_bytes {
                Some(bytes) => (bytes / cores).max(MIB),
                None => share(10, 16 * MIB, 2048 * MIB),
            },
            responses: share(8, 16 * MIB, 2048 * MIB),
            batch_cache: share(8, 16 * MIB, 1024 * MIB),
            index_cache: share(64, 2 * MIB, 128 * MIB),
            receive_pool: share(64, 2 * MIB, 64 * MIB),
        }
    }
}

/// Bytes that this process may use.
pub fn memory_limit() -> u64 {
    let host = host_memory(&fs::read_to_string("/proc/meminfo").unwrap_or_default());
    let group = control_group_limit(Path::new("/sys/fs/cgroup"));
    group.map_or(host, |limit| limit.min(host))
}

/// `MemTotal` of /proc/meminfo, in bytes; 1 GiB where it cannot be read.
fn host_memory(meminfo: &str) -> u64 {
    let kib = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))
        .and_then(|rest| {
            rest.trim()
                .trim_end_matches("kB")
                .trim()
                .parse::<u64>()
                .ok()
        });
    kib.map_or(1024 * MIB, |kib| kib * 1024)
}

/// The limit of this process's control group: version 2 (`memory.max`), else version 1. A container
/// sees its own group at the root.
fn control_group_limit(root: &Path) -> Option<u64> {
    ["memory.max", "memory/memory.limit_in_bytes"]
        .iter()
        .filter_map(|file| fs::read_to_string(root.join(file)).ok())
        .filter_map(|text| text.trim().parse::<u64>().ok())
        .min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_stay_below_half_of_the_memory() {
        for (total, cores) in [(256 * MIB, 1), (1024 * MIB, 2), (24 * 1024 * MIB, 16)] {
            let budgets = Budgets::new(total, cores, None);
            let one_request = budgets.requests.min(100 * MIB);
            let sum = budgets.requests
                + one_request
                + budgets.responses
                + budgets.batch_cache
                + budgets.index_cache
                + budgets.receive_pool;
            assert!(sum * cores <= total / 2, "{total} {cores} {budgets:?}");
        }
    }

    #[test]
    fn a_limit_by_configuration_counts() {
        assert_eq!(Budgets::new(1 << 33, 2, Some(64 * MIB)).requests, 32 * MIB);
    }

    #[test]
    fn host_memory_is_read() {
        assert_eq!(
            host_memory("MemTotal:       24612312 kB\nMemFree: 1 kB\n"),
            24_612_312 * 1024
        );
        assert_eq!(host_memory(""), 1024 * MIB);
    }
}
