//! ApiVersions, DescribeCluster, FindCoordinator, InitProducerId.
use crate::case::Base;
use crate::value::Value;

pub fn bases() -> Vec<Base> {
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
    ]
}
