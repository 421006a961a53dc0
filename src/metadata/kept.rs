//! Records of features that are not built yet, kept so that a snapshot writes them back.

use std::sync::Arc;

use imbl::OrdMap;
use protocol::stored::{ClientQuotaRecord, MetadataRecord};
use protocol::{Str, Uuid};

/// What a kept record is about. A later record with the same key replaces it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeptKey {
    /// Entity parts by type, and the name of the quota.
    Quota(Vec<(Str, Option<Str>)>, Str),
    Acl(Uuid),
    /// Mechanism and user.
    Scram(i8, Str),
    DelegationToken(Str),
}

impl KeptKey {
    pub(super) fn quota(record: &ClientQuotaRecord) -> Self {
        let mut entity: Vec<_> = record
            .entity
            .iter()
            .map(|part| {
                (
                    part.entity_type.detached(),
                    part.entity_name.as_ref().map(Str::detached),
                )
            })
            .collect();
        entity.sort();
        Self::Quota(entity, record.key.detached())
    }
}

/// Kept records by key; the order of the keys is the order in which a snapshot writes them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeptRecords {
    records: OrdMap<KeptKey, Arc<MetadataRecord>>,
}

impl KeptRecords {
    /// All kept records.
    pub fn iter(&self) -> impl Iterator<Item = (&KeptKey, &MetadataRecord)> {
        self.records.iter().map(|(key, record)| (key, &**record))
    }

    pub(super) fn put(&mut self, key: KeptKey, record: MetadataRecord) {
        self.records.insert(key, Arc::new(record));
    }

    pub(super) fn remove(&mut self, key: &KeptKey) {
        self.records.remove(key);
    }
}
