//! A bounded queue from one thread to one other: the sending end and the receiving end of a lane.

use std::mem::MaybeUninit;

// The parent's, because the model checker compiles this file with types of its own: see
// `tests/lane_loom.rs`.
use super::lane_parts::{Arc, AtomicUsize, CachePadded, Ordering, SlotCell};

/// `head` and `tail` count messages taken and sent since the start and wrap around; a slot is
/// `count & mask`. The slots from head to tail belong to the receiver, the others to the sender.
struct Lane<T> {
    slots: Box<[SlotCell<MaybeUninit<T>>]>,
    mask: usize,
    head: CachePadded<AtomicUsize>,
    tail: CachePadded<AtomicUsize>,
}

// SAFETY: the two ends touch disjoint slots (see `Lane`), handed over by the release stores and
// acquire loads of `head` and `tail`; values only move from one end to the other, hence T: Send.
unsafe impl<T: Send> Sync for Lane<T> {}

/// A lane for `capacity` messages, rounded up to a power of two.
pub(super) fn lane<T: Send>(capacity: usize) -> (LaneSender<T>, LaneReceiver<T>) {
    let capacity = capacity.max(2).next_power_of_two();
    let lane = Arc::new(Lane {
        slots: (0..capacity)
            .map(|_| SlotCell::new(MaybeUninit::uninit()))
            .collect(),
        mask: capacity - 1,
        head: CachePadded::new(AtomicUsize::new(0)),
        tail: CachePadded::new(AtomicUsize::new(0)),
    });
    let sender = LaneSender {
        lane: Arc::clone(&lane),
        tail: 0,
        head_seen: 0,
    };
    (
        sender,
        LaneReceiver {
            lane,
            head: 0,
            tail_seen: 0,
        },
    )
}

pub(super) struct LaneSender<T> {
    lane: Arc<Lane<T>>,
    tail: usize,
    /// The receiver's head when last looked at: spares most looks at its cache line.
    head_seen: usize,
}

impl<T: Send> LaneSender<T> {
    /// Gives the message back when the lane is full.
    pub(super) fn push(&mut self, message: T) -> Result<(), T> {
        let capacity = self.lane.mask + 1;
        if self.tail.wrapping_sub(self.head_seen) == capacity {
            self.head_seen = self.lane.head.load(Ordering::Acquire);
            if self.tail.wrapping_sub(self.head_seen) == capacity {
                return Err(message);
            }
        }
        let slot = &self.lane.slots[self.tail & self.lane.mask];
        // SAFETY: the slot is not between head and tail, so it is the sender's and empty; the
        // acquire load of head ordered the receiver's move out of it before this write.
        slot.with_mut(|slot| unsafe { (*slot).write(message) });
        self.tail = self.tail.wrapping_add(1);
        self.lane.tail.store(self.tail, Ordering::Release);
        Ok(())
    }
}

impl<T> LaneSender<T> {
    pub(super) fn has_room(&mut self) -> bool {
        self.head_seen = self.lane.head.load(Ordering::Acquire);
        self.tail.wrapping_sub(self.head_seen) <= self.lane.mask
    }
}

pub(super) struct LaneReceiver<T> {
    lane: Arc<Lane<T>>,
    head: usize,
    tail_seen: usize,
}

impl<T: Send> LaneReceiver<T> {
    pub(super) fn pop(&mut self) -> Option<T> {
        if self.head == self.tail_seen && self.len() == 0 {
            return None;
        }
        let slot = &self.lane.slots[self.head & self.lane.mask];
        // SAFETY: the slot is between head and tail, so it is the receiver's and full; the
        // acquire load of tail ordered the sender's write before this read. Moving head past it
        // hands the slot back, so the value is read only once.
        let message = slot.with_mut(|slot| unsafe { (*slot).assume_init_read() });
        self.head = self.head.wrapping_add(1);
        self.lane.head.store(self.head, Ordering::Release);
        Some(message)
    }

    /// Messages waiting now.
    pub(super) fn len(&mut self) -> usize {
        self.tail_seen = self.lane.tail.load(Ordering::Acquire);
        self.tail_seen.wrapping_sub(self.head)
    }
}

impl<T> Drop for Lane<T> {
    fn drop(&mut self) {
        let mut head = self.head.load(Ordering::Acquire);
        let tail = self.tail.load(Ordering::Acquire);
        while head != tail {
            let slot = &self.slots[head & self.mask];
            // SAFETY: both ends are gone, and the slots from head to tail hold values.
            slot.with_mut(|slot| unsafe { (*slot).assume_init_drop() });
            head = head.wrapping_add(1);
        }
    }
}
