//! What can be wrong with a configuration.

/// A wrong setting, in Kafka's words where Kafka has words for it (clients see them in INVALID_CONFIG answers).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The key at fault, where it is one key.
    key: Option<String>,
    message: String,
}

impl ConfigError {
    /// `Invalid value V for configuration K: WHY`, as Kafka's ConfigException.
    pub fn value(key: &str, value: &str, why: &str) -> ConfigError {
        ConfigError {
            key: Some(key.to_string()),
            message: format!("Invalid value {value} for configuration {key}: {why}"),
        }
    }

    /// An error about one key with its own sentence.
    pub fn about(key: &str, message: impl Into<String>) -> ConfigError {
        ConfigError {
            key: Some(key.to_string()),
            message: message.into(),
        }
    }

    /// An error about the relation of several keys.
    pub fn relation(message: impl Into<String>) -> ConfigError {
        ConfigError {
            key: None,
            message: message.into(),
        }
    }

    /// The key at fault, where it is one key.
    pub fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }
}

impl std::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ConfigError {}
