//! Puts answers on the wire.

use bytes::Bytes;
use shards::io::TcpStream;

use crate::outgoing::{Outgoing, Part};

/// Sends answers in order; neighbouring memory parts, also of different answers, leave in one
/// vectored write.
///
/// # Errors
/// The socket's error, or the file's where a range could not be read; the stream is then cut in
/// the middle of an answer and has to be closed.
pub async fn send_all(stream: &TcpStream, answers: Vec<Outgoing>) -> std::io::Result<()> {
    let mut memory: Vec<Bytes> = Vec::new();
    let mut permits = Vec::new();
    for answer in answers {
        let (parts, permit) = answer.into_parts();
        permits.extend(permit);
        for part in parts {
            match part {
                Part::Memory(bytes) if bytes.is_empty() => {}
                Part::Memory(bytes) => memory.push(bytes),
                Part::File { file, offset, len } => {
                    if !memory.is_empty() {
                        stream.send(std::mem::take(&mut memory)).await?;
                    }
                    stream.send_file(&file, offset, u64::from(len)).await?;
                }
            }
        }
    }
    if memory.is_empty() {
        Ok(())
    } else {
        stream.send(memory).await
    }
}
