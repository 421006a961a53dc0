//! One broker, both tools, and how their outputs are compared.
use std::path::PathBuf;

use crate::support::apache;
use crate::support::broker::Broker;
use crate::support::commands::{Commands, Ended, ringmain};

/// How outputs must agree; README.md says why it is not always byte by byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    Same,
    /// The same lines in any order, and the same settings in any order within one.
    Rows,
    /// Moments and ages may differ.
    Moments,
    /// JSON whose arrays may be in any order.
    Json,
}

pub struct Both {
    broker: Broker,
    apache: Commands,
    pub compared: usize,
    differences: Vec<String>,
}

/// Which class of Apache's each tool is.
const CLASSES: &[(&str, &str)] = &[
    (
        "broker-api-versions",
        "org.apache.kafka.tools.BrokerApiVersionsCommand",
    ),
    ("cluster", "org.apache.kafka.tools.ClusterTool"),
    ("configs", "org.apache.kafka.tools.ConfigCommand"),
    (
        "consumer-groups",
        "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    ),
    (
        "delete-records",
        "org.apache.kafka.tools.DeleteRecordsCommand",
    ),
    ("features", "org.apache.kafka.tools.FeatureCommand"),
    (
        "console-consumer",
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
    ),
    ("console-producer", "org.apache.kafka.tools.ConsoleProducer"),
    (
        "consumer-perf-test",
        "org.apache.kafka.tools.ConsumerPerformance",
    ),
    (
        "producer-perf-test",
        "org.apache.kafka.tools.ProducerPerformance",
    ),
    ("dump-log", "org.apache.kafka.tools.DumpLogSegments"),
    ("storage", "kafka.tools.StorageTool"),
    ("get-offsets", "org.apache.kafka.tools.GetOffsetShell"),
    ("groups", "org.apache.kafka.tools.GroupsCommand"),
    ("log-dirs", "org.apache.kafka.tools.LogDirsCommand"),
    (
        "metadata-quorum",
        "org.apache.kafka.tools.MetadataQuorumCommand",
    ),
    ("topics", "org.apache.kafka.tools.TopicCommand"),
];

/// Names of one length, so that columns are as wide: whatever a command changes, each side changes its own.
const APACHES: &str = "left";
const OURS: &str = "rite";

fn class_of(tool: &str) -> &'static str {
    let class = CLASSES.iter().find(|(name, _)| *name == tool);
    class.expect("a tool of Apache's").1
}

impl Both {
    pub fn start(name: &str) -> Self {
        let broker = Broker::start(name, &[("group.initial.rebalance.delay.ms", "0")]);
        let brief = "default.api.timeout.ms=2000\nrequest.timeout.ms=1000\n";
        std::fs::write(broker.directory.join("brief"), brief).expect("a file");
        let apache = Commands::start(&broker.directory);
        Self {
            broker,
            apache,
            compared: 0,
            differences: Vec::new(),
        }
    }

    /// A file for the tools to read, `@name` in a command.
    pub fn file(&self, name: &str) -> PathBuf {
        self.broker.directory.join(name)
    }

    /// The words of a command for one side.
    fn words(&self, command: &str, own: &str) -> Vec<String> {
        let controller = format!("127.0.0.1:{}", self.broker.controller_port);
        let place = |word: &str| match word.strip_prefix('@') {
            Some("B") => self.broker.bootstrap(),
            Some("C") => controller.clone(),
            Some(file) => self.file(file).display().to_string(),
            None => word.replace('%', own),
        };
        command.split(' ').map(place).collect()
    }

    /// What our tool says.
    pub fn ours(&self, command: &str) -> Ended {
        let words = self.words(command, OURS);
        ringmain(&words.iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn apaches(&mut self, command: &str) -> Ended {
        let words = self.words(command, APACHES);
        let arguments: Vec<&str> = words[1..].iter().map(String::as_str).collect();
        self.apache.run(class_of(&words[0]), &arguments)
    }

    /// What Apache's tool says of itself. One ends its process while doing so, whoever else lives there.
    pub fn apaches_help(&mut self, words: &[&str]) -> String {
        let class = class_of(words[0]);
        if words[0] == "cluster" {
            let mut command = apache::tool(class);
            let output = command.args(&words[1..]).arg("--help").output();
            return String::from_utf8_lossy(&output.expect("Java").stdout).into_owned();
        }
        let ended = self.apache.run(class, &[&words[1..], &["--help"]].concat());
        ended.out + &ended.err
    }

    /// Runs commands on both sides; what differs is told at the end.
    pub fn each(&mut self, commands: &[(Rule, &str)]) {
        for (rule, command) in commands {
            self.compared += 1;
            let mut apaches = self.apaches(command);
            let mut ours = self.ours(command);
            ours.out = ours.out.replace(OURS, "%").replace(APACHES, "%");
            apaches.out = apaches.out.replace(OURS, "%").replace(APACHES, "%");
            let same = rule.applied(&apaches.out) == rule.applied(&ours.out);
            if apaches.code != ours.code || !same {
                self.differs(format!(
                    "{command}\n--- Apache's, code {}\n{}\n({})\n--- ours, code {}\n{}\n({})",
                    apaches.code,
                    apaches.out,
                    apaches.err.lines().next().unwrap_or_default(),
                    ours.code,
                    ours.out,
                    ours.err.trim_end()
                ));
            }
            // Whoever has to mend the flags needs to know which.
            let said = ours.err.lines().filter(|line| !line.starts_with("WARN: "));
            if ours.code != 0 && ours.out.is_empty() && said.count() != 1 {
                let err = &ours.err;
                self.differs(format!("{command}\nis not told off in one line:\n{err}"));
            }
        }
    }

    /// Both fail with code 1; ours names the reason.
    pub fn complains(&mut self, command: &str, reason: &str) {
        self.compared += 1;
        let (apaches, ours) = (self.apaches(command), self.ours(command));
        let told = ours.err.contains(reason) && ours.err.lines().count() == 1;
        if (apaches.code, ours.code) != (1, 1) || !told {
            self.differs(format!("{command}\n{apaches:?}\n{ours:?}"));
        }
    }

    /// Told at once too, as a later command may not get far without this one.
    pub fn differs(&mut self, what: String) {
        println!("{what}\n");
        self.differences.push(what);
    }

    pub fn produce(&mut self, topic: &str, partition: i32, count: usize) {
        let bootstrap = self.broker.bootstrap();
        let (partition, count) = (partition.to_string(), count.to_string());
        self.apache
            .must("produce", &[&bootstrap, topic, &partition, &count]);
    }

    /// A consumer of that group, which has read and committed what there is, until `release`.
    pub fn hold(&mut self, group: &str, topic: &str) {
        let bootstrap = self.broker.bootstrap();
        self.apache.must("hold", &[&bootstrap, group, topic]);
    }

    pub fn release(&mut self) {
        self.apache.must("release", &[]);
    }

    pub fn finish(mut self) {
        assert!(self.broker.stop().success());
        assert!(
            self.differences.is_empty(),
            "{} of {} commands differ:\n\n{}",
            self.differences.len(),
            self.compared,
            self.differences.join("\n\n")
        );
    }
}

impl Rule {
    fn applied(self, text: &str) -> Vec<String> {
        match self {
            Rule::Same => vec![text.to_owned()],
            Rule::Rows => {
                let mut lines: Vec<String> = text.split('\n').map(sorted_configs).collect();
                lines.sort();
                lines
            }
            Rule::Moments => text.split('\n').map(without_moments).collect(),
            Rule::Json => text
                .split('\n')
                .map(|line| {
                    serde_json::from_str(line).map_or_else(|_| line.to_owned(), sorted_json)
                })
                .collect(),
        }
    }
}

/// `Configs: b=1,a=2` with the settings in order.
fn sorted_configs(line: &str) -> String {
    match line.split_once("\tConfigs: ") {
        Some((start, configs)) => {
            let mut configs: Vec<&str> = configs.split(',').collect();
            configs.sort_unstable();
            format!("{start}\tConfigs: {}", configs.join(","))
        }
        None => line.to_owned(),
    }
}

/// Numbers of a day's milliseconds and ages are gone, and with them the widths of their columns.
fn without_moments(line: &str) -> String {
    let cell = |cell: &str| {
        let cell = cell.trim_end();
        let digits = cell.strip_suffix(" ms ago").unwrap_or(cell);
        let moment = digits.bytes().all(|byte| byte.is_ascii_digit());
        match moment && (cell.len() > 12 || digits.len() < cell.len()) {
            true => "moment".to_owned(),
            false => cell.to_owned(),
        }
    };
    line.split('\t').map(cell).collect::<Vec<_>>().join("\t")
}

fn sorted_json(value: serde_json::Value) -> String {
    match value {
        serde_json::Value::Array(items) => {
            let mut items: Vec<String> = items.into_iter().map(sorted_json).collect();
            items.sort();
            format!("[{}]", items.join(","))
        }
        serde_json::Value::Object(fields) => {
            let mut shown: Vec<String> = fields
                .into_iter()
                .map(|(name, value)| format!("{name}:{}", sorted_json(value)))
                .collect();
            shown.sort();
            format!("{{{}}}", shown.join(","))
        }
        other => other.to_string(),
    }
}
