//! A stream of choices out of the bytes of an input; at its end every choice is the first one.

pub struct Choices<'a> {
    rest: &'a [u8],
}

impl<'a> Choices<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.rest.split_first() else {
            return 0;
        };
        self.rest = rest;
        *first
    }

    /// A number below `bound`, which is at most 256.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::from(self.byte()) % bound.max(1)
    }

    /// Never at the end of the input.
    pub fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == count - 1
    }

    pub fn pick<'b, T>(&mut self, all: &'b [T]) -> &'b T {
        &all[self.below(all.len())]
    }

    pub fn long(&mut self) -> i64 {
        i64::from_be_bytes(std::array::from_fn(|_| self.byte()))
    }
}
