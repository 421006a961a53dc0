//! Moving the start of a log, and removing whole logs.

use super::open::SEGMENT_FILES;
use super::{Log, LogInner};
use crate::disk::sync_directory;
use crate::error::{ReadError, StorageError};
use crate::names::{FileKind, file_name};
use shards::io::dir;
use std::path::{Path, PathBuf};

impl Log {
    /// Moves the start of the log up to `new_start_offset` (DeleteRecords, retention) and removes the segments that lie
    /// wholly below. The caller keeps it below the high watermark, and writes `log-start-offset-checkpoint`: until then
    /// a crash brings the start back. Answers the bytes freed.
    ///
    /// # Errors
    /// `OutOfRange` above the written end. A start that is not higher is no error.
    pub async fn trim(&self, new_start_offset: i64) -> Result<u64, ReadError> {
        self.0.check_open()?;
        let segments = {
            let mut guard = self.0.state.borrow_mut();
            let state = &mut *guard;
            if new_start_offset > state.end_offset {
                return Err(ReadError::OutOfRange {
                    requested: new_start_offset,
                    start: state.start_offset,
                    end: state.end_offset,
                });
            }
            if new_start_offset <= state.start_offset {
                return Ok(0);
            }
            state.start_offset = new_start_offset;
            if state.epochs.truncate_from_start(new_start_offset) {
                state.epochs_dirty = true;
            }
            // A segment may go when the next one begins at or below the start.
            let active = state.active.plan.base_offset;
            let next_bases = state
                .sealed
                .iter()
                .skip(1)
                .map(|segment| segment.base_offset);
            let gone = next_bases
                .chain([active])
                .take_while(|base| *base <= new_start_offset);
            let count = gone.count().min(state.sealed.len());
            state.sealed.drain(..count).collect::<Vec<_>>()
        };
        self.0.ensure_watched();
        let mut freed = 0;
        for segment in segments {
            freed += u64::from(segment.size);
            let result = self.0.remove_segment_files(segment.base_offset, true).await;
            self.0.settle(result)?;
        }
        Ok(freed)
    }

    /// Takes the log out of service and renames its directory to `<topic>-<partition>.<uuid>-delete`, durably. Answers
    /// the new path: the owner removes it when `file.delete.delay.ms` has passed (a start removes what is left).
    ///
    /// # Errors
    /// Where the rename fails the log is offline all the same.
    pub async fn delete(&self) -> Result<PathBuf, StorageError> {
        let core = self.0.storage.core();
        let unique = core.random_u128();
        self.move_aside(self.0.partition.delete_name(unique), false)
            .await
    }

    /// Takes the log out of service and renames its directory to `<topic>-<partition>.<uuid>-stray`.
    ///
    /// # Errors
    /// As [`Log::delete`].
    pub async fn set_aside(&self) -> Result<PathBuf, StorageError> {
        let core = self.0.storage.core();
        let unique = core.random_u128();
        self.move_aside(self.0.partition.stray_name(unique), true)
            .await
    }

    async fn move_aside(&self, name: String, whole: bool) -> Result<PathBuf, StorageError> {
        let core = self.0.storage.core();
        let _refusal = self.0.refuse_appends();
        let _hold = self.0.hold().await;
        let directory = self.directory();
        // What is to be deleted need not be whole; what is kept for a person must be.
        let moved = if whole {
            self.0.move_tail().await
        } else {
            Ok(())
        };
        self.0.go_offline("its directory was moved aside");
        moved?;
        self.0.all_moved();
        let Some(parent) = directory.parent() else {
            return Err(StorageError::corrupt(&directory, 0, "no parent directory"));
        };
        let target = parent.join(name);
        dir::rename(core, &directory, &target)
            .await
            .map_err(|error| StorageError::io("rename", &directory, error))?;
        sync_directory(core, parent).await?;
        self.0.state.borrow_mut().directory = target.clone().into();
        Ok(target)
    }
}

impl LogInner {
    /// Removes a segment's files and what the caches have of it. Readers that hold the file go on reading it.
    pub async fn remove_segment_files(
        &self,
        base_offset: i64,
        snapshot_too: bool,
    ) -> Result<(), StorageError> {
        let cached = {
            let mut state = self.state.borrow_mut();
            let cached = &mut state.cached;
            let from = cached.partition_point(|it| it.segment_base < base_offset);
            let to = cached.partition_point(|it| it.segment_base <= base_offset);
            cached.drain(from..to).collect()
        };
        self.storage.let_go(cached);
        self.storage
            .0
            .files
            .borrow_mut()
            .remove(self.id, base_offset);
        self.storage
            .0
            .indexes
            .borrow_mut()
            .remove_segment(self.id, base_offset);
        let directory = self.state.borrow().directory.clone();
        let snapshot = snapshot_too.then_some(FileKind::ProducerSnapshot);
        for kind in SEGMENT_FILES.into_iter().chain(snapshot) {
            remove_if_there(
                self.storage.core(),
                &directory.join(file_name(base_offset, kind)),
            )
            .await?;
        }
        Ok(())
    }
}

pub(crate) async fn remove_if_there(core: &shards::Core, path: &Path) -> Result<(), StorageError> {
    match dir::remove_file(core, path).await {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(StorageError::io("remove", path, error))
        }
        _ => Ok(()),
    }
}
