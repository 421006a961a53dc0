//! A client of the broker: frames over simulated TCP, one connection, another after each loss.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use bytes::BytesMut;
use protocol::frame::{decode_response, encode_request};
use protocol::{Message, Request};
use shards::Core;
use shards::io::TcpStream;

use crate::stage::{Phase, Stage};

/// How long a client waits for an answer beyond what it asked the broker to wait.
pub const PATIENCE: Duration = Duration::from_secs(2);

/// The connection is of no use any more, and what was asked may or may not have been done.
#[derive(Clone, Copy, Debug)]
pub struct Lost;

/// A request whose answer has not come.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    correlation: i32,
    version: i16,
    /// It was sent when all faults were over.
    calm: bool,
}

pub struct Client {
    pub name: String,
    pub core: Core,
    pub stage: Rc<Stage>,
    connection: RefCell<Option<TcpStream>>,
    correlation: Cell<i32>,
}

impl Client {
    pub fn new(name: String, core: Core, stage: Rc<Stage>) -> Self {
        Self {
            name,
            core,
            stage,
            connection: RefCell::new(None),
            correlation: Cell::new(0),
        }
    }

    /// A number below `bound`, by the seed.
    pub fn below(&self, bound: u64) -> u64 {
        self.core.random_u64() % bound
    }

    pub fn chance(&self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub async fn pause(&self, most_ms: u64) {
        let span = Duration::from_millis(1 + self.below(most_ms));
        self.core.sleep(span).await;
    }

    fn is_calm(&self) -> bool {
        self.stage.phase.get() == Phase::Calm
    }

    async fn stream(&self) -> Result<TcpStream, Lost> {
        if let Some(stream) = &*self.connection.borrow() {
            return Ok(stream.clone());
        }
        let connecting = TcpStream::connect(&self.core, &self.stage.broker);
        let Ok(Ok(stream)) = self.core.timeout(PATIENCE, connecting).await else {
            return Err(self.lost().await);
        };
        *self.connection.borrow_mut() = Some(stream.clone());
        Ok(stream)
    }

    /// Gives the connection up, and rests before another.
    pub async fn lost(&self) -> Lost {
        let stream = self.connection.borrow_mut().take();
        drop(stream);
        self.pause(100).await;
        Lost
    }

    /// Sends a request without waiting for its answer.
    pub async fn send<R: Request>(&self, version: i16, request: &R) -> Result<Asked, Lost> {
        let calm = self.is_calm();
        let stream = self.stream().await?;
        let correlation = self.correlation.get() + 1;
        self.correlation.set(correlation);
        let frame = encode_request(request, version, correlation, Some("simulation".into()))
            .unwrap_or_else(|error| panic!("a request that cannot be written: {error}"));
        match self.core.timeout(PATIENCE, stream.send(vec![frame])).await {
            Ok(Ok(())) => Ok(Asked {
                correlation,
                version,
                calm,
            }),
            _ => Err(self.lost().await),
        }
    }

    /// The next answer, which has to be that of `asked`.
    pub async fn receive<R: Request>(
        &self,
        asked: Asked,
        patience: Duration,
    ) -> Result<R::Response, Lost> {
        let stream = self.stream().await?;
        let frame = self.core.timeout(patience, read_frame(&stream));
        let Ok(Ok(frame)) = frame.await else {
            if asked.calm {
                let request = R::NAME;
                self.stage.model.violation(format!(
                    "{}: {request} is not answered, though all faults are over",
                    self.name
                ));
            }
            return Err(self.lost().await);
        };
        let (number, response) = decode_response::<R::Response>(frame.freeze(), asked.version)
            .unwrap_or_else(|error| panic!("{} cannot be read: {error}", R::Response::NAME));
        assert_eq!(
            number, asked.correlation,
            "answers come in the order of requests"
        );
        Ok(response)
    }

    /// Asks, and waits for the answer.
    pub async fn ask<R: Request>(&self, version: i16, request: &R) -> Result<R::Response, Lost> {
        self.ask_patiently(version, request, Duration::ZERO).await
    }

    /// Asks what may take the broker this long.
    pub async fn ask_patiently<R: Request>(
        &self,
        version: i16,
        request: &R,
        longer: Duration,
    ) -> Result<R::Response, Lost> {
        self.stage.doing(&self.name, R::NAME);
        let asked = self.send(version, request).await?;
        self.receive::<R>(asked, PATIENCE + longer).await
    }
}

async fn read_frame(stream: &TcpStream) -> std::io::Result<BytesMut> {
    let length = stream.recv_exact(BytesMut::with_capacity(4), 4).await?;
    let length = i32::from_be_bytes(length[..].try_into().expect("four bytes"));
    let length = usize::try_from(length).expect("a length is not negative");
    stream
        .recv_exact(BytesMut::with_capacity(length), length)
        .await
}
