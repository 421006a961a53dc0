//! Sockets on the ring. Their descriptors are blocking ones: the kernel waits for readiness by
//! itself, and a non-blocking descriptor would make it say EAGAIN instead.

use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use io_uring::types::Fd;
use io_uring::{cqueue, opcode, squeue};
use rustix::io::Errno;

use super::RingDriver;
use super::op::{LeftOver, OnDrop, Op};
use crate::backend::recv_pool::{BUFFER_BYTES, HeldCount, RECV_GROUP, RecvBuf};

/// As many slices as one sendmsg takes from us (UIO_MAXIOV is 1024).
const SLICES_PER_SEND: usize = 64;
/// IORING_RECVSEND_POLL_FIRST: wait for data before looking for it, and before taking a buffer.
const POLL_FIRST: u16 = 1;
/// Bytes per receive into the caller's memory.
const RECV_BYTES: usize = 1 << 30;

pub(crate) struct RingSocket {
    driver: Rc<RingDriver>,
    fd: Rc<OwnedFd>,
    held: Rc<HeldCount>,
    /// The receive in flight belongs to the connection, not to the future that waits for it: a
    /// dropped future loses nothing, the next one takes the result.
    receiving: RefCell<Option<Receiving>>,
    /// The last receive left bytes behind.
    more_waits: Cell<bool>,
    ended: Cell<bool>,
    /// Place in the queue for a receive buffer.
    pool_place: Cell<Option<u64>>,
}

enum Receiving {
    /// Into a buffer of the pool; true when the pool has set one aside.
    Pooled(Op<Rc<OwnedFd>>, bool),
    /// Into memory given to `recv_exact`, after its first `start` bytes.
    Exact(Op<Exact>),
}

struct Exact {
    _fd: Rc<OwnedFd>,
    buf: BytesMut,
    /// Where in `buf` the bytes begin that this `recv_exact` has received.
    start: usize,
}

impl Exact {
    /// Counts in what the kernel has written behind the end of `buf`.
    fn extend(&mut self, received: usize) {
        // SAFETY: the operation was given the spare capacity of `buf` and has completed with
        // `received` bytes written at its start.
        unsafe { self.buf.set_len(self.buf.len() + received) };
    }
}

/// What a sendmsg in flight points to.
struct Message {
    _fd: Rc<OwnedFd>,
    parts: Vec<Bytes>,
    slices: Vec<libc::iovec>,
    header: libc::msghdr,
}

impl RingSocket {
    pub(crate) fn new(driver: &Rc<RingDriver>, fd: OwnedFd) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&fd, false)?;
        Ok(Self {
            driver: Rc::clone(driver),
            fd: Rc::new(fd),
            held: Rc::default(),
            receiving: RefCell::new(None),
            more_waits: Cell::new(false),
            ended: Cell::new(false),
            pool_place: Cell::new(None),
        })
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    fn op<H: 'static>(
        &self,
        held: H,
        left_over: LeftOver,
        build: impl FnOnce(&mut H) -> squeue::Entry,
    ) -> Op<H> {
        Op::submit(
            &self.driver,
            Box::new(held),
            left_over,
            OnDrop::Cancel,
            build,
        )
    }

    fn raw(&self) -> Fd {
        Fd(self.fd.as_raw_fd())
    }

    /// Some bytes. Idle connections hold no buffer: the kernel takes one when bytes are there.
    pub(crate) fn poll_recv(&self, context: &mut Context<'_>) -> Poll<io::Result<RecvBuf>> {
        loop {
            if self.ended.get() {
                return Poll::Ready(Ok(RecvBuf::end()));
            }
            if self.receiving.borrow().is_none() {
                ready!(self.held.poll_below_limit(context));
                // Only a connection that found the pool empty has a place in its queue.
                let set_aside = match self.pool_place.get() {
                    Some(_) => ready!(
                        self.driver
                            .recv_pool
                            .poll_set_aside(context, &self.pool_place)
                    ),
                    None => false,
                };
                *self.receiving.borrow_mut() = Some(self.start_pooled(set_aside));
            }
            match ready!(self.poll_receiving(context)) {
                Ok(Some(buffer)) => return Poll::Ready(Ok(buffer)),
                Ok(None) => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    fn start_pooled(&self, set_aside: bool) -> Receiving {
        // Without POLL_FIRST, an idle connection would fail on an empty pool.
        let flags = if self.more_waits.get() { 0 } else { POLL_FIRST };
        let fd = self.raw();
        let op = self.op(Rc::clone(&self.fd), LeftOver::Buffer, |_| {
            opcode::Recv::new(fd, std::ptr::null_mut(), BUFFER_BYTES as u32)
                .ioprio(flags)
                .buf_group(RECV_GROUP)
                .build()
                .flags(squeue::Flags::BUFFER_SELECT)
        });
        Receiving::Pooled(op, set_aside)
    }

    /// Takes the result of the receive in flight. `None`: nothing came of it, start another.
    fn poll_receiving(&self, context: &mut Context<'_>) -> Poll<io::Result<Option<RecvBuf>>> {
        let mut receiving = self.receiving.borrow_mut();
        let result = match receiving.as_mut() {
            None => return Poll::Ready(Ok(None)),
            Some(Receiving::Pooled(op, set_aside)) => {
                let (completion, _) = ready!(op.poll_done(context));
                if *set_aside {
                    self.driver.recv_pool.end_set_aside();
                }
                self.more_waits.set(cqueue::sock_nonempty(completion.flags));
                let buffer =
                    cqueue::buffer_select(completion.flags).map(|i| self.driver.recv_pool.taken(i));
                match completion.errno() {
                    libc::ENOBUFS => {
                        self.driver.recv_pool.queue_up(context, &self.pool_place);
                        Ok(None)
                    }
                    errno if is_passing(errno) => Ok(None),
                    _ => completion.value().map(|len| match buffer {
                        Some(buffer) if len > 0 => Some(buffer.filled(len, self.held.hold())),
                        _ => {
                            self.ended.set(true);
                            Some(RecvBuf::end())
                        }
                    }),
                }
            }
            Some(Receiving::Exact(op)) => {
                // A dropped `recv_exact` left this; what it has received is for this receive.
                let (completion, mut held) = ready!(op.poll_done(context));
                let ended = completion.value().map(|len| {
                    held.extend(len);
                    len == 0
                });
                let start = held.start;
                let bytes = held.buf.split_off(start).freeze();
                match (ended, bytes.is_empty()) {
                    (_, false) => Ok(Some(RecvBuf::owned(bytes))),
                    (Ok(ended), true) => {
                        self.ended.set(ended);
                        Ok(None)
                    }
                    (Err(_), true) if is_passing(completion.errno()) => Ok(None),
                    (Err(error), true) => Err(error),
                }
            }
        };
        *receiving = None;
        if let Ok(Some(buffer)) = &result {
            self.driver.counters.bytes_received.add(buffer.len() as u64);
        }
        Poll::Ready(result)
    }

    /// The reader has gone away: others may have the buffer that it waited for.
    pub(crate) fn forget_reader(&self) {
        self.driver.recv_pool.leave(&self.pool_place);
    }
}

/// Nothing came of the receive, and another may be started.
fn is_passing(errno: i32) -> bool {
    matches!(errno, libc::EAGAIN | libc::EINTR | libc::ECANCELED)
}

/// Receiving into the caller's memory.
impl RingSocket {
    /// Ends a receive that an earlier, dropped future has left in flight; gives what it brought.
    pub(crate) fn poll_settle(
        &self,
        context: &mut Context<'_>,
        asked: &mut bool,
    ) -> Poll<io::Result<Option<RecvBuf>>> {
        if !std::mem::replace(asked, true) {
            match &*self.receiving.borrow() {
                Some(Receiving::Pooled(op, _)) => op.cancel(),
                Some(Receiving::Exact(op)) => op.cancel(),
                None => {}
            }
        }
        self.poll_receiving(context)
    }

    /// Receives `max` bytes to the end of `buf`, whose bytes before `start` are the caller's;
    /// fewer only when the stream ends or is interrupted, 0 at its end. While it is pending, `buf`
    /// is empty: its memory is in the operation.
    pub(crate) fn poll_recv_into(
        &self,
        context: &mut Context<'_>,
        buf: &mut BytesMut,
        start: usize,
        max: usize,
    ) -> Poll<io::Result<usize>> {
        loop {
            if self.ended.get() {
                return Poll::Ready(Ok(0));
            }
            let mut receiving = self.receiving.borrow_mut();
            let op = match receiving.as_mut() {
                Some(Receiving::Exact(op)) => op,
                Some(Receiving::Pooled(..)) => unreachable!("settled before"),
                None => {
                    let op = self.start_exact(std::mem::take(buf), start, max);
                    let Receiving::Exact(op) = receiving.insert(Receiving::Exact(op)) else {
                        unreachable!("just put in")
                    };
                    op
                }
            };
            let (completion, mut held) = ready!(op.poll_done(context));
            *receiving = None;
            self.more_waits.set(cqueue::sock_nonempty(completion.flags));
            if let Ok(len) = completion.value() {
                held.extend(len);
                self.ended.set(len == 0);
                self.driver.counters.bytes_received.add(len as u64);
            }
            *buf = held.buf;
            if !is_passing(completion.errno()) {
                return Poll::Ready(completion.value());
            }
        }
    }

    fn start_exact(&self, buf: BytesMut, start: usize, max: usize) -> Op<Exact> {
        let fd = self.raw();
        let len = u32::try_from(max.min(RECV_BYTES)).expect("at most 2^30");
        let held = Exact {
            _fd: Rc::clone(&self.fd),
            buf,
            start,
        };
        self.op(held, LeftOver::Nothing, |held| {
            let spare = held.buf.spare_capacity_mut();
            assert!(
                spare.len() >= len as usize,
                "the caller has reserved the memory"
            );
            opcode::Recv::new(fd, spare.as_mut_ptr().cast(), len)
                .flags(libc::MSG_WAITALL)
                .build()
        })
    }

    /// The future of `recv_exact` has gone away: end its receive soon.
    pub(crate) fn forget_exact(&self) {
        if let Some(Receiving::Exact(op)) = &*self.receiving.borrow() {
            op.cancel();
        }
    }
}

/// Sending.
impl RingSocket {
    pub(crate) async fn send(&self, mut parts: Vec<Bytes>) -> io::Result<()> {
        loop {
            parts.retain(|part| !part.is_empty());
            if parts.is_empty() {
                return Ok(());
            }
            let (completion, held) = self.start_send(parts).await;
            parts = held.parts;
            if matches!(completion.errno(), libc::EINTR | libc::EAGAIN) {
                continue;
            }
            let mut sent = completion.value()?;
            self.driver.counters.bytes_sent.add(sent as u64);
            for part in &mut parts {
                let taken = sent.min(part.len());
                part.advance(taken);
                sent -= taken;
                if sent == 0 {
                    break;
                }
            }
        }
    }

    fn start_send(&self, parts: Vec<Bytes>) -> Op<Message> {
        let fd = self.raw();
        let slices = parts
            .iter()
            .take(SLICES_PER_SEND)
            .map(|part| libc::iovec {
                iov_base: part.as_ptr().cast_mut().cast(),
                iov_len: part.len(),
            })
            .collect();
        // SAFETY: all zeros is a valid msghdr: no address, no slices, no control data.
        let header = unsafe { std::mem::zeroed() };
        let held = Message {
            _fd: Rc::clone(&self.fd),
            parts,
            slices,
            header,
        };
        self.op(held, LeftOver::Nothing, |held| {
            let flags = libc::MSG_NOSIGNAL | libc::MSG_WAITALL;
            if let [only] = held.slices.as_slice() {
                let len = u32::try_from(only.iov_len.min(RECV_BYTES)).expect("at most 2^30");
                return opcode::Send::new(fd, only.iov_base.cast(), len)
                    .flags(flags)
                    .build();
            }
            held.header.msg_iov = held.slices.as_mut_ptr();
            held.header.msg_iovlen = held.slices.len();
            opcode::SendMsg::new(fd, &raw const held.header)
                .flags(flags as u32)
                .build()
        })
    }

    /// One sendfile(2) from `file`; may be short, 0 at the end of the file.
    pub(crate) async fn send_file(
        &self,
        file: BorrowedFd<'_>,
        offset: u64,
        len: usize,
    ) -> io::Result<usize> {
        loop {
            // The ring wants a blocking descriptor, sendfile a non-blocking one. Nothing of the
            // ring runs in between: that happens inside io_uring_enter on this thread.
            rustix::io::ioctl_fionbio(&self.fd, true)?;
            let mut at = offset;
            let sent = rustix::fs::sendfile(&self.fd, file, Some(&mut at), len);
            rustix::io::ioctl_fionbio(&self.fd, false)?;
            match sent {
                Ok(sent) => return Ok(sent),
                Err(Errno::AGAIN) => self.writable().await?,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    async fn writable(&self) -> io::Result<()> {
        self.driver.poll_once(&self.fd, libc::POLLOUT).await
    }

    /// Connects: a non-blocking connect(2), and a poll for its end.
    pub(crate) async fn connect(&self, address: &std::net::SocketAddr) -> io::Result<()> {
        rustix::io::ioctl_fionbio(&self.fd, true)?;
        let started = rustix::net::connect(&self.fd, address);
        rustix::io::ioctl_fionbio(&self.fd, false)?;
        match started {
            Ok(()) => return Ok(()),
            Err(Errno::INPROGRESS) => {}
            Err(error) => return Err(error.into()),
        }
        self.writable().await?;
        rustix::net::sockopt::socket_error(&self.fd)??;
        Ok(())
    }
}

impl Drop for RingSocket {
    fn drop(&mut self) {
        self.forget_reader();
        if let Some(Receiving::Pooled(_, true)) = self.receiving.get_mut() {
            self.driver.recv_pool.end_set_aside();
        }
    }
}
