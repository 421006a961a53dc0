//! A log directory (one disk): its lock, its checkpoint files, its clean marker, and the partitions found in it.
//!
//! Several cores share a disk. These are functions over plain data: the caller gathers what all cores say and writes
//! it in one place. Every file is replaced as a whole, durably.

use crate::checkpoint;
use crate::error::StorageError;
use crate::log::METADATA_FILE;
use crate::names::{DirectoryKind, TopicPartition, directory_kind};
use bytes::Bytes;
use protocol::{Pieces, Uuid};
use shards::Core;
use shards::io::dir::{self, FileLock};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The offset checkpoints of a log directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checkpoint {
    /// Everything below is durable.
    RecoveryPoint,
    /// The start of logs that begin above their first segment.
    LogStartOffset,
    /// High watermarks.
    Replication,
    /// How far the cleaner came.
    Cleaner,
}

impl Checkpoint {
    pub fn file_name(self) -> &'static str {
        match self {
            Checkpoint::RecoveryPoint => "recovery-point-offset-checkpoint",
            Checkpoint::LogStartOffset => "log-start-offset-checkpoint",
            Checkpoint::Replication => "replication-offset-checkpoint",
            Checkpoint::Cleaner => "cleaner-offset-checkpoint",
        }
    }
}

const PROBE_FILE: &str = ".ringmain-probe";
const PROBE_BYTES: usize = 4096;
const CLEAN_MARKER: &str = ".kafka_cleanshutdown";
const LOCK_FILE: &str = ".lock";
const CHECKPOINT_BYTES_MAX: usize = 256 << 20;

/// Makes the entries of a directory durable.
pub(crate) async fn sync_directory(core: &Core, directory: &Path) -> Result<(), StorageError> {
    dir::sync_dir(core, directory)
        .await
        .map_err(|error| StorageError::io("fsync", directory, error))
}

/// Takes `.lock`, held until the answer is dropped.
///
/// # Errors
/// `Io` of kind `WouldBlock` where another broker has it.
pub async fn lock(core: &Core, log_directory: &Path) -> Result<FileLock, StorageError> {
    let path = log_directory.join(LOCK_FILE);
    dir::lock_file(core, &path)
        .await
        .map_err(|error| StorageError::io("lock", &path, error))
}

/// Reads a checkpoint. A missing file has no entries.
///
/// # Errors
/// `Corrupt` names the line.
pub async fn read_checkpoint(
    core: &Core,
    log_directory: &Path,
    which: Checkpoint,
) -> Result<BTreeMap<TopicPartition, i64>, StorageError> {
    let path = log_directory.join(which.file_name());
    match dir::read_pieces(core, &path, CHECKPOINT_BYTES_MAX).await {
        Ok(text) => checkpoint::decode_offsets(&mut Pieces::from(text))
            .map_err(|fault| StorageError::corrupt(&path, fault.line as u64, fault.to_string())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(BTreeMap::new()),
        Err(error) => Err(StorageError::io("read", &path, error)),
    }
}

/// Replaces a checkpoint.
///
/// # Errors
/// I/O errors; the old file is then still there.
pub async fn write_checkpoint(
    core: &Core,
    log_directory: &Path,
    which: Checkpoint,
    offsets: &BTreeMap<TopicPartition, i64>,
) -> Result<(), StorageError> {
    let path = log_directory.join(which.file_name());
    let pieces = checkpoint::encode_offsets(offsets.iter().map(|(at, offset)| (at, *offset)));
    dir::write_pieces_atomic(core, &path, pieces)
        .await
        .map_err(|error| StorageError::io("write", &path, error))
}

/// The clean-shutdown marker: `None` where it is missing, else the broker epoch in it, if any (KIP-966).
///
/// # Errors
/// I/O errors.
pub async fn read_clean_marker(
    core: &Core,
    log_directory: &Path,
) -> Result<Option<Option<i64>>, StorageError> {
    let text = read_text(core, &log_directory.join(CLEAN_MARKER)).await?;
    Ok(text.map(|text| checkpoint::decode_clean_shutdown(&text)))
}

/// Writes the marker: the last act of a clean stop, after every log of the directory closed without error.
///
/// # Errors
/// I/O errors.
pub async fn write_clean_marker(
    core: &Core,
    log_directory: &Path,
    broker_epoch: i64,
) -> Result<(), StorageError> {
    let text = checkpoint::encode_clean_shutdown(broker_epoch);
    write(core, &log_directory.join(CLEAN_MARKER), text).await
}

/// Removes the marker, durably: before the first log of the directory changes.
///
/// # Errors
/// I/O errors.
pub async fn remove_clean_marker(core: &Core, log_directory: &Path) -> Result<(), StorageError> {
    let path = log_directory.join(CLEAN_MARKER);
    match dir::remove_file(core, &path).await {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(StorageError::io("remove", &path, error)),
    }
    sync_directory(core, log_directory).await
}

/// A directory below a log directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundDirectory {
    pub path: PathBuf,
    pub kind: DirectoryKind,
}

/// All directories below a log directory, by name.
///
/// # Errors
/// I/O errors.
pub async fn list(
    core: &Core,
    log_directory: &Path,
) -> Result<impl Iterator<Item = FoundDirectory>, StorageError> {
    let names = dir::read_names(core, log_directory)
        .await
        .map_err(|error| StorageError::io("list", log_directory, error))?;
    let directories = names
        .into_iter()
        .filter(|(_, kind)| *kind == dir::FileKind::Directory);
    Ok(directories.map(move |(name, _)| FoundDirectory {
        path: log_directory.join(&name),
        kind: directory_kind(&name.to_string_lossy()),
    }))
}

/// The topic id in a partition's directory; `None` where there is no `partition.metadata`.
///
/// # Errors
/// `Corrupt` where the file says no id.
pub async fn read_topic_id(core: &Core, directory: &Path) -> Result<Option<Uuid>, StorageError> {
    let path = directory.join(METADATA_FILE);
    let read = dir::read_file(core, &path, CHECKPOINT_BYTES_MAX).await;
    topic_id_in(&path, read)
}

fn topic_id_in(path: &Path, read: std::io::Result<Bytes>) -> Result<Option<Uuid>, StorageError> {
    let Some(text) = text_of(path, read)? else {
        return Ok(None);
    };
    checkpoint::decode_partition_metadata(&text)
        .map(Some)
        .map_err(|fault| StorageError::corrupt(path, fault.line as u64, fault.to_string()))
}

/// [`read_topic_id`] for several directories, in their order, in one visit of the pool for what blocks.
pub async fn read_topic_ids(
    core: &Core,
    directories: impl Iterator<Item = &Path>,
) -> Vec<Result<Option<Uuid>, StorageError>> {
    let paths: Vec<PathBuf> = directories.map(|it| it.join(METADATA_FILE)).collect();
    let read = dir::read_files(core, paths.clone(), CHECKPOINT_BYTES_MAX).await;
    let each = paths.into_iter().zip(read);
    each.map(|(path, read)| topic_id_in(&path, read)).collect()
}

/// Sets a directory that metadata does not know aside as `-stray`, durably. Answers its new path.
///
/// # Errors
/// I/O errors.
pub async fn set_stray(
    core: &Core,
    log_directory: &Path,
    partition: &TopicPartition,
) -> Result<PathBuf, StorageError> {
    let unique = core.random_u128();
    set_aside(core, log_directory, partition, partition.stray_name(unique)).await
}

async fn set_aside(
    core: &Core,
    log_directory: &Path,
    partition: &TopicPartition,
    name: String,
) -> Result<PathBuf, StorageError> {
    let from = log_directory.join(partition.directory_name());
    let to = log_directory.join(name);
    dir::rename(core, &from, &to)
        .await
        .map_err(|error| StorageError::io("rename", &from, error))?;
    sync_directory(core, log_directory).await?;
    Ok(to)
}

/// Renames the directory of a partition that could not be opened to `-delete`, durably. Answers its new path.
///
/// # Errors
/// I/O errors.
pub async fn set_deleted(
    core: &Core,
    log_directory: &Path,
    partition: &TopicPartition,
) -> Result<PathBuf, StorageError> {
    let unique = core.random_u128();
    set_aside(
        core,
        log_directory,
        partition,
        partition.delete_name(unique),
    )
    .await
}

/// Removes a `-delete` directory and all in it.
///
/// # Errors
/// I/O errors; a directory that is gone already is none.
pub async fn remove_deleted(core: &Core, directory: &Path) -> Result<(), StorageError> {
    match dir::remove_dir_all(core, directory).await {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(StorageError::io("remove", directory, error))
        }
        _ => Ok(()),
    }
}

/// Asks a log directory whether it still works, by a small durable write. A full one does.
///
/// # Errors
/// I/O errors: whoever keeps logs there should take them all out of service.
pub async fn probe(core: &Core, log_directory: &Path) -> Result<(), StorageError> {
    let path = log_directory.join(PROBE_FILE);
    let written = dir::write_file_atomic(core, &path, Bytes::from(vec![0; PROBE_BYTES])).await;
    let removed = match written {
        Ok(()) => dir::remove_file(core, &path).await,
        Err(error) => Err(error),
    };
    match removed.map_err(|error| StorageError::io("write", &path, error)) {
        Err(StorageError::Full { .. }) => Ok(()),
        result => result,
    }
}

async fn read_text(core: &Core, path: &Path) -> Result<Option<String>, StorageError> {
    text_of(path, dir::read_file(core, path, CHECKPOINT_BYTES_MAX).await)
}

fn text_of(path: &Path, read: std::io::Result<Bytes>) -> Result<Option<String>, StorageError> {
    match read {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StorageError::io("read", path, error)),
    }
}

async fn write(core: &Core, path: &Path, text: String) -> Result<(), StorageError> {
    dir::write_file_atomic(core, path, Bytes::from(text))
        .await
        .map_err(|error| StorageError::io("write", path, error))
}
