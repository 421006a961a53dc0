//! `__cluster_metadata-0` on disk: an ordinary log of this node whose every write is durable before
//! it counts, and the small files beside it.

use std::path::PathBuf;
use std::rc::Rc;

use bytes::{Bytes, BytesMut};
use protocol::records::{BatchView, split_batches};
use shards::io::dir;
use storage::{
    AppendOrigin, Log, LogConfig, OpenOptions, Piece, ReadLimits, Shutdown, Storage, StorageError,
    TopicPartition,
};

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
            flush_messages: 1,
            ..LogConfig::default()
        };
        let options = OpenOptions {
            partition: TopicPartition::new(TOPIC, 0),
            topic_id: Some(METADATA_TOPIC_ID),
            config: Rc::new(settings),
            shutdown: match clean {
                true => Shutdown::Clean,
                false => Shutdown::Unclean { recovery_point: 0 },
            },
            log_start_offset: 0,
        };
        let (log, report) = Log::open(storage, directory, options).await?;
        hosted::tell(log.partition(), &report);
        Ok(MetadataLogFile {
            storage: storage.clone(),
            log,
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

    async fn append_batches(&self, batches: Bytes, epoch: i32) -> Result<(), MetadataLogError> {
        let batches: Result<Vec<Bytes>, _> = split_batches(batches)
            .map(|batch| batch.map(BatchView::into_bytes))
            .collect();
        let batches = batches.map_err(failed)?;
        let ticket = self
            .log
            .append(&batches, epoch, AppendOrigin::Coordinator)
            .map_err(failed)?;
        ticket.await.map_err(failed)
    }

    async fn list_files(&self) -> Result<Vec<StoredFile>, MetadataLogError> {
        let entries = dir::read_dir(self.storage.core(), &self.log.directory())
            .await
            .map_err(failed)?;
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
    MetadataLogError(error.to_string())
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

    fn append(&self, batches: Bytes, epoch: i32) -> LogFuture<'_, ()> {
        Box::pin(self.append_batches(batches, epoch))
    }

    fn read(&self, offset: i64) -> LogFuture<'_, Bytes> {
        Box::pin(self.read_batches(offset))
    }

    fn delete_before(&self, offset: i64) -> LogFuture<'_, ()> {
        Box::pin(async move { self.log.trim(offset).await.map(drop).map_err(failed) })
    }

    fn files(&self) -> LogFuture<'_, Vec<StoredFile>> {
        Box::pin(self.list_files())
    }

    fn read_file(&self, name: &str) -> LogFuture<'_, Option<Bytes>> {
        let path = self.path(name);
        Box::pin(async move {
            match dir::read_file(self.storage.core(), &path, FILE_BYTES_MAX).await {
                Ok(content) => Ok(Some(content)),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(MetadataLogError(format!(
                    "read {}: {error}",
                    path.display()
                ))),
            }
        })
    }

    fn write_file(&self, name: &str, content: Bytes) -> LogFuture<'_, ()> {
        let path = self.path(name);
        Box::pin(async move {
            dir::write_file_atomic(self.storage.core(), &path, content)
                .await
                .map_err(|error| MetadataLogError(format!("write {}: {error}", path.display())))
        })
    }

    fn remove_file(&self, name: &str) -> LogFuture<'_, ()> {
        let path = self.path(name);
        Box::pin(async move {
            dir::remove_file(self.storage.core(), &path)
                .await
                .map_err(|error| MetadataLogError(format!("remove {}: {error}", path.display())))
        })
    }
}
