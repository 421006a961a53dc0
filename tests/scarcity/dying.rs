//! One of two disks dies while the broker runs: its partitions alone go offline, and come back with all their records when
//! the disk does.
use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::metadata_response::MetadataResponsePartition;
use kafka_protocol::messages::{
    BrokerId, DescribeLogDirsRequest, FindCoordinatorRequest, ListOffsetsRequest, MetadataRequest,
};

use crate::batch::{self, Batch};
use crate::client::Connection;
use crate::common::{
    FETCH, PRODUCE, Topic, creatable, create, fetch_request, produce_request, text,
};
use crate::support::broker::{Broker, fresh_directory};
use crate::support::clock;
use crate::support::doctor::{examine, findings};
use crate::support::mount::Mount;

const STORAGE_ERROR: i16 = 56;
const LEADER_NOT_AVAILABLE: i16 = 5;
const COORDINATOR_NOT_AVAILABLE: i16 = 15;
const PARTITIONS: i32 = 4;

/// A broker with a healthy directory `a`, which has the metadata, and one on a disk of its own.
fn two_disks(name: &str, first: &str) -> Option<(Broker, Mount)> {
    let Some(disk) = Mount::disk(
        &fresh_directory(&format!("{name}-disk")).join("b"),
        64 << 20,
    ) else {
        println!("skipped: mounting a filesystem needs root");
        return None;
    };
    let other = fresh_directory(&format!("{name}-healthy"));
    let (b, a) = (disk.path.join("data"), other.join("a"));
    let directories = match first {
        "healthy" => format!("{},{}", a.display(), b.display()),
        _ => format!("{},{}", b.display(), a.display()),
    };
    let settings = [
        ("log.dirs", directories.as_str()),
        ("offsets.topic.num.partitions", "8"),
    ];
    Some((Broker::start(name, &settings), disk))
}

fn made(connection: &mut Connection, name: &str) -> Topic {
    let answer = create(connection, creatable(name, PARTITIONS), false);
    assert_eq!(answer.error_code, 0);
    Topic {
        name: answer.name,
        id: answer.topic_id,
    }
}

fn produce(connection: &mut Connection, topic: &Topic, partition: i32) -> i16 {
    let records = Batch::of(clock::wall_clock_ms(), &["kept"]).bytes();
    let mut request = produce_request(PRODUCE, topic, -1, records);
    request.topic_data[0].partition_data[0].index = partition;
    let answer = connection.call(PRODUCE, &request);
    answer.responses[0].partition_responses[0].error_code
}

/// Error and number of records.
fn fetch(connection: &mut Connection, topic: &Topic, partition: i32) -> (i16, usize) {
    let answer = connection.call(FETCH, &fetch_request(FETCH, &[(topic, partition, 0)]));
    let data = &answer.responses[0].partitions[0];
    let heads = batch::read(data.records.clone().unwrap_or_default());
    (data.error_code, heads.len())
}

fn latest(connection: &mut Connection, topic: &Topic, partition: i32) -> i16 {
    let part = ListOffsetsPartition::default()
        .with_partition_index(partition)
        .with_timestamp(-1)
        .with_current_leader_epoch(-1);
    let asked = ListOffsetsTopic::default()
        .with_name(topic.name.clone())
        .with_partitions(vec![part]);
    let request = ListOffsetsRequest::default()
        .with_replica_id(BrokerId(-1))
        .with_topics(vec![asked]);
    connection.call(7, &request).topics[0].partitions[0].error_code
}

fn described(
    connection: &mut Connection,
    topic: &Topic,
) -> BTreeMap<i32, MetadataResponsePartition> {
    let asked = MetadataRequestTopic::default().with_name(Some(topic.name.clone()));
    let request = MetadataRequest::default().with_topics(Some(vec![asked]));
    let mut answer = connection.call(12, &request);
    let partitions = answer.topics.remove(0).partitions;
    let by_index = |part: MetadataResponsePartition| (part.partition_index, part);
    partitions.into_iter().map(by_index).collect()
}

/// Error of the coordinator of each of some groups.
fn coordinators(connection: &mut Connection) -> Vec<i16> {
    let groups = (0..16).map(|number| text(&format!("group-{number}")));
    let request = FindCoordinatorRequest::default().with_coordinator_keys(groups.collect());
    let answer = connection.call(4, &request);
    answer.coordinators.iter().map(|it| it.error_code).collect()
}

/// What a client hears of a partition whose disk died.
fn is_offline(connection: &mut Connection, topic: &Topic, part: &MetadataResponsePartition) {
    assert_eq!(part.error_code, LEADER_NOT_AVAILABLE, "{part:?}");
    assert_eq!(part.offline_replicas, [BrokerId(1)], "{part:?}");
    let index = part.partition_index;
    assert_eq!(produce(connection, topic, index), STORAGE_ERROR);
    assert_eq!(fetch(connection, topic, index).0, STORAGE_ERROR);
    assert_eq!(latest(connection, topic, index), STORAGE_ERROR);
}

/// The healthy directory is listed with what it holds, the other with its error.
fn are_described(connection: &mut Connection) {
    let request = DescribeLogDirsRequest::default().with_topics(None);
    let directories = connection.call(4, &request).results;
    let codes = directories
        .iter()
        .map(|it| (it.error_code, it.topics.is_empty()));
    let codes: Vec<_> = codes.collect();
    assert_eq!(
        codes,
        [(0, false), (STORAGE_ERROR, true)],
        "the healthy one first"
    );
}

/// The doctor names the directory and what lies there.
fn is_diagnosed(broker: &Broker, disk: &Mount) {
    let (code, said) = examine(&[&broker.bootstrap()]);
    assert_eq!(code, 1, "{said}");
    let found = findings(&said);
    let directory = disk.path.join("data").display().to_string();
    assert!(
        found
            .iter()
            .any(|it| it.contains(&directory) && it.contains("is offline (KAFKA_STORAGE_ERROR)")),
        "{said}"
    );
    assert!(
        found
            .iter()
            .any(|it| it.contains("partitions offline: ") && it.contains("the disk of its replica")),
        "{said}"
    );
}

#[test]
fn a_dead_disk_takes_only_its_partitions_offline_until_it_is_back() {
    let Some((mut broker, disk)) = two_disks("disk-dies", "healthy") else {
        return;
    };
    let mut connection = Connection::open(broker.port);
    let topic = made(&mut connection, "t");
    let on_disk = |partition: i32| disk.path.join(format!("data/t-{partition}")).exists();
    let (dying, healthy): (Vec<i32>, Vec<i32>) = (0..PARTITIONS).partition(|it| on_disk(*it));
    assert_eq!((dying.len(), healthy.len()), (2, 2), "spread over both");
    for partition in 0..PARTITIONS {
        assert_eq!(produce(&mut connection, &topic, partition), 0);
    }
    clock::wait_until("all coordinators", || {
        coordinators(&mut connection).iter().all(|code| *code == 0)
    });
    let before = described(&mut connection, &topic);

    disk.fail();
    assert_eq!(produce(&mut connection, &topic, dying[0]), STORAGE_ERROR);
    let limit = Duration::from_secs(10);
    clock::wait_within(limit, "the metadata to say who leads no more", || {
        let now = described(&mut connection, &topic);
        dying.iter().all(|it| now[it].leader_id == -1).then_some(())
    });
    let now = described(&mut connection, &topic);
    for partition in &dying {
        assert!(now[partition].leader_epoch > before[partition].leader_epoch);
        is_offline(&mut connection, &topic, &now[partition]);
    }
    for partition in &healthy {
        assert_eq!(now[partition], before[partition]);
        assert_eq!(produce(&mut connection, &topic, *partition), 0);
        assert_eq!(fetch(&mut connection, &topic, *partition), (0, 2));
        assert_eq!(latest(&mut connection, &topic, *partition), 0);
    }
    are_described(&mut connection);
    is_diagnosed(&broker, &disk);
    let codes = coordinators(&mut connection);
    assert!(
        codes.contains(&0),
        "groups of the other disk go on: {codes:?}"
    );
    assert!(codes.contains(&COORDINATOR_NOT_AVAILABLE), "{codes:?}");
    let later = made(&mut connection, "later");
    for partition in 0..PARTITIONS {
        assert_eq!(
            produce(&mut connection, &later, partition),
            0,
            "on the other disk"
        );
    }
    assert!(broker.log().contains("a log directory has failed"));

    assert_eq!(broker.stop().code(), Some(0));
    disk.repair();
    assert!(
        !disk.path.join("data/.kafka_cleanshutdown").exists(),
        "it was not left cleanly"
    );
    broker.restart();
    let mut connection = Connection::open(broker.port);
    let back = described(&mut connection, &topic);
    for partition in 0..PARTITIONS {
        assert_eq!(
            back[&partition].leader_id,
            BrokerId(1),
            "partition {partition}"
        );
        let records = if dying.contains(&partition) { 1 } else { 2 };
        assert_eq!(fetch(&mut connection, &topic, partition), (0, records));
        assert_eq!(produce(&mut connection, &topic, partition), 0);
    }
    drop(broker);
}

/// The controller of this node lives on it: a broker that went on would refuse every change for ever.
#[test]
fn the_broker_ends_with_the_disk_of_its_metadata() {
    let Some((mut broker, disk)) = two_disks("metadata-disk-dies", "dying") else {
        return;
    };
    let mut connection = Connection::open(broker.port);
    let topic = made(&mut connection, "t");
    for partition in 0..PARTITIONS {
        assert_eq!(produce(&mut connection, &topic, partition), 0);
    }
    let on_disk = |partition: &i32| disk.path.join(format!("data/t-{partition}")).exists();
    let lost = (0..PARTITIONS).find(on_disk).expect("some lie there");
    disk.fail();
    assert_eq!(produce(&mut connection, &topic, lost), STORAGE_ERROR);
    let status = broker
        .process()
        .wait_within(Duration::from_secs(30), "the broker");
    assert_eq!(status.code(), Some(1));
    let log = broker.log();
    let last = log.lines().last().unwrap_or_default().to_owned();
    assert!(
        last.starts_with("ringmain: ") && last.contains("metadata log"),
        "{log}"
    );
    let _ = fs::remove_dir_all(&disk.path);
}
