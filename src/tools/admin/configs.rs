use protocol::Str;
use protocol::messages::{
    DescribeConfigsRequest, DescribeConfigsRequestDescribeConfigsResource,
    DescribeConfigsResponseDescribeConfigsResourceResult,
};

use crate::tools::client::{Client, ClientError, Node};

/// Something that has a configuration.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Resource {
    pub kind: i8,
    pub name: Str,
}

/// A key with its value, and where that comes from.
pub type ConfigEntry = DescribeConfigsResponseDescribeConfigsResourceResult;

impl Resource {
    pub const TOPIC: i8 = 2;

    pub fn topic(name: &Str) -> Resource {
        Resource {
            kind: Resource::TOPIC,
            name: name.clone(),
        }
    }
}

/// The configurations of these resources, in their order, each with its keys by name.
pub fn describe_configs(
    client: &mut Client,
    node: Node,
    resources: &[Resource],
    synonyms: bool,
) -> Result<Vec<Vec<ConfigEntry>>, ClientError> {
    let asked = |resource: &Resource| DescribeConfigsRequestDescribeConfigsResource {
        resource_type: resource.kind,
        resource_name: resource.name.clone(),
        configuration_keys: None,
    };
    let request = DescribeConfigsRequest {
        resources: resources.iter().map(asked).collect(),
        include_synonyms: synonyms,
        include_documentation: false,
    };
    let response = client.retrying(|client| {
        let response = client.send(node, &request)?;
        for result in &response.results {
            ClientError::check(result.error_code, result.error_message.as_ref())?;
        }
        Ok(response)
    })?;
    let mut results = response.results;
    let of = |resource: &Resource| {
        let result = results.iter_mut().find(|result| {
            result.resource_type == resource.kind && result.resource_name == resource.name
        });
        let entries = result.map(|result| std::mem::take(&mut result.configs));
        let mut entries = Vec::from(entries.unwrap_or_default());
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        entries
    };
    Ok(resources.iter().map(of).collect())
}
