//! Flame graphs over HTTP: what is in them, who may ask for one, and that the broker goes on meanwhile.
use std::collections::BTreeSet;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use kafka_protocol::messages::ProduceRequest;
use perf_event::Builder;
use perf_event::events::Software;

use crate::batch::Batch;
use crate::client::Connection;
use crate::common::{PRODUCE, Topic, creatable, create, produce_request};
use crate::support::broker::Broker;
use crate::support::scrape::get;
use crate::support::{clock, port};

const PARTITIONS: i32 = 8;

fn with_http(name: &str, settings: &[(&str, &str)]) -> (Broker, u16) {
    let http = port::free();
    let listener = format!("127.0.0.1:{http}");
    let own = [
        ("ringmain.http.listener", &*listener),
        ("ringmain.shards", "2"),
    ];
    (Broker::start(name, &[&own, settings].concat()), http)
}

/// Whether stacks can be sampled: not in a build without frame pointers, and where the kernel forbids it. The broker has
/// to say so then.
fn permitted(http: u16) -> bool {
    let allowed = Builder::new(Software::CPU_CLOCK).build().is_ok();
    let (expected, word) = match (cfg!(frame_pointers), allowed) {
        (true, true) => return true,
        (false, _) => (501, "frame pointers"),
        (true, false) => (503, "perf_event_paranoid"),
    };
    let (status, text) = get(http, "/flamegraph?seconds=1");
    assert_eq!(status, expected, "{text}");
    assert!(text.contains(word), "{text}");
    false
}

/// An answer that comes while something else goes on.
struct Asked {
    stream: TcpStream,
    answer: Vec<u8>,
}

impl Asked {
    fn new(http: u16, path: &str) -> Self {
        let mut stream = TcpStream::connect(("127.0.0.1", http)).expect("the HTTP port listens");
        write!(stream, "GET {path} HTTP/1.1\r\nhost: x\r\n\r\n").expect("it takes a request");
        stream.set_nonblocking(true).expect("an option can be set");
        let answer = Vec::new();
        Self { stream, answer }
    }

    /// Status and body, when all of it is there.
    fn answered(&mut self) -> Option<(u16, String)> {
        match self.stream.read_to_end(&mut self.answer) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
            Err(error) => panic!("{error}"),
        }
        let answer = String::from_utf8_lossy(&self.answer);
        let (head, body) = answer.split_once("\r\n\r\n").expect("headers end");
        let status = head.split(' ').nth(1).expect("a status");
        Some((status.parse().expect("a number"), body.to_owned()))
    }
}

/// A request that writes to every partition, so that every shard has work.
fn load(topic: &Topic) -> ProduceRequest {
    let value = "x".repeat(500);
    let records = Batch::of(clock::wall_clock_ms(), &[value.as_str(); 20]).bytes();
    let mut request = produce_request(PRODUCE, topic, -1, records);
    let partitions = &mut request.topic_data[0].partition_data;
    let first = partitions[0].clone();
    *partitions = (0..PARTITIONS)
        .map(|index| first.clone().with_index(index))
        .collect();
    request
}

fn shows_shards_and_functions(name: &str, settings: &[(&str, &str)]) {
    let (broker, http) = with_http(name, settings);
    if !permitted(http) {
        return;
    }
    let mut connection = Connection::open(broker.port);
    let created = create(&mut connection, creatable("flames", PARTITIONS), false);
    let topic = Topic {
        name: created.name,
        id: created.topic_id,
    };
    topic.wait_served_by(&mut connection, PARTITIONS);
    let mut asked = Asked::new(http, "/flamegraph?seconds=2&frequency=499&format=folded");
    let mut requests = 0;
    let (status, folded) = clock::wait_for("the samples", || {
        let answer = connection.call(PRODUCE, &load(&topic));
        for partition in &answer.responses[0].partition_responses {
            assert_eq!(partition.error_code, 0);
        }
        requests += 1;
        if requests % 100 == 1 {
            assert_eq!(get(http, "/healthz"), (200, "alive\n".to_owned()));
        }
        asked.answered()
    });
    assert_eq!(status, 200, "{folded}");
    let mut threads = BTreeSet::new();
    for line in folded.lines() {
        let (stack, count) = line.rsplit_once(' ').expect("a count");
        assert!(count.parse::<u64>().is_ok_and(|count| count > 0), "{line}");
        threads.extend(stack.split(';').next());
    }
    assert!(
        threads.contains("shard-0") && threads.contains("shard-1"),
        "{threads:?}"
    );
    let of_shards = || folded.lines().filter(|line| line.starts_with("shard-"));
    let some: Vec<&str> = of_shards().take(20).collect();
    // In an optimised build an inlined function has its bare name, so of each library there is something.
    for library in ["broker::handlers::", "storage::", "shards::"] {
        let shown = of_shards().any(|line| line.contains(library));
        assert!(shown, "{library}: {some:#?}");
    }
    // From the thread's start to what ran, in one piece; but for what glibc, without frame pointers, cuts off.
    let whole = of_shards().filter(|line| line.contains("run_core"));
    let (whole, all) = (whole.count(), of_shards().count());
    assert!(
        whole * 2 > all,
        "{whole} of {all} stacks are whole: {some:#?}"
    );
    let (status, svg) = get(http, "/flamegraph?seconds=1");
    assert_eq!(status, 200);
    assert!(
        svg.contains("<svg") || svg.starts_with("no samples"),
        "{svg}"
    );
}

#[test]
fn a_flame_graph_shows_shards_and_functions() {
    shows_shards_and_functions("flames", &[]);
}

#[test]
fn a_flame_graph_shows_them_on_epoll_too() {
    shows_shards_and_functions("flames-epoll", &[("ringmain.io.backend", "epoll")]);
}

#[test]
fn a_wrong_parameter_is_named() {
    let (_broker, http) = with_http("flames-wrong", &[]);
    for (query, named) in [
        ("seconds=0", "seconds"),
        ("seconds=61", "seconds"),
        ("seconds=ten", "seconds"),
        ("format=png", "format"),
        ("frequency=100000", "frequency"),
        ("minutes=1", "minutes"),
    ] {
        let (status, text) = get(http, &format!("/flamegraph?{query}"));
        assert_eq!(status, 400, "{query}: {text}");
        assert!(text.contains(named), "{query}: {text}");
    }
}

#[test]
fn one_records_at_a_time_and_a_client_that_leaves_makes_room() {
    let (_broker, http) = with_http("flames-two", &[]);
    if !permitted(http) {
        return;
    }
    let first = Asked::new(http, "/flamegraph?seconds=60");
    let (text, _) = clock::wait_for("the second to be refused", || {
        // Until the first was heard a second is served, and takes its second.
        let (status, text) = get(http, "/flamegraph?seconds=1&format=folded");
        (status == 409).then_some((text, status))
    });
    assert!(text.contains("one at a time"), "{text}");
    assert_eq!(get(http, "/healthz").0, 200);
    drop(first);
    // Long before the minute of the first is over.
    clock::wait_within(Duration::from_secs(30), "room again", || {
        (get(http, "/flamegraph?seconds=1&format=folded").0 == 200).then_some(())
    });
}
