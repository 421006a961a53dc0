//! The arrays of messages, in chunks.

use std::fmt;
use std::iter::{Chain, Flatten};
use std::ops::{Index, IndexMut};

/// No chunk takes more memory than this, but for a single element that does.
const CHUNK_BYTES: usize = 64 * 1024;

/// An array of a message: a vector that never needs more than 64 KiB in one piece, however many elements it has.
///
/// Arrays of messages have an element for each partition or topic of a cluster. One piece of memory for all of them
/// fails in a heap that has gigabytes free, but none of them together.
#[derive(Clone)]
pub struct Array<T> {
    /// The only chunk of most arrays.
    first: Vec<T>,
    /// Filled once the first chunk is full. All chunks but the last are full. Behind a pointer, since messages have very
    /// many arrays, and nearly all of them no more than the first.
    more: Option<Box<More<T>>>,
}

#[derive(Clone)]
struct More<T> {
    chunks: Vec<Vec<T>>,
}

impl<T> Array<T> {
    /// Elements of a full chunk.
    const PER_CHUNK: usize = {
        let bytes = if size_of::<T>() == 0 {
            1
        } else {
            size_of::<T>()
        };
        if bytes > CHUNK_BYTES {
            1
        } else {
            CHUNK_BYTES / bytes
        }
    };

    /// An array without elements; takes no memory.
    pub const fn new() -> Self {
        Self {
            first: Vec::new(),
            more: None,
        }
    }

    fn rest(&self) -> &[Vec<T>] {
        self.more
            .as_ref()
            .map_or(&[], |more| more.chunks.as_slice())
    }

    fn rest_mut(&mut self) -> &mut [Vec<T>] {
        self.more
            .as_mut()
            .map_or(&mut [], |more| more.chunks.as_mut_slice())
    }

    /// How many elements it has.
    pub fn len(&self) -> usize {
        let rest = self.rest();
        let last = rest.last().map_or(0, Vec::len);
        self.first.len() + rest.len().saturating_sub(1) * Self::PER_CHUNK + last
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.first.is_empty()
    }

    /// Adds an element at the end.
    pub fn push(&mut self, element: T) {
        self.push_before(element, 0);
    }

    /// Adds an element that `more` others will follow: memory is taken for as many, as far as a chunk has room.
    pub(crate) fn push_before(&mut self, element: T, more: usize) {
        let chunk = self.open_chunk();
        if chunk.len() == chunk.capacity() {
            let room = Self::PER_CHUNK - chunk.len();
            let grown = (more + 1).max(chunk.len()).max(4);
            chunk.reserve_exact(grown.min(room));
        }
        chunk.push(element);
    }

    /// The last chunk, which has room.
    fn open_chunk(&mut self) -> &mut Vec<T> {
        if self.first.len() < Self::PER_CHUNK {
            return &mut self.first;
        }
        let more = self.more.get_or_insert_with(|| {
            Box::new(More {
                chunks: vec![Vec::new()],
            })
        });
        let is_full = |chunk: &Vec<T>| chunk.len() == Self::PER_CHUNK;
        if more.chunks.last().is_none_or(is_full) {
            more.chunks.push(Vec::new());
        }
        more.chunks.last_mut().expect("one was just added")
    }

    /// The element at that place, if there is one.
    pub fn get(&self, index: usize) -> Option<&T> {
        match index.checked_sub(Self::PER_CHUNK) {
            None => self.first.get(index),
            Some(behind) => {
                let chunk = self.rest().get(behind / Self::PER_CHUNK)?;
                chunk.get(behind % Self::PER_CHUNK)
            }
        }
    }

    /// The element at that place, if there is one.
    pub fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        match index.checked_sub(Self::PER_CHUNK) {
            None => self.first.get_mut(index),
            Some(behind) => {
                let chunk = self.rest_mut().get_mut(behind / Self::PER_CHUNK)?;
                chunk.get_mut(behind % Self::PER_CHUNK)
            }
        }
    }

    /// The first element.
    pub fn first(&self) -> Option<&T> {
        self.first.first()
    }

    /// The last element.
    pub fn last(&self) -> Option<&T> {
        self.rest().last().unwrap_or(&self.first).last()
    }

    /// The element, if there is exactly one.
    pub fn only(&self) -> Option<&T> {
        self.first().filter(|_| self.len() == 1)
    }

    /// All elements in order.
    pub fn iter(&self) -> Iter<'_, T> {
        self.into_iter()
    }

    /// All elements in order, to be changed.
    pub fn iter_mut(&mut self) -> IterMut<'_, T> {
        self.into_iter()
    }

    /// Removes all elements.
    pub fn clear(&mut self) {
        *self = Self::new();
    }

    /// Keeps the elements of which `keep` says so, in their order.
    pub fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        self.retain_mut(|one| keep(one));
    }

    /// Keeps the elements of which `keep` says so, in their order; it may change them.
    pub fn retain_mut(&mut self, mut keep: impl FnMut(&mut T) -> bool) {
        let all = std::mem::take(self);
        self.extend(
            all.into_iter()
                .filter_map(|mut one| keep(&mut one).then_some(one)),
        );
    }

    /// The elements in one piece of memory.
    pub fn to_vec(&self) -> Vec<T>
    where
        T: Clone,
    {
        self.iter().cloned().collect()
    }

    /// Whether an element equals that one.
    pub fn contains(&self, element: &T) -> bool
    where
        T: PartialEq,
    {
        self.iter().any(|one| one == element)
    }
}

impl<T> Default for Array<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: fmt::Debug> fmt::Debug for Array<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self).finish()
    }
}

impl<T: PartialEq> PartialEq for Array<T> {
    fn eq(&self, other: &Self) -> bool {
        // Chunks end at the same places, whatever their capacity.
        self.first == other.first && self.rest() == other.rest()
    }
}

impl<T: Eq> Eq for Array<T> {}

impl<T: PartialEq> PartialEq<[T]> for Array<T> {
    fn eq(&self, other: &[T]) -> bool {
        self.iter().eq(other)
    }
}

impl<T: PartialEq> PartialEq<Vec<T>> for Array<T> {
    fn eq(&self, other: &Vec<T>) -> bool {
        *self == other[..]
    }
}

impl<T: PartialEq, const N: usize> PartialEq<[T; N]> for Array<T> {
    fn eq(&self, other: &[T; N]) -> bool {
        *self == other[..]
    }
}

impl<T> Index<usize> for Array<T> {
    type Output = T;

    fn index(&self, index: usize) -> &T {
        self.get(index).expect("an index below the length")
    }
}

impl<T> IndexMut<usize> for Array<T> {
    fn index_mut(&mut self, index: usize) -> &mut T {
        self.get_mut(index).expect("an index below the length")
    }
}

impl<T> Extend<T> for Array<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, elements: I) {
        let mut elements = elements.into_iter();
        while let Some(element) = elements.next() {
            let (more, _) = elements.size_hint();
            self.push_before(element, more);
        }
    }
}

impl<T> FromIterator<T> for Array<T> {
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> Self {
        let mut array = Self::new();
        array.extend(elements);
        array
    }
}

impl<T> From<Vec<T>> for Array<T> {
    /// Takes the vector over, unless it is larger than a chunk.
    fn from(elements: Vec<T>) -> Self {
        if elements.len() > Self::PER_CHUNK || elements.capacity() > 2 * Self::PER_CHUNK {
            return elements.into_iter().collect();
        }
        Self {
            first: elements,
            more: None,
        }
    }
}

impl<T> From<Array<T>> for Vec<T> {
    /// All elements in one piece: for few.
    fn from(array: Array<T>) -> Self {
        match array.more {
            None => array.first,
            Some(_) => array.into_iter().collect(),
        }
    }
}

impl<T: Clone> From<&Array<T>> for Box<[T]> {
    /// All elements in one piece: for few.
    fn from(array: &Array<T>) -> Self {
        array.iter().cloned().collect()
    }
}

impl<T: Clone> From<&[T]> for Array<T> {
    fn from(elements: &[T]) -> Self {
        elements.iter().cloned().collect()
    }
}

impl<T, const N: usize> From<[T; N]> for Array<T> {
    fn from(elements: [T; N]) -> Self {
        elements.into_iter().collect()
    }
}

/// Over the elements of an [`Array`].
pub type Iter<'a, T> = Chain<std::slice::Iter<'a, T>, Flatten<std::slice::Iter<'a, Vec<T>>>>;
/// Over the elements of an [`Array`], to be changed.
pub type IterMut<'a, T> =
    Chain<std::slice::IterMut<'a, T>, Flatten<std::slice::IterMut<'a, Vec<T>>>>;
/// Takes the elements out of an [`Array`].
pub type IntoIter<T> = Chain<std::vec::IntoIter<T>, Flatten<std::vec::IntoIter<Vec<T>>>>;

impl<'a, T> IntoIterator for &'a Array<T> {
    type Item = &'a T;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Iter<'a, T> {
        self.first.iter().chain(self.rest().iter().flatten())
    }
}

impl<'a, T> IntoIterator for &'a mut Array<T> {
    type Item = &'a mut T;
    type IntoIter = IterMut<'a, T>;

    fn into_iter(self) -> IterMut<'a, T> {
        let rest = self
            .more
            .as_mut()
            .map_or(&mut [][..], |more| more.chunks.as_mut_slice());
        self.first.iter_mut().chain(rest.iter_mut().flatten())
    }
}

impl<T> IntoIterator for Array<T> {
    type Item = T;
    type IntoIter = IntoIter<T>;

    fn into_iter(self) -> IntoIter<T> {
        let rest = self.more.map_or_else(Vec::new, |more| more.chunks);
        self.first.into_iter().chain(rest.into_iter().flatten())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PER_CHUNK: usize = Array::<u64>::PER_CHUNK;

    fn numbers(count: usize) -> Array<u64> {
        (0..count as u64).collect()
    }

    #[test]
    fn behaves_like_a_vector_at_every_edge_of_chunks() {
        for count in [0, 1, 4, 5]
            .into_iter()
            .chain([1, 2, 3].map(|chunks| chunks * PER_CHUNK - 1))
            .chain([1, 2, 3].map(|chunks| chunks * PER_CHUNK))
            .chain([1, 2, 3].map(|chunks| chunks * PER_CHUNK + 1))
        {
            let vector: Vec<u64> = (0..count as u64).collect();
            let mut array = numbers(count);
            assert_eq!((array.len(), array.is_empty()), (count, count == 0));
            assert_eq!(array, vector);
            assert_eq!(array, Array::from(vector.clone()));
            assert_eq!(
                (array.first(), array.last()),
                (vector.first(), vector.last())
            );
            for at in [0, count / 2, count.saturating_sub(1), count] {
                assert_eq!(array.get(at), vector.get(at), "{at} of {count}");
            }
            assert_eq!(array.only(), vector.first().filter(|_| count == 1));
            let mut some = array.clone();
            some.retain(|one| one % 3 == 0);
            let third: Vec<u64> = vector.iter().copied().filter(|one| one % 3 == 0).collect();
            assert_eq!(some, third);
            assert_eq!(
                (Vec::from(some), Vec::from(array.clone())),
                (third, vector.clone())
            );
            array.iter_mut().for_each(|one| *one += 1);
            let more: Vec<u64> = vector.iter().map(|one| one + 1).collect();
            assert_eq!(array.to_vec(), more);
            assert_eq!(array.into_iter().collect::<Vec<_>>(), more);
        }
    }

    #[test]
    fn no_chunk_is_larger_than_allowed() {
        let pushed = {
            let mut array = Array::new();
            (0..3 * PER_CHUNK as u64 + 1).for_each(|one| array.push(one));
            array
        };
        for array in [pushed, numbers(3 * PER_CHUNK + 1)] {
            let chunks = std::iter::once(&array.first).chain(array.rest());
            assert!(chunks.clone().count() > 3);
            for chunk in chunks {
                assert!(chunk.capacity() * size_of::<u64>() <= CHUNK_BYTES);
            }
        }
    }

    #[test]
    fn what_is_expected_is_reserved_and_no_more() {
        let array: Array<u64> = Array::from_iter(0..10);
        assert_eq!(array.first.capacity(), 10);
        assert_eq!(
            size_of::<Array<u64>>(),
            32,
            "many messages have many of them"
        );
    }

    #[test]
    fn large_elements_have_chunks_of_their_own() {
        let array: Array<[u8; CHUNK_BYTES + 1]> =
            [[1; CHUNK_BYTES + 1], [2; CHUNK_BYTES + 1]].into();
        assert_eq!((array.len(), array.rest().len()), (2, 1));
        assert_eq!(array[1][0], 2);
    }

    #[test]
    fn different_arrays_differ() {
        let array = numbers(PER_CHUNK + 2);
        let mut other = array.clone();
        other[PER_CHUNK + 1] = 0;
        assert_ne!(array, other);
        assert_ne!(array, numbers(PER_CHUNK + 1));
        assert!(array.contains(&(PER_CHUNK as u64)) && !array.contains(&(PER_CHUNK as u64 + 2)));
    }
}
