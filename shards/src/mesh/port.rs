//! A lane with an overflow queue at the sender and wake-ups in both directions.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};

use crate::executor::CoreShared;

use super::lane::{LaneReceiver, LaneSender, lane};

/// The key of a question in the asker's table, and the answer.
pub(super) type Reply = (u64, Box<dyn Any + Send>);

pub(super) fn port<T: Send>(
    capacity: usize,
    from: &Arc<CoreShared>,
    to: &Arc<CoreShared>,
) -> (Outbox<T>, Inbox<T>) {
    let (sender, receiver) = lane(capacity);
    let overflowed = Arc::new(AtomicBool::new(false));
    let outbox = Outbox {
        lane: sender,
        overflow: VecDeque::new(),
        overflowed: Arc::clone(&overflowed),
        peer: Arc::clone(to),
        sent: false,
    };
    (
        outbox,
        Inbox {
            lane: receiver,
            overflowed,
            peer: Arc::clone(from),
        },
    )
}

pub(super) struct Outbox<T> {
    lane: LaneSender<T>,
    /// Messages that found the lane full; they go before anything newer.
    overflow: VecDeque<T>,
    /// Set while `overflow` holds something: asks the receiver to wake this core when it takes.
    overflowed: Arc<AtomicBool>,
    peer: Arc<CoreShared>,
    /// Something went into the lane since the last flush.
    sent: bool,
}

impl<T: Send> Outbox<T> {
    /// Queues a message; true when the lane was full and it waits here.
    pub(super) fn send(&mut self, message: T) -> bool {
        if self.overflow.is_empty() {
            match self.lane.push(message) {
                Ok(()) => {
                    self.sent = true;
                    return false;
                }
                Err(message) => self.overflow.push_back(message),
            }
        } else {
            self.overflow.push_back(message);
        }
        true
    }

    /// Moves what overflowed into the lane as far as it fits; true when the lane has got anything
    /// since the last call.
    pub(super) fn flush(&mut self) -> bool {
        if !self.overflow.is_empty() {
            // Set the flag before looking at the lane: the receiver takes, fences, looks at the
            // flag. So either it sees the flag or this sees its room.
            self.overflowed.store(true, Ordering::Relaxed);
            fence(Ordering::SeqCst);
            while let Some(message) = self.overflow.pop_front() {
                if let Err(message) = self.lane.push(message) {
                    self.overflow.push_front(message);
                    break;
                }
                self.sent = true;
            }
            if self.overflow.is_empty() {
                self.overflowed.store(false, Ordering::Relaxed);
            }
        }
        std::mem::take(&mut self.sent)
    }

    /// Messages that wait for room in the lane.
    pub(super) fn waiting(&self) -> usize {
        self.overflow.len()
    }

    /// Whether there is overflow, and room for it now.
    pub(super) fn can_flush(&mut self) -> bool {
        !self.overflow.is_empty() && self.lane.has_room()
    }

    pub(super) fn wake_peer(&self) -> bool {
        self.peer.wake_if_sleeping()
    }
}

pub(super) struct Inbox<T> {
    lane: LaneReceiver<T>,
    overflowed: Arc<AtomicBool>,
    peer: Arc<CoreShared>,
}

impl<T: Send> Inbox<T> {
    pub(super) fn take(&mut self) -> Option<T> {
        self.lane.pop()
    }

    pub(super) fn len(&mut self) -> usize {
        self.lane.len()
    }

    /// Wakes a sender that waits for room. Call it after taking; true when an event was written.
    pub(super) fn tell_room(&self) -> bool {
        fence(Ordering::SeqCst);
        self.overflowed.load(Ordering::Relaxed)
            && self.overflowed.swap(false, Ordering::Relaxed)
            && self.peer.wake_if_sleeping()
    }
}
