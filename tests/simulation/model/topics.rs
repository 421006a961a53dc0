//! Topics: what was created is there until it is deleted, and metadata never goes back.

use std::collections::BTreeMap;

use protocol::Uuid;

use super::Model;

#[derive(Default)]
pub(super) struct Topics {
    known: BTreeMap<String, Presence>,
}

/// What is known of a topic's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    There(Uuid),
    Gone,
    /// An answer is missing.
    Unknown,
}

impl Model {
    pub fn topic(&self, name: &str) -> Presence {
        let topics = self.topics.borrow();
        topics.known.get(name).copied().unwrap_or(Presence::Gone)
    }

    pub fn set_topic(&self, name: &str, presence: Presence) {
        self.topics
            .borrow_mut()
            .known
            .insert(name.to_owned(), presence);
    }

    /// The broker said whether there is such a topic; nobody changes it meanwhile.
    pub fn saw_topic(&self, name: &str, found: Option<Uuid>) {
        let found = found.map_or(Presence::Gone, Presence::There);
        let known = self.topic(name);
        if known == Presence::Unknown {
            return self.set_topic(name, found);
        }
        self.verdict(if known == found {
            Ok(())
        } else {
            Err(format!("topic {name} was {known:?} and is {found:?}"))
        });
    }
}
