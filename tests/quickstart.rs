//! Kafka's quickstart, its lines with `ringmain X` for `bin/kafka-X.sh`.
#![allow(
    clippy::print_stderr,
    reason = "what went wrong in a broker is printed"
)]

mod support;

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use support::broker::{binary, fresh_directory};
use support::commands::ringmain_with;
use support::process::Process;
use support::{clock, port};

/// For the end of a process.
const PATIENCE: Duration = Duration::from_secs(30);

fn said(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// `config/server.properties` of Kafka's download, with free ports and a folder of the test.
fn properties(directory: &Path, broker: u16, controller: u16) -> String {
    let text = format!(
        "process.roles=broker,controller\n\
         node.id=1\n\
         controller.quorum.bootstrap.servers=localhost:{controller}\n\
         listeners=PLAINTEXT://:{broker},CONTROLLER://:{controller}\n\
         inter.broker.listener.name=PLAINTEXT\n\
         advertised.listeners=PLAINTEXT://localhost:{broker},CONTROLLER://localhost:{controller}\n\
         controller.listener.names=CONTROLLER\n\
         listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL\n\
         num.network.threads=3\n\
         num.io.threads=8\n\
         socket.send.buffer.bytes=102400\n\
         socket.receive.buffer.bytes=102400\n\
         socket.request.max.bytes=104857600\n\
         log.dirs={}\n\
         num.partitions=1\n\
         num.recovery.threads.per.data.dir=2\n\
         offsets.topic.replication.factor=1\n\
         share.coordinator.state.topic.replication.factor=1\n\
         share.coordinator.state.topic.min.isr=1\n\
         transaction.state.log.replication.factor=1\n\
         transaction.state.log.min.isr=1\n\
         log.retention.hours=168\n\
         log.segment.bytes=1073741824\n\
         log.retention.check.interval.ms=300000\n",
        directory.join("kraft-combined-logs").display()
    );
    let file = directory.join("server.properties");
    fs::write(&file, text).expect("a file");
    file.to_string_lossy().into_owned()
}

#[test]
fn the_lines_of_the_quickstart_work() {
    let directory = fresh_directory("quickstart");
    let (port, controller) = (port::free(), port::free());
    let file = properties(&directory, port, controller);
    let id = said(&ringmain_with("", &["storage", "random-uuid"]));
    let format = [
        "storage",
        "format",
        "--standalone",
        "-t",
        id.trim(),
        "-c",
        &file,
    ];
    said(&ringmain_with("", &format));
    let log = fs::File::create(directory.join("log")).expect("a file");
    let mut server = Process::spawn(
        Command::new(binary())
            .args(["server-start", &file])
            .stdout(Stdio::null())
            .stderr(log),
    );
    let at = format!("localhost:{port}");
    clock::wait_until("the broker listens", || {
        std::net::TcpStream::connect(&at).is_ok()
    });

    let topic = ["--topic", "quickstart-events", "--bootstrap-server", &at];
    let created = said(&ringmain_with(
        "",
        &[&["topics", "--create"], &topic[..]].concat(),
    ));
    assert_eq!(created.trim(), "Created topic quickstart-events.");
    let described = said(&ringmain_with(
        "",
        &[&["topics", "--describe"], &topic[..]].concat(),
    ));
    assert!(
        described.starts_with("Topic: quickstart-events\tTopicId: "),
        "{described}"
    );
    assert!(
        described.contains("PartitionCount: 1\tReplicationFactor: 1"),
        "{described}"
    );

    let events = "This is my first event\nThis is my second event\n";
    said(&ringmain_with(
        events,
        &[&["console-producer"], &topic[..]].concat(),
    ));
    let mut consumer = Process::spawn(
        Command::new(binary())
            .args([&["console-consumer"], &topic[..], &["--from-beginning"]].concat())
            .stdout(fs::File::create(directory.join("events")).expect("a file"))
            .stderr(fs::File::create(directory.join("end")).expect("a file")),
    );
    let read = || fs::read_to_string(directory.join("events")).expect("a file");
    clock::wait_until("both events are read", || read().lines().count() == 2);
    assert_eq!(read(), events);
    // Ctrl-C ends it, as the quickstart says.
    consumer.signal(Signal::INT);
    consumer.wait_within(PATIENCE, "the consumer");
    let end = fs::read_to_string(directory.join("end")).expect("a file");
    assert!(end.contains("Processed a total of 2 messages"), "{end}");

    server.signal(Signal::INT);
    assert!(server.wait_within(PATIENCE, "the broker").success());
}
