//! Both brokers, set up alike and asked alike.
use std::collections::BTreeMap;
use std::time::Duration;

use crate::messages::{self, Api};
use crate::side::{Answer, Connection, Frame, Outcome, PATIENCE, Request, Side};
use crate::support::broker::{Broker, Program};
use crate::support::clock;
use crate::value::Value;

/// Where the two must not differ because nobody said so.
const SETTINGS: &[(&str, &str)] = &[
    ("offsets.topic.num.partitions", "3"),
    ("transaction.state.log.num.partitions", "1"),
    ("num.partitions", "2"),
    ("log.retention.ms", "-1"),
    // Or what another case left behind decides whether a commit fits.
    ("log.cleaner.enable", "false"),
];

/// With eligible leader replicas Apache writes the default of `min.insync.replicas` into its metadata as a dynamic one. That
/// feature is not built here yet, so it stands at 0 on both.
const FORMAT: &[&str] = &["--feature", "eligible.leader.replicas.version=0"];

pub struct Stage {
    pub apis: BTreeMap<String, Api>,
    /// Apache Kafka, then ours.
    pub sides: [Side; 2],
}

impl Stage {
    pub fn start() -> Self {
        let mut apache =
            Broker::prepare_as(Program::Apache, "differential-apache", SETTINGS, FORMAT);
        apache.spawn();
        let mut ours = Broker::prepare_as(Program::Ringmain, "differential-ours", SETTINGS, FORMAT);
        ours.restart();
        apache.wait_ready();
        Self {
            apis: messages::all(),
            sides: [Side::new(apache), Side::new(ours)],
        }
    }

    pub fn ask(&mut self, request: &Request) -> [Outcome; 2] {
        self.ask_within(PATIENCE, request)
    }

    /// Asks both, and waits so long for what they say.
    pub fn ask_within(&mut self, patience: Duration, request: &Request) -> [Outcome; 2] {
        let api = &self.apis[&request.api];
        for side in &mut self.sides {
            side.send(api, request);
        }
        let [apache, ours] = &mut self.sides;
        let sent = clock::now();
        [apache, ours].map(|side| {
            let left = patience.saturating_sub(sent.elapsed());
            side.receive(api, request, left)
        })
    }

    /// Asks both what must be answered.
    pub fn call(&mut self, api: &str, version: i16, body: Value) -> [Value; 2] {
        let request = Request {
            api: api.to_owned(),
            version,
            body,
            frame: Frame::Sound,
        };
        self.ask(&request).map(|outcome| match outcome {
            Outcome {
                answer: Answer::Value(value),
                connection: Connection::Open,
            } => value,
            other => panic!("{api} v{version} {}: {other:?}", request.body),
        })
    }

    /// Asks both what must be done, until it is: a partition may not be served yet, a coordinator not loaded.
    pub fn make(&mut self, api: &str, version: i16, body: &Value, code: &str) -> [Value; 2] {
        let what = format!("{api} v{version} {body}");
        clock::wait_for(&what, || {
            let answers = self.call(api, version, body.clone());
            let codes = answers.each_ref().map(|answer| answer.int(code));
            match codes {
                [Some(0), Some(0)] => Some(answers),
                // Not there yet, on the one that answers before it is.
                [Some(3 | 5 | 6 | 14 | 15 | 16 | 36), _]
                | [_, Some(3 | 5 | 6 | 14 | 15 | 16 | 36)] => None,
                _ => panic!("{what}: {} and {}", answers[0], answers[1]),
            }
        })
    }

    /// Gives what stands at the path of both answers a name.
    pub fn remember(&mut self, name: &str, answers: &[Value; 2], path: &str) {
        for (side, answer) in self.sides.iter_mut().zip(answers) {
            let found = answer.find(path);
            let found = found.unwrap_or_else(|| panic!("{path} in {answer}"));
            side.known.insert(name.to_owned(), found.clone());
        }
    }
}
