//! File operations, each on a pool thread.

use std::io::{self, IoSlice};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rustix::fs::FallocateFlags;
use rustix::io::{ReadWriteFlags, retry_on_intr};

use super::EpollDriver;
use crate::Core;
use crate::backend::SyncKind;
use crate::io::{OsFile, ReadBuf};

impl EpollDriver {
    async fn run<R: Send + 'static>(
        &self,
        core: &Core,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> R {
        self.counters.submissions.one();
        core.on_pool(&self.file_pool, work).await
    }

    /// Holds a pool thread up, as a disk that does not answer would.
    pub(crate) async fn delay(&self, core: &Core, span: Duration) {
        self.run(core, move || crate::sys::block_thread(span)).await;
    }

    pub(crate) async fn write_at(
        &self,
        core: &Core,
        file: &Arc<OsFile>,
        data: Bytes,
        offset: u64,
        durable: bool,
    ) -> io::Result<usize> {
        let file = Arc::clone(file);
        let flags = if durable {
            ReadWriteFlags::DSYNC
        } else {
            ReadWriteFlags::empty()
        };
        self.run(core, move || {
            let slices = [IoSlice::new(&data)];
            Ok(retry_on_intr(|| {
                rustix::io::pwritev2(file.fd(), &slices, offset, flags)
            })?)
        })
        .await
    }

    pub(crate) async fn read_at(
        &self,
        core: &Core,
        file: &Arc<OsFile>,
        mut buffer: ReadBuf,
        offset: u64,
    ) -> io::Result<(ReadBuf, usize)> {
        let file = Arc::clone(file);
        self.run(core, move || {
            let fd = buffer.descriptor(&file);
            let read = retry_on_intr(|| rustix::io::pread(fd, buffer.as_mut_slice(), offset))?;
            Ok((buffer, read))
        })
        .await
    }

    pub(crate) async fn sync(
        &self,
        core: &Core,
        file: &Arc<OsFile>,
        kind: SyncKind,
    ) -> io::Result<()> {
        let file = Arc::clone(file);
        self.run(core, move || {
            match kind {
                SyncKind::Data => rustix::fs::fdatasync(file.fd())?,
                SyncKind::All => rustix::fs::fsync(file.fd())?,
            }
            Ok(())
        })
        .await
    }

    pub(crate) async fn allocate(
        &self,
        core: &Core,
        file: &Arc<OsFile>,
        offset: u64,
        len: u64,
    ) -> io::Result<()> {
        let file = Arc::clone(file);
        self.run(core, move || {
            let flags = FallocateFlags::empty();
            Ok(retry_on_intr(|| {
                rustix::fs::fallocate(file.fd(), flags, offset, len)
            })?)
        })
        .await
    }
}
