//! What tests of the tool as a process share: its own sink, and waiting for an end.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

pub const TOOL: &str = env!("CARGO_BIN_EXE_ringmain-bench");

/// A sink on a port of the system's choice; killed at the end.
pub struct Sink {
    pub child: Child,
    pub address: String,
}

impl Sink {
    pub fn start() -> Self {
        let mut child = Command::new(TOOL)
            .args(["sink", "--listen", "127.0.0.1:0"])
            .stderr(Stdio::piped())
            .spawn()
            .expect("a sink");
        let mut line = String::new();
        let errors = child.stderr.take().expect("standard error");
        BufReader::new(errors).read_line(&mut line).expect("a line");
        let address = line.trim().strip_prefix("sink on ").expect("an address");
        let address = address.to_owned();
        Self { child, address }
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A process, watched by a descriptor that is readable once it has ended.
pub struct Watched(rustix::fd::OwnedFd);

impl Watched {
    pub fn open(process: Pid) -> Self {
        Self(pidfd_open(process, PidfdFlags::empty()).expect("a process"))
    }

    /// Waits for its end; false where it goes on for longer than so many seconds.
    pub fn ends_within(&self, seconds: i64) -> bool {
        let patience = Timespec {
            tv_sec: seconds,
            tv_nsec: 0,
        };
        let mut ended = [PollFd::new(&self.0, PollFlags::IN)];
        poll(&mut ended, Some(&patience)).expect("a poll") == 1
    }
}
