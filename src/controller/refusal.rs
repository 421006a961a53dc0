//! Why a topic cannot be created, grown or deleted: Kafka's code, and its text where it has one.

use protocol::{ErrorCode, Str};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub code: ErrorCode,
    /// `None` where Kafka sends the code alone.
    pub message: Option<Str>,
}

impl Refusal {
    pub fn new(code: ErrorCode, message: impl Into<Str>) -> Self {
        Self {
            code,
            message: Some(message.into().shortened()),
        }
    }

    /// The code without a text of its own.
    pub fn bare(code: ErrorCode) -> Self {
        Self {
            code,
            message: None,
        }
    }

    /// The code with its default text.
    pub fn with_default_text(code: ErrorCode) -> Self {
        Self::new(code, Str::from_static(code.message()))
    }

    pub fn duplicate_name() -> Self {
        Self::new(
            ErrorCode::InvalidRequest,
            Str::from_static("Duplicate topic name."),
        )
    }
}
