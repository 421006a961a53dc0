//! The partitions of one topic: a small table where changing one entry copies two short rows.

use std::sync::Arc;

use super::partition::Partition;

/// Entries in a row. A topic of `n` partitions costs `n / ROW + ROW` pointer copies a change.
const ROW: usize = 64;

type Row = Arc<[Option<Arc<Partition>>]>;

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
        self.rows().get(index / ROW)?.get(index % ROW)?.as_ref()
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

    /// Puts a partition at `index`, replacing what was there.
    pub fn set(&mut self, index: usize, partition: Partition) {
        let mut rows = self.rows().to_vec();
        let (row, column) = (index / ROW, index % ROW);
        if rows.len() <= row {
            rows.resize_with(row + 1, || Arc::from(Vec::new()));
        }
        let mut entries = rows[row].to_vec();
        if entries.len() <= column {
            entries.resize(column + 1, None);
        }
        if entries[column].is_none() {
            self.count += 1;
        }
        entries[column] = Some(Arc::new(partition));
        rows[row] = entries.into();
        self.rows = Some(rows.into());
    }

    /// All partitions with their index, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (i32, &Arc<Partition>)> {
        self.rows().iter().enumerate().flat_map(|(row, entries)| {
            entries
                .iter()
                .enumerate()
                .filter_map(move |(column, entry)| {
                    let index = i32::try_from(row * ROW + column).ok()?;
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
        let empty: &Row = &Arc::from(Vec::new());
        let rows = old.rows().len().max(new.rows().len());
        for row in 0..rows {
            let (before, after) = (old.rows().get(row), new.rows().get(row));
            if let (Some(before), Some(after)) = (before, after)
                && Arc::ptr_eq(before, after)
            {
                continue;
            }
            let width = before
                .unwrap_or(empty)
                .len()
                .max(after.unwrap_or(empty).len());
            for column in 0..width {
                let before = before.and_then(|row| row.get(column)?.as_ref());
                let after = after.and_then(|row| row.get(column)?.as_ref());
                let same = match (before, after) {
                    (Some(before), Some(after)) => Arc::ptr_eq(before, after) || before == after,
                    (None, None) => true,
                    _ => false,
                };
                if !same && let Ok(index) = i32::try_from(row * ROW + column) {
                    changed(index, before, after);
                }
            }
        }
    }

    fn rows(&self) -> &[Row] {
        self.rows.as_deref().unwrap_or_default()
    }
}
