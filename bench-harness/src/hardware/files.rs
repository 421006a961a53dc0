//! Files on the disk that is measured. None is left behind, however the process ends.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result};
use rustix::fs::{FallocateFlags, FsWord, Mode, OFlags, fallocate, fstatfs, open, unlink};
use rustix::io::pwrite;

use super::Aligned;

/// statfs(2): the file system that is memory.
const TMPFS_MAGIC: FsWord = 0x0102_1994;
/// Names are apart by it, within a process.
static CREATED: AtomicU64 = AtomicU64::new(0);
/// What a file is filled with at a time.
const PIECE: usize = 4 << 20;

/// A file without a name: it goes with its last descriptor.
pub struct Scratch {
    pub file: File,
    /// Whether I/O passes the page cache by.
    pub is_direct: bool,
    /// Where it was, for errors.
    path: PathBuf,
}

impl Scratch {
    /// Creates a file for direct I/O, or through the page cache where the filesystem has none.
    ///
    /// # Errors
    /// I/O errors, with the path.
    pub fn direct(folder: &Path) -> Result<Self> {
        match Self::create(folder, OFlags::DIRECT) {
            Err(rustix::io::Errno::INVAL) => Self::buffered(folder),
            created => created.with_context(|| explain(folder)),
        }
    }

    /// Creates a file that is read and written through the page cache.
    ///
    /// # Errors
    /// I/O errors, with the path.
    pub fn buffered(folder: &Path) -> Result<Self> {
        Self::create(folder, OFlags::empty()).with_context(|| explain(folder))
    }

    fn create(folder: &Path, more: OFlags) -> Result<Self, rustix::io::Errno> {
        let (process, number) = (std::process::id(), CREATED.fetch_add(1, Ordering::Relaxed));
        let path = folder.join(format!("ringmain-bench-{process}-{number}.tmp"));
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | more;
        let file = open(&path, flags, Mode::RUSR | Mode::WUSR);
        // Where direct I/O is refused, the file is there all the same.
        let removed = unlink(&path);
        let file = file?;
        removed?;
        Ok(Self {
            file: file.into(),
            is_direct: more.contains(OFlags::DIRECT),
            path,
        })
    }

    /// Allocates and writes so many bytes, to the disk: blocks that were never written read faster and write slower than
    /// others.
    ///
    /// # Errors
    /// I/O errors, with the path and what is needed.
    pub fn fill(&self, bytes: u64) -> Result<()> {
        self.fill_in_steps(bytes, |_| Ok(()))
    }

    /// The same, with a call before each piece, which is told how many bytes are written; its error ends it.
    ///
    /// # Errors
    /// I/O errors, with the path and what is needed, and those of the call.
    pub fn fill_in_steps(&self, bytes: u64, step: impl Fn(u64) -> Result<()>) -> Result<()> {
        let explain = || format!("{}: {bytes} bytes are needed", self.path.display());
        fallocate(&self.file, FallocateFlags::empty(), 0, bytes).with_context(explain)?;
        let content = Aligned::new(PIECE, 2);
        for at in (0..bytes).step_by(PIECE) {
            step(at)?;
            let piece = (bytes - at).min(PIECE as u64) as usize;
            let block = piece.next_multiple_of(Aligned::BLOCK);
            pwrite(&self.file, &content.bytes()[..block], at).with_context(explain)?;
        }
        rustix::fs::fsync(&self.file).with_context(explain)
    }

    /// Another descriptor of the same file with a readahead of its own, for reading through the page cache.
    ///
    /// # Errors
    /// I/O errors, with the path.
    pub fn reader(&self) -> Result<File> {
        let own = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        File::open(own).with_context(|| format!("cannot open {} again", self.path.display()))
    }
}

fn explain(folder: &Path) -> String {
    format!("cannot create a file in {}", folder.display())
}

/// Whether a file or folder lies in a filesystem that is memory, where nothing is ever cold.
///
/// # Errors
/// I/O errors.
pub fn is_in_memory(file: impl AsFd) -> Result<bool> {
    Ok(fstatfs(file)?.f_type == TMPFS_MAGIC)
}
