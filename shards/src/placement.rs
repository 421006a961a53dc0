//! Which CPUs this process may use, and how many cores' worth of time.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The CPUs of the affinity mask, in order.
pub fn allowed_cpus() -> Vec<usize> {
    match sched_getaffinity(None) {
        Ok(set) => (0..CpuSet::MAX_CPU)
            .filter(|cpu| set.is_set(*cpu))
            .collect(),
        Err(_) => vec![0],
    }
}

/// One shard for each CPU of the affinity mask, but no more than the cgroup's CPU quota, rounded
/// up, and at least one.
pub fn default_core_count() -> usize {
    let cpus = allowed_cpus().len().max(1);
    match cgroup_quota() {
        Some(quota) => cpus.min((quota.ceil() as usize).max(1)),
        None => cpus,
    }
}

/// The smallest CPU quota on the way from this process's cgroup to the root, in CPUs.
fn cgroup_quota() -> Option<f64> {
    let read = |path: PathBuf| fs::read_to_string(path).ok();
    let quota = |directory: PathBuf| {
        if let Some(text) = read(directory.join("cpu.max")) {
            return parse_v2(&text);
        }
        let quota = read(directory.join("cpu.cfs_quota_us"))?;
        let period = read(directory.join("cpu.cfs_period_us"))?;
        parse_v2(&format!("{} {}", quota.trim(), period.trim()))
    };
    let quotas = control_groups("cpu").into_iter().filter_map(quota);
    quotas.reduce(f64::min)
}

/// The directories of this process's control group and of all that it lies in, of version 2 and of
/// version 1 for this controller. A limit in any of them counts; a container may see its own group at
/// the root, under whatever name the host has for it.
pub fn control_groups(controller: &str) -> Vec<PathBuf> {
    let membership = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    groups_of(&membership, controller)
}

fn groups_of(membership: &str, controller: &str) -> Vec<PathBuf> {
    let mut directories = Vec::new();
    for line in membership.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else {
            continue;
        };
        let root = match controllers {
            "" => PathBuf::from("/sys/fs/cgroup"),
            names if names.split(',').any(|name| name == controller) => {
                Path::new("/sys/fs/cgroup").join(controller)
            }
            _ => continue,
        };
        let own = Path::new(path.trim_start_matches('/'));
        directories.extend(own.ancestors().map(|group| root.join(group)));
    }
    directories
}

/// `cpu.max` of cgroup v2: "quota period" in microseconds, or "max period".
fn parse_v2(text: &str) -> Option<f64> {
    let mut fields = text.split_whitespace();
    let quota: f64 = fields.next()?.parse().ok()?;
    let period: f64 = fields.next()?.parse().ok()?;
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

/// Ties the calling thread to one CPU.
pub(crate) fn pin_to(cpu: usize) -> std::io::Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu);
    Ok(sched_setaffinity(None, &set)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quota_text_is_understood() {
        assert_eq!(parse_v2("150000 100000\n"), Some(1.5));
        assert_eq!(parse_v2("max 100000\n"), None);
        assert_eq!(parse_v2("-1 100000"), None);
        assert_eq!(parse_v2(""), None);
    }

    #[test]
    fn groups_are_found_up_to_the_root() {
        let two = groups_of("0::/system.slice/broker.service\n", "memory");
        let root = Path::new("/sys/fs/cgroup");
        assert_eq!(two[0], root.join("system.slice/broker.service"));
        assert_eq!(two[1], root.join("system.slice"));
        assert_eq!(two[2], root.join(""));
        let one = groups_of("8:cpu,cpuacct:/a\n4:memory:/b\n0::/\n", "memory");
        let wanted = ["memory/b", "memory/", ""].map(|group| root.join(group));
        assert_eq!(one, wanted);
        assert_eq!(groups_of("nonsense\n", "memory"), Vec::<PathBuf>::new());
    }

    #[test]
    fn there_is_always_a_core() {
        assert!(default_core_count() >= 1);
        assert!(default_core_count() <= allowed_cpus().len().max(1));
    }
}
