//! From the files of a stopped controller to its state: snapshot, log, `quorum-state`.

use bytes::Bytes;
use protocol::Pieces;

use super::log::{MetadataLog, MetadataLogError};
use crate::metadata::snapshot_file::{
    Checkpoint, FIRST_CHECKPOINT, SnapshotId, read_checkpoint, replay_snapshot,
};
use crate::metadata::{EntryError, QUORUM_STATE_FILE, QuorumState, Replay, read_entries};

/// The metadata cannot be read back.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    #[error(transparent)]
    Log(#[from] MetadataLogError),
    #[error("the metadata log is damaged at {0}")]
    Damaged(#[from] EntryError),
    #[error(
        "the metadata log begins at offset {start}, and no snapshot that can be read reaches so \
         far: restore the newest .checkpoint file of its directory"
    )]
    Gap { start: i64 },
    #[error(
        "the metadata log ends at offset {log_end}, but {file} held everything up to {end} and cannot be \
         read: {why}; restore it, or the log"
    )]
    LogCutShort {
        file: String,
        end: i64,
        log_end: i64,
        why: String,
    },
    #[error("{file} cannot be read: {error}")]
    Bootstrap { file: String, error: EntryError },
    #[error(
        "this node is not the only voter of its quorum ({voters}): a quorum of several is not \
         supported yet"
    )]
    OtherVoters { voters: String },
}

/// State of a stopped controller.
#[derive(Debug)]
pub(super) struct Loaded {
    pub replay: Replay,
    /// What `storage format` left, if it is still there.
    pub bootstrap: Option<Checkpoint>,
    pub quorum_state: Option<QuorumState>,
    /// Snapshots that could not be read, with the reason; an older one or the log stood in.
    pub skipped: Vec<String>,
    /// What was not as it should be and could be made good.
    pub mended: Vec<String>,
    /// Bytes of the log that were replayed behind the snapshot.
    pub log_bytes: u64,
}

/// Reads everything. `old_bootstrap` is `bootstrap.checkpoint`, which directories formatted before
/// Kafka 4.1 have one level up.
pub(super) async fn load(
    log: &dyn MetadataLog,
    old_bootstrap: Option<Bytes>,
) -> Result<Loaded, LoadError> {
    let files = log.files().await?;
    let mut ids: Vec<SnapshotId> = files
        .iter()
        .filter_map(|file| SnapshotId::from_file_name(&file.name))
        .collect();
    ids.sort_unstable();
    let bootstrap = match ids.first() {
        Some(&FIRST_CHECKPOINT) => {
            ids.remove(0);
            let file = FIRST_CHECKPOINT.file_name();
            let content = log.read_file(&file).await?.unwrap_or_default();
            Some(bootstrap_file(file, content)?)
        }
        _ => match old_bootstrap {
            Some(content) => {
                let file = crate::metadata::snapshot_file::BOOTSTRAP_CHECKPOINT.to_owned();
                Some(bootstrap_file(file, content.into())?)
            }
            None => None,
        },
    };
    let (mut skipped, mut mended) = (Vec::new(), Vec::new());
    let mut replay = newest_snapshot(log, &ids, &mut skipped, &mut mended).await?;
    let log_bytes = replay_log(log, &mut replay).await?;
    let quorum_state = quorum_state(log, &mut mended).await?;
    Ok(Loaded {
        replay,
        bootstrap,
        quorum_state,
        skipped,
        mended,
        log_bytes,
    })
}

/// `quorum-state`, if it can be read. Without it the log tells the epoch; a vote that it held could only have been for
/// this node, which runs as nothing but the only voter.
async fn quorum_state(
    log: &dyn MetadataLog,
    mended: &mut Vec<String>,
) -> Result<Option<QuorumState>, MetadataLogError> {
    let Some(text) = log.read_file(QUORUM_STATE_FILE).await? else {
        return Ok(None);
    };
    match QuorumState::from_json(&String::from_utf8_lossy(&text.concat())) {
        Ok(state) => Ok(Some(state)),
        Err(error) => {
            mended.push(format!("{error}; it is made anew from the log"));
            Ok(None)
        }
    }
}

fn bootstrap_file(file: String, content: Pieces) -> Result<Checkpoint, LoadError> {
    read_checkpoint(content).map_err(|error| LoadError::Bootstrap { file, error })
}

/// The newest snapshot that can be read and that the log goes on from.
async fn newest_snapshot(
    log: &dyn MetadataLog,
    ids: &[SnapshotId],
    skipped: &mut Vec<String>,
    mended: &mut Vec<String>,
) -> Result<Replay, LoadError> {
    for &id in ids.iter().rev() {
        let file = id.file_name();
        if id.end_offset > log.end_offset() {
            return beyond_the_log(log, id, mended).await;
        }
        if id.end_offset < log.start_offset() {
            break;
        }
        let content = log.read_file(&file).await?.unwrap_or_default();
        match replay_snapshot(content, id) {
            Ok(replay) => return Ok(replay),
            Err(error) => skipped.push(format!("{file}: {error}")),
        }
    }
    match log.start_offset() {
        0 => Ok(Replay::default()),
        start => Err(LoadError::Gap { start }),
    }
}

/// The log was cut short, but a snapshot holds all that it lost: it goes on behind the snapshot.
async fn beyond_the_log(
    log: &dyn MetadataLog,
    id: SnapshotId,
    mended: &mut Vec<String>,
) -> Result<Replay, LoadError> {
    let (file, end, log_end) = (id.file_name(), id.end_offset, log.end_offset());
    let content = log.read_file(&file).await?.unwrap_or_default();
    let replay = replay_snapshot(content, id).map_err(|error| LoadError::LogCutShort {
        file: file.clone(),
        end,
        log_end,
        why: error.to_string(),
    })?;
    log.start_over(end).await?;
    mended.push(format!(
        "the metadata log ended at offset {log_end}, before {file}: it goes on from there"
    ));
    Ok(replay)
}

async fn replay_log(log: &dyn MetadataLog, replay: &mut Replay) -> Result<u64, LoadError> {
    let mut next = replay.latest().provenance.offset + 1;
    let mut bytes_read = 0;
    while next < log.end_offset() {
        let batches = log.read(next).await?;
        bytes_read += batches.len() as u64;
        let before = next;
        read_entries(batches, |entry| {
            if entry.offset < next {
                return Ok(());
            }
            next = entry.offset + 1;
            replay.apply(&entry)
        })?;
        if next == before {
            let error = MetadataLogError::Failed(format!("nothing to read at offset {next}"));
            return Err(error.into());
        }
    }
    Ok(bytes_read)
}
