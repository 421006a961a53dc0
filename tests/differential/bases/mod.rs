//! A sound request of each API, or several, for the cases to break.
pub mod cluster;
pub mod configs;
pub mod features;
pub mod groups;
pub mod partitions;
pub mod records;
pub mod topics;

use crate::case::Base;
use crate::messages::Api;
use crate::value::Value;

/// In an order in which none disturbs a later one.
pub fn all() -> Vec<Base> {
    [
        cluster::bases(),
        features::bases(),
        topics::reading(),
        configs::reading(),
        configs::of_brokers(),
        partitions::reading(),
        records::bases(),
        groups::bases(),
        topics::changing(),
        partitions::changing(),
        configs::changing(),
    ]
    .concat()
}

/// Something to break for an API that nobody wrote a base for: everything at its default.
pub fn plain(api: &Api) -> Base {
    Base::new(&api.name, "defaults", |_| Value::Struct([].into()))
}
