//! Which partition a record goes to, as the Java client decides: by the hash of its key, else to one partition for a batch's
//! worth of bytes and then to another (KIP-794).

use super::state::State;

/// The state of the sticky choice.
pub(super) struct Partitioner {
    batch_size: usize,
    /// Partition, and bytes that went to it.
    sticky: Option<(usize, usize)>,
    random: u64,
}

impl Partitioner {
    pub(super) fn new(batch_size: usize) -> Partitioner {
        let random = getrandom::u64().unwrap_or(1) | 1;
        Partitioner {
            batch_size: batch_size.max(1),
            sticky: None,
            random,
        }
    }

    pub(super) fn partition(&mut self, key: Option<&[u8]>, size: usize, state: &State) -> usize {
        let count = state.partition_count().max(1);
        if let Some(key) = key {
            let hash = murmur2(key) & 0x7fff_ffff;
            return hash as usize % count;
        }
        let (partition, bytes) = match self.sticky {
            Some((partition, bytes)) if bytes < self.batch_size && partition < count => {
                (partition, bytes)
            }
            _ => (self.another(count, state), 0),
        };
        self.sticky = Some((partition, bytes + size));
        partition
    }

    /// One with a leader, if any has.
    fn another(&mut self, count: usize, state: &State) -> usize {
        let start = (self.next_random() % count as u64) as usize;
        (0..count)
            .map(|step| (start + step) % count)
            .find(|partition| state.has_leader(*partition))
            .unwrap_or(start)
    }

    /// Xorshift: which partition is next need not be a secret.
    fn next_random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }
}

/// Kafka's hash of keys: 32-bit MurmurHash2 with a seed of its own.
pub(super) fn murmur2(bytes: &[u8]) -> u32 {
    const SEED: u32 = 0x9747_b28c;
    const MULTIPLIER: u32 = 0x5bd1_e995;
    let length = bytes.len() as u32;
    let mut hash = SEED ^ length;
    let mut words = bytes.chunks_exact(4);
    for word in &mut words {
        let mut mixed = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
        mixed = mixed.wrapping_mul(MULTIPLIER);
        mixed ^= mixed >> 24;
        mixed = mixed.wrapping_mul(MULTIPLIER);
        hash = hash.wrapping_mul(MULTIPLIER) ^ mixed;
    }
    let rest = words.remainder();
    if !rest.is_empty() {
        for (at, byte) in rest.iter().enumerate() {
            hash ^= u32::from(*byte) << (8 * at);
        }
        hash = hash.wrapping_mul(MULTIPLIER);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(MULTIPLIER);
    hash ^ (hash >> 15)
}
