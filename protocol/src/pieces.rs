//! Bytes in several pieces of memory, read from front to back.

use std::collections::VecDeque;
use std::io::{self, BufRead, Read};

use bytes::{Buf, Bytes};

/// The bytes of something long, in pieces, so that no memory in one piece is needed for all of it. Read by [`BufRead`];
/// what is read is given back piece by piece.
#[derive(Clone, Debug, Default)]
pub struct Pieces {
    /// None is empty.
    left: VecDeque<Bytes>,
}

impl Pieces {
    /// Bytes not read yet.
    pub fn len(&self) -> usize {
        self.left.iter().map(Bytes::len).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    /// The first bytes, without reading them; none if there are fewer.
    pub fn peek<const N: usize>(&self) -> Option<[u8; N]> {
        let mut start = [0; N];
        let mut bytes = self.left.iter().flatten();
        for byte in &mut start {
            *byte = *bytes.next()?;
        }
        Some(start)
    }

    /// Reads the next bytes, as many as there are of `count`: without a copy where they lie in one piece.
    pub fn take_bytes(&mut self, count: usize) -> Bytes {
        match self.left.front_mut() {
            Some(front) if front.len() > count => front.split_to(count),
            Some(front) if front.len() == count => self.left.pop_front().unwrap_or_default(),
            _ => {
                let mut bytes = Vec::with_capacity(count.min(self.len()));
                // Reading from memory cannot fail.
                let _ = self.take(count as u64).read_to_end(&mut bytes);
                bytes.into()
            }
        }
    }

    /// What is left, in one piece of memory: for what is known to be short.
    pub fn concat(mut self) -> Bytes {
        match (self.left.pop_front(), self.left.is_empty()) {
            (None, _) => Bytes::new(),
            (Some(only), true) => only,
            (Some(first), false) => {
                self.left.push_front(first);
                self.left.make_contiguous().concat().into()
            }
        }
    }
}

impl FromIterator<Bytes> for Pieces {
    fn from_iter<I: IntoIterator<Item = Bytes>>(pieces: I) -> Self {
        let pieces = pieces.into_iter().filter(|piece| !piece.is_empty());
        Self {
            left: pieces.collect(),
        }
    }
}

impl From<Bytes> for Pieces {
    fn from(only: Bytes) -> Self {
        [only].into_iter().collect()
    }
}

impl From<Vec<Bytes>> for Pieces {
    fn from(pieces: Vec<Bytes>) -> Self {
        pieces.into_iter().collect()
    }
}

impl Read for Pieces {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(into)?;
        self.consume(read);
        Ok(read)
    }
}

impl BufRead for Pieces {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        Ok(self.left.front().map_or(&[], |piece| &piece[..]))
    }

    fn consume(&mut self, amount: usize) {
        let Some(front) = self.left.front_mut() else {
            return;
        };
        front.advance(amount);
        if front.is_empty() {
            self.left.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_across_pieces_and_gives_them_back() {
        let all = ["one\n", "", "tw", "o\nthree"];
        let pieces: Pieces = all
            .iter()
            .map(|text| Bytes::from_static(text.as_bytes()))
            .collect();
        assert_eq!((pieces.len(), pieces.is_empty()), (13, false));
        assert_eq!(pieces.clone().concat(), "one\ntwo\nthree");
        let mut reading = pieces.clone();
        let mut line = String::new();
        for expected in ["one\n", "two\n", "three", ""] {
            line.clear();
            reading.read_line(&mut line).unwrap();
            assert_eq!(line, expected);
        }
        assert!(reading.is_empty());
        let mut some = [0; 6];
        let mut reading = pieces;
        reading.read_exact(&mut some).unwrap();
        assert_eq!((&some, reading.len()), (b"one\ntw", 7));
    }

    #[test]
    fn takes_and_peeks_at_every_edge() {
        let all = b"0123456789";
        for piece in 1..=all.len() {
            let pieces: Pieces = all.chunks(piece).map(Bytes::copy_from_slice).collect();
            for count in 0..12 {
                let mut reading = pieces.clone();
                assert_eq!(reading.peek::<4>(), Some(*b"0123"));
                let there = count.min(all.len());
                assert_eq!(reading.take_bytes(count), all[..there]);
                assert_eq!(reading.peek::<4>().is_some(), reading.len() >= 4);
                assert_eq!(reading.concat(), all[there..]);
            }
        }
        assert_eq!(Pieces::default().concat(), "");
    }
}
