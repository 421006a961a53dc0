//! `FUZZ_API=Name` keeps most requests to one API; without it the second byte of the input chooses one.
#![no_main]

#[path = "../../protocol/tests/wire/interpreter.rs"]
#[allow(dead_code, reason = "shared with the tests of the codec, which use the rest")]
mod interpreter;
#[path = "../../protocol/tests/wire/random.rs"]
#[allow(dead_code, reason = "what the interpreter uses")]
mod random;
#[path = "../../protocol/build/schema.rs"]
#[allow(dead_code, reason = "shared with the build script, which uses the rest")]
mod schema;
#[path = "../session/mod.rs"]
mod session;

use std::cell::OnceCell;
use std::sync::LazyLock;

use broker::handlers::SUPPORTED;
use protocol::ApiKey;
use session::Schema;

static FOCUS: LazyLock<Option<ApiKey>> = LazyLock::new(|| {
    let name = std::env::var("FUZZ_API").ok()?;
    let api = SUPPORTED.iter().find(|api| api.name() == name);
    Some(*api.unwrap_or_else(|| panic!("no handler for {name}")))
});

thread_local! {
    static SCHEMA: OnceCell<Schema> = const { OnceCell::new() };
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let schema = SCHEMA.with(|schema| schema.get_or_init(Schema::read).clone());
    let focus = FOCUS.or_else(|| {
        let choice = usize::from(*data.get(1)?);
        SUPPORTED.get(choice % SUPPORTED.len()).copied()
    });
    session::play(&schema, data, focus);
});
