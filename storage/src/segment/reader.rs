//! Walking a segment from batch header to batch header, reading no more than it must.

use crate::batch::{BatchHeader, HEADER_V2, HeaderFault, MAGIC_AT, checksum_holds};
use crate::error::StorageError;
use bytes::Bytes;
use shards::Core;
use shards::io::File;
use std::path::{Path, PathBuf};

/// Where the bytes of a segment come from.
pub(crate) trait Source {
    /// Bytes at `position`: at least one unless the file ends before, at most `want`.
    async fn window(&self, position: u32, want: u32) -> Result<Bytes, StorageError>;
    fn path(&self) -> PathBuf;
}

/// A segment file by itself, at open and recovery.
pub(crate) struct FileSource<'a> {
    pub core: &'a Core,
    pub file: &'a File,
    pub path: &'a Path,
}

impl Source for FileSource<'_> {
    async fn window(&self, position: u32, want: u32) -> Result<Bytes, StorageError> {
        self.file
            .read_at_most(self.core, u64::from(position), want as usize)
            .await
            .map_err(|error| StorageError::io("read", self.path, error))
    }

    fn path(&self) -> PathBuf {
        self.path.to_path_buf()
    }
}

/// A batch and where it lies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Placed {
    pub position: u32,
    pub header: BatchHeader,
}

impl Placed {
    pub fn end(&self) -> u32 {
        // The walk checked that the batch ends inside the segment, whose size is a u32.
        self.position + self.header.size as u32
    }
}

/// Why a walk stopped before the end.
#[derive(Debug)]
pub(crate) enum WalkError {
    Storage(StorageError),
    /// What lies at this position is no whole batch.
    Bad {
        at: u32,
        why: &'static str,
    },
}

impl WalkError {
    /// For readers, to whom a bad batch below the written prefix is corruption.
    pub fn into_storage(self, path: &Path) -> StorageError {
        match self {
            WalkError::Storage(error) => error,
            WalkError::Bad { at, why, .. } => StorageError::corrupt(path, u64::from(at), why),
        }
    }
}

/// Bytes fetched at once: small batches come many to a window, large ones cost one window each.
pub(crate) const LOOKUP_WINDOW: u32 = 16 << 10;
pub(crate) const SCAN_WINDOW: u32 = 256 << 10;

/// Where in `bytes` the header of a v2 batch could begin that ends within the next `left` bytes.
fn first_header(bytes: &[u8], left: usize) -> Option<usize> {
    let mut skip = 0;
    while skip + HEADER_V2 <= bytes.len() {
        skip += bytes[skip + MAGIC_AT..]
            .iter()
            .position(|byte| *byte == 2)?;
        let head = bytes.get(skip..skip + HEADER_V2)?;
        if BatchHeader::parse(head).is_ok_and(|header| header.size <= left - skip) {
            return Some(skip);
        }
        skip += 1;
    }
    None
}

/// Yields headers from `position` to `end`.
pub(crate) struct Walk<'a, S> {
    source: &'a S,
    position: u32,
    end: u32,
    window_bytes: u32,
    window: Bytes,
    window_at: u32,
    /// Offset behind the last batch of [`Walk::next_good`].
    expected: i64,
    /// Bytes fetched so far.
    pub fetched: u64,
}

impl<'a, S: Source> Walk<'a, S> {
    pub fn new(source: &'a S, position: u32, end: u32, window_bytes: u32) -> Walk<'a, S> {
        Walk {
            source,
            position,
            end,
            window_bytes,
            window: Bytes::new(),
            window_at: position,
            expected: 0,
            fetched: 0,
        }
    }

    /// The next batch, `None` at the end.
    pub async fn next(&mut self) -> Result<Option<Placed>, WalkError> {
        if self.position >= self.end {
            return Ok(None);
        }
        let mut needed = HEADER_V2;
        loop {
            let have = self.bytes_here();
            match BatchHeader::parse(have) {
                Ok(header) => return self.step(header).map(Some),
                Err(HeaderFault::Short { needed: more }) => {
                    needed = needed.max(more);
                    if !self.fetch(needed).await? {
                        return Err(self.bad("cut off within a header"));
                    }
                }
                Err(HeaderFault::Zeros) => {
                    return Err(self.bad("zeros instead of a batch"));
                }
                Err(HeaderFault::Impossible(why)) => return Err(self.bad(why)),
            }
        }
    }

    fn step(&mut self, header: BatchHeader) -> Result<Placed, WalkError> {
        let placed = Placed {
            position: self.position,
            header,
        };
        match u32::try_from(header.size)
            .ok()
            .and_then(|size| self.position.checked_add(size))
        {
            Some(end) if end <= self.end => {
                self.position = end;
                Ok(placed)
            }
            _ => Err(self.bad("cut off within a batch")),
        }
    }

    /// The whole batch just yielded, fetching what of it is not at hand.
    pub async fn batch_bytes(&mut self, placed: &Placed) -> Result<Bytes, WalkError> {
        let size = placed.header.size;
        if let Some(skip) = placed.position.checked_sub(self.window_at) {
            let skip = skip as usize;
            if self.window.len() >= skip + size {
                return Ok(self.window.slice(skip..skip + size));
            }
        }
        let mut whole = Bytes::new();
        while whole.len() < size {
            let at = placed.position + whole.len() as u32;
            // As much as the next batches may want too, but never less than this one.
            let want = (size - whole.len()).max(self.window_bytes as usize);
            let want = want.min((self.end - at) as usize) as u32;
            let more = self
                .source
                .window(at, want)
                .await
                .map_err(WalkError::Storage)?;
            if more.is_empty() {
                return Err(self.bad("cut off within a batch"));
            }
            self.fetched += more.len() as u64;
            whole = if whole.is_empty() {
                more
            } else {
                [whole, more].concat().into()
            };
        }
        self.window = whole.clone();
        self.window_at = placed.position;
        Ok(whole.slice(..size))
    }

    /// The next batch; what is none is passed over, if whole batches follow. `None` at the end, or where none follow.
    pub async fn next_good(&mut self, path: &Path) -> Result<Option<Placed>, StorageError> {
        loop {
            match self.next().await {
                Ok(Some(placed)) => {
                    self.expected = placed.header.last_offset + 1;
                    return Ok(Some(placed));
                }
                Ok(None) => return Ok(None),
                Err(WalkError::Bad { at, .. }) => {
                    let found = self.resync(at, self.expected).await;
                    if found.map_err(|error| error.into_storage(path))?.is_none() {
                        return Ok(None);
                    }
                }
                Err(error) => return Err(error.into_storage(path)),
            }
        }
    }

    /// Goes on elsewhere.
    pub fn go_to(&mut self, position: u32) {
        self.position = position;
    }

    pub fn path(&self) -> PathBuf {
        self.source.path()
    }

    /// Behind what is no batch, or a damaged one, goes on at the next whole batch: v2, its checksum right, its offset
    /// not below `expected`. Answers where that is, or `None` where there is none up to the end.
    ///
    /// Records may hold bytes that look like a batch, so the place behind the damaged batch, by its own header, is tried
    /// before all others.
    pub async fn resync(&mut self, at: u32, expected: i64) -> Result<Option<u32>, WalkError> {
        self.position = at;
        if let Ok(Some(damaged)) = self.next().await {
            self.position = damaged.end();
            if self.is_whole(expected).await? {
                self.position = damaged.end();
                return Ok(Some(self.position));
            }
        }
        let mut from = at + 1;
        while let Some(candidate) = self.next_candidate(from).await? {
            self.position = candidate;
            if self.is_whole(expected).await? {
                self.position = candidate;
                return Ok(Some(candidate));
            }
            from = candidate + 1;
        }
        self.position = self.end;
        Ok(None)
    }

    /// Whether a whole batch begins at the position.
    async fn is_whole(&mut self, expected: i64) -> Result<bool, WalkError> {
        let placed = match self.next().await {
            Ok(Some(placed)) => placed,
            Ok(None) | Err(WalkError::Bad { .. }) => return Ok(false),
            Err(error) => return Err(error),
        };
        if placed.header.base_offset < expected {
            return Ok(false);
        }
        match self.batch_bytes(&placed).await {
            Ok(bytes) => Ok(checksum_holds(&bytes)),
            Err(WalkError::Bad { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The first position not below `from` whose bytes could be the header of a v2 batch.
    async fn next_candidate(&mut self, from: u32) -> Result<Option<u32>, WalkError> {
        let mut from = from;
        while u64::from(from) + HEADER_V2 as u64 <= u64::from(self.end) {
            let want = self.window_bytes.min(self.end - from);
            let bytes = self
                .source
                .window(from, want)
                .await
                .map_err(WalkError::Storage)?;
            self.fetched += bytes.len() as u64;
            if bytes.len() < HEADER_V2 {
                return Ok(None);
            }
            if let Some(skip) = first_header(&bytes, (self.end - from) as usize) {
                return Ok(Some(from + skip as u32));
            }
            from += (bytes.len() - HEADER_V2 + 1) as u32;
        }
        Ok(None)
    }

    fn bytes_here(&self) -> &[u8] {
        match self.position.checked_sub(self.window_at) {
            Some(skip) if (skip as usize) < self.window.len() => &self.window[skip as usize..],
            _ => &[],
        }
    }

    /// Gets `needed` bytes at the position; false where the segment ends before.
    async fn fetch(&mut self, needed: usize) -> Result<bool, WalkError> {
        if ((self.end - self.position) as usize) < needed {
            // Older messages may be shorter than a v2 header: take what there is.
            if (self.end - self.position) as usize <= self.bytes_here().len() {
                return Ok(false);
            }
        }
        let mut have = Bytes::copy_from_slice(self.bytes_here());
        while have.len() < needed {
            let at = self.position + have.len() as u32;
            let want = self.window_bytes.min(self.end - at);
            if want == 0 {
                break;
            }
            let more = self
                .source
                .window(at, want)
                .await
                .map_err(WalkError::Storage)?;
            if more.is_empty() {
                break;
            }
            self.fetched += more.len() as u64;
            have = if have.is_empty() {
                more
            } else {
                [have, more].concat().into()
            };
        }
        let grown = have.len() > self.bytes_here().len();
        self.window = have;
        self.window_at = self.position;
        Ok(grown)
    }

    fn bad(&self, why: &'static str) -> WalkError {
        WalkError::Bad {
            at: self.position,
            why,
        }
    }
}
