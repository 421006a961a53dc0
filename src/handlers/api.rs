//! The trait of a handler, the list of handlers, and the way from a frame to one of them.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use bytes::Bytes;
use protocol::frame::{RequestHeader, encode_response};
use protocol::wire::{DecodeError, Reader};
use protocol::{ApiKey, ListenerKind, Message, VersionRange};
use shards::time::Instant;

use super::*;
use crate::outgoing::{Answer, Outgoing, Part};
use crate::shard::{Asked, BadRequest, Caller, Shard, Stage};

/// One request on its way through a handler.
#[derive(Clone)]
pub struct Call {
    /// The core that owns the connection.
    pub shard: Rc<Shard>,
    /// The connection.
    pub caller: Rc<Caller>,
    /// The request's header, and where its time goes.
    pub header: Rc<Asked>,
}

impl Call {
    /// The version the client speaks.
    pub fn version(&self) -> i16 {
        self.header.version
    }

    /// A stage of the request that began then has ended.
    pub fn took(&self, stage: Stage, begun: Instant) {
        self.header.took(stage, self.shard.core.now() - begun);
    }

    /// The client's name for itself, empty if it gave none.
    pub fn client_id(&self) -> &str {
        self.header.client_id.as_deref().unwrap_or_default()
    }
}

/// An API that is decoded, handled and encoded by the schema.
pub trait Handler {
    /// The request; its response and API key follow from it.
    type Request: protocol::Request;

    /// Answers the request.
    fn handle(
        call: Call,
        request: Self::Request,
    ) -> impl Future<Output = <Self::Request as protocol::Request>::Response>;
}

/// A request whose header is known and whose version is served.
pub struct Request {
    header: Rc<Asked>,
    body: Reader,
    /// ApiVersions of a version that nobody knows: answered, not decoded (KIP-511).
    unknown_api_versions: bool,
}

impl Request {
    /// Its header, and where its time goes.
    pub fn asked(&self) -> &Rc<Asked> {
        &self.header
    }

    /// Whether it may start before the earlier requests of its connection are answered.
    pub fn overlaps(&self) -> bool {
        matches!(self.header.api, ApiKey::Produce | ApiKey::Fetch)
    }
}

/// Why a frame is no request that the broker answers.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// The header or body does not decode.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// An API that this listener does not serve.
    #[error("{0:?} is not served on this listener")]
    Api(ApiKey),
    /// A version out of range; only ApiVersions has an answer for that.
    #[error("{api:?} version {version} is not served")]
    Version {
        /// The API.
        api: ApiKey,
        /// The version asked for.
        version: i16,
    },
}

impl RequestError {
    /// What it is counted as.
    pub fn reason(&self) -> BadRequest {
        match self {
            RequestError::Decode(_) => BadRequest::Header,
            RequestError::Api(_) => BadRequest::Api,
            RequestError::Version { .. } => BadRequest::Version,
        }
    }
}

/// How far a request got.
pub enum Begun {
    /// Answered.
    Done(Answer),
    /// To be awaited before the next request of the connection starts.
    Exclusive(Pin<Box<dyn Future<Output = Answer>>>),
    /// Ordered already; may finish whenever it does.
    Overlapping(Pin<Box<dyn Future<Output = Answer>>>),
}

/// Reads the header and checks that the API and version are served on the caller's listener.
///
/// # Errors
/// See [`RequestError`]: no error response exists, the connection is to be closed.
pub fn open(shard: &Rc<Shard>, caller: &Rc<Caller>, frame: Bytes) -> Result<Request, RequestError> {
    let bytes = frame.len();
    let mut body = Reader::with_budget(frame, shard.limits.decode_bytes);
    let header = RequestHeader::decode(&mut body)?;
    let (api, version) = (header.api, header.version);
    let served = supported(api, caller.kind).ok_or(RequestError::Api(api))?;
    let unknown_api_versions = api == ApiKey::ApiVersions && !served.contains(version);
    let is_served = served.contains(version) || unknown_api_versions;
    if api.last_deprecated().is_some_and(|last| version <= last) {
        shard.metrics.old_versions.add(
            (api, version),
            caller.software(),
            (
                header.client_id.as_deref().unwrap_or_default(),
                caller.peer.ip(),
            ),
            is_served,
        );
    }
    if !is_served {
        return Err(RequestError::Version { api, version });
    }
    Ok(Request {
        header: Asked::new(&shard.metrics.requests, header, bytes, shard.core.now()),
        body,
        unknown_api_versions,
    })
}

/// Starts a request. Everything whose order matters has happened when this returns.
pub fn begin(shard: &Rc<Shard>, caller: &Rc<Caller>, request: Request) -> Begun {
    let Request {
        header,
        body,
        unknown_api_versions,
    } = request;
    let call = Call {
        shard: shard.clone(),
        caller: caller.clone(),
        header,
    };
    call.header.begin(shard.core.now());
    if unknown_api_versions {
        return Begun::Done(api_versions::unknown_version(&call));
    }
    match call.header.api {
        ApiKey::Produce => produce::begin(call, body),
        ApiKey::Fetch => fetch::begin(call, body),
        _ => dispatch(call, body),
    }
}

/// Decodes, handles and encodes one request of an API that the schema describes.
fn run<H: Handler>(call: Call, mut body: Reader) -> Begun
where
    H::Request: 'static,
{
    let begun = call.shard.core.now();
    let request = match H::Request::decode(&mut body, call.version()) {
        Ok(request) => request,
        Err(error) => return Begun::Done(undecodable(&call, &error)),
    };
    call.took(Stage::Decode, begun);
    Begun::Exclusive(Box::pin(async move {
        let response = H::handle(call.clone(), request).await;
        encode(&call, &response)
    }))
}

/// A body that does not decode closes the connection, as in Kafka.
pub(super) fn undecodable(call: &Call, error: &DecodeError) -> Answer {
    let metrics = &call.shard.metrics;
    metrics.bad_request(BadRequest::Body);
    if let Some(before) = metrics.closing_lines.tell(call.shard.core.now()) {
        tracing::info!(
            peer = %call.caller.peer, %error, lines_kept_back = before,
            "closing a connection after a bad request"
        );
    }
    Answer::Close
}

/// Encodes a response with its header.
pub(super) fn encode<R: protocol::Response>(call: &Call, response: &R) -> Answer {
    encode_as(call, call.version(), response)
}

/// Encodes a response in another version than the request's.
pub(super) fn encode_as<R: protocol::Response>(call: &Call, version: i16, response: &R) -> Answer {
    response.each_error(&mut |code| call.header.count_error(code));
    match encode_response(response, version, call.header.correlation_id) {
        Ok(pieces) => {
            let parts = pieces.into_iter().map(Part::Memory).collect();
            Answer::Send(Outgoing::new(parts))
        }
        Err(error) => {
            tracing::error!(%error, "a response could not be encoded; closing the connection");
            Answer::Close
        }
    }
}

/// Expands the list of handlers into the dispatch and the list of what is supported.
macro_rules! apis {
    ($($api:ident => $handler:path,)*) => {
        /// The APIs that the schema describes, by their key.
        fn dispatch(call: Call, body: Reader) -> Begun {
            match call.header.api {
                $(ApiKey::$api => run::<$handler>(call, body),)*
                _ => Begun::Done(Answer::Close),
            }
        }

        /// Every API with a handler here.
        pub const SUPPORTED: &[ApiKey] = &[ApiKey::Produce, ApiKey::Fetch, $(ApiKey::$api,)*];
    };
}

apis! {
    ApiVersions => api_versions::ApiVersions,
    Metadata => metadata::Metadata,
    CreateTopics => admin::CreateTopics,
    DeleteTopics => admin::DeleteTopics,
    CreatePartitions => admin::CreatePartitions,
    AlterConfigs => alter_configs::AlterConfigs,
    IncrementalAlterConfigs => alter_configs::IncrementalAlterConfigs,
    DescribeAcls => acls::DescribeAcls,
    CreateAcls => acls::CreateAcls,
    DeleteAcls => acls::DeleteAcls,
    ListTransactions => transactions::ListTransactions,
    DescribeTransactions => transactions::DescribeTransactions,
    DescribeProducers => describe_producers::DescribeProducers,
    AlterPartitionReassignments => reassignments::AlterPartitionReassignments,
    ListPartitionReassignments => reassignments::ListPartitionReassignments,
    ElectLeaders => elect_leaders::ElectLeaders,
    DescribeQuorum => describe_quorum::DescribeQuorum,
    UpdateFeatures => update_features::UpdateFeatures,
    UnregisterBroker => unregister_broker::UnregisterBroker,
    DescribeClientQuotas => describe_client_quotas::DescribeClientQuotas,
    DescribeUserScramCredentials =>
        describe_user_scram_credentials::DescribeUserScramCredentials,
    DeleteRecords => delete_records::DeleteRecords,
    DescribeTopicPartitions => describe_topic_partitions::DescribeTopicPartitions,
    DescribeLogDirs => describe_log_dirs::DescribeLogDirs,
    ListConfigResources => list_config_resources::ListConfigResources,
    DescribeConfigs => describe_configs::DescribeConfigs,
    DescribeCluster => describe_cluster::DescribeCluster,
    ListOffsets => list_offsets::ListOffsets,
    OffsetForLeaderEpoch => offset_for_leader_epoch::OffsetForLeaderEpoch,
    FindCoordinator => find_coordinator::FindCoordinator,
    JoinGroup => groups::JoinGroup,
    SyncGroup => groups::SyncGroup,
    Heartbeat => groups::Heartbeat,
    LeaveGroup => groups::LeaveGroup,
    OffsetCommit => groups::OffsetCommit,
    OffsetFetch => groups::OffsetFetch,
    OffsetDelete => groups::OffsetDelete,
    ListGroups => groups::ListGroups,
    DescribeGroups => groups::DescribeGroups,
    DeleteGroups => groups::DeleteGroups,
    InitProducerId => init_producer_id::InitProducerId,
}

/// Whether the handler of `api` is for listeners of this kind. On a controller, Fetch is how other nodes follow the
/// metadata log, which is not built yet; the handler here is that of clients.
pub(super) fn is_for(api: ApiKey, kind: ListenerKind) -> bool {
    api != ApiKey::Fetch || kind == ListenerKind::Broker
}

/// The versions of `api` that are served on a listener of this kind.
pub fn supported(api: ApiKey, kind: ListenerKind) -> Option<VersionRange> {
    (SUPPORTED.contains(&api) && is_for(api, kind))
        .then(|| api.versions_on(kind))
        .flatten()
}
