//! One connection: frames in, answers out in request order.
//!
//! Produce and Fetch overlap with what came before them; every other request starts when the
//! earlier ones have been answered, as Apache Kafka does by muting the channel.

use std::rc::Rc;

use futures_util::future::{Either, select};
use shards::TaskClass;
use shards::io::TcpStream;
use tracing::{debug, info};

use crate::handlers::{self, Begun};
use crate::network::frame_reader::{Frame, FrameError, FrameReader};
use crate::network::outbox::Outbox;
use crate::network::sender::send_all;
use crate::outgoing::Answer;
use crate::shard::{Caller, Shard};

/// Serves `stream` until either side ends it; returns when its last answer has left.
pub async fn serve(shard: Rc<Shard>, stream: TcpStream, caller: Rc<Caller>) {
    let outbox = Rc::new(Outbox::default());
    let writer = shard.core.spawn(
        TaskClass::Network,
        "connection-writer",
        write_answers(
            shard.clone(),
            stream.clone(),
            caller.clone(),
            outbox.clone(),
        ),
    );
    match read_requests(&shard, &stream, &caller, &outbox).await {
        Ok(()) => {}
        Err(FrameError::Io(error)) => debug!(peer = %caller.peer, %error, "connection failed"),
        Err(error) => info!(peer = %caller.peer, %error, "closing a connection"),
    }
    outbox.close();
    // It ends by itself; a panic in it ends the process.
    let _ = writer.await;
    stream.shutdown();
}

/// Reads and starts requests until the client or a shutdown ends it.
async fn read_requests(
    shard: &Rc<Shard>,
    stream: &TcpStream,
    caller: &Rc<Caller>,
    outbox: &Rc<Outbox>,
) -> Result<(), FrameError> {
    let mut frames = FrameReader::new(shard.core.clone(), stream.clone());
    loop {
        outbox.room().await;
        let next = std::pin::pin!(frames.next(&shard.memory.requests, shard.limits.request_bytes));
        let stop = std::pin::pin!(shard.stopping.wait());
        let frame = match select(next, stop).await {
            Either::Left((frame, _)) => frame?,
            Either::Right(_) => return Ok(()),
        };
        let Some(frame) = frame else { return Ok(()) };
        caller.asked(shard.core.now());
        if !start(shard, caller, outbox, frame).await {
            return Ok(());
        }
    }
}

/// Starts one request; false where the connection is to be closed.
async fn start(shard: &Rc<Shard>, caller: &Rc<Caller>, outbox: &Rc<Outbox>, frame: Frame) -> bool {
    let request = match handlers::open(shard, caller, frame.bytes) {
        Ok(request) => request,
        Err(error) => {
            shard.metrics.bad_requests.add(1);
            info!(peer = %caller.peer, %error, "closing a connection after a bad request");
            return false;
        }
    };
    if !request.overlaps() {
        outbox.at_most_unanswered(0).await;
    }
    let place = outbox.place(frame.permit);
    match handlers::begin(shard, caller, request) {
        Begun::Done(answer) => {
            let goes_on = !matches!(answer, Answer::Close);
            place.fill(answer);
            goes_on
        }
        Begun::Exclusive(answer) => {
            let answer = answer.await;
            let goes_on = !matches!(answer, Answer::Close);
            place.fill(answer);
            goes_on
        }
        Begun::Overlapping(answer) => {
            let task = async move { place.fill(answer.await) };
            shard
                .core
                .spawn(TaskClass::Network, "overlapping-request", task);
            true
        }
    }
}

async fn write_answers(
    shard: Rc<Shard>,
    stream: TcpStream,
    caller: Rc<Caller>,
    outbox: Rc<Outbox>,
) {
    loop {
        let answers = outbox.ready().await;
        if answers.is_empty() {
            return;
        }
        let bytes = answers.iter().map(Answer::len).sum();
        let mut outgoing = Vec::with_capacity(answers.len());
        let mut close = false;
        for answer in answers {
            caller.answered(shard.core.now());
            match answer {
                Answer::Send(answer) => outgoing.push(answer),
                Answer::Nothing => {}
                Answer::Close => {
                    close = true;
                    break;
                }
            }
        }
        let sent = send_all(&stream, outgoing).await;
        if let Err(error) = &sent {
            debug!(%error, "an answer could not be sent");
        }
        if close || sent.is_err() {
            outbox.abandon();
            stream.shutdown();
            return;
        }
        outbox.sent(bytes);
    }
}
