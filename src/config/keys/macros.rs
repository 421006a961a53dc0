//! The notation of the table: a row is
//! `[internal] "name" type default allowed importance update status "doc";`.

macro_rules! kind {
    (boolean) => {
        $crate::config::keys::ValueKind::Boolean
    };
    (string) => {
        $crate::config::keys::ValueKind::String
    };
    (int) => {
        $crate::config::keys::ValueKind::Int
    };
    (short) => {
        $crate::config::keys::ValueKind::Short
    };
    (long) => {
        $crate::config::keys::ValueKind::Long
    };
    (double) => {
        $crate::config::keys::ValueKind::Double
    };
    (list) => {
        $crate::config::keys::ValueKind::List
    };
    (class) => {
        $crate::config::keys::ValueKind::Class
    };
    (password) => {
        $crate::config::keys::ValueKind::Password
    };
}

macro_rules! default_value {
    (required) => {
        $crate::config::keys::DefaultValue::Required
    };
    (null) => {
        $crate::config::keys::DefaultValue::Null
    };
    ($text:literal) => {
        $crate::config::keys::DefaultValue::Text($text)
    };
}

macro_rules! check {
    (any) => {
        $crate::config::keys::Check::Any
    };
    ((at_least $low:expr)) => {
        $crate::config::keys::Check::AtLeast($low)
    };
    ((between $low:literal and $high:expr)) => {
        $crate::config::keys::Check::Between($low, $high)
    };
    ((fraction $low:literal to $high:expr)) => {
        $crate::config::keys::Check::Fraction($low, $high)
    };
    ((one_of $($word:literal)+)) => {
        $crate::config::keys::Check::OneOf(&[$($word),+])
    };
    ((one_of_any_case $($word:literal)+)) => {
        $crate::config::keys::Check::OneOfAnyCase(&[$($word),+])
    };
    ((elements $($word:literal)*)) => {
        $crate::config::keys::Check::List { allowed: &[$($word),*], may_be_empty: true, may_be_null: false }
    };
    ((some_elements $($word:literal)*)) => {
        $crate::config::keys::Check::List { allowed: &[$($word),*], may_be_empty: false, may_be_null: false }
    };
    (null_or_elements) => {
        $crate::config::keys::Check::List { allowed: &[], may_be_empty: true, may_be_null: true }
    };
    (null_or_some_elements) => {
        $crate::config::keys::Check::List { allowed: &[], may_be_empty: false, may_be_null: true }
    };
    (gzip_level) => {
        $crate::config::keys::Check::GzipLevel
    };
    (non_empty) => {
        $crate::config::keys::Check::NonEmpty
    };
    (non_null) => {
        $crate::config::keys::Check::NonNull
    };
    (throttled_replicas) => {
        $crate::config::keys::Check::ThrottledReplicas
    };
    (quorum_voters) => {
        $crate::config::keys::Check::QuorumVoters
    };
    (bootstrap_servers) => {
        $crate::config::keys::Check::BootstrapServers
    };
}

macro_rules! importance {
    (high) => {
        $crate::config::keys::Importance::High
    };
    (medium) => {
        $crate::config::keys::Importance::Medium
    };
    (low) => {
        $crate::config::keys::Importance::Low
    };
}

macro_rules! update {
    (read_only) => {
        $crate::config::keys::Update::ReadOnly
    };
    (per_broker) => {
        $crate::config::keys::Update::PerBroker
    };
    (cluster_wide) => {
        $crate::config::keys::Update::ClusterWide
    };
}

macro_rules! status {
    (done) => {
        $crate::config::keys::Status::Done
    };
    ((ignored $reason:ident)) => {
        $crate::config::keys::Status::Ignored($crate::config::keys::reasons::$reason)
    };
    ((refused $reason:ident)) => {
        $crate::config::keys::Status::Refused($crate::config::keys::reasons::$reason)
    };
}

macro_rules! is_internal {
    () => {
        false
    };
    (internal) => {
        true
    };
}

macro_rules! key {
    ([$($internal:ident)?] $name:literal $kind:ident $default:tt $check:tt $importance:ident $update:ident
     $status:tt $doc:literal) => {
        $crate::config::keys::Key {
            name: $name,
            kind: kind!($kind),
            default: default_value!($default),
            check: check!($check),
            importance: importance!($importance),
            update: update!($update),
            internal: is_internal!($($internal)?),
            status: status!($status),
            doc: $doc,
        }
    };
}

/// Rows of broker keys.
macro_rules! broker_keys {
    ($($([$internal:ident])? $name:literal $kind:ident $default:tt $check:tt $importance:ident $update:ident
       $status:tt $doc:literal;)*) => {
        pub(super) const KEYS: &[$crate::config::keys::Key] = &[
            $(key!([$($internal)?] $name $kind $default $check $importance $update $status $doc)),*
        ];
    };
}

macro_rules! convert {
    () => {
        $crate::config::keys::Convert::Same
    };
    (hours) => {
        $crate::config::keys::Convert::HoursToMs
    };
    (minutes) => {
        $crate::config::keys::Convert::MinutesToMs
    };
}

/// Rows of topic keys: after the doc the broker keys that give their default, with the unit where it differs.
macro_rules! topic_keys {
    ($($([$internal:ident])? $name:literal $kind:ident $default:tt $check:tt $importance:ident
       $status:tt $doc:literal => [$($broker_key:literal $($unit:ident)?),*];)*) => {
        /// Every topic key of Kafka 4.4, in the order in which Kafka checks them.
        pub const TOPIC_KEYS: &[$crate::config::keys::TopicKey] = &[
            $($crate::config::keys::TopicKey {
                key: key!([$($internal)?] $name $kind $default $check $importance cluster_wide $status $doc),
                synonyms: &[$($crate::config::keys::Synonym {
                    broker_key: $broker_key,
                    convert: convert!($($unit)?),
                }),*],
            }),*
        ];
    };
}
