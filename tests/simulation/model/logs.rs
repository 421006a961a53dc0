//! Records: acknowledged ones survive, offsets are dense, what was read stays, the watermark never
//! retreats, an idempotent producer's records stand once and in order.

use std::collections::BTreeMap;

use bytes::Bytes;
use protocol::messages::FetchResponsePartitionData;
use protocol::records::{BatchView, split_batches};

use super::Model;
use crate::record::{Id, Place, identify};

/// What is known of the records in the partitions.
#[derive(Default)]
pub(super) struct Logs {
    partitions: BTreeMap<Place, Partition>,
    /// How often each maker's records were sent, and whether they may stand twice for that.
    sent: BTreeMap<(Place, Id), Sent>,
}

#[derive(Default)]
struct Partition {
    /// Every offset that somebody was told of.
    known: BTreeMap<i64, Known>,
    offsets: BTreeMap<Id, Vec<i64>>,
    /// Every answer to a later request has at least this watermark.
    end: i64,
    /// And at least this leader epoch.
    epoch: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Known {
    id: Id,
    /// Base offset, leader epoch and checksum of its batch; of acknowledged ones not known.
    batch: Option<(i64, i32, u32)>,
}

#[derive(Clone, Copy, Default)]
struct Sent {
    times: usize,
    once: bool,
}

/// What holds for every answer to a request that is sent now.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    place: Place,
    end: i64,
    epoch: i32,
    losses: u32,
}

impl Expected {
    pub fn losses(&self) -> u32 {
        self.losses
    }
}

impl Model {
    /// A batch of these is sent. `once`: by an idempotent producer.
    pub fn sending(&self, place: Place, ids: &[Id], once: bool) {
        let mut logs = self.logs.borrow_mut();
        for id in ids {
            let sent = logs.sent.entry((place, *id)).or_default();
            sent.times += 1;
            sent.once = once;
        }
    }

    /// The broker said that they stand from `base` on. `expected` is from before they were sent.
    pub fn acknowledged(&self, expected: &Expected, ids: &[Id], base: i64) {
        if expected.losses != self.losses() {
            return;
        }
        let mut logs = self.logs.borrow_mut();
        let mut result = Ok(());
        for (offset, id) in (base..).zip(ids) {
            let known = Known {
                id: *id,
                batch: None,
            };
            result = result.and_then(|()| logs.learn(expected.place, offset, known));
        }
        let partition = logs.partitions.entry(expected.place).or_default();
        partition.end = partition.end.max(base + ids.len() as i64);
        drop(logs);
        self.verdict(result.map_err(|what| format!("acknowledged in {}: {what}", expected.place)));
    }

    /// What an answer to a request sent now has to respect.
    pub fn expect(&self, place: Place) -> Expected {
        let logs = self.logs.borrow();
        let partition = logs.partitions.get(&place);
        Expected {
            place,
            end: partition.map_or(0, |partition| partition.end),
            epoch: partition.map_or(0, |partition| partition.epoch),
            losses: self.losses(),
        }
    }

    /// The end of the partition is known to be at least here.
    pub fn known_end(&self, place: Place) -> i64 {
        self.expect(place).end
    }

    /// Somebody was told that the partition has a leader epoch.
    pub fn saw_epoch(&self, place: Place, epoch: i32) {
        let mut logs = self.logs.borrow_mut();
        let partition = logs.partitions.entry(place).or_default();
        partition.epoch = partition.epoch.max(epoch);
    }

    /// An end that the broker told in another way than by a fetch.
    pub fn saw_end(&self, expected: &Expected, end: i64) {
        if expected.losses == self.losses() {
            let result = self.logs.borrow_mut().saw_end(expected, end);
            self.verdict(result);
        }
    }

    /// The broker said that `offset` lies outside of the partition.
    pub fn out_of_range(&self, expected: &Expected, offset: i64) {
        let lost = expected.losses != self.losses();
        let inside = (0..=expected.end).contains(&offset) && !lost;
        self.verdict(if inside {
            let Expected { place, end, .. } = expected;
            Err(format!(
                "{place}: {offset} is out of range, but the end is at least {end}"
            ))
        } else {
            Ok(())
        });
    }

    /// Checks what a fetch from `offset` got, sent with leader epoch `epoch` (-1 for none); gives the offset
    /// to go on from.
    pub fn fetched(
        &self,
        expected: &Expected,
        offset: i64,
        epoch: i32,
        answer: &FetchResponsePartitionData,
    ) -> i64 {
        if expected.losses != self.losses() {
            return offset;
        }
        let result = self
            .logs
            .borrow_mut()
            .fetched(expected, offset, epoch, answer);
        let next = *result.as_ref().unwrap_or(&offset);
        let place = expected.place;
        self.verdict(
            result
                .map(drop)
                .map_err(|what| format!("fetched from {place} at {offset}: {what}")),
        );
        next
    }
}

impl Logs {
    pub(super) fn lose_unsynced(&mut self) {
        for partition in self.partitions.values_mut() {
            let epoch = partition.epoch;
            *partition = Partition {
                epoch,
                ..Partition::default()
            };
        }
    }

    fn learn(&mut self, place: Place, offset: i64, new: Known) -> Result<(), String> {
        let sent = self.sent.get(&(place, new.id)).copied().unwrap_or_default();
        let partition = self.partitions.entry(place).or_default();
        match partition.known.get_mut(&offset) {
            Some(old) if old.id != new.id => {
                return Err(format!("{offset} holds {}, but held {}", new.id, old.id));
            }
            Some(old) => {
                if let (Some(was), Some(is)) = (old.batch, new.batch)
                    && was != is
                {
                    return Err(format!(
                        "the batch of {offset} was {was:?} and is {is:?} (base, epoch, checksum)"
                    ));
                }
                old.batch = old.batch.or(new.batch);
                return Ok(());
            }
            None => partition.known.insert(offset, new),
        };
        let offsets = partition.offsets.entry(new.id).or_default();
        offsets.push(offset);
        if sent.times == 0 {
            return Err(format!(
                "{offset} holds {}, which nobody has sent yet",
                new.id
            ));
        }
        if offsets.len() > if sent.once { 1 } else { sent.times } {
            return Err(format!(
                "{} stands at {offsets:?}, but was sent {} times, idempotent: {}",
                new.id, sent.times, sent.once
            ));
        }
        if sent.once {
            partition.check_order(new.id, offset)?;
        }
        Ok(())
    }

    fn saw_end(&mut self, expected: &Expected, end: i64) -> Result<(), String> {
        let partition = self.partitions.entry(expected.place).or_default();
        if end < expected.end {
            return Err(format!(
                "{}: the end went back from {} to {end}",
                expected.place, expected.end
            ));
        }
        partition.end = partition.end.max(end);
        Ok(())
    }

    fn fetched(
        &mut self,
        expected: &Expected,
        offset: i64,
        epoch: i32,
        answer: &FetchResponsePartitionData,
    ) -> Result<i64, String> {
        let watermark = answer.high_watermark;
        self.saw_end(expected, watermark)?;
        if (0..expected.epoch).contains(&epoch) {
            return Err(format!(
                "served in leader epoch {epoch}, but it is {} already",
                expected.epoch
            ));
        }
        let records = answer.records.clone().unwrap_or_default();
        let mut next = offset;
        let mut newest_epoch = 0;
        for (index, batch) in split_batches(records).enumerate() {
            let batch =
                batch.map_err(|error| format!("what follows {next} is no batch: {error}"))?;
            let first = batch.base_offset;
            let fits = if index == 0 {
                (first..batch.next_offset()).contains(&offset)
            } else {
                first == next
            };
            if !fits {
                let last = batch.last_offset();
                return Err(format!("a batch from {first} to {last} where {next} comes"));
            }
            next = batch.next_offset();
            if next > watermark {
                return Err(format!(
                    "records up to {next} above the watermark {watermark}"
                ));
            }
            if batch.partition_leader_epoch < newest_epoch {
                return Err(format!(
                    "the leader epoch of the batch at {first} goes back"
                ));
            }
            newest_epoch = batch.partition_leader_epoch;
            self.learn_batch(expected.place, &batch)?;
        }
        let partition = self.partitions.entry(expected.place).or_default();
        partition.epoch = partition.epoch.max(newest_epoch);
        Ok(next)
    }

    fn learn_batch(&mut self, place: Place, batch: &BatchView) -> Result<(), String> {
        let first = batch.base_offset;
        batch
            .check_crc()
            .map_err(|error| format!("the batch at {first}: {error}"))?;
        let facts = (first, batch.partition_leader_epoch, batch.computed_crc());
        let records = batch
            .records(1 << 20)
            .map_err(|error| format!("the batch at {first}: {error}"))?;
        for (next, record) in (first..).zip(records) {
            let record = record.map_err(|error| format!("the batch at {first}: {error}"))?;
            if record.offset != next {
                return Err(format!("{} where {next} comes", record.offset));
            }
            let bytes: Bytes = record.value.unwrap_or_default();
            let id = identify(place, &bytes);
            let id =
                id.ok_or_else(|| format!("{} holds what nobody made for it", record.offset))?;
            let known = Known {
                id,
                batch: Some(facts),
            };
            self.learn(place, record.offset, known)?;
        }
        Ok(())
    }
}

impl Partition {
    /// The records of one idempotent producer stand in the order of their numbers.
    fn check_order(&self, id: Id, offset: i64) -> Result<(), String> {
        let of_maker = |number| Id { number, ..id };
        let before = self.offsets.range(of_maker(0)..id).next_back();
        let after = self
            .offsets
            .range(of_maker(id.number.saturating_add(1))..=of_maker(u32::MAX))
            .next();
        for (other, at) in before.into_iter().chain(after) {
            let in_order = (*other < id) == (at[0] < offset);
            if !in_order {
                return Err(format!("{id} stands at {offset}, but {other} at {}", at[0]));
            }
        }
        Ok(())
    }
}
