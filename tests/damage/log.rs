//! Segments and their indexes.
use std::fs;
use std::path::Path;

use super::*;

/// Position of the batch at an offset, and where it ends.
fn place(file: &Path, offset: i64) -> (usize, usize) {
    let (batches, end) = segments::batches(file);
    let at = usize::try_from(offset).expect("small");
    let to = batches.get(at + 1).map_or(end, |(_, position)| *position);
    (batches[at].1, to)
}

#[test]
fn a_batch_that_went_bad_in_the_middle_is_told_and_nothing_behind_it_is_lost() {
    let mut broker = Broker::start("damage-middle", &SMALL);
    let (port, topics) = (broker.port, ["payload", "header", "offset"]);
    create(port, &topics);
    fill_all(port, &topics);
    broker.kill();
    // In the records, in the length, in the offset, which no checksum covers.
    let mut places = Vec::new();
    for (topic, byte) in topics.into_iter().zip([200, 9, 6]) {
        let file = segment(&broker, topic);
        let (from, _) = place(&file, 20);
        change(&file, |bytes| bytes[from + byte] ^= 0x40);
        places.push((file, from));
    }
    broker.restart();
    for (topic, (file, from)) in topics.iter().zip(&places) {
        assert_eq!(unreadable(port, topic, BATCHES), [20], "{topic}");
        let words = [
            file.display().to_string(),
            format!("at={from} "),
            "offset=20 ".to_owned(),
            "next_offset=21 ".to_owned(),
            "let consumers go on at next_offset".to_owned(),
        ];
        assert!(tells(&broker.log(), &words), "{words:?}");
        let words = [
            format!("partition={topic}-0 "),
            "offset=20 ".to_owned(),
            file.display().to_string(),
            "let consumers go on behind it".to_owned(),
        ];
        assert!(tells(&broker.log(), &words), "{words:?}\n{}", broker.log());
        let later = offset_of_time(port, topic, time_of(20) + 500);
        assert_eq!(later, (0, 21), "{topic}");
        goes_on(port, topic, BATCHES);
    }
    // It stays so; of the flipped records only the reader's checksum tells once nothing is recovered.
    assert!(broker.stop().success());
    broker.restart();
    assert_eq!(unreadable_by(1, port, "header", BATCHES), [20]);
    let mut connection = Connection::open(port);
    let (error, records) = fetch(&mut connection, "payload", 20, 1);
    assert_eq!((error, records.len()), (0, batch_at(20).len()));
    assert_ne!(
        crc32c::crc32c(&records[21..]).to_be_bytes(),
        records[17..21]
    );
    for topic in topics {
        goes_on(port, topic, BATCHES + 1);
    }
    assert!(broker.stop().success());
}

#[test]
fn a_bad_end_is_cut_off_and_told_and_appends_go_on() {
    let mut broker = Broker::start("damage-tail", &SMALL);
    let topics = ["cut", "flipped", "garbage", "zeros", "whole"];
    let port = broker.port;
    create(port, &topics);
    fill_all(port, &topics);
    for (end, clean) in (BATCHES..).zip([false, true]) {
        match clean {
            true => assert!(broker.stop().success()),
            false => broker.kill(),
        }
        let mut places = Vec::new();
        for topic in topics {
            let file = segment(&broker, topic);
            let (last, tail) = place(&file, end - 1);
            change(&file, |bytes| match topic {
                "cut" => bytes.truncate(tail - 50),
                "flipped" => bytes[last + 8] ^= 0x11,
                "garbage" => {
                    bytes.truncate(tail);
                    bytes.extend((0..700u32).map(|at| (at * 131 % 251) as u8 | 1));
                }
                "zeros" => bytes.resize(tail + 1_000_000, 0),
                _ => {}
            });
            let at = match topic {
                "cut" | "flipped" => Some(last),
                "garbage" => Some(tail),
                _ => None,
            };
            places.push((file, at));
        }
        let said = broker.log().len();
        broker.restart();
        let log = broker.log().split_off(said);
        for (topic, (file, at)) in topics.iter().zip(&places) {
            let kept = match *topic {
                "cut" | "flipped" => end - 1,
                _ => end,
            };
            assert_eq!(unreadable(port, topic, kept), [0; 0], "{topic}");
            let words = [file.display().to_string(), "cut the end".to_owned()];
            let told = tells(&log, &words);
            assert_eq!(told, at.is_some(), "{topic}, clean {clean}:\n{log}");
            if let Some(at) = at {
                let words = [file.display().to_string(), format!("at={at} ")];
                assert!(tells(&log, &words), "{log}");
            }
            for offset in kept..end {
                goes_on(port, topic, offset);
            }
            goes_on(port, topic, end);
        }
    }
    assert!(broker.stop().success());
    segments::assert_exact(&broker.data());
}

#[test]
fn indexes_are_made_anew_whatever_is_wrong_with_them() {
    let mut broker = Broker::start("damage-indexes", &SMALL);
    let topics = [
        "gone",
        "empty",
        "garbage",
        "long",
        "backwards",
        "beyond",
        "between",
        "early",
        "torn",
    ];
    let port = broker.port;
    create(port, &topics);
    fill_all(port, &topics);
    for (end, clean) in (BATCHES..).zip([true, false]) {
        match clean {
            true => assert!(broker.stop().success()),
            false => broker.kill(),
        }
        for topic in topics {
            for (ending, entry) in [(".index", 8), (".timeindex", 12)] {
                for file in segments::files_of(&partition(&broker.data(), topic), ending) {
                    harm(&file, topic, entry);
                }
            }
        }
        broker.restart();
        for topic in topics {
            assert_eq!(unreadable(port, topic, end), [0; 0], "{topic}");
            // Each by itself, too: the index says where to look.
            assert_eq!(unreadable_by(1, port, topic, end), [0; 0], "{topic}");
            let found = offset_of_time(port, topic, time_of(25));
            assert_eq!(found, (0, 25), "{topic}");
            goes_on(port, topic, end);
        }
    }
    assert!(broker.stop().success());
}

fn harm(file: &Path, damage: &str, entry: usize) {
    if damage == "gone" {
        return fs::remove_file(file).expect("it was there");
    }
    let offset = entry - 5;
    change(file, |bytes| match damage {
        "empty" => bytes.clear(),
        "garbage" => bytes
            .iter_mut()
            .for_each(|byte| *byte = byte.wrapping_mul(31).wrapping_add(7)),
        "long" => bytes.resize(bytes.len() + 4_096, 0),
        "torn" => bytes.truncate(bytes.len().saturating_sub(3)),
        "backwards" => {
            let entries: Vec<_> = bytes.chunks_exact(entry).rev().collect();
            *bytes = entries.concat();
        }
        "beyond" => bytes.extend(vec![0x70; entry]),
        // Positions between two batches; of a time index there is none.
        "between" if entry == 8 => bytes.chunks_exact_mut(8).for_each(|it| it[7] ^= 1),
        // Offsets of the batch before.
        "early" if entry == 8 => bytes.chunks_exact_mut(8).for_each(|it| it[offset] -= 1),
        _ => {}
    });
}
