//! Directories and whole small files. Everything here blocks somewhere in the kernel, so it runs
//! on the pool, off the core. Errors are the kernel's own; the caller knows the path, and what for.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Write};
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use rustix::fs::{Advice, FlockOperation, Mode, OFlags};

use super::{File, OpenOptions};
use crate::Core;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileKind {
    File,
    Directory,
    /// Symbolic links, sockets, devices.
    Other,
}

/// Ordered by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DirEntry {
    pub name: OsString,
    pub kind: FileKind,
    /// Bytes, for files.
    pub len: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metadata {
    pub kind: FileKind,
    pub len: u64,
    /// Last change of the contents, milliseconds since 1970.
    pub modified_ms: i64,
    /// Bytes of disk space taken; less than `len` with holes, more with preallocation.
    pub allocated: u64,
}

/// Space of the filesystem that holds a path, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    pub total: u64,
    /// What an ordinary user may still take.
    pub free: u64,
}

/// What [`read_pieces`] reads at a time.
const PIECE_BYTES: usize = 64 << 10;

async fn at<R: Send + 'static>(
    core: &Core,
    path: &Path,
    work: impl FnOnce(&Path) -> io::Result<R> + Send + 'static,
) -> io::Result<R> {
    let path = path.to_owned();
    core.blocking(move || work(&path)).await
}

/// Makes a directory and its missing parents. Not durable by itself: see [`sync_dir`].
pub async fn create_dir_all(core: &Core, path: &Path) -> io::Result<()> {
    #[cfg(feature = "sim")]
    if let Some(disk) = core.driver().disk() {
        return disk.create_dir_all(core, path).await;
    }
    at(core, path, |path| fs::create_dir_all(path)).await
}

/// The entries of a directory, sorted by name. In a tree: no memory in one piece for many of them.
pub async fn read_dir(core: &Core, path: &Path) -> io::Result<BTreeSet<DirEntry>> {
    #[cfg(feature = "sim")]
    if let Some(disk) = core.driver().disk() {
        return disk.read_dir(core, path).await;
    }
    at(core, path, |path| {
        let mut entries = BTreeSet::new();
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            let metadata = match entry.metadata() {
                Ok(metadata) => metadata,
                // Deleted since the directory was read.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            let (kind, len) = (kind_of(metadata.file_type()), metadata.len());
            entries.insert(DirEntry {
                name: entry.file_name(),
                kind,
                len,
            });
        }
        Ok(entries)
    })
    .await
}

/// What a directory holds, by name, where no lengths are wanted. The directory itself says of what kind an entry is, so that
/// no inode is read for it.
pub async fn read_names(core: &Core, path: &Path) -> io::Result<BTreeMap<OsString, FileKind>> {
    #[cfg(feature = "sim")]
    if let Some(disk) = core.driver().disk() {
        let entries = disk.read_dir(core, path).await?;
        return Ok(entries.into_iter().map(|it| (it.name, it.kind)).collect());
    }
    at(core, path, |path| {
        let mut names = BTreeMap::new();
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            // Some filesystems do not say it: then this asks the inode.
            match entry.file_type() {
                Ok(kind) => names.insert(entry.file_name(), kind_of(kind)),
                // Deleted since the directory was read.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
        }
        Ok(names)
    })
    .await
}

fn kind_of(kind: fs::FileType) -> FileKind {
    if kind.is_file() {
        FileKind::File
    } else if kind.is_dir() {
        FileKind::Directory
    } else {
        FileKind::Other
    }
}

/// Renames, replacing a file at `to`. Not durable by itself: see [`sync_dir`].
pub async fn rename(core: &Core, from: &Path, to: &Path) -> io::Result<()> {
    #[cfg(feature = "sim")]
    if let Some(disk) = core.driver().disk() {
        return disk.rename(core, from, to).await;
    }
    let to = to.to_owned();
    at(core, from, move |from| fs::rename(from, to)).await
}

pub async fn remove_file(core: &Core, path: &Path) -> io::Result<()> {
    #[cfg(feature = "sim")]
    if let Some(disk) = core.driver().disk() {
        return disk.remove_file(core, path).await;
    }
    at(core, path, |path| fs::remove_file(path)).await
}

/// Removes a directory and everything in it.
pub async fn remove_dir_all(core: &Core, path: &Path) -> io::Result<()> {
    #[cfg(feature = "sim")]
    if let Some(disk) = core.driver().disk() {
        return disk.remove_dir_all(core, path).await;
    }
    at(core, path, |path| fs::remove_dir_all(path)).await
}

/// Makes the directory's entries durable: what was created, renamed or removed in it.
pub async fn sync_dir(core: &Core, path: &Path) -> io::Result<()> {
    #[cfg(feature = "sim")]
    if let Some(disk) = core.driver().disk() {
        return disk.sync_dir(core, path).await;
    }
    at(core, path, sync_dir_now).await
}

fn sync_dir_now(path: &Path) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let fd = rustix::fs::open(path, flags, Mode::empty())?;
    Ok(rustix::fs::fsync(fd)?)
}

pub async fn metadata(core: &Core, path: &Path) -> io::Result<Metadata> {
    #[cfg(feature = "sim")]
    if let Some(disk) = core.driver().disk() {
        return disk.metadata(core, path).await;
    }
    at(core, path, |path| {
        use std::os::unix::fs::MetadataExt;
        let metadata = fs::metadata(path)?;
        Ok(Metadata {
            kind: kind_of(metadata.file_type()),
            len: metadata.len(),
            modified_ms: metadata.mtime() * 1000 + metadata.mtime_nsec() / 1_000_000,
            allocated: metadata.blocks() * 512,
        })
    })
    .await
}

/// The whole of a file of at most `max` bytes; `FileTooLarge` for more.
pub async fn read_file(core: &Core, path: &Path, max: usize) -> io::Result<Bytes> {
    #[cfg(feature = "sim")]
    if let Some(disk) = core.driver().disk() {
        return disk.read_file(core, path, max).await;
    }
    at(core, path, move |path| read_now(path, max)).await
}

/// [`read_file`] for several files one after another, in one visit of the pool: what a visit costs is as much as reading a small
/// file. The answers are in the order of the paths.
pub async fn read_files(core: &Core, paths: Vec<PathBuf>, max: usize) -> Vec<io::Result<Bytes>> {
    #[cfg(feature = "sim")]
    if let Some(disk) = core.driver().disk() {
        let mut answers = Vec::with_capacity(paths.len());
        for path in &paths {
            answers.push(disk.read_file(core, path, max).await);
        }
        return answers;
    }
    core.blocking(move || read_files_now(&paths, max)).await
}

/// Opened one after another, then read: see [`read_parts_now`].
fn read_files_now(paths: &[PathBuf], max: usize) -> Vec<io::Result<Bytes>> {
    let open = |path: &PathBuf| {
        let file = fs::File::open(path)?;
        ask_for(&file, 0, max.min(PIECE_BYTES));
        Ok(file)
    };
    let opened: Vec<io::Result<_>> = paths.iter().map(open).collect();
    let read = |opened: io::Result<_>| read_open(opened?, max);
    opened.into_iter().map(read).collect()
}

/// A part of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    pub path: PathBuf,
    pub offset: u64,
    pub len: usize,
}

/// Parts of several files, each whole or not at all (`UnexpectedEof`), in one visit of the pool. For small parts: the whole of
/// all of them is in memory. The answers are in the order of the parts.
pub async fn read_parts(core: &Core, parts: Vec<Part>) -> Vec<io::Result<Bytes>> {
    // Faults on purpose come to each operation by itself.
    let one_by_one = core.file_faults().is_some();
    #[cfg(feature = "sim")]
    let one_by_one = one_by_one || core.driver().disk().is_some();
    if !one_by_one {
        return core.blocking(move || read_parts_now(&parts)).await;
    }
    let mut answers = Vec::with_capacity(parts.len());
    for part in &parts {
        answers.push(
            match File::open(core, &part.path, &OpenOptions::reading()).await {
                Ok(file) => file.read_exact_at(core, part.offset, part.len).await,
                Err(error) => Err(error),
            },
        );
    }
    answers
}

/// The kernel is asked for all parts before the first is waited for: the disk's waiting times overlap, and the thread sleeps
/// once instead of once a part.
fn read_parts_now(parts: &[Part]) -> Vec<io::Result<Bytes>> {
    let open = |part: &Part| {
        let file = fs::File::open(&part.path)?;
        ask_for(&file, part.offset, part.len);
        Ok((file, part.offset, part.len))
    };
    let opened: Vec<io::Result<_>> = parts.iter().map(open).collect();
    let read = |opened: io::Result<(fs::File, u64, usize)>| {
        let (file, offset, len) = opened?;
        let mut bytes = vec![0; len];
        file.read_exact_at(&mut bytes, offset)?;
        Ok(Bytes::from(bytes))
    };
    opened.into_iter().map(read).collect()
}

/// Has the kernel begin to read. Only a hint: reading says what is wrong.
fn ask_for(file: &fs::File, offset: u64, len: usize) {
    if let Some(len) = NonZeroU64::new(len as u64) {
        let _asked = rustix::fs::fadvise(file, offset, Some(len), Advice::WillNeed);
    }
}

fn read_now(path: &Path, max: usize) -> io::Result<Bytes> {
    read_open(fs::File::open(path)?, max)
}

fn read_open(file: fs::File, max: usize) -> io::Result<Bytes> {
    let expected = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
    let mut contents = Vec::with_capacity(expected.min(max));
    let limit = u64::try_from(max).unwrap_or(u64::MAX).saturating_add(1);
    file.take(limit).read_to_end(&mut contents)?;
    if contents.len() > max {
        return Err(too_large(max));
    }
    Ok(Bytes::from(contents))
}

/// The whole of a file of at most `max` bytes, in pieces: for files that have something for each of very many things.
/// `FileTooLarge` for more.
pub async fn read_pieces(core: &Core, path: &Path, max: usize) -> io::Result<Vec<Bytes>> {
    #[cfg(feature = "sim")]
    if let Some(disk) = core.driver().disk() {
        return Ok(vec![disk.read_file(core, path, max).await?]);
    }
    at(core, path, move |path| {
        let mut file = fs::File::open(path)?;
        let mut pieces = Vec::new();
        let mut read = 0;
        loop {
            let mut piece = Vec::with_capacity(PIECE_BYTES);
            let limit = PIECE_BYTES as u64;
            read += (&mut file).take(limit).read_to_end(&mut piece)?;
            if read > max {
                return Err(too_large(max));
            }
            if piece.is_empty() {
                return Ok(pieces);
            }
            pieces.push(Bytes::from(piece));
        }
    })
    .await
}

fn too_large(max: usize) -> io::Error {
    io::Error::new(
        io::ErrorKind::FileTooLarge,
        format!("longer than {max} bytes"),
    )
}

/// Replaces a file as a whole and durably: at any moment, power loss included, the path holds the
/// old contents or the new. Goes through `<path>.tmp` beside it.
pub async fn write_file_atomic(core: &Core, path: &Path, contents: Bytes) -> io::Result<()> {
    write_pieces_atomic(core, path, vec![contents]).await
}

/// The same for contents in several pieces.
pub async fn write_pieces_atomic(core: &Core, path: &Path, pieces: Vec<Bytes>) -> io::Result<()> {
    #[cfg(feature = "sim")]
    if let Some(disk) = core.driver().disk() {
        let contents = Bytes::from(pieces.concat());
        return disk.write_file_atomic(core, path, contents).await;
    }
    at(core, path, move |path| {
        let mut temporary = path.as_os_str().to_owned();
        temporary.push(".tmp");
        let temporary = PathBuf::from(temporary);
        let mut file = fs::File::create(&temporary)?;
        for piece in &pieces {
            file.write_all(piece)?;
        }
        file.sync_all()?;
        fs::rename(&temporary, path)?;
        match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => sync_dir_now(parent),
            _ => sync_dir_now(Path::new(".")),
        }
    })
    .await
}

/// Space of the filesystem that holds `path`.
pub async fn free_space(core: &Core, path: &Path) -> io::Result<Space> {
    #[cfg(feature = "sim")]
    if let Some(disk) = core.driver().disk() {
        return disk.free_space(core, path).await;
    }
    at(core, path, |path| {
        let space = rustix::fs::statvfs(path)?;
        Ok(Space {
            total: space.f_blocks * space.f_frsize,
            free: space.f_bavail * space.f_frsize,
        })
    })
    .await
}

/// An exclusive lock on a file, held until this is dropped or the process ends.
#[derive(Debug)]
pub struct FileLock {
    _held: HeldLock,
}

#[derive(Debug)]
enum HeldLock {
    Os(#[allow(dead_code, reason = "held for its drop")] OwnedFd),
    #[cfg(feature = "sim")]
    Sim(#[allow(dead_code, reason = "held for its drop")] crate::sim::SimLock),
}

/// Takes flock(2) and fcntl(2)'s lock on `path`, created when absent; `WouldBlock` when another
/// process holds either.
pub async fn lock_file(core: &Core, path: &Path) -> io::Result<FileLock> {
    #[cfg(feature = "sim")]
    if let Some(disk) = core.driver().disk() {
        let lock = disk.lock_file(core, path).await?;
        let _held = HeldLock::Sim(lock);
        return Ok(FileLock { _held });
    }
    at(core, path, |path| {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC;
        let fd = rustix::fs::open(path, flags, Mode::from_raw_mode(0o644))?;
        rustix::fs::flock(&fd, FlockOperation::NonBlockingLockExclusive)?;
        // The two kinds do not see each other, and programs in Java take the other kind.
        rustix::fs::fcntl_lock(&fd, FlockOperation::NonBlockingLockExclusive)?;
        let _held = HeldLock::Os(fd);
        Ok(FileLock { _held })
    })
    .await
}
