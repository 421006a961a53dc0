//! Sending memory and ranges of files as one stream of bytes.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;

use super::join::join;
use super::tcp::Sending;
use super::{File, TcpStream, cold, sendfile};

/// A peer that takes so long for one piece of a file holds memory that others could use.
const SLOW: Duration = Duration::from_millis(100);

/// Something to send.
#[derive(Clone, Debug)]
pub enum SendPart {
    /// Bytes in memory.
    Memory(Bytes),
    /// Bytes of a file.
    File {
        /// The file.
        file: File,
        /// Which of its bytes.
        range: Range<u64>,
    },
}

impl SendPart {
    /// Bytes on the wire.
    pub fn len(&self) -> usize {
        match self {
            Self::Memory(bytes) => bytes.len(),
            Self::File { range, .. } => (range.end - range.start) as usize,
        }
    }

    /// Whether nothing would be sent.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl TcpStream {
    /// Sends all parts, in order; neighbours in memory leave in one vectored write. Of files, what is in the page cache
    /// leaves by sendfile(2), without a copy through this process; what is not is read off the core first, past the
    /// page cache or into it (see `cold`).
    ///
    /// # Errors
    /// `UnexpectedEof` when a file is shorter; what pread(2) says; else as [`TcpStream::send`].
    pub async fn send_parts(&self, parts: Vec<SendPart>) -> io::Result<()> {
        let _turn = self.send_turn().await;
        let sending = Sending::begin(self)?;
        let sender = Sender {
            stream: self,
            left: parts.into(),
            gathered: Vec::new(),
            ahead: None,
        };
        sender.send_all().await?;
        sending.finish();
        Ok(())
    }

    /// Sends `len` bytes of `file` from `offset`, as [`TcpStream::send_parts`] does.
    ///
    /// # Errors
    /// Those of [`TcpStream::send_parts`].
    pub async fn send_file(&self, file: &File, offset: u64, len: u64) -> io::Result<()> {
        let (file, range) = (file.clone(), offset..offset + len);
        self.send_parts(vec![SendPart::File { file, range }]).await
    }

    /// Notes whether the peer took long for what was sent.
    async fn timed<T>(&self, sending: impl Future<Output = io::Result<T>>) -> io::Result<T> {
        let began = self.core().now();
        let sent = sending.await?;
        let took = self.core().now() - began;
        self.set_takes_slowly(took > SLOW);
        Ok(sent)
    }

    /// Reads the beginning of a range past the page cache, where that is the better way.
    async fn read_cold(&self, file: &File, range: Range<u64>) -> io::Result<Option<Bytes>> {
        // Memory is not for those who take long to free it.
        if self.takes_slowly() {
            return Ok(None);
        }
        cold::read(self.core(), file, range).await
    }

    /// Sends the beginning of a range through the page cache; answers how many bytes.
    async fn send_resident(&self, file: &File, range: Range<u64>) -> io::Result<u64> {
        let core = self.core();
        let piece = core.cold_reads().piece(file.device(), core.now());
        let len = (range.end - range.start).min(piece);
        sendfile::make_resident(core, file, range.start, len).await?;
        let sending = self.send_file_once(file, range.start, len as usize);
        let sent = self.timed(sending).await? as u64;
        if sent == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        core.counters().bytes_sent.add(sent);
        core.counters().bytes_sent_from_files.add(sent);
        if sent < range.end - range.start {
            // A reader that keeps up lets no call wait: others must have their turn.
            core.yield_now().await;
        }
        Ok(sent)
    }
}

/// The parts of one call, on their way.
struct Sender<'a> {
    stream: &'a TcpStream,
    left: VecDeque<SendPart>,
    /// Memory that leaves with what comes next.
    gathered: Vec<Bytes>,
    /// What reading the beginning of the next range came to, once that was tried.
    ahead: Option<Option<Bytes>>,
}

impl Sender<'_> {
    async fn send_all(mut self) -> io::Result<()> {
        while let Some((file, range)) = self.next_range() {
            let read = match self.ahead.take() {
                Some(read) => read,
                None => self.stream.read_cold(&file, range.clone()).await?,
            };
            match read {
                Some(bytes) => self.send_read(bytes).await?,
                None => {
                    self.send_gathered().await?;
                    let sent = self.stream.send_resident(&file, range).await?;
                    self.advance(sent);
                }
            }
        }
        self.send_gathered().await
    }

    /// Gathers the memory in front, and answers the range of a file behind it.
    fn next_range(&mut self) -> Option<(File, Range<u64>)> {
        while let Some(part) = self.left.pop_front() {
            match part {
                part if part.is_empty() => {}
                SendPart::Memory(bytes) => self.gathered.push(bytes),
                SendPart::File { file, range } => {
                    let found = (file.clone(), range.clone());
                    self.left.push_front(SendPart::File { file, range });
                    return Some(found);
                }
            }
        }
        None
    }

    /// The range in front has left up to here.
    fn advance(&mut self, sent: u64) {
        if let Some(SendPart::File { range, .. }) = self.left.front_mut() {
            range.start += sent;
        }
    }

    async fn send_gathered(&mut self) -> io::Result<()> {
        if self.gathered.is_empty() {
            return Ok(());
        }
        let gathered = std::mem::take(&mut self.gathered);
        self.stream.send_bytes(gathered).await
    }

    /// Sends what was read of the range in front, and meanwhile reads what comes after it.
    async fn send_read(&mut self, bytes: Bytes) -> io::Result<()> {
        let len = bytes.len() as u64;
        self.advance(len);
        let mut leaving = std::mem::take(&mut self.gathered);
        leaving.push(bytes);
        let next = self.left.iter().find_map(|part| match part {
            SendPart::File { file, range } if !range.is_empty() => Some((file, range.clone())),
            _ => None,
        });
        let reading = async {
            match next {
                Some((file, range)) => Some(self.stream.read_cold(file, range).await).transpose(),
                None => Ok(None),
            }
        };
        let sending = self.stream.timed(self.stream.send_bytes(leaving));
        let (sent, read) = join(pin!(sending), pin!(reading)).await;
        sent?;
        self.ahead = read?;
        let counters = self.stream.core().counters();
        counters.bytes_sent_from_files.add(len);
        Ok(())
    }
}
