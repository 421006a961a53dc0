//! Who runs where: the generator and the targets on cores of their own where there are enough, all targets with the
//! same cores and the same memory limit.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// How the groups of started commands are named, before their process id.
const STARTED: &str = "ringmain-bench-started-";

/// Cores that this process may use.
pub fn own_cores() -> Result<BTreeSet<usize>> {
    Ok(members(&sched_getaffinity(None)?))
}

fn members(set: &CpuSet) -> BTreeSet<usize> {
    (0..CpuSet::MAX_CPU)
        .filter(|core| set.is_set(*core))
        .collect()
}

/// Cores of the generator and of the targets.
#[derive(Clone, Debug)]
pub struct Cores {
    pub generator: BTreeSet<usize>,
    pub targets: BTreeSet<usize>,
}

impl Cores {
    /// Gives the generator `count` cores and the targets the others; without a count, or with too few cores, all
    /// share all.
    pub fn split(count: Option<usize>) -> Result<Self> {
        let all = own_cores()?;
        match count {
            Some(count) if count >= 1 && count < all.len() => {
                let generator: BTreeSet<usize> = all.iter().copied().take(count).collect();
                let targets = all.difference(&generator).copied().collect();
                Ok(Self { generator, targets })
            }
            Some(count) => {
                ensure!(count >= 1, "--cores: at least 1");
                crate::say(&format!(
                    "warning: --cores {count} of {} leaves none for the targets: all share all",
                    all.len()
                ));
                Ok(Self {
                    generator: all.clone(),
                    targets: all,
                })
            }
            None => Ok(Self {
                generator: all.clone(),
                targets: all,
            }),
        }
    }

    pub fn are_shared(&self) -> bool {
        !self.generator.is_disjoint(&self.targets)
    }
}

fn set_of(cores: &BTreeSet<usize>) -> CpuSet {
    let mut set = CpuSet::new();
    for core in cores {
        set.set(*core);
    }
    set
}

/// Moves this thread, and those that it starts from now on, to these cores. Where that is forbidden they run on whatever
/// cores the kernel chooses.
pub fn pin_thread(cores: &BTreeSet<usize>) {
    let _ = sched_setaffinity(None, &set_of(cores));
}

/// Moves all threads of a process to these cores.
pub fn pin(pid: u32, cores: &BTreeSet<usize>) -> Result<()> {
    let set = set_of(cores);
    let tasks = fs::read_dir(format!("/proc/{pid}/task"))
        .with_context(|| format!("process {pid} is gone"))?;
    for task in tasks.filter_map(Result::ok) {
        let thread = task
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<i32>().ok())
            .and_then(rustix::thread::Pid::from_raw);
        // A thread may end while we look.
        if let Some(thread) = thread {
            let _ = sched_setaffinity(Some(thread), &set);
        }
    }
    Ok(())
}

/// The memory limit of the control group that a process is in; `None` where there is none.
pub fn memory_limit(pid: u32) -> Option<u64> {
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    let limits = groups.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let file = match controllers {
            "" => format!("/sys/fs/cgroup{path}/memory.max"),
            controllers
                if controllers
                    .split(',')
                    .any(|controller| controller == "memory") =>
            {
                format!("/sys/fs/cgroup/memory{path}/memory.limit_in_bytes")
            }
            _ => return None,
        };
        fs::read_to_string(file).ok()?.trim().parse::<u64>().ok()
    });
    // Version 1 writes "no limit" as a number near 2^63.
    limits.filter(|limit| *limit < 1 << 60).min()
}

/// A control group of ours with a memory limit; the processes go back when it is dropped.
pub struct MemoryGroup {
    folder: PathBuf,
    home: PathBuf,
    pid: u32,
}

impl MemoryGroup {
    /// Puts the process under the limit. Memory that it holds already is counted where it was charged.
    pub fn hold(name: &str, pid: u32, limit: u64) -> Result<Self> {
        let (root, _) = memory_root();
        let home = home_of(pid, &root).unwrap_or(root);
        let folder = put_under_limit(name, pid, limit)?;
        Ok(Self { folder, home, pid })
    }
}

/// Becomes a command under a memory limit of so many MiB: all that it ever holds counts, as it is there from the start.
///
/// # Errors
/// Without root or control groups, and where the command cannot be run. It does not return otherwise.
pub fn start(memory: u64, command: &[String]) -> Result<()> {
    let (program, arguments) = command.split_first().context("no command")?;
    let (root, _) = memory_root();
    let ended = fs::read_dir(root).into_iter().flatten().flatten();
    for entry in ended {
        // Only those go in which no process is left: of commands that have ended.
        if entry.file_name().to_string_lossy().starts_with(STARTED) {
            let _ = fs::remove_dir(entry.path());
        }
    }
    let pid = std::process::id();
    put_under_limit(&format!("started-{pid}"), pid, memory << 20)?;
    let error = std::process::Command::new(program).args(arguments).exec();
    Err(error).with_context(|| format!("cannot run {program}"))
}

/// Where groups with memory limits are made, and the name of a limit there: version 1 or 2.
fn memory_root() -> (PathBuf, &'static str) {
    let one = PathBuf::from("/sys/fs/cgroup/memory");
    if one.is_dir() {
        (one, "memory.limit_in_bytes")
    } else {
        ("/sys/fs/cgroup".into(), "memory.max")
    }
}

fn put_under_limit(name: &str, pid: u32, limit: u64) -> Result<PathBuf> {
    let (root, file) = memory_root();
    let folder = root.join(format!("ringmain-bench-{name}"));
    let explain = || {
        format!(
            "--memory needs root and control groups at {}",
            folder.display()
        )
    };
    fs::create_dir_all(&folder).with_context(explain)?;
    fs::write(folder.join(file), limit.to_string()).with_context(explain)?;
    fs::write(folder.join("cgroup.procs"), pid.to_string()).with_context(explain)?;
    Ok(folder)
}

fn home_of(pid: u32, root: &std::path::Path) -> Option<PathBuf> {
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    let path = groups.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        (controllers.is_empty()
            || controllers
                .split(',')
                .any(|controller| controller == "memory"))
        .then_some(path)
    })?;
    Some(root.join(path.trim_start_matches('/')))
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        // Nothing to be done where it fails: the process may have ended.
        let _ = fs::write(self.home.join("cgroup.procs"), self.pid.to_string());
        let _ = fs::remove_dir(&self.folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_disjoint_where_there_are_enough() {
        let all = own_cores().expect("own cores");
        assert!(Cores::split(None).expect("a split").are_shared());
        if all.len() >= 2 {
            let cores = Cores::split(Some(1)).expect("a split");
            assert!(!cores.are_shared());
            assert_eq!(cores.generator.len() + cores.targets.len(), all.len());
        }
        assert!(Cores::split(Some(all.len())).expect("a split").are_shared());
        assert!(Cores::split(Some(0)).is_err());
    }
}
