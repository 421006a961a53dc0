//! Control groups below the group of this process: one with a limit of memory, one whose waiting is counted.
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub struct ControlGroup {
    pub path: PathBuf,
}

impl ControlGroup {
    /// A group that may use so many bytes; none where the system allows none.
    pub fn of_memory(name: &str, bytes: u64) -> Option<Self> {
        let membership = fs::read_to_string("/proc/self/cgroup").ok()?;
        let mut lines = membership.lines();
        let (line, root, file) = match lines.clone().find(|line| line.contains(":memory:")) {
            Some(line) => (line, "/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            None => (
                lines.find(|line| line.starts_with("0::"))?,
                "/sys/fs/cgroup",
                "memory.max",
            ),
        };
        let own = line.rsplit(':').next()?.trim_start_matches('/');
        let unique = format!("ringmain-{name}-{}", std::process::id());
        let path = Path::new(root).join(own).join(unique);
        fs::create_dir(&path).ok()?;
        let group = Self { path };
        fs::write(group.path.join(file), bytes.to_string()).ok()?;
        Some(group)
    }

    /// A group whose processes are counted while they wait for a resource; none where the system counts nothing.
    pub fn of_pressure(name: &str) -> Option<Self> {
        let membership = fs::read_to_string("/proc/self/cgroup").ok()?;
        let own = membership
            .lines()
            .find_map(|line| line.strip_prefix("0::/"))?;
        let unique = format!("ringmain-{name}-{}", std::process::id());
        // Beside hierarchies of version 1, that of version 2 lies in a folder of its own.
        let roots = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"];
        let root = roots
            .into_iter()
            .find(|root| Path::new(root).join("cgroup.controllers").is_file())?;
        let path = Path::new(root).join(own).join(unique);
        fs::create_dir(&path).ok()?;
        let group = Self { path };
        group.path.join("io.pressure").is_file().then_some(group)
    }

    /// For how long any process of the group has waited for `io`, `memory` or `cpu`, ever.
    pub fn waited(&self, resource: &str) -> Duration {
        let path = self.path.join(format!("{resource}.pressure"));
        let text = fs::read_to_string(&path).expect("pressure is counted");
        let some = text.lines().find(|line| line.starts_with("some "));
        let total = some.and_then(|line| line.split("total=").nth(1));
        let micros = total.and_then(|total| total.trim().parse().ok());
        Duration::from_micros(micros.unwrap_or_else(|| panic!("{}: {text}", path.display())))
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.path);
    }
}
