//! The records of `__remote_log_metadata`, which Kafka shows as the texts of its classes.

use bytes::Bytes;
use protocol::records::Record;
use protocol::stored::{
    RemoteLogSegmentMetadataRecord, RemoteLogSegmentMetadataSnapshotRecord,
    RemoteLogSegmentMetadataUpdateRecord, RemotePartitionDeleteMetadataRecord, TieredRecord,
};

/// What is shown instead where the record cannot be read begins with "Error".
pub(in crate::tools) fn show(record: &Record) -> String {
    let value = record.value.clone().unwrap_or_default();
    let skipping = |why: String| format!("Error at offset {}, skipping. {why}", record.offset);
    match TieredRecord::decode(value) {
        Ok((record, version)) => text(&record).unwrap_or_else(|| {
            skipping(format!("a type or version ({version}) that is not known"))
        }),
        Err(error) => skipping(error.to_string()),
    }
}

fn text(record: &TieredRecord) -> Option<String> {
    match record {
        TieredRecord::RemoteLogSegmentMetadata(segment) => segment_text(segment),
        TieredRecord::RemoteLogSegmentMetadataUpdate(update) => update_text(update),
        TieredRecord::RemotePartitionDeleteMetadata(delete) => delete_text(delete),
        TieredRecord::RemoteLogSegmentMetadataSnapshot(snapshot) => snapshot_text(snapshot),
        TieredRecord::Unknown(_) => None,
    }
}

fn segment_text(segment: &RemoteLogSegmentMetadataRecord) -> Option<String> {
    let id = &segment.remote_log_segment_id;
    let topic = &id.topic_id_partition;
    let epochs = segment.segment_leader_epochs.iter();
    Some(format!(
        "RemoteLogSegmentMetadata{{remoteLogSegmentId={}, startOffset={}, endOffset={}, brokerId={}, \
         maxTimestampMs={}, eventTimestampMs={}, segmentLeaderEpochs={}, segmentSizeInBytes={}, \
         customMetadata={}, state={}, txnIdxEmpty={}}}",
        segment_id(&partition(topic.id, &topic.name, topic.partition), id.id),
        segment.start_offset,
        segment.end_offset,
        segment.broker_id,
        segment.max_timestamp_ms,
        segment.event_timestamp_ms,
        leader_epochs(epochs.map(|one| (one.leader_epoch, one.offset))),
        segment.segment_size_in_bytes,
        custom_metadata(segment.custom_metadata.as_ref()),
        segment_state(segment.remote_log_segment_state)?,
        segment.txn_index_empty,
    ))
}

fn update_text(update: &RemoteLogSegmentMetadataUpdateRecord) -> Option<String> {
    let id = &update.remote_log_segment_id;
    let topic = &id.topic_id_partition;
    Some(format!(
        "RemoteLogSegmentMetadataUpdate{{remoteLogSegmentId={}, customMetadata={}, state={}, \
         eventTimestampMs={}, brokerId={}}}",
        segment_id(&partition(topic.id, &topic.name, topic.partition), id.id),
        custom_metadata(update.custom_metadata.as_ref()),
        segment_state(update.remote_log_segment_state)?,
        update.event_timestamp_ms,
        update.broker_id,
    ))
}

fn delete_text(delete: &RemotePartitionDeleteMetadataRecord) -> Option<String> {
    let topic = &delete.topic_id_partition;
    Some(format!(
        "RemotePartitionDeleteMetadata{{topicPartition={}, state={}, eventTimestampMs={}, brokerId={}}}",
        partition(topic.id, &topic.name, topic.partition),
        partition_state(delete.remote_partition_delete_state)?,
        delete.event_timestamp_ms,
        delete.broker_id,
    ))
}

fn snapshot_text(segment: &RemoteLogSegmentMetadataSnapshotRecord) -> Option<String> {
    let epochs = segment.segment_leader_epochs.iter();
    Some(format!(
        "RemoteLogSegmentMetadataSnapshot{{segmentId={}, startOffset={}, endOffset={}, maxTimestampMs={}, \
         segmentLeaderEpochs={}, segmentSizeInBytes={}, customMetadata={}, state={}, txnIdxEmpty={}}}",
        segment.segment_id,
        segment.start_offset,
        segment.end_offset,
        segment.max_timestamp_ms,
        leader_epochs(epochs.map(|one| (one.leader_epoch, one.offset))),
        segment.segment_size_in_bytes,
        custom_metadata(segment.custom_metadata.as_ref()),
        segment_state(segment.remote_log_segment_state)?,
        segment.txn_index_empty,
    ))
}

fn partition(topic_id: protocol::Uuid, topic: &str, partition: i32) -> String {
    format!("{topic_id}:{topic}-{partition}")
}

fn segment_id(partition: &str, id: protocol::Uuid) -> String {
    format!("RemoteLogSegmentId{{topicIdPartition={partition}, id={id}}}")
}

/// Kafka keeps them in a map by epoch.
fn leader_epochs(epochs: impl Iterator<Item = (i32, i64)>) -> String {
    let sorted: std::collections::BTreeMap<i32, i64> = epochs.collect();
    let pairs: Vec<String> = sorted
        .iter()
        .map(|(epoch, offset)| format!("{epoch}={offset}"))
        .collect();
    format!("{{{}}}", pairs.join(", "))
}

fn custom_metadata(bytes: Option<&Bytes>) -> String {
    match bytes {
        Some(bytes) => format!("Optional[CustomMetadata{{{} bytes}}]", bytes.len()),
        None => "Optional.empty".to_owned(),
    }
}

fn segment_state(state: i8) -> Option<&'static str> {
    Some(match state {
        0 => "COPY_SEGMENT_STARTED",
        1 => "COPY_SEGMENT_FINISHED",
        2 => "DELETE_SEGMENT_STARTED",
        3 => "DELETE_SEGMENT_FINISHED",
        _ => return None,
    })
}

fn partition_state(state: i8) -> Option<&'static str> {
    Some(match state {
        0 => "DELETE_PARTITION_MARKED",
        1 => "DELETE_PARTITION_STARTED",
        2 => "DELETE_PARTITION_FINISHED",
        _ => return None,
    })
}
