//! Counters of one core's storage: plain integers, added up by whoever scrapes.

use shards::metrics::Metric;

/// Totals since the start, and gauges (the last five).
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
    /// Writes to journals, their bytes (padding included), and frames for which there was no room.
    pub journal_writes: u64,
    pub journal_written_bytes: u64,
    pub journal_refusals: u64,
    /// Journals that could not be made, or failed.
    pub journal_failures: u64,
    pub cache_bytes: u64,
    pub index_cache_bytes: u64,
    pub open_read_files: u64,
    pub busy_logs: u64,
    pub journal_used_bytes: u64,
}

/// What the logs of a core tell of themselves.
pub const STORAGE_METRICS: &[Metric<Counters>] = shards::metrics! { Counters, "storage_":
    counter appended_batches "Batches given offsets.";
    counter appended_bytes "Bytes of batches given offsets.";
    counter refused_batches "Batches refused because their sequence did not fit.";
    counter duplicate_batches "Batches that were there already, answered with their offsets.";
    counter full_failures "Appends that failed because the disk was full.";
    counter io_failures "Appends that failed for another reason.";
    counter writes "Writes to segments.";
    counter written_bytes "Bytes written to segments, padding and repeated blocks included.";
    counter syncs "Forced writes.";
    counter memory_reads "Reads answered from memory alone.";
    counter file_reads "Reads that touched a file.";
    counter memory_bytes "Bytes handed out from memory.";
    counter file_bytes "Bytes handed out as ranges of files.";
    counter lookup_bytes "Bytes read from files to find positions.";
    counter cache_evictions "Recent writes dropped from memory to stay within the budget.";
    counter rolls "Segments begun.";
    counter recovered_segments "Segments checked batch by batch when they were opened.";
    counter recovered_bytes "Bytes checked batch by batch when logs were opened.";
    counter truncated_bytes "Bytes cut off as torn or foreign.";
    counter rebuilt_indexes "Indexes built anew because they were missing or wrong.";
    counter rests "Logs that went to rest: files closed, space given back.";
    counter journal_writes "Writes to journals.";
    counter journal_written_bytes "Bytes written to journals, padding included.";
    counter journal_refusals "Times that batches went to their segments because a journal had no room.";
    counter journal_failures "Journals that could not be made, or failed: their disk goes on without, at the cost of speed.";
    gauge cache_bytes "Bytes of recent writes kept in memory.";
    gauge index_cache_bytes "Bytes of indexes kept in memory.";
    gauge open_read_files "Segment files open for reading.";
    gauge busy_logs "Logs with open files or unwritten records.";
    gauge journal_used_bytes "Bytes of journals with batches that their segments may not have yet.";
};
