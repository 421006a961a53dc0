//! Disk faults on purpose, for tests of what is built on files.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::Core;

/// A file operation about to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileOperation {
    Open,
    Read,
    Write,
    Sync,
    Allocate,
    SetLen,
}

/// What happens to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFault {
    None,
    /// It takes this much longer, as on a disk that stalls; with epoll, on its pool thread.
    Delay(Duration),
    /// It fails with this errno, and does nothing.
    Error(i32),
}

/// Decides about each operation on a file, by the path it was opened by. Called on the core.
pub type FileFaults = Arc<dyn Fn(FileOperation, &Path) -> FileFault + Send + Sync>;

/// Lets the operation pass, late or not at all.
pub(crate) async fn check(core: &Core, operation: FileOperation, path: &Path) -> io::Result<()> {
    let fault = match core.file_faults() {
        None => return Ok(()),
        Some(faults) => faults(operation, path),
    };
    match fault {
        FileFault::None => Ok(()),
        FileFault::Delay(span) => {
            core.driver().delay(core, span).await;
            Ok(())
        }
        FileFault::Error(errno) => Err(io::Error::from_raw_os_error(errno)),
    }
}
