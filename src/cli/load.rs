//! From file and overrides to settings, with errors that name the file, the key and what would be right.

use std::collections::BTreeMap;
use std::path::Path;

use super::{Failure, Overrides};
use crate::config::{
    BrokerConfig, ConfigError, Settings, properties, single_node, what_is_allowed,
};

/// The configuration of a node: from a file, or without one the settings of a node that serves this machine.
pub(super) fn broker_config(
    file: Option<&Path>,
    overrides: &Overrides,
) -> Result<BrokerConfig, Failure> {
    let overrides = parse_overrides(&overrides.overrides)?;
    let written = match file {
        None => single_node(&overrides),
        Some(path) => {
            let mut written = read(path)?;
            written.extend(overrides);
            written
        }
    };
    Settings::new(written)
        .and_then(BrokerConfig::new)
        .map_err(|error| explained(file, &error))
}

fn read(path: &Path) -> Result<BTreeMap<String, String>, Failure> {
    let bytes = std::fs::read(path)
        .map_err(|error| Failure::new(format!("{}: {error}", path.display())))?;
    properties::parse(&bytes).map_err(|error| Failure::new(format!("{}: {error}", path.display())))
}

/// `KEY=VALUE` each; the last of a key counts.
fn parse_overrides(texts: &[String]) -> Result<BTreeMap<String, String>, Failure> {
    let mut overrides = BTreeMap::new();
    for text in texts {
        let (key, value) = text
            .split_once('=')
            .filter(|(key, _)| !key.trim().is_empty())
            .ok_or_else(|| Failure::new(format!("--override {text}: it must be KEY=VALUE")))?;
        overrides.insert(key.trim().to_string(), value.to_string());
    }
    Ok(overrides)
}

/// One line: where, what is wrong, what is allowed.
fn explained(file: Option<&Path>, error: &ConfigError) -> Failure {
    let place = file
        .map(|path| format!("{}: ", path.display()))
        .unwrap_or_default();
    let allowed = error
        .key()
        .filter(|_| error.to_string().starts_with("Invalid value"))
        .and_then(what_is_allowed)
        .map(|allowed| format!(" (allowed: {allowed})"))
        .unwrap_or_default();
    Failure::new(format!("{place}{error}{allowed}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overrides(texts: &[&str]) -> Overrides {
        Overrides {
            overrides: texts.iter().map(|text| text.to_string()).collect(),
        }
    }

    fn failure(file: &str, texts: &[&str]) -> String {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("server.properties");
        let shipped = include_str!("../config/fixtures/combined.properties");
        std::fs::write(&path, format!("{shipped}{file}")).unwrap();
        let failure = broker_config(Some(&path), &overrides(texts))
            .unwrap_err()
            .to_string();
        failure.replace(&path.display().to_string(), "FILE")
    }

    #[test]
    fn an_override_is_stronger_than_the_file_and_the_last_one_counts() {
        let config = broker_config(
            None,
            &overrides(&["num.partitions=3", "log.dirs=/a=b", "num.partitions=4"]),
        )
        .unwrap();
        assert_eq!(config.topics.partitions, 4);
        assert_eq!(config.storage.log_dirs, [std::path::PathBuf::from("/a=b")]);
    }

    #[test]
    fn a_wrong_value_is_one_line_with_key_value_reason_and_what_is_allowed() {
        assert_eq!(
            failure("num.partitions=many\n", &[]),
            "FILE: Invalid value many for configuration num.partitions: Not a number of type INT \
             (allowed: int, at least 1, default 1)"
        );
        assert_eq!(
            failure("", &["num.partitions=0"]),
            "FILE: Invalid value 0 for configuration num.partitions: Value must be at least 1 \
             (allowed: int, at least 1, default 1)"
        );
    }

    #[test]
    fn unreadable_files_and_overrides_say_so() {
        assert_eq!(
            broker_config(Some(Path::new("/nowhere/x.properties")), &overrides(&[]))
                .unwrap_err()
                .to_string(),
            "/nowhere/x.properties: No such file or directory (os error 2)"
        );
        assert_eq!(
            failure("a=\\u12\n", &[]),
            "FILE: a \\u escape needs four hexadecimal digits, in the line: a=\\u12"
        );
        for wrong in ["x", "=1", " =1"] {
            assert_eq!(
                failure("", &[wrong]),
                format!("--override {wrong}: it must be KEY=VALUE")
            );
        }
    }
}
