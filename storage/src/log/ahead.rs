//! What a clean open wants of a directory's files, read in one go.
//!
//! On a cold disk each file is a wait, and each visit of the pool for what blocks costs as much as reading a small file. So the
//! small parts that a log closed cleanly is opened by are read together as soon as their lengths are known. It is a cache and
//! nothing more: what is not in here, for whatever reason, is read where it is needed, and whoever does says what is wrong.

use super::close::EPOCHS_FILE;
use super::open::Shutdown;
use super::recovery::open_segment;
use super::startup_files::SegmentFiles;
use crate::error::StorageError;
use crate::names::{FileKind, file_name};
use crate::segment::index::{OFFSET_ENTRY, TIME_ENTRY};
use crate::segment::reader::{FileSource, LOOKUP_WINDOW, Source};
use bytes::Bytes;
use shards::Core;
use shards::io::File;
use shards::io::dir::{self, Part};
use std::path::{Path, PathBuf};

/// No file, and no part of one, is read ahead that is longer. A window's worth of the log's end is one.
const PART_BYTES_MAX: u64 = LOOKUP_WINDOW as u64;

/// Parts of files, by name.
#[derive(Debug, Default)]
pub(crate) struct Ahead(Vec<(String, u64, Bytes)>);

impl Ahead {
    /// After a clean stop the epochs, the newest snapshot, and the ends of the last segment and of its indexes. After a crash
    /// all of that is read as a whole, and changed.
    pub async fn of(
        core: &Core,
        directory: &Path,
        files: &SegmentFiles,
        shutdown: Shutdown,
    ) -> Ahead {
        match shutdown {
            Shutdown::Clean => Ahead::read(core, directory, files).await,
            Shutdown::Unclean { .. } => Ahead::default(),
        }
    }

    async fn read(core: &Core, directory: &Path, files: &SegmentFiles) -> Ahead {
        let wanted = wanted(files);
        let parts = wanted.iter().map(|(name, offset, len)| Part {
            path: directory.join(name),
            offset: *offset,
            len: *len as usize,
        });
        let read = dir::read_parts(core, parts.collect()).await;
        let found = wanted.into_iter().zip(read);
        let found = found.filter_map(|((name, at, _), read)| Some((name, at, read.ok()?)));
        Ahead(found.collect())
    }

    /// Where the part of the file begins, and what it holds.
    pub fn get(&self, name: &str) -> Option<(u64, &Bytes)> {
        let found = self.0.iter().find(|(found, ..)| found == name);
        found.map(|(_, at, bytes)| (*at, bytes))
    }
}

/// Name, position and length of each part.
fn wanted(files: &SegmentFiles) -> Vec<(String, u64, u64)> {
    let mut wanted = Vec::new();
    let mut whole = |name: String, len: u64| {
        if len <= PART_BYTES_MAX {
            wanted.push((name, 0, len));
        }
    };
    if let Some(len) = files.epochs {
        whole(EPOCHS_FILE.to_owned(), len);
    }
    if let Some((offset, len)) = files.snapshots.last_key_value() {
        whole(file_name(*offset, FileKind::ProducerSnapshot), *len);
    }
    let Some((base, lengths)) = files.segments.last_key_value() else {
        return wanted;
    };
    let mut end = |kind, length: u64, most: u64| {
        let len = length.min(most);
        wanted.push((file_name(*base, kind), length - len, len));
    };
    end(FileKind::Log, lengths.log, PART_BYTES_MAX);
    let indexes = [
        (FileKind::OffsetIndex, lengths.offset_index, OFFSET_ENTRY),
        (FileKind::TimeIndex, lengths.time_index, TIME_ENTRY),
    ];
    for (kind, length, entry) in indexes {
        if let Some(length) = length.filter(|length| *length > 0) {
            end(kind, length, entry as u64);
        }
    }
    wanted
}

/// A segment from some position on: its end that was read ahead, or its file where that does not reach back far enough.
pub(crate) enum EndSource<'a> {
    Ahead {
        path: &'a Path,
        /// Where the end begins.
        at: u64,
        bytes: Bytes,
    },
    File {
        core: &'a Core,
        path: &'a Path,
        file: File,
    },
}

impl<'a> EndSource<'a> {
    pub async fn open(
        core: &'a Core,
        path: &'a Path,
        end: Option<(u64, &Bytes)>,
        from: u32,
    ) -> Result<EndSource<'a>, StorageError> {
        match end {
            Some((at, bytes)) if at <= u64::from(from) => Ok(EndSource::Ahead {
                path,
                at,
                bytes: bytes.clone(),
            }),
            _ => {
                let file = open_segment(core, path).await?;
                Ok(EndSource::File { core, path, file })
            }
        }
    }
}

impl Source for EndSource<'_> {
    async fn window(&self, position: u32, want: u32) -> Result<Bytes, StorageError> {
        match self {
            EndSource::Ahead { at, bytes, .. } => {
                let begin = (u64::from(position).saturating_sub(*at) as usize).min(bytes.len());
                let end = bytes.len().min(begin + want as usize);
                Ok(bytes.slice(begin..end))
            }
            EndSource::File { core, path, file } => {
                let source = FileSource { core, file, path };
                source.window(position, want).await
            }
        }
    }

    fn path(&self) -> PathBuf {
        let (EndSource::Ahead { path, .. } | EndSource::File { path, .. }) = self;
        path.to_path_buf()
    }
}
