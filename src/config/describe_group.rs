//! What DescribeConfigs answers about groups and about subscriptions to client metrics: their few settings, with what an
//! operator set for that one of them on top. Groups inherit from the broker's settings for their kind.

use super::describe::{ConfigSource, DescribedConfig, DescribedSynonym, strongest, synonyms_of};
use super::keys::ValueKind;
use super::settings::Settings;
use super::topic::Overrides;

/// A setting of a group or subscription.
struct Row {
    name: &'static str,
    kind: ValueKind,
    default: Origin,
    documentation: &'static str,
}

enum Origin {
    /// The setting of the broker that groups inherit.
    Broker(&'static str),
    Text(&'static str),
}

const fn inherited(
    name: &'static str,
    kind: ValueKind,
    broker_key: &'static str,
    documentation: &'static str,
) -> Row {
    Row {
        name,
        kind,
        default: Origin::Broker(broker_key),
        documentation,
    }
}

const fn own(
    name: &'static str,
    kind: ValueKind,
    text: &'static str,
    documentation: &'static str,
) -> Row {
    Row {
        name,
        kind,
        default: Origin::Text(text),
        documentation,
    }
}

#[rustfmt::skip]
const GROUP: &[Row] = &[
    inherited("consumer.assignment.interval.ms", ValueKind::Int, "group.consumer.assignment.interval.ms", "Least time between two assignments of a consumer group."),
    inherited("consumer.heartbeat.interval.ms", ValueKind::Int, "group.consumer.heartbeat.interval.ms", "How often the members of a consumer group say that they live."),
    inherited("consumer.session.timeout.ms", ValueKind::Int, "group.consumer.session.timeout.ms", "How long a member of a consumer group may be silent."),
    own("errors.deadletterqueue.copy.record.enable", ValueKind::Boolean, "false", "Whether the record itself goes to the dead letters of a share group."),
    own("errors.deadletterqueue.topic.name", ValueKind::String, "", "The topic for the dead letters of a share group."),
    inherited("share.assignment.interval.ms", ValueKind::Int, "group.share.assignment.interval.ms", "Least time between two assignments of a share group."),
    own("share.auto.offset.reset", ValueKind::String, "latest", "Where a share group begins."),
    inherited("share.delivery.count.limit", ValueKind::Int, "group.share.delivery.count.limit", "How often a share group is given one record."),
    inherited("share.heartbeat.interval.ms", ValueKind::Int, "group.share.heartbeat.interval.ms", "How often the members of a share group say that they live."),
    own("share.isolation.level", ValueKind::String, "read_uncommitted", "Which records of transactions a share group sees."),
    inherited("share.partition.max.record.locks", ValueKind::Int, "group.share.partition.max.record.locks", "How many records of a partition a share group may hold."),
    inherited("share.record.lock.duration.ms", ValueKind::Int, "group.share.record.lock.duration.ms", "How long a member of a share group may hold a record."),
    own("share.renew.acknowledge.enable", ValueKind::Boolean, "true", "Whether a member of a share group may hold a record for longer."),
    inherited("share.session.timeout.ms", ValueKind::Int, "group.share.session.timeout.ms", "How long a member of a share group may be silent."),
    inherited("streams.assignment.interval.ms", ValueKind::Int, "group.streams.assignment.interval.ms", "Least time between two assignments of a streams group."),
    inherited("streams.assignor.name", ValueKind::String, "group.streams.assignors", "Who assigns the tasks of a streams group."),
    inherited("streams.heartbeat.interval.ms", ValueKind::Int, "group.streams.heartbeat.interval.ms", "How often the members of a streams group say that they live."),
    inherited("streams.initial.rebalance.delay.ms", ValueKind::Int, "group.streams.initial.rebalance.delay.ms", "How long a new streams group waits for more members."),
    inherited("streams.num.standby.replicas", ValueKind::Int, "group.streams.num.standby.replicas", "Copies of each task of a streams group that stand by."),
    inherited("streams.rack.aware.assignment.tags", ValueKind::List, "group.streams.rack.aware.assignment.tags", "Tags of clients that keep copies of a task apart."),
    inherited("streams.session.timeout.ms", ValueKind::Int, "group.streams.session.timeout.ms", "How long a member of a streams group may be silent."),
];

const CLIENT_METRICS: &[Row] = &[
    own(
        "interval.ms",
        ValueKind::Int,
        "300000",
        "How often clients send these metrics.",
    ),
    own("match", ValueKind::List, "", "Which clients are meant."),
    own("metrics", ValueKind::List, "", "Which metrics are sent."),
];

/// Every setting of a group with these overrides.
pub fn describe_group(settings: &Settings, overrides: &Overrides<'_>) -> Vec<DescribedConfig> {
    let one = |row: &Row| {
        let inherited = match row.default {
            Origin::Broker(key) => synonyms_of(settings, key, false),
            Origin::Text(text) => vec![DescribedSynonym {
                name: row.name.to_owned(),
                value: Some(text.to_owned()),
                source: ConfigSource::Default,
            }],
        };
        let set = overrides.get(row.name).map(|text| DescribedSynonym {
            name: row.name.to_owned(),
            value: Some((*text).to_owned()),
            source: ConfigSource::Group,
        });
        let synonyms: Vec<_> = set.into_iter().chain(inherited).collect();
        entry(row, synonyms)
    };
    GROUP.iter().map(one).collect()
}

/// Every setting of a subscription to client metrics with these overrides.
pub fn describe_client_metrics(overrides: &Overrides<'_>) -> Vec<DescribedConfig> {
    let one = |row: &Row| {
        let (value, source) = match (overrides.get(row.name), &row.default) {
            (Some(text), _) => (*text, ConfigSource::ClientMetrics),
            (None, Origin::Text(text) | Origin::Broker(text)) => (*text, ConfigSource::Default),
        };
        let effective = DescribedSynonym {
            name: row.name.to_owned(),
            value: Some(value.to_owned()),
            source,
        };
        // Kafka lists none.
        DescribedConfig {
            synonyms: Vec::new(),
            ..entry(row, vec![effective])
        }
    };
    CLIENT_METRICS.iter().map(one).collect()
}

fn entry(row: &Row, synonyms: Vec<DescribedSynonym>) -> DescribedConfig {
    DescribedConfig {
        name: row.name.to_owned(),
        value: synonyms.first().and_then(|first| first.value.clone()),
        source: strongest(&synonyms),
        read_only: false,
        sensitive: false,
        synonyms,
        kind: Some(row.kind),
        documentation: Some(row.documentation),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::config::single_node;

    fn settings(written: &[(&str, &str)]) -> Settings {
        let written: BTreeMap<_, _> = written
            .iter()
            .map(|(key, value)| (key.to_string(), value.to_string()))
            .collect();
        Settings::new(single_node(&written)).unwrap()
    }

    #[test]
    fn a_group_has_what_was_set_for_it_else_what_the_broker_says() {
        let settings = settings(&[("group.consumer.session.timeout.ms", "50000")]);
        let find = |overrides: &Overrides<'_>| {
            let all = describe_group(&settings, overrides);
            let found = all
                .into_iter()
                .find(|config| config.name == "consumer.session.timeout.ms")
                .unwrap();
            (found.value.unwrap(), found.source, found.synonyms.len())
        };
        let inherited = find(&Overrides::new());
        assert_eq!(
            inherited,
            ("50000".to_owned(), ConfigSource::StaticBroker, 2)
        );
        let set = find(&Overrides::from([("consumer.session.timeout.ms", "55000")]));
        assert_eq!(set, ("55000".to_owned(), ConfigSource::Group, 3));
    }

    #[test]
    fn a_subscription_has_what_was_set_for_it() {
        let all = describe_client_metrics(&Overrides::from([("interval.ms", "1000")]));
        let sources: Vec<_> = all.iter().map(|config| config.source).collect();
        assert_eq!(
            sources,
            [
                ConfigSource::ClientMetrics,
                ConfigSource::Default,
                ConfigSource::Default
            ]
        );
        assert_eq!(all[0].value.as_deref(), Some("1000"));
    }
}
