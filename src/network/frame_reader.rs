//! Cuts a byte stream into request frames: 4 bytes of length, then the body.
//!
//! Memory comes before bytes: the body's length is checked against `socket.request.max.bytes`, and
//! nothing of it is kept that was not reserved from the core's budget.
//!
//! A length is only a claim. A frame of ordinary size gets its memory at once for as long as half of the
//! budget is free. Any other gets it in steps, each a small multiple of what has really arrived, so that
//! clients who claim much and send little hold little. And while others wait for memory, a frame that
//! gets nowhere is given up, and its connection with it.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::future::{Either, select};
use protocol::frame::{FrameLengthError, LENGTH_BYTES, parse_length};
use shards::Core;
use shards::io::{RecvBuf, TcpStream};
use shards::sync::{ByteBudget, Permit};

/// What is missing of a body and is more than this, which is what a buffer of the pool holds, is received straight into the
/// body's own memory: one receive and no copy, instead of several and one.
const PLAIN_RECEIVE_BYTES: usize = 16 * 1024;
/// A frame that grows beyond this is a large one.
const LARGE_BYTES: usize = 64 * 1024;
/// A frame up to this size gets all its memory at once while half of the budget is free: producers send
/// up to 1 MiB (`max.request.size`), and growing in steps would copy a third of it.
const AT_ONCE_BYTES: usize = 1088 * 1024;
/// A frame up to this size gets all its memory with its first byte.
const FIRST_STEP_BYTES: usize = 4 * 1024;
/// A larger one gets this many times the bytes that are there.
const GROWTH: usize = 4;
/// The last part of the budget, one in so many, is not for frames that grow beyond
/// [`LARGE_BYTES`]: what others ask for in small requests goes on.
const SPARE_PART: u64 = 4;
/// Bytes that have to arrive within [`PATIENCE`] while others wait for memory.
const SLICE_BYTES: usize = 256 * 1024;
const PATIENCE: Duration = Duration::from_secs(5);
/// How often it is looked again, after that, whether others wait.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// One request body and the memory reserved for it.
pub struct Frame {
    /// The request: header and body, without the length.
    pub bytes: Bytes,
    /// Given back when the request has been answered.
    pub permit: Permit,
}

/// Why no further frame comes.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The length field is negative or above `socket.request.max.bytes`.
    #[error(transparent)]
    Length(#[from] FrameLengthError),
    /// The stream ended inside a frame.
    #[error("the connection ended inside a request")]
    Truncated,
    /// The rest of a frame does not come, and others wait for the memory that it holds.
    #[error("a request of {size} bytes stopped after {received}, and others wait for memory")]
    Stalled {
        /// The length that was claimed.
        size: usize,
        /// What has arrived of it.
        received: usize,
    },
    /// The socket failed.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// Reads frames from one connection.
pub struct FrameReader {
    core: Core,
    stream: TcpStream,
    /// Received bytes that no frame has taken yet, and how many of them are used up.
    buffered: Option<(RecvBuf, usize)>,
}

impl FrameReader {
    /// A reader for `stream`, on its core.
    pub fn new(core: Core, stream: TcpStream) -> Self {
        FrameReader {
            core,
            stream,
            buffered: None,
        }
    }

    /// The next frame, or `None` where the stream ends between two frames.
    ///
    /// # Errors
    /// See [`FrameError`]; none can be recovered from, the connection is to be closed.
    pub async fn next(
        &mut self,
        budget: &ByteBudget,
        limit: usize,
    ) -> Result<Option<Frame>, FrameError> {
        let Some(length) = self.length().await? else {
            return Ok(None);
        };
        let size = parse_length(length, limit)?;
        // A client that claims much and sends nothing gets nothing.
        let there = match size {
            // Nothing more has to come.
            0 => 0,
            _ => match self.buffered().await? {
                Some(chunk) => chunk.len(),
                None => return Err(FrameError::Truncated),
            },
        };
        let plenty = size <= AT_ONCE_BYTES && budget.in_use() < budget.capacity() / 2;
        let mut step = if plenty { size } else { step_of(size, there) };
        let mut permit = budget.reserve(step as u64).await;
        let mut body = BytesMut::with_capacity(step);
        loop {
            body = self.fill(body, step, size, budget).await?;
            if step == size {
                let bytes = body.freeze();
                return Ok(Some(Frame { bytes, permit }));
            }
            step = step_of(size, step);
            let spare = match step > LARGE_BYTES {
                true => budget.capacity() / SPARE_PART,
                false => 0,
            };
            permit.grow_to(step as u64, spare).await;
            // Not `reserve`: it would take up to twice as much.
            let mut larger = BytesMut::with_capacity(step);
            larger.extend_from_slice(&body);
            body = larger;
        }
    }

    async fn length(&mut self) -> Result<Option<[u8; LENGTH_BYTES]>, FrameError> {
        let mut bytes = [0; LENGTH_BYTES];
        let mut have = 0;
        while have < bytes.len() {
            let Some(chunk) = self.buffered().await? else {
                return if have == 0 {
                    Ok(None)
                } else {
                    Err(FrameError::Truncated)
                };
            };
            let take = chunk.len().min(bytes.len() - have);
            bytes[have..have + take].copy_from_slice(&chunk[..take]);
            have += take;
            self.consume(take);
        }
        Ok(Some(bytes))
    }

    /// Receives until `body` has `end` bytes; with patience that ends while others wait for memory.
    async fn fill(
        &mut self,
        mut body: BytesMut,
        end: usize,
        size: usize,
        budget: &ByteBudget,
    ) -> Result<BytesMut, FrameError> {
        self.take(&mut body, end);
        while body.len() < end {
            let received = body.len();
            let slice_end = end.min(received + SLICE_BYTES);
            let core = self.core.clone();
            let slice = pin!(self.receive(body, slice_end, budget));
            body = match patiently(&core, budget, slice).await {
                Some(result) => result?,
                None => return Err(FrameError::Stalled { size, received }),
            };
        }
        Ok(body)
    }

    async fn receive(
        &mut self,
        mut body: BytesMut,
        end: usize,
        budget: &ByteBudget,
    ) -> Result<BytesMut, FrameError> {
        while body.len() < end {
            let missing = end - body.len();
            // Those who wait for memory hold buffers of the pool; who has memory must not need one.
            let past_the_pool = missing > PLAIN_RECEIVE_BYTES || budget.is_contended();
            if self.buffered.is_none() && past_the_pool {
                return self.stream.recv_exact(body, missing).await.map_err(ended);
            }
            if self.buffered().await?.is_none() {
                return Err(FrameError::Truncated);
            }
            self.take(&mut body, end);
        }
        Ok(body)
    }

    /// Moves what is received already, up to a length of `end`.
    fn take(&mut self, body: &mut BytesMut, end: usize) {
        if let Some((buffer, used)) = &self.buffered {
            let chunk = &buffer[*used..];
            let count = chunk.len().min(end - body.len());
            body.extend_from_slice(&chunk[..count]);
            self.consume(count);
        }
    }

    /// Bytes received and not yet used, at least one; `None` at the end of the stream.
    async fn buffered(&mut self) -> Result<Option<&[u8]>, FrameError> {
        if self.buffered.is_none() {
            let received = self.stream.recv().await?;
            if received.is_empty() {
                return Ok(None);
            }
            self.buffered = Some((received, 0));
        }
        Ok(self
            .buffered
            .as_ref()
            .map(|(buffer, used)| &buffer[*used..]))
    }

    /// Marks bytes as used; a buffer goes back to the core's pool as soon as it is empty.
    fn consume(&mut self, count: usize) {
        if let Some((buffer, used)) = &mut self.buffered {
            *used += count;
            if *used == buffer.len() {
                self.buffered = None;
            }
        }
    }
}

/// The memory for a frame of `size` bytes of which `there` are there.
fn step_of(size: usize, there: usize) -> usize {
    size.min(there.saturating_mul(GROWTH).max(FIRST_STEP_BYTES))
}

/// Waits for `receiving`; `None` where it took longer than [`PATIENCE`] and others wait for memory.
async fn patiently<F: Future + Unpin>(
    core: &Core,
    budget: &ByteBudget,
    mut receiving: F,
) -> Option<F::Output> {
    let mut patience = PATIENCE;
    loop {
        match select(&mut receiving, pin!(core.sleep(patience))).await {
            Either::Left((received, _)) => return Some(received),
            Either::Right(_) if budget.is_contended() => return None,
            Either::Right(_) => patience = LOOK_AGAIN,
        }
    }
}

fn ended(error: std::io::Error) -> FrameError {
    match error.kind() {
        std::io::ErrorKind::UnexpectedEof => FrameError::Truncated,
        _ => FrameError::Io(error),
    }
}
