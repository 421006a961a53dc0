//! Counters of one core's storage: plain integers, added up by whoever scrapes.

/// Totals since the start, and gauges (the last four).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Batches given offsets, and their bytes.
    pub appended_batches: u64,
    pub appended_bytes: u64,
    /// Appends refused by idempotence, answered as duplicates, failed for want of space, failed otherwise.
    pub refused_batches: u64,
    pub duplicate_batches: u64,
    pub full_failures: u64,
    pub io_failures: u64,
    /// Writes to segments, and bytes written by them (padding and repeated blocks included).
    pub writes: u64,
    pub written_bytes: u64,
    /// Forced writes: fdatasync calls and durable writes.
    pub syncs: u64,
    /// Reads answered from memory alone, and those that touched a file.
    pub memory_reads: u64,
    pub file_reads: u64,
    /// Bytes handed out by reads, by where they lie.
    pub memory_bytes: u64,
    pub file_bytes: u64,
    /// Bytes read from files to find positions.
    pub lookup_bytes: u64,
    pub cache_evictions: u64,
    pub rolls: u64,
    /// Segments whose batches were checked one by one at open, bytes checked, bytes cut off as torn or foreign.
    pub recovered_segments: u64,
    pub recovered_bytes: u64,
    pub truncated_bytes: u64,
    /// Indexes rebuilt because they were missing or wrong.
    pub rebuilt_indexes: u64,
    /// Logs that went to rest: files closed, space given back.
    pub rests: u64,
    pub cache_bytes: u64,
    pub index_cache_bytes: u64,
    pub open_read_files: u64,
    pub busy_logs: u64,
}
