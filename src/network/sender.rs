//! Puts answers on the wire.

use shards::io::TcpStream;

use crate::outgoing::Outgoing;

/// Sends answers in order; neighbouring parts in memory, also of different answers, leave in one vectored write.
///
/// # Errors
/// The socket's error, or the file's where a range could not be read; the stream is then cut in
/// the middle of an answer and has to be closed.
pub async fn send_all(stream: &TcpStream, answers: Vec<Outgoing>) -> std::io::Result<()> {
    let mut all = Vec::new();
    let mut permits = Vec::new();
    for answer in answers {
        let (parts, permit) = answer.into_parts();
        permits.extend(permit);
        all.extend(parts);
    }
    stream.send_parts(all).await
}
