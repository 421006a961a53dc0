//! A client as small as can be: one connection, typed requests of a chosen version, or raw bytes.
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use kafka_protocol::messages::RequestHeader;
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, Request, StrBytes};

/// Longer than any answer may take.
const LIMIT: Duration = Duration::from_secs(40);

pub struct Connection {
    stream: TcpStream,
    correlation: i32,
}

impl Connection {
    pub fn open(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("the broker listens");
        stream
            .set_read_timeout(Some(LIMIT))
            .expect("a limit can be set");
        stream.set_nodelay(true).expect("an option can be set");
        Self {
            stream,
            correlation: 0,
        }
    }

    /// Asks and waits for the answer.
    pub fn call<R: Request>(&mut self, version: i16, request: &R) -> R::Response {
        let correlation = self.send(version, request);
        self.receive::<R>(version, correlation)
    }

    /// Sends a request and returns the number under which the answer comes.
    pub fn send<R: Request>(&mut self, version: i16, request: &R) -> i32 {
        self.correlation += 1;
        self.send_raw(&frame(version, self.correlation, request));
        self.correlation
    }

    pub fn receive<R: Request>(&mut self, version: i16, correlation: i32) -> R::Response {
        let mut answer = self
            .receive_frame()
            .expect("an answer, not the end of the connection");
        assert_eq!(
            answer.get_i32(),
            correlation,
            "answers come in the order of the requests"
        );
        if R::Response::header_version(version) > 0 {
            assert_eq!(
                answer.get_u8(),
                0,
                "no tagged fields in the header of an answer"
            );
        }
        let response =
            R::Response::decode(&mut answer, version).expect("an answer of that version");
        assert_eq!(
            answer.len(),
            0,
            "bytes behind an answer of version {version}"
        );
        response
    }

    pub fn send_raw(&mut self, bytes: &[u8]) {
        self.stream
            .write_all(bytes)
            .expect("the broker takes bytes");
    }

    /// Sends bytes to a broker that may close while they come.
    pub fn try_send_raw(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    /// The next frame, or none where the broker closed the connection.
    pub fn receive_frame(&mut self) -> Option<Bytes> {
        let mut length = [0; 4];
        if !self.read(&mut length) {
            return None;
        }
        let length = usize::try_from(i32::from_be_bytes(length)).expect("a length is not negative");
        let mut body = vec![0; length];
        assert!(self.read(&mut body), "a frame came only in part");
        Some(body.into())
    }

    /// Asserts that the broker ends the connection without another byte.
    pub fn expect_closed(&mut self, why: &str) {
        if let Some(answer) = self.receive_frame() {
            panic!(
                "{why}: an answer of {} bytes in place of the end",
                answer.len()
            );
        }
    }

    /// Whether it read all, rather than the end of the stream.
    fn read(&mut self, bytes: &mut [u8]) -> bool {
        match self.stream.read_exact(bytes) {
            Ok(()) => true,
            Err(error) => {
                let closed = [
                    ErrorKind::UnexpectedEof,
                    ErrorKind::ConnectionReset,
                    ErrorKind::BrokenPipe,
                ];
                assert!(closed.contains(&error.kind()), "no answer: {error}");
                false
            }
        }
    }

    /// No more from this side; what comes is still read.
    pub fn finish_sending(&self) {
        self.stream
            .shutdown(std::net::Shutdown::Write)
            .expect("the socket is open");
    }
}

/// A request as it goes over the wire, its length in front.
pub fn frame<R: Request>(version: i16, correlation: i32, request: &R) -> Bytes {
    let mut body = BytesMut::new();
    let header = RequestHeader::default()
        .with_request_api_key(R::KEY)
        .with_request_api_version(version)
        .with_correlation_id(correlation)
        .with_client_id(Some(StrBytes::from_static_str("wire")));
    header
        .encode(&mut body, R::header_version(version))
        .expect("a header");
    request
        .encode(&mut body, version)
        .unwrap_or_else(|error| panic!("version {version}: {error}"));
    with_length(&body)
}

pub fn with_length(body: &[u8]) -> Bytes {
    let mut whole = BytesMut::new();
    whole.put_i32(i32::try_from(body.len()).expect("a small frame"));
    whole.put_slice(body);
    whole.freeze()
}
