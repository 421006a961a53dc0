//! Open files of a simulated disk.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;

use super::disk::Disk;
use super::one_thread::OneThread;
use super::tree::Inode;
use crate::Core;
use crate::backend::SyncKind;
use crate::fault::FileOperation;
use crate::io::{BLOCK, OpenOptions, ReadBuf};

#[derive(Clone)]
pub(crate) struct SimFile(Arc<OneThread<Open>>);

struct Open {
    inode: Rc<Inode>,
    disk: Disk,
    path: PathBuf,
    options: OpenOptions,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.inode.release();
    }
}

fn errno(number: i32) -> io::Error {
    io::Error::from_raw_os_error(number)
}

impl Disk {
    pub(crate) async fn open(
        &self,
        core: &Core,
        path: &Path,
        options: &OpenOptions,
    ) -> io::Result<SimFile> {
        let verdict = self.verdict(FileOperation::Open, path);
        self.take_time(core, FileOperation::Open).await;
        verdict?;
        let now_ms = core.wall_clock_ms();
        let writes = options.write || options.append;
        let inode = {
            let mut tree = self.tree().borrow_mut();
            if options.create || options.create_new {
                tree.create_file(path, options.create_new, now_ms)?
            } else {
                tree.find(path)?
            }
        };
        if inode.is_directory() && (writes || options.create) {
            return Err(errno(libc::EISDIR));
        }
        if options.truncate && writes {
            inode.change(|state| state.set_len(0))?;
        }
        self.note(format_args!("open"), path);
        inode.hold();
        Ok(SimFile(Arc::new(OneThread::new(Open {
            inode,
            disk: self.clone(),
            path: path.to_owned(),
            options: *options,
        }))))
    }
}

impl SimFile {
    fn open(&self) -> &Open {
        self.0.get()
    }

    pub(crate) fn path(&self) -> &Path {
        &self.open().path
    }

    pub(crate) fn is_direct(&self) -> bool {
        self.open().options.direct
    }

    /// One write; may be short.
    pub(crate) async fn write_at(
        &self,
        core: &Core,
        data: Bytes,
        offset: u64,
        durable: bool,
    ) -> io::Result<usize> {
        let Open { disk, path, .. } = self.open();
        self.must_be_writable()?;
        let verdict = disk.verdict(FileOperation::Write, path);
        let early = disk.random().below(2) == 0;
        let mut effect = None;
        if early {
            effect = Some(self.write_now(core, &data, offset, verdict.is_err()));
        }
        disk.take_time(core, FileOperation::Write).await;
        let effect =
            effect.unwrap_or_else(|| self.write_now(core, &data, offset, verdict.is_err()));
        verdict?;
        let (at, written) = effect?;
        if durable {
            let verdict = disk.verdict(FileOperation::Sync, path);
            disk.take_time(core, FileOperation::Sync).await;
            self.open().inode.change(|state| match &verdict {
                Ok(()) => state.sync_range(at, written as u64),
                Err(_) => state.forget_dirty(),
            })?;
            verdict?;
        }
        Ok(written)
    }

    fn must_be_writable(&self) -> io::Result<()> {
        let options = &self.open().options;
        if options.write || options.append {
            Ok(())
        } else {
            Err(errno(libc::EBADF))
        }
    }

    /// Where it went and how much; a failing write leaves any prefix of its bytes.
    fn write_now(
        &self,
        core: &Core,
        data: &[u8],
        offset: u64,
        fails: bool,
    ) -> io::Result<(u64, usize)> {
        let Open {
            inode,
            disk,
            path,
            options,
        } = self.open();
        let block = if options.direct { BLOCK } else { 1 };
        let offset = if options.append {
            inode.with(|state| state.len())?
        } else {
            offset
        };
        let free = disk.tree().borrow().space.free();
        let fits = inode.with(|state| state.fitting(offset, data.len() as u64, free))? as usize;
        if fits == 0 && !data.is_empty() {
            disk.note(format_args!("full"), path);
            return Err(errno(libc::ENOSPC));
        }
        let mut len = disk.shortened(fits, block);
        if fails {
            len = disk.random().index(len / block + 1) * block;
        }
        let at = disk.directed(offset);
        inode.change(|state| {
            state.write(at, &data[..len]);
            state.warm = !options.direct;
        })?;
        inode.modified_ms.set(core.wall_clock_ms());
        disk.note(format_args!("write {at} {len}"), path);
        Ok((at, len))
    }

    /// One read into all of `buffer`; may be short, 0 at the end of the file.
    pub(crate) async fn read_at(
        &self,
        core: &Core,
        mut buffer: ReadBuf,
        offset: u64,
    ) -> io::Result<(ReadBuf, usize)> {
        let Open {
            inode,
            disk,
            path,
            options,
        } = self.open();
        if !options.read {
            return Err(errno(libc::EBADF));
        }
        let verdict = disk.verdict(FileOperation::Read, path);
        disk.take_time(core, FileOperation::Read).await;
        verdict?;
        let memory = buffer.as_mut_slice();
        let block = if options.direct { BLOCK } else { 1 };
        let wanted = disk.shortened(memory.len(), block);
        let memory = &mut memory[..wanted];
        let read = inode.with(|state| match options.direct {
            true => state.read_direct(offset, memory),
            false => state.read(offset, memory),
        })?;
        disk.note(format_args!("read {offset} {read}"), path);
        Ok((buffer, read))
    }

    /// Bytes for sendfile, which has seen to it that they are in the page cache.
    pub(super) fn peek(&self, offset: u64, len: usize) -> Bytes {
        let read = self.open().inode.with(|state| {
            let len = state.len().saturating_sub(offset).min(len as u64) as usize;
            let mut bytes = vec![0; len];
            state.read(offset, &mut bytes);
            bytes
        });
        read.map_or_else(|_| Bytes::new(), Bytes::from)
    }

    /// Whether the file is in the page cache.
    pub(crate) fn is_resident(&self) -> bool {
        self.open().inode.with(|state| state.warm).unwrap_or(false)
    }

    /// Has the file in the page cache, reading it if it is not.
    pub(crate) async fn make_resident(&self, core: &Core) -> io::Result<()> {
        let Open {
            inode, disk, path, ..
        } = self.open();
        if inode.with(|state| state.warm)? {
            return Ok(());
        }
        core.counters().cold_prefetches.one();
        let verdict = disk.verdict(FileOperation::Read, path);
        disk.take_time(core, FileOperation::Read).await;
        verdict?;
        inode.change(|state| state.warm = true)
    }

    pub(crate) async fn sync(&self, core: &Core, kind: SyncKind) -> io::Result<()> {
        let Open {
            inode, disk, path, ..
        } = self.open();
        let verdict = disk.verdict(FileOperation::Sync, path);
        disk.take_time(core, FileOperation::Sync).await;
        inode.change(|state| match &verdict {
            Ok(()) => state.sync(),
            Err(_) => state.forget_dirty(),
        })?;
        disk.note(format_args!("sync {kind:?} {}", verdict.is_ok()), path);
        verdict
    }

    pub(crate) async fn allocate(&self, core: &Core, offset: u64, len: u64) -> io::Result<()> {
        let Open {
            inode, disk, path, ..
        } = self.open();
        self.must_be_writable()?;
        let verdict = disk.verdict(FileOperation::Allocate, path);
        disk.take_time(core, FileOperation::Allocate).await;
        verdict?;
        let free = disk.tree().borrow().space.free();
        if inode.with(|state| state.fitting(offset, len, free))? < len {
            return Err(errno(libc::ENOSPC));
        }
        disk.note(format_args!("allocate {offset} {len}"), path);
        inode.change(|state| state.reserve(offset, len))
    }

    pub(crate) async fn set_len(&self, core: &Core, len: u64) -> io::Result<()> {
        let Open {
            inode, disk, path, ..
        } = self.open();
        if self.must_be_writable().is_err() {
            return Err(errno(libc::EINVAL));
        }
        let verdict = disk.verdict(FileOperation::SetLen, path);
        disk.take_time(core, FileOperation::SetLen).await;
        verdict?;
        disk.note(format_args!("set length {len}"), path);
        inode.change(|state| state.set_len(len))
    }

    pub(crate) async fn punch_hole(&self, core: &Core, offset: u64, len: u64) -> io::Result<()> {
        let Open {
            inode, disk, path, ..
        } = self.open();
        self.must_be_writable()?;
        disk.take_time(core, FileOperation::Allocate).await;
        disk.note(format_args!("punch {offset} {len}"), path);
        inode.change(|state| state.punch(offset, len))
    }

    pub(crate) async fn len(&self, core: &Core) -> io::Result<u64> {
        let Open { inode, disk, .. } = self.open();
        disk.take_time(core, FileOperation::Open).await;
        inode.with(|state| state.len())
    }
}

impl fmt::Debug for SimFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let direct = if self.is_direct() { ", direct" } else { "" };
        write!(f, "{}{direct}", self.path().display())
    }
}

/// Bytes of disk space that a file takes.
pub(super) fn allocated(inode: &Inode) -> u64 {
    let blocks = inode.with(|state| state.blocks()).unwrap_or(0);
    blocks * BLOCK as u64
}
