//! One connection of a client: frames over simulated TCP.

use std::cell::Cell;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::BytesMut;
use protocol::frame::{decode_response, encode_request};
use protocol::{Message, Request};
use shards::Core;
use shards::io::TcpStream;

/// How long a client waits for an answer beyond what it asked the broker to wait.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// The connection is of no use any more, and what was asked may or may not have been done.
#[derive(Debug)]
pub struct Lost;

pub struct Connection {
    core: Core,
    stream: TcpStream,
    correlation: Cell<i32>,
}

impl Connection {
    pub async fn open(core: &Core, address: SocketAddr) -> Result<Self, Lost> {
        let connected = core.timeout(PATIENCE, TcpStream::connect(core, &address));
        match connected.await {
            Ok(Ok(stream)) => Ok(Self {
                core: core.clone(),
                stream,
                correlation: Cell::new(0),
            }),
            _ => Err(Lost),
        }
    }

    /// Sends a request; the number is that of its answer.
    pub async fn send<R: Request>(&self, version: i16, request: &R) -> Result<i32, Lost> {
        let correlation = self.correlation.get() + 1;
        self.correlation.set(correlation);
        let frame = encode_request(request, version, correlation, Some("simulation".into()))
            .unwrap_or_else(|error| panic!("a request that cannot be written: {error}"));
        let sent = self.core.timeout(PATIENCE, self.stream.send(vec![frame]));
        match sent.await {
            Ok(Ok(())) => Ok(correlation),
            _ => Err(Lost),
        }
    }

    /// The next answer, which has to be that of `correlation`.
    pub async fn receive<R: Request>(
        &self,
        version: i16,
        correlation: i32,
        patience: Duration,
    ) -> Result<R::Response, Lost> {
        let frame = self.core.timeout(patience, self.frame());
        let Ok(Ok(frame)) = frame.await else {
            return Err(Lost);
        };
        let (number, response) = decode_response::<R::Response>(frame.freeze(), version)
            .unwrap_or_else(|error| panic!("{} cannot be read: {error}", R::Response::NAME));
        assert_eq!(number, correlation, "answers come in the order of requests");
        Ok(response)
    }

    async fn frame(&self) -> std::io::Result<BytesMut> {
        let length = self
            .stream
            .recv_exact(BytesMut::with_capacity(4), 4)
            .await?;
        let length = i32::from_be_bytes(length[..].try_into().expect("four bytes"));
        let length = usize::try_from(length).expect("a length is not negative");
        let frame = BytesMut::with_capacity(length);
        self.stream.recv_exact(frame, length).await
    }

    pub async fn call<R: Request>(&self, version: i16, request: &R) -> Result<R::Response, Lost> {
        let correlation = self.send(version, request).await?;
        self.receive::<R>(version, correlation, PATIENCE).await
    }
}
