//! Blocks of the journal's file changed by hand between a kill and the start after it: what comes back, what is told, and that
//! nothing wrong gets into a segment.

use super::*;

/// Spoils the bytes of a file.
type Spoil<'a> = &'a dyn Fn(&mut Vec<u8>);
/// The same from a place on.
type SpoilAt = fn(&mut Vec<u8>, usize);

/// How many blocks the frame at this place takes.
fn blocks(bytes: &[u8], at: usize) -> usize {
    let length = u32::from_be_bytes(bytes[at + 40..at + 44].try_into().unwrap());
    (length as usize).div_ceil(BLOCK)
}

/// The frame `back` places before the newest.
fn frame_from_end(bytes: &[u8], back: usize) -> usize {
    let frames = frames(bytes);
    frames[frames.len() - 1 - back]
}

fn copy_block(bytes: &mut [u8], from: usize, to: usize) {
    bytes.copy_within(from..from + BLOCK, to);
}

/// The entries that came back, where nothing else is to be told.
fn entries(report: &JournalReport) -> u64 {
    let told = JournalReport {
        journals: 1,
        entries: report.entries,
        bytes: report.bytes,
        written_bytes: report.written_bytes,
        ..JournalReport::default()
    };
    assert_eq!(*report, told);
    report.entries
}

/// A log that was opened after a crash goes on where it ends.
async fn goes_on(core: &Core, log: &Log) {
    let mut all = values(core, log).await;
    append(log, b"in its place").await;
    all.push(b"in its place".to_vec());
    assert_eq!(values(core, log).await, all);
}

#[test]
fn frames_that_stand_in_another_order_come_back_in_their_own() {
    with_journal("journal-swapped", None, |scene| async move {
        let Scene {
            core,
            before,
            after,
            log,
            ..
        } = scene;
        for at in 0..4_u32 {
            append(&log, &at.to_be_bytes()).await;
        }
        let all = values(&core, &log).await;
        crash_to(&before, &after, &["t"], |bytes| {
            let (left, right) = (frame_from_end(bytes, 2), frame_from_end(bytes, 0));
            let kept = bytes[left..left + BLOCK].to_vec();
            copy_block(bytes, right, left);
            bytes[right..right + BLOCK].copy_from_slice(&kept);
        });
        let (report, log) = recover(&core, &after, "t").await;
        assert_eq!(entries(&report), 5);
        assert_eq!(values(&core, &log).await, all);
        goes_on(&core, &log).await;
    });
}

/// Power may keep later frames and not this one, where none of them was durable.
#[test]
fn behind_a_lost_frame_nothing_of_its_log_comes_back_and_everything_of_the_others() {
    let ways: [(&str, SpoilAt); 3] = [
        ("zeros", |bytes, at| bytes[at..at + BLOCK].fill(0)),
        ("flipped", |bytes, at| bytes[at + 100] ^= 1),
        ("older", |bytes, at| {
            let older = frame_from_end(bytes, 7);
            copy_block(bytes, older, at);
        }),
    ];
    with_journal("journal-gap", None, move |scene| async move {
        let Scene {
            core,
            before,
            after,
            storage,
            log,
        } = scene;
        let other = open_named(&storage, &before, "other", config(), Shutdown::Clean).await;
        until_journaled(&storage, &other).await;
        for value in [&b"kept"[..], b"lost", b"behind", b"further behind"] {
            append(&log, value).await;
            append(&other, value).await;
        }
        let (all, others) = (values(&core, &log).await, values(&core, &other).await);
        for (name, lose) in ways {
            let after = after.join(name);
            crash_to(&before, &after, &["t", "other"], |bytes| {
                let lost = frame_from_end(bytes, 5);
                lose(bytes, lost);
            });
            let report = replay(&core, &after, false).await.unwrap();
            assert_eq!(entries(&report), 10 - 3, "lost: {name}");
            let segment = std::fs::read(after.join("t-0/00000000000000000000.log")).unwrap();
            let storage = small_journal(&core);
            let other = open_named(&storage, &after, "other", config(), UNCLEAN).await;
            assert_eq!(values(&core, &other).await, others, "lost: {name}");
            let log = open_named(&storage, &after, "t", config(), UNCLEAN).await;
            let expected = &all[..all.len() - 3];
            assert_eq!(values(&core, &log).await, expected, "lost: {name}");
            let behind = &segment[log.size_bytes() as usize..];
            assert!(behind.iter().all(|byte| *byte == 0), "lost: {name}");
            goes_on(&core, &log).await;
        }
    });
}

#[test]
fn a_lost_frame_whose_batches_are_in_their_segment_takes_nothing() {
    with_journal("journal-moved", None, |scene| async move {
        let Scene {
            core,
            before,
            after,
            storage,
            log,
        } = scene;
        // Its oldest batch keeps every later frame in the journal.
        let pin = open_named(&storage, &before, "pin", config(), Shutdown::Clean).await;
        until_journaled(&storage, &pin).await;
        append(&log, b"moved").await;
        log.flush().await.unwrap();
        until_journaled(&storage, &log).await;
        let (all, pinned) = (values(&core, &log).await, values(&core, &pin).await);
        crash_to(&before, &after, &["t", "pin"], |bytes| {
            let lost = frame_from_end(bytes, 1);
            bytes[lost..lost + BLOCK].fill(0);
        });
        let (report, log) = recover(&core, &after, "t").await;
        assert_eq!(entries(&report), 2);
        assert_eq!(values(&core, &log).await, all);
        let (_, pin) = recover(&core, &after, "pin").await;
        assert_eq!(values(&core, &pin).await, pinned);
    });
}

#[test]
fn a_frame_of_which_one_block_is_not_its_own_is_none() {
    with_journal("journal-blocks", None, |scene| async move {
        let Scene {
            core,
            before,
            after,
            log,
            ..
        } = scene;
        append(&log, &[b'o'; 12 << 10]).await;
        append(&log, &[b'n'; 12 << 10]).await;
        let all = values(&core, &log).await;
        let zeros: SpoilAt = |bytes, at| bytes[at..at + BLOCK].fill(0);
        // Of the frame before, which is as long: as an earlier round may have left it.
        let old: SpoilAt = |bytes, at| copy_block(bytes, at - 4 * BLOCK, at);
        for (what, spoil) in [("zeros", zeros), ("old", old)] {
            for block in 0..4 {
                let after = after.join(format!("{what}-{block}"));
                crash_to(&before, &after, &["t"], |bytes| {
                    let torn = frame_from_end(bytes, 0);
                    assert_eq!(blocks(bytes, torn), 4);
                    assert_eq!(torn - frame_from_end(bytes, 1), 4 * BLOCK);
                    spoil(bytes, torn + block * BLOCK);
                });
                let (report, log) = recover(&core, &after, "t").await;
                assert_eq!(entries(&report), 2, "{what} in block {block}");
                let found = values(&core, &log).await;
                assert!(found == all[..all.len() - 1], "{what} in block {block}");
                goes_on(&core, &log).await;
            }
        }
    });
}

#[test]
fn a_stale_frame_of_the_same_file_says_nothing() {
    with_journal("journal-stale-frame", None, |scene| async move {
        let Scene {
            core,
            before,
            after,
            storage,
            log,
        } = scene;
        let newest = || {
            let bytes = std::fs::read(before.join("ringmain-journal-0")).unwrap();
            frame_from_end(&bytes, 0)
        };
        let kept = log.log_end_offset();
        append(&log, b"cut off").await;
        let stale = newest();
        log.truncate_to(kept).await.unwrap();
        let cut = newest();
        append(&log, b"in its place").await;
        // Everything so far is in the segment: no frame up to here is needed any more.
        log.flush().await.unwrap();
        until_journaled(&storage, &log).await;
        append(&log, b"last but one").await;
        let needed = newest();
        append(&log, b"last").await;
        let last = newest();
        assert!(stale < cut && cut < needed && needed < last);
        let all = values(&core, &log).await;
        let crashes: [(&str, usize, usize, usize); 3] = [
            ("of-an-earlier-round", stale, last, 1),
            ("in-place-of-its-cut", stale, cut, 0),
            ("still-needed", needed, last, 1),
        ];
        for (name, from, over, lost) in crashes {
            let after = after.join(name);
            crash_to(&before, &after, &["t"], |bytes| {
                copy_block(bytes, from, over)
            });
            let (report, log) = recover(&core, &after, "t").await;
            assert_eq!(entries(&report), 3 - lost as u64, "{name}");
            let expected = &all[..all.len() - lost];
            assert_eq!(values(&core, &log).await, expected, "{name}");
            goes_on(&core, &log).await;
        }
    });
}

#[test]
fn a_file_cut_short_in_a_frame_has_all_frames_before() {
    with_journal("journal-short", None, |scene| async move {
        let Scene {
            core,
            before,
            after,
            log,
            ..
        } = scene;
        append(&log, b"before").await;
        append(&log, &[b'c'; 12 << 10]).await;
        let all = values(&core, &log).await;
        let journal = std::fs::read(before.join("ringmain-journal-0")).unwrap();
        let begin = frame_from_end(&journal, 0);
        assert_eq!(blocks(&journal, begin), 4);
        let length = u32::from_be_bytes(journal[begin + 40..begin + 44].try_into().unwrap());
        let length = length as usize;
        for kept in [0, 10, 48, BLOCK, BLOCK + 1, 3 * BLOCK, length - 1, length] {
            let after = after.join(kept.to_string());
            crash_to(&before, &after, &["t"], |bytes| {
                bytes.truncate(begin + kept)
            });
            let (report, log) = recover(&core, &after, "t").await;
            // The padding alone says nothing.
            let lost = usize::from(kept < length);
            assert_eq!(entries(&report), 3 - lost as u64, "{kept} bytes");
            let found = values(&core, &log).await;
            assert!(found == all[..all.len() - lost], "{kept} bytes");
            goes_on(&core, &log).await;
        }
    });
}

#[test]
fn a_file_that_was_never_finished_says_nothing() {
    with_journal("journal-unfinished", None, |scene| async move {
        let Scene {
            core,
            before,
            after,
            log,
            ..
        } = scene;
        // What a crash while the file is made leaves: nothing was acknowledged from it.
        log.flush().await.unwrap();
        let all = values(&core, &log).await;
        let crashes: [(&str, Spoil<'_>); 3] = [
            ("empty", &Vec::clear),
            ("zeros", &|bytes| bytes.fill(0)),
            ("torn", &|bytes| {
                bytes[20..].fill(0);
                bytes.truncate(BLOCK + 512);
            }),
        ];
        for (name, spoil) in crashes {
            let after = after.join(name);
            crash_to(&before, &after, &["t"], spoil);
            let (report, log) = recover(&core, &after, "t").await;
            assert_eq!(entries(&report), 0, "{name}");
            assert!(!after.join("ringmain-journal-0").exists(), "{name}");
            assert_eq!(values(&core, &log).await, all, "{name}");
            goes_on(&core, &log).await;
        }
    });
}

#[test]
fn a_journal_whose_first_block_is_damaged_is_set_aside_and_named() {
    with_journal("journal-first-block", None, |scene| async move {
        let Scene {
            core,
            before,
            after,
            log,
            ..
        } = scene;
        log.flush().await.unwrap();
        let moved = values(&core, &log).await;
        append(&log, b"in the journal alone").await;
        // Magic, generation, checksum.
        let crashes: [(&str, Spoil<'_>); 4] = [
            ("zeros", &|bytes| bytes[..BLOCK].fill(0)),
            ("magic", &|bytes| bytes[3] ^= 1),
            ("generation", &|bytes| bytes[20] ^= 1),
            ("checksum", &|bytes| bytes[25] ^= 1),
        ];
        for (name, spoil) in crashes {
            let after = after.join(name);
            crash_to(&before, &after, &["t"], spoil);
            let spoiled = std::fs::read(after.join("ringmain-journal-0")).unwrap();
            let (report, log) = recover(&core, &after, "t").await;
            let aside = after.join("ringmain-journal-0.damaged");
            let told = JournalReport {
                journals: 1,
                damaged: vec![aside.clone()],
                ..JournalReport::default()
            };
            assert_eq!(report, told, "{name}");
            assert!(std::fs::read(aside).unwrap() == spoiled, "{name}");
            assert_eq!(values(&core, &log).await, moved, "{name}");
            goes_on(&core, &log).await;
        }
    });
}
