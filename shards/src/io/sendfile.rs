//! What comes before sendfile(2): the pages must be in the page cache, or the core would wait for
//! the disk inside the call.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use super::File;
use crate::Core;
use crate::sys;

/// Bytes looked at and sent at a time: large enough to be cheap, small enough to share the core.
pub(super) const CHUNK: u64 = 512 * 1024;

/// Bytes read at a time while prefetching.
const SCRATCH: usize = 128 * 1024;

/// Has the range of `file` in the page cache, reading it on a pool thread if it is not.
pub(super) async fn make_resident(
    core: &Core,
    file: &File,
    offset: u64,
    len: u64,
) -> io::Result<()> {
    #[cfg(feature = "sim")]
    if let Some(file) = file.simulated() {
        return file.make_resident(core).await;
    }
    let file = file.os().ok_or(io::ErrorKind::Unsupported)?;
    if let Some(fd) = file.buffered_now()
        && sys::is_resident(fd, offset, len)
    {
        return Ok(());
    }
    core.counters().cold_prefetches.one();
    let file = Arc::clone(file);
    core.blocking(move || prefetch(file.buffered()?, offset, len))
        .await
}

fn prefetch(fd: BorrowedFd<'_>, offset: u64, len: u64) -> io::Result<()> {
    let mut scratch = vec![0u8; SCRATCH];
    let mut done = 0;
    while done < len {
        let want = SCRATCH.min((len - done) as usize);
        match rustix::io::pread(fd, &mut scratch[..want], offset + done) {
            Ok(0) => break, // the end of the file: sendfile will say so
            Ok(read) => done += read as u64,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
