//! Prometheus itself scrapes a broker and evaluates every expression of the dashboard; so what is drawn is what it understands.
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::batch::Batch;
use crate::client::Connection;
use crate::common::{FETCH, PRODUCE, Topic, creatable, create, fetch_request, produce_as};
use crate::support::broker::Broker;
use crate::support::process::Process;
use crate::support::{clock, port, scrape};

/// Expressions that have no sample where nothing has gone wrong, and no group is there.
fn may_be_empty(expression: &str) -> bool {
    [
        "errors",
        "drops",
        "parks",
        "parked",
        "bad_requests",
        "old_version",
        "offline",
    ]
    .iter()
    .any(|word| expression.contains(word))
}

fn dashboard() -> Vec<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/grafana.json");
    let text = fs::read_to_string(path).expect("the dashboard is there");
    let mut found = Vec::new();
    collect(&serde_json::from_str(&text).expect("JSON"), &mut found);
    found
}

fn collect(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        Value::Object(fields) => {
            found.extend(
                fields
                    .get("expr")
                    .and_then(Value::as_str)
                    .map(str::to_owned),
            );
            fields.values().for_each(|field| collect(field, found));
        }
        _ => {}
    }
}

/// A Prometheus that scrapes one broker each second.
struct Prometheus {
    port: u16,
    _process: Process,
}

impl Prometheus {
    fn start(broker: &Broker, http: u16) -> Self {
        let port = port::free();
        let file = broker.directory.join("prometheus.yml");
        let text = format!(
            "scrape_configs:\n- job_name: ringmain\n  scrape_interval: 1s\n  static_configs:\n  - targets: [\"127.0.0.1:{http}\"]\n"
        );
        fs::write(&file, text).expect("a file");
        let log = File::create(broker.directory.join("prometheus.log")).expect("a file");
        let mut command = Command::new("prometheus");
        command
            .arg(format!("--config.file={}", file.display()))
            .arg(format!(
                "--storage.tsdb.path={}",
                broker.directory.join("prometheus").display()
            ))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        let process = Process::spawn(&mut command);
        let started = Self {
            port,
            _process: process,
        };
        clock::wait_for("Prometheus to be ready", || {
            started.answer("/api/v1/targets")
        });
        started
    }

    /// The samples of an expression, or why there are none.
    fn query(&self, expression: &str) -> Result<Vec<Value>, String> {
        let text = expression
            .bytes()
            .map(|byte| format!("%{byte:02X}"))
            .collect::<String>();
        let answer = self.ask(&format!("/api/v1/query?query={text}"));
        match answer["data"]["result"].as_array() {
            Some(samples) => Ok(samples.clone()),
            None => Err(answer.to_string()),
        }
    }

    fn ask(&self, path: &str) -> Value {
        self.answer(path).expect("an answer in JSON")
    }

    /// HTTP/1.0, whose answers end with the connection.
    fn answer(&self, path: &str) -> Option<Value> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        write!(stream, "GET {path} HTTP/1.0\r\n\r\n").ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        serde_json::from_str(text.split_once("\r\n\r\n")?.1).ok()
    }
}

/// A record each way, so that there is something to draw, and a client that stays.
fn work(broker: &Broker) -> Connection {
    let mut connection = Connection::open(broker.port);
    let answer = create(&mut connection, creatable("drawn", 2), false);
    let topic = Topic {
        name: answer.name,
        id: answer.topic_id,
    };
    let records = Batch::of(clock::wall_clock_ms(), &["x"]).bytes();
    assert_eq!(
        produce_as(&mut connection, PRODUCE, &topic, -1, records).error_code,
        0
    );
    connection.call(FETCH, &fetch_request(FETCH, &[(&topic, 0, 0)]));
    connection
}

#[test]
fn prometheus_understands_what_is_told_and_drawn() {
    let http = port::free();
    let listener = format!("127.0.0.1:{http}");
    let settings = [
        ("ringmain.http.listener", listener.as_str()),
        ("ringmain.metrics.partitions", "true"),
    ];
    let broker = Broker::start("prometheus", &settings);
    let _client = work(&broker);
    let prometheus = Prometheus::start(&broker, http);
    // Rates need two samples.
    clock::wait_within(Duration::from_secs(60), "three scrapes", || {
        scrapes(&prometheus).filter(|count| *count >= 3.0)
    });
    let target = &prometheus.ask("/api/v1/targets")["data"]["activeTargets"][0];
    assert_eq!(
        (&target["health"], &target["lastError"]),
        (&"up".into(), &"".into()),
        "{target}"
    );

    let expressions = dashboard();
    assert!(expressions.len() > 30, "{}", expressions.len());
    let mut wrong = Vec::new();
    for expression in &expressions {
        let asked = expression
            .replace("$__rate_interval", "1m")
            .replace("$instance", ".*");
        match prometheus.query(&asked) {
            Ok(samples) if samples.is_empty() && !may_be_empty(expression) => {
                wrong.push(format!("{expression}: no sample"))
            }
            Ok(_) => {}
            Err(why) => wrong.push(format!("{expression}: {why}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));

    // Each family that the broker tells has its type and its help, and arrives.
    let (_, told) = scrape::get(http, "/metrics");
    let families: BTreeSet<&str> = told
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next())
        .collect();
    let answer = prometheus.ask("/api/v1/metadata");
    let known = answer["data"].as_object().expect("metadata");
    for family in families {
        let found = known
            .iter()
            .find(|(name, _)| name.trim_end_matches("_total") == family);
        let (_, facts) = found.unwrap_or_else(|| panic!("{family} does not arrive"));
        assert_ne!(facts[0]["help"], "", "{family}");
    }
}

fn scrapes(prometheus: &Prometheus) -> Option<f64> {
    let samples = prometheus
        .query("count_over_time(ringmain_ready[1m])")
        .ok()?;
    samples.first()?["value"][1].as_str()?.parse().ok()
}
