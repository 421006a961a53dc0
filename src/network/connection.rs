//! One connection: frames in, answers out in request order.
//!
//! Produce and Fetch overlap with what came before them; every other request starts when the
//! earlier ones have been answered, as Apache Kafka does by muting the channel.

use std::rc::Rc;

use futures_util::future::{Either, select};
use shards::TaskClass;
use shards::io::TcpStream;
use tracing::{debug, info, warn};

use crate::handlers::{self, Begun};
use crate::network::frame_reader::{Frame, FrameError, FrameReader};
use crate::network::outbox::{Outbox, Ready};
use crate::network::sender::send_all;
use crate::outgoing::Answer;
use crate::shard::{Asked, BadRequest, Caller, Drop, Park, Shard, Stage, Took};

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
        Err(error) => tell_closing(&shard, &caller, &error),
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
        if outbox.is_full() {
            let _waiting = shard.metrics.parks.enter(Park::Answers);
            outbox.room().await;
        }
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
            shard.metrics.bad_request(error.reason());
            if let Some(before) = shard.metrics.closing_lines.tell(shard.core.now()) {
                info!(
                    peer = %caller.peer, %error, lines_kept_back = before,
                    "closing a connection after a bad request"
                );
            }
            return false;
        }
    };
    if !request.overlaps() && outbox.is_busy() {
        let _waiting = shard.metrics.parks.enter(Park::Order);
        outbox.at_most_unanswered(0).await;
    }
    let asked = request.asked().clone();
    let place = outbox.place(asked.clone(), frame.permit);
    match handlers::begin(shard, caller, request) {
        Begun::Done(answer) => {
            let goes_on = !matches!(answer, Answer::Close);
            asked.answer(shard.core.now());
            place.fill(answer);
            goes_on
        }
        Begun::Exclusive(answer) => {
            let answer = answer.await;
            let goes_on = !matches!(answer, Answer::Close);
            asked.answer(shard.core.now());
            place.fill(answer);
            goes_on
        }
        Begun::Overlapping(answer) => {
            let core = shard.core.clone();
            let task = async move {
                let answer = answer.await;
                asked.answer(core.now());
                place.fill(answer);
            };
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
        let bytes = answers.iter().map(|ready| ready.answer.len()).sum();
        let mut outgoing = Vec::with_capacity(answers.len());
        let mut leaving = Vec::with_capacity(answers.len());
        let mut close = false;
        for Ready { asked, answer } in answers {
            caller.answered(shard.core.now());
            leaving.push((asked, answer.len()));
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
        let now = shard.core.now();
        for (asked, bytes) in leaving {
            count(&shard, &caller, &asked, asked.left(now, bytes));
        }
        if close || sent.is_err() {
            let lost = outbox.abandon() as u64;
            shard.metrics.drop(Drop::LostAnswer, lost);
            stream.shutdown();
            return;
        }
        outbox.sent(bytes);
    }
}

/// Why a connection is closed that sent no whole request.
fn tell_closing(shard: &Shard, caller: &Caller, error: &FrameError) {
    match error {
        FrameError::Length(_) => shard.metrics.bad_request(BadRequest::Length),
        FrameError::Stalled { .. } => shard.metrics.drop(Drop::StalledRequest, 1),
        FrameError::Truncated | FrameError::Io(_) => {
            shard.metrics.bad_request(BadRequest::Truncated);
        }
    }
    if let Some(before) = shard.metrics.closing_lines.tell(shard.core.now()) {
        info!(peer = %caller.peer, %error, lines_kept_back = before, "closing a connection");
    }
}

/// An answer has left: a slow request is told, with where its time went.
fn count(shard: &Shard, caller: &Caller, asked: &Asked, took: Took) {
    let limit = shard.config.runtime.slow_request;
    if limit.is_none_or(|limit| took.busy() < limit) {
        return;
    }
    let Some(before) = shard.metrics.slow_lines.tell(shard.core.now()) else {
        return;
    };
    let spans: Vec<String> = Stage::ALL
        .into_iter()
        .zip(took.spans)
        .filter(|(_, span)| span.as_millis() > 0)
        .map(|(stage, span)| format!("{} {} ms", stage.name(), span.as_millis()))
        .collect();
    warn!(
        api = asked.api.name(), version = asked.version, peer = %caller.peer,
        client = asked.client_id.as_deref().unwrap_or_default(), bytes = asked.bytes(),
        took_ms = took.total.as_millis() as u64, stages = spans.join(", "),
        lines_kept_back = before, "a slow request: {}", took.mostly().meaning()
    );
}
