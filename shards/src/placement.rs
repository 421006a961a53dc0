//! Which CPUs this process may use, and how many cores' worth of time.

use std::fs;

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
    let membership = fs::read_to_string("/proc/self/cgroup").ok()?;
    let mut least: Option<f64> = None;
    for line in membership.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) =
            (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let quota: fn(&str) -> Option<f64> = if controllers.is_empty() {
            |directory| {
                parse_v2(&fs::read_to_string(format!("/sys/fs/cgroup{directory}/cpu.max")).ok()?)
            }
        } else if controllers.split(',').any(|name| name == "cpu") {
            |directory| {
                let base = format!("/sys/fs/cgroup/cpu{directory}");
                let quota = fs::read_to_string(format!("{base}/cpu.cfs_quota_us")).ok()?;
                let period = fs::read_to_string(format!("{base}/cpu.cfs_period_us")).ok()?;
                parse_v2(&format!("{} {}", quota.trim(), period.trim()))
            }
        } else {
            continue;
        };
        let mut directory = path.trim_end_matches('/').to_owned();
        loop {
            if let Some(found) = quota(&directory) {
                least = Some(least.map_or(found, |least| least.min(found)));
            }
            let Some(slash) = directory.rfind('/') else {
                break;
            };
            directory.truncate(slash);
        }
    }
    least
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
    fn there_is_always_a_core() {
        assert!(default_core_count() >= 1);
        assert!(default_core_count() <= allowed_cpus().len().max(1));
    }
}
