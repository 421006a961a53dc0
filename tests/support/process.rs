//! Child processes that never outlive the test, whichever way it ends.
use std::io::Write;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::clock;

/// A child that is killed when this value, or the whole test process, goes away.
pub struct Process {
    child: Child,
    watchdog: Option<(Child, ChildStdin)>,
}

impl Process {
    pub fn spawn(command: &mut Command) -> Self {
        let child = command
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        // Its input ends when this process does, however that comes about; a word before the end calls it off.
        let mut watchdog = Command::new("sh")
            .args(["-c", "read word || kill -9 \"$0\"", &child.id().to_string()])
            .stdin(Stdio::piped())
            .spawn()
            .expect("sh starts");
        let input = watchdog.stdin.take().expect("a pipe");
        Self {
            child,
            watchdog: Some((watchdog, input)),
        }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    pub fn signal(&self, signal: Signal) {
        let id = Pid::from_child(&self.child);
        kill_process(id, signal).expect("the child is not reaped yet");
    }

    /// The status of a process that has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("a child can be waited for")
    }

    pub fn wait_within(&mut self, limit: Duration, what: &str) -> ExitStatus {
        let status = clock::wait_within(limit, &format!("the end of {what}"), || self.ended());
        self.call_off();
        status
    }

    /// Kills it with SIGKILL, and returns when it is gone.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.call_off();
    }

    fn call_off(&mut self) {
        if let Some((mut watchdog, mut input)) = self.watchdog.take() {
            let _ = input.write_all(b"done\n");
            drop(input);
            let _ = watchdog.wait();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}
