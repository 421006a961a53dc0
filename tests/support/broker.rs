//! A broker in a process of its own, on free ports of this machine and a directory of its own.
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::Signal;

use super::process::Process;
use super::{apache, clock, port};

const CLUSTER_ID: &str = "MkU3OEVBNTcwNTJENDM2Qg";

/// What to start: `RINGMAIN_TEST_BINARY`, else the binary that Cargo built for the tests. Anything that understands
/// `storage format` and `serve` will do, so that these tests can be tried on another broker.
pub fn binary() -> PathBuf {
    std::env::var_os("RINGMAIN_TEST_BINARY")
        .map_or_else(|| env!("CARGO_BIN_EXE_ringmain").into(), PathBuf::from)
}

/// A fresh folder for the test of that name, emptied of what an earlier run left.
pub fn fresh_directory(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).expect("the target folder can be written");
    directory
}

/// Which broker runs on a directory. Both take the same commands and properties.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    Ringmain,
    Apache,
}

impl Program {
    fn storage(self) -> Command {
        match self {
            Self::Ringmain => {
                let mut command = Command::new(binary());
                command.arg("storage");
                command
            }
            Self::Apache => apache::storage(),
        }
    }

    fn serve(self) -> Command {
        match self {
            Self::Ringmain => {
                let mut command = Command::new(binary());
                command.arg("serve");
                command
            }
            Self::Apache => apache::server(),
        }
    }
}

pub struct Broker {
    /// What the next start runs; another may go on with the directory of the first.
    pub program: Program,
    pub directory: PathBuf,
    pub port: u16,
    pub controller_port: u16,
    overrides: Vec<String>,
    group: Option<PathBuf>,
    process: Option<Process>,
}

impl Broker {
    /// Formats a fresh directory, starts a broker on it and returns when it answers.
    pub fn start(name: &str, settings: &[(&str, &str)]) -> Self {
        let mut broker = Self::prepare(name, settings);
        broker.restart();
        broker
    }

    /// Like `start`, with everything done but the start.
    pub fn prepare(name: &str, settings: &[(&str, &str)]) -> Self {
        Self::prepare_as(Program::Ringmain, name, settings, &[])
    }

    /// Writes the properties and has that program format the directory, with more flags if there are some to give.
    pub fn prepare_as(
        program: Program,
        name: &str,
        settings: &[(&str, &str)],
        flags: &[&str],
    ) -> Self {
        let mut broker = Self::unformatted(name);
        broker.program = program;
        let controller = broker.controller_port;
        let mut text = format!(
            "process.roles=broker,controller\n\
             node.id=1\n\
             controller.quorum.voters=1@127.0.0.1:{controller}\n\
             listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}\n\
             advertised.listeners=PLAINTEXT://127.0.0.1:{port}\n\
             controller.listener.names=CONTROLLER\n\
             log.dirs={data}\n\
             offsets.topic.replication.factor=1\n\
             transaction.state.log.replication.factor=1\n\
             transaction.state.log.min.isr=1\n\
             share.coordinator.state.topic.replication.factor=1\n\
             share.coordinator.state.topic.min.isr=1\n\
             group.initial.rebalance.delay.ms=0\n",
            port = broker.port,
            data = broker.directory.join("data").display(),
        );
        for (name, value) in settings {
            text += &format!("{name}={value}\n");
        }
        fs::write(broker.properties(), text).expect("the directory can be written");
        let done = program
            .storage()
            .args(["format", "-t", CLUSTER_ID, "-c"])
            .arg(broker.properties())
            .args(flags)
            .output()
            .expect("the binary starts");
        assert!(
            done.status.success(),
            "storage format: {}",
            String::from_utf8_lossy(&done.stderr)
        );
        broker
    }

    /// A fresh directory without properties, for a test that writes and formats them in its own way.
    pub fn unformatted(name: &str) -> Self {
        Self {
            program: Program::Ringmain,
            directory: fresh_directory(name),
            port: port::free(),
            controller_port: port::free(),
            overrides: Vec::new(),
            group: None,
            process: None,
        }
    }

    /// Starts a program on the directory of another, with overrides for this turn, and returns when it answers.
    pub fn start_as(&mut self, program: Program, overrides: &[&str]) {
        self.program = program;
        self.overrides = overrides.iter().map(|&pair| pair.to_owned()).collect();
        self.restart();
    }

    /// From the next start on, on top of the properties: `--override KEY=VALUE`.
    pub fn set_override(&mut self, name: &str, value: &str) {
        self.overrides.push(format!("{name}={value}"));
    }

    /// From the next start on in this control group.
    pub fn set_group(&mut self, group: &Path) {
        self.group = Some(group.to_owned());
    }

    pub fn properties(&self) -> PathBuf {
        self.directory.join("server.properties")
    }

    pub fn bootstrap(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The data directory, where it is the only one.
    pub fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    pub fn process(&mut self) -> &mut Process {
        self.process.as_mut().expect("the broker runs")
    }

    /// Starts it again, on the same directory and port, and returns when it answers.
    pub fn restart(&mut self) {
        self.spawn();
        self.wait_ready();
    }

    /// Starts it and does not wait.
    pub fn spawn(&mut self) {
        assert!(self.process.is_none(), "the broker runs already");
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.log_path())
            .expect("the log can be written");
        let mut command = self.program.serve();
        command.arg(self.properties());
        for pair in &self.overrides {
            command.args(["--override", pair]);
        }
        if let Some(group) = &self.group {
            command = within(group, &command);
        }
        let errors = log.try_clone().expect("a descriptor is free");
        command
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(errors)
            .current_dir(&self.directory);
        self.process = Some(Process::spawn(&mut command));
    }

    /// Returns when the broker answers a request.
    pub fn wait_ready(&mut self) {
        let end = clock::now() + clock::LIMIT;
        clock::wait_for("the broker to answer", || {
            if let Some(status) = self.process().ended() {
                panic!("the broker ended with {status}\n{}", self.log());
            }
            assert!(
                clock::now() < end,
                "the broker does not answer\n{}",
                self.log()
            );
            answers(self.port).then_some(())
        });
    }

    /// SIGKILL, the crash.
    pub fn kill(&mut self) {
        self.process().kill();
        self.process = None;
    }

    /// SIGTERM, and the status with which it ends.
    pub fn stop(&mut self) -> ExitStatus {
        self.process().signal(Signal::TERM);
        let status = self
            .process()
            .wait_within(Duration::from_secs(60), "the broker");
        self.process = None;
        status
    }

    /// Its resident memory, as the kernel counts it.
    pub fn resident_kib(&self) -> Option<u64> {
        self.status("VmRSS:")
    }

    /// The most that it was.
    pub fn highest_resident_kib(&self) -> Option<u64> {
        self.status("VmHWM:")
    }

    fn status(&self, name: &str) -> Option<u64> {
        let status =
            fs::read_to_string(format!("/proc/{}/status", self.process.as_ref()?.id())).ok()?;
        let line = status.lines().find(|line| line.starts_with(name))?;
        line.split_whitespace().nth(1)?.parse().ok()
    }

    /// Both output streams of every start so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    fn log_path(&self) -> PathBuf {
        self.directory.join("broker.log")
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.process = None;
        if std::thread::panicking() {
            let log = self.log();
            let lines: Vec<&str> = log.lines().collect();
            let shown = lines[lines.len().saturating_sub(60)..].join("\n");
            eprintln!(
                "the last lines of the broker in {}:\n{shown}",
                self.directory.display()
            );
        } else {
            let _ = fs::remove_dir_all(&self.directory);
        }
    }
}

/// The same command, in a control group from its first instruction on.
fn within(group: &Path, command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", "echo $$ > \"$0/cgroup.procs\" && exec \"$@\""]);
    shell.arg(group).arg(command.get_program());
    shell.args(command.get_args());
    shell
}

/// Whether a broker on that port answers ApiVersions v0.
fn answers(port: u16) -> bool {
    const REQUEST: [u8; 14] = [0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 7, 255, 255];
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else {
        return false;
    };
    let _ = stream.set_read_timeout(Some(Duration::from_secs(10)));
    let mut answer = [0; 8];
    stream.write_all(&REQUEST).is_ok()
        && stream.read_exact(&mut answer).is_ok()
        && answer[4..] == [0, 0, 0, 7]
}
