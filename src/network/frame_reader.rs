//! Cuts a byte stream into request frames: 4 bytes of length, then the body.
//!
//! Memory comes before bytes: the body's length is checked against `socket.request.max.bytes` and
//! reserved from the core's budget before a single byte of it is kept.

use bytes::{Bytes, BytesMut};
use protocol::frame::{FrameLengthError, LENGTH_BYTES, parse_length};
use shards::io::{RecvBuf, TcpStream};
use shards::sync::{ByteBudget, Permit};

/// From this size on a body is received straight into its own memory, past the pool of buffers.
const PLAIN_RECEIVE_BYTES: usize = 64 * 1024;

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
    /// The socket failed.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// Reads frames from one connection.
pub struct FrameReader {
    stream: TcpStream,
    /// Received bytes that no frame has taken yet, and how many of them are used up.
    buffered: Option<(RecvBuf, usize)>,
}

impl FrameReader {
    /// A reader for `stream`.
    pub fn new(stream: TcpStream) -> Self {
        FrameReader {
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
        // A client that claims much and sends nothing must not keep memory from the others.
        if size > 0 && self.buffered().await?.is_none() {
            return Err(FrameError::Truncated);
        }
        let permit = budget.reserve(size as u64).await;
        let bytes = self.body(size).await?;
        Ok(Some(Frame { bytes, permit }))
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

    async fn body(&mut self, size: usize) -> Result<Bytes, FrameError> {
        let mut body = BytesMut::with_capacity(size);
        while body.len() < size {
            let missing = size - body.len();
            if self.buffered.is_none() && missing > PLAIN_RECEIVE_BYTES {
                body = self.stream.recv_exact(body, missing).await.map_err(ended)?;
                break;
            }
            let Some(chunk) = self.buffered().await? else {
                return Err(FrameError::Truncated);
            };
            let take = chunk.len().min(missing);
            body.extend_from_slice(&chunk[..take]);
            self.consume(take);
        }
        Ok(body.freeze())
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

fn ended(error: std::io::Error) -> FrameError {
    match error.kind() {
        std::io::ErrorKind::UnexpectedEof => FrameError::Truncated,
        _ => FrameError::Io(error),
    }
}
