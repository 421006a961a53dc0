//! The drivers of foreign clients in `tests/clients`: made ready when first needed, one process a command.
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use super::clock;
use super::process::Process;
use super::record::Record;

const CLIENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients");

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Client {
    Librdkafka,
    Java,
    Python,
}

pub const CLIENTS_ALL: [Client; 3] = [Client::Librdkafka, Client::Java, Client::Python];

impl Client {
    /// The command that runs the driver.
    fn command(self) -> Command {
        static READY: [OnceLock<Vec<String>>; 3] =
            [OnceLock::new(), OnceLock::new(), OnceLock::new()];
        let words = READY[self as usize].get_or_init(|| match self {
            Self::Librdkafka => prepare_librdkafka(),
            Self::Java => prepare_java(),
            Self::Python => prepare_python(),
        });
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        command
    }

    /// kafka-python refuses to send a header without a value.
    pub fn sends_null_headers(self) -> bool {
        self != Self::Python
    }

    pub fn create_topics(self, bootstrap: &str, topics: &[(String, usize)]) {
        let words: Vec<String> = topics
            .iter()
            .map(|(name, count)| format!("{name}:{count}"))
            .collect();
        let mut run = Run::start(self, "create", bootstrap, &words);
        let lines = run.lines();
        let status = run.process.wait_within(clock::LIMIT, "create");
        assert!(
            status.success(),
            "{self:?} create {words:?}: {status}\n{}",
            run.errors()
        );
        assert_eq!(
            each(&lines).count(),
            topics.len(),
            "topics that {self:?} says it created"
        );
    }

    /// Sends the records and returns where each went, in the order of `records`.
    pub fn produce(
        self,
        bootstrap: &str,
        topic: &str,
        settings: &[&str],
        records: &[Record],
    ) -> Vec<(i32, i64)> {
        let mut run = Run::start(self, "produce", bootstrap, &words(&[topic], settings));
        let lines = run.lines();
        let mut input = BufWriter::new(run.input.take().expect("a pipe"));
        let written = records
            .iter()
            .try_for_each(|record| record.write(&mut input))
            .and_then(|()| input.flush());
        drop(input);
        let mut acknowledged: BTreeMap<usize, (i32, i64)> = BTreeMap::new();
        for line in each(&lines) {
            match Outcome::parse(&line) {
                Outcome::Acknowledged {
                    index,
                    partition,
                    offset,
                } => {
                    let before = acknowledged.insert(index, (partition, offset));
                    assert_eq!(before, None, "record {index} was acknowledged twice");
                }
                Outcome::Failed { .. } => panic!("{self:?} produce {topic} {settings:?}: {line}"),
            }
        }
        let status = run.process.wait_within(clock::LIMIT, "produce");
        let context = || format!("{self:?} produce {topic} {settings:?}\n{}", run.errors());
        assert!(
            written.is_ok() && status.success(),
            "{}: {status}, {written:?}",
            context()
        );
        assert_eq!(
            acknowledged.len(),
            records.len(),
            "acknowledged, {}",
            context()
        );
        acknowledged.into_values().collect()
    }

    /// Reads each partition from its start to the end that the broker names, in the order of delivery.
    pub fn consume(
        self,
        bootstrap: &str,
        topic: &str,
        partitions: usize,
        settings: &[&str],
    ) -> Vec<Record> {
        let mut run = Run::start(
            self,
            "consume",
            bootstrap,
            &words(&[topic, &partitions.to_string()], settings),
        );
        let records = run.records();
        for partition in 0..partitions {
            run.say(&format!("end {partition} -1"));
        }
        let read: Vec<Record> = each(&records).collect();
        let status = run.process.wait_within(clock::LIMIT, "consume");
        assert!(
            status.success(),
            "{self:?} consume {topic}: {status}\n{}",
            run.errors()
        );
        read
    }
}

fn words(words: &[&str], settings: &[&str]) -> Vec<String> {
    words
        .iter()
        .chain(settings)
        .map(|&word| word.to_owned())
        .collect()
}

/// What a driver says until it closes its output; one that says nothing for too long has failed.
pub fn each<T>(receiver: &Receiver<T>) -> impl Iterator<Item = T> {
    std::iter::from_fn(|| match receiver.recv_timeout(clock::LIMIT) {
        Ok(item) => Some(item),
        Err(RecvTimeoutError::Disconnected) => None,
        Err(RecvTimeoutError::Timeout) => panic!("a driver said nothing for {:?}", clock::LIMIT),
    })
}

/// A line of `produce`.
pub enum Outcome {
    Acknowledged {
        index: usize,
        partition: i32,
        offset: i64,
    },
    Failed {
        index: usize,
    },
}

impl Outcome {
    pub fn parse(line: &str) -> Self {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| words.get(at).and_then(|word| word.parse::<i64>().ok());
        let index = number(1).and_then(|index| usize::try_from(index).ok());
        match (words[0], index, number(2), number(3)) {
            ("ack", Some(index), Some(partition), Some(offset)) => Self::Acknowledged {
                index,
                partition: i32::try_from(partition).expect("small"),
                offset,
            },
            ("fail", Some(index), ..) => Self::Failed { index },
            _ => panic!("a driver said {line:?}"),
        }
    }
}

/// A driver at work.
pub struct Run {
    pub process: Process,
    pub input: Option<ChildStdin>,
    errors: PathBuf,
}

impl Run {
    pub fn start(client: Client, command: &str, bootstrap: &str, words: &[String]) -> Self {
        static COUNT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let name = format!("driver-{}-{number}.log", std::process::id());
        let errors = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let mut program = client.command();
        program.arg(command).arg(bootstrap).args(words);
        program.stdin(Stdio::piped()).stdout(Stdio::piped());
        program.stderr(File::create(&errors).expect("the target folder can be written"));
        let mut process = Process::spawn(&mut program);
        let input = process.child().stdin.take();
        Self {
            process,
            input,
            errors,
        }
    }

    /// Gives the driver a line.
    pub fn say(&mut self, line: &str) {
        let input = self.input.as_mut().expect("input is open");
        let _ = writeln!(input, "{line}").and_then(|()| input.flush());
    }

    /// The lines of its output as they come.
    pub fn lines(&mut self) -> Receiver<String> {
        let output = BufReader::new(self.process.child().stdout.take().expect("a pipe"));
        let (sender, receiver) = mpsc::channel();
        spawn(move || {
            output
                .lines()
                .map_while(Result::ok)
                .try_for_each(|line| sender.send(line))
        });
        receiver
    }

    /// The records of its output as they come.
    pub fn records(&mut self) -> Receiver<Record> {
        let mut output =
            BufReader::with_capacity(1 << 16, self.process.child().stdout.take().expect("a pipe"));
        let (sender, receiver) = mpsc::channel();
        spawn(move || {
            while let Ok(Some(record)) = Record::read(&mut output) {
                if sender.send(record).is_err() {
                    break;
                }
            }
        });
        receiver
    }

    /// Ends it as it wishes to be ended, and demands success.
    pub fn close(&mut self, limit: Duration) {
        self.say("close");
        self.input = None;
        let status = self.process.wait_within(limit, "a driver");
        assert!(
            status.success(),
            "a driver ended with {status}\n{}",
            self.errors()
        );
    }

    pub fn errors(&self) -> String {
        let text = fs::read_to_string(&self.errors).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(30)..].join("\n")
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the last lines of a driver's errors:\n{}", self.errors());
        }
        let _ = fs::remove_file(&self.errors);
    }
}

/// A thread that reads a pipe until it closes.
#[allow(
    clippy::disallowed_methods,
    reason = "a test reads several pipes at once"
)]
pub fn spawn<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> std::thread::JoinHandle<T> {
    std::thread::spawn(work)
}

pub fn run(command: &mut Command) {
    let output = command
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = [output.stdout, output.stderr].concat();
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}",
        output.status,
        String::from_utf8_lossy(&text)
    );
}

/// Where the drivers are built: beside the tests' own target folder, kept between runs.
pub fn build_folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .with_file_name("clients")
        .join(name);
    fs::create_dir_all(&folder).expect("the target folder can be written");
    folder
}

/// Runs `make` unless it ran for the same sources before; only one process at a time.
pub fn once(folder: &Path, sources: &[&Path], make: impl FnOnce()) {
    let lock = File::create(folder.join("lock")).expect("the target folder can be written");
    lock.lock().expect("files can be locked");
    let wanted: Vec<u8> = sources
        .iter()
        .flat_map(|path| fs::read(path).expect("a source file"))
        .collect();
    let mark = folder.join("made-from");
    if fs::read(&mark).is_ok_and(|found| found == wanted) {
        return;
    }
    make();
    fs::write(mark, wanted).expect("the target folder can be written");
}

fn prepare_librdkafka() -> Vec<String> {
    let folder = build_folder("librdkafka");
    let manifest = format!("{CLIENTS}/librdkafka/Cargo.toml");
    let target = folder.to_string_lossy().into_owned();
    run(Command::new(env!("CARGO")).args([
        "build",
        "--locked",
        "--manifest-path",
        &manifest,
        "--target-dir",
        &target,
    ]));
    vec![
        folder
            .join("debug/librdkafka-driver")
            .to_string_lossy()
            .into_owned(),
    ]
}

fn prepare_java() -> Vec<String> {
    let folder = build_folder("java");
    let (pom, source) = (
        Path::new(CLIENTS).join("java/pom.xml"),
        Path::new(CLIENTS).join("java/Driver.java"),
    );
    let classpath = format!("{0}:{0}/jars/*", folder.display());
    once(&folder, &[&pom, &source], || {
        maven_jars(&pom, &folder.join("jars"));
        run(Command::new("javac")
            .args(["-nowarn", "-d"])
            .arg(&folder)
            .args(["-cp", &classpath])
            .arg(&source));
    });
    let options = [
        "java",
        "-Xmx256m",
        "-XX:TieredStopAtLevel=1",
        "-XX:+UseSerialGC",
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    ];
    options
        .into_iter()
        .chain(["-cp", &classpath, "Driver"])
        .map(str::to_owned)
        .collect()
}

/// Fetches what a pom names, with Maven.
pub fn maven_jars(pom: &Path, jars: &Path) {
    let output = format!("-DoutputDirectory={}", jars.display());
    run(Command::new("mvn")
        .args(["-q", "-B", "-f"])
        .arg(pom)
        .args(["dependency:copy-dependencies", &output]));
}

fn prepare_python() -> Vec<String> {
    let requirements = Path::new(CLIENTS).join("python/requirements.txt");
    let python = python_with("python", &requirements);
    let script = Path::new(CLIENTS).join("python/driver.py");
    vec![
        python.to_string_lossy().into_owned(),
        "-B".to_owned(),
        script.to_string_lossy().into_owned(),
    ]
}

/// A Python that has the packages of a requirements file.
pub fn python_with(name: &str, requirements: &Path) -> PathBuf {
    let folder = build_folder(name);
    let python = folder.join("venv/bin/python");
    once(&folder, &[requirements], || {
        let _ = fs::remove_dir_all(folder.join("venv"));
        run(Command::new("python3")
            .args(["-m", "venv"])
            .arg(folder.join("venv")));
        run(Command::new(&python)
            .args([
                "-m",
                "pip",
                "install",
                "-q",
                "--disable-pip-version-check",
                "-r",
            ])
            .arg(requirements));
    });
    python
}
