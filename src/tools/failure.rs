//! Why a tool ended with code 1.

use std::fmt;

use super::client::ClientError;

/// The text is for a person. It is empty where the tool has said everything on standard output already, as some of
/// Kafka's tools do.
#[derive(Debug, PartialEq, Eq)]
pub struct Failure(String);

impl Failure {
    /// A failure with this text.
    pub fn new(text: impl Into<String>) -> Failure {
        Failure(text.into())
    }

    /// A failure of which nothing is left to say.
    pub fn said() -> Failure {
        Failure(String::new())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Failure {
        Failure(error.to_string())
    }
}

/// Only standard output is written to without a name. Who closed it (`head`, say) has read enough.
impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            return Failure::said();
        }
        Failure(format!("standard output: {error}"))
    }
}
