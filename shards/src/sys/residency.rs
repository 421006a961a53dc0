//! Whether a file range is in the page cache.

use std::io::IoSliceMut;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::ReadWriteFlags;

/// cachestat(2), Linux 6.5; the number is the same on every architecture.
const SYS_CACHESTAT: libc::c_long = 451;
const PAGE: u64 = 4096;

#[repr(C)]
struct CachestatRange {
    offset: u64,
    len: u64,
}

#[repr(C)]
#[derive(Default)]
struct Cachestat {
    cached: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

/// Set once the kernel has refused cachestat(2).
static NO_CACHESTAT: AtomicBool = AtomicBool::new(false);

/// Whether all pages of the range are in the page cache, or on their way into it. A range beyond the end of the file is
/// not. May be wrong a moment later.
pub(crate) fn is_resident(fd: BorrowedFd<'_>, offset: u64, len: u64) -> bool {
    if len == 0 {
        return true;
    }
    let first = offset / PAGE;
    let pages = (offset + len).div_ceil(PAGE) - first;
    if !NO_CACHESTAT.load(Ordering::Relaxed) {
        match cached_pages(fd, first * PAGE, pages * PAGE) {
            Some(cached) => return cached >= pages,
            None => NO_CACHESTAT.store(true, Ordering::Relaxed),
        }
    }
    probes_resident(fd, first, pages)
}

fn cached_pages(fd: BorrowedFd<'_>, offset: u64, len: u64) -> Option<u64> {
    let range = CachestatRange { offset, len };
    let mut answer = Cachestat::default();
    let flags: libc::c_uint = 0;
    // SAFETY: both pointers are to live values of the layouts that cachestat(2) documents.
    let result = unsafe {
        libc::syscall(
            SYS_CACHESTAT,
            fd.as_raw_fd(),
            &raw const range,
            &raw mut answer,
            flags,
        )
    };
    (result == 0).then_some(answer.cached)
}

/// Whether a range can be read from the page cache without waiting, as far as one byte of every 32nd page and of the last
/// tells, which the kernel reads ahead in one request. May be wrong a moment later.
pub(crate) fn is_readable_now(fd: BorrowedFd<'_>, offset: u64, len: u64) -> bool {
    let first = offset / PAGE;
    let pages = (offset + len).div_ceil(PAGE) - first;
    len == 0 || probes_resident(fd, first, pages)
}

/// One byte of every 32nd page and of the last, read with RWF_NOWAIT.
fn probes_resident(fd: BorrowedFd<'_>, first: u64, pages: u64) -> bool {
    let mut probes = (0..pages).step_by(32).chain([pages - 1]);
    probes.all(|page| {
        let mut byte = [0u8];
        let mut slices = [IoSliceMut::new(&mut byte)];
        let offset = (first + page) * PAGE;
        rustix::io::preadv2(fd, &mut slices, offset, ReadWriteFlags::NOWAIT) == Ok(1)
    })
}
