//! Checkpoints, snapshots of producers, and what else a broker keeps beside its logs.
use std::fs;

use super::*;

const DAMAGES: [&str; 4] = ["gone", "empty", "torn", "garbage"];

fn harm(file: &Path, damage: &str) {
    if !file.exists() {
        return;
    }
    if damage == "gone" {
        return fs::remove_file(file).expect("it was there");
    }
    change(file, |bytes| match damage {
        "empty" => bytes.clear(),
        "torn" => bytes.truncate(bytes.len() * 2 / 3),
        _ => *bytes = b"\0\xff no checkpoint \x80".repeat(3),
    });
}

/// The files of a log directory and of a partition that a start can do without.
fn companions(broker: &Broker, topic: &str) -> Vec<PathBuf> {
    let data = broker.data();
    let mut files: Vec<_> = [
        "recovery-point-offset-checkpoint",
        "replication-offset-checkpoint",
        "log-start-offset-checkpoint",
        "cleaner-offset-checkpoint",
        "__cluster_metadata-0/quorum-state",
        "__cluster_metadata-0/leader-epoch-checkpoint",
    ]
    .map(|name| data.join(name))
    .to_vec();
    files.push(partition(&data, topic).join("leader-epoch-checkpoint"));
    for entry in fs::read_dir(&data).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.to_string_lossy().contains("placement") {
            files.push(path);
        }
    }
    files
}

#[test]
fn a_torn_checkpoint_costs_time_and_no_record() {
    let mut broker = Broker::start("damage-checkpoints", &SMALL);
    let port = broker.port;
    create(port, &["small"]);
    fill(port, "small");
    let mut end = BATCHES;
    for damage in DAMAGES {
        for clean in [true, false] {
            match clean {
                true => assert!(broker.stop().success()),
                false => broker.kill(),
            }
            let said = broker.log().len();
            for file in companions(&broker, "small") {
                harm(&file, damage);
            }
            broker.restart();
            assert_eq!(unreadable(port, "small", end), [0; 0], "{damage} {clean}");
            goes_on(port, "small", end);
            end += 1;
            if matches!(damage, "torn" | "garbage") && clean {
                let log = broker.log().split_off(said);
                for file in [
                    "recovery-point-offset-checkpoint",
                    "quorum-state",
                    "small-0/leader-epoch-checkpoint",
                ] {
                    assert!(tells(&log, &["WARN", file]), "{file}, {damage}:\n{log}");
                }
            }
        }
    }
    assert!(broker.stop().success());
}

#[test]
fn a_snapshot_of_producers_that_cannot_be_read_is_made_anew_from_the_log() {
    let mut broker = Broker::start("damage-snapshots", &SMALL);
    let (port, topics) = (broker.port, ["version", "torn", "flipped"]);
    create(port, &topics);
    fill_all(port, &topics);
    for (end, clean) in (BATCHES..).zip([true, false]) {
        match clean {
            true => assert!(broker.stop().success()),
            false => broker.kill(),
        }
        for topic in topics {
            let files = segments::files_of(&partition(&broker.data(), topic), ".snapshot");
            assert!(!clean || !files.is_empty(), "a clean stop leaves one");
            for file in files {
                change(&file, |bytes| match topic {
                    "version" => bytes[1] = 2,
                    "torn" => bytes.truncate(bytes.len() / 2),
                    _ => bytes[12] ^= 4,
                });
            }
        }
        let said = broker.log().len();
        broker.restart();
        for topic in topics {
            // The last batch again is a duplicate, and the next one goes on.
            goes_on(port, topic, end);
            let mut connection = Connection::open(port);
            let gap = produce(&mut connection, topic, end + 7);
            assert_eq!(gap.0, 45, "OUT_OF_ORDER_SEQUENCE_NUMBER");
            let log = broker.log().split_off(said);
            let name = format!("{topic}-0/");
            assert!(
                !clean || tells(&log, &["WARN", &name, ".snapshot"]),
                "{log}"
            );
        }
    }
    assert!(broker.stop().success());
}

#[test]
fn a_partition_that_does_not_say_whose_it_is_is_offline_and_no_other() {
    // With its records in the journal: they must be there when the file is mended.
    let mut broker = Broker::start("damage-owner", &SMALL[1..]);
    let (port, topics) = (broker.port, ["torn", "other", "sound"]);
    create(port, &topics);
    fill_all(port, &topics);
    broker.kill();
    let file = |topic: &str| partition(&broker.data(), topic).join("partition.metadata");
    let torn = file("torn");
    let sound = fs::read(&torn).expect("partition.metadata");
    change(&torn, |bytes| bytes.truncate(20));
    broker.restart();
    let mut connection = Connection::open(port);
    let error = fetch(&mut connection, "torn", 0, 1 << 20).0;
    assert_eq!(error, 56, "KAFKA_STORAGE_ERROR");
    assert_eq!(produce(&mut connection, "torn", BATCHES).0, 56);
    let words = ["ERROR".to_owned(), torn.display().to_string()];
    assert!(tells(&broker.log(), &words), "{}", broker.log());
    for topic in ["other", "sound"] {
        assert_eq!(unreadable(port, topic, BATCHES), [0; 0]);
        goes_on(port, topic, BATCHES);
    }
    broker.kill();
    fs::write(&torn, sound).expect("written");
    broker.restart();
    assert_eq!(unreadable(port, "torn", BATCHES), [0; 0]);
    goes_on(port, "torn", BATCHES);
    assert!(broker.stop().success());
}
