//! A disk that is full: nothing that was acknowledged is lost, what can be read is read, topics can be deleted, and writing
//! goes on by itself when there is space again.
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use kafka_protocol::messages::DeleteTopicsRequest;
use kafka_protocol::messages::delete_topics_request::DeleteTopicState;

use crate::batch::{self, Batch};
use crate::client::Connection;
use crate::common::{
    FETCH, PRODUCE, Topic, config, creatable, create, fetch_request, produce_request,
};
use crate::support::broker::{Broker, fresh_directory};
use crate::support::clock;
use crate::support::mount::Mount;

const STORAGE_ERROR: i16 = 56;
const PARTITIONS: i32 = 2;
const SETTINGS: (&str, &str) = ("offsets.topic.num.partitions", "1");

fn small_disk(name: &str) -> Option<Mount> {
    let mounted = Mount::memory(&fresh_directory(name).join("m"), 48 << 20);
    if mounted.is_none() {
        println!("skipped: mounting a filesystem needs root");
    }
    mounted
}

fn made(connection: &mut Connection, name: &str) -> Topic {
    // Or space would come back a minute after a deletion.
    let soon = config("file.delete.delay.ms", "100");
    let topic = creatable(name, PARTITIONS).with_configs(vec![soon]);
    let answer = create(connection, topic, false);
    assert_eq!(answer.error_code, 0, "{answer:?}");
    Topic {
        name: answer.name,
        id: answer.topic_id,
    }
}

fn produce(connection: &mut Connection, topic: &Topic, partition: i32, size: usize) -> i16 {
    let value = Bytes::from(vec![b'v'; size]);
    let records = Batch::new(vec![(clock::wall_clock_ms(), None, value)]).bytes();
    let mut request = produce_request(PRODUCE, topic, -1, records);
    request.topic_data[0].partition_data[0].index = partition;
    let answer = connection.call(PRODUCE, &request);
    answer.responses[0].partition_responses[0].error_code
}

/// Produces until the disk takes no more, not even a little; how many batches it took.
fn fill(connection: &mut Connection, topic: &Topic, partition: i32) -> usize {
    let mut taken = 0;
    for size in [500_000, 20_000, 500] {
        loop {
            match produce(connection, topic, partition, size) {
                0 => taken += 1,
                code => {
                    assert_eq!(code, STORAGE_ERROR);
                    break;
                }
            }
        }
    }
    taken
}

/// Takes what is left of a disk, to the last byte.
fn fill_up(path: &Path) {
    let mut file = File::create(path).expect("an empty file takes no space");
    for size in [4096, 1] {
        while file.write_all(&vec![1; size]).is_ok() {}
    }
}

fn fetch(connection: &mut Connection, topic: &Topic, partition: i32, offset: i64) -> (i16, Bytes) {
    let request = fetch_request(FETCH, &[(topic, partition, offset)]);
    let mut answer = connection.call(FETCH, &request);
    let data = answer.responses.remove(0).partitions.remove(0);
    (data.error_code, data.records.unwrap_or_default())
}

/// Batches of a partition, read to the end.
fn count(connection: &mut Connection, topic: &Topic, partition: i32) -> usize {
    let (mut offset, mut found) = (0, 0);
    loop {
        let (code, records) = fetch(connection, topic, partition, offset);
        assert_eq!(code, 0, "from {offset}");
        let heads = batch::read(records);
        match heads.last() {
            Some(last) => offset = last.last_offset + 1,
            None => return found,
        }
        found += heads.len();
    }
}

fn delete(connection: &mut Connection, topic: &Topic) -> i16 {
    let state = DeleteTopicState::default().with_name(Some(topic.name.clone()));
    let request = DeleteTopicsRequest::default()
        .with_topics(vec![state])
        .with_timeout_ms(30_000);
    connection.call(6, &request).responses[0].error_code
}

fn takes_records_again(connection: &mut Connection, topic: &Topic) {
    let limit = Duration::from_secs(10);
    clock::wait_within(limit, "the disk to take records again", || {
        (produce(connection, topic, 0, 500_000) == 0).then_some(())
    });
}

#[test]
fn a_full_disk_is_read_started_on_and_freed_by_deleting_a_topic() {
    let Some(disk) = small_disk("disk-full-mount") else {
        return;
    };
    let data = disk.path.join("data").display().to_string();
    let mut broker = Broker::start("disk-full", &[("log.dirs", data.as_str()), SETTINGS]);
    let mut connection = Connection::open(broker.port);
    let (kept, bulk) = (made(&mut connection, "kept"), made(&mut connection, "bulk"));
    for _ in 0..10 {
        assert_eq!(produce(&mut connection, &kept, 0, 10_000), 0);
    }
    let held = || disk.path.join("data/.ringmain-ballast").exists();
    clock::wait_until("space to be held back", held);
    let taken = fill(&mut connection, &bulk, 0);
    assert!(taken > 50, "{taken}");
    assert_eq!(count(&mut connection, &bulk, 0), taken);
    assert_eq!(count(&mut connection, &kept, 0), 10);

    // As a crash leaves it, and after a clean stop: a full disk starts, with all that was acknowledged.
    for crash in [true, false] {
        if crash {
            broker.kill();
        } else {
            assert_eq!(broker.stop().code(), Some(0));
        }
        broker.restart();
        connection = Connection::open(broker.port);
        assert_eq!(count(&mut connection, &bulk, 0), taken, "crash: {crash}");
        assert_eq!(count(&mut connection, &kept, 0), 10, "crash: {crash}");
    }
    assert_eq!(delete(&mut connection, &bulk), 0);
    takes_records_again(&mut connection, &kept);
    let later = made(&mut connection, "later");
    assert_eq!(produce(&mut connection, &later, 1, 10_000), 0);
    assert_eq!(broker.stop().code(), Some(0));
}

#[test]
fn a_full_disk_refuses_its_partitions_alone() {
    let Some(disk) = small_disk("disk-full-one-mount") else {
        return;
    };
    let other = fresh_directory("disk-full-other").join("a");
    let directories = format!("{},{}", other.display(), disk.path.join("data").display());
    let settings = [("log.dirs", directories.as_str()), SETTINGS];
    let mut broker = Broker::start("disk-full-one", &settings);
    let mut connection = Connection::open(broker.port);
    let (kept, bulk) = (made(&mut connection, "kept"), made(&mut connection, "bulk"));
    let lies = |topic: &Topic, partition: i32| {
        let name = format!("data/{}-{partition}", topic.name.as_str());
        disk.path.join(name).exists()
    };
    let of = |topic: &Topic, there: bool| {
        (0..PARTITIONS)
            .find(|it| lies(topic, *it) == there)
            .expect("one on each disk")
    };
    let reserve = disk.path.join("somebody-elses");
    fs::write(&reserve, vec![1; 300_000]).expect("there is space yet");
    let taken = fill(&mut connection, &bulk, of(&bulk, true));
    assert_eq!(
        produce(&mut connection, &kept, of(&kept, true), 500_000),
        STORAGE_ERROR
    );
    for topic in [&kept, &bulk] {
        assert_eq!(
            produce(&mut connection, topic, of(topic, false), 500_000),
            0
        );
    }
    assert_eq!(count(&mut connection, &bulk, of(&bulk, true)), taken);

    // After a crash, with not one byte left: the rest starts, and what lies there waits for space.
    let full = of(&kept, true);
    broker.kill();
    fill_up(&disk.path.join("last"));
    broker.restart();
    connection = Connection::open(broker.port);
    for topic in [&kept, &bulk] {
        assert_eq!(
            produce(&mut connection, topic, of(topic, false), 500_000),
            0
        );
    }
    assert_eq!(
        produce(&mut connection, &kept, full, 500_000),
        STORAGE_ERROR
    );
    fs::remove_file(&reserve).expect("the file is there");
    clock::wait_within(
        Duration::from_secs(10),
        "what lies there to be opened",
        || (fetch(&mut connection, &bulk, of(&bulk, true), 0).0 == 0).then_some(()),
    );
    assert_eq!(count(&mut connection, &bulk, of(&bulk, true)), taken);

    // And a topic that is not even open can be deleted.
    broker.kill();
    fill_up(&reserve);
    broker.restart();
    connection = Connection::open(broker.port);
    assert_eq!(delete(&mut connection, &bulk), 0);
    clock::wait_within(
        Duration::from_secs(10),
        "the disk to take records again",
        || (produce(&mut connection, &kept, full, 500_000) == 0).then_some(()),
    );
}
