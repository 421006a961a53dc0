//! Byte budgets from the memory that the process may use: the control group's limit, else the
//! host's memory. Everything the broker buffers is a share of it.

use std::fs;
use std::path::PathBuf;

use shards::placement::control_groups;

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
    /// What is read from disks past the page cache, for consumers that are far behind.
    pub cold_reads: u64,
    /// Large blocks that are free and kept for the next request or write.
    pub large_blocks: u64,
    /// What is remembered of idempotent producers.
    pub producers: u64,
    /// Of the page cache, what the journal on one disk may keep busy.
    pub journal: u64,
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
            responses: share(9, 16 * MIB, 2048 * MIB),
            batch_cache: share(8, 16 * MIB, 1024 * MIB),
            index_cache: share(64, 2 * MIB, 128 * MIB),
            receive_pool: share(64, 2 * MIB, 64 * MIB),
            cold_reads: share(128, 2 * MIB, 64 * MIB),
            large_blocks: share(128, MIB, 16 * MIB),
            producers: share(64, 2 * MIB, 256 * MIB),
            journal: share(32, 2 * MIB, u64::MAX),
        }
    }
}

/// Bytes that this process may use.
pub fn memory_limit() -> u64 {
    let host = host_memory(&fs::read_to_string("/proc/meminfo").unwrap_or_default());
    let group = control_group_limit(&control_groups("memory"));
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

/// The smallest limit of these control groups: of version 2 (`memory.max`), else of version 1.
fn control_group_limit(groups: &[PathBuf]) -> Option<u64> {
    let files = ["memory.max", "memory.limit_in_bytes"];
    groups
        .iter()
        .flat_map(|group| files.map(|file| group.join(file)))
        .filter_map(|file| fs::read_to_string(file).ok())
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
                + budgets.receive_pool
                + budgets.cold_reads
                + budgets.large_blocks
                + budgets.producers;
            assert!(sum * cores <= total / 2, "{total} {cores} {budgets:?}");
        }
    }

    #[test]
    fn little_memory_has_small_journals() {
        assert_eq!(Budgets::new(96 * MIB, 2, None).journal, 3 * MIB / 2);
    }

    #[test]
    fn a_limit_by_configuration_counts() {
        assert_eq!(Budgets::new(1 << 33, 2, Some(64 * MIB)).requests, 32 * MIB);
    }

    #[test]
    fn the_smallest_limit_of_all_groups_counts() {
        let root = tempfile::tempdir().expect("a directory");
        let groups = ["a/b", "a", ""].map(|group| root.path().join(group));
        fs::create_dir_all(&groups[0]).expect("a directory");
        assert_eq!(control_group_limit(&groups), None);
        fs::write(groups[0].join("memory.max"), "max\n").expect("a file");
        fs::write(groups[1].join("memory.max"), "268435456\n").expect("a file");
        fs::write(
            groups[2].join("memory.limit_in_bytes"),
            "9223372036854771712\n",
        )
        .expect("a file");
        assert_eq!(control_group_limit(&groups), Some(256 * MIB));
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
