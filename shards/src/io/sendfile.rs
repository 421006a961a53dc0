//! What comes before sendfile(2): the pages must be in the page cache, or the core would wait for
//! the disk inside the call.

use std::io;
use std::num::NonZeroU64;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use rustix::fs::Advice;
use rustix::io::retry_on_intr;

use super::File;
use crate::Core;
use crate::sys;

/// Bytes that the kernel reads ahead in one request; their last one is waited for.
const REQUEST: u64 = 128 * 1024;

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
        && sys::is_readable_now(fd, offset, len)
    {
        return Ok(());
    }
    core.counters().cold_prefetches.one();
    let file = Arc::clone(file);
    core.blocking(move || prefetch(file.buffered()?, offset, len))
        .await
}

/// Has the kernel read the range ahead, which copies nothing, and waits for it.
fn prefetch(fd: BorrowedFd<'_>, offset: u64, len: u64) -> io::Result<()> {
    // Only a hint: what it does not do, the reads below do.
    let _ = rustix::fs::fadvise(fd, offset, NonZeroU64::new(len), Advice::WillNeed);
    let end = offset + len;
    let mut at = offset;
    while at < end {
        // A byte of each request, as they are cut on the disk's side: at its end.
        let last = (at - at % REQUEST + REQUEST).min(end) - 1;
        let mut byte = [0];
        if retry_on_intr(|| rustix::io::pread(fd, &mut byte, last))? == 0 {
            break; // beyond the end of the file: sendfile will say so
        }
        at = last + 1;
    }
    Ok(())
}
