//! The HTTP port: metrics, health and flame graphs, for machines and people that watch this one.
//!
//! One small request a connection, GET only. It opens before the partitions do, so that a start that
//! takes long is seen to be alive.

#[cfg(test)]
mod docs;
mod flame;
mod health;
mod look;
pub mod metrics;
mod state;

#[cfg(test)]
pub(crate) use docs::metric_names;

use std::cell::Cell;
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{Either, select};
use shards::TaskClass;
use shards::io::{BoundListener, TcpListener, TcpStream};
use tracing::{debug, info, warn};

use crate::shard::Shard;

/// Bytes that a request may have up to the end of its headers.
const REQUEST_BYTES_MAX: usize = 8 * 1024;
const HEADERS_MAX: usize = 64;
/// A request that takes longer is given up, and so is an answer; a flame graph takes its own time.
const PATIENCE: Duration = Duration::from_secs(10);
/// Connections at one time; more are closed at once.
const CONNECTIONS_MAX: usize = 32;
const REST_AFTER_FAILURE: Duration = Duration::from_millis(100);

/// What all connections of the port know.
#[derive(Clone, Default)]
struct Port {
    open: Rc<Cell<usize>>,
    recording: flame::Busy,
}

/// Serves these sockets until the core may end.
///
/// # Errors
/// The core has no room for a socket.
pub fn open(shard: &Rc<Shard>, sockets: Vec<BoundListener>) -> io::Result<()> {
    let port = Port::default();
    for socket in sockets {
        info!(address = %socket.local_addr(), "metrics, health and flame graphs over HTTP");
        let accept = accept(shard.clone(), socket.attach(&shard.core)?, port.clone());
        drop(shard.core.spawn(TaskClass::Network, "http", accept));
    }
    Ok(())
}

/// Accepts until the core may end.
async fn accept(shard: Rc<Shard>, listener: TcpListener, port: Port) {
    loop {
        let next = pin!(listener.accept());
        let end = pin!(shard.released.wait());
        let Either::Left((accepted, _)) = select(next, end).await else {
            return;
        };
        match accepted {
            Ok(socket) if port.open.get() < CONNECTIONS_MAX => match socket.attach(&shard.core) {
                Ok(stream) => serve(&shard, stream, port.clone()),
                Err(error) => debug!(%error, "an HTTP connection ended before it was served"),
            },
            Ok(_) => {}
            Err(error) => {
                warn!(%error, "cannot accept an HTTP connection");
                shard.core.sleep(REST_AFTER_FAILURE).await;
            }
        }
    }
}

fn serve(shard: &Rc<Shard>, stream: TcpStream, port: Port) {
    port.open.set(port.open.get() + 1);
    let core = shard.core.clone();
    let shard = shard.clone();
    let task = async move {
        if exchange(&shard, &stream, &port).await.is_err() {
            debug!(peer = %stream.peer_addr(), "an HTTP request came to nothing");
        }
        stream.shutdown();
        port.open.set(port.open.get() - 1);
    };
    drop(core.spawn(TaskClass::Network, "http-request", task));
}

async fn exchange(shard: &Rc<Shard>, stream: &TcpStream, port: &Port) -> io::Result<()> {
    let patient = |_| io::Error::from(io::ErrorKind::TimedOut);
    let core = &shard.core;
    let asked = core.timeout(PATIENCE, request(stream));
    let answer = match asked.await.map_err(patient)?? {
        // It lasts as long as it was asked to.
        Ok((path, query)) if path == "/flamegraph" => {
            let page = flame::page(shard, stream, &port.recording, &query).await;
            page.ok_or(io::ErrorKind::ConnectionAborted)?
        }
        Ok((path, _)) => {
            let routed = core.timeout(PATIENCE, route(shard, &path));
            routed.await.map_err(patient)?
        }
        Err(answer) => answer,
    };
    let sent = core.timeout(PATIENCE, stream.send(answer.into_parts()));
    sent.await.map_err(patient)?
}

/// Path and query that are asked for, or the answer to what is no such request.
async fn request(stream: &TcpStream) -> io::Result<Result<(String, String), Answer>> {
    let mut received = Vec::new();
    let refused = loop {
        let chunk = stream.recv().await?;
        if chunk.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        received.extend_from_slice(&chunk);
        match parse(&received) {
            Parsed::More if received.len() <= REQUEST_BYTES_MAX => {}
            Parsed::More => break Answer::text(431, "the request is too long\n"),
            Parsed::Bad => break Answer::text(400, "this is no HTTP request\n"),
            Parsed::Get(path, query) => return Ok(Ok((path, query))),
            Parsed::OtherMethod => break Answer::text(405, "only GET is answered here\n"),
        }
    };
    Ok(Err(refused))
}

enum Parsed {
    More,
    Bad,
    OtherMethod,
    /// The path, and what stands behind its question mark.
    Get(String, String),
}

fn parse(received: &[u8]) -> Parsed {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(received) {
        Err(_) => Parsed::Bad,
        Ok(httparse::Status::Partial) => Parsed::More,
        Ok(httparse::Status::Complete(_)) => match (request.method, request.path) {
            (Some("GET"), Some(path)) => {
                let (path, query) = path.split_once('?').unwrap_or((path, ""));
                Parsed::Get(path.to_owned(), query.to_owned())
            }
            _ => Parsed::OtherMethod,
        },
    }
}

async fn route(shard: &Rc<Shard>, path: &str) -> Answer {
    match path {
        "/metrics" => metrics::page(shard).await,
        "/healthz" => Answer::text(200, "alive\n"),
        "/readyz" => health::readiness(shard).await,
        "/state" => state::page(shard).await,
        _ => Answer::text(
            404,
            "there is /metrics, /healthz, /readyz, /state and /flamegraph\n",
        ),
    }
}

/// What is sent back.
struct Answer {
    status: u16,
    content_type: &'static str,
    body: String,
}

impl Answer {
    fn text(status: u16, body: impl Into<String>) -> Self {
        Answer {
            status,
            content_type: "text/plain; charset=utf-8",
            body: body.into(),
        }
    }

    fn into_parts(self) -> Vec<Bytes> {
        let reason = match self.status {
            200 => "OK",
            400 => "Bad Request",
            404 => "Not Found",
            405 => "Method Not Allowed",
            409 => "Conflict",
            431 => "Request Header Fields Too Large",
            500 => "Internal Server Error",
            501 => "Not Implemented",
            503 => "Service Unavailable",
            _ => "Error",
        };
        let head = format!(
            "HTTP/1.1 {} {reason}\r\ncontent-type: {}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            self.status,
            self.content_type,
            self.body.len()
        );
        vec![Bytes::from(head), Bytes::from(self.body)]
    }
}
