//! What the HTTP port tells: health, and metrics that a Prometheus can read.
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;

use kafka_protocol::messages::MetadataRequest;

use crate::batch::Batch;
use crate::client::Connection;
use crate::common::{FETCH, PRODUCE, Topic, creatable, create, fetch_request, produce_as};
use crate::support::broker::Broker;
use crate::support::{clock, port};

/// Sends bytes and reads to the end: status and body.
fn exchange(port: u16, request: &[u8]) -> (u16, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("the HTTP port is open");
    stream.write_all(request).expect("the broker takes bytes");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("a whole answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("headers end");
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
    let length = format!("content-length: {}", body.len());
    assert!(head.contains(&length), "{head}");
    (status.expect("a status"), body.to_owned())
}

fn get(port: u16, path: &str) -> (u16, String) {
    exchange(
        port,
        format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes(),
    )
}

/// The values of a scrape, added up over the cores; every one has its type and its help.
fn metrics(port: u16) -> BTreeMap<String, f64> {
    let (status, text) = get(port, "/metrics");
    assert_eq!(status, 200);
    assert!(text.ends_with("# EOF\n"));
    let mut sums = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (name, rest) = line.split_once('{').expect("labels");
        let (labels, value) = rest.split_once("} ").expect("a value");
        assert!(labels.contains("core=\""), "{line}");
        let family = name.strip_suffix("_total").unwrap_or(name);
        for word in ["HELP", "TYPE"] {
            assert!(
                text.contains(&format!("# {word} {family} ")),
                "{word} of {name}"
            );
        }
        let api = labels
            .split("api=\"")
            .nth(1)
            .map(|rest| rest.trim_end_matches('"'));
        let name = api.map_or_else(|| name.to_owned(), |api| format!("{name} {api}"));
        *sums.entry(name).or_insert(0.0) += value.parse::<f64>().expect("a number");
    }
    sums
}

#[test]
fn metrics_count_what_clients_did() {
    let http = port::free();
    let listener = format!("127.0.0.1:{http}");
    let settings = [
        ("ringmain.http.listener", &*listener),
        ("ringmain.shards", "2"),
    ];
    let broker = Broker::start("watched", &settings);
    assert_eq!(get(http, "/healthz"), (200, "alive\n".to_owned()));
    assert_eq!(get(http, "/readyz?verbose"), (200, "ready\n".to_owned()));
    let before = metrics(http);
    let mut connection = Connection::open(broker.port);
    let answer = create(&mut connection, creatable("watched", 3), false);
    let topic = Topic {
        name: answer.name,
        id: answer.topic_id,
    };
    let records = Batch::of(clock::wall_clock_ms(), &["x".repeat(5000).as_str()]).bytes();
    for _ in 0..4 {
        assert_eq!(
            produce_as(&mut connection, PRODUCE, &topic, -1, records.clone()).error_code,
            0
        );
    }
    connection.call(FETCH, &fetch_request(FETCH, &[(&topic, 0, 0)]));
    connection.call(12, &MetadataRequest::default());
    let after = metrics(http);
    let grew = |name: &str| {
        after.get(name).copied().unwrap_or(0.0) - before.get(name).copied().unwrap_or(0.0)
    };
    assert_eq!(grew("ringmain_requests_total Produce"), 4.0);
    assert_eq!(grew("ringmain_requests_total Fetch"), 1.0);
    assert_eq!(grew("ringmain_requests_total Metadata"), 1.0);
    // And the metadata of the topic.
    assert!(grew("ringmain_storage_appended_batches_total") >= 5.0);
    assert_eq!(
        grew("ringmain_fetched_from_memory_bytes_total"),
        4.0 * records.len() as f64
    );
    assert_eq!(grew("ringmain_connections_accepted_total"), 1.0);
    assert_eq!(
        (grew("ringmain_partitions"), grew("ringmain_connections")),
        (3.0, 1.0)
    );
    assert!(grew("ringmain_core_bytes_received_total") > 20_000.0);
    assert!(after["ringmain_request_memory_limit_bytes"] > 1e6);
}

#[test]
fn odd_http_requests_get_an_answer_that_says_so() {
    let http = port::free();
    let listener = format!("127.0.0.1:{http}");
    let _broker = Broker::start("odd-http", &[("ringmain.http.listener", &*listener)]);
    assert_eq!(get(http, "/other").0, 404);
    assert_eq!(exchange(http, b"POST /metrics HTTP/1.1\r\n\r\n").0, 405);
    assert_eq!(exchange(http, b"\0\0\0\x01\xff nonsense\r\n\r\n").0, 400);
    let long = [b"GET /", "x".repeat(9000).as_bytes()].concat();
    assert_eq!(exchange(http, &long).0, 431);
}
