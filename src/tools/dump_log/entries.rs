//! The batches of a log file, of any format, one after the other.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use protocol::records::{HEADER_UP_TO_MAGIC, LOG_OVERHEAD, legacy};

use super::{Failure, failed};

/// No batch is larger in a log that a broker wrote: 100 MiB is what a request may have at most by default.
const LARGEST: usize = 1 << 30;

/// A `.log` or a snapshot, open to be read.
pub(super) struct LogFile {
    file: File,
    path: PathBuf,
    size: u64,
}

/// One batch as its first bytes describe it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) position: u64,
    /// Of the first record in format 2, else of the last.
    pub(super) offset: i64,
    /// Whole size.
    pub(super) size: usize,
    pub(super) magic: i8,
}

impl LogFile {
    pub(super) fn open(path: &Path) -> Result<LogFile, Failure> {
        let open = || -> io::Result<(File, u64)> {
            let file = File::open(path)?;
            let size = file.metadata()?.len();
            Ok((file, size))
        };
        let (file, size) = open().map_err(|error| failed(path, error))?;
        if size > i32::MAX as u64 {
            let why = format!("{size} bytes, but a segment has at most {}", i32::MAX);
            return Err(failed(path, why));
        }
        Ok(LogFile {
            file,
            path: path.to_path_buf(),
            size,
        })
    }

    pub(super) fn size(&self) -> u64 {
        self.size
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The batch at `position`; none where what is left before `end` is not a whole one.
    pub(super) fn entry(&self, position: u64, end: u64) -> Result<Option<Entry>, Failure> {
        if position + HEADER_UP_TO_MAGIC as u64 >= end {
            return Ok(None);
        }
        let mut head = [0; HEADER_UP_TO_MAGIC];
        self.read(&mut head, position)?;
        let [o0, o1, o2, o3, o4, o5, o6, o7, s0, s1, s2, s3, .., magic] = head;
        let length = i32::from_be_bytes([s0, s1, s2, s3]);
        // What it would be in no format.
        let least = legacy::OVERHEAD_V0;
        let size = match usize::try_from(length) {
            Ok(length) if length >= least => length + LOG_OVERHEAD,
            _ if self.is_zeros_from(position)? => {
                return Err(self.at(
                    position,
                    "zeros up to the end of the file. A broker of ours that runs keeps them as room for what comes, and small \
                     appends in its journal: stop it to see all of them; after a crash, `ringmain recover` puts them here",
                ));
            }
            _ => {
                return Err(Failure::new(format!(
                    "Found record size {length} smaller than minimum record overhead ({least}) in file {}.",
                    self.path.display()
                )));
            }
        };
        Ok((position + size as u64 <= end).then_some(Entry {
            position,
            offset: i64::from_be_bytes([o0, o1, o2, o3, o4, o5, o6, o7]),
            size,
            magic: i8::from_be_bytes([magic]),
        }))
    }

    /// All bytes of a batch. That they are there was checked.
    pub(super) fn bytes(&self, entry: &Entry) -> Result<Bytes, Failure> {
        if entry.size > LARGEST {
            let why = format!("a batch of {} bytes is not read", entry.size);
            return Err(self.at(entry.position, why));
        }
        let mut bytes = vec![0; entry.size];
        self.read(&mut bytes, entry.position)?;
        Ok(Bytes::from(bytes))
    }

    /// The first bytes of a batch.
    pub(super) fn head<const N: usize>(&self, entry: &Entry) -> Result<[u8; N], Failure> {
        let mut bytes = [0; N];
        self.read(&mut bytes, entry.position)?;
        Ok(bytes)
    }

    fn read(&self, bytes: &mut [u8], position: u64) -> Result<(), Failure> {
        self.file
            .read_exact_at(bytes, position)
            .map_err(|error| self.at(position, error))
    }

    /// Whether nothing was written from here on.
    fn is_zeros_from(&self, mut position: u64) -> Result<bool, Failure> {
        let mut piece = [0; 1 << 16];
        while position < self.size {
            let left = usize::try_from(self.size - position).unwrap_or(usize::MAX);
            let piece = &mut piece[..left.min(1 << 16)];
            self.read(piece, position)?;
            if piece.iter().any(|byte| *byte != 0) {
                return Ok(false);
            }
            position += piece.len() as u64;
        }
        Ok(true)
    }

    /// A failure that says where.
    pub(super) fn at(&self, position: u64, why: impl std::fmt::Display) -> Failure {
        failed(&self.path, format!("at position {position}: {why}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_are_told_apart_from_damage() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("00000000000000000000.log");
        let why = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            let log = LogFile::open(&path).unwrap();
            log.entry(0, log.size()).unwrap_err().to_string()
        };
        let mut bytes = vec![0; 200_000];
        assert!(why(&bytes).contains("at position 0: zeros up to the end of the file"));
        *bytes.last_mut().unwrap() = 1;
        assert!(why(&bytes).starts_with("Found record size 0 smaller"));
    }
}
