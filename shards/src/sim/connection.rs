//! One simulated connection: two ends, and what is under way between them. See `net.rs` for the
//! model.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::{Buf, Bytes};

use super::NodeId;
use super::net::{Net, State, WINDOW, retry_after};
use super::shared::Shared;
use crate::time::Instant;

const SEGMENT: u64 = 64 * 1024;
const SMALL_SEGMENT: u64 = 100;

enum Payload {
    Data(Bytes),
    /// The end of the stream.
    Fin,
}

struct Segment {
    payload: Payload,
    /// When it arrives, if it does.
    due: u64,
    sent: u64,
    tries: u32,
}

/// One end of a connection.
struct End {
    node: NodeId,
    address: SocketAddr,
    /// Sent from here and not arrived.
    flight: VecDeque<Segment>,
    flight_bytes: usize,
    /// Arrived here and not read.
    inbox: VecDeque<Bytes>,
    inbox_bytes: usize,
    peer_finished: bool,
    /// Nothing more may be sent, or read.
    write_shut: bool,
    read_shut: bool,
    /// Nobody holds this end any more.
    closed: bool,
    /// What the next operation is told, once.
    error: Option<i32>,
    /// It has failed: nothing goes or comes any more.
    failed: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

pub(super) struct Connection {
    /// The caller, and the called.
    ends: [End; 2],
    /// Nothing arrives any more, for ever.
    lost: bool,
}

impl End {
    fn new(node: NodeId, address: SocketAddr) -> Self {
        Self {
            node,
            address,
            flight: VecDeque::new(),
            flight_bytes: 0,
            inbox: VecDeque::new(),
            inbox_bytes: 0,
            peer_finished: false,
            write_shut: false,
            read_shut: false,
            closed: false,
            error: None,
            failed: false,
            reader: None,
            writer: None,
        }
    }

    fn drop_flight(&mut self) {
        self.flight.clear();
        self.flight_bytes = 0;
    }

    fn take_wakers(&mut self, wakers: &mut Vec<Waker>) {
        wakers.extend(self.reader.take());
        wakers.extend(self.writer.take());
    }

    fn is_readable(&self) -> bool {
        self.inbox_bytes > 0 || self.peer_finished || self.failed || self.read_shut
    }
}

impl Connection {
    pub(super) fn new(ends: [(NodeId, SocketAddr); 2]) -> Self {
        Self {
            ends: ends.map(|(node, address)| End::new(node, address)),
            lost: false,
        }
    }

    pub(super) fn joins(&self, a: NodeId, b: NodeId) -> bool {
        let nodes = (self.ends[0].node, self.ends[1].node);
        nodes == (a, b) || nodes == (b, a)
    }

    pub(super) fn lose(&mut self) {
        self.lost = true;
    }

    /// Fails one end; bytes that have arrived stay readable.
    pub(super) fn fail(&mut self, side: usize, errno: i32, wakers: &mut Vec<Waker>) {
        let end = &mut self.ends[side];
        end.drop_flight();
        if !end.failed && !end.closed {
            end.failed = true;
            end.error = Some(errno);
            end.take_wakers(wakers);
        }
    }

    /// The ends at `node` are gone with its power.
    pub(super) fn vanish(&mut self, node: NodeId, wakers: &mut Vec<Waker>) {
        for end in self.ends.iter_mut().filter(|end| end.node == node) {
            end.drop_flight();
            end.inbox.clear();
            end.inbox_bytes = 0;
            end.closed = true;
            // Not to be woken: its tasks die with it.
            end.take_wakers(wakers);
        }
    }

    /// Nobody will ever ask for it again.
    pub(super) fn is_over(&self) -> bool {
        self.ends
            .iter()
            .all(|end| end.closed && end.flight.is_empty())
    }

    fn room(&self, side: usize) -> usize {
        let used = self.ends[side].flight_bytes + self.ends[1 - side].inbox_bytes;
        WINDOW.saturating_sub(used)
    }

    /// A segment from `side` arrives.
    fn deliver(&mut self, side: usize, payload: Payload, wakers: &mut Vec<Waker>) {
        let peer = &mut self.ends[1 - side];
        match payload {
            Payload::Data(_) if peer.closed => self.fail(side, libc::ECONNRESET, wakers),
            Payload::Data(_) if peer.failed || peer.read_shut => {}
            Payload::Data(bytes) => {
                peer.inbox_bytes += bytes.len();
                peer.inbox.push_back(bytes);
                wakers.extend(peer.reader.take());
            }
            Payload::Fin => {
                peer.peer_finished = true;
                wakers.extend(peer.reader.take());
            }
        }
    }
}

fn wake_all(wakers: Vec<Waker>) {
    wakers.into_iter().for_each(Waker::wake);
}

/// What the ends do, by the number of their connection and their side.
impl Net {
    pub(super) fn address(&self, number: u64, side: usize) -> Option<SocketAddr> {
        let state = self.state.borrow();
        let connection = state.connections.get(&number)?;
        Some(connection.ends[side].address)
    }

    /// Ready when a read would say something: bytes, the end, an error.
    pub(super) fn poll_readable(
        &self,
        number: u64,
        side: usize,
        context: &mut Context<'_>,
    ) -> Poll<()> {
        let mut state = self.state.borrow_mut();
        let Some(connection) = state.connections.get_mut(&number) else {
            return Poll::Ready(());
        };
        let end = &mut connection.ends[side];
        if end.is_readable() {
            return Poll::Ready(());
        }
        end.reader = Some(context.waker().clone());
        Poll::Pending
    }

    /// Hands arrived bytes to `take` until it has taken `max`; 0 at the end of the stream.
    pub(super) fn poll_read(
        &self,
        number: u64,
        side: usize,
        context: &mut Context<'_>,
        max: usize,
        mut take: impl FnMut(&[u8]),
    ) -> Poll<io::Result<usize>> {
        if self.poll_readable(number, side, context).is_pending() {
            return Poll::Pending;
        }
        let mut state = self.state.borrow_mut();
        let Some(connection) = state.connections.get_mut(&number) else {
            return Poll::Ready(Ok(0));
        };
        let end = &mut connection.ends[side];
        let mut taken = 0;
        while taken < max
            && let Some(front) = end.inbox.front_mut()
        {
            let used = front.len().min(max - taken);
            take(&front[..used]);
            front.advance(used);
            taken += used;
            if front.is_empty() {
                end.inbox.pop_front();
            }
        }
        end.inbox_bytes -= taken;
        if taken == 0
            && let Some(errno) = end.error.take()
        {
            return Poll::Ready(Err(io::Error::from_raw_os_error(errno)));
        }
        let writer = connection.ends[1 - side].writer.take();
        drop(state);
        if let Some(writer) = writer {
            writer.wake();
        }
        Poll::Ready(Ok(taken))
    }

    /// Ready with the bytes that may be sent now, or the reason why none may.
    pub(super) fn poll_room(
        &self,
        number: u64,
        side: usize,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let mut state = self.state.borrow_mut();
        let Some(connection) = state.connections.get_mut(&number) else {
            return Poll::Ready(Err(io::Error::from_raw_os_error(libc::EPIPE)));
        };
        let room = connection.room(side);
        let end = &mut connection.ends[side];
        if let Some(errno) = end.error.take() {
            return Poll::Ready(Err(io::Error::from_raw_os_error(errno)));
        }
        if end.failed || end.write_shut || end.closed {
            return Poll::Ready(Err(io::Error::from_raw_os_error(libc::EPIPE)));
        }
        if room == 0 {
            end.writer = Some(context.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(Ok(room))
    }

    /// How many of `len` bytes go into the next segment.
    pub(super) fn segment_len(&self, len: usize) -> usize {
        let most = if self.random.below(8) == 0 {
            1 + self.random.below(SMALL_SEGMENT)
        } else {
            1 + SEGMENT / 2 + self.random.below(SEGMENT / 2)
        };
        len.min(most as usize)
    }

    /// Sends one segment of at most the room that there is.
    pub(super) fn send(&self, shared: &Rc<Shared>, number: u64, side: usize, bytes: Bytes) {
        self.push(shared, number, side, Payload::Data(bytes));
    }

    fn push(&self, shared: &Rc<Shared>, number: u64, side: usize, payload: Payload) {
        let mut wakers = Vec::new();
        let due = {
            let mut state = self.state.borrow_mut();
            let faults = state.faults.clone();
            let Some(connection) = state.connections.get_mut(&number) else {
                return;
            };
            let (from, to) = (connection.ends[side].node, connection.ends[1 - side].node);
            if self.random.chance(faults.reset_per_million) {
                shared.note(format_args!("reset by chance {number}"));
                connection.fail(0, libc::ECONNRESET, &mut wakers);
                connection.fail(1, libc::ECONNRESET, &mut wakers);
                None
            } else {
                let sent = shared.nanos();
                let due = (Instant::from_nanos(sent) + self.delay(&faults, from, to)).as_nanos();
                let end = &mut connection.ends[side];
                // None overtakes another.
                let due = end.flight.back().map_or(due, |last| due.max(last.due));
                if let Payload::Data(bytes) = &payload {
                    end.flight_bytes += bytes.len();
                }
                let first = end.flight.is_empty();
                end.flight.push_back(Segment {
                    payload,
                    due,
                    sent,
                    tries: 0,
                });
                first.then_some(due)
            }
        };
        wake_all(wakers);
        if let Some(due) = due {
            shared.at(due, move |shared| shared.net.pump(shared, number, side));
        }
    }

    /// Delivers what is due from one side, and comes back for the rest.
    fn pump(&self, shared: &Rc<Shared>, number: u64, side: usize) {
        let mut wakers = Vec::new();
        let next = self.pump_due(shared, number, side, &mut wakers);
        wake_all(wakers);
        if let Some(due) = next {
            shared.at(due, move |shared| shared.net.pump(shared, number, side));
        }
    }

    fn pump_due(
        &self,
        shared: &Rc<Shared>,
        number: u64,
        side: usize,
        wakers: &mut Vec<Waker>,
    ) -> Option<u64> {
        let now = shared.nanos();
        let mut state = self.state.borrow_mut();
        loop {
            let (blocked, give_up) = state.way(number, side)?;
            let connection = state.connections.get_mut(&number)?;
            let end = &mut connection.ends[side];
            let Some(head) = end.flight.front_mut() else {
                break;
            };
            if head.due > now {
                return Some(head.due);
            }
            if blocked {
                if now.saturating_sub(head.sent) < give_up {
                    head.due = now + retry_after(head.tries).as_nanos() as u64;
                    head.tries += 1;
                    let due = head.due;
                    return Some(due);
                }
                shared.note(format_args!("timed out {number} {side}"));
                connection.fail(side, libc::ETIMEDOUT, wakers);
                break;
            }
            let Some(Segment { payload, .. }) = end.flight.pop_front() else {
                break;
            };
            let len = match &payload {
                Payload::Data(bytes) => bytes.len(),
                Payload::Fin => 0,
            };
            end.flight_bytes -= len;
            shared.note(format_args!("arrived {number} {side} {len}"));
            connection.deliver(side, payload, wakers);
        }
        state.forget_if_over(number);
        None
    }

    /// Ends the sending side.
    pub(super) fn shut_write(&self, shared: &Rc<Shared>, number: u64, side: usize) {
        let writer = {
            let mut state = self.state.borrow_mut();
            let Some(connection) = state.connections.get_mut(&number) else {
                return;
            };
            let end = &mut connection.ends[side];
            if end.failed || std::mem::replace(&mut end.write_shut, true) {
                return;
            }
            end.writer.take()
        };
        wake_all(writer.into_iter().collect());
        self.push(shared, number, side, Payload::Fin);
    }

    /// Ends the receiving side; its reader sees the end.
    pub(super) fn shut_read(&self, number: u64, side: usize) {
        let mut state = self.state.borrow_mut();
        let Some(connection) = state.connections.get_mut(&number) else {
            return;
        };
        let end = &mut connection.ends[side];
        end.read_shut = true;
        let reader = end.reader.take();
        drop(state);
        wake_all(reader.into_iter().collect());
    }

    /// The holder of an end has dropped it: a reset when it leaves bytes unread, else an end.
    pub(super) fn close(&self, shared: &Rc<Shared>, number: u64, side: usize) {
        let mut wakers = Vec::new();
        let unread = {
            let mut state = self.state.borrow_mut();
            let Some((blocked, _)) = state.way(number, side) else {
                return;
            };
            let Some(connection) = state.connections.get_mut(&number) else {
                return;
            };
            let end = &mut connection.ends[side];
            if end.closed {
                return;
            }
            end.closed = true;
            let unread = end.inbox_bytes > 0;
            end.inbox.clear();
            end.inbox_bytes = 0;
            if unread && !end.failed {
                end.drop_flight();
                if !blocked {
                    connection.fail(1 - side, libc::ECONNRESET, &mut wakers);
                }
            }
            // A peer that waits for room finds out that nobody reads any more.
            wakers.extend(connection.ends[1 - side].writer.take());
            unread
        };
        wake_all(wakers);
        if !unread {
            self.shut_write(shared, number, side);
        }
        self.state.borrow_mut().forget_if_over(number);
    }
}

impl State {
    /// Whether nothing from `side` arrives now, and for how long that is borne (nanoseconds).
    fn way(&self, number: u64, side: usize) -> Option<(bool, u64)> {
        let connection = self.connections.get(&number)?;
        let (from, to) = (connection.ends[side].node, connection.ends[1 - side].node);
        let give_up = u64::try_from(self.faults.give_up.as_nanos()).unwrap_or(u64::MAX);
        Some((connection.lost || self.is_blocked(from, to), give_up))
    }

    fn forget_if_over(&mut self, number: u64) {
        if self
            .connections
            .get(&number)
            .is_some_and(Connection::is_over)
        {
            self.connections.remove(&number);
        }
    }
}
