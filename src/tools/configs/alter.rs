use std::collections::BTreeMap;

use protocol::Str;
use protocol::messages::{
    IncrementalAlterConfigsRequest, IncrementalAlterConfigsRequestAlterConfigsResource,
    IncrementalAlterConfigsRequestAlterableConfig,
};

use super::entity::Kind;
use super::{ConfigsArgs, entries};
use crate::tools::Failure;
use crate::tools::client::{Client, ClientError, Node, Target, read_properties};

const SET: i8 = 0;
const DELETE: i8 = 1;

/// What `--alter` shall do.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    add: BTreeMap<String, String>,
    delete: Vec<String>,
}

pub(super) fn changes(arguments: &ConfigsArgs) -> Result<Changes, Failure> {
    let add = match (&arguments.add_config_file, &arguments.add_config) {
        (Some(path), _) => read_properties(path)?,
        (None, Some(text)) => parse_added(text)?,
        (None, None) => BTreeMap::new(),
    };
    let wrong = |key: &&String| {
        !key.chars()
            .all(|c| c.is_ascii_alphanumeric() || "$._-".contains(c))
    };
    if let Some(key) = add.keys().find(wrong) {
        return Err(Failure::new(format!(
            "Invalid character found for config key: {key}"
        )));
    }
    let delete = arguments.delete_config.iter();
    let delete: Vec<String> = delete.map(|key| key.trim().to_owned()).collect();
    let nothing = arguments.add_config_file.is_none() && add.is_empty() && delete.is_empty();
    if nothing {
        return Err(Failure::new(
            "At least one of --add-config, --add-config-file, or --delete-config must be specified with --alter",
        ));
    }
    Ok(Changes { add, delete })
}

/// `k1=v1,k2=[v1,v2]`: what stands in brackets is one value.
fn parse_added(text: &str) -> Result<BTreeMap<String, String>, Failure> {
    let mut added = BTreeMap::new();
    for part in split_outside_brackets(text, ',') {
        let pair = split_outside_brackets(part, '=');
        let [key, value] = pair[..] else {
            return Err(Failure::new(format!(
                "--add-config {part}: all settings must be in the format key=value, or key=[value,value] where a \
                 value has commas"
            )));
        };
        let value = value.replace(['[', ']'], "");
        added.insert(key.trim().to_owned(), value.trim().to_owned());
    }
    Ok(added)
}

fn split_outside_brackets(text: &str, separator: char) -> Vec<&str> {
    let mut depth = 0;
    text.split(|c| {
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            _ => {}
        }
        c == separator && depth == 0
    })
    .collect()
}

pub(super) fn alter(
    client: &mut Client,
    kind: Kind,
    name: &Str,
    changes: &Changes,
) -> Result<(), Failure> {
    if kind == Kind::BrokerLoggers {
        let known = entries(client, kind, name)?;
        let keys = changes.delete.iter().chain(changes.add.keys());
        let unknown: Vec<&str> = keys
            .filter(|key| !known.iter().any(|entry| entry.name == **key))
            .map(String::as_str)
            .collect();
        if !unknown.is_empty() {
            return Err(Failure::new(format!(
                "Invalid broker logger(s): {}",
                unknown.join(",")
            )));
        }
    }
    let request = request(kind, name, changes);
    let node = match (kind.node(name), client.settings().target) {
        (Node::Any, Target::Controllers) => Node::Controller,
        (node, _) => node,
    };
    Ok(client.retrying(|client| {
        let response = client.send(node, &request)?;
        response.responses.iter().try_for_each(|result| {
            ClientError::check(result.error_code, result.error_message.as_ref())
        })
    })?)
}

fn request(kind: Kind, name: &Str, changes: &Changes) -> IncrementalAlterConfigsRequest {
    let change = |key: &String, config_operation, value: Option<&String>| {
        IncrementalAlterConfigsRequestAlterableConfig {
            name: key.into(),
            config_operation,
            value: value.map(Str::from),
        }
    };
    let deleted = changes.delete.iter().map(|key| change(key, DELETE, None));
    let added = changes
        .add
        .iter()
        .map(|(key, value)| change(key, SET, Some(value)));
    IncrementalAlterConfigsRequest {
        resources: [IncrementalAlterConfigsRequestAlterConfigsResource {
            resource_type: kind.code(),
            resource_name: name.clone(),
            configs: deleted.chain(added).collect(),
        }]
        .into(),
        validate_only: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_hold_values_with_commas_together() {
        let added = parse_added("a=1, b = [x=1,y] ,c=").unwrap();
        let pairs: Vec<(&str, &str)> = added
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()))
            .collect();
        assert_eq!(pairs, [("a", "1"), ("b", "x=1,y"), ("c", "")]);
        assert!(parse_added("a").is_err());
        assert!(parse_added("a=1=2").is_err());
    }
}
