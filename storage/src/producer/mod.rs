//! Idempotence as a log sees it (KIP-98, KIP-360): per producer id its epoch and its last five batches.
//!
//! The state includes batches that were given offsets but are not written yet, so that pipelined requests are judged in
//! order. Every change hands back an [`Undo`]; when a write fails, undoing in reverse order restores the state of the
//! written prefix.

pub mod snapshot;

use crate::batch::BatchHeader;
use crate::error::ProducerError;
use std::collections::BTreeMap;

/// Batches remembered per producer: as many as a client may have in flight and so may send again.
pub const BATCHES_KEPT: usize = 5;
const NO_EPOCH: i16 = -1;
const NO_SEQUENCE: i32 = -1;

/// Who appends: clients are checked for sequence and epoch, replication repeats what a leader accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppendOrigin {
    Client,
    /// Coordinators and markers: epochs are checked, sequences are not.
    Coordinator,
    Replication,
}

/// One remembered batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BatchMetadata {
    pub last_sequence: i32,
    pub last_offset: i64,
    pub offset_delta: i32,
    pub timestamp: i64,
}

impl BatchMetadata {
    pub fn first_offset(&self) -> i64 {
        self.last_offset - i64::from(self.offset_delta)
    }

    /// Sequences wrap at i32::MAX to 0.
    pub fn first_sequence(&self) -> i32 {
        let first = i64::from(self.last_sequence) - i64::from(self.offset_delta);
        let wrapped = if first < 0 {
            first + i64::from(i32::MAX) + 1
        } else {
            first
        };
        i32::try_from(wrapped).unwrap_or(NO_SEQUENCE)
    }
}

/// What is known of one producer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProducerEntry {
    pub epoch: i16,
    pub coordinator_epoch: i32,
    /// Largest timestamp of its last batch, or the time of its last marker.
    pub last_timestamp: i64,
    pub transaction_first_offset: Option<i64>,
    batches: [BatchMetadata; BATCHES_KEPT],
    batch_count: u8,
}

impl ProducerEntry {
    fn empty() -> ProducerEntry {
        ProducerEntry {
            epoch: NO_EPOCH,
            coordinator_epoch: -1,
            last_timestamp: -1,
            transaction_first_offset: None,
            batches: [BatchMetadata::default(); BATCHES_KEPT],
            batch_count: 0,
        }
    }

    /// Oldest first.
    pub fn batches(&self) -> &[BatchMetadata] {
        &self.batches[..usize::from(self.batch_count)]
    }

    pub fn last_batch(&self) -> Option<&BatchMetadata> {
        self.batches().last()
    }

    pub fn last_sequence(&self) -> i32 {
        self.last_batch()
            .map_or(NO_SEQUENCE, |batch| batch.last_sequence)
    }

    fn set_epoch(&mut self, epoch: i16) {
        if self.epoch != epoch {
            self.epoch = epoch;
            self.batch_count = 0;
        }
    }

    fn add_batch(&mut self, batch: BatchMetadata) {
        if usize::from(self.batch_count) == BATCHES_KEPT {
            self.batches.rotate_left(1);
            self.batch_count -= 1;
        }
        self.batches[usize::from(self.batch_count)] = batch;
        self.batch_count += 1;
        self.last_timestamp = batch.timestamp;
    }

    fn find_duplicate(&self, header: &BatchHeader) -> Option<BatchMetadata> {
        if header.producer_epoch != self.epoch {
            return None;
        }
        self.batches()
            .iter()
            .find(|batch| {
                batch.first_sequence() == header.base_sequence
                    && batch.last_sequence == header.last_sequence()
            })
            .copied()
    }
}

/// The verdict on a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Accept,
    /// Sent again: this is where it already is.
    Duplicate(BatchMetadata),
}

/// An end-transaction marker found in a control batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndMarker {
    pub commit: bool,
    pub coordinator_epoch: i32,
    pub timestamp: i64,
}

/// A transaction that a marker ended with an abort: one entry of `.txnindex`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AbortedTransaction {
    pub producer_id: i64,
    pub first_offset: i64,
    pub last_offset: i64,
    pub last_stable_offset: i64,
}

/// Takes one change back.
#[derive(Debug, Clone, Copy)]
pub struct Undo {
    producer_id: i64,
    before: Option<ProducerEntry>,
    begins: Option<Awaited>,
}

/// The batch that a producer must begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Awaited {
    epoch: i16,
    first_sequence: i32,
}

/// Producers remembered of which nothing was written.
const AWAITED_MAX: usize = 1000;

/// Producers of one log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProducerState {
    producers: BTreeMap<i64, ProducerEntry>,
    /// Producers whose first batch could not be written: the ones behind it must not take its place.
    awaited: BTreeMap<i64, Awaited>,
}

impl ProducerState {
    pub fn len(&self) -> usize {
        self.producers.len()
    }

    pub fn is_empty(&self) -> bool {
        self.producers.is_empty()
    }

    pub fn get(&self, producer_id: i64) -> Option<&ProducerEntry> {
        self.producers.get(&producer_id)
    }

    /// In order of producer id.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (i64, &ProducerEntry)> {
        self.producers.iter().map(|(id, entry)| (*id, entry))
    }

    pub fn clear(&mut self) {
        self.producers.clear();
        self.awaited.clear();
    }

    /// First offset of the oldest open transaction: nothing at or above it is stable.
    pub fn first_unstable_offset(&self) -> Option<i64> {
        self.producers
            .values()
            .filter_map(|entry| entry.transaction_first_offset)
            .min()
    }

    /// Judges a batch with a producer id.
    ///
    /// An unknown producer may start at any sequence: its state may have expired, or its records may have been deleted
    /// (KAFKA-5793 and after). Only in a partition where nothing was ever written (`never_written`) that cannot be, and
    /// a first sequence above 0 means that an earlier batch is still to come. So it does where the producer's first batch
    /// could not be written.
    ///
    /// # Errors
    /// Kafka's refusals, OUT_OF_ORDER_SEQUENCE_NUMBER and INVALID_PRODUCER_EPOCH.
    pub fn check(
        &self,
        header: &BatchHeader,
        origin: AppendOrigin,
        never_written: bool,
    ) -> Result<Verdict, ProducerError> {
        if origin == AppendOrigin::Replication {
            return Ok(Verdict::Accept);
        }
        let known = self.producers.get(&header.producer_id);
        if origin == AppendOrigin::Client
            && let Some(batch) = known.and_then(|entry| entry.find_duplicate(header))
        {
            return Ok(Verdict::Duplicate(batch));
        }
        let current_epoch = known.map_or(NO_EPOCH, |entry| entry.epoch);
        if header.producer_epoch < current_epoch {
            return Err(ProducerError::InvalidProducerEpoch {
                producer_id: header.producer_id,
                epoch: header.producer_epoch,
                current_epoch,
            });
        }
        if origin != AppendOrigin::Client || header.is_control() {
            return Ok(Verdict::Accept);
        }
        let (in_order, last_sequence) = match known {
            None => match self.awaited.get(&header.producer_id) {
                Some(awaited) if awaited.epoch == header.producer_epoch => {
                    (header.base_sequence == awaited.first_sequence, NO_SEQUENCE)
                }
                _ => (!never_written || header.base_sequence == 0, NO_SEQUENCE),
            },
            Some(entry) if entry.epoch == NO_EPOCH => (true, NO_SEQUENCE),
            Some(entry) if entry.epoch != header.producer_epoch => {
                (header.base_sequence == 0, entry.last_sequence())
            }
            Some(entry) => {
                let last = entry.last_sequence();
                let next = if last == i32::MAX { 0 } else { last + 1 };
                (header.base_sequence == next, last)
            }
        };
        if in_order {
            return Ok(Verdict::Accept);
        }
        Err(ProducerError::OutOfOrderSequence {
            producer_id: header.producer_id,
            first_sequence: header.base_sequence,
            last_sequence,
            epoch: header.producer_epoch,
        })
    }

    /// Takes note of an accepted data batch.
    pub fn apply_batch(&mut self, header: &BatchHeader) -> Undo {
        let mut undo = self.undo_of(header.producer_id);
        undo.begins = Some(Awaited {
            epoch: header.producer_epoch,
            first_sequence: header.base_sequence,
        });
        self.awaited.remove(&header.producer_id);
        let mut entry = undo.before.unwrap_or_else(ProducerEntry::empty);
        entry.set_epoch(header.producer_epoch);
        entry.add_batch(BatchMetadata {
            last_sequence: header.last_sequence(),
            last_offset: header.last_offset,
            offset_delta: i32::try_from(header.last_offset - header.base_offset).unwrap_or(0),
            timestamp: header.max_timestamp,
        });
        if header.is_transactional() && entry.transaction_first_offset.is_none() {
            entry.transaction_first_offset = Some(header.base_offset);
        }
        self.producers.insert(header.producer_id, entry);
        undo
    }

    /// Takes note of an end-transaction marker. Answers the aborted transaction, if it ended one so.
    pub fn apply_marker(
        &mut self,
        header: &BatchHeader,
        marker: EndMarker,
    ) -> (Undo, Option<AbortedTransaction>) {
        let undo = self.undo_of(header.producer_id);
        let mut entry = undo.before.unwrap_or_else(ProducerEntry::empty);
        entry.set_epoch(header.producer_epoch);
        entry.coordinator_epoch = marker.coordinator_epoch;
        entry.last_timestamp = marker.timestamp;
        let first_offset = entry.transaction_first_offset.take();
        self.producers.insert(header.producer_id, entry);
        let aborted = first_offset.filter(|_| !marker.commit).map(|first_offset| {
            // The marker's transaction no longer counts: the next open one decides, else the marker's own end.
            let last_stable_offset = self
                .first_unstable_offset()
                .unwrap_or(header.last_offset + 1);
            AbortedTransaction {
                producer_id: header.producer_id,
                first_offset,
                last_offset: header.base_offset,
                last_stable_offset,
            }
        });
        (undo, aborted)
    }

    fn undo_of(&self, producer_id: i64) -> Undo {
        Undo {
            producer_id,
            before: self.producers.get(&producer_id).copied(),
            begins: None,
        }
    }

    /// Takes a change back. Changes are to be undone in reverse order.
    pub fn undo(&mut self, undo: Undo) {
        match undo.before {
            Some(entry) => self.producers.insert(undo.producer_id, entry),
            None => self.producers.remove(&undo.producer_id),
        };
    }

    /// Takes a batch back that could not be written. A producer that is unknown then must begin with it.
    pub fn undo_failed(&mut self, undo: Undo) {
        self.undo(undo);
        if let (None, Some(begins)) = (undo.before, undo.begins) {
            if self.awaited.len() >= AWAITED_MAX {
                self.awaited.clear();
            }
            self.awaited.insert(undo.producer_id, begins);
        }
    }

    /// Forgets producers idle for `expiration_ms` by the time of their last batch, open transactions excepted.
    pub fn remove_expired(&mut self, now_ms: i64, expiration_ms: i64) {
        self.producers
            .retain(|_, entry| !is_expired(entry, now_ms, expiration_ms));
        self.awaited.clear();
    }

    /// Keeps at most `limit` producers. When there are more, the longest idle tenth goes at once, so that a flood of
    /// new ids costs a sort every tenth, not a scan each. Open transactions stay.
    pub fn enforce_limit(&mut self, limit: usize) {
        if self.producers.len() > limit {
            self.forget_idle(self.producers.len() - limit + limit / 10);
        }
    }

    /// Forgets so many producers, the longest idle ones. Open transactions stay.
    pub fn forget_idle(&mut self, count: usize) {
        let mut idle: Vec<(i64, i64)> = self
            .producers
            .iter()
            .filter(|(_, entry)| entry.transaction_first_offset.is_none())
            .map(|(id, entry)| {
                (
                    entry.last_batch().map_or(-1, |batch| batch.last_offset),
                    *id,
                )
            })
            .collect();
        idle.sort_unstable();
        for (_, id) in idle.into_iter().take(count) {
            self.producers.remove(&id);
        }
    }

    pub(crate) fn insert(&mut self, producer_id: i64, entry: ProducerEntry) {
        self.producers.insert(producer_id, entry);
    }
}

fn is_expired(entry: &ProducerEntry, now_ms: i64, expiration_ms: i64) -> bool {
    entry.transaction_first_offset.is_none()
        && now_ms.saturating_sub(entry.last_timestamp) >= expiration_ms
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::tests::opaque_batch;

    fn header(base_offset: i64, records: i32, producer: (i64, i16, i32)) -> BatchHeader {
        let mut batch = opaque_batch(records, 1, 1_000 + base_offset, producer);
        crate::batch::place(&mut batch, base_offset, 0);
        BatchHeader::parse(&batch).unwrap()
    }

    fn check(
        state: &ProducerState,
        producer: (i64, i16, i32),
        records: i32,
    ) -> Result<Verdict, ProducerError> {
        state.check(&header(0, records, producer), AppendOrigin::Client, false)
    }

    #[test]
    fn sequences_must_follow_each_other() {
        let mut state = ProducerState::default();
        state.apply_batch(&header(0, 10, (7, 0, 0)));
        assert_eq!(check(&state, (7, 0, 10), 1), Ok(Verdict::Accept));
        assert!(matches!(
            check(&state, (7, 0, 11), 1),
            Err(ProducerError::OutOfOrderSequence {
                last_sequence: 9,
                ..
            })
        ));
        assert!(matches!(
            check(&state, (7, 1, 10), 1),
            Err(ProducerError::OutOfOrderSequence { .. })
        ));
        assert_eq!(
            check(&state, (7, 1, 0), 1),
            Ok(Verdict::Accept),
            "a new epoch starts at 0"
        );
        state.apply_batch(&header(10, 1, (7, 1, 0)));
        assert!(matches!(
            check(&state, (7, 0, 10), 1),
            Err(ProducerError::InvalidProducerEpoch {
                current_epoch: 1,
                ..
            })
        ));
    }

    #[test]
    fn a_producer_whose_first_batch_failed_begins_with_it() {
        let mut state = ProducerState::default();
        let undos = [
            state.apply_batch(&header(0, 3, (7, 0, 5))),
            state.apply_batch(&header(3, 1, (7, 0, 8))),
        ];
        (undos.into_iter().rev()).for_each(|undo| state.undo_failed(undo));
        assert!(state.is_empty());
        for sequence in [0, 8, 9] {
            let refused = check(&state, (7, 0, sequence), 1);
            let out_of_order = matches!(refused, Err(ProducerError::OutOfOrderSequence { .. }));
            assert!(out_of_order, "{sequence}: {refused:?}");
        }
        assert_eq!(check(&state, (7, 1, 8), 1), Ok(Verdict::Accept));
        assert_eq!(check(&state, (8, 0, 8), 1), Ok(Verdict::Accept));
        assert_eq!(check(&state, (7, 0, 5), 3), Ok(Verdict::Accept));
        state.apply_batch(&header(0, 3, (7, 0, 5)));
        assert_eq!(check(&state, (7, 0, 8), 1), Ok(Verdict::Accept));
    }

    #[test]
    fn the_last_five_batches_are_recognised() {
        let mut state = ProducerState::default();
        for index in 0..6 {
            state.apply_batch(&header(i64::from(index) * 2, 2, (7, 0, index * 2)));
        }
        let Ok(Verdict::Duplicate(batch)) = check(&state, (7, 0, 2), 2) else {
            panic!("the fifth last is known")
        };
        assert_eq!((batch.first_offset(), batch.timestamp), (2, 1_002));
        assert!(
            check(&state, (7, 0, 0), 2).is_err(),
            "the sixth last is not"
        );
        assert!(
            check(&state, (7, 0, 2), 1).is_err(),
            "another range is no duplicate"
        );
    }

    #[test]
    fn sequences_wrap_to_zero() {
        let mut state = ProducerState::default();
        state.apply_batch(&header(0, 4, (7, 0, i32::MAX - 1)));
        assert_eq!(state.get(7).unwrap().last_sequence(), 1);
        assert_eq!(
            state.get(7).unwrap().batches()[0].first_sequence(),
            i32::MAX - 1
        );
        assert_eq!(check(&state, (7, 0, 2), 1), Ok(Verdict::Accept));
        assert!(matches!(
            check(&state, (7, 0, i32::MAX - 1), 4),
            Ok(Verdict::Duplicate(_))
        ));
        state.apply_batch(&header(4, 1, (8, 0, i32::MAX)));
        assert_eq!(check(&state, (8, 0, 0), 1), Ok(Verdict::Accept));
    }

    #[test]
    fn unknown_producers_may_continue_except_where_nothing_was_written() {
        let state = ProducerState::default();
        let late = header(0, 1, (7, 0, 5));
        assert_eq!(
            state.check(&late, AppendOrigin::Client, false),
            Ok(Verdict::Accept)
        );
        assert!(state.check(&late, AppendOrigin::Client, true).is_err());
        assert_eq!(
            state.check(&late, AppendOrigin::Replication, true),
            Ok(Verdict::Accept)
        );
    }

    #[test]
    fn undo_restores_what_was() {
        let mut state = ProducerState::default();
        state.apply_batch(&header(0, 1, (7, 0, 0)));
        let before = state.clone();
        let undos = [
            state.apply_batch(&header(1, 1, (7, 0, 1))),
            state.apply_batch(&header(2, 1, (8, 0, 0))),
            state.apply_batch(&header(3, 1, (7, 1, 0))),
        ];
        assert_ne!(state, before);
        undos.into_iter().rev().for_each(|undo| state.undo(undo));
        assert_eq!(state, before);
    }

    #[test]
    fn idle_producers_expire_and_their_number_is_bounded() {
        let mut state = ProducerState::default();
        for id in 0..100 {
            state.apply_batch(&header(id, 1, (id, 0, 0)));
        }
        state.remove_expired(2_010, 1_000);
        assert_eq!(state.len(), 89, "those stamped before 1011 are gone");
        state.enforce_limit(50);
        assert_eq!(state.len(), 45);
        assert!(state.get(99).is_some() && state.get(30).is_none());
    }

    #[test]
    fn markers_end_transactions() {
        let mut state = ProducerState::default();
        let mut data = header(5, 2, (7, 0, 0));
        data.attributes |= 0x10;
        state.apply_batch(&data);
        assert_eq!(state.first_unstable_offset(), Some(5));
        let mut control = header(9, 1, (7, 0, -1));
        control.attributes |= 0x30;
        let marker = EndMarker {
            commit: false,
            coordinator_epoch: 3,
            timestamp: 50,
        };
        let (_, aborted) = state.apply_marker(&control, marker);
        let expected = AbortedTransaction {
            producer_id: 7,
            first_offset: 5,
            last_offset: 9,
            last_stable_offset: 10,
        };
        assert_eq!(aborted, Some(expected));
        assert_eq!(state.first_unstable_offset(), None);
        assert_eq!(
            state.get(7).unwrap().last_sequence(),
            1,
            "the epoch goes on in sequence"
        );
    }
}
