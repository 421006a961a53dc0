//! Start and stop: what the command says, what stops it, and how it ends.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test says how far it came"
)]

mod support;

#[path = "wire/client.rs"]
#[allow(dead_code, reason = "one question is asked here")]
mod client;

use std::fs::{self, File};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use kafka_protocol::messages::MetadataRequest;
use rustix::process::Signal;
use support::broker::{Broker, binary, fresh_directory};
use support::control_group::ControlGroup;
use support::process::Process;
use support::{clock, port};

/// Runs the binary to its end.
fn ringmain(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(binary());
    command
        .args(arguments)
        .current_dir(directory)
        .stdin(Stdio::null())
        .output()
        .expect("the binary starts")
}

/// Runs `serve` where it must not start, and returns its last line.
fn refused(directory: &Path, arguments: &[&str]) -> String {
    let output = ringmain(directory, &[&["serve"], arguments].concat());
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}");
    let last = text.lines().last().unwrap_or_default().to_owned();
    assert!(
        last.starts_with("ringmain: "),
        "one clear line at the end: {text}"
    );
    last
}

/// `ringmain serve` without a file, on a port of its own.
struct Node {
    process: Process,
    directory: PathBuf,
    port: u16,
}

impl Node {
    fn start(directory: &Path, port: u16, overrides: &[&str]) -> Self {
        let log = File::create(directory.join("node.log")).expect("a log");
        let mut command = Command::new(binary());
        command.args([
            "serve",
            "--override",
            &format!("listeners=PLAINTEXT://localhost:{port}"),
        ]);
        for pair in overrides {
            command.args(["--override", pair]);
        }
        let errors = log.try_clone().expect("a descriptor");
        command
            .current_dir(directory)
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(errors);
        let process = Process::spawn(&mut command);
        Self {
            process,
            directory: directory.to_owned(),
            port,
        }
    }

    fn log(&self) -> String {
        fs::read_to_string(self.directory.join("node.log")).unwrap_or_default()
    }

    fn wait_ready(&mut self) {
        clock::wait_until("the node to be ready", || {
            assert!(self.process.ended().is_none(), "it ended\n{}", self.log());
            self.log().contains("ready") && TcpStream::connect(("127.0.0.1", self.port)).is_ok()
        });
    }

    fn stop(&mut self, signal: Signal) {
        self.process.signal(signal);
        let status = self
            .process
            .wait_within(Duration::from_secs(30), "the node");
        assert_eq!(status.code(), Some(0), "{}", self.log());
    }
}

#[test]
fn a_port_of_the_systems_choice_is_told_to_people_and_clients() {
    let directory = fresh_directory("start-ephemeral");
    let mut node = Node::start(&directory, 0, &[]);
    clock::wait_until("the node to be ready", || {
        assert!(node.process.ended().is_none(), "it ended\n{}", node.log());
        node.log().contains("ready")
    });
    let log = node.log();
    let (_, rest) = log
        .split_once("PLAINTEXT://localhost:")
        .expect("the listener is told");
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next();
    let told: u16 = digits.and_then(|d| d.parse().ok()).expect("a port");
    assert!(
        log.contains(&format!("--bootstrap-server localhost:{told}")),
        "{log}"
    );
    assert!(TcpStream::connect(("::1", told)).is_ok(), "both addresses");
    let answer = client::Connection::open(told).call(12, &MetadataRequest::default());
    let broker = &answer.brokers[0];
    assert_eq!((&*broker.host, broker.port), ("localhost", i32::from(told)));
    node.stop(Signal::TERM);
}

#[test]
fn one_command_and_no_file_is_a_broker() {
    let directory = fresh_directory("start-plain");
    let mut node = Node::start(&directory, port::free(), &[]);
    node.wait_ready();
    assert!(
        TcpStream::connect(("::1", node.port)).is_ok(),
        "localhost is both addresses"
    );
    let log = node.log();
    for word in [
        "Ringmain",
        "localhost",
        "ringmain-data",
        "shards",
        "backend",
        "ringmain console-producer",
    ] {
        assert!(log.contains(word), "{word} in\n{log}");
    }
    assert!(!log.contains("WARN"), "nothing to warn of\n{log}");
    let data = directory.join("ringmain-data");
    assert!(data.join("meta.properties").is_file() && data.join("__cluster_metadata-0").is_dir());
    assert!(
        !data.join(".kafka_cleanshutdown").exists(),
        "not while it runs"
    );
    node.stop(Signal::TERM);
    let marker =
        fs::read_to_string(data.join(".kafka_cleanshutdown")).expect("the mark of a clean stop");
    assert!(marker.contains("brokerEpoch"), "{marker}");
    // It goes on with what it has, as the same cluster.
    let before = fs::read_to_string(data.join("meta.properties")).expect("meta.properties");
    let mut again = Node::start(&directory, port::free(), &[]);
    again.wait_ready();
    assert!(
        !data.join(".kafka_cleanshutdown").exists(),
        "the mark is of one stop"
    );
    again.stop(Signal::INT);
    assert_eq!(
        fs::read_to_string(data.join("meta.properties")).expect("meta.properties"),
        before
    );
    let _ = fs::remove_dir_all(&directory);
}

/// 250 ms once built for use; the best of several, because others share this machine.
#[test]
fn it_is_ready_soon() {
    let limit = Duration::from_millis(
        if cfg!(debug_assertions) && std::env::var_os("RINGMAIN_TEST_BINARY").is_none() {
            2_000
        } else {
            250
        },
    );
    let mut best = Duration::MAX;
    for _ in 0..10 {
        let directory = fresh_directory("start-soon");
        let start = clock::now();
        let mut node = Node::start(&directory, port::free(), &[]);
        node.wait_ready();
        best = best.min(clock::now() - start);
        node.stop(Signal::TERM);
        if best < limit {
            break;
        }
    }
    println!("ready in {best:?}");
    assert!(best < limit, "ready in {best:?}");
}

/// Hundredths of a second that a process has used of any CPU.
fn cpu_ticks(process: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).expect("it runs");
    let (_, fields) = stat.rsplit_once(") ").expect("a name in brackets");
    let numbers = fields.split(' ').skip(11).take(2);
    numbers
        .map(|ticks| ticks.parse::<u64>().expect("a number"))
        .sum()
}

/// With clients connected that say nothing.
#[test]
fn an_idle_broker_uses_no_cpu() {
    let broker = &mut Broker::start("start-idle", &[]);
    let _idle: Vec<_> = (0..50)
        .map(|_| TcpStream::connect(("127.0.0.1", broker.port)).expect("it listens"))
        .collect();
    let process = broker.process().id();
    let (mut since, mut before) = (clock::now(), cpu_ticks(process));
    clock::wait_within(Duration::from_secs(60), "two seconds without work", || {
        if clock::now() - since < Duration::from_secs(2) {
            return None;
        }
        let used = cpu_ticks(process) - before;
        (since, before) = (clock::now(), cpu_ticks(process));
        (used <= 1).then_some(())
    });
}

/// Its cores sleep in the kernel with operations under way, which must not look like waiting for a disk.
#[test]
fn an_idle_broker_is_not_seen_as_waiting_for_disk_or_memory() {
    const IDLE: Duration = Duration::from_secs(4);
    let Some(group) = ControlGroup::of_pressure("start-pressure") else {
        println!("skipped: no control group of version 2 can be made");
        return;
    };
    let mut broker = Broker::prepare("start-pressure", &[]);
    broker.set_group(&group.path);
    broker.restart();
    let _idle: Vec<_> = (0..50)
        .map(|_| TcpStream::connect(("127.0.0.1", broker.port)).expect("it listens"))
        .collect();
    let waited = || ["io", "memory"].map(|resource| group.waited(resource));
    let (mut since, mut before) = (clock::now(), waited());
    let most = IDLE / 100;
    clock::wait_within(Duration::from_secs(60), "a time without waiting", || {
        if clock::now() - since < IDLE {
            return None;
        }
        let now = waited();
        let more: Vec<_> = now
            .iter()
            .zip(before)
            .map(|(now, then)| *now - then)
            .collect();
        println!("waited in {IDLE:?} for disk and memory: {more:?}");
        (since, before) = (clock::now(), now);
        more.iter().all(|more| *more < most).then_some(())
    });
    assert!(broker.stop().success());
}

#[test]
fn any_number_of_shards_will_do() {
    for shards in ["1", "5"] {
        let directory = fresh_directory(&format!("start-shards-{shards}"));
        let mut node = Node::start(
            &directory,
            port::free(),
            &[&format!("ringmain.shards={shards}")],
        );
        node.wait_ready();
        assert!(
            node.log().contains(&format!("shards={shards}")),
            "{}",
            node.log()
        );
        node.stop(Signal::TERM);
    }
}

#[test]
fn a_file_needs_a_formatted_directory_and_says_how() {
    let broker = Broker::prepare("start-unformatted", &[]);
    let _ = fs::remove_dir_all(broker.data());
    let file = broker.properties().display().to_string();
    let line = refused(&broker.directory, &[&file]);
    for word in [
        "not formatted",
        "ringmain storage format",
        "random-uuid",
        &file,
    ] {
        assert!(line.contains(word), "{word} in {line}");
    }
    assert!(!broker.data().exists(), "nothing was made");
}

#[test]
fn the_file_that_apache_ships_works() {
    let directory = fresh_directory("start-shipped");
    let (client, controller) = (port::free(), port::free());
    let text = format!(
        "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.bootstrap.servers=localhost:{controller}\n\
         listeners=PLAINTEXT://:{client},CONTROLLER://:{controller}\ninter.broker.listener.name=PLAINTEXT\n\
         advertised.listeners=PLAINTEXT://localhost:{client},CONTROLLER://localhost:{controller}\n\
         controller.listener.names=CONTROLLER\n\
         listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL\n\
         num.network.threads=3\nnum.io.threads=8\nsocket.send.buffer.bytes=102400\nsocket.receive.buffer.bytes=102400\n\
         socket.request.max.bytes=104857600\nlog.dirs=data\nnum.partitions=1\nnum.recovery.threads.per.data.dir=2\n\
         offsets.topic.replication.factor=1\nshare.coordinator.state.topic.replication.factor=1\n\
         share.coordinator.state.topic.min.isr=1\ntransaction.state.log.replication.factor=1\ntransaction.state.log.min.isr=1\n\
         log.retention.hours=168\nlog.segment.bytes=1073741824\nlog.retention.check.interval.ms=300000\n"
    );
    fs::write(directory.join("server.properties"), text).expect("a file");
    let id = ringmain(&directory, &["storage", "random-uuid"]);
    let id = String::from_utf8(id.stdout)
        .expect("text")
        .trim()
        .to_owned();
    assert_eq!(id.len(), 22, "{id}");
    let done = ringmain(
        &directory,
        &[
            "storage",
            "format",
            "-t",
            &id,
            "-c",
            "server.properties",
            "--standalone",
        ],
    );
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    let again = ringmain(
        &directory,
        &[
            "storage",
            "format",
            "-t",
            &id,
            "-c",
            "server.properties",
            "--standalone",
        ],
    );
    assert!(!again.status.success(), "formatted already");
    let log = File::create(directory.join("node.log")).expect("a log");
    let errors = log.try_clone().expect("a descriptor");
    let mut command = Command::new(binary());
    command
        .args(["serve", "server.properties"])
        .current_dir(&directory)
        .stdout(log)
        .stderr(errors);
    let mut node = Node {
        process: Process::spawn(&mut command),
        directory,
        port: client,
    };
    node.wait_ready();
    node.stop(Signal::TERM);
}

#[test]
fn settings_that_cannot_be_are_named_in_one_line() {
    let broker = Broker::prepare("start-settings", &[]);
    let file = broker.properties().display().to_string();
    let with = |setting: &str| refused(&broker.directory, &[&file, "--override", setting]);
    for (setting, words) in [
        ("num.partitions=many", ["num.partitions", "many"]),
        ("num.partitions=0", ["num.partitions", "0"]),
        ("log.cleanup.policy=burn", ["log.cleanup.policy", "burn"]),
        (
            "advertised.listeners=PLAINTEXT://0.0.0.0:9092",
            ["advertised.listeners", "0.0.0.0"],
        ),
        (
            "listeners=PLAINTEXT://127.0.0.1:99999",
            ["listeners", "99999"],
        ),
        ("node.id=7", ["node", "7"]),
    ] {
        let line = with(setting);
        assert!(
            words.iter().all(|word| line.contains(word)),
            "{setting}: {line}"
        );
    }
}

#[test]
fn unknown_keys_and_impossible_defaults_are_warned_of() {
    let mut broker = Broker::start(
        "start-warnings",
        &[
            ("no.such.key", "1"),
            ("offsets.topic.replication.factor", "3"),
        ],
    );
    let log = broker.log();
    let warnings: Vec<_> = log.lines().filter(|line| line.contains("WARN")).collect();
    let of = |word: &str| warnings.iter().filter(|line| line.contains(word)).count();
    assert_eq!(of("no.such.key"), 1, "{log}");
    assert_eq!(
        of("offsets.topic.replication.factor"),
        1,
        "the last of two values counts, and is named: {log}"
    );
    assert!(broker.stop().success());
}

#[test]
fn a_second_broker_is_told_what_is_taken() {
    let mut first = Broker::start("start-first", &[]);
    let file = first.properties().display().to_string();
    let elsewhere = format!(
        "listeners=PLAINTEXT://127.0.0.1:{},CONTROLLER://127.0.0.1:{}",
        port::free(),
        port::free()
    );
    let line = refused(&first.directory, &[&file, "--override", &elsewhere]);
    let data = first.data().display().to_string();
    assert!(line.contains(&data) && line.contains("in use"), "{line}");
    let second = Broker::prepare("start-second", &[]);
    let same = format!(
        "listeners=PLAINTEXT://127.0.0.1:{},CONTROLLER://127.0.0.1:{}",
        first.port,
        port::free()
    );
    let file = second.properties().display().to_string();
    let line = refused(&second.directory, &[&file, "--override", &same]);
    assert!(
        line.contains(&first.port.to_string()) && line.contains("in use"),
        "{line}"
    );
    assert!(first.process().ended().is_none(), "the first goes on");
    assert!(first.stop().success());
}

/// The kernel takes down the sockets of a killed broker some time after the process is gone.
#[test]
fn the_port_for_metrics_is_waited_for_a_moment_as_others_are() {
    let holder = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let http = holder.local_addr().expect("bound").to_string();
    let mut broker = Broker::prepare("start-http", &[("ringmain.http.listener", &http)]);
    broker.spawn();
    clock::wait_until("the broker to hold its port", || {
        assert_eq!(broker.process().ended(), None, "{}", broker.log());
        TcpListener::bind(("127.0.0.1", broker.port)).is_err()
    });
    // The port for metrics comes next; without patience the broker has ended by then.
    let mut looks = 20;
    clock::wait_until("a moment of the start", || {
        looks -= 1;
        looks == 0
    });
    drop(holder);
    broker.wait_ready();
    assert!(broker.stop().success());
}

#[test]
fn a_port_of_another_program_stops_the_start() {
    let holder = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let port = holder.local_addr().expect("bound").port();
    let directory = fresh_directory("start-held");
    let setting = format!("listeners=PLAINTEXT://127.0.0.1:{port}");
    let line = refused(&directory, &["--override", &setting]);
    assert!(line.contains(&port.to_string()), "{line}");
}

#[test]
fn a_directory_of_another_cluster_or_node_is_not_touched() {
    let mut broker = Broker::start("start-foreign", &[]);
    assert!(broker.stop().success());
    let file = broker.properties().display().to_string();
    let meta = broker.data().join("meta.properties");
    let text = fs::read_to_string(&meta).expect("meta.properties");
    let other = Broker::prepare("start-foreign-too", &[]);
    fs::write(
        other.data().join("meta.properties"),
        text.replace("MkU3OEVBNTcwNTJENDM2Qg", "AAAAAAAAAAAAAAAAAAAAAQ"),
    )
    .expect("written");
    let both = format!(
        "log.dirs={},{}",
        broker.data().display(),
        other.data().display()
    );
    let line = refused(&broker.directory, &[&file, "--override", &both]);
    assert!(
        line.contains("cluster") && line.contains("AAAAAAAAAAAAAAAAAAAAAQ"),
        "{line}"
    );
}

#[test]
fn a_stop_ends_connections_that_wait() {
    let mut broker = Broker::start("start-stop-waiting", &[]);
    let _idle: Vec<_> = (0..20)
        .map(|_| TcpStream::connect(("127.0.0.1", broker.port)).expect("it listens"))
        .collect();
    let start = clock::now();
    assert_eq!(broker.stop().code(), Some(0));
    assert!(
        clock::now() - start < Duration::from_secs(15),
        "idle clients do not hold it up"
    );
    assert!(TcpStream::connect(("127.0.0.1", broker.port)).is_err());
    assert!(broker.data().join(".kafka_cleanshutdown").is_file());
}

#[test]
fn after_a_crash_there_is_no_mark_of_a_clean_stop() {
    let mut broker = Broker::start("start-crash", &[]);
    broker.kill();
    assert!(!broker.data().join(".kafka_cleanshutdown").exists());
    broker.restart();
    assert!(broker.stop().success());
    assert!(broker.data().join(".kafka_cleanshutdown").is_file());
}

/// The variables of a compose file for Apache's image, and nothing else.
#[test]
fn variables_as_for_apaches_image_are_a_whole_configuration() {
    const CLUSTER: &str = "4L6g3nShT-eMCtK--X86sw";
    let directory = fresh_directory("start-environment");
    let (client, controller) = (port::free(), port::free());
    let log = File::create(directory.join("node.log")).expect("a log");
    let mut command = Command::new(binary());
    command
        .arg("serve")
        .current_dir(&directory)
        .stderr(log)
        .envs([
            ("CLUSTER_ID", CLUSTER),
            ("KAFKA_NODE_ID", "5"),
            ("KAFKA_PROCESS_ROLES", "broker,controller"),
            ("KAFKA_CONTROLLER_LISTENER_NAMES", "CONTROLLER"),
            ("KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR", "1"),
            ("KAFKA_LOG_DIRS", "./kraft-combined-logs"),
            ("KAFKA_HEAP_OPTS", "-Xmx1g"),
            ("KAFKA_SERVICE_HOST", "10.0.0.1"),
        ])
        .env(
            "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP",
            "CONTROLLER:PLAINTEXT,PLAINTEXT_HOST:PLAINTEXT",
        )
        .env("KAFKA_INTER_BROKER_LISTENER_NAME", "PLAINTEXT_HOST")
        .env(
            "KAFKA_LISTENERS",
            format!("PLAINTEXT_HOST://127.0.0.1:{client},CONTROLLER://127.0.0.1:{controller}"),
        )
        .env(
            "KAFKA_ADVERTISED_LISTENERS",
            format!("PLAINTEXT_HOST://broker.example.org:{client}"),
        )
        .env(
            "KAFKA_CONTROLLER_QUORUM_VOTERS",
            format!("5@127.0.0.1:{controller}"),
        );
    let mut node = Node {
        process: Process::spawn(&mut command),
        directory,
        port: client,
    };
    node.wait_ready();
    let request = MetadataRequest::default().with_topics(Some(Vec::new()));
    let answer = client::Connection::open(client).call(9, &request);
    assert_eq!(answer.cluster_id.as_deref(), Some(CLUSTER));
    assert_eq!(answer.brokers.len(), 1);
    assert_eq!(answer.brokers[0].node_id.0, 5);
    assert_eq!(&*answer.brokers[0].host, "broker.example.org");
    assert!(
        node.directory
            .join("kraft-combined-logs/meta.properties")
            .exists()
    );
    let log = node.log();
    assert!(
        log.contains("KAFKA_SERVICE_HOST is ignored: there is no setting service.host"),
        "{log}"
    );
    assert!(!log.contains("KAFKA_HEAP_OPTS"), "{log}");
    node.stop(Signal::TERM);
}

#[test]
fn a_variable_that_cannot_be_is_named_in_one_line() {
    let directory = fresh_directory("start-wrong-variable");
    let output = Command::new(binary())
        .arg("serve")
        .current_dir(&directory)
        .env("KAFKA_NUM_PARTITIONS", "many")
        .output()
        .expect("the binary starts");
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        text.trim_end(),
        "ringmain: KAFKA_NUM_PARTITIONS: Invalid value many for configuration num.partitions: Not a number of type \
         INT (allowed: int, at least 1, default 1)"
    );
    assert_eq!(output.status.code(), Some(1));
}
