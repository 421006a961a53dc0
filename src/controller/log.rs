//! What the controller needs of `__cluster_metadata-0`: a log whose every append is durable, and
//! the small files beside it.

use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;
use protocol::Pieces;

/// An operation on the log. Operations are called one after the other, except reads.
pub type LogFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, MetadataLogError>> + 'a>>;

/// The disk refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MetadataLogError {
    /// There is no space. Nothing was written; the next append may find some.
    #[error("metadata log: {0}")]
    Full(String),
    /// Anything else. After a failed append nobody knows what stands in the log.
    #[error("metadata log: {0}")]
    Failed(String),
}

/// A file beside the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredFile {
    pub name: String,
    pub bytes: u64,
}

/// `__cluster_metadata-0` of this node.
pub trait MetadataLog {
    /// First offset that can be read.
    fn start_offset(&self) -> i64;

    /// Offset of the next record.
    fn end_offset(&self) -> i64;

    /// Bytes of all segments.
    fn size_bytes(&self) -> u64;

    /// Appends whole batches that begin at [`Self::end_offset`] and bear `epoch`. They are durable
    /// when the future is done (`RWF_DSYNC` on the file written).
    fn append(&self, batches: Vec<Bytes>, epoch: i32) -> LogFuture<'_, ()>;

    /// Whole batches from the one that holds `offset` on, at least one, a bounded amount.
    fn read(&self, offset: i64) -> LogFuture<'_, Bytes>;

    /// Deletes segments whose records all lie below `offset`, and begins the log there.
    fn delete_before(&self, offset: i64) -> LogFuture<'_, ()>;

    /// Removes all of the log and begins it anew, empty, at `offset`.
    fn start_over(&self, offset: i64) -> LogFuture<'_, ()>;

    /// All plain files of the log's directory.
    fn files(&self) -> LogFuture<'_, Vec<StoredFile>>;

    /// Content of such a file; `None` if there is none.
    fn read_file(&self, name: &str) -> LogFuture<'_, Option<Pieces>>;

    /// Puts a file in place as a whole, durably, its directory entry too.
    fn write_file(&self, name: &str, content: Vec<Bytes>) -> LogFuture<'_, ()>;

    /// Removes a file.
    fn remove_file(&self, name: &str) -> LogFuture<'_, ()>;
}
