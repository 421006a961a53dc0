//! The end of the active segment that is kept in memory: at least its last, partial block.

use super::block_start;
use bytes::Bytes;
use shards::io::GrowingBuf;

/// Capacity of a growing tail at first.
const CAPACITY_MIN: usize = 1 << 10;

/// Bytes of the active segment from a block's start on. What the file holds ends in the first block or before it: the rest
/// was acknowledged from the journal.
#[derive(Debug)]
pub(crate) struct Tail {
    start: u32,
    bytes: Memory,
}

#[derive(Debug)]
enum Memory {
    /// Part of a write buffer, or a copy.
    Still(Bytes),
    Growing(GrowingBuf),
}

impl Tail {
    /// The bytes that the block holds in which the segment ends, at `end`.
    pub fn new(end: u32, bytes: Bytes) -> Tail {
        let start = block_start(end);
        debug_assert_eq!(bytes.len(), (end - start) as usize);
        Tail {
            start,
            bytes: Memory::Still(bytes),
        }
    }

    /// Where it begins: everything before is in the file.
    pub fn start(&self) -> u32 {
        self.start
    }

    pub fn len(&self) -> usize {
        match &self.bytes {
            Memory::Still(bytes) => bytes.len(),
            Memory::Growing(buffer) => buffer.len(),
        }
    }

    /// Where it ends.
    pub fn end(&self) -> u32 {
        self.start + self.len() as u32
    }

    pub fn as_slice(&self) -> &[u8] {
        match &self.bytes {
            Memory::Still(bytes) => bytes,
            Memory::Growing(buffer) => buffer.as_slice(),
        }
    }

    /// The bytes between two positions of the segment, as far as they are here.
    pub fn slice(&self, from: u32, to: u32) -> Bytes {
        let to = (to.saturating_sub(self.start) as usize).min(self.len());
        let from = (from.saturating_sub(self.start) as usize).min(to);
        match &self.bytes {
            Memory::Still(bytes) => bytes.slice(from..to),
            Memory::Growing(buffer) => buffer.slice(from, to),
        }
    }

    /// Makes room for more bytes. Slices taken before keep the memory they are in.
    pub fn reserve(&mut self, more: usize) {
        let needed = self.len() + more;
        if let Memory::Growing(buffer) = &self.bytes
            && buffer.capacity() >= needed
        {
            return;
        }
        let mut grown = GrowingBuf::with_capacity(needed.next_power_of_two().max(CAPACITY_MIN));
        grown.append(self.as_slice(), |_| {});
        self.bytes = Memory::Growing(grown);
    }

    /// Appends a copy of `bytes`, which `change` may still work on.
    pub fn append(&mut self, bytes: &[u8], change: impl FnOnce(&mut [u8])) {
        self.reserve(bytes.len());
        if let Memory::Growing(buffer) = &mut self.bytes {
            buffer.append(bytes, change);
        }
    }

    /// Takes back what was appended behind `end`.
    pub fn cut(&mut self, end: u32) {
        let kept = self.slice(self.start, end);
        self.bytes = Memory::Still(Bytes::copy_from_slice(&kept));
    }

    /// Copies it out of a larger write buffer, so that the buffer can go.
    pub fn shrink(&mut self) {
        if let Memory::Still(bytes) = &self.bytes {
            self.bytes = Memory::Still(Bytes::copy_from_slice(bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_grows_and_is_cut_and_its_slices_stay() {
        let mut tail = Tail::new(4_096 + 3, Bytes::from_static(b"abc"));
        assert_eq!((tail.start(), tail.end()), (4_096, 4_099));
        tail.append(b"XX", |bytes| bytes.copy_from_slice(b"de"));
        let early = tail.slice(4_097, 9_000);
        assert_eq!(&early[..], b"bcde");
        tail.append(&vec![b'z'; 5_000], |_| {});
        assert_eq!(&early[..], b"bcde");
        assert_eq!(tail.len(), 5_005);
        tail.cut(4_101);
        assert_eq!(tail.as_slice(), b"abcde");
        tail.append(b"f", |_| {});
        assert_eq!(&tail.slice(4_100, 4_102)[..], b"ef");
        assert_eq!(&tail.slice(0, 4_097)[..], b"a");
        assert_eq!(tail.slice(5_000, 6_000), Bytes::new());
    }
}
