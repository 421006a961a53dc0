//! Directories of others, of nobody, and of two.
use std::fs;
use std::process::{Command, Stdio};

use super::*;
use crate::support::broker::binary;

/// Starts where it must not, and returns the last line.
fn refused(broker: &Broker, overrides: &[String]) -> String {
    let mut command = Command::new(binary());
    command.arg("serve").arg(broker.properties());
    for pair in overrides {
        command.args(["--override", pair]);
    }
    let output = command.stdin(Stdio::null()).output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}");
    text.lines().last().unwrap_or_default().to_owned()
}

fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory can be made");
    for entry in fs::read_dir(from).expect("a directory") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_tree(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("a file can be copied");
        }
    }
}

#[test]
fn meta_properties_of_others_stop_the_start_in_one_line() {
    let mut broker = Broker::start("damage-meta", &SMALL);
    create(broker.port, &["kept"]);
    assert!(broker.stop().success());
    let meta = broker.data().join("meta.properties");
    let sound = fs::read_to_string(&meta).expect("meta.properties");
    // A copy beside it: the same directory id twice.
    let copy = broker.directory.join("copy");
    copy_tree(&broker.data(), &copy);
    let both = format!("log.dirs={},{}", broker.data().display(), copy.display());
    let metadata = format!("metadata.log.dir={}", broker.data().display());
    let line = refused(&broker, &[both.clone(), metadata.clone()]);
    assert!(
        line.contains("directory.id") && line.contains("copy"),
        "{line}"
    );
    // Of another cluster, of another node.
    let other = sound.replace("MkU3OEVBNTcwNTJENDM2Qg", "AAAAAAAAAAAAAAAAAAAAAQ");
    fs::write(copy.join("meta.properties"), other).expect("written");
    let line = refused(&broker, &[both, metadata]);
    assert!(
        line.contains("cluster") && line.contains("AAAAAAAAAAAAAAAAAAAAAQ"),
        "{line}"
    );
    fs::write(&meta, sound.replace("node.id=1", "node.id=7")).expect("written");
    let line = refused(&broker, &[]);
    assert!(
        line.contains("node 7") && line.contains("node.id is 1"),
        "{line}"
    );
    // Torn: it does not say whose the directory is.
    fs::write(&meta, &sound[..sound.len() / 2]).expect("written");
    let line = refused(&broker, &[]);
    assert!(line.contains("meta.properties"), "{line}");
    fs::write(&meta, sound).expect("written");
    broker.restart();
    goes_on(broker.port, "kept", 0);
    assert!(broker.stop().success());
}

#[test]
fn a_partition_that_nobody_knows_is_set_aside_and_told() {
    let mut broker = Broker::start("damage-stray", &SMALL);
    let port = broker.port;
    create(port, &["known"]);
    fill(port, "known");
    assert!(broker.stop().success());
    let data = broker.data();
    for stray in ["unknown-0", "known-7"] {
        copy_tree(&partition(&data, "known"), &data.join(stray));
    }
    broker.restart();
    let aside: Vec<_> = segments::partitions(&data)
        .into_iter()
        .filter(|path| path.to_string_lossy().ends_with("-stray"))
        .collect();
    assert_eq!(aside.len(), 2, "{aside:?}");
    for path in &aside {
        let records = segments::batches(&segments::files_of(path, ".log")[0]).0;
        assert_eq!(records.len() as i64, BATCHES, "nothing of it is touched");
        assert!(tells(&broker.log(), &["WARN", &path.display().to_string()]));
    }
    assert_eq!(unreadable(port, "known", BATCHES), [0; 0]);
    goes_on(port, "known", BATCHES);
    // It stays aside, and is no obstacle to the topic that comes to be under that name.
    create(port, &["unknown"]);
    goes_on(port, "unknown", 0);
    broker.kill();
    broker.restart();
    assert!(aside.iter().all(|path| path.is_dir()));
    let again = ["WARN", "still lie here as -stray", "count=2"];
    assert!(tells(&broker.log(), &again), "until somebody looks");
    assert!(broker.stop().success());
}

#[test]
fn a_partition_that_somebody_took_away_is_told_and_comes_back() {
    let mut broker = Broker::start("damage-gone", &SMALL);
    let port = broker.port;
    create(port, &["known", "other"]);
    fill(port, "known");
    assert!(broker.stop().success());
    let (place, elsewhere) = (
        partition(&broker.data(), "known"),
        broker.data().join("../away"),
    );
    fs::rename(&place, &elsewhere).unwrap();
    broker.restart();
    let gone = [
        "ERROR",
        "are gone from the log directories",
        "count=1",
        "first=known-0",
    ];
    assert!(tells(&broker.log(), &gone), "{}", broker.log());
    goes_on(port, "known", 0);
    assert!(broker.stop().success());
    fs::remove_dir_all(&place).unwrap();
    fs::rename(&elsewhere, &place).unwrap();
    broker.restart();
    let told = broker.log().matches(gone[1]).count();
    assert_eq!(told, 1, "nothing is missing by now");
    goes_on(port, "known", BATCHES);
    assert!(broker.stop().success());
}

#[test]
fn of_two_directories_that_claim_a_partition_the_one_that_metadata_names_has_it() {
    let mut broker = Broker::prepare("damage-two", &SMALL);
    let second = broker.directory.join("second");
    let metadata = format!("metadata.log.dir={}", broker.data().display());
    change(&broker.properties(), |bytes| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let one = format!("log.dirs={}", broker.data().display());
        let both = format!("{one},{}\n{metadata}", second.display());
        *bytes = text.replace(&one, &both).into_bytes();
    });
    let format = Command::new(binary())
        .args([
            "storage",
            "format",
            "-t",
            "MkU3OEVBNTcwNTJENDM2Qg",
            "--ignore-formatted",
        ])
        .arg("-c")
        .arg(broker.properties())
        .output()
        .expect("it starts");
    let text = String::from_utf8_lossy(&format.stderr);
    assert!(format.status.success(), "{text}");
    broker.restart();
    let port = broker.port;
    let topics = ["a", "b", "c", "d"];
    create(port, &topics);
    fill_all(port, &topics);
    for clean in [true, false] {
        match clean {
            true => assert!(broker.stop().success()),
            false => broker.kill(),
        }
        // Each partition gets a double, shorter than itself, in the other directory.
        for topic in topics {
            let (here, there) = match partition(&broker.data(), topic).is_dir() {
                true => (broker.data(), second.clone()),
                false => (second.clone(), broker.data()),
            };
            let double = partition(&there, topic);
            copy_tree(&partition(&here, topic), &double);
            let log = segments::files_of(&double, ".log").remove(0);
            let (batches, _) = segments::batches(&log);
            change(&log, |bytes| bytes.truncate(batches[10].1));
        }
        let said = broker.log().len();
        broker.restart();
        let log = broker.log().split_off(said);
        for topic in topics {
            assert_eq!(unreadable(port, topic, BATCHES), [0; 0], "{topic}");
            assert!(
                tells(&log, &["WARN", &format!("{topic}-0"), "-stray"]),
                "{log}"
            );
        }
    }
    let strays = [broker.data(), second].map(|data| segments::partitions(&data));
    let strays = strays.iter().flatten();
    let strays = strays.filter(|path| path.to_string_lossy().ends_with("-stray"));
    assert_eq!(strays.count(), 8, "none is deleted");
    assert!(broker.stop().success());
}
