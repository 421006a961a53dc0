//! Directories and whole small files of a simulated disk: what `io::dir` promises.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use bytes::Bytes;

use super::disk::Disk;
use super::files::allocated;
use super::one_thread::OneThread;
use super::tree::Inode;
use crate::Core;
use crate::backend::SyncKind;
use crate::fault::FileOperation;
use crate::io::dir::{DirEntry, FileKind, Metadata, Space};
use crate::io::{BLOCK, OpenOptions};

fn kind_of(inode: &Inode) -> FileKind {
    if inode.is_directory() {
        FileKind::Directory
    } else {
        FileKind::File
    }
}

impl Disk {
    /// The checks and the time of one operation with names.
    async fn name_operation(
        &self,
        core: &Core,
        counts_as: FileOperation,
        path: &Path,
    ) -> io::Result<()> {
        let verdict = self.verdict(counts_as, path);
        self.take_time(core, FileOperation::Open).await;
        verdict
    }

    pub(crate) async fn create_dir_all(&self, core: &Core, path: &Path) -> io::Result<()> {
        self.name_operation(core, FileOperation::Write, path)
            .await?;
        self.note(format_args!("create directory"), path);
        let now_ms = core.wall_clock_ms();
        self.tree().borrow_mut().create_dir_all(path, now_ms)
    }

    pub(crate) async fn read_dir(
        &self,
        core: &Core,
        path: &Path,
    ) -> io::Result<BTreeSet<DirEntry>> {
        self.name_operation(core, FileOperation::Read, path).await?;
        let inode = self.tree().borrow().find(path)?;
        let entries = inode.list()?.into_iter().map(|(name, inode)| DirEntry {
            name,
            kind: kind_of(&inode),
            len: inode.with(|state| state.len()).unwrap_or(0),
        });
        Ok(entries.collect())
    }

    pub(crate) async fn rename(&self, core: &Core, from: &Path, to: &Path) -> io::Result<()> {
        self.name_operation(core, FileOperation::Write, from)
            .await?;
        self.note(format_args!("rename {} from", to.display()), from);
        let now_ms = core.wall_clock_ms();
        self.tree().borrow_mut().rename(from, to, now_ms)
    }

    pub(crate) async fn remove_file(&self, core: &Core, path: &Path) -> io::Result<()> {
        self.name_operation(core, FileOperation::Write, path)
            .await?;
        self.note(format_args!("remove"), path);
        let now_ms = core.wall_clock_ms();
        self.tree().borrow_mut().remove(path, false, now_ms)
    }

    /// One entry after the other, so that power can fail in between.
    pub(crate) async fn remove_dir_all(&self, core: &Core, path: &Path) -> io::Result<()> {
        self.name_operation(core, FileOperation::Write, path)
            .await?;
        self.note(format_args!("remove directory"), path);
        let mut found = vec![path.to_owned()];
        let mut at = 0;
        while let Some(directory) = found.get(at).cloned() {
            let inode = self.tree().borrow().find(&directory)?;
            for (name, inode) in inode.list()? {
                let child = directory.join(name);
                if inode.is_directory() {
                    found.push(child);
                } else {
                    self.take_time(core, FileOperation::Open).await;
                    let now_ms = core.wall_clock_ms();
                    self.tree().borrow_mut().remove(&child, false, now_ms)?;
                }
            }
            at += 1;
        }
        for directory in found.iter().rev() {
            let now_ms = core.wall_clock_ms();
            self.tree().borrow_mut().remove(directory, true, now_ms)?;
        }
        Ok(())
    }

    pub(crate) async fn sync_dir(&self, core: &Core, path: &Path) -> io::Result<()> {
        let verdict = self.verdict(FileOperation::Sync, path);
        self.take_time(core, FileOperation::Sync).await;
        verdict?;
        self.note(format_args!("sync directory"), path);
        let inode = self.tree().borrow().find(path)?;
        inode.list()?; // a directory
        self.tree().borrow_mut().sync_dir(&inode);
        Ok(())
    }

    pub(crate) async fn metadata(&self, core: &Core, path: &Path) -> io::Result<Metadata> {
        self.name_operation(core, FileOperation::Read, path).await?;
        let inode = self.tree().borrow().find(path)?;
        Ok(Metadata {
            kind: kind_of(&inode),
            len: inode.with(|state| state.len()).unwrap_or(0),
            modified_ms: inode.modified_ms.get(),
            allocated: allocated(&inode),
        })
    }

    pub(crate) async fn read_file(
        &self,
        core: &Core,
        path: &Path,
        max: usize,
    ) -> io::Result<Bytes> {
        self.name_operation(core, FileOperation::Read, path).await?;
        let inode = self.tree().borrow().find(path)?;
        Self::whole(&inode, max)
    }

    /// The same steps as on a real disk, each with its own faults.
    pub(crate) async fn write_file_atomic(
        &self,
        core: &Core,
        path: &Path,
        contents: Bytes,
    ) -> io::Result<()> {
        let mut temporary = path.as_os_str().to_owned();
        temporary.push(".tmp");
        let temporary = PathBuf::from(temporary);
        let options = OpenOptions {
            truncate: true,
            ..OpenOptions::writing()
        };
        let file = self.open(core, &temporary, &options).await?;
        let mut done = 0;
        while done < contents.len() {
            let rest = contents.slice(done..);
            done += file.write_at(core, rest, done as u64, false).await?;
        }
        file.sync(core, SyncKind::All).await?;
        self.rename(core, &temporary, path).await?;
        let parent = path.parent().unwrap_or_else(|| Path::new("/"));
        self.sync_dir(core, parent).await
    }

    pub(crate) async fn free_space(&self, core: &Core, path: &Path) -> io::Result<Space> {
        self.name_operation(core, FileOperation::Read, path).await?;
        let tree = self.tree().borrow();
        tree.find(path)?;
        Ok(Space {
            total: tree.space.capacity.get() * BLOCK as u64,
            free: tree.space.free() * BLOCK as u64,
        })
    }

    pub(crate) async fn lock_file(&self, core: &Core, path: &Path) -> io::Result<SimLock> {
        self.name_operation(core, FileOperation::Open, path).await?;
        let now_ms = core.wall_clock_ms();
        let inode = self.tree().borrow_mut().create_file(path, false, now_ms)?;
        if inode.locked.replace(true) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(SimLock(OneThread::new(Locked(inode))))
    }
}

/// flock(2) is held until this is dropped.
#[derive(Debug)]
pub(crate) struct SimLock(#[allow(dead_code, reason = "held for its drop")] OneThread<Locked>);

struct Locked(Rc<Inode>);

impl Drop for Locked {
    fn drop(&mut self) {
        self.0.locked.set(false);
    }
}
