//! ApiVersions, DescribeCluster, DescribeQuorum, FindCoordinator, InitProducerId, transactions, access control.
use crate::case::Base;
use crate::mutation::{Change, Mutation};
use crate::value::{Step, Value};

pub fn bases() -> Vec<Base> {
    // Transactions first: others name some, which Apache then has.
    [transactions(), cluster(), access()].concat()
}

fn cluster() -> Vec<Base> {
    vec![
        Base::new("ApiVersions", "a client", |_| {
            Value::fields([
                ("client_software_name", Value::text("differential")),
                ("client_software_version", Value::text("1.0")),
            ])
        }),
        Base::new("DescribeCluster", "brokers", |_| {
            Value::fields([("include_cluster_authorized_operations", Value::Bool(true))])
        }),
        Base::new("FindCoordinator", "of a group", |_| {
            Value::fields([
                ("key", Value::text("a-group")),
                ("coordinator_keys", Value::strings(["a-group"])),
            ])
        }),
        Base::new("FindCoordinator", "of two groups", |_| {
            Value::fields([("coordinator_keys", Value::strings(["a-group", "another"]))])
        })
        .versions(4..=i16::MAX)
        .unbroken(),
        Base::new("InitProducerId", "with an id and epoch from before", |_| {
            Value::fields([
                ("transactional_id", Value::Null),
                ("transaction_timeout_ms", Value::Int(60_000)),
                ("producer_id", Value::Int(5)),
                ("producer_epoch", Value::Int(3)),
            ])
        })
        .unbroken(),
        Base::new("InitProducerId", "no transaction", |_| {
            Value::fields([
                ("transactional_id", Value::Null),
                ("transaction_timeout_ms", Value::Int(60_000)),
            ])
        }),
        Base::new("DescribeQuorum", "of the metadata", |_| {
            let partition = Value::fields([("partition_index", Value::Int(0))]);
            let topic = Value::fields([
                ("topic_name", Value::text("__cluster_metadata")),
                ("partitions", Value::list([partition])),
            ]);
            Value::fields([("topics", Value::list([topic]))])
        }),
    ]
}

fn transactions() -> Vec<Base> {
    vec![
        Base::new("ListTransactions", "some", |_| {
            Value::fields([
                ("state_filters", Value::strings(["Ongoing", "Nonsense"])),
                ("producer_id_filters", Value::ints([1, 2])),
                ("duration_filter", Value::Int(1_000)),
                ("transactional_id_pattern", Value::text("a.*")),
            ])
        }),
        Base::new("ListTransactions", "by pattern", |_| {
            Value::Struct([].into())
        })
        .versions(2..=i16::MAX)
        .unbroken()
        .more(patterns),
        Base::new("DescribeTransactions", "two", |_| {
            Value::fields([("transactional_ids", Value::strings(["one", "another"]))])
        }),
    ]
}

fn patterns() -> Vec<Mutation> {
    const PATTERNS: &[&str] = &[
        ".*",
        "(",
        "[",
        "*",
        "a{",
        "a{2",
        "a{2,1}",
        "a{1001}",
        "(?i)a",
        "(?P<n>a)",
        "(?<n>a)",
        "(?=a)",
        "\\1",
        "\\p{Greek}",
        "\\p{Nonsense}",
        "\\",
        "[[:alpha:]]",
        "[z-a]",
        "a**",
        "\\Q[\\E",
    ];
    let mutation = |pattern: &&str| Mutation {
        name: format!("{pattern:?}"),
        change: Change::Field(
            vec![Step::Field("transactional_id_pattern".to_owned())],
            Value::text(pattern),
        ),
    };
    PATTERNS.iter().map(mutation).collect()
}

/// `Read` of a topic, by its exact name, allowed to somebody.
fn rule(suffix: &str) -> Vec<(String, Value)> {
    let fields = [
        ("resource_type", Value::Int(2)),
        ("resource_name", Value::text("fixture")),
        ("pattern_type", Value::Int(3)),
        ("principal", Value::text("User:alice")),
        ("host", Value::text("*")),
    ];
    let named = fields.map(|(name, value)| (format!("{name}{suffix}"), value));
    let rest = [
        ("operation", Value::Int(3)),
        ("permission_type", Value::Int(3)),
    ];
    let rest = rest.map(|(name, value)| (name.to_owned(), value));
    named.into_iter().chain(rest).collect()
}

fn access() -> Vec<Base> {
    vec![
        Base::new("DescribeAcls", "of a topic", |_| {
            Value::Struct(rule("_filter").into_iter().collect())
        }),
        Base::new("CreateAcls", "two", |_| {
            let creation = Value::Struct(rule("").into_iter().collect())
                .with([("resource_pattern_type", Value::Int(3))]);
            Value::fields([("creations", Value::list([creation.clone(), creation]))])
        }),
        Base::new("DeleteAcls", "two", |_| {
            let filter = Value::Struct(rule("_filter").into_iter().collect());
            Value::fields([("filters", Value::list([filter.clone(), filter]))])
        }),
    ]
}
