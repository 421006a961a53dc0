//! File operations on the ring.

use std::io;
use std::os::fd::AsRawFd;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use io_uring::types::{Fd, FsyncFlags};
use io_uring::{opcode, squeue};

use super::RingDriver;
use super::op::{LeftOver, OnDrop, Op};
use crate::backend::SyncKind;
use crate::io::{OsFile, ReadBuf};

/// Bytes per operation; a longer transfer is a short one, which the caller continues.
const TRANSFER_BYTES: usize = 1 << 30;

fn file_op<H: 'static>(
    driver: &Rc<RingDriver>,
    held: Box<H>,
    build: impl FnOnce(&mut H) -> squeue::Entry,
) -> Op<H> {
    Op::submit(driver, held, LeftOver::Nothing, OnDrop::LetEnd, build)
}

fn transfer(len: usize) -> u32 {
    u32::try_from(len.min(TRANSFER_BYTES)).expect("at most 2^30")
}

fn descriptor(file: &OsFile) -> Fd {
    Fd(file.fd().as_raw_fd())
}

impl RingDriver {
    pub(crate) async fn write_at(
        self: &Rc<Self>,
        file: &Arc<OsFile>,
        data: Bytes,
        offset: u64,
        durable: bool,
    ) -> io::Result<usize> {
        self.gathers.set(true);
        loop {
            let held = Box::new((Arc::clone(file), data.clone()));
            let op = file_op(self, held, |(file, data)| {
                opcode::Write::new(descriptor(file), data.as_ptr(), transfer(data.len()))
                    .offset(offset)
                    .rw_flags(if durable { libc::RWF_DSYNC } else { 0 })
                    .build()
            });
            let (completion, _) = op.await;
            if completion.errno() != libc::EINTR {
                return completion.value();
            }
        }
    }

    pub(crate) async fn read_at(
        self: &Rc<Self>,
        file: &Arc<OsFile>,
        buffer: ReadBuf,
        offset: u64,
    ) -> io::Result<(ReadBuf, usize)> {
        let mut held = Box::new((Arc::clone(file), buffer));
        loop {
            let op = file_op(self, held, |(file, buffer)| {
                let fd = Fd(buffer.descriptor(file).as_raw_fd());
                let memory = buffer.as_mut_slice();
                opcode::Read::new(fd, memory.as_mut_ptr(), transfer(memory.len()))
                    .offset(offset)
                    .build()
            });
            let (completion, back) = op.await;
            if completion.errno() != libc::EINTR {
                let read = completion.value()?;
                return Ok((back.1, read));
            }
            held = back;
        }
    }

    pub(crate) async fn sync(
        self: &Rc<Self>,
        file: &Arc<OsFile>,
        kind: SyncKind,
    ) -> io::Result<()> {
        let op = file_op(self, Box::new(Arc::clone(file)), |file| {
            let flags = match kind {
                SyncKind::Data => FsyncFlags::DATASYNC,
                SyncKind::All => FsyncFlags::empty(),
            };
            opcode::Fsync::new(descriptor(file)).flags(flags).build()
        });
        op.await.0.value().map(drop)
    }

    pub(crate) async fn allocate(
        self: &Rc<Self>,
        file: &Arc<OsFile>,
        offset: u64,
        len: u64,
    ) -> io::Result<()> {
        loop {
            let op = file_op(self, Box::new(Arc::clone(file)), |file| {
                opcode::Fallocate::new(descriptor(file), len)
                    .offset(offset)
                    .build()
            });
            let (completion, _) = op.await;
            if completion.errno() != libc::EINTR {
                return completion.value().map(drop);
            }
        }
    }
}
