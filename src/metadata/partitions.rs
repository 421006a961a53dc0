//! The partitions of one topic: a small table where changing one entry copies two short rows.

use std::sync::Arc;

use super::partition::Partition;

/// Entries in a row. A topic of `n` partitions costs `n / ROW + ROW` pointer copies a change.
const ROW: usize = 64;

type Entries = Arc<[Option<Arc<Partition>>]>;

/// Rows stand in order of their number; one without entries is left out, so that a lone partition
/// with a large index costs no more than any other.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    number: usize,
    entries: Entries,
}

/// Partitions by index, shared with every earlier version of the table.
///
/// Indexes are dense in practice; a snapshot may deliver them in any order, so gaps are allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Partitions {
    rows: Option<Arc<[Row]>>,
    count: usize,
}

impl Partitions {
    /// No partitions.
    pub const EMPTY: Self = Self {
        rows: None,
        count: 0,
    };

    /// Partition `index`, if there is one.
    #[must_use]
    pub fn get(&self, index: i32) -> Option<&Arc<Partition>> {
        let index = usize::try_from(index).ok()?;
        let at = self.find(index / ROW).ok()?;
        self.rows()[at].entries.get(index % ROW)?.as_ref()
    }

    /// How many partitions there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// True without any partition.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Puts a partition at `index`, replacing what was there. Rows that no other version of the table has are changed in place:
    /// nobody sees the versions between two records of a replay.
    pub fn set(&mut self, index: usize, partition: Partition) {
        let (number, column) = (index / ROW, index % ROW);
        let partition = Arc::new(partition);
        match self.find(number) {
            Ok(at) => {
                let rows = Arc::make_mut(self.rows.get_or_insert_default());
                let replaced = put(&mut rows[at].entries, column, partition);
                self.count += usize::from(!replaced);
            }
            Err(at) => {
                let mut rows = self.rows().to_vec();
                let mut entries: Entries = Arc::default();
                put(&mut entries, column, partition);
                rows.insert(at, Row { number, entries });
                self.rows = Some(rows.into());
                self.count += 1;
            }
        }
    }

    /// All partitions with their index, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (i32, &Arc<Partition>)> {
        self.rows().iter().flat_map(|row| {
            let entries = row.entries.iter().enumerate();
            entries.filter_map(move |(column, entry)| {
                let index = i32::try_from(row.number * ROW + column).ok()?;
                entry.as_ref().map(|partition| (index, partition))
            })
        })
    }

    /// Calls `changed(index, old, new)` for every entry that differs; rows still shared are skipped.
    pub fn diff<'a>(
        old: &'a Self,
        new: &'a Self,
        mut changed: impl FnMut(i32, Option<&'a Arc<Partition>>, Option<&'a Arc<Partition>>),
    ) {
        let (mut before, mut after) = (old.rows(), new.rows());
        while let Some(number) = first_number(before, after) {
            let (old_entries, new_entries) =
                (take_row(&mut before, number), take_row(&mut after, number));
            if let (Some(old), Some(new)) = (old_entries, new_entries)
                && Arc::ptr_eq(old, new)
            {
                continue;
            }
            let width = |entries: Option<&Entries>| entries.map_or(0, |entries| entries.len());
            for column in 0..width(old_entries).max(width(new_entries)) {
                let before = old_entries.and_then(|row| row.get(column)?.as_ref());
                let after = new_entries.and_then(|row| row.get(column)?.as_ref());
                let same = match (before, after) {
                    (Some(before), Some(after)) => Arc::ptr_eq(before, after) || before == after,
                    (None, None) => true,
                    _ => false,
                };
                if !same && let Ok(index) = i32::try_from(number * ROW + column) {
                    changed(index, before, after);
                }
            }
        }
    }

    /// Where the row of that number is, or would be.
    fn find(&self, number: usize) -> Result<usize, usize> {
        let rows = self.rows();
        match rows.get(number) {
            Some(row) if row.number == number => Ok(number),
            _ => rows.binary_search_by_key(&number, |row| row.number),
        }
    }

    fn rows(&self) -> &[Row] {
        self.rows.as_deref().unwrap_or_default()
    }
}

/// Puts an entry into a row; says whether there was one.
fn put(entries: &mut Entries, column: usize, partition: Arc<Partition>) -> bool {
    if entries.len() <= column {
        let missing = column + 1 - entries.len();
        let missing = std::iter::repeat_n(None, missing);
        *entries = match Arc::get_mut(entries) {
            Some(own) => own.iter_mut().map(Option::take).chain(missing).collect(),
            None => entries.iter().cloned().chain(missing).collect(),
        };
    }
    Arc::make_mut(entries)[column].replace(partition).is_some()
}

/// The smaller of the numbers at the fronts.
fn first_number(before: &[Row], after: &[Row]) -> Option<usize> {
    let fronts = [before.first(), after.first()];
    fronts.into_iter().flatten().map(|row| row.number).min()
}

/// Takes the row at the front, if it is the one of that number.
fn take_row<'a>(rows: &mut &'a [Row], number: usize) -> Option<&'a Entries> {
    let (first, rest) = rows.split_first().filter(|(row, _)| row.number == number)?;
    *rows = rest;
    Some(&first.entries)
}

#[cfg(test)]
mod tests {
    use protocol::stored::PartitionRecord;

    use super::*;

    fn partition(leader_epoch: i32) -> Partition {
        crate::metadata::records::partition(&PartitionRecord {
            leader_epoch,
            replicas: [1].into(),
            ..PartitionRecord::default()
        })
    }

    #[test]
    fn indexes_far_apart_take_little_and_are_found() {
        let indexes = [0, 63, 64, 1_000_000, i32::MAX];
        let mut table = Partitions::default();
        for index in indexes.into_iter().rev() {
            table.set(index as usize, partition(index));
        }
        assert_eq!((table.len(), table.rows().len()), (5, 4));
        let found: Vec<i32> = table.iter().map(|(index, _)| index).collect();
        assert_eq!(found, indexes);
        for index in indexes {
            assert_eq!(table.get(index).unwrap().leader_epoch, index);
            assert!(
                table
                    .get(index - 1)
                    .is_none_or(|it| it.leader_epoch != index)
            );
        }
    }

    #[test]
    fn only_a_table_that_nobody_shares_is_changed_in_place() {
        let mut table = Partitions::default();
        for index in 0..130 {
            table.set(index, partition(0));
        }
        let row = |table: &Partitions| table.rows()[0].entries.as_ptr();
        let (before, place) = (table.clone(), row(&table));
        table.set(3, partition(1));
        assert_eq!(before.get(3).unwrap().leader_epoch, 0);
        assert_eq!(table.get(3).unwrap().leader_epoch, 1);
        assert_ne!(row(&table), place, "an earlier version has the row");
        let place = row(&table);
        table.set(4, partition(1));
        assert_eq!(row(&table), place, "nobody else has it");
        assert_eq!((table.len(), before.len()), (130, 130));
        table.set(130, partition(1));
        assert_eq!((table.len(), before.len()), (131, 130));
    }

    #[test]
    fn a_difference_names_every_changed_entry_once() {
        let mut old = Partitions::default();
        for index in [1, 70, 700] {
            old.set(index, partition(0));
        }
        let mut new = old.clone();
        for index in [1, 200, 70_000] {
            new.set(index, partition(1));
        }
        let changes = |old, new| {
            let mut all = Vec::new();
            Partitions::diff(old, new, |index, before, after| {
                all.push((index, before.is_some(), after.is_some()));
            });
            all
        };
        let there = [(1, true, true), (200, false, true), (70_000, false, true)];
        assert_eq!(changes(&old, &new), there);
        let back = there.map(|(index, before, after)| (index, after, before));
        assert_eq!(changes(&new, &old), back);
        assert_eq!(changes(&new, &new.clone()), []);
    }
}
