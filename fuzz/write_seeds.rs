//! Writes the sound and the saved inputs of every target, a file each, where a fuzzer starts from: into the folder that
//! is given, or `target/seeds`.

mod corpus;
mod seeds;

use std::path::{Path, PathBuf};
use std::{fs, io};

/// The targets of this folder, as `tests/decoders.rs` names them.
const TARGETS: [&str; 6] = [
    "storage_files",
    "broker_files",
    "metadata_log",
    "group_log",
    "config",
    "dumped",
];

fn main() -> io::Result<()> {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = std::env::args_os().nth(1).map(PathBuf::from);
    let folder = folder.unwrap_or_else(|| home.join("target/seeds"));
    for target in TARGETS {
        let folder = folder.join(target);
        fs::create_dir_all(&folder)?;
        let saved = corpus::read(&home.join("corpus"), target);
        for (index, seed) in seeds::of(target).into_iter().chain(saved).enumerate() {
            fs::write(folder.join(index.to_string()), seed)?;
        }
    }
    println!("{}", folder.display());
    Ok(())
}
