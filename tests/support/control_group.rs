//! A control group with a limit of memory, below the group of this process.
use std::fs;
use std::path::{Path, PathBuf};

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
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.path);
    }
}
