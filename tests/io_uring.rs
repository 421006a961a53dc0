//! Machines that keep io_uring from the broker: it says so in one line, with the remedy, and serves all the same; or, where
//! the limit is one that the operator should raise, it says that and does not start. And machines that keep other calls
//! from it.
//!
//! What the kernel answers is made here by a seccomp filter, so that it is the same on every kernel.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test says how far it came"
)]

mod support;

use std::fs::File;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use support::broker::{binary, fresh_directory};
use support::process::Process;
use support::scrape::get;
use support::{clock, port};

/// Makes one system call fail for itself and what it becomes: NUMBER ERRNO PROGRAM ARGUMENTS...
const FILTER: &str = r"
import ctypes, os, struct, sys
step = lambda *parts: struct.pack('HBBI', *parts)
steps = (step(0x20, 0, 0, 0)                               # the number of the call
         + step(0x15, 0, 1, int(sys.argv[1]))              # is it this one?
         + step(0x06, 0, 0, 0x00050000 | int(sys.argv[2])) # then this errno
         + step(0x06, 0, 0, 0x7fff0000))                   # else as always
buffer = ctypes.create_string_buffer(steps)
class Program(ctypes.Structure):
    _fields_ = [('len', ctypes.c_ushort), ('filter', ctypes.c_void_p)]
program = Program(4, ctypes.addressof(buffer))
prctl = ctypes.CDLL(None).prctl
assert prctl(38, 1, 0, 0, 0) == 0                          # PR_SET_NO_NEW_PRIVS
assert prctl(22, 2, ctypes.byref(program), 0, 0) == 0      # PR_SET_SECCOMP
os.execv(sys.argv[3], sys.argv[3:])
";

const SETUP: u32 = 425;
const ENTER: u32 = 426;
const REGISTER: u32 = 427;
const PERF_EVENT_OPEN: u32 = if cfg!(target_arch = "x86_64") {
    298
} else {
    241
};
const EPERM: u32 = 1;
const ENOMEM: u32 = 12;
const ENOSYS: u32 = 38;

/// A broker started by some other command.
struct Node {
    process: Process,
    directory: PathBuf,
    port: u16,
}

impl Node {
    /// `command` ends where the program and its arguments go.
    fn start(name: &str, mut command: Command, overrides: &[&str]) -> Self {
        let directory = fresh_directory(name);
        let port = port::free();
        let log = File::create(directory.join("node.log")).expect("a log");
        command.arg(binary()).arg("serve");
        let listeners = format!("listeners=PLAINTEXT://localhost:{port}");
        for pair in [&[listeners.as_str()], overrides].concat() {
            command.args(["--override", pair]);
        }
        command
            .current_dir(&directory)
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a descriptor"))
            .stderr(log);
        Self {
            process: Process::spawn(&mut command),
            directory,
            port,
        }
    }

    /// With one system call that fails.
    fn without(name: &str, call: u32, errno: u32, overrides: &[&str]) -> Self {
        let mut command = Command::new("python3");
        command.args(["-c", FILTER, &call.to_string(), &errno.to_string()]);
        Self::start(name, command, overrides)
    }

    fn log(&self) -> String {
        let path: &Path = &self.directory;
        std::fs::read_to_string(path.join("node.log")).unwrap_or_default()
    }

    fn until_ready(&mut self) {
        clock::wait_until("the node to be ready", || {
            assert!(self.process.ended().is_none(), "it ended\n{}", self.log());
            self.log().contains("ready") && TcpStream::connect(("127.0.0.1", self.port)).is_ok()
        });
    }

    /// The log of a broker that has come up and gone down.
    fn served(mut self) -> String {
        self.until_ready();
        self.process.signal(Signal::TERM);
        let limit = Duration::from_secs(30);
        let status = self.process.wait_within(limit, "the node");
        assert_eq!(status.code(), Some(0), "{}", self.log());
        self.log()
    }

    /// The last line of one that does not start.
    fn refused(mut self) -> String {
        let limit = Duration::from_secs(30);
        let status = self.process.wait_within(limit, "the node");
        let log = self.log();
        assert_eq!(status.code(), Some(1), "{log}");
        let last = log.lines().last().unwrap_or_default();
        assert!(
            last.starts_with("ringmain: "),
            "one clear line at the end: {log}"
        );
        last.to_owned()
    }
}

fn lines_about_io_uring(log: &str) -> Vec<&str> {
    log.lines()
        .filter(|line| line.contains("io_uring"))
        .collect()
}

#[test]
fn without_io_uring_it_serves_and_says_so_in_one_line() {
    let cases = [
        ("no-ring", SETUP, EPERM, "seccomp"),
        ("no-ring-here", SETUP, ENOSYS, "Linux 6.1"),
        ("no-enter", ENTER, EPERM, "seccomp"),
        ("no-register", REGISTER, EPERM, "seccomp"),
    ];
    for (name, call, errno, why) in cases {
        let log = Node::without(name, call, errno, &[]).served();
        let lines = lines_about_io_uring(&log);
        assert_eq!(lines.len(), 1, "{name}: {log}");
        assert!(lines[0].contains("WARN"), "{name}: {log}");
        assert!(
            lines[0].contains(why) && lines[0].contains("remedy:"),
            "{name}: {log}"
        );
        assert!(log.contains("backend=Epoll"), "{name}: {log}");
    }
}

#[test]
fn who_insists_on_io_uring_is_told_why_not() {
    let node = Node::without("insists", SETUP, EPERM, &["ringmain.io.backend=ring"]);
    let line = node.refused();
    assert!(
        line.contains("seccomp") && line.contains("remedy:"),
        "{line}"
    );
}

/// What kernels answer that count rings as locked memory.
#[test]
fn too_little_memory_to_lock_stops_the_start_with_the_remedy() {
    let line = Node::without("no-memlock", SETUP, ENOMEM, &[]).refused();
    assert!(
        line.contains("RLIMIT_MEMLOCK") && line.contains("ulimit -l"),
        "{line}"
    );
}

/// And this kernel, whichever it is: it serves, or names the limit.
#[test]
fn a_small_limit_of_locked_memory_is_no_riddle() {
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -l 0 && exec \"$0\" \"$@\""]);
    let mut node = Node::start("small-memlock", command, &[]);
    clock::wait_until("the node to be ready, or to end", || {
        node.process.ended().is_some() || node.log().contains("ready")
    });
    match node.process.ended() {
        None => assert_eq!(lines_about_io_uring(&node.served()), [""; 0]),
        Some(_) => {
            let line = node.refused();
            assert!(line.contains("RLIMIT_MEMLOCK is 0 KiB"), "{line}");
        }
    }
}

/// As in a container with Docker's own profile.
#[test]
fn where_samples_are_forbidden_a_flame_graph_says_what_to_do() {
    let http = port::free();
    let listener = format!("ringmain.http.listener=127.0.0.1:{http}");
    let mut node = Node::without("no-samples", PERF_EVENT_OPEN, EPERM, &[&listener]);
    node.until_ready();
    for _ in 0..2 {
        let (status, text) = get(http, "/flamegraph?seconds=1");
        assert_eq!(status, 503, "{text}");
        assert!(
            text.contains("CAP_PERFMON") && text.contains("seccomp"),
            "{text}"
        );
        assert_eq!(text.lines().count(), 1, "{text}");
    }
    node.served();
}
