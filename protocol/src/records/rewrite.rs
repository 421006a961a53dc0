//! What a leader writes into a batch that it accepts: in place, without touching the records.
//!
//! All functions take one whole v2 batch, whose header was parsed before.

use super::header::{
    ATTRIBUTES, Attributes, BASE_OFFSET, BATCH_OVERHEAD, CRC, MAX_TIMESTAMP,
    PARTITION_LEADER_EPOCH, TimestampType, compute_crc, get_i16,
};

/// Base offset and leader epoch; both lie outside the checksum. `batch` may be the header alone.
///
/// # Panics
/// If `batch` is shorter than a header: callers have parsed it.
pub fn assign(batch: &mut [u8], base_offset: i64, partition_leader_epoch: i32) {
    assert!(
        batch.len() >= BATCH_OVERHEAD,
        "a batch that was parsed has its header"
    );
    batch[BASE_OFFSET..BASE_OFFSET + 8].copy_from_slice(&base_offset.to_be_bytes());
    batch[PARTITION_LEADER_EPOCH..PARTITION_LEADER_EPOCH + 4]
        .copy_from_slice(&partition_leader_epoch.to_be_bytes());
}

/// Sets timestamp type and maximum timestamp, and the checksum if one of them changed. Base
/// timestamp and the records' deltas stay: readers take the maximum for all records where the type
/// is LogAppendTime. True if something changed.
///
/// # Panics
/// If `batch` is shorter than a header: callers have parsed it.
pub fn set_max_timestamp(
    batch: &mut [u8],
    timestamp_type: TimestampType,
    max_timestamp: i64,
) -> bool {
    assert!(
        batch.len() >= BATCH_OVERHEAD,
        "a batch that was parsed has its header"
    );
    let attributes = Attributes(get_i16(batch, ATTRIBUTES));
    let wanted = max_timestamp.to_be_bytes();
    if attributes.timestamp_type() == timestamp_type
        && batch[MAX_TIMESTAMP..MAX_TIMESTAMP + 8] == wanted
    {
        return false;
    }
    // Where Kafka writes the attributes, bits that it does not know are lost.
    let after = attributes.known().with_timestamp_type(timestamp_type);
    batch[ATTRIBUTES..ATTRIBUTES + 2].copy_from_slice(&after.0.to_be_bytes());
    batch[MAX_TIMESTAMP..MAX_TIMESTAMP + 8].copy_from_slice(&wanted);
    write_crc(batch);
    true
}

/// LogAppendTime: every record now has the broker's time, Unix milliseconds.
///
/// # Panics
/// If `batch` is shorter than a header: callers have parsed it.
pub fn set_log_append_time(batch: &mut [u8], now_ms: i64) {
    set_max_timestamp(batch, TimestampType::LogAppendTime, now_ms);
}

pub(crate) fn write_crc(batch: &mut [u8]) {
    let crc = compute_crc(batch);
    batch[CRC..CRC + 4].copy_from_slice(&crc.to_be_bytes());
}
