//! Sockets of the simulation, with the interface of the epoll backend's.

use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};

use super::NodeId;
use super::driver::SimDriver;
use super::files::SimFile;
use super::net::{Attempt, retry_after};
use super::shared::Shared;
use crate::Core;
use crate::backend::recv_pool::{BUFFER_BYTES, HeldCount, RecvBuf};

/// One end of a connection, closed when dropped.
pub(crate) struct SimEnd {
    shared: Rc<Shared>,
    number: u64,
    side: usize,
}

impl Drop for SimEnd {
    fn drop(&mut self) {
        self.shared.net.close(&self.shared, self.number, self.side);
    }
}

pub(crate) struct SimSocket {
    end: SimEnd,
    driver: Rc<SimDriver>,
    local: SocketAddr,
    held: Rc<HeldCount>,
    ended: Cell<bool>,
    /// Place in the queue for a receive buffer.
    pool_place: Cell<Option<u64>>,
}

impl SimSocket {
    pub(crate) fn new(driver: &Rc<SimDriver>, end: SimEnd) -> Self {
        let local = end.shared.net.address(end.number, end.side);
        Self {
            local: local.unwrap_or_else(|| SocketAddr::from(([0, 0, 0, 0], 0))),
            end,
            driver: Rc::clone(driver),
            held: Rc::default(),
            ended: Cell::new(false),
            pool_place: Cell::new(None),
        }
    }

    pub(crate) fn local_addr(&self) -> SocketAddr {
        self.local
    }

    pub(crate) async fn connect(
        core: &Core,
        driver: &Rc<SimDriver>,
        target: &SocketAddr,
    ) -> io::Result<Self> {
        let (shared, node) = (driver.shared(), driver.node());
        let began = core.now();
        let mut tries = 0;
        loop {
            let (delay, give_up) = {
                let state = shared.net.state.borrow();
                let to = state.find(node, target.ip()).unwrap_or(NodeId(u16::MAX));
                let delay = shared.net.delay(&state.faults, node, to);
                (delay, state.faults.give_up)
            };
            core.sleep(delay).await;
            match shared.net.arrive(node, *target) {
                Attempt::Connected { number, local } => {
                    shared.note(format_args!("connected {number} {local} to {target}"));
                    let end = SimEnd {
                        shared: Rc::clone(shared),
                        number,
                        side: 0,
                    };
                    // The answer's way back; dropped meanwhile, the end is closed.
                    core.sleep(delay).await;
                    return Ok(Self::new(driver, end));
                }
                Attempt::Refused(errno) => {
                    core.sleep(delay).await;
                    return Err(io::Error::from_raw_os_error(errno));
                }
                Attempt::Silence => {
                    core.sleep(retry_after(tries)).await;
                    tries += 1;
                    if core.now() - began >= give_up {
                        return Err(io::Error::from_raw_os_error(libc::ETIMEDOUT));
                    }
                }
            }
        }
    }

    /// No buffer is taken from the pool before the socket is readable.
    pub(crate) fn poll_recv(&self, context: &mut Context<'_>) -> Poll<io::Result<RecvBuf>> {
        if self.ended.get() {
            return Poll::Ready(Ok(RecvBuf::end()));
        }
        let net = &self.end.shared.net;
        ready!(net.poll_readable(self.end.number, self.end.side, context));
        ready!(self.held.poll_below_limit(context));
        let pool = self.driver.recv_pool();
        let mut buffer = ready!(pool.poll_take(context, &self.pool_place));
        let mut filled = 0;
        let memory = buffer.as_mut_slice();
        let received = ready!(net.poll_read(
            self.end.number,
            self.end.side,
            context,
            BUFFER_BYTES,
            |bytes| {
                memory[filled..filled + bytes.len()].copy_from_slice(bytes);
                filled += bytes.len();
            }
        ))?;
        if received == 0 {
            self.ended.set(true);
            return Poll::Ready(Ok(RecvBuf::end()));
        }
        self.driver.counters().bytes_received.add(received as u64);
        Poll::Ready(Ok(buffer.filled(received, self.held.hold())))
    }

    /// The reader has gone away: others may have the buffer that it waited for.
    pub(crate) fn forget_reader(&self) {
        self.driver.recv_pool().leave(&self.pool_place);
    }

    /// Receives at most `max` bytes to the end of `buffer`; 0 at the end of the stream.
    pub(crate) fn poll_recv_into(
        &self,
        context: &mut Context<'_>,
        buffer: &mut BytesMut,
        max: usize,
    ) -> Poll<io::Result<usize>> {
        let (number, side) = (self.end.number, self.end.side);
        let received = ready!(self.end.shared.net.poll_read(
            number,
            side,
            context,
            max,
            |bytes| buffer.extend_from_slice(bytes)
        ))?;
        self.driver.counters().bytes_received.add(received as u64);
        Poll::Ready(Ok(received))
    }

    async fn room(&self) -> io::Result<usize> {
        let (number, side) = (self.end.number, self.end.side);
        poll_fn(|context| self.end.shared.net.poll_room(number, side, context)).await
    }

    pub(crate) async fn send(&self, parts: Vec<Bytes>) -> io::Result<()> {
        for mut part in parts {
            while !part.is_empty() {
                let room = self.room().await?;
                let sent = self.send_some(&part, room);
                part = part.slice(sent..);
                self.driver.counters().bytes_sent.add(sent as u64);
            }
        }
        Ok(())
    }

    fn send_some(&self, bytes: &Bytes, room: usize) -> usize {
        let shared = &self.end.shared;
        let len = shared.net.segment_len(bytes.len().min(room));
        let segment = bytes.slice(..len);
        shared
            .net
            .send(shared, self.end.number, self.end.side, segment);
        len
    }

    /// Some bytes of `file`; 0 at its end.
    pub(crate) async fn send_file(
        &self,
        file: &SimFile,
        offset: u64,
        len: usize,
    ) -> io::Result<usize> {
        let room = self.room().await?;
        let bytes = file.peek(offset, len.min(room));
        if bytes.is_empty() {
            return Ok(0);
        }
        Ok(self.send_some(&bytes, room))
    }

    pub(crate) fn shutdown_write(&self) {
        let shared = &self.end.shared;
        shared
            .net
            .shut_write(shared, self.end.number, self.end.side);
    }

    pub(crate) fn shutdown(&self) {
        self.end
            .shared
            .net
            .shut_read(self.end.number, self.end.side);
        self.shutdown_write();
    }
}

impl Drop for SimSocket {
    fn drop(&mut self) {
        self.forget_reader();
    }
}

/// A listener of one node, closed when dropped.
pub(crate) struct SimListener {
    shared: Rc<Shared>,
    node: NodeId,
    number: u64,
    address: SocketAddr,
}

impl SimListener {
    pub(super) fn bind(shared: &Rc<Shared>, node: NodeId, address: SocketAddr) -> io::Result<Self> {
        let (number, address) = shared.net.bind(node, address)?;
        Ok(Self {
            shared: Rc::clone(shared),
            node,
            number,
            address,
        })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) async fn accept(&self) -> io::Result<(SimEnd, SocketAddr)> {
        let (number, peer) = poll_fn(|context| {
            let mut state = self.shared.net.state.borrow_mut();
            let host = &mut state.hosts[self.node.index()];
            let Some(listening) = host.listeners.get_mut(&self.number) else {
                // The node has lost its power, and this task with it.
                return Poll::Pending;
            };
            match listening.queue.pop_front() {
                Some(caller) => Poll::Ready(caller),
                None => {
                    listening.waker = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await;
        let end = SimEnd {
            shared: Rc::clone(&self.shared),
            number,
            side: 1,
        };
        Ok((end, peer))
    }
}

impl Drop for SimListener {
    fn drop(&mut self) {
        self.shared.net.unbind(&self.shared, self.node, self.number);
    }
}
