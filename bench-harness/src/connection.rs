//! One connection to a broker: frames out, frames in, in order, as Kafka answers them.

use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use bytes::{Bytes, BytesMut};
use futures_lite::io::{ReadHalf, WriteHalf};
use futures_lite::{AsyncReadExt, AsyncWriteExt};
use glommio::net::TcpStream;
use kafka_protocol::messages::{
    ApiVersionsRequest, ApiVersionsResponse, RequestHeader, ResponseHeader,
};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, Request, StrBytes};

/// Nobody's broker takes longer to say which versions it speaks.
const LONGEST_OPENING: Duration = Duration::from_secs(10);

/// A larger answer than this is a broken peer, not a fetch.
const LARGEST_ANSWER: usize = 256 << 20;

/// Highest versions that we use: those that name topics by name, so that no target needs topic ids.
const CAPS: [(i16, i16); 3] = [(0, 12), (1, 12), (3, 9)];

/// Versions that both sides speak, by API key.
#[derive(Clone, Default)]
pub struct Versions(Rc<HashMap<i16, i16>>);

impl Versions {
    pub fn of<R: Request>(&self) -> Result<i16> {
        self.0.get(&R::KEY).copied().ok_or_else(|| {
            anyhow!(
                "the broker does not serve API {} in a version that we know",
                R::KEY
            )
        })
    }

    fn agree(answer: &ApiVersionsResponse) -> Self {
        let mut agreed = HashMap::new();
        for api in &answer.api_keys {
            let Ok(key) = kafka_protocol::messages::ApiKey::try_from(api.api_key) else {
                continue;
            };
            let ours = key.valid_versions();
            let cap = CAPS
                .iter()
                .find(|(capped, _)| *capped == api.api_key)
                .map_or(i16::MAX, |(_, cap)| *cap);
            let highest = api.max_version.min(ours.max).min(cap);
            if highest >= api.min_version.max(ours.min) {
                agreed.insert(api.api_key, highest);
            }
        }
        Self(Rc::new(agreed))
    }
}

/// Both directions of a connection; `split` it to have several requests in flight.
pub struct Connection {
    pub sender: Sender,
    pub receiver: Receiver,
    pub versions: Versions,
}

pub struct Sender {
    half: WriteHalf<TcpStream>,
    buffer: BytesMut,
    correlation: i32,
}

pub struct Receiver {
    half: ReadHalf<TcpStream>,
    /// The memory of the last answer, taken back when nothing refers to it any more.
    last: Bytes,
}

impl Connection {
    /// Connects and agrees on versions.
    pub async fn open(address: &str) -> Result<Self> {
        let silence = async {
            glommio::timer::sleep(LONGEST_OPENING).await;
            bail!(
                "{address} does not answer within {} s",
                LONGEST_OPENING.as_secs()
            )
        };
        futures_lite::future::or(Self::connect(address), silence).await
    }

    async fn connect(address: &str) -> Result<Self> {
        let stream = TcpStream::connect(address)
            .await
            .map_err(|error| anyhow!("cannot connect to {address}: {error}"))?;
        stream
            .set_nodelay(true)
            .map_err(|error| anyhow!("{address}: {error}"))?;
        let (read, write) = futures_lite::io::split(stream);
        let mut connection = Self {
            sender: Sender {
                half: write,
                buffer: BytesMut::new(),
                correlation: 0,
            },
            receiver: Receiver {
                half: read,
                last: Bytes::new(),
            },
            versions: Versions::default(),
        };
        let hello = ApiVersionsRequest::default()
            .with_client_software_name(StrBytes::from_static_str("ringmain-bench"))
            .with_client_software_version(StrBytes::from_static_str(env!("CARGO_PKG_VERSION")));
        let answer = connection
            .exchange(&hello, 3)
            .await
            .with_context(|| format!("{address} does not answer as a Kafka broker"))?;
        ensure!(
            answer.error_code == 0,
            "{address} refuses ApiVersions with error {}",
            answer.error_code
        );
        connection.versions = Versions::agree(&answer);
        Ok(connection)
    }

    /// One request and its answer, nothing else in flight.
    pub async fn call<R: Request>(&mut self, request: &R) -> Result<R::Response> {
        let version = self.versions.of::<R>()?;
        self.exchange(request, version).await
    }

    async fn exchange<R: Request>(&mut self, request: &R, version: i16) -> Result<R::Response> {
        self.sender.send(request, version).await?;
        let frame = self.receiver.receive().await?;
        decode::<R>(frame, version)
    }
}

impl Sender {
    /// Encodes and writes one request.
    pub async fn send<R: Request>(&mut self, request: &R, version: i16) -> Result<()> {
        self.correlation = self.correlation.wrapping_add(1);
        self.buffer.clear();
        self.buffer.extend_from_slice(&[0; 4]);
        RequestHeader::default()
            .with_request_api_key(R::KEY)
            .with_request_api_version(version)
            .with_correlation_id(self.correlation)
            .with_client_id(Some(StrBytes::from_static_str("ringmain-bench")))
            .encode(&mut self.buffer, R::header_version(version))?;
        request.encode(&mut self.buffer, version)?;
        let length = i32::try_from(self.buffer.len() - 4)?;
        self.buffer[..4].copy_from_slice(&length.to_be_bytes());
        self.half
            .write_all(&self.buffer)
            .await
            .context("the broker closed the connection")?;
        Ok(())
    }
}

impl Receiver {
    /// The next answer, header included, without its length.
    pub async fn receive(&mut self) -> Result<Bytes> {
        let mut length = [0; 4];
        self.half
            .read_exact(&mut length)
            .await
            .context("the broker closed the connection")?;
        let length = usize::try_from(i32::from_be_bytes(length)).unwrap_or(usize::MAX);
        if length > LARGEST_ANSWER {
            bail!("an answer of {length} bytes: not a Kafka broker");
        }
        // The memory of the last answer is used again where its slices are gone: clearing megabytes for each
        // fetch would cost as much as receiving them.
        let mut buffer = std::mem::take(&mut self.last)
            .try_into_mut()
            .unwrap_or_default();
        if buffer.len() < length {
            buffer = BytesMut::zeroed(length.next_power_of_two());
        }
        self.half
            .read_exact(&mut buffer[..length])
            .await
            .context("the broker closed the connection")?;
        self.last = buffer.freeze();
        Ok(self.last.slice(..length))
    }
}

/// Reads an answer to a request of this kind.
pub fn decode<R: Request>(mut frame: Bytes, version: i16) -> Result<R::Response> {
    ResponseHeader::decode(&mut frame, R::Response::header_version(version))
        .context("a broken response header")?;
    R::Response::decode(&mut frame, version).context("a broken response")
}
