use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::{Arc, OnceLock};

use bytes::{Buf, Bytes};
use rustix::fs::{FallocateFlags, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};

use super::cold::{Chunk, ReadOnce};
use super::join::join;
use super::{AlignedBuf, BLOCK};
use crate::BackendKind;
use crate::Core;
use crate::backend::SyncKind;
use crate::fault::{self, FileOperation};
use crate::sys::{self, Pool};

/// How to open a file; the fields mean what those of [`std::fs::OpenOptions`] mean.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenOptions {
    pub read: bool,
    pub write: bool,
    pub create: bool,
    pub create_new: bool,
    pub truncate: bool,
    pub append: bool,
    /// O_DIRECT if the filesystem can, else buffered: see [`File::is_direct`].
    pub direct: bool,
}

impl OpenOptions {
    /// For reading an existing file.
    pub fn reading() -> Self {
        Self {
            read: true,
            ..Self::default()
        }
    }

    /// For reading and writing, created when absent.
    pub fn writing() -> Self {
        Self {
            read: true,
            write: true,
            create: true,
            ..Self::default()
        }
    }
}

/// When a write is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// The kernel has taken it: survives the process.
    Written,
    /// It is on the disk (RWF_DSYNC): survives power loss.
    Durable,
}

/// An open file. Clones share the descriptor, on any core; operations take the core they run on.
///
/// Buffers are owned by the operation: a dropped write goes on by itself, a dropped read is
/// forgotten when it completes. The last clone closes the descriptor.
#[derive(Clone, Debug)]
pub struct File(Backing);

#[derive(Clone)]
enum Backing {
    Os(Arc<OsFile>),
    #[cfg(feature = "sim")]
    Sim(crate::sim::SimFile),
}

impl fmt::Debug for Backing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Os(file) => file.fmt(f),
            #[cfg(feature = "sim")]
            Self::Sim(file) => file.fmt(f),
        }
    }
}

pub(crate) struct OsFile {
    /// There until it is dropped.
    fd: Option<OwnedFd>,
    /// Closes the descriptor: the last close of a large deleted file takes the kernel long.
    closer: Pool,
    direct: bool,
    path: PathBuf,
    /// The disk: st_dev of stat(2).
    device: u64,
    /// For sendfile from a direct file, which needs the page cache: opened when first needed.
    buffered: OnceLock<OwnedFd>,
    /// For cold reads of a buffered file: opened when first needed; none where the filesystem cannot.
    direct_reads: OnceLock<Option<OwnedFd>>,
    read_once: ReadOnce,
}

/// Memory for one read, as the file wants it.
pub(crate) enum ReadBuf {
    Aligned(AlignedBuf),
    Plain(Vec<u8>),
    /// For a read past the page cache, whichever way the file was opened.
    Cold(Chunk),
}

impl ReadBuf {
    fn new(direct: bool, len: usize) -> Self {
        if direct {
            Self::Aligned(AlignedBuf::zeroed(len))
        } else {
            Self::Plain(vec![0; len])
        }
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        match self {
            Self::Aligned(buffer) => buffer.as_mut_slice(),
            Self::Plain(buffer) => buffer.as_mut_slice(),
            Self::Cold(chunk) => chunk.as_mut_slice(),
        }
    }

    /// What to read it from.
    pub(crate) fn descriptor<'a>(&self, file: &'a OsFile) -> BorrowedFd<'a> {
        match self {
            Self::Cold(_) => file.direct_now().unwrap_or_else(|| file.fd()),
            Self::Aligned(_) | Self::Plain(_) => file.fd(),
        }
    }

    fn freeze(self) -> Bytes {
        match self {
            Self::Aligned(buffer) => buffer.freeze(),
            Self::Plain(buffer) => Bytes::from(buffer),
            Self::Cold(chunk) => chunk.freeze(),
        }
    }
}

impl OsFile {
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_ref().expect("open until dropped").as_fd()
    }

    fn open(path: PathBuf, options: &OpenOptions, closer: Pool) -> io::Result<Self> {
        let mut flags = OFlags::CLOEXEC;
        flags |= match (options.read, options.write || options.append) {
            (true, true) => OFlags::RDWR,
            (false, true) => OFlags::WRONLY,
            _ => OFlags::RDONLY,
        };
        flags.set(OFlags::CREATE, options.create || options.create_new);
        flags.set(OFlags::EXCL, options.create_new);
        flags.set(OFlags::TRUNC, options.truncate);
        flags.set(OFlags::APPEND, options.append);
        let mode = Mode::from_raw_mode(0o644);
        let open = |flags| retry_on_intr(|| rustix::fs::open(&path, flags, mode));
        let (fd, direct) = if options.direct {
            match open(flags | OFlags::DIRECT) {
                Ok(fd) => (fd, true),
                // EINVAL is what filesystems without direct I/O say; the file may exist by now.
                Err(Errno::INVAL) => (open(flags - OFlags::EXCL)?, false),
                Err(error) => return Err(error.into()),
            }
        } else {
            (open(flags)?, false)
        };
        Ok(Self {
            device: rustix::fs::fstat(&fd)?.st_dev,
            fd: Some(fd),
            closer,
            direct,
            path,
            buffered: OnceLock::new(),
            direct_reads: OnceLock::new(),
            read_once: ReadOnce::default(),
        })
    }

    /// The same file once more. Blocks: call it on a pool thread.
    fn open_again(&self, flags: OFlags) -> Result<OwnedFd, Errno> {
        // Through /proc, so that a renamed or deleted file is still found.
        let same = format!("/proc/self/fd/{}", self.fd().as_raw_fd());
        let flags = flags | OFlags::RDONLY | OFlags::CLOEXEC;
        rustix::fs::open(same, flags, Mode::empty())
    }

    /// Opens a descriptor for reads past the page cache, if the filesystem has such. Blocks: call it on a pool thread.
    fn open_direct(&self) {
        let opened = match self.open_again(OFlags::DIRECT) {
            Ok(fd) => Some(fd),
            Err(Errno::INVAL) => None,
            // Too many are open, say: the file can be read without, and another time may be better.
            Err(_) => return,
        };
        let _ = self.direct_reads.set(opened); // another core may have been faster: same file
    }

    /// A descriptor that reads past the page cache, if there is one already.
    fn direct_now(&self) -> Option<BorrowedFd<'_>> {
        if self.direct {
            Some(self.fd())
        } else {
            self.direct_reads.get()?.as_ref().map(AsFd::as_fd)
        }
    }

    /// A descriptor that reads through the page cache. Blocks: call it on a pool thread.
    pub(crate) fn buffered(&self) -> io::Result<BorrowedFd<'_>> {
        if !self.direct {
            return Ok(self.fd());
        }
        if self.buffered.get().is_none() {
            let fd = self.open_again(OFlags::empty())?;
            let _ = self.buffered.set(fd); // another core may have been faster: same file
        }
        Ok(self.buffered.get().expect("set above").as_fd())
    }

    /// The descriptor of [`OsFile::buffered`] if it is there already.
    pub(crate) fn buffered_now(&self) -> Option<BorrowedFd<'_>> {
        if self.direct {
            self.buffered.get().map(AsFd::as_fd)
        } else {
            Some(self.fd())
        }
    }
}

impl Drop for OsFile {
    fn drop(&mut self) {
        let direct = self.direct_reads.take();
        let descriptors = (self.fd.take(), self.buffered.take(), direct);
        self.closer.submit(Box::new(move || drop(descriptors)));
    }
}

impl fmt::Debug for OsFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let direct = if self.direct { ", direct" } else { "" };
        write!(f, "{}{direct}", self.path.display())
    }
}

impl File {
    /// Opens `path`, off the core.
    ///
    /// # Errors
    /// What open(2) says. Whoever passes it on names the path.
    pub async fn open(core: &Core, path: &Path, options: &OpenOptions) -> io::Result<File> {
        fault::check(core, FileOperation::Open, path).await?;
        #[cfg(feature = "sim")]
        if let Some(disk) = core.driver().disk() {
            let opened = disk.open(core, path, options).await;
            return opened.map(|file| File(Backing::Sim(file)));
        }
        let (path, options, closer) = (path.to_owned(), *options, core.pool().clone());
        let open = move || OsFile::open(path, &options, closer);
        let opened = core.blocking(open).await?;
        Ok(File(Backing::Os(Arc::new(opened))))
    }

    /// The kernel's file; none in the simulation.
    pub(crate) fn os(&self) -> Option<&Arc<OsFile>> {
        match &self.0 {
            Backing::Os(file) => Some(file),
            #[cfg(feature = "sim")]
            Backing::Sim(_) => None,
        }
    }

    #[cfg(feature = "sim")]
    pub(crate) fn simulated(&self) -> Option<&crate::sim::SimFile> {
        match &self.0 {
            Backing::Os(_) => None,
            Backing::Sim(file) => Some(file),
        }
    }

    /// The path it was opened by; it may have been renamed since.
    pub fn path(&self) -> &Path {
        match &self.0 {
            Backing::Os(file) => &file.path,
            #[cfg(feature = "sim")]
            Backing::Sim(file) => file.path(),
        }
    }

    /// True: offset, length and memory of writes must be multiples of [`BLOCK`].
    pub fn is_direct(&self) -> bool {
        match &self.0 {
            Backing::Os(file) => file.direct,
            #[cfg(feature = "sim")]
            Backing::Sim(file) => file.is_direct(),
        }
    }

    /// Writes all of `data` at `offset`. A direct file wants multiples of [`BLOCK`], in memory
    /// from [`AlignedBuf`]. When the future is dropped, the write may still take place.
    ///
    /// # Errors
    /// What pwritev2(2) says: ENOSPC, EDQUOT, EIO; after an error any prefix may be written.
    pub async fn write_all_at(
        &self,
        core: &Core,
        mut data: Bytes,
        mut offset: u64,
        durability: Durability,
    ) -> io::Result<()> {
        let durable = durability == Durability::Durable;
        if self.is_direct() && !is_aligned(offset, &data) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "direct I/O needs offset, length and memory in multiples of 4096",
            ));
        }
        fault::check(core, FileOperation::Write, self.path()).await?;
        core.cold_reads().note_write(self.device(), core.now());
        while !data.is_empty() {
            let written = match &self.0 {
                Backing::Os(file) => {
                    let driver = core.driver();
                    driver
                        .write_at(core, file, data.clone(), offset, durable)
                        .await?
                }
                #[cfg(feature = "sim")]
                Backing::Sim(file) => file.write_at(core, data.clone(), offset, durable).await?,
            };
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            data.advance(written);
            offset += written as u64;
        }
        Ok(())
    }

    /// As [`File::write_all_at`], where the first `known` bytes lie in blocks that were written before and the others in
    /// blocks that are only reserved.
    ///
    /// The ring writes both parts at once, each by an operation of its own, and the kernel makes one request to the disk of
    /// them: ext4 takes a direct write without blocking only where all of it is of one kind, and what might block goes to
    /// a worker of the kernel, which costs as much again. So either part may be written without the other until both are.
    ///
    /// # Errors
    /// Those of [`File::write_all_at`]; after one, nothing is under way any more.
    pub async fn write_on_at(
        &self,
        core: &Core,
        data: Bytes,
        offset: u64,
        known: usize,
    ) -> io::Result<()> {
        let divides = self.is_direct() && core.backend() != BackendKind::Epoll;
        if !divides || known == 0 || known >= data.len() {
            return self
                .write_all_at(core, data, offset, Durability::Written)
                .await;
        }
        let (first, rest) = (data.slice(..known), data.slice(known..));
        let behind = offset + known as u64;
        let (first, rest) = join(
            pin!(self.write_all_at(core, first, offset, Durability::Written)),
            pin!(self.write_all_at(core, rest, behind, Durability::Written)),
        )
        .await;
        first.and(rest)
    }

    /// Reads exactly `len` bytes at `offset`, of any alignment.
    ///
    /// # Errors
    /// `UnexpectedEof` when the file is shorter; else what pread(2) says.
    pub async fn read_exact_at(&self, core: &Core, offset: u64, len: usize) -> io::Result<Bytes> {
        let bytes = self.read_at_most(core, offset, len).await?;
        if bytes.len() < len {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                format!(
                    "{} of {len} bytes at {offset} before the end of the file",
                    bytes.len()
                ),
            ));
        }
        Ok(bytes)
    }

    /// Reads `len` bytes at `offset`, fewer only at the end of the file.
    ///
    /// # Errors
    /// What pread(2) says.
    pub async fn read_at_most(&self, core: &Core, offset: u64, len: usize) -> io::Result<Bytes> {
        if len == 0 {
            return Ok(Bytes::new());
        }
        fault::check(core, FileOperation::Read, self.path()).await?;
        // A direct read takes whole blocks around the range.
        let block = if self.is_direct() { BLOCK as u64 } else { 1 };
        let start = offset - offset % block;
        let end = (offset + len as u64).next_multiple_of(block);
        let skip = (offset - start) as usize;
        let whole = self.read_whole(core, start, (end - start) as usize).await?;
        Ok(whole.slice(skip.min(whole.len())..(skip + len).min(whole.len())))
    }

    async fn read_whole(&self, core: &Core, offset: u64, len: usize) -> io::Result<Bytes> {
        let direct = self.is_direct();
        let buffer = ReadBuf::new(direct, len);
        let (buffer, read) = self.read_once(core, buffer, offset).await?;
        let first = buffer.freeze().slice(..read);
        // A direct read stops inside a block only at the end of the file.
        let at_end = read == 0 || (direct && read % BLOCK != 0);
        if read == len || at_end {
            return Ok(first);
        }
        // Short in the middle (a signal, a limit of the filesystem): rare, so copying is fine.
        let mut all = bytes::BytesMut::with_capacity(len);
        all.extend_from_slice(&first);
        while all.len() < len {
            let buffer = ReadBuf::new(direct, len - all.len());
            let at = offset + all.len() as u64;
            let (buffer, read) = self.read_once(core, buffer, at).await?;
            all.extend_from_slice(&buffer.freeze()[..read]);
            if read == 0 || (direct && read % BLOCK != 0) {
                break;
            }
        }
        Ok(all.freeze())
    }

    async fn read_once(
        &self,
        core: &Core,
        buffer: ReadBuf,
        offset: u64,
    ) -> io::Result<(ReadBuf, usize)> {
        match &self.0 {
            Backing::Os(file) => core.driver().read_at(core, file, buffer, offset).await,
            #[cfg(feature = "sim")]
            Backing::Sim(file) => file.read_at(core, buffer, offset).await,
        }
    }

    /// Whether cold reads can go past the page cache.
    pub(super) async fn reads_directly(&self, core: &Core) -> bool {
        let file = match &self.0 {
            Backing::Os(file) => file,
            #[cfg(feature = "sim")]
            Backing::Sim(_) => return true,
        };
        if !file.direct && file.direct_reads.get().is_none() {
            let file = Arc::clone(file);
            core.blocking(move || file.open_direct()).await;
        }
        file.direct_now().is_some()
    }

    /// Whether all of a range is in the page cache; may be wrong a moment later.
    pub(super) fn is_resident(&self, offset: u64, len: u64) -> bool {
        match &self.0 {
            Backing::Os(file) => {
                let fd = file.buffered_now();
                sys::is_resident(fd.unwrap_or_else(|| file.fd()), offset, len)
            }
            #[cfg(feature = "sim")]
            Backing::Sim(file) => file.is_resident(),
        }
    }

    /// Notes a range as read; answers whether it was before.
    pub(super) fn was_read(&self, offset: u64, len: u64) -> bool {
        match &self.0 {
            Backing::Os(file) => file.read_once.note(offset, len),
            #[cfg(feature = "sim")]
            Backing::Sim(_) => false,
        }
    }

    /// The number of the disk.
    pub(super) fn device(&self) -> u64 {
        match &self.0 {
            Backing::Os(file) => file.device,
            #[cfg(feature = "sim")]
            Backing::Sim(_) => 0,
        }
    }

    /// One read past the page cache, of whole blocks; may be short. Call [`File::reads_directly`] first.
    pub(super) async fn read_chunk(
        &self,
        core: &Core,
        chunk: Chunk,
        offset: u64,
    ) -> io::Result<(Chunk, usize)> {
        fault::check(core, FileOperation::Read, self.path()).await?;
        let buffer = ReadBuf::Cold(chunk);
        match self.read_once(core, buffer, offset).await? {
            (ReadBuf::Cold(chunk), read) => Ok((chunk, read)),
            _ => unreachable!("a read gives back the memory that it was given"),
        }
    }

    async fn sync(&self, core: &Core, kind: SyncKind) -> io::Result<()> {
        fault::check(core, FileOperation::Sync, self.path()).await?;
        match &self.0 {
            Backing::Os(file) => core.driver().sync(core, file, kind).await,
            #[cfg(feature = "sim")]
            Backing::Sim(file) => file.sync(core, kind).await,
        }
    }

    /// fdatasync(2): bytes and length are on the disk.
    ///
    /// # Errors
    /// After one, pages may be marked clean without being written: never retry it as if it helped.
    pub async fn sync_data(&self, core: &Core) -> io::Result<()> {
        self.sync(core, SyncKind::Data).await
    }

    /// fsync(2): all metadata too.
    ///
    /// # Errors
    /// As [`File::sync_data`].
    pub async fn sync_all(&self, core: &Core) -> io::Result<()> {
        self.sync(core, SyncKind::All).await
    }

    /// Cuts the file, or extends it by a hole.
    ///
    /// # Errors
    /// What ftruncate(2) says.
    pub async fn set_len(&self, core: &Core, len: u64) -> io::Result<()> {
        fault::check(core, FileOperation::SetLen, self.path()).await?;
        match &self.0 {
            Backing::Os(file) => {
                let file = Arc::clone(file);
                core.blocking(move || Ok(retry_on_intr(|| rustix::fs::ftruncate(file.fd(), len))?))
                    .await
            }
            #[cfg(feature = "sim")]
            Backing::Sim(file) => file.set_len(core, len).await,
        }
    }

    /// Reserves disk space from `offset` and extends the file to `offset + len`; new bytes are
    /// zeros. On a filesystem that cannot reserve, it only extends.
    ///
    /// # Errors
    /// ENOSPC before any write meets it; else what fallocate(2) says.
    pub async fn allocate(&self, core: &Core, offset: u64, len: u64) -> io::Result<()> {
        fault::check(core, FileOperation::Allocate, self.path()).await?;
        let allocated = match &self.0 {
            Backing::Os(file) => core.driver().allocate(core, file, offset, len).await,
            #[cfg(feature = "sim")]
            Backing::Sim(file) => file.allocate(core, offset, len).await,
        };
        match allocated {
            Err(error) if error.raw_os_error() == Some(Errno::OPNOTSUPP.raw_os_error()) => {
                let size = self.len(core).await?;
                if size < offset + len {
                    self.set_len(core, offset + len).await
                } else {
                    Ok(())
                }
            }
            result => result,
        }
    }

    /// Gives disk space of a range back; reads of it give zeros.
    ///
    /// # Errors
    /// What fallocate(2) says.
    pub async fn punch_hole(&self, core: &Core, offset: u64, len: u64) -> io::Result<()> {
        let file = match &self.0 {
            Backing::Os(file) => Arc::clone(file),
            #[cfg(feature = "sim")]
            Backing::Sim(file) => return file.punch_hole(core, offset, len).await,
        };
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        core.blocking(move || Ok(rustix::fs::fallocate(file.fd(), flags, offset, len)?))
            .await
    }

    /// The file's length in bytes.
    ///
    /// # Errors
    /// What fstat(2) says.
    pub async fn len(&self, core: &Core) -> io::Result<u64> {
        let file = match &self.0 {
            Backing::Os(file) => Arc::clone(file),
            #[cfg(feature = "sim")]
            Backing::Sim(file) => return file.len(core).await,
        };
        core.blocking(move || Ok(rustix::fs::fstat(file.fd())?.st_size.cast_unsigned()))
            .await
    }
}

fn is_aligned(offset: u64, data: &[u8]) -> bool {
    offset.is_multiple_of(BLOCK as u64)
        && data.len().is_multiple_of(BLOCK)
        && data.as_ptr().addr().is_multiple_of(BLOCK)
}
