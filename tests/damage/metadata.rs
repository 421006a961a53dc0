//! The metadata log.
use super::*;

fn metadata_log(broker: &Broker) -> PathBuf {
    let directory = broker.data().join("__cluster_metadata-0");
    segments::files_of(&directory, ".log").remove(0)
}

#[test]
fn a_metadata_log_cut_within_a_batch_loses_that_batch_and_keeps_the_data() {
    let mut broker = Broker::start("damage-metadata", &SMALL);
    let port = broker.port;
    for clean in [true, false] {
        let topics = if clean {
            ["first", "second"]
        } else {
            ["third", "fourth"]
        };
        create(port, &[topics[0]]);
        fill(port, topics[0]);
        let length = |broker: &Broker| segments::batches(&metadata_log(broker)).1;
        let before = length(&broker);
        create(port, &[topics[1]]);
        fill(port, topics[1]);
        match clean {
            true => assert!(broker.stop().success()),
            false => broker.kill(),
        }
        // Within the batch that created the second topic, and all behind it.
        let file = metadata_log(&broker);
        change(&file, |bytes| bytes.truncate(before + 30));
        let said = broker.log().len();
        broker.restart();
        let log = broker.log().split_off(said);
        let words = [file.display().to_string(), format!("at={before} ")];
        assert!(tells(&log, &words), "{log}");
        assert_eq!(unreadable(port, topics[0], BATCHES), [0; 0]);
        goes_on(port, topics[0], BATCHES);
        assert!(
            tells(&log, &["WARN", &format!("{}-0", topics[1]), "-stray"]),
            "{log}"
        );
        let aside = segments::partitions(&broker.data())
            .into_iter()
            .find(|path| {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                name.starts_with(topics[1]) && name.ends_with("-stray")
            });
        let kept = segments::files_of(&aside.expect("set aside"), ".log").remove(0);
        assert_eq!(segments::batches(&kept).0.len() as i64, BATCHES);
    }
    assert!(broker.stop().success());
}

#[test]
fn a_metadata_log_shorter_than_its_snapshot_goes_on_behind_the_snapshot() {
    let settings = [
        SMALL[0],
        SMALL[1],
        ("metadata.log.max.record.bytes.between.snapshots", "500"),
    ];
    let mut broker = Broker::start("damage-snapshot", &settings);
    let port = broker.port;
    create(port, &["one", "two"]);
    fill(port, "one");
    fill(port, "two");
    assert!(broker.stop().success());
    broker.restart();
    assert!(broker.stop().success());
    let directory = broker.data().join("__cluster_metadata-0");
    let newest = segments::files_of(&directory, ".checkpoint").pop();
    let newest = newest.expect("a snapshot");
    let file = metadata_log(&broker);
    change(&file, |bytes| bytes.truncate(200));
    let sound = fs::read(&newest).expect("a snapshot");
    broker.restart();
    let name = newest.file_name().unwrap_or_default().to_string_lossy();
    assert!(tells(&broker.log(), &["WARN", &name]), "{}", broker.log());
    for topic in ["one", "two"] {
        assert_eq!(unreadable(port, topic, BATCHES), [0; 0], "{topic}");
        goes_on(port, topic, BATCHES);
    }
    create(port, &["three"]);
    assert!(broker.stop().success());
    broker.restart();
    goes_on(port, "three", 0);
    assert!(!sound.is_empty());
    assert!(broker.stop().success());
}

#[test]
fn a_metadata_log_damaged_in_the_middle_stops_the_start_and_changes_nothing() {
    let mut broker = Broker::start("damage-metadata-middle", &SMALL);
    let port = broker.port;
    create(port, &["one"]);
    create(port, &["two"]);
    broker.kill();
    let file = metadata_log(&broker);
    let (batches, end) = segments::batches(&file);
    let (_, at) = batches[batches.len() - 2];
    change(&file, |bytes| bytes[at + 70] ^= 0x20);
    let damaged = fs::read(&file).expect("a log");
    broker.spawn();
    let status = broker.process().wait_within(clock::LIMIT, "the start");
    assert_eq!(status.code(), Some(1));
    let log = broker.log();
    let last = log.lines().last().unwrap_or_default();
    let words = [file.display().to_string(), format!("at byte {at}")];
    assert!(words.iter().all(|word| last.contains(word)), "{log}");
    let now = fs::read(&file).expect("a log");
    assert_eq!(
        now[..end],
        damaged[..end],
        "all that was acknowledged is there"
    );
}
