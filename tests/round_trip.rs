//! One directory, two brokers: Apache Kafka 4.4 and Ringmain take turns on the same `server.properties`, after clean stops
//! and after kill -9, and each finds all that the other left. Between the turns Apache's dump tool reads every file.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test says how far it came"
)]

mod support;

#[path = "wire/batch.rs"]
#[allow(dead_code, reason = "these tests use a part of it")]
mod batch;
#[path = "wire/client.rs"]
#[allow(dead_code, reason = "these tests use a part of it")]
mod client;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use batch::Batch;
use client::Connection;
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::offset_for_leader_epoch_request::{
    OffsetForLeaderPartition, OffsetForLeaderTopic,
};
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::{
    BrokerId, InitProducerIdRequest, MetadataRequest, OffsetForLeaderEpochRequest, ProduceRequest,
    TopicName,
};
use kafka_protocol::protocol::StrBytes;
use support::broker::{Broker, Program};
use support::commands::ringmain;
use support::tools::Tools;
use support::{clock, port, segments};

/// Ringmain refuses to run with an authorizer, and without one Apache takes no access control lists.
const AUTHORIZER: [&str; 2] = [
    "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users=User:ANONYMOUS",
];
/// The topic of the producer whose sequences go on through all turns.
const SEQUENCES: &str = "sequences";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Quorum {
    Standalone,
    StaticVoters,
}

/// The directory, and what must be true of it after any number of turns.
struct Trip {
    /// Now the one, now the other.
    broker: Broker,
    /// Where in its log the turn of now begins.
    log_from: usize,
    tools: Tools,
    /// Rounds of records written so far.
    rounds: usize,
    /// Id and epoch of the producer, and how many of its batches are written.
    producer: Option<(i64, i16)>,
    sequence: i32,
    /// Topic ids and partition counts.
    topics: Vec<String>,
    /// What `show-features` said.
    features: Vec<String>,
    groups: Vec<String>,
    /// Leader epoch of the partition of sequences, and where each one ended.
    epoch: i32,
    epoch_ends: BTreeMap<i32, i64>,
    /// The decoded metadata log.
    metadata: String,
}

impl Trip {
    /// Formats a directory with Apache's storage tool.
    fn begin(name: &str, quorum: Quorum) -> Self {
        let broker = Broker::unformatted(name);
        let controller = port::free();
        let voters = match quorum {
            Quorum::Standalone => {
                format!("controller.quorum.bootstrap.servers=127.0.0.1:{controller}")
            }
            Quorum::StaticVoters => {
                format!("controller.quorum.voters=1@127.0.0.1:{controller}")
            }
        };
        let properties = format!(
            "process.roles=broker,controller\nnode.id=1\n{voters}\n\
             listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}\n\
             advertised.listeners=PLAINTEXT://127.0.0.1:{port}\ncontroller.listener.names=CONTROLLER\n\
             log.dirs={data}\noffsets.topic.num.partitions=2\noffsets.topic.replication.factor=1\n\
             transaction.state.log.num.partitions=1\ntransaction.state.log.replication.factor=1\n\
             transaction.state.log.min.isr=1\nshare.coordinator.state.topic.num.partitions=1\n\
             share.coordinator.state.topic.replication.factor=1\nshare.coordinator.state.topic.min.isr=1\n\
             group.initial.rebalance.delay.ms=0\nauto.create.topics.enable=false\n\
             log.index.size.max.bytes=65536\nlog.cleaner.dedupe.buffer.size=4194304\n\
             broker.heartbeat.interval.ms=500\nbroker.session.timeout.ms=2000\n\
             metadata.log.max.record.bytes.between.snapshots=3000\n",
            port = broker.port,
            data = broker.data().display(),
        );
        fs::write(broker.properties(), properties).expect("the directory can be written");
        let mut tools = Tools::start(&broker.directory);
        let file = broker.properties().display().to_string();
        let mut format = vec![
            "format",
            "format",
            "-t",
            "MkU3OEVBNTcwNTJENDM2Qg",
            "-c",
            &file,
        ];
        if quorum == Quorum::Standalone {
            format.push("--standalone");
        }
        tools.ask(&format);
        Self {
            broker,
            log_from: 0,
            tools,
            rounds: 0,
            producer: None,
            sequence: 0,
            topics: Vec::new(),
            features: Vec::new(),
            groups: Vec::new(),
            epoch: -1,
            epoch_ends: BTreeMap::new(),
            metadata: String::new(),
        }
    }

    fn start(&mut self, program: Program) {
        self.log_from = self.broker.log().len();
        match program {
            Program::Apache => self.broker.start_as(program, &AUTHORIZER),
            Program::Ringmain => self.broker.start_as(program, &[]),
        }
    }

    /// What the broker has said in this turn.
    fn said(&self) -> String {
        self.broker.log().split_off(self.log_from)
    }

    fn ask(&mut self, command: &str, words: &[&str]) -> Vec<String> {
        let bootstrap = self.broker.bootstrap();
        let mut all = vec![command, &bootstrap];
        all.extend(words);
        self.tools.ask(&all)
    }

    /// What only Apache can do, before the first turn of ours.
    fn fill(&mut self) {
        self.ask("create", &[]);
        self.ask("features", &[]);
        self.ask("transactions", &[]);
        self.write();
        self.ask("other-groups", &[]);
        self.topics = self.ask("topics", &[]);
        self.features = self.ask("show-features", &[]);
        self.groups = self.ask("show-groups", &[]);
    }

    /// One turn of either broker: everything is there, and everything can go on.
    fn turn(&mut self) {
        self.check();
        self.write();
        self.check();
    }

    fn check(&mut self) {
        let rounds = self.rounds.to_string();
        let count = self.ask("check", &[&rounds]);
        assert_eq!(count, [(self.rounds * (5 * 2 * 60 + 300)).to_string()]);
        assert_eq!(self.ask("topics", &[]), self.topics);
        self.check_offsets();
    }

    /// The committed offsets of both groups, also of the one whose type we do not serve.
    fn check_offsets(&mut self) {
        let groups = self.ask("show-groups", &[]);
        for partition in 0..2 {
            let (offset, round) = (self.rounds * 10 + partition, self.rounds);
            let classic = format!("classic-group none-{partition} {offset} round {round}");
            let offset = 5 + partition;
            let other =
                format!("consumer-group none-{partition} {offset} from the consumer protocol");
            for line in [classic, other] {
                assert!(groups.contains(&line), "{line} in {groups:?}");
            }
        }
    }

    /// Records with every codec, a commit, and the next batches of the producer.
    fn write(&mut self) {
        let round = self.rounds.to_string();
        self.ask("write", &[&round]);
        self.rounds += 1;
        let committed = self.rounds.to_string();
        self.ask("group", &[&committed]);
        self.sequences();
    }

    /// The producer sends its last batch again, which is a duplicate, and goes on.
    fn sequences(&mut self) {
        let mut connection = Connection::open(self.broker.port);
        self.epochs(&mut connection);
        let (id, epoch) = *self
            .producer
            .get_or_insert_with(|| producer_id(&mut connection));
        let batch = |sequence: i32| {
            Batch::of(clock::wall_clock_ms(), &["one", "two"])
                .by(id, epoch, sequence * 2)
                .bytes()
        };
        if self.sequence > 0 {
            let last = self.sequence - 1;
            let again = produce(&mut connection, batch(last));
            assert_eq!(again, (0, i64::from(last) * 2), "a duplicate is known");
            let gap = produce(&mut connection, batch(self.sequence + 1));
            assert_eq!(gap.0, 45, "OUT_OF_ORDER_SEQUENCE_NUMBER");
        }
        for _ in 0..3 {
            let written = produce(&mut connection, batch(self.sequence));
            assert_eq!(written, (0, i64::from(self.sequence) * 2));
            self.sequence += 1;
        }
        self.epoch_ends
            .insert(self.epoch, i64::from(self.sequence) * 2);
    }

    /// Leader epochs only grow, and where each one ended stays known.
    fn epochs(&mut self, connection: &mut Connection) {
        let epoch = leader_epoch(connection);
        assert!(epoch >= self.epoch, "epoch {epoch} after {}", self.epoch);
        self.epoch = epoch;
        for (&epoch, &end) in &self.epoch_ends {
            assert_eq!(end_of_epoch(connection, epoch), (epoch, end), "{epoch}");
        }
    }

    /// Apache knows of no journal: what was acknowledged from it goes to the segments first. Twice does no harm.
    fn recover(&self) {
        let data = self.broker.data();
        let data = data.to_str().expect("UTF-8");
        let first = ringmain(&["recover", data]);
        assert_eq!(first.code, 0, "{first:?}");
        assert!(first.out.contains("journals with "), "{first:?}");
        let second = ringmain(&["recover", data]);
        assert!(second.out.contains("nothing to do"), "{second:?}");
    }

    /// What stands on disk after a clean stop.
    fn inspect(&mut self) {
        let data = self.broker.data();
        segments::assert_exact(&data);
        let mut logs = Vec::new();
        let mut indexes = Vec::new();
        let mut snapshots = Vec::new();
        for directory in segments::partitions(&data) {
            logs.extend(segments::files_of(&directory, ".log"));
            snapshots.extend(segments::files_of(&directory, ".snapshot"));
            if !directory.ends_with("__cluster_metadata-0") {
                indexes.extend(segments::files_of(&directory, ".index"));
                indexes.extend(segments::files_of(&directory, ".timeindex"));
            }
        }
        self.tools.dump(&["--deep-iteration"], &logs);
        self.tools.dump(&["--index-sanity-check"], &indexes);
        self.tools.dump(&[], &indexes);
        let producers = self.tools.dump(&[], &snapshots);
        let id = self.producer.expect("it has an id").0;
        assert!(
            producers.contains(&format!("producerId: {id} ")),
            "{producers}"
        );
        let offsets = segments::files_of_topic(&data, "__consumer_offsets", ".log");
        let groups = self.tools.dump(&["--offsets-decoder"], &offsets);
        for group in ["classic-group", "consumer-group", "share-group"] {
            assert!(
                groups.contains(&format!("\"{group}\"")),
                "{group}:\n{groups}"
            );
        }
        self.inspect_metadata(&data);
    }

    /// The metadata log only grows: what stood in it before stands in it still, byte for byte.
    fn inspect_metadata(&mut self, data: &Path) {
        let metadata = data.join("__cluster_metadata-0");
        let decoder = ["--cluster-metadata-decoder", "--skip-record-metadata"];
        let logs = segments::files_of(&metadata, ".log");
        let now = self.tools.dump(&decoder, &logs);
        assert!(now.starts_with(&self.metadata), "records were rewritten");
        for kind in [
            "CLIENT_QUOTA_RECORD",
            "USER_SCRAM_CREDENTIAL_RECORD",
            "ACCESS_CONTROL_ENTRY_RECORD",
            "CONFIG_RECORD",
            "TOPIC_RECORD",
        ] {
            assert!(now.contains(kind), "{kind}:\n{now}");
        }
        self.metadata = now;
        let checkpoints = segments::files_of(&metadata, ".checkpoint");
        let newest = checkpoints.last().expect("a snapshot of the metadata");
        let content = self.tools.dump(&decoder[..1], &checkpoints);
        for kind in [
            "CLIENT_QUOTA_RECORD",
            "ACCESS_CONTROL_ENTRY_RECORD",
            "SnapshotFooter",
        ] {
            assert!(content.contains(kind), "{kind}:\n{content}");
        }
        let newest = newest.display().to_string();
        // The shell shows what it has as soon as it has anything, and so has to be asked again.
        let nodes = [
            "topics/byName/zstd/1",
            "clientQuotas/clientId(app)_user(reader)/consumer_byte_rate",
            "configs/GROUP:some-group/consumer.session.timeout.ms",
            "scram/SCRAM-SHA-256/reader",
            "cluster/brokers/1",
        ];
        clock::wait_until("the metadata shell to show all", || {
            let tree = self.tools.ask(&["shell", &newest, "find", "/image"]);
            let shown = |node: &&str| tree.contains(&format!("/image/{node}"));
            nodes.iter().all(shown)
        });
    }

    /// After Apache has started: that it had nothing to recover. Its own metadata log it always goes through.
    fn assert_no_recovery(said: &str) {
        let words = [
            "Recovering",
            "recovering",
            "orrupt",
            "ERROR",
            "Deleting",
            "stray",
        ];
        // Apache's coordinator may look before its own partition is online, where the machine is busy. It loads with
        // the next leader epoch, and the group is read after this.
        let too_early = "because the partition is not online or is no longer the leader";
        let found = said.lines().find(|line| {
            !line.contains("__cluster_metadata")
                && !line.contains(too_early)
                && words.iter().any(|word| line.contains(word))
        });
        assert_eq!(found, None);
        let skipped = "since clean shutdown file was found";
        assert!(
            said.contains(skipped),
            "Apache does not say that it skips recovery"
        );
    }

    /// What only Apache can tell of the things that we keep for it.
    fn check_features(&mut self) {
        assert_eq!(self.ask("show-features", &[]), self.features);
        assert_eq!(
            self.ask("committed", &[]),
            ["20"],
            "two transactions of three"
        );
        let groups = self.ask("show-groups", &[]);
        let others = |lines: &[String]| -> Vec<String> {
            lines
                .iter()
                .filter(|line| !line.starts_with("classic-group none"))
                .cloned()
                .collect()
        };
        assert_eq!(others(&groups), others(&self.groups));
    }
}

fn produce(connection: &mut Connection, records: bytes::Bytes) -> (i16, i64) {
    let partition = PartitionProduceData::default()
        .with_index(0)
        .with_records(Some(records));
    let topic = TopicProduceData::default()
        .with_name(TopicName(StrBytes::from_static_str(SEQUENCES)))
        .with_partition_data(vec![partition]);
    let request = ProduceRequest::default()
        .with_acks(-1)
        .with_timeout_ms(30_000)
        .with_topic_data(vec![topic]);
    let answer = connection.call(12, &request);
    let partition = &answer.responses[0].partition_responses[0];
    (partition.error_code, partition.base_offset)
}

fn producer_id(connection: &mut Connection) -> (i64, i16) {
    let request = InitProducerIdRequest::default()
        .with_transactional_id(None)
        .with_transaction_timeout_ms(60_000)
        .with_producer_id((-1).into())
        .with_producer_epoch(-1);
    let answer = clock::wait_for("the ids to have loaded", || {
        let answer = connection.call(4, &request);
        (answer.error_code != 14).then_some(answer)
    });
    assert_eq!(answer.error_code, 0, "{answer:?}");
    (answer.producer_id.0, answer.producer_epoch)
}

fn leader_epoch(connection: &mut Connection) -> i32 {
    let topic = MetadataRequestTopic::default()
        .with_name(Some(TopicName(StrBytes::from_static_str(SEQUENCES))));
    let request = MetadataRequest::default().with_topics(Some(vec![topic]));
    let answer = connection.call(9, &request);
    answer.topics[0].partitions[0].leader_epoch
}

fn end_of_epoch(connection: &mut Connection, epoch: i32) -> (i32, i64) {
    let partition = OffsetForLeaderPartition::default()
        .with_current_leader_epoch(-1)
        .with_leader_epoch(epoch);
    let topic = OffsetForLeaderTopic::default()
        .with_topic(TopicName(StrBytes::from_static_str(SEQUENCES)))
        .with_partitions(vec![partition]);
    let request = OffsetForLeaderEpochRequest::default()
        .with_replica_id(BrokerId(-1))
        .with_topics(vec![topic]);
    let answer = connection.call(4, &request);
    let end = &answer.topics[0].partitions[0];
    assert_eq!(end.error_code, 0);
    (end.leader_epoch, end.end_offset)
}

/// Says how far a test has come.
fn teller(name: &'static str) -> impl Fn(&str) {
    let began = clock::now();
    move |what: &str| println!("{name}: {what} after {:?}", clock::now() - began)
}

/// Apache fills a directory, Ringmain goes on with it, and Apache finds nothing to recover.
fn clean_turns(trip: &mut Trip, told: &impl Fn(&str)) {
    trip.start(Program::Apache);
    trip.fill();
    trip.broker.stop();
    told("Apache has filled it");
    trip.start(Program::Ringmain);
    trip.turn();
    assert!(trip.broker.stop().success());
    trip.inspect();
    told("Ringmain stopped cleanly");
    trip.start(Program::Apache);
    Trip::assert_no_recovery(&trip.said());
    trip.check_features();
    trip.turn();
}

/// Apache is killed, then Ringmain, and Apache finds all.
fn killed_turns(trip: &mut Trip, told: &impl Fn(&str)) {
    trip.broker.kill();
    told("Apache was killed");
    trip.start(Program::Ringmain);
    trip.turn();
    trip.broker.kill();
    told("Ringmain was killed");
    trip.recover();
    trip.start(Program::Apache);
    trip.check_features();
    trip.turn();
}

#[test]
fn a_standalone_node_goes_both_ways_and_is_killed_on_either_side() {
    let told = teller("trip-standalone");
    let mut trip = Trip::begin("trip-standalone", Quorum::Standalone);
    clean_turns(&mut trip, &told);
    killed_turns(&mut trip, &told);
    trip.broker.kill();
    told("Apache was killed again");
    for _ in 0..2 {
        trip.start(Program::Ringmain);
        trip.turn();
        trip.broker.kill();
    }
    trip.start(Program::Ringmain);
    trip.check();
    assert!(trip.broker.stop().success());
    trip.inspect();
    told("Ringmain recovered and stopped cleanly");
}

#[test]
fn a_node_of_static_voters_goes_both_ways_and_is_killed_on_either_side() {
    let told = teller("trip-static");
    let mut trip = Trip::begin("trip-static", Quorum::StaticVoters);
    clean_turns(&mut trip, &told);
    killed_turns(&mut trip, &told);
    trip.broker.stop();
    trip.start(Program::Ringmain);
    trip.turn();
    let cut = trip.said().contains("not written whole");
    assert!(!cut, "nothing to recover:\n{}", trip.said());
    assert!(trip.broker.stop().success());
    trip.inspect();
    told("Ringmain stopped cleanly again");
}
