//! DescribeClientQuotas: what the metadata says. This broker stores no quotas of its own yet, but a directory that
//! Apache wrote may hold some.

use std::collections::BTreeMap;

use protocol::messages::{
    DescribeClientQuotasRequest, DescribeClientQuotasRequestComponentData,
    DescribeClientQuotasResponse, DescribeClientQuotasResponseEntityData,
    DescribeClientQuotasResponseEntryData, DescribeClientQuotasResponseValueData,
};
use protocol::stored::MetadataRecord;
use protocol::{Array, ErrorCode, Str};

use super::api::{Call, Handler};
use crate::metadata::{Image, KeptKey};

/// The handler.
pub struct DescribeClientQuotas;

const IP: &str = "ip";
const USER: &str = "user";
const CLIENT_ID: &str = "client-id";

/// An entity: its parts by type, `None` for the default of a type.
type Entity = Vec<(Str, Option<Str>)>;

/// What a filter says about one type of a part.
#[derive(Debug, PartialEq, Eq)]
enum Match {
    /// This name, or `None` the default.
    Exact(Option<Str>),
    /// Any name or the default.
    Specified,
}

type Filter = BTreeMap<Str, Match>;

impl Handler for DescribeClientQuotas {
    type Request = DescribeClientQuotasRequest;

    async fn handle(
        call: Call,
        request: DescribeClientQuotasRequest,
    ) -> DescribeClientQuotasResponse {
        match filter(&request.components) {
            Ok(filter) => DescribeClientQuotasResponse {
                error_message: Some(Str::default()),
                entries: Some(entries(&call.shard.image(), &filter, request.strict).into()),
                ..Default::default()
            },
            Err((error, message)) => DescribeClientQuotasResponse {
                error_code: error.code(),
                error_message: Some(Str::from(message).shortened()),
                entries: None,
                ..Default::default()
            },
        }
    }
}

/// What the request asks for, or why it makes no sense, in Kafka's words.
fn filter(
    components: &Array<DescribeClientQuotasRequestComponentData>,
) -> Result<Filter, (ErrorCode, String)> {
    let invalid = |text: String| Err((ErrorCode::InvalidRequest, text));
    let mut filter = Filter::new();
    for component in components {
        let kind = &component.entity_type;
        if kind.is_empty() {
            return invalid("Invalid empty entity type.".to_owned());
        }
        if filter.contains_key(kind) {
            return invalid(format!(
                "Entity type {kind} cannot appear more than once in the filter."
            ));
        }
        if ![IP, USER, CLIENT_ID].contains(&&**kind) {
            let text = format!("Unsupported entity type {kind}");
            return Err((ErrorCode::UnsupportedVersion, text));
        }
        let named =
            |name: &str| format!("Request specified {name}, but also specified a match string.");
        let matched = match (component.match_type, &component.r#match) {
            (0, Some(name)) => Match::Exact(Some(name.clone())),
            (0, None) => {
                return invalid(
                    "Request specified MATCH_TYPE_EXACT, but set match string to null.".to_owned(),
                );
            }
            (1, None) => Match::Exact(None),
            (1, Some(_)) => return invalid(named("MATCH_TYPE_DEFAULT")),
            (2, None) => Match::Specified,
            (2, Some(_)) => return invalid(named("MATCH_TYPE_SPECIFIED")),
            (unknown, _) => return invalid(format!("Unknown match type {unknown}")),
        };
        filter.insert(kind.clone(), matched);
    }
    if filter.contains_key(IP) && filter.len() > 1 {
        return invalid(
            "Invalid entity filter component combination. IP filter component should not be used \
             with user or clientId filter component."
                .to_owned(),
        );
    }
    Ok(filter)
}

/// The quotas of every entity that fits.
fn entries(
    image: &Image,
    filter: &Filter,
    strict: bool,
) -> Vec<DescribeClientQuotasResponseEntryData> {
    let mut found: BTreeMap<&Entity, Vec<DescribeClientQuotasResponseValueData>> = BTreeMap::new();
    for (key, record) in image.kept.iter() {
        let (KeptKey::Quota(entity, name), MetadataRecord::ClientQuota(quota)) = (key, record)
        else {
            continue;
        };
        if fits(entity, filter, strict) {
            let value = DescribeClientQuotasResponseValueData {
                key: name.clone(),
                value: quota.value,
            };
            found.entry(entity).or_default().push(value);
        }
    }
    let part = |(kind, name): &(Str, Option<Str>)| DescribeClientQuotasResponseEntityData {
        entity_type: kind.clone(),
        entity_name: name.clone(),
    };
    found
        .into_iter()
        .map(|(entity, values)| DescribeClientQuotasResponseEntryData {
            entity: entity.iter().map(part).collect(),
            values: values.into(),
        })
        .collect()
}

fn fits(entity: &Entity, filter: &Filter, strict: bool) -> bool {
    let has = |(kind, wanted): (&Str, &Match)| {
        let part = entity.iter().find(|(it, _)| it == kind);
        match (part, wanted) {
            (None, _) => false,
            (Some(_), Match::Specified) => true,
            (Some((_, name)), Match::Exact(exact)) => name == exact,
        }
    };
    (!strict || entity.len() == filter.len()) && filter.iter().all(has)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn component(
        kind: &str,
        match_type: i8,
        name: Option<&str>,
    ) -> DescribeClientQuotasRequestComponentData {
        DescribeClientQuotasRequestComponentData {
            entity_type: kind.into(),
            match_type,
            r#match: name.map(Str::from),
        }
    }

    #[test]
    fn a_filter_fits_the_parts_that_it_names() {
        let entity = |parts: &[(&str, Option<&str>)]| -> Entity {
            let parts = parts.iter();
            parts
                .map(|(kind, name)| ((*kind).into(), name.map(Str::from)))
                .collect()
        };
        let alice = entity(&[(USER, Some("alice"))]);
        let both = entity(&[(CLIENT_ID, None), (USER, Some("alice"))]);
        let named = filter(&[component(USER, 0, Some("alice"))].into()).unwrap();
        assert!(fits(&alice, &named, true) && fits(&both, &named, false));
        assert!(!fits(&both, &named, true));
        let default = filter(&[component(CLIENT_ID, 1, None)].into()).unwrap();
        assert!(fits(&both, &default, false) && !fits(&alice, &default, false));
        let any =
            filter(&[component(USER, 2, None), component(CLIENT_ID, 2, None)].into()).unwrap();
        assert!(fits(&both, &any, true) && !fits(&alice, &any, true));
        let other = filter(&[component(USER, 0, Some("bob"))].into()).unwrap();
        assert!(!fits(&alice, &other, false));
        assert!(fits(&alice, &Filter::new(), false) && !fits(&alice, &Filter::new(), true));
    }
}
