//! Sockets by readiness: try, and wait for the edge when the kernel says EAGAIN.

use std::cell::Cell;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags};

use super::{EpollDriver, Registration};
use crate::backend::recv_pool::{HeldCount, RecvBuf};

/// As many slices as one sendmsg(2) takes (UIO_MAXIOV is 1024).
const SLICES_PER_SEND: usize = 64;

pub(crate) struct EpollSocket {
    registration: Registration,
    held: Rc<HeldCount>,
    ended: Cell<bool>,
    /// Place in the queue for a receive buffer.
    pool_place: Cell<Option<u64>>,
}

impl EpollSocket {
    pub(crate) fn new(driver: &Rc<EpollDriver>, fd: OwnedFd) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&fd, true)?;
        Ok(Self {
            registration: Registration::new(driver, fd)?,
            held: Rc::default(),
            ended: Cell::new(false),
            pool_place: Cell::new(None),
        })
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.registration.fd()
    }

    pub(crate) async fn connect(&self, address: &std::net::SocketAddr) -> io::Result<()> {
        match rustix::net::connect(self.fd(), address) {
            Ok(()) => return Ok(()),
            Err(Errno::INPROGRESS) => {}
            Err(error) => return Err(error.into()),
        }
        poll_fn(|context| {
            self.registration.poll_write(context, |fd| {
                rustix::net::sockopt::socket_error(fd)??;
                match rustix::net::getpeername(fd) {
                    Ok(_) => Ok(()),
                    Err(Errno::NOTCONN) => Err(Errno::AGAIN),
                    Err(error) => Err(error),
                }
            })
        })
        .await
    }

    /// No buffer is taken from the pool before the socket is readable.
    pub(crate) fn poll_recv(&self, context: &mut Context<'_>) -> Poll<io::Result<RecvBuf>> {
        if self.ended.get() {
            return Poll::Ready(Ok(RecvBuf::end()));
        }
        ready!(self.registration.poll_readable(context));
        ready!(self.held.poll_below_limit(context));
        let mut buffer = ready!(
            self.registration
                .driver()
                .recv_pool
                .poll_take(context, &self.pool_place)
        );
        let received = ready!(self.registration.poll_read(context, |fd| {
            rustix::net::recv(fd, buffer.as_mut_slice(), RecvFlags::empty()).map(|(_, len)| len)
        }))?;
        if received == 0 {
            self.ended.set(true);
            return Poll::Ready(Ok(RecvBuf::end()));
        }
        self.registration
            .driver()
            .counters
            .bytes_received
            .add(received as u64);
        Poll::Ready(Ok(buffer.filled(received, self.held.hold())))
    }

    /// The reader has gone away: others may have the buffer that it waited for.
    pub(crate) fn forget_reader(&self) {
        self.registration.driver().recv_pool.leave(&self.pool_place);
    }

    /// Receives at most `max` bytes to the end of `buffer`; 0 at the end of the stream.
    pub(crate) fn poll_recv_into(
        &self,
        context: &mut Context<'_>,
        buffer: &mut BytesMut,
        max: usize,
    ) -> Poll<io::Result<usize>> {
        let received = ready!(self.registration.poll_read(context, |fd| {
            let spare: &mut [MaybeUninit<u8>] = &mut buffer.spare_capacity_mut()[..max];
            rustix::net::recv(fd, spare, RecvFlags::empty()).map(|((init, _), _)| init.len())
        }))?;
        // SAFETY: the kernel has just written `received` bytes at the start of the spare capacity.
        unsafe { buffer.set_len(buffer.len() + received) };
        self.registration
            .driver()
            .counters
            .bytes_received
            .add(received as u64);
        Poll::Ready(Ok(received))
    }

    pub(crate) async fn send(&self, mut parts: Vec<Bytes>) -> io::Result<()> {
        let mut first = 0;
        loop {
            while parts.get(first).is_some_and(Bytes::is_empty) {
                first += 1;
            }
            if first == parts.len() {
                return Ok(());
            }
            let mut sent = poll_fn(|context| self.poll_send(context, &parts[first..])).await?;
            for part in &mut parts[first..] {
                let taken = sent.min(part.len());
                part.advance(taken);
                sent -= taken;
                if sent == 0 {
                    break;
                }
            }
        }
    }

    fn poll_send(&self, context: &mut Context<'_>, parts: &[Bytes]) -> Poll<io::Result<usize>> {
        let slices: Vec<IoSlice<'_>> = parts
            .iter()
            .take(SLICES_PER_SEND)
            .map(|part| IoSlice::new(part))
            .collect();
        let sent = ready!(self.registration.poll_write(context, |fd| {
            let mut control = SendAncillaryBuffer::default();
            rustix::net::sendmsg(fd, &slices, &mut control, SendFlags::NOSIGNAL)
        }))?;
        self.registration
            .driver()
            .counters
            .bytes_sent
            .add(sent as u64);
        Poll::Ready(Ok(sent))
    }

    /// One sendfile(2) from `file`; may be short, 0 at the end of the file.
    pub(crate) async fn send_file(
        &self,
        file: BorrowedFd<'_>,
        offset: u64,
        len: usize,
    ) -> io::Result<usize> {
        poll_fn(|context| {
            self.registration.poll_write(context, |fd| {
                let mut offset = offset;
                rustix::fs::sendfile(fd, file, Some(&mut offset), len)
            })
        })
        .await
    }
}

impl Drop for EpollSocket {
    fn drop(&mut self) {
        self.forget_reader();
    }
}
