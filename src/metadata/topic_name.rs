//! Which names a topic may have, and which topics are Kafka's own.

/// Longest name: a directory is the name, a dash and the partition index.
const LONGEST: usize = 249;

/// The topic that keeps committed offsets.
pub const OFFSETS_TOPIC: &str = "__consumer_offsets";

/// The topics that brokers keep for themselves.
const INTERNAL: [&str; 3] = [OFFSETS_TOPIC, "__transaction_state", "__share_group_state"];

/// What is wrong with a topic's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopicNameProblem {
    /// No characters.
    Empty,
    /// `.` or `..`, which are directories.
    Dots,
    /// More than 249 characters.
    TooLong,
    /// Something else than ASCII letters, digits, `.`, `_` and `-`.
    Characters,
}

impl TopicNameProblem {
    /// The text of Kafka's INVALID_TOPIC_EXCEPTION.
    #[must_use]
    pub fn message(self, name: &str) -> String {
        let what = match self {
            Self::Empty => "the empty string is not allowed".to_owned(),
            Self::Dots => format!("'{name}' is not allowed"),
            Self::TooLong => {
                format!("the length of '{name}' is longer than the max allowed length {LONGEST}")
            }
            Self::Characters => format!(
                "'{name}' contains one or more characters other than ASCII alphanumerics, \
                 '.', '_' and '-'"
            ),
        };
        format!("Topic name is invalid: {what}")
    }
}

/// What is wrong with `name`, if anything.
#[must_use]
pub fn topic_name_problem(name: &str) -> Option<TopicNameProblem> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    match name {
        "" => Some(TopicNameProblem::Empty),
        "." | ".." => Some(TopicNameProblem::Dots),
        _ if name.len() > LONGEST => Some(TopicNameProblem::TooLong),
        _ if !name.bytes().all(allowed) => Some(TopicNameProblem::Characters),
        _ => None,
    }
}

/// Whether the topic is one of Kafka's own.
#[must_use]
pub fn is_internal(name: &str) -> bool {
    INTERNAL.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_judged_as_kafka_does() {
        for good in ["a", "A.b_c-9", "...", &"x".repeat(249)] {
            assert_eq!(topic_name_problem(good), None, "{good}");
        }
        assert_eq!(topic_name_problem(""), Some(TopicNameProblem::Empty));
        assert_eq!(topic_name_problem(".."), Some(TopicNameProblem::Dots));
        assert_eq!(
            topic_name_problem(&"x".repeat(250)),
            Some(TopicNameProblem::TooLong)
        );
        for bad in ["a b", "ä", "a/b", "a\0"] {
            assert_eq!(
                topic_name_problem(bad),
                Some(TopicNameProblem::Characters),
                "{bad}"
            );
        }
    }
}
