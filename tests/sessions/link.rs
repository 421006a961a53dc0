//! One connection of a client: what it sent and which answers are owed.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use protocol::wire::{Reader, Writer};
use protocol::{ApiKey, MessageInfo, messages};
use shards::Core;
use shards::io::TcpStream;

const CONNECT_PATIENCE: Duration = Duration::from_secs(60);

/// An answer that is owed.
pub struct Owed {
    pub correlation: i32,
    pub api: ApiKey,
    pub version: i16,
    /// Whether it must come: not where the request was damaged, or asks for none.
    pub certain: bool,
}

pub struct Link {
    core: Core,
    address: SocketAddr,
    stream: TcpStream,
    received: BytesMut,
    pub owed: VecDeque<Owed>,
    next: i32,
    /// Whether something was sent that may end the connection.
    pub may_close: bool,
}

/// What came.
pub enum Came {
    Answer(ApiKey, i16, Bytes),
    Closed,
    Nothing,
}

impl Link {
    /// The numbers of its requests begin with `first`: an answer to another connection is noticed.
    pub async fn open(core: &Core, address: SocketAddr, first: i32) -> Self {
        Self {
            core: core.clone(),
            address,
            stream: connect(core, address).await,
            received: BytesMut::new(),
            owed: VecDeque::new(),
            next: first,
            may_close: false,
        }
    }

    pub async fn reopen(&mut self) {
        self.stream.shutdown();
        self.stream = connect(&self.core, self.address).await;
        self.received.clear();
        self.owed.clear();
        self.may_close = false;
    }

    pub fn next_correlation(&mut self) -> i32 {
        self.next += 1;
        self.next
    }

    pub async fn send(&mut self, frame: Bytes) {
        // A connection that the broker has closed is noticed when its answers are read.
        let sent = self
            .core
            .timeout(Duration::from_secs(1), self.stream.send(vec![frame]));
        let _ = sent.await;
    }

    /// The next answer, checked to be the one that is owed.
    pub async fn receive(&mut self, patience: Duration) -> Came {
        let deadline = self.core.now() + patience;
        loop {
            if let Some(frame) = self.take_frame() {
                return self.check(frame);
            }
            let left = deadline.saturating_duration_since(self.core.now());
            match self.core.timeout(left, self.stream.recv()).await {
                Ok(Ok(bytes)) if !bytes.is_empty() => self.received.extend_from_slice(&bytes),
                // A connection that ends with requests unread takes along what was on its way.
                Ok(_) => {
                    assert!(
                        self.received.is_empty() || self.may_close,
                        "the connection ends inside an answer"
                    );
                    return Came::Closed;
                }
                Err(_) => return Came::Nothing,
            }
        }
    }

    fn take_frame(&mut self) -> Option<Bytes> {
        let length = self.received.first_chunk::<4>()?;
        let length =
            usize::try_from(i32::from_be_bytes(*length)).expect("a length is not negative");
        if self.received.len() < 4 + length {
            return None;
        }
        self.received.advance(4);
        Some(self.received.split_to(length).freeze())
    }

    fn check(&mut self, frame: Bytes) -> Came {
        let correlation = frame.first_chunk().map(|bytes| i32::from_be_bytes(*bytes));
        let correlation = correlation.expect("an answer has a number");
        loop {
            let owed = self.owed.pop_front().expect("no answer is owed");
            if owed.correlation == correlation {
                read(&owed, &frame);
                return Came::Answer(owed.api, owed.version, frame);
            }
            assert!(
                !owed.certain,
                "{} v{} number {} is owed, {correlation} came",
                owed.api.name(),
                owed.version,
                owed.correlation
            );
        }
    }
}

async fn connect(core: &Core, address: SocketAddr) -> TcpStream {
    let deadline = core.now() + CONNECT_PATIENCE;
    loop {
        match TcpStream::connect(core, &address).await {
            Ok(stream) => return stream,
            Err(error) => assert!(core.now() < deadline, "cannot connect: {error}"),
        }
        core.sleep(Duration::from_millis(50)).await;
    }
}

/// Panics where the answer cannot be read to its end in the version that was asked.
fn read(owed: &Owed, frame: &Bytes) {
    let name = format!("{}Response", owed.api.name());
    let info: &MessageInfo = messages::CATALOG
        .iter()
        .find(|info| info.name == name)
        .expect("a response");
    // A version that nobody knows is answered in version 0 (KIP-511).
    let version = match info.versions.contains(owed.version) {
        true => owed.version,
        false => 0,
    };
    let mut reader = Reader::with_budget(frame.clone(), usize::MAX);
    let header = reader.i32().is_ok()
        && (owed.api.response_header_version(version) == 0 || reader.skip_tags().is_ok());
    assert!(header, "{name} v{version}: no header");
    let result = (info.recode)(&mut reader, version, &mut Writer::new(), version);
    assert_eq!(result, Ok(()), "{name} v{version}");
    assert_eq!(reader.remaining(), 0, "{name} v{version}: bytes behind it");
}
