//! What the HTTP port tells: health, and metrics that a Prometheus can read.
use std::collections::BTreeMap;
use std::time::Duration;

use kafka_protocol::messages::{ApiVersionsRequest, FetchRequest, MetadataRequest};

use crate::batch::Batch;
use crate::client::{Connection, with_length};
use crate::common::{FETCH, PRODUCE, Topic, creatable, create, fetch_request, produce_as, text};
use crate::support::broker::Broker;
use crate::support::scrape::{exchange, get};
use crate::support::{clock, port};

/// The values of a scrape by name and labels, added up over the cores; every one has its type and its help.
fn metrics(port: u16) -> BTreeMap<String, f64> {
    let (status, text) = get(port, "/metrics");
    assert_eq!(status, 200);
    assert!(text.ends_with("# EOF\n"));
    let mut sums = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (front, value) = line.rsplit_once(' ').expect("a value");
        let (name, labels) = front.split_once('{').map_or((front, ""), |(name, labels)| {
            (name, labels.trim_end_matches('}'))
        });
        let endings = ["_total", "_bucket", "_sum", "_count"];
        let cut = endings.iter().find_map(|end| name.strip_suffix(end));
        for word in ["HELP", "TYPE"] {
            let described = |family: &str| text.contains(&format!("# {word} {family} "));
            assert!(
                described(name) || cut.is_some_and(described),
                "{word} of {name}"
            );
        }
        let labels: Vec<&str> = labels
            .split(',')
            .filter(|label| !label.is_empty() && !label.starts_with("core="))
            .filter_map(|label| label.split('"').nth(1))
            .collect();
        let key = [&[name], &*labels].concat().join(" ");
        *sums.entry(key).or_insert(0.0) += value.parse::<f64>().expect("a number");
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
    let produced = format!("ringmain_requests_total Produce {PRODUCE}");
    assert_eq!(grew(&produced), 4.0);
    assert_eq!(grew(&format!("ringmain_requests_total Fetch {FETCH}")), 1.0);
    assert_eq!(grew("ringmain_requests_total Metadata 12"), 1.0);
    assert!(grew("ringmain_request_bytes_total Produce") > 20_000.0);
    assert!(grew("ringmain_response_bytes_total Fetch") > 20_000.0);
    for stage in ["queue", "decode", "hop", "append", "handle", "write"] {
        let count = format!("ringmain_request_stage_seconds_count Produce {stage}");
        assert_eq!(grew(&count), 4.0, "{stage}");
    }
    let spent = |stage: &str| grew(&format!("ringmain_request_stage_seconds_sum {stage}"));
    assert!(spent("Produce append") > 0.0 && spent("Fetch read") > 0.0);
    let total = grew("ringmain_request_seconds_sum Produce");
    let stages: f64 = after
        .iter()
        .filter(|(name, _)| name.starts_with("ringmain_request_stage_seconds_sum Produce "))
        .map(|(_, value)| value)
        .sum();
    assert!((total - stages).abs() < 1e-6, "{total} {stages}");
    let disk = broker.data().display().to_string();
    assert!(grew(&format!("ringmain_disk_written_bytes_total {disk}")) > 20_000.0);
    assert!(after[&format!("ringmain_disk_free_bytes {disk}")] > 0.0);
    assert_eq!(after[&format!("ringmain_disk_offline {disk}")], 0.0);
    assert!(after["ringmain_process_resident_bytes"] > 1e6);
    assert!(!after.keys().any(|name| name.contains("_partition_")));
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

#[test]
fn errors_old_clients_and_single_partitions_are_told() {
    let http = port::free();
    let listener = format!("127.0.0.1:{http}");
    let settings = [
        ("ringmain.http.listener", &*listener),
        ("ringmain.metrics.partitions", "true"),
    ];
    let broker = Broker::start("told", &settings);
    let mut connection = Connection::open(broker.port);
    let request = ApiVersionsRequest::default()
        .with_client_software_name(text("old-tool"))
        .with_client_software_version(text("0.9"));
    connection.call(3, &request);
    let answer = create(&mut connection, creatable("told", 1), false);
    assert_eq!(create_again(&mut connection), 36);
    let topic = Topic {
        name: answer.name,
        id: answer.topic_id,
    };
    let records = Batch::of(clock::wall_clock_ms(), &["x"]).bytes();
    assert_eq!(
        produce_as(&mut connection, 3, &topic, -1, records.clone()).error_code,
        0
    );
    let now = metrics(http);
    assert_eq!(
        now["ringmain_request_errors_total CreateTopics TOPIC_ALREADY_EXISTS"],
        1.0
    );
    assert_eq!(
        now["ringmain_old_version_requests_total Produce 3 old-tool 0.9 yes"],
        1.0
    );
    assert_eq!(now["ringmain_clients old-tool 0.9"], 1.0);
    assert_eq!(now["ringmain_partition_log_end_offset told 0"], 1.0);
    let bytes = records.len() as f64;
    assert_eq!(now["ringmain_partition_appended_bytes_total told 0"], bytes);
    // A version that is gone, and what is no request at all.
    let mut gone = Connection::open(broker.port);
    gone.send_raw(&with_length(&[0, 0, 0, 2, 0, 0, 0, 1, 0xff, 0xff]));
    gone.expect_closed("Produce version 2");
    let mut nonsense = Connection::open(broker.port);
    nonsense.send_raw(&i32::MAX.to_be_bytes());
    nonsense.expect_closed("a frame of 2 GiB");
    clock::wait_until("both to be counted", || {
        let now = metrics(http);
        now["ringmain_bad_requests_total version"] == 1.0
            && now["ringmain_bad_requests_total length"] == 1.0
            && now["ringmain_old_version_requests_total Produce 2 unknown  no"] == 1.0
    });
}

fn create_again(connection: &mut Connection) -> i16 {
    create(connection, creatable("told", 1), false).error_code
}

#[test]
fn a_slow_request_leaves_a_line_that_says_where_its_time_went() {
    let settings = [("ringmain.slow.request.ms", "300")];
    let broker = Broker::start("slow", &settings);
    let mut connection = Connection::open(broker.port);
    let answer = create(&mut connection, creatable("slow", 1), false);
    let topic = Topic {
        name: answer.name,
        id: answer.topic_id,
    };
    // A fetch that waits as long as it was asked to is not slow; the request behind it is.
    let mut fetch = fetch_request(FETCH, &[(&topic, 0, 0)]);
    fetch.max_wait_ms = 700;
    fetch.min_bytes = 1;
    let first = connection.send(FETCH, &fetch);
    let second = connection.send(12, &MetadataRequest::default());
    connection.receive::<FetchRequest>(FETCH, first);
    connection.receive::<MetadataRequest>(12, second);
    let line = clock::wait_within(Duration::from_secs(10), "the line", || {
        let log = broker.log();
        log.lines()
            .find(|line| line.contains("a slow request"))
            .map(str::to_owned)
    });
    assert!(line.contains("it waited for earlier requests"), "{line}");
    assert!(
        line.contains("Metadata") && line.contains("queue"),
        "{line}"
    );
    assert!(!broker.log().contains("api=\"Fetch\""), "{}", broker.log());
}
