#![no_main]

#[path = "../entries.rs"]
#[allow(dead_code, reason = "shared by all targets")]
mod entries;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    entries::record_batches(data);
});
