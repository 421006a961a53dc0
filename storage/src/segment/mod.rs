//! One segment: a `.log` file of batches and the indexes beside it.

pub mod index;
pub(crate) mod reader;
pub(crate) mod roll;
pub(crate) mod tail;
pub(crate) mod writer;

use crate::names::{FileKind, file_name};
use index::ActiveIndex;
use roll::SegmentPlan;
use shards::io::File;
use std::path::{Path, PathBuf};
use tail::Tail;

/// Unit of O_DIRECT: offset, length and memory of every write are multiples of it.
pub(crate) const BLOCK: u32 = 4096;

/// The start of the block that holds `position`.
pub(crate) fn block_start(position: u32) -> u32 {
    position - position % BLOCK
}

pub(crate) fn segment_path(directory: &Path, base_offset: i64, kind: FileKind) -> PathBuf {
    directory.join(file_name(base_offset, kind))
}

/// A segment that will not grow again.
#[derive(Debug, Clone)]
pub(crate) struct Sealed {
    pub base_offset: i64,
    pub size: u32,
    /// Largest timestamp and the offset of its batch, once somebody asked.
    pub max_timestamp: Option<(i64, i64)>,
}

/// The segment being written, as far as it *is* written.
pub(crate) struct Active {
    pub plan: SegmentPlan,
    /// `None` while the log rests: the files hold every entry then.
    pub index: Option<Box<ActiveIndex>>,
    /// Open for writing; `None` while the log rests.
    pub file: Option<File>,
    /// Length of the file: at least `plan.size`, zeros behind it.
    pub file_length: u64,
    /// The last, partial block, and what only the journal has beside memory. `None` while the log rests.
    pub tail: Option<Tail>,
}

impl Active {
    pub fn new(plan: SegmentPlan) -> Active {
        Active {
            index: Some(Box::new(ActiveIndex::new(plan.base_offset))),
            plan,
            file: None,
            file_length: 0,
            tail: Some(Tail::new(plan.size, bytes::Bytes::new())),
        }
    }

    /// A segment found on disk, at rest.
    pub fn resting(plan: SegmentPlan) -> Active {
        Active {
            index: None,
            file: None,
            file_length: u64::from(plan.size),
            tail: None,
            plan,
        }
    }
}
