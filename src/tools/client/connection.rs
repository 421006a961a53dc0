//! One connection to one node: versions agreed on, requests written, answers read in whatever order they are asked for.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read, Write};
use std::marker::PhantomData;
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use bytes::Bytes;
use protocol::frame::{self, LENGTH_BYTES};
use protocol::messages::{ApiVersionsRequest, ApiVersionsResponse};
use protocol::wire::Reader;
use protocol::{ApiKey, ErrorCode, Message, Request, Str, VersionRange};

use super::ClientError;
use super::settings::{Address, Settings};
use crate::tools::waiting::waiting_for;

/// The largest answer that is read; a fetch of many partitions may be large.
const FRAME_MAX: usize = 1 << 30;

/// A request under way, to be handed to [`Connection::finish`].
#[derive(Debug)]
#[must_use = "an answer will come and must be read"]
pub struct Ticket<R> {
    correlation_id: i32,
    version: i16,
    request: PhantomData<R>,
}

/// A connection to one node.
#[derive(Debug)]
pub struct Connection {
    address: String,
    stream: TcpStream,
    client_id: Str,
    timeout: Duration,
    answered: ApiVersionsResponse,
    versions: BTreeMap<i16, VersionRange>,
    next_id: i32,
    /// Requests whose answers have not been read, in the order in which they will come.
    under_way: VecDeque<i32>,
    /// Answers read while a later one was waited for.
    early: BTreeMap<i32, Bytes>,
}

impl Connection {
    /// Connects and agrees on versions.
    ///
    /// # Errors
    /// Nobody answers there, or not a Kafka broker.
    pub fn open(address: &Address, settings: &Settings) -> Result<Connection, ClientError> {
        let shown = address.to_string();
        let _waiting = waiting_for(|| format!("connecting to {shown}"));
        let stream =
            connect(address, settings.request_timeout).map_err(|error| ClientError::Broken {
                address: shown.clone(),
                error,
            })?;
        let mut connection = Connection {
            address: shown,
            stream,
            client_id: settings.client_id.clone(),
            timeout: settings.request_timeout,
            answered: ApiVersionsResponse::default(),
            versions: BTreeMap::new(),
            next_id: 0,
            under_way: VecDeque::new(),
            early: BTreeMap::new(),
        };
        connection.agree()?;
        Ok(connection)
    }

    /// Where it leads, for messages to people.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// What the node answered when asked what it speaks.
    pub fn api_versions(&self) -> &ApiVersionsResponse {
        &self.answered
    }

    /// The highest version of a request that both sides speak.
    ///
    /// # Errors
    /// There is none.
    pub fn version<R: Request>(&self) -> Result<i16, ClientError> {
        self.version_within::<R>(R::VERSIONS.min, R::LATEST_STABLE)
    }

    /// The highest version of a request within these bounds that the node speaks too.
    ///
    /// # Errors
    /// There is none.
    pub fn version_within<R: Request>(&self, min: i16, max: i16) -> Result<i16, ClientError> {
        let theirs = self.versions.get(&R::API.code()).copied();
        let highest = theirs.map(|theirs| (theirs.min.max(min), theirs.max.min(max)));
        match highest {
            Some((low, high)) if low <= high => Ok(high),
            _ => Err(ClientError::NoCommonVersion {
                address: self.address.clone(),
                api: R::API,
                ours: VersionRange::new(min, max),
                theirs,
            }),
        }
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// No common version, no answer in time, or the connection breaks.
    pub fn send<R: Request>(&mut self, request: &R) -> Result<R::Response, ClientError> {
        let version = self.version::<R>()?;
        let ticket = self.start_as(request, version)?;
        self.finish(ticket)
    }

    /// Writes a request and does not wait. Several may be under way.
    ///
    /// # Errors
    /// No common version, or the connection breaks.
    pub fn start<R: Request>(&mut self, request: &R) -> Result<Ticket<R>, ClientError> {
        let version = self.version::<R>()?;
        self.start_as(request, version)
    }

    /// Like `start`, in a version that the caller took from [`Connection::version_within`].
    ///
    /// # Errors
    /// The version cannot say what the request asks for, or the connection breaks.
    pub fn start_as<R: Request>(
        &mut self,
        request: &R,
        version: i16,
    ) -> Result<Ticket<R>, ClientError> {
        let ticket = self.write(request, version)?;
        self.under_way.push_back(ticket.correlation_id);
        Ok(ticket)
    }

    /// For a request that is never answered: Produce with acks=0.
    ///
    /// # Errors
    /// As `start_as`.
    pub fn tell<R: Request>(&mut self, request: &R, version: i16) -> Result<(), ClientError> {
        let _ = self.write(request, version)?;
        Ok(())
    }

    fn write<R: Request>(&mut self, request: &R, version: i16) -> Result<Ticket<R>, ClientError> {
        let correlation_id = self.next_id;
        self.next_id = self.next_id.wrapping_add(1);
        let client_id = Some(self.client_id.clone());
        let frame = frame::encode_request(request, version, correlation_id, client_id);
        let frame = frame.map_err(|error| ClientError::Unwritable {
            address: self.address.clone(),
            error,
        })?;
        self.stream
            .write_all(&frame)
            .map_err(|error| self.broken(R::API, error))?;
        Ok(Ticket {
            correlation_id,
            version,
            request: PhantomData,
        })
    }

    /// Waits for the answer to an earlier request. Other answers that come first are kept for their own turn.
    ///
    /// # Errors
    /// No answer in time, or the connection breaks.
    pub fn finish<R: Request>(&mut self, ticket: Ticket<R>) -> Result<R::Response, ClientError> {
        let frame = self.answer_to(R::API, ticket.correlation_id)?;
        match frame::decode_response::<R::Response>(frame, ticket.version) {
            Ok((_, response)) => Ok(response),
            Err(error) => Err(ClientError::Unreadable {
                address: self.address.clone(),
                api: R::API,
                error,
            }),
        }
    }

    /// Whether the answer was read already, while another was waited for: then the socket may stay silent.
    pub fn has_answer<R>(&self, ticket: &Ticket<R>) -> bool {
        self.early.contains_key(&ticket.correlation_id)
    }

    /// Whether the answer is still to come, or there. Not so after the connection was opened anew.
    pub fn expects<R>(&self, ticket: &Ticket<R>) -> bool {
        self.has_answer(ticket) || self.under_way.contains(&ticket.correlation_id)
    }

    fn answer_to(&mut self, api: ApiKey, id: i32) -> Result<Bytes, ClientError> {
        let deadline = Instant::now() + self.timeout;
        let name = || {
            format!(
                "waiting for the answer of {} to {}",
                self.address,
                api.name()
            )
        };
        let _waiting = waiting_for(name);
        while !self.early.contains_key(&id) {
            let frame = self
                .read_frame(deadline)
                .map_err(|error| self.broken(api, error))?;
            let found = frame
                .first_chunk::<4>()
                .map(|bytes| i32::from_be_bytes(*bytes));
            let expected = self.under_way.pop_front();
            match (found, expected) {
                (Some(found), Some(expected)) if found == expected => {
                    self.early.insert(found, frame);
                }
                _ => {
                    let text = format!("an answer to {found:?} came where {expected:?} was next");
                    let error = io::Error::new(io::ErrorKind::InvalidData, text);
                    return Err(self.broken(api, error));
                }
            }
        }
        Ok(self.early.remove(&id).unwrap_or_default())
    }

    fn read_frame(&mut self, deadline: Instant) -> io::Result<Bytes> {
        let mut length = [0; LENGTH_BYTES];
        let stream = &mut Until {
            stream: &self.stream,
            deadline,
        };
        stream.read_exact(&mut length)?;
        let length = frame::parse_length(length, FRAME_MAX)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        // Grows with what comes, not with what the length claims.
        let mut bytes = Vec::with_capacity(length.min(1 << 20));
        stream.take(length as u64).read_to_end(&mut bytes)?;
        if bytes.len() < length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(bytes.into())
    }

    fn broken(&self, api: ApiKey, error: io::Error) -> ClientError {
        let address = self.address.clone();
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => ClientError::Silent {
                address,
                api,
                millis: self.timeout.as_millis(),
            },
            io::ErrorKind::UnexpectedEof => {
                let error = io::Error::new(error.kind(), "closed by the other side");
                ClientError::Broken { address, error }
            }
            _ => ClientError::Broken { address, error },
        }
    }

    /// A broker that does not know the version of ApiVersions answers in version 0, with the versions that it does know.
    fn agree(&mut self) -> Result<(), ClientError> {
        let mut version = ApiVersionsRequest::LATEST_STABLE;
        loop {
            let request = ApiVersionsRequest {
                client_software_name: Str::from_static("ringmain"),
                client_software_version: Str::from_static(env!("CARGO_PKG_VERSION")),
                ..ApiVersionsRequest::default()
            };
            let ticket = self.start_as(&request, version)?;
            let frame = self.answer_to(ApiKey::ApiVersions, ticket.correlation_id)?;
            let unsupported =
                frame.get(4..6) == Some(&ErrorCode::UnsupportedVersion.code().to_be_bytes());
            let read_as = if unsupported { 0 } else { version };
            let answer = self.read_api_versions(frame, read_as)?;
            if !unsupported {
                ClientError::check(answer.error_code, None)?;
                self.versions = answer
                    .api_keys
                    .iter()
                    .map(|api| {
                        (
                            api.api_key,
                            VersionRange::new(api.min_version, api.max_version),
                        )
                    })
                    .collect();
                self.answered = answer;
                return Ok(());
            }
            let theirs = answer
                .api_keys
                .iter()
                .find(|api| api.api_key == ApiKey::ApiVersions.code());
            // Always lower than before, so that this ends.
            version = match theirs {
                Some(theirs) if theirs.max_version < version => theirs.max_version.max(0),
                _ if version > 0 => 0,
                _ => return ClientError::check(answer.error_code, None),
            };
        }
    }

    fn read_api_versions(
        &self,
        frame: Bytes,
        version: i16,
    ) -> Result<ApiVersionsResponse, ClientError> {
        let mut reader = Reader::new(frame);
        frame::decode_response_header(&mut reader, ApiKey::ApiVersions, version)
            .and_then(|_| ApiVersionsResponse::decode(&mut reader, version))
            .map_err(|error| ClientError::Unreadable {
                address: self.address.clone(),
                api: ApiKey::ApiVersions,
                error,
            })
    }
}

/// To wait until the next answer begins to arrive.
impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// Tries every address that the name has.
fn connect(address: &Address, timeout: Duration) -> io::Result<TcpStream> {
    let mut last = None;
    for found in (address.host.as_str(), address.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&found, timeout) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                stream.set_write_timeout(Some(timeout))?;
                return Ok(stream);
            }
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the name has no address")))
}

/// Reads until a moment, however small the pieces are in which the bytes come.
struct Until<'a> {
    stream: &'a TcpStream,
    deadline: Instant,
}

impl Read for Until<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        self.stream.read(buffer)
    }
}
