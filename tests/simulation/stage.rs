//! What the clients of one run share: what they know of each other, and how far the run is.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::SocketAddr;

use protocol::{Str, Uuid};

use crate::model::Model;
use crate::record::Place;
use crate::scenario::Scenario;

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Faults happen.
    Trouble,
    /// They have ended; what they left may still show.
    Settling,
    /// Every request is answered, and all work comes to its end.
    Calm,
}

/// A topic that stays.
#[derive(Clone, Debug)]
pub struct Topic {
    pub name: Str,
    pub id: Uuid,
    pub partitions: i32,
}

impl Topic {
    pub fn places(&self) -> impl Iterator<Item = Place> + use<> {
        let topic = self.id;
        (0..self.partitions).map(move |partition| Place { topic, partition })
    }
}

pub struct Stage {
    pub scenario: Scenario,
    pub broker: SocketAddr,
    pub model: Model,
    pub phase: Cell<Phase>,
    pub topics: RefCell<Vec<Topic>>,
    /// Producers that have not ended.
    pub producing: Cell<usize>,
    /// The newest offset that the group has committed.
    committed: RefCell<BTreeMap<Place, i64>>,
    next_maker: Cell<u32>,
    doing: RefCell<BTreeMap<String, String>>,
}

impl Stage {
    pub fn new(scenario: Scenario, broker: SocketAddr) -> Self {
        Self {
            scenario,
            broker,
            model: Model::default(),
            phase: Cell::new(Phase::Trouble),
            topics: RefCell::default(),
            producing: Cell::new(0),
            committed: RefCell::default(),
            next_maker: Cell::new(1),
            doing: RefCell::default(),
        }
    }

    /// A number for a maker of records that nobody else has.
    pub fn new_maker(&self) -> u32 {
        let maker = self.next_maker.get();
        self.next_maker.set(maker + 1);
        maker
    }

    pub fn committed(&self, place: Place) -> i64 {
        self.committed.borrow().get(&place).copied().unwrap_or(0)
    }

    pub fn set_committed(&self, place: Place, offset: i64) {
        self.committed.borrow_mut().insert(place, offset);
    }

    /// Every partition of the topics that stay.
    pub fn places(&self) -> Vec<Place> {
        self.topics
            .borrow()
            .iter()
            .flat_map(Topic::places)
            .collect()
    }

    pub fn topic_name(&self, id: Uuid) -> Str {
        let topics = self.topics.borrow();
        let topic = topics.iter().find(|topic| topic.id == id);
        topic.map(|topic| topic.name.clone()).unwrap_or_default()
    }

    /// Whether a partition may be offline because its disk has failed.
    pub fn disk_may_fail(&self) -> bool {
        self.scenario.faults.disk_errors && self.phase.get() != Phase::Calm
    }

    pub fn topic_id(&self, name: &str) -> Uuid {
        let topics = self.topics.borrow();
        let topic = topics.iter().find(|topic| &*topic.name == name);
        topic.map(|topic| topic.id).unwrap_or_default()
    }

    /// Notes what a client waits for, for the message about a run that gets nowhere.
    pub fn doing(&self, who: &str, what: impl Into<String>) {
        self.doing.borrow_mut().insert(who.to_owned(), what.into());
    }

    /// What every client that has not ended does.
    pub fn hanging(&self) -> String {
        let doing = self.doing.borrow();
        let left = doing.iter().filter(|(_, what)| !what.is_empty());
        left.map(|(who, what)| format!("{who}: {what}"))
            .collect::<Vec<_>>()
            .join("; ")
    }
}
