//! What the target, the machine and the generator itself spend, from /proc.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// Processor time and memory of a process at one moment.
#[derive(Clone, Copy, Default, Debug)]
pub struct Process {
    /// Seconds of processor time, user and system, threads that ended included.
    pub cpu: f64,
    /// Bytes resident.
    pub resident: u64,
    /// Voluntary and involuntary switches of the threads that live.
    pub switches: u64,
}

impl Process {
    pub fn read(pid: u32) -> Result<Self> {
        let folder = format!("/proc/{pid}");
        let stat = fs::read_to_string(format!("{folder}/stat"))
            .with_context(|| format!("process {pid} is gone"))?;
        // The name in brackets may hold blanks; fields are counted behind it. utime and stime are 14 and 15 in proc(5).
        let fields: Vec<&str> = stat
            .rsplit(')')
            .next()
            .unwrap_or_default()
            .split_whitespace()
            .collect();
        let ticks: u64 = [11, 12]
            .iter()
            .filter_map(|at| fields.get(*at)?.parse::<u64>().ok())
            .sum();
        Ok(Self {
            cpu: ticks as f64 / ticks_per_second(),
            resident: resident(&folder),
            switches: switches(&folder),
        })
    }
}

fn ticks_per_second() -> f64 {
    rustix::param::clock_ticks_per_second() as f64
}

fn resident(folder: &str) -> u64 {
    kibibytes(
        &fs::read_to_string(format!("{folder}/status")).unwrap_or_default(),
        "VmRSS:",
    )
}

fn kibibytes(status: &str, field: &str) -> u64 {
    let line = status.lines().find(|line| line.starts_with(field));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok())
        .unwrap_or(0)
        << 10
}

fn switches(folder: &str) -> u64 {
    let Ok(tasks) = fs::read_dir(format!("{folder}/task")) else {
        return 0;
    };
    let count = |task: fs::DirEntry| -> u64 {
        let status = fs::read_to_string(task.path().join("status")).unwrap_or_default();
        let lines = status
            .lines()
            .filter(|line| line.contains("ctxt_switches:"));
        lines
            .filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok())
            .sum()
    };
    tasks.filter_map(Result::ok).map(count).sum()
}

/// Seconds that all processors were busy: kernel workers and interrupts too, which no process is charged for.
pub fn machine_busy() -> f64 {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let fields: Vec<u64> = stat
        .lines()
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .skip(1)
        .filter_map(|field| field.parse().ok())
        .collect();
    // user, nice, system, idle, iowait, irq, softirq, steal; guest time is in user already.
    let busy = [0, 1, 2, 5, 6]
        .iter()
        .filter_map(|at| fields.get(*at))
        .sum::<u64>();
    busy as f64 / ticks_per_second()
}

/// The process that listens on a TCP port of this machine, if we may see it.
pub fn listener(port: u16) -> Option<u32> {
    let mut inodes = Vec::new();
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
        for line in fs::read_to_string(table)
            .unwrap_or_default()
            .lines()
            .skip(1)
        {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let (Some(local), Some(state), Some(inode)) =
                (fields.get(1), fields.get(3), fields.get(9))
            else {
                continue;
            };
            // 0A is LISTEN.
            if *state == "0A" && local.rsplit(':').next() == Some(format!("{port:04X}").as_str()) {
                inodes.push(format!("socket:[{inode}]"));
            }
        }
    }
    let holds = |process: &Path| -> bool {
        let Ok(descriptors) = fs::read_dir(process.join("fd")) else {
            return false;
        };
        descriptors
            .filter_map(Result::ok)
            .filter_map(|descriptor| fs::read_link(descriptor.path()).ok())
            .any(|link| {
                inodes
                    .iter()
                    .any(|inode| link.as_os_str() == inode.as_str())
            })
    };
    let processes = fs::read_dir("/proc").ok()?.filter_map(Result::ok);
    processes
        .filter(|entry| holds(&entry.path()))
        .find_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The machine, for results.
#[derive(
    Clone,
    Debug,
    serde::Serialize,
    serde::Deserialize,
    rkyv::Archive,
    rkyv::Serialize,
    rkyv::Deserialize,
)]
pub struct Machine {
    pub host: String,
    pub kernel: String,
    pub processor: String,
    pub cores: u32,
    pub memory: u64,
}

impl Machine {
    pub fn read() -> Self {
        let trimmed = |path: &str| {
            fs::read_to_string(path)
                .unwrap_or_default()
                .trim()
                .to_owned()
        };
        let processors = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = processors
            .lines()
            .find(|line| line.starts_with("model name"));
        Self {
            host: trimmed("/proc/sys/kernel/hostname"),
            kernel: trimmed("/proc/sys/kernel/osrelease"),
            processor: model
                .and_then(|line| line.split(": ").nth(1))
                .unwrap_or("unknown")
                .to_owned(),
            cores: std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32),
            memory: kibibytes(
                &fs::read_to_string("/proc/meminfo").unwrap_or_default(),
                "MemTotal:",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listening_port_is_found_with_its_process() {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = socket.local_addr().expect("an address").port();
        assert_eq!(listener(port), Some(std::process::id()));
        drop(socket);
        assert_eq!(listener(port), None);
    }

    fn own() -> Process {
        Process::read(std::process::id()).expect("own process")
    }

    #[test]
    fn own_work_shows_in_processor_time() {
        let before = (own(), machine_busy());
        let mut value = 1_u64;
        while own().cpu < before.0.cpu + 0.05 {
            for _ in 0..100_000 {
                value = std::hint::black_box(value.wrapping_mul(3));
            }
        }
        let after = own();
        // Switches are those of the threads that live: they are fewer where other tests have ended meanwhile.
        assert!(after.resident > 0 && after.switches > 0);
        assert!(machine_busy() >= before.1 + 0.03);
    }

    #[test]
    fn a_process_that_is_gone_is_an_error() {
        assert!(Process::read(u32::MAX).is_err());
    }
}
