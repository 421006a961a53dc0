//! No allocation grows with the number of partitions: a heap that has gigabytes free may have no megabyte in one piece.
//!
//! The broker runs inside this process, whose allocator tells of every large piece that it is asked for. Alone in its
//! binary, and one test, since that allocator is the whole process's.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test says how far it came"
)]

mod support;

#[path = "wire/client.rs"]
#[allow(dead_code, reason = "answers are only decoded here")]
mod client;

use std::alloc::System;
use std::backtrace::Backtrace;
use std::collections::BTreeMap;
use std::net::TcpStream;
use std::sync::mpsc::{self, Receiver, Sender};

use client::Connection;
use kafka_protocol::messages::create_partitions_request::CreatePartitionsTopic;
use kafka_protocol::messages::create_topics_request::CreatableTopic;
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use kafka_protocol::messages::offset_fetch_request::{
    OffsetFetchRequestGroup, OffsetFetchRequestTopics,
};
use kafka_protocol::messages::{
    BrokerId, CreatePartitionsRequest, CreateTopicsRequest, DescribeConfigsRequest,
    FindCoordinatorRequest, GroupId, ListOffsetsRequest, MetadataRequest, OffsetCommitRequest,
    OffsetFetchRequest, TopicName,
};
use kafka_protocol::protocol::StrBytes;
use support::broker::Broker;
use support::{clock, driver};
use tracking_allocator::{AllocationGroupId, AllocationRegistry, AllocationTracker, Allocator};

#[global_allocator]
static ALLOCATOR: Allocator<System> = Allocator::system();

/// Partitions, if `RINGMAIN_TEST_PARTITIONS` names no other number: half of them in topics of their own, half in one topic.
const PARTITIONS: usize = 20_000;
/// Kafka changes no more partitions than these by one request.
const AT_ONCE: usize = 10_000;
/// Offsets in one commit: a batch of them has to fit into `max.message.bytes`.
const OFFSETS_AT_ONCE: usize = 5_000;
/// No piece may be larger.
const PIECE_MAX: usize = 128 << 10;

/// What may ask for large pieces: requests as they come, within the memory reserved for them; record batches that are
/// read, built or written (of the metadata log up to 8 MiB, as in Apache Kafka); what holds space on the disk. Each by its
/// name and by its file, since a stack has the one, the other or both, as the build has debug information.
const MOVING: [&str; 14] = [
    "broker::network::frame_reader::",
    "src/network/frame_reader.rs",
    "broker::server::metadata_log::MetadataLogFile::read_batches",
    "src/server/metadata_log.rs",
    "broker::shard::groups::PartitionLog",
    "src/shard/groups.rs",
    "shards::io::file::ReadBuf",
    "shards/src/io/file.rs",
    "shards::io::aligned::AlignedBuf",
    "shards/src/io/aligned.rs",
    "protocol::records::builder::BatchBuilder",
    "protocol/src/records/builder.rs",
    "broker::server::ballast::",
    "src/server/ballast.rs",
];

/// Told of every allocation.
struct Witness {
    /// Where a large piece was asked for, by the stack, and its size.
    large: Sender<(String, usize)>,
}

impl AllocationTracker for Witness {
    fn allocated(&self, _: usize, bytes: usize, _: usize, _: AllocationGroupId) {
        if bytes > PIECE_MAX {
            let stack = Backtrace::force_capture().to_string();
            let _ = self.large.send((stack, bytes));
        }
    }

    fn deallocated(
        &self,
        _: usize,
        _: usize,
        _: usize,
        _: AllocationGroupId,
        _: AllocationGroupId,
    ) {
    }
}

#[test]
fn no_allocation_grows_with_the_number_of_partitions() {
    let (large, told) = mpsc::channel();
    AllocationRegistry::set_global_tracker(Witness { large }).expect("the first one");
    // What the client takes is not the broker's.
    AllocationRegistry::untracked(|| {
        let settings = [
            ("ringmain.shards", "2"),
            ("ringmain.pin", "false"),
            // So that the start loads a snapshot of the metadata.
            ("metadata.log.max.record.bytes.between.snapshots", "1000000"),
        ];
        let mut broker = Broker::start("allocations", &settings);
        let cluster = Cluster::new();
        cluster.create(&mut Connection::open(broker.port));
        cluster.commit(&mut Connection::open(broker.port));
        assert!(broker.stop().success());
        serve_inside(&broker);
        let mut connection = Connection::open(broker.port);
        cluster.ask_metadata(&mut connection);
        cluster.ask_offsets(&mut connection);
        cluster.ask_committed(&mut connection);
        cluster.ask_configs(&mut connection);
        judge(&told);
    });
}

/// Fails if a large piece was asked for by anything but what reads and writes: there a piece is as large as what one
/// operation moves, which has a limit of its own, however many partitions there are.
fn judge(told: &Receiver<(String, usize)>) {
    let mut growing: BTreeMap<String, usize> = BTreeMap::new();
    let mut moving = 0;
    for (stack, bytes) in told.try_iter() {
        if MOVING.iter().any(|name| stack.contains(name)) {
            moving += 1;
        } else {
            let most = growing.entry(short(&stack)).or_default();
            *most = bytes.max(*most);
        }
    }
    for (stack, most) in &growing {
        eprintln!("up to {most} bytes:\n{stack}");
    }
    let count = growing.len();
    assert_eq!(count, 0, "more than {PIECE_MAX} bytes in one piece");
    // Requests for all partitions are longer than that: had nothing been told, nothing would have been looked at.
    assert!(moving > 0, "the allocator tells nothing");
}

/// Only the frames that are ours, and where they are.
fn short(stack: &str) -> String {
    let ours = |line: &&str| {
        let names = ["shards::", "storage::", "protocol::", "broker::", "at ./"];
        names.iter().any(|name| line.contains(name))
    };
    let lines: Vec<&str> = stack.lines().filter(ours).take(16).collect();
    lines.join("\n")
}

/// The broker on two cores of its own; it ends with the process.
fn serve_inside(broker: &Broker) {
    let line = [
        "ringmain".into(),
        "serve".into(),
        broker.properties().into(),
    ];
    AllocationRegistry::enable_tracking();
    driver::spawn(move || {
        broker::cli::run_with(line, &mut std::io::sink()).expect("the broker starts");
    });
    clock::wait_for("the broker inside this process", || {
        TcpStream::connect(("127.0.0.1", broker.port)).ok()
    });
}

fn text(text: impl Into<String>) -> StrBytes {
    StrBytes::from_string(text.into())
}

fn small(number: usize) -> TopicName {
    text(format!("small-{number}")).into()
}

fn wide() -> TopicName {
    text("wide").into()
}

fn create_topics(connection: &mut Connection, topics: Vec<CreatableTopic>) {
    let request = CreateTopicsRequest::default()
        .with_topics(topics)
        .with_timeout_ms(600_000);
    let answer = connection.call(7, &request);
    for topic in &answer.topics {
        assert_eq!(topic.error_code, 0, "{topic:?}");
    }
}

/// Neighbours of the same topic together.
fn by_topic(partitions: &[(TopicName, i32)]) -> Vec<(TopicName, Vec<i32>)> {
    let topics = partitions.chunk_by(|(one, _), (other, _)| one == other);
    topics
        .map(|partitions| {
            let indexes = partitions.iter().map(|(_, index)| *index);
            (partitions[0].0.clone(), indexes.collect())
        })
        .collect()
}

fn group() -> GroupId {
    text("everything").into()
}

/// What there is: topics of one partition, and partitions of one topic.
struct Cluster {
    topics: usize,
    wide: usize,
}

impl Cluster {
    fn new() -> Self {
        let named = std::env::var("RINGMAIN_TEST_PARTITIONS").ok();
        let partitions = named.map_or(PARTITIONS, |text| text.parse().expect("a number"));
        Self {
            topics: partitions / 2,
            wide: partitions / 2,
        }
    }

    fn create(&self, connection: &mut Connection) {
        for first in (0..self.topics).step_by(AT_ONCE) {
            let topics = (first..self.topics.min(first + AT_ONCE)).map(|number| {
                CreatableTopic::default()
                    .with_name(small(number))
                    .with_num_partitions(1)
                    .with_replication_factor(1)
            });
            create_topics(connection, topics.collect());
        }
        let topic = CreatableTopic::default()
            .with_name(wide())
            .with_num_partitions(AT_ONCE as i32)
            .with_replication_factor(1);
        create_topics(connection, vec![topic]);
        for count in (AT_ONCE..=self.wide).step_by(AT_ONCE / 2).skip(1) {
            let topic = CreatePartitionsTopic::default()
                .with_name(wide())
                .with_count(count as i32)
                .with_assignments(None);
            let request = CreatePartitionsRequest::default()
                .with_topics(vec![topic])
                .with_timeout_ms(600_000);
            let answer = connection.call(3, &request);
            assert_eq!(answer.results[0].error_code, 0, "{answer:?}");
        }
    }

    /// Every partition: those of the small topics, then those of the wide one.
    fn all_partitions(&self) -> impl Iterator<Item = (TopicName, i32)> {
        let small = (0..self.topics).map(|number| (small(number), 0));
        small.chain((0..self.wide as i32).map(|index| (wide(), index)))
    }

    fn commit(&self, connection: &mut Connection) {
        // Who asks for the coordinator has the topic of offsets created.
        let find = FindCoordinatorRequest::default().with_key(group().0);
        clock::wait_for("a coordinator", || {
            (connection.call(3, &find).error_code == 0).then_some(())
        });
        let partitions: Vec<_> = self.all_partitions().collect();
        for some in partitions.chunks(OFFSETS_AT_ONCE) {
            let topics = by_topic(some).into_iter().map(|(name, indexes)| {
                let partitions = indexes.into_iter().map(|index| {
                    OffsetCommitRequestPartition::default()
                        .with_partition_index(index)
                        .with_committed_offset(7)
                });
                OffsetCommitRequestTopic::default()
                    .with_name(name)
                    .with_partitions(partitions.collect())
            });
            let request = OffsetCommitRequest::default()
                .with_group_id(group())
                .with_generation_id_or_member_epoch(-1)
                .with_topics(topics.collect());
            clock::wait_for("the coordinator", || {
                let answer = connection.call(8, &request);
                let partitions = answer.topics.iter().flat_map(|topic| &topic.partitions);
                let errors: Vec<i16> = partitions
                    .map(|one| one.error_code)
                    .filter(|code| *code != 0)
                    .collect();
                // COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS
                assert!(
                    errors.iter().all(|code| [14, 15, 16].contains(code)),
                    "{:?}",
                    errors.first()
                );
                errors.is_empty().then_some(())
            });
        }
    }

    fn ask_metadata(&self, connection: &mut Connection) {
        let answer = connection.call(12, &MetadataRequest::default().with_topics(None));
        let partitions: usize = answer
            .topics
            .iter()
            .map(|topic| topic.partitions.len())
            .sum();
        assert!(
            partitions >= self.topics + self.wide,
            "{partitions} partitions"
        );
    }

    fn ask_offsets(&self, connection: &mut Connection) {
        let partitions: Vec<_> = self.all_partitions().collect();
        let topics = by_topic(&partitions).into_iter().map(|(name, indexes)| {
            let partitions = indexes.into_iter().map(|index| {
                ListOffsetsPartition::default()
                    .with_partition_index(index)
                    .with_current_leader_epoch(-1)
                    .with_timestamp(-1)
            });
            ListOffsetsTopic::default()
                .with_name(name)
                .with_partitions(partitions.collect())
        });
        let request = ListOffsetsRequest::default()
            .with_replica_id(BrokerId(-1))
            .with_topics(topics.collect());
        let answer = connection.call(7, &request);
        let found = answer.topics.iter().flat_map(|topic| &topic.partitions);
        let found = found.filter(|one| one.error_code == 0 && one.offset == 0);
        assert_eq!(found.count(), partitions.len());
    }

    /// All offsets of the group, and then those of partitions by name.
    fn ask_committed(&self, connection: &mut Connection) {
        let partitions: Vec<_> = self.all_partitions().collect();
        let named = by_topic(&partitions).into_iter().map(|(name, indexes)| {
            OffsetFetchRequestTopics::default()
                .with_name(name)
                .with_partition_indexes(indexes)
        });
        for topics in [None, Some(named.collect())] {
            let group = OffsetFetchRequestGroup::default()
                .with_group_id(group())
                .with_member_epoch(-1)
                .with_topics(topics);
            let request = OffsetFetchRequest::default().with_groups(vec![group]);
            let answer = connection.call(9, &request);
            let topics = answer.groups.iter().flat_map(|group| &group.topics);
            let found = topics.flat_map(|topic| &topic.partitions);
            let found = found.filter(|one| one.error_code == 0 && one.committed_offset == 7);
            assert_eq!(found.count(), partitions.len());
        }
    }

    fn ask_configs(&self, connection: &mut Connection) {
        let topics = (0..self.topics).map(|number| {
            DescribeConfigsResource::default()
                .with_resource_type(2)
                .with_resource_name(small(number).0)
                .with_configuration_keys(None)
        });
        let request = DescribeConfigsRequest::default().with_resources(topics.collect());
        let answer = connection.call(4, &request);
        let described = answer.results.iter().filter(|one| one.error_code == 0);
        println!(
            "DescribeConfigs: {} of {} topics described",
            described.count(),
            self.topics
        );
    }
}
