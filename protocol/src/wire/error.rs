use std::fmt;

/// Bytes that are no such message. The connection they came on has lost its framing, or its peer
/// speaks another protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError {
    pub kind: DecodeErrorKind,
    /// Offset in the bytes that the reader was given.
    pub at: usize,
    /// Name of the message; empty where single values were read.
    pub message: &'static str,
    pub version: i16,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DecodeErrorKind {
    /// The bytes end too early.
    Truncated {
        needed: usize,
        left: usize,
    },
    /// A length or count below zero that is not null.
    NegativeLength(i64),
    /// More elements than the bytes left can hold.
    CountTooLarge {
        count: usize,
        left: usize,
    },
    /// The decoded form would take more memory than the reader may use.
    BudgetExceeded {
        needed: usize,
        left: usize,
    },
    StringTooLong(usize),
    NullNotAllowed(&'static str),
    /// More than five bytes (ten for 64 bits), or bits beyond the width.
    VarintTooLong,
    /// Tags have to ascend.
    TagOrder {
        tag: u32,
        previous: u32,
    },
    /// A known tagged field did not use exactly the bytes that it announced.
    TagLength {
        tag: u32,
        left: usize,
    },
    UnsupportedVersion,
    UnknownApiKey(i16),
    /// A number or text outside what is defined.
    Invalid(&'static str),
}

impl DecodeError {
    /// Says of which message the bytes were, unless that is known already.
    pub fn in_message(mut self, message: &'static str, version: i16) -> Self {
        if self.message.is_empty() {
            self.message = message;
            self.version = version;
        }
        self
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.message.is_empty() {
            write!(f, "{} v{}: ", self.message, self.version)?;
        }
        match &self.kind {
            DecodeErrorKind::Truncated { needed, left } => {
                write!(f, "{needed} more bytes expected, {left} left")
            }
            DecodeErrorKind::NegativeLength(length) => write!(f, "negative length {length}"),
            DecodeErrorKind::CountTooLarge { count, left } => {
                write!(f, "{count} elements cannot fit in the {left} bytes left")
            }
            DecodeErrorKind::BudgetExceeded { needed, left } => {
                write!(
                    f,
                    "decoding needs {needed} bytes of memory, {left} are allowed"
                )
            }
            DecodeErrorKind::StringTooLong(length) => {
                write!(
                    f,
                    "string of {length} bytes, at most {} allowed",
                    super::STRING_BYTES_MAX
                )
            }
            DecodeErrorKind::NullNotAllowed(field) => write!(f, "{field} must not be null"),
            DecodeErrorKind::VarintTooLong => write!(f, "varint is too long"),
            DecodeErrorKind::TagOrder { tag, previous } => {
                write!(f, "tag {tag} after tag {previous}: tags must ascend")
            }
            DecodeErrorKind::TagLength { tag, left } => {
                write!(f, "tag {tag} leaves {left} bytes of its length unused")
            }
            DecodeErrorKind::UnsupportedVersion => write!(f, "unsupported version"),
            DecodeErrorKind::UnknownApiKey(key) => write!(f, "unknown api key {key}"),
            DecodeErrorKind::Invalid(what) => write!(f, "invalid {what}"),
        }?;
        write!(f, " (at byte {})", self.at)
    }
}

impl std::error::Error for DecodeError {}

/// A value that the version cannot carry. Always a mistake of the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodeError {
    pub kind: EncodeErrorKind,
    /// Name of the message; empty where single values were written.
    pub message: &'static str,
    pub version: i16,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EncodeErrorKind {
    /// The field differs from its default, the version lacks it, and it is not ignorable.
    NotInVersion(&'static str),
    /// Null, in a version where the field cannot be.
    NullNotAllowed(&'static str),
    /// Longer than its length field can say.
    TooLong(usize),
    UnsupportedVersion,
}

impl EncodeError {
    #[cold]
    pub fn absent(field: &'static str) -> Self {
        EncodeErrorKind::NotInVersion(field).into()
    }

    #[cold]
    pub fn null(field: &'static str) -> Self {
        EncodeErrorKind::NullNotAllowed(field).into()
    }

    pub fn in_message(mut self, message: &'static str, version: i16) -> Self {
        if self.message.is_empty() {
            self.message = message;
            self.version = version;
        }
        self
    }
}

impl From<EncodeErrorKind> for EncodeError {
    fn from(kind: EncodeErrorKind) -> Self {
        EncodeError {
            kind,
            message: "",
            version: 0,
        }
    }
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.message.is_empty() {
            write!(f, "{} v{}: ", self.message, self.version)?;
        }
        match &self.kind {
            EncodeErrorKind::NotInVersion(field) => {
                write!(f, "{field} is set, but this version has no such field")
            }
            EncodeErrorKind::NullNotAllowed(field) => {
                write!(f, "{field} must not be null in this version")
            }
            EncodeErrorKind::TooLong(length) => write!(f, "{length} is too long"),
            EncodeErrorKind::UnsupportedVersion => write!(f, "unsupported version"),
        }
    }
}

impl std::error::Error for EncodeError {}
