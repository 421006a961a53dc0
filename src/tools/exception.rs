//! The names of Kafka's exceptions, which some of its tools print before the words.

use protocol::ErrorCode;

use super::client::ClientError;

/// Most names follow from the code's; these do not.
const NAMED_OTHERWISE: &[(ErrorCode, &str)] = &[
    (ErrorCode::UnknownServerError, "UnknownServerException"),
    (ErrorCode::CorruptMessage, "CorruptRecordException"),
    (ErrorCode::RequestTimedOut, "TimeoutException"),
    (ErrorCode::MessageTooLarge, "RecordTooLargeException"),
    (ErrorCode::StaleControllerEpoch, "ControllerMovedException"),
    (ErrorCode::OffsetMetadataTooLarge, "OffsetMetadataTooLarge"),
    (
        ErrorCode::RecordListTooLarge,
        "RecordBatchTooLargeException",
    ),
    (
        ErrorCode::TopicAuthorizationFailed,
        "TopicAuthorizationException",
    ),
    (
        ErrorCode::GroupAuthorizationFailed,
        "GroupAuthorizationException",
    ),
    (
        ErrorCode::ClusterAuthorizationFailed,
        "ClusterAuthorizationException",
    ),
    (ErrorCode::TopicAlreadyExists, "TopicExistsException"),
    (ErrorCode::InvalidConfig, "InvalidConfigurationException"),
    (ErrorCode::KafkaStorageError, "KafkaStorageException"),
    (ErrorCode::NonEmptyGroup, "GroupNotEmptyException"),
    (
        ErrorCode::InvalidRegularExpression,
        "InvalidRegularExpression",
    ),
];

/// An error as Java shows an exception: its full name, a colon, its words.
pub(super) fn named(error: &ClientError) -> String {
    match error.code() {
        Some(code) => format!("{}: {error}", full_name(code)),
        None => error.to_string(),
    }
}

/// The name of its class, with the package.
pub(super) fn full_name(code: ErrorCode) -> String {
    format!("org.apache.kafka.common.errors.{}", name(code))
}

fn name(code: ErrorCode) -> String {
    let other = NAMED_OTHERWISE.iter().find(|(known, _)| *known == code);
    if let Some((_, name)) = other {
        return (*name).to_owned();
    }
    let mut name = String::new();
    for word in code.name().split('_') {
        let (first, rest) = word.split_at(1.min(word.len()));
        name.push_str(first);
        name.push_str(&rest.to_lowercase());
    }
    if !name.ends_with("Exception") {
        name.push_str("Exception");
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_javas() {
        assert_eq!(
            name(ErrorCode::OffsetOutOfRange),
            "OffsetOutOfRangeException"
        );
        assert_eq!(
            name(ErrorCode::InvalidTopicException),
            "InvalidTopicException"
        );
        assert_eq!(name(ErrorCode::NonEmptyGroup), "GroupNotEmptyException");
        assert_eq!(name(ErrorCode::GroupIdNotFound), "GroupIdNotFoundException");
    }
}
