#![no_main]

#[path = "../record_entries.rs"]
mod record_entries;

use protocol::records::Scratch;

// The first byte says whether length and checksum are made right, so that the rest is believed.
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((first, rest)) = data.split_first() else {
        return;
    };
    let mut bytes = rest.to_vec();
    if first & 1 == 0 {
        record_entries::seal(&mut bytes);
    }
    record_entries::read_all(&bytes.into(), &mut Scratch::default());
});
