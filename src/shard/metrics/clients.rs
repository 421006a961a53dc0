//! Which clients are here, and which of them speak versions that are going away.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::IpAddr;

use protocol::ApiKey;

/// Kinds of clients that are told apart on a core; a name is the client's own word.
const KINDS_MAX: usize = 100;
/// What a client is called that gives no name, or comes after all others.
pub const UNNAMED: &str = "unknown";

/// Software and version, as a client names itself (KIP-511).
pub type Software = (String, String);

/// Clients that sent an old version of an API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OldClient {
    /// Requests.
    pub count: u64,
    /// Whether they were answered.
    pub served: bool,
    /// `client.id` of the last one.
    pub client_id: String,
    /// Address of the last one.
    pub address: IpAddr,
}

/// By API, version and software.
pub type OldClients = BTreeMap<(ApiKey, i16, Software), OldClient>;

/// Requests in versions that Kafka has announced to drop, or dropped.
#[derive(Default)]
pub struct OldVersions(RefCell<OldClients>);

impl OldVersions {
    /// One more; the last to come is the one that is named.
    pub fn add(
        &self,
        (api, version): (ApiKey, i16),
        software: Option<Software>,
        (client_id, address): (&str, IpAddr),
        served: bool,
    ) {
        let unnamed = || (UNNAMED.to_owned(), String::new());
        let mut key = (api, version, software.unwrap_or_else(unnamed));
        let mut clients = self.0.borrow_mut();
        if clients.len() >= KINDS_MAX && !clients.contains_key(&key) {
            key.2 = unnamed();
            // The numbers of APIs and versions are bounded, too, but by more.
            if clients.len() >= 2 * KINDS_MAX && !clients.contains_key(&key) {
                return;
            }
        }
        let count = clients.get(&key).map_or(0, |client| client.count) + 1;
        let client = OldClient {
            count,
            served,
            client_id: client_id.to_owned(),
            address,
        };
        clients.insert(key, client);
    }

    /// All of them.
    pub fn all(&self) -> OldClients {
        self.0.borrow().clone()
    }
}

/// Counts connections by software; beyond a number of kinds they are all unnamed.
#[derive(Default)]
pub struct SoftwareCounts(BTreeMap<Software, u64>);

impl SoftwareCounts {
    /// One more.
    pub fn add(&mut self, software: Option<Software>, count: u64) {
        let unnamed = || (UNNAMED.to_owned(), String::new());
        let mut key = software.unwrap_or_else(unnamed);
        if self.0.len() >= KINDS_MAX && !self.0.contains_key(&key) {
            key = unnamed();
        }
        *self.0.entry(key).or_default() += count;
    }

    /// All of them.
    pub fn into_all(self) -> BTreeMap<Software, u64> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_clients_make_up_take_bounded_memory() {
        let (old, mut counts) = (OldVersions::default(), SoftwareCounts::default());
        let address = IpAddr::from([127, 0, 0, 1]);
        for number in 0..1000 {
            let software = Some((format!("made-up-{number}"), "1".to_owned()));
            let request = (ApiKey::Produce, 3);
            old.add(request, software.clone(), ("id", address), true);
            counts.add(software, 1);
        }
        let old = old.all();
        assert_eq!(old.len(), KINDS_MAX + 1);
        assert_eq!(old.values().map(|client| client.count).sum::<u64>(), 1000);
        let counts = counts.into_all();
        assert_eq!(counts.len(), KINDS_MAX + 1);
        assert_eq!(counts.values().sum::<u64>(), 1000);
    }
}
