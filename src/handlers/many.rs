//! Requests that name thousands of partitions: no memory in one piece for all of them, and no core kept for all of them.

use std::collections::BTreeMap;

use futures_util::StreamExt;
use futures_util::stream;
use protocol::Array;

/// So many are on their way to other cores at once.
const AT_A_TIME: usize = 256;

/// Runs what was asked, some at a time; the results stand in the order of the questions.
pub(super) async fn some_at_a_time<F: Future>(asked: impl Iterator<Item = F>) -> Array<F::Output> {
    stream::iter(asked).buffered(AT_A_TIME).collect().await
}

/// Values by key, in the order in which the keys came.
pub(super) struct InOrder<K, V> {
    entries: Array<(K, V)>,
    places: BTreeMap<K, usize>,
}

impl<K: Ord + Clone, V> InOrder<K, V> {
    /// The value of a key, made by `new` where there is none yet; whether there was one.
    pub(super) fn entry(&mut self, key: K, new: impl FnOnce() -> V) -> (&mut V, bool) {
        let last = self.entries.len();
        let place = *self.places.entry(key.clone()).or_insert(last);
        if place == last {
            self.entries.push((key, new()));
        }
        (&mut self.entries[place].1, place < last)
    }
}

impl<K, V> Default for InOrder<K, V> {
    fn default() -> Self {
        Self {
            entries: Array::new(),
            places: BTreeMap::new(),
        }
    }
}

impl<K, V> IntoIterator for InOrder<K, V> {
    type Item = (K, V);
    type IntoIter = <Array<(K, V)> as IntoIterator>::IntoIter;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_keep_the_order_in_which_they_came_first() {
        let mut values: InOrder<i32, Vec<i32>> = InOrder::default();
        for (key, value) in [(3, 0), (1, 1), (3, 2), (2, 3), (1, 4)] {
            let (of_key, before) = values.entry(key, Vec::new);
            assert_eq!(before, !of_key.is_empty());
            of_key.push(value);
        }
        let all: Vec<_> = values.into_iter().collect();
        assert_eq!(all, [(3, vec![0, 2]), (1, vec![1, 4]), (2, vec![3])]);
    }
}
