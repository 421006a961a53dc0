//! The resource type BROKER_LOGGER of IncrementalAlterConfigs and DescribeConfigs: how much each module of this process
//! logs (KIP-412). Not stored: the next start begins with the levels of its environment.

use protocol::{ErrorCode, Str};

use crate::config::describe::{ConfigSource, DescribedConfig};
use crate::controller::{ConfigChange, ConfigEdit, ConfigOperation, check_edits};
use crate::telemetry::levels::{LevelChange, LogLevel, LogLevels, ROOT, logger_of};

/// Kafka's code and text.
type Refusal = (ErrorCode, Str);

/// Changes levels, all of them or none.
///
/// # Errors
/// The first thing that is wrong, in Kafka's words.
pub(super) fn alter(
    levels: &LogLevels,
    node_id: i32,
    change: &ConfigChange,
    validate_only: bool,
) -> Result<(), Refusal> {
    check_edits(change)?;
    let invalid = |text: String| (ErrorCode::InvalidRequest, Str::from(text).shortened());
    match change.name.parse::<i32>() {
        Ok(id) if id == node_id => {}
        Ok(id) => {
            let text = format!("Unexpected node id. Expected {node_id}, but received {id}");
            return Err(invalid(text));
        }
        Err(_) => {
            let text = format!("Node id must be an integer, but it is: {}", change.name);
            return Err(invalid(text));
        }
    }
    let changes: Vec<LevelChange> = change.edits.iter().map(one).collect::<Result<_, _>>()?;
    if !validate_only {
        for (name, level) in &changes {
            let level = level.map_or_else(|| "that around it".to_owned(), |it| it.to_string());
            tracing::warn!(logger = %name, %level, "the level of a logger was changed");
        }
        levels.change(changes);
    }
    Ok(())
}

fn one(edit: &ConfigEdit) -> Result<LevelChange, Refusal> {
    let name = &*logger_of(&edit.key);
    let invalid = |text: String| Err((ErrorCode::InvalidRequest, Str::from(text).shortened()));
    let config = |text: String| Err((ErrorCode::InvalidConfig, Str::from(text).shortened()));
    let operation = ConfigOperation::from_wire(edit.operation);
    let exists = LogLevels::exists(name);
    match operation {
        Some(ConfigOperation::Set | ConfigOperation::Delete) if !exists => {
            config(format!("Logger {name} does not exist!"))
        }
        Some(ConfigOperation::Set) => {
            let value = edit.value.as_deref().unwrap_or_default();
            match LogLevel::settable(value) {
                Some(level) => Ok((name.to_owned(), Some(level))),
                None => config(format!(
                    "Cannot set the log level of {name} to {value} as it is not a supported log \
                     level. Valid log levels are {}",
                    LogLevel::settable_names()
                )),
            }
        }
        Some(ConfigOperation::Delete) if name == ROOT => {
            invalid("Removing the log level of the root logger is not allowed".to_owned())
        }
        Some(ConfigOperation::Delete) => Ok((name.to_owned(), None)),
        Some(ConfigOperation::Append) => {
            invalid("APPEND operation is not allowed for the BROKER_LOGGER resource".to_owned())
        }
        Some(ConfigOperation::Subtract) => {
            invalid("SUBTRACT operation is not allowed for the BROKER_LOGGER resource".to_owned())
        }
        None => invalid(format!(
            "Unknown operation type {} is not allowed for the BROKER_LOGGER resource",
            edit.operation
        )),
    }
}

/// Every logger and the level that holds for it.
pub(super) fn describe(levels: &LogLevels) -> Vec<DescribedConfig> {
    let described = |(name, level): (&str, LogLevel)| DescribedConfig {
        name: name.to_owned(),
        value: Some(level.to_string()),
        source: ConfigSource::BrokerLogger,
        read_only: false,
        sensitive: false,
        synonyms: Vec::new(),
        kind: None,
        documentation: None,
    };
    levels.all().into_iter().map(described).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::configs::ResourceType;

    fn edit(key: &str, operation: i8, value: Option<&str>) -> ConfigEdit {
        ConfigEdit {
            key: key.into(),
            operation,
            value: value.map(Str::from),
        }
    }

    fn change(edits: Vec<ConfigEdit>) -> ConfigChange {
        ConfigChange {
            kind: ResourceType::BROKER_LOGGER,
            name: "1".into(),
            edits,
        }
    }

    #[test]
    fn one_wrong_change_leaves_all_levels_alone() {
        let levels = LogLevels::unheeded();
        let before = levels.all();
        let wrong = change(vec![
            edit("broker", 0, Some("TRACE")),
            edit("broker.server", 0, Some("LOUD")),
        ]);
        let (code, text) = alter(&levels, 1, &wrong, false).unwrap_err();
        assert_eq!(code, ErrorCode::InvalidConfig);
        assert_eq!(
            &*text,
            "Cannot set the log level of broker.server to LOUD as it is not a supported log level. \
             Valid log levels are DEBUG, ERROR, FATAL, INFO, TRACE, WARN"
        );
        let right = change(vec![edit("broker", 0, Some("TRACE"))]);
        alter(&levels, 1, &right, true).unwrap();
        assert_eq!(levels.all(), before);
        alter(&levels, 1, &right, false).unwrap();
        let debugs = levels
            .all()
            .iter()
            .filter(|(_, level)| *level == LogLevel::Trace)
            .count();
        assert_eq!(debugs, before.len() - 1, "all but root");
        alter(&levels, 1, &change(vec![edit("broker", 1, None)]), false).unwrap();
        assert_eq!(levels.all(), before);
    }
}
