//! A little space on the disk of the metadata, held back for the day when the disk is full: a topic can
//! only be deleted, and a broker can only start, if the metadata log can still be written.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use shards::Core;
use shards::io::dir;
use tracing::warn;

/// Name of the file, in the directory of the metadata log's own.
const FILE: &str = ".ringmain-ballast";
/// Room for thousands of changes.
const BYTES: usize = 1 << 20;
/// Only a disk with so many times as much free space gives some away.
const PLENTY: u64 = 16;

/// The file that is given up when nothing else helps.
pub struct Ballast {
    core: Core,
    path: PathBuf,
}

impl Ballast {
    /// The ballast of a log directory.
    pub fn new(core: &Core, log_directory: &Path) -> Self {
        Ballast {
            core: core.clone(),
            path: log_directory.join(FILE),
        }
    }

    /// Takes the space, unless it is held already or the disk has little.
    pub async fn keep(&self) {
        let Some(directory) = self.path.parent() else {
            return;
        };
        let held = dir::metadata(&self.core, &self.path).await;
        if !held.is_err_and(|error| error.kind() == ErrorKind::NotFound) {
            return;
        }
        let space = dir::free_space(&self.core, directory).await;
        if space.is_ok_and(|space| space.free >= PLENTY * BYTES as u64) {
            let contents = Bytes::from(vec![0; BYTES]);
            if let Err(error) = dir::write_file_atomic(&self.core, &self.path, contents).await {
                warn!(file = %self.path.display(), %error, "no space could be held back for the metadata");
            }
        }
    }

    /// Gives the space back to the disk. False if none was held.
    pub async fn release(&self) -> bool {
        match dir::remove_file(&self.core, &self.path).await {
            Ok(()) => {
                warn!(
                    file = %self.path.display(),
                    "the disk is full; used the space that was held back for the metadata: free some soon"
                );
                true
            }
            Err(error) if error.kind() == ErrorKind::NotFound => false,
            Err(error) => {
                warn!(file = %self.path.display(), %error, "the space that was held back cannot be given back");
                false
            }
        }
    }
}
