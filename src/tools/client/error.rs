use std::io;

use protocol::wire::{DecodeError, EncodeError};
use protocol::{ApiKey, ErrorCode, Str, VersionRange};

/// What goes wrong between a tool and a cluster.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// A flag or a key of the client's configuration that cannot be used.
    #[error("{0}")]
    Settings(String),
    /// None of the addresses that the tool was given answers.
    #[error("no {who} answers at {tried}: is it running, and is {flag} right?")]
    NobodyAnswers {
        who: &'static str,
        flag: &'static str,
        tried: String,
    },
    /// A node whose address came from the cluster.
    #[error(
        "node {id} is advertised at {address} and does not answer there ({error}): check its advertised.listeners"
    )]
    NodeUnreachable {
        id: i32,
        address: String,
        error: io::Error,
    },
    /// An open connection broke.
    #[error("the connection to {address} broke ({error})")]
    Broken { address: String, error: io::Error },
    /// No answer in time.
    #[error("{address} did not answer {api} within {millis} ms (request.timeout.ms)")]
    Silent {
        address: String,
        api: ApiKey,
        millis: u128,
    },
    /// No version of the API that both sides speak, or the API is missing there.
    #[error("{address} speaks {}, this tool in versions {ours}: they have none in common", spoken(*.api, *.theirs))]
    NoCommonVersion {
        address: String,
        api: ApiKey,
        ours: VersionRange,
        theirs: Option<VersionRange>,
    },
    /// Bytes that are no answer to the request.
    #[error(
        "{address} answered {api} with bytes that cannot be read ({error}): is a Kafka broker there, without TLS?"
    )]
    Unreadable {
        address: String,
        api: ApiKey,
        error: DecodeError,
    },
    /// What was asked for cannot be said in the version that the other side speaks.
    #[error("{address} is too old for this request ({error})")]
    Unwritable { address: String, error: EncodeError },
    /// A node that the cluster's metadata does not have.
    #[error("the cluster has no node {0}")]
    UnknownNode(i32),
    /// The cluster names no controller.
    #[error("the cluster has no controller at the moment")]
    NoController,
    /// The answer is an error code.
    #[error("{}", words(*.code, .message.as_deref()))]
    Server { code: i16, message: Option<Str> },
}

fn spoken(api: ApiKey, range: Option<VersionRange>) -> String {
    range.map_or_else(
        || format!("no {api}"),
        |range| format!("{api} in versions {range}"),
    )
}

/// What the server said, else Kafka's words for the code.
fn words(code: i16, message: Option<&str>) -> String {
    match (message, ErrorCode::from_i16(code)) {
        (Some(message), _) => message.to_owned(),
        (None, Some(error)) => error.message().to_owned(),
        (None, None) => format!("the server answered with the unknown error code {code}"),
    }
}

impl ClientError {
    /// An error for this code, nothing for 0.
    ///
    /// # Errors
    /// The code, if it is not 0.
    pub fn check(code: i16, message: Option<&Str>) -> Result<(), ClientError> {
        match code {
            0 => Ok(()),
            _ => Err(ClientError::Server {
                code,
                message: message.cloned(),
            }),
        }
    }

    /// The code that the server answered with.
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            ClientError::Server { code, .. } => ErrorCode::from_i16(*code),
            _ => None,
        }
    }

    /// Whether the same request may go well a little later, or at another node. A missing topic is none of these: Kafka's
    /// admin client reports it at once.
    pub fn is_passing(&self) -> bool {
        match self {
            ClientError::Broken { .. }
            | ClientError::Silent { .. }
            | ClientError::NodeUnreachable { .. }
            | ClientError::UnknownNode(_)
            | ClientError::NoController => true,
            ClientError::Server { .. } => self.code().is_some_and(|code| {
                code.is_retriable()
                    && !matches!(
                        code,
                        ErrorCode::UnknownTopicOrPartition
                            | ErrorCode::UnknownTopicId
                            | ErrorCode::ElectionNotNeeded
                            | ErrorCode::EligibleLeadersNotAvailable
                            | ErrorCode::PreferredLeaderNotAvailable
                    )
            }),
            _ => false,
        }
    }
}
