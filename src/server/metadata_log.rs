//! `__cluster_metadata-0` on disk: an ordinary log of this node whose every write is durable before
//! it counts, and the small files beside it.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use bytes::{Bytes, BytesMut};
use planted::Bug;
use protocol::Pieces;
use shards::io::dir;
use storage::{
    AppendOrigin, Log, LogConfig, OpenOptions, Piece, ReadLimits, Shutdown, Storage, StorageError,
    TopicPartition,
};

use super::ballast::Ballast;
use super::hosted;
use super::inventory::LogDirectory;
use crate::config::BrokerConfig;
use crate::controller::{LogFuture, MetadataLog, MetadataLogError, StoredFile};

/// Name of the topic.
const TOPIC: &str = "__cluster_metadata";
/// Bytes read at a time while replaying.
const READ_BYTES: u32 = 1 << 20;
/// Largest snapshot that is read.
const FILE_BYTES_MAX: usize = 1 << 30;

/// The log, on the core of the controller.
pub struct MetadataLogFile {
    storage: Storage,
    log: Log,
    ballast: Ballast,
}

impl MetadataLogFile {
    /// Opens the log in the metadata directory.
    ///
    /// # Errors
    /// I/O errors, or a log that cannot be recovered.
    pub async fn open(
        storage: &Storage,
        config: &BrokerConfig,
        directories: &[LogDirectory],
    ) -> Result<Self, StorageError> {
        let directory = &config.storage.metadata_log_dir;
        let clean = directories
            .iter()
            .any(|it| it.path == *directory && it.clean);
        let settings = LogConfig {
            segment_bytes: config.metadata_log.segment_bytes,
            segment_ms: config.metadata_log.segment_ms,
            flush_messages: match planted::here(Bug::MetadataNotDurable) {
                true => i64::MAX,
                false => 1,
            },
            ..LogConfig::default()
        };
        let options = OpenOptions {
            partition: TopicPartition::new(TOPIC, 0),
            topic_id: Some(METADATA_TOPIC_ID),
            topic_id_seen: false,
            config: Rc::new(settings),
            shutdown: match clean {
                true => Shutdown::Clean,
                false => Shutdown::Unclean { recovery_point: 0 },
            },
            log_start_offset: 0,
        };
        let ballast = Ballast::new(storage.core(), directory);
        let opened = match Log::open(storage, directory, options.clone()).await {
            Err(StorageError::Full { .. }) if ballast.release().await => {
                Log::open(storage, directory, options).await
            }
            opened => opened,
        };
        let (log, report) = opened?;
        hosted::tell(log.partition(), &report);
        Ok(MetadataLogFile {
            storage: storage.clone(),
            log,
            ballast,
        })
    }

    /// Leaves the log as a clean stop must.
    ///
    /// # Errors
    /// The disk's.
    pub async fn close(&self) -> Result<(), StorageError> {
        self.log.close().await
    }

    fn path(&self, name: &str) -> PathBuf {
        self.log.directory().join(name)
    }

    async fn read_batches(&self, offset: i64) -> Result<Bytes, MetadataLogError> {
        let limits = ReadLimits {
            max_bytes: READ_BYTES,
            up_to_offset: i64::MAX,
            whole_first_batch: true,
        };
        let found = self.log.read(offset, limits).await.map_err(failed)?;
        let mut bytes = BytesMut::with_capacity(found.bytes as usize);
        for piece in found.pieces {
            match piece {
                Piece::Memory(part) => bytes.extend_from_slice(&part),
                Piece::File { file, offset, len } => {
                    let read = file
                        .read_exact_at(self.storage.core(), offset, len as usize)
                        .await;
                    bytes.extend_from_slice(&read.map_err(failed)?);
                }
            }
        }
        Ok(bytes.freeze())
    }

    async fn append_batches(
        &self,
        batches: Vec<Bytes>,
        epoch: i32,
    ) -> Result<(), MetadataLogError> {
        match self.append_once(&batches, epoch).await {
            Err(MetadataLogError::Full(_)) if self.ballast.release().await => {
                self.append_once(&batches, epoch).await
            }
            done => done,
        }
    }

    async fn append_once(&self, batches: &[Bytes], epoch: i32) -> Result<(), MetadataLogError> {
        let ticket = self
            .log
            .append(batches, epoch, AppendOrigin::Coordinator)
            .map_err(failed)?;
        ticket.await.map_err(refused)
    }

    async fn put_file(&self, path: &Path, content: Vec<Bytes>) -> Result<(), MetadataLogError> {
        let core = self.storage.core();
        let mut done = dir::write_pieces_atomic(core, path, content.clone()).await;
        if done
            .as_ref()
            .is_err_and(|error| error.kind() == ErrorKind::StorageFull)
            && self.ballast.release().await
        {
            done = dir::write_pieces_atomic(core, path, content).await;
        }
        done.map_err(|error| failed(format!("write {}: {error}", path.display())))
    }

    /// What keeps a full disk from refusing the changes that would make space.
    pub fn ballast(&self) -> &Ballast {
        &self.ballast
    }

    async fn list_files(&self) -> Result<Vec<StoredFile>, MetadataLogError> {
        let directory = self.log.directory();
        let entries = dir::read_dir(self.storage.core(), &directory)
            .await
            .map_err(|error| failed(format!("list {}: {error}", directory.display())))?;
        let files = entries
            .into_iter()
            .filter(|entry| entry.kind == dir::FileKind::File);
        Ok(files
            .map(|entry| StoredFile {
                name: entry.name.to_string_lossy().into_owned(),
                bytes: entry.len,
            })
            .collect())
    }
}

/// The id of the metadata topic, the same in every cluster.
const METADATA_TOPIC_ID: protocol::Uuid = protocol::Uuid::ONE;

fn failed(error: impl std::fmt::Display) -> MetadataLogError {
    MetadataLogError::Failed(error.to_string())
}

fn refused(error: StorageError) -> MetadataLogError {
    match error {
        StorageError::Full { .. } => MetadataLogError::Full(error.to_string()),
        other => failed(other),
    }
}

impl MetadataLog for MetadataLogFile {
    fn start_offset(&self) -> i64 {
        self.log.log_start_offset()
    }

    fn end_offset(&self) -> i64 {
        self.log.log_end_offset()
    }

    fn size_bytes(&self) -> u64 {
        self.log.size_bytes()
    }

    fn append(&self, batches: Vec<Bytes>, epoch: i32) -> LogFuture<'_, ()> {
        Box::pin(self.append_batches(batches, epoch))
    }

    fn read(&self, offset: i64) -> LogFuture<'_, Bytes> {
        Box::pin(self.read_batches(offset))
    }

    fn delete_before(&self, offset: i64) -> LogFuture<'_, ()> {
        Box::pin(async move { self.log.trim(offset).await.map(drop).map_err(failed) })
    }

    fn start_over(&self, offset: i64) -> LogFuture<'_, ()> {
        Box::pin(async move { self.log.reset_to(offset).await.map_err(failed) })
    }

    fn files(&self) -> LogFuture<'_, Vec<StoredFile>> {
        Box::pin(self.list_files())
    }

    fn read_file(&self, name: &str) -> LogFuture<'_, Option<Pieces>> {
        let path = self.path(name);
        Box::pin(async move {
            match dir::read_pieces(self.storage.core(), &path, FILE_BYTES_MAX).await {
                Ok(content) => Ok(Some(content.into())),
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
                Err(error) => Err(failed(format!("read {}: {error}", path.display()))),
            }
        })
    }

    fn write_file(&self, name: &str, content: Vec<Bytes>) -> LogFuture<'_, ()> {
        let path = self.path(name);
        Box::pin(async move { self.put_file(&path, content).await })
    }

    fn remove_file(&self, name: &str) -> LogFuture<'_, ()> {
        let path = self.path(name);
        Box::pin(async move {
            dir::remove_file(self.storage.core(), &path)
                .await
                .map_err(|error| failed(format!("remove {}: {error}", path.display())))
        })
    }
}
