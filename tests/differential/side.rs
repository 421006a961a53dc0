//! One broker: what it is asked, what it answers, and what it calls by names of its own.
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::codec::{Reader, Writer, varint};
use crate::messages::Api;
use crate::support::broker::Broker;
use crate::value::Value;

/// How long an answer may take before both sides are held to be silent. Only few cases wait so long.
pub const PATIENCE: Duration = Duration::from_secs(12);

/// And where it is known that Apache says nothing.
pub const PATIENCE_WITH_THE_SILENT: Duration = Duration::from_secs(3);

/// The least time for the second side, after the first has taken all.
const PATIENCE_LEAST: Duration = Duration::from_millis(500);

/// One request, ready but for what the two sides call differently.
#[derive(Clone, Debug)]
pub struct Request {
    pub api: String,
    pub version: i16,
    pub body: Value,
    pub frame: Frame,
}

/// What is done to the bytes around and behind the body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Frame {
    #[default]
    Sound,
    NoClientId,
    EmptyClientId,
    /// A tag that nobody knows, in the header.
    HeaderTag,
    /// Bytes that follow the body.
    Tail(Vec<u8>),
    /// So many bytes are missing at the end.
    Cut(usize),
    /// Everything after the header is missing.
    NoBody,
    /// Another version in the header than the one the body is written in.
    Version(i16),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Value(Value),
    /// Bytes that are no answer of this version.
    Unreadable(String),
    /// The next request was answered, this one was not.
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connection {
    /// Another request was answered on it.
    Open,
    Closed,
    /// Neither an answer nor an end within the time.
    Silent,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub answer: Answer,
    pub connection: Connection,
}

pub struct Side {
    pub broker: Broker,
    stream: Option<TcpStream>,
    correlation: i32,
    /// Ids that this broker made up, by what the cases call them.
    pub known: BTreeMap<String, Value>,
}

impl Side {
    pub fn new(broker: Broker) -> Self {
        Self {
            broker,
            stream: None,
            correlation: 0,
            known: BTreeMap::new(),
        }
    }

    /// Sends the request, and behind it one whose answer shows that the connection lives on.
    pub fn send(&mut self, api: &Api, request: &Request) {
        self.correlation += 2;
        let mut bytes = self.frame(api, request);
        bytes.extend([0, 0, 0, 10, 0, 18, 0, 0]);
        bytes.extend((self.correlation + 1).to_be_bytes());
        bytes.extend([0xff, 0xff]);
        let port = self.broker.port;
        let stream = self.stream.get_or_insert_with(|| {
            let stream = TcpStream::connect(("127.0.0.1", port)).expect("the broker listens");
            stream.set_nodelay(true).expect("an option can be set");
            stream
        });
        // It may close before it has taken all; reading tells.
        let _ = stream.write_all(&bytes);
    }

    fn frame(&self, api: &Api, request: &Request) -> Vec<u8> {
        let resolve = |name: &str| {
            let found = self.known.get(name);
            found
                .unwrap_or_else(|| panic!("nothing is known as {name}"))
                .clone()
        };
        let writer = Writer {
            message: &api.request,
            version: request.version,
            resolve: &resolve,
        };
        let version = match request.frame {
            Frame::Version(version) => version,
            _ => request.version,
        };
        let mut out = Vec::new();
        out.extend(api.key.to_be_bytes());
        out.extend(version.to_be_bytes());
        out.extend(self.correlation.to_be_bytes());
        match request.frame {
            Frame::NoClientId => out.extend((-1i16).to_be_bytes()),
            Frame::EmptyClientId => out.extend(0i16.to_be_bytes()),
            _ => {
                out.extend(4i16.to_be_bytes());
                out.extend(b"diff");
            }
        }
        if api.request.flexible.contains(request.version) {
            if request.frame == Frame::HeaderTag {
                varint(&mut out, 1);
                varint(&mut out, 9_999);
                varint(&mut out, 3);
                out.extend(b"tag");
            } else {
                out.push(0);
            }
        }
        let body = writer.body(&request.body);
        match &request.frame {
            Frame::NoBody => {}
            Frame::Cut(count) => out.extend(&body[..body.len().saturating_sub(*count)]),
            Frame::Tail(tail) => {
                out.extend(body);
                out.extend(tail);
            }
            _ => out.extend(body),
        }
        let length = u32::try_from(out.len()).expect("a small frame");
        [&length.to_be_bytes()[..], &out].concat()
    }

    /// What comes of the request sent last, within that time.
    pub fn receive(&mut self, api: &Api, request: &Request, patience: Duration) -> Outcome {
        let stream = self.stream.as_mut().expect("a request was sent");
        let patience = patience.max(PATIENCE_LEAST);
        stream
            .set_read_timeout(Some(patience))
            .expect("a limit can be set");
        let mut answer = Answer::None;
        let connection = loop {
            let body = match self.receive_frame() {
                Ok(body) => body,
                Err(end) => break end,
            };
            let (number, body) = body.split_at_checked(4).unwrap_or_default();
            if number == (self.correlation + 1).to_be_bytes() {
                break Connection::Open;
            }
            if number == self.correlation.to_be_bytes() {
                answer = read_answer(api, request, body);
            } else {
                answer = Answer::Unreadable(format!("an answer to {number:?}"));
            }
        };
        if connection != Connection::Open {
            self.stream = None;
        }
        Outcome { answer, connection }
    }

    fn receive_frame(&mut self) -> Result<Vec<u8>, Connection> {
        let stream = self.stream.as_mut().expect("a request was sent");
        let mut read = |bytes: &mut [u8]| {
            stream.read_exact(bytes).map_err(|error| {
                if [ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&error.kind()) {
                    Connection::Silent
                } else {
                    Connection::Closed
                }
            })
        };
        let mut length = [0; 4];
        read(&mut length)?;
        let mut body = vec![0; u32::from_be_bytes(length) as usize];
        read(&mut body)?;
        Ok(body)
    }
}

fn read_answer(api: &Api, request: &Request, body: &[u8]) -> Answer {
    let version = match request.frame {
        Frame::Version(version) => version,
        _ => request.version,
    };
    if !api.response.versions.contains(version) {
        // Only ApiVersions answers what it does not know, in the words of its first version.
        return decode(api, 0, body);
    }
    let flexible_header = api.key != 18 && api.response.flexible.contains(version);
    match (flexible_header, body.split_first()) {
        (false, _) => decode(api, version, body),
        (true, Some((0, body))) => decode(api, version, body),
        (true, _) => Answer::Unreadable("tags in the header".to_owned()),
    }
}

fn decode(api: &Api, version: i16, body: &[u8]) -> Answer {
    Reader::body(&api.response, version, body).map_or_else(Answer::Unreadable, Answer::Value)
}
