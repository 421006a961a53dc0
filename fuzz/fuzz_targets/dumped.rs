#![no_main]

#[path = "../decoders.rs"]
#[allow(dead_code, reason = "shared with the other targets")]
mod decoders;
#[path = "../within.rs"]
mod within;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    within::limit(data, decoders::dumped);
});
