//! Which part of the journal's file is in use: frames one behind the other in a ring, freed from the oldest on.

use std::collections::VecDeque;

/// The number of a frame: one more than that of the frame before.
pub(crate) type Sequence = u64;

/// Frames of a ring, each in one piece. `T` is whoever has something in a frame and nothing in an older one.
pub(crate) struct Ring<T> {
    length: u64,
    /// Where the next frame goes, unless it does not fit before the end.
    head: u64,
    next: Sequence,
    frames: VecDeque<Frame<T>>,
}

struct Frame<T> {
    position: u64,
    /// Where it ends.
    end: u64,
    /// How many logs have their oldest unmoved batch here, and its writer while it writes.
    pins: usize,
    /// Those of them that were not told to move yet.
    pinned_by: Vec<T>,
}

impl<T> Ring<T> {
    /// A ring of `length` bytes without any frame.
    pub fn new(length: u64) -> Ring<T> {
        Ring {
            length,
            head: 0,
            next: 1,
            frames: VecDeque::new(),
        }
    }

    pub fn length(&self) -> u64 {
        self.length
    }

    /// Where a frame of this size would go; `None` where there is no room.
    pub fn room_for(&self, bytes: u64) -> Option<u64> {
        let Some(oldest) = self.frames.front() else {
            let at = if self.head + bytes <= self.length {
                self.head
            } else {
                0
            };
            return (bytes <= self.length).then_some(at);
        };
        let tail = oldest.position;
        if self.head <= tail {
            return (self.head + bytes <= tail).then_some(self.head);
        }
        if self.head + bytes <= self.length {
            return Some(self.head);
        }
        (bytes <= tail).then_some(0)
    }

    /// Enters a frame where [`Ring::room_for`] said; answers its number. Its writer holds it until it unpins it.
    pub fn push(&mut self, position: u64, bytes: u64) -> Sequence {
        let sequence = self.next;
        self.next += 1;
        self.head = position + bytes;
        self.frames.push_back(Frame {
            position,
            end: position + bytes,
            pins: 1,
            pinned_by: Vec::new(),
        });
        sequence
    }

    /// The oldest frame in use; the next one's number where none is.
    pub fn oldest(&self) -> Sequence {
        self.next - self.frames.len() as u64
    }

    /// Somebody has its oldest unmoved batch in this frame.
    pub fn pin(&mut self, sequence: Sequence, by: T) {
        let oldest = self.oldest();
        let frame = sequence
            .checked_sub(oldest)
            .and_then(|at| self.frames.get_mut(at as usize));
        if let Some(frame) = frame {
            frame.pins += 1;
            frame.pinned_by.push(by);
        }
    }

    /// Somebody moved what it had from this frame on, or has written it.
    pub fn unpin(&mut self, sequence: Sequence) {
        let oldest = self.oldest();
        let frame = sequence
            .checked_sub(oldest)
            .and_then(|at| self.frames.get_mut(at as usize));
        if let Some(frame) = frame {
            frame.pins = frame.pins.saturating_sub(1);
        }
        self.free();
    }

    /// Frees the oldest frames that nobody needs.
    fn free(&mut self) {
        while self.frames.front().is_some_and(|frame| frame.pins == 0) {
            self.frames.pop_front();
        }
    }

    /// Bytes from the oldest frame to the newest, with what lies unused between.
    pub fn used(&self) -> u64 {
        match (self.frames.front(), self.frames.back()) {
            (Some(first), Some(last)) if last.end > first.position => last.end - first.position,
            (Some(first), Some(last)) => self.length - first.position + last.end,
            _ => 0,
        }
    }

    /// Who must move so that no more than `most` bytes are in use: those in the oldest frames. Each is named once.
    pub fn must_move(&mut self, most: u64) -> Vec<T> {
        let mut over = self.used().saturating_sub(most);
        let mut who = Vec::new();
        for frame in &mut self.frames {
            if over == 0 {
                break;
            }
            over = over.saturating_sub(frame.end - frame.position);
            who.append(&mut frame.pinned_by);
        }
        who
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn frames_are_freed_from_the_oldest_on() {
        let mut ring = Ring::new(100);
        for (bytes, who) in [(40, 'a'), (40, 'b')] {
            let at = ring.room_for(bytes).unwrap();
            let sequence = ring.push(at, bytes);
            ring.pin(sequence, who);
            ring.unpin(sequence);
        }
        assert_eq!((ring.room_for(30), ring.used()), (None, 80));
        assert_eq!(ring.room_for(20), Some(80));
        ring.unpin(2);
        assert_eq!(ring.room_for(30), None, "the older one is still needed");
        ring.unpin(1);
        assert_eq!((ring.oldest(), ring.used()), (3, 0));
        assert_eq!(
            ring.room_for(30),
            Some(0),
            "it begins again where it does not fit"
        );
        assert_eq!(ring.room_for(101), None);
    }

    #[test]
    fn the_oldest_move_first_and_are_asked_once() {
        let mut ring = Ring::new(100);
        for who in ['a', 'b', 'c'] {
            let sequence = ring.push(ring.room_for(20).unwrap(), 20);
            ring.pin(sequence, who);
            ring.unpin(sequence);
        }
        assert_eq!(ring.must_move(60), Vec::<char>::new());
        assert_eq!(ring.must_move(50), vec!['a']);
        assert_eq!(ring.must_move(30), vec!['b']);
    }

    #[test]
    fn a_frame_is_held_while_it_is_written() {
        let mut ring = Ring::new(100);
        let first = ring.push(0, 20);
        ring.pin(first, 'a');
        ring.unpin(first);
        let second = ring.push(20, 20);
        ring.unpin(first);
        assert_eq!(ring.oldest(), second, "being written");
        ring.pin(second, 'b');
        ring.unpin(second);
        assert_eq!(ring.oldest(), second, "someone's");
    }

    proptest! {
        /// No frame in use is ever written over, whatever is pinned and freed when.
        #[test]
        fn frames_in_use_never_overlap(steps in proptest::collection::vec((1_u64..40, any::<bool>(), any::<prop::sample::Index>()), 1..200)) {
            let mut ring: Ring<()> = Ring::new(100);
            let mut pinned: Vec<(Sequence, u64, u64)> = Vec::new();
            for (bytes, unpin, which) in steps {
                if unpin && !pinned.is_empty() {
                    let (sequence, _, _) = pinned.remove(which.index(pinned.len()));
                    ring.unpin(sequence);
                    continue;
                }
                if let Some(at) = ring.room_for(bytes) {
                    prop_assert!(at + bytes <= 100);
                    for (_, from, to) in &pinned {
                        prop_assert!(at + bytes <= *from || at >= *to, "{at}+{bytes} over {from}..{to}");
                    }
                    let sequence = ring.push(at, bytes);
                    pinned.push((sequence, at, at + bytes));
                }
                let oldest = pinned.iter().map(|(sequence, _, _)| *sequence).min();
                prop_assert_eq!(oldest.unwrap_or(ring.next), ring.oldest());
                prop_assert!(ring.used() <= 100);
            }
        }
    }
}
