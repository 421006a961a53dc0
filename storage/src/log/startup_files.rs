//! What a crash may have left in a partition's directory, put in order before its segments are opened
//! (Kafka: LogLoader.load, the first three passes).

use super::close::EPOCHS_FILE;
use super::recovery::RecoveryReport;
use crate::error::StorageError;
use crate::names::{FileKind, FileStage, file_name, parse_file_name};
use crate::segment::reader::{FileSource, LOOKUP_WINDOW, Walk};
use shards::Core;
use shards::io::dir::{self, DirEntry};
use shards::io::{File, OpenOptions};
use std::collections::BTreeMap;
use std::path::Path;

/// The files of a directory that count, by base offset.
#[derive(Debug, Default)]
pub(crate) struct SegmentFiles {
    /// Length of `.log`, of `.index` and of `.timeindex`, where they exist.
    pub segments: BTreeMap<i64, FileLengths>,
    /// Offsets of the producer snapshots, with their lengths.
    pub snapshots: BTreeMap<i64, u64>,
    /// Length of the leader epochs' file, where it exists.
    pub epochs: Option<u64>,
}

#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct FileLengths {
    pub log: u64,
    pub offset_index: Option<u64>,
    pub time_index: Option<u64>,
}

impl FileLengths {
    /// A segment without batches, with both its indexes.
    pub fn is_empty(&self) -> bool {
        self.log == 0 && self.offset_index == Some(0) && self.time_index == Some(0)
    }
}

/// Finishes or undoes interrupted deletions, cleanings and swaps, removes orphans, and lists what is left.
pub(crate) async fn put_in_order(
    core: &Core,
    directory: &Path,
    report: &mut RecoveryReport,
) -> Result<SegmentFiles, StorageError> {
    let mut entries = list(core, directory).await?;
    let staged = entries.iter().any(|entry| {
        parse_file_name(&entry.name.to_string_lossy())
            .is_some_and(|(_, _, stage)| stage != FileStage::Live)
    });
    if staged {
        finish_stages(core, directory, &entries, report).await?;
        entries = list(core, directory).await?;
    }
    let mut files = SegmentFiles::default();
    let mut orphans = Vec::new();
    for entry in &entries {
        let name = entry.name.to_string_lossy();
        if let Some((offset, FileKind::Log, FileStage::Live)) = parse_file_name(&name) {
            files.segments.entry(offset).or_default().log = entry.len;
        }
    }
    for entry in &entries {
        let name = entry.name.to_string_lossy();
        if name == EPOCHS_FILE {
            files.epochs = Some(entry.len);
        }
        let Some((offset, kind, FileStage::Live)) = parse_file_name(&name) else {
            continue;
        };
        match (kind, files.segments.get_mut(&offset)) {
            (FileKind::Log, _) => {}
            (FileKind::ProducerSnapshot, _) => drop(files.snapshots.insert(offset, entry.len)),
            (FileKind::OffsetIndex, Some(lengths)) => lengths.offset_index = Some(entry.len),
            (FileKind::TimeIndex, Some(lengths)) => lengths.time_index = Some(entry.len),
            (FileKind::TransactionIndex, Some(_)) => {}
            (_, None) => orphans.push(name.into_owned()),
        }
    }
    for name in orphans {
        remove(core, directory, &name, report).await?;
    }
    Ok(files)
}

async fn list(core: &Core, directory: &Path) -> Result<Vec<DirEntry>, StorageError> {
    let entries = dir::read_dir(core, directory)
        .await
        .map_err(|error| StorageError::io("list", directory, error))?;
    Ok(entries
        .into_iter()
        .filter(|entry| entry.kind == dir::FileKind::File)
        .collect())
}

pub(crate) async fn remove(
    core: &Core,
    directory: &Path,
    name: &str,
    report: &mut RecoveryReport,
) -> Result<(), StorageError> {
    let path = directory.join(name);
    match dir::remove_file(core, &path).await {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(StorageError::io("remove", &path, error)),
    }
    report.removed_files.push(name.to_owned());
    Ok(())
}

/// `.deleted` go; `.cleaned` go, and with them the `.swap` of a split that did not finish; other `.swap` take the place
/// of the segments they stand for.
async fn finish_stages(
    core: &Core,
    directory: &Path,
    entries: &[DirEntry],
    report: &mut RecoveryReport,
) -> Result<(), StorageError> {
    let names: Vec<String> = entries
        .iter()
        .map(|entry| entry.name.to_string_lossy().into_owned())
        .collect();
    let staged = |wanted: FileStage| {
        names.iter().filter_map(move |name| {
            let (offset, kind, stage) = parse_file_name(name)?;
            (stage == wanted).then_some((name, offset, kind))
        })
    };
    let cleaned_from = staged(FileStage::Cleaned)
        .map(|(_, offset, _)| offset)
        .min();
    for (name, _, _) in staged(FileStage::Deleted).chain(staged(FileStage::Cleaned)) {
        remove(core, directory, name, report).await?;
    }
    let mut swaps = Vec::new();
    for (name, offset, kind) in staged(FileStage::Swap) {
        if cleaned_from.is_some_and(|from| offset >= from) {
            remove(core, directory, name, report).await?;
        } else {
            swaps.push((name, offset, kind));
        }
    }
    let mut replaced: Option<(i64, i64)> = None;
    for (name, offset, kind) in &swaps {
        if *kind == FileKind::Log {
            let end = next_offset(core, &directory.join(name), *offset).await?;
            let (from, to) = replaced.unwrap_or((*offset, end));
            replaced = Some((from.min(*offset), to.max(end)));
        }
    }
    if let Some((from, to)) = replaced {
        for name in &names {
            if let Some((offset, _, FileStage::Live)) = parse_file_name(name)
                && (from..to).contains(&offset)
            {
                remove(core, directory, name, report).await?;
            }
        }
    }
    for (name, offset, kind) in swaps {
        let from = directory.join(name);
        dir::rename(core, &from, &directory.join(file_name(offset, kind)))
            .await
            .map_err(|error| StorageError::io("rename", &from, error))?;
    }
    Ok(())
}

/// Offset behind the last whole batch of a segment file; its base where it has none.
async fn next_offset(core: &Core, path: &Path, base_offset: i64) -> Result<i64, StorageError> {
    let failed = |error| StorageError::io("read", path, error);
    let file = File::open(core, path, &OpenOptions::reading())
        .await
        .map_err(failed)?;
    let length = u32::try_from(file.len(core).await.map_err(failed)?).unwrap_or(u32::MAX);
    let source = FileSource {
        core,
        file: &file,
        path,
    };
    let mut walk = Walk::new(&source, 0, length, LOOKUP_WINDOW);
    let mut next = base_offset;
    while let Ok(Some(placed)) = walk.next().await {
        next = placed.header.last_offset + 1;
    }
    Ok(next)
}
