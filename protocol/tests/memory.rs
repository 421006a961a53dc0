//! Memory that decoding takes, counted at the allocator. Alone in its binary: the count is of the
//! whole process, so this is one test.

use std::alloc::System;

use bytes::Bytes;
use protocol::wire::{Reader, Writer};
use protocol::{MessageInfo, messages, stored};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// What errors, the output and the shared handle of the input may take.
const OVERHEAD: usize = 4096;

fn allocated(info: &MessageInfo, version: i16, bytes: &Bytes, budget: usize) -> usize {
    let region = Region::new(ALLOCATOR);
    let mut reader = Reader::with_budget(bytes.clone(), budget);
    let _ = (info.recode)(&mut reader, version, &mut Writer::new(), version);
    region.change().bytes_allocated
}

#[test]
fn memory_stays_within_the_budget() {
    counts_that_lie_reserve_nothing();
    the_default_budget_is_a_multiple_of_the_frame();
}

/// Bytes in which every count and length claims the most it can, at every place.
fn counts_that_lie_reserve_nothing() {
    let fillers: [&[u8]; 4] = [
        &[0x7f, 0xff, 0xff, 0xff],
        &[0xff, 0xff, 0xff, 0xff, 0x07],
        // A plausible count for 300 bytes, again and again: 256, and 129 when compact.
        &[0, 0, 1, 0],
        &[0x82, 0x01],
    ];
    let mut most = 0;
    for info in messages::CATALOG.iter().chain(stored::CATALOG) {
        for version in info.versions.iter() {
            for filler in fillers {
                for zeros in 0..32 {
                    let lie = filler.iter().copied().cycle().take(300);
                    let bytes: Bytes = std::iter::repeat_n(0, zeros).chain(lie).collect();
                    let budget = 2 * bytes.len();
                    let taken = allocated(info, version, &bytes, budget);
                    assert!(
                        taken <= budget + OVERHEAD,
                        "{} v{version}, {zeros} zeros, {filler:?}: {taken} bytes",
                        info.name
                    );
                    most = most.max(taken);
                }
            }
        }
    }
    assert!(
        most > 300,
        "nothing was ever reserved: the bytes do not reach an array"
    );
}

/// A megabyte of empty strings, the most memory for its bytes that a message can ask for.
fn the_default_budget_is_a_multiple_of_the_frame() {
    let info = messages::CATALOG
        .iter()
        .find(|info| info.name == "DescribeGroupsRequest");
    let info = info.expect("a message with an array of strings");
    let mut writer = Writer::new();
    let count = 1 << 20;
    writer.length(true, Some(count)).expect("fits");
    let bytes: Bytes = [&writer.freeze()[..], &vec![1; count], b"\0\0"]
        .concat()
        .into();
    let budget = Reader::new(bytes.clone()).budget();
    assert!(budget < 33 * bytes.len() + (64 << 10));
    let region = Region::new(ALLOCATOR);
    let mut reader = Reader::new(bytes);
    let decoded = messages::DescribeGroupsRequest::decode(&mut reader, info.versions.max)
        .expect("within the budget");
    assert_eq!(decoded.groups.len(), count);
    assert!(region.change().bytes_allocated <= budget);
}
