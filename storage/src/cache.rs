//! The three bounded memories of a core: recent batches, sealed indexes, files open for reading.

use crate::log::LogInner;
use bytes::Bytes;
use shards::io::File;
use shards::time::Instant;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Weak;
use std::time::Duration;

/// The logs of a core by their ids. A log that is dropped takes itself out, so that nothing of it stays.
pub(crate) type Logs = BTreeMap<u64, Weak<LogInner>>;

/// Accounts for the write buffers that logs keep for readers. The logs own the buffers; this decides whose goes first:
/// the oldest of all logs of the core. Batches not yet written are not in here, so they cannot be evicted.
pub(crate) struct BatchCache {
    budget: usize,
    used: usize,
    /// Log and entry, oldest first. Entries that their log dropped by itself stay as husks until they come up, or are
    /// swept; so a log is named here and not pointed to, which would hold its memory.
    order: VecDeque<(u64, u64)>,
    live: usize,
    next_entry: u64,
}

impl BatchCache {
    pub fn new(budget: usize) -> BatchCache {
        BatchCache {
            budget,
            used: 0,
            order: VecDeque::new(),
            live: 0,
            next_entry: 0,
        }
    }

    pub fn used(&self) -> usize {
        self.used
    }

    /// Enters a buffer of `bytes`; answers its number. `logs` are those of the core.
    pub fn insert(&mut self, logs: &Logs, log: u64, bytes: usize) -> u64 {
        if self.order.len() > 64 && self.order.len() > 2 * self.live {
            self.order.retain(|(log, entry)| {
                let log = logs.get(log).and_then(Weak::upgrade);
                log.is_some_and(|log| log.holds_cached(*entry))
            });
            self.live = self.order.len();
        }
        let entry = self.next_entry;
        self.next_entry += 1;
        self.order.push_back((log, entry));
        self.live += 1;
        self.used += bytes;
        entry
    }

    /// A buffer took the place of an entered one: same number, other size.
    pub fn resize(&mut self, before: usize, now: usize) {
        self.used = self.used.saturating_sub(before) + now;
    }

    /// A log dropped `entries` of its buffers, `bytes` in all, without being told to.
    pub fn forget(&mut self, entries: usize, bytes: usize) {
        self.live = self.live.saturating_sub(entries);
        self.used = self.used.saturating_sub(bytes);
    }

    /// The next entry to evict, as long as the budget is exceeded.
    pub fn pop_over_budget(&mut self) -> Option<(u64, u64)> {
        if self.used <= self.budget {
            None
        } else {
            self.order.pop_front()
        }
    }

    /// What an eviction gave back; 0 where the entry was a husk.
    pub fn release(&mut self, bytes: usize) {
        if bytes > 0 {
            self.live = self.live.saturating_sub(1);
        }
        self.used = self.used.saturating_sub(bytes);
    }
}

/// Which index of which segment: log, base offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct IndexKey {
    pub log: u64,
    pub base_offset: i64,
    pub time: bool,
}

/// Raw indexes of sealed segments, least recently used first out.
pub(crate) struct IndexCache {
    budget: usize,
    used: usize,
    clock: u64,
    entries: BTreeMap<IndexKey, (u64, Bytes)>,
}

/// What an entry costs beside its bytes.
const ENTRY_OVERHEAD: usize = 64;

impl IndexCache {
    pub fn new(budget: usize) -> IndexCache {
        IndexCache {
            budget,
            used: 0,
            clock: 0,
            entries: BTreeMap::new(),
        }
    }

    pub fn used(&self) -> usize {
        self.used
    }

    pub fn get(&mut self, key: IndexKey) -> Option<Bytes> {
        self.clock += 1;
        let (used_at, bytes) = self.entries.get_mut(&key)?;
        *used_at = self.clock;
        Some(bytes.clone())
    }

    pub fn insert(&mut self, key: IndexKey, bytes: Bytes) {
        self.remove(key);
        self.clock += 1;
        self.used += bytes.len() + ENTRY_OVERHEAD;
        self.entries.insert(key, (self.clock, bytes));
        // The newest stays even where it alone exceeds the budget: its reader has it in hand anyway.
        while self.used > self.budget && self.entries.len() > 1 {
            let Some(oldest) = self
                .entries
                .iter()
                .min_by_key(|(_, (used_at, _))| *used_at)
                .map(|(key, _)| *key)
            else {
                return;
            };
            self.remove(oldest);
        }
    }

    fn remove(&mut self, key: IndexKey) {
        if let Some((_, bytes)) = self.entries.remove(&key) {
            self.used -= bytes.len() + ENTRY_OVERHEAD;
        }
    }

    pub fn remove_segment(&mut self, log: u64, base_offset: i64) {
        self.remove(IndexKey {
            log,
            base_offset,
            time: false,
        });
        self.remove(IndexKey {
            log,
            base_offset,
            time: true,
        });
    }

    pub fn remove_log(&mut self, log: u64) {
        let first = IndexKey {
            log,
            base_offset: i64::MIN,
            time: false,
        };
        let last = IndexKey {
            log,
            base_offset: i64::MAX,
            time: true,
        };
        let keys: Vec<IndexKey> = self
            .entries
            .range(first..=last)
            .map(|(key, _)| *key)
            .collect();
        keys.into_iter().for_each(|key| self.remove(key));
    }
}

/// Segment files open for buffered reading: a bounded number, closed when unused for a while.
pub(crate) struct FileCache {
    limit: usize,
    entries: BTreeMap<(u64, i64), (Instant, File)>,
}

impl FileCache {
    pub fn new(limit: usize) -> FileCache {
        FileCache {
            limit: limit.max(1),
            entries: BTreeMap::new(),
        }
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn get(&mut self, log: u64, base_offset: i64, now: Instant) -> Option<File> {
        let (used_at, file) = self.entries.get_mut(&(log, base_offset))?;
        *used_at = now;
        Some(file.clone())
    }

    pub fn insert(&mut self, log: u64, base_offset: i64, now: Instant, file: File) {
        if self.entries.len() >= self.limit
            && let Some(oldest) = self
                .entries
                .iter()
                .min_by_key(|(_, (used_at, _))| *used_at)
                .map(|(key, _)| *key)
        {
            self.entries.remove(&oldest);
        }
        self.entries.insert((log, base_offset), (now, file));
    }

    pub fn remove(&mut self, log: u64, base_offset: i64) {
        self.entries.remove(&(log, base_offset));
    }

    pub fn remove_log(&mut self, log: u64) {
        self.entries.retain(|(owner, _), _| *owner != log);
    }

    pub fn close_unused(&mut self, now: Instant, unused_for: Duration) {
        self.entries
            .retain(|_, (used_at, _)| now.saturating_duration_since(*used_at) < unused_for);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_cache_keeps_what_was_used_last() {
        let mut cache = IndexCache::new(3 * (100 + ENTRY_OVERHEAD));
        let key = |base_offset| IndexKey {
            log: 1,
            base_offset,
            time: false,
        };
        for base in 0..3 {
            cache.insert(key(base), Bytes::from(vec![0; 100]));
        }
        assert!(cache.get(key(0)).is_some());
        cache.insert(key(3), Bytes::from(vec![0; 100]));
        assert!(cache.get(key(1)).is_none(), "least recently used");
        assert!(cache.get(key(0)).is_some() && cache.get(key(3)).is_some());
        cache.remove_log(1);
        assert_eq!(cache.used(), 0);
    }
}
