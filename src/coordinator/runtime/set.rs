//! All coordinators of one core.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::rc::Rc;

use protocol::{ErrorCode, Str, Uuid};
use shards::Core;

use super::super::event::{Request, Response};
use super::super::refusal::refuse;
use super::super::settings::Settings;
use super::log::CoordinatorLog;
use super::partition::{Caller, GroupPartition, PartitionOptions};

/// The coordinators of the partitions of `__consumer_offsets` that this core owns and leads.
pub struct GroupCoordinators {
    core: Core,
    options: RefCell<PartitionOptions>,
    partitions: RefCell<BTreeMap<i32, GroupPartition>>,
}

impl GroupCoordinators {
    pub fn new(core: Core, options: PartitionOptions) -> Self {
        GroupCoordinators {
            core,
            options: RefCell::new(options),
            partitions: RefCell::default(),
        }
    }

    /// This broker has become leader of the partition: its groups are loaded in the background.
    /// A coordinator that already runs is stopped first.
    pub fn become_leader(&self, partition: i32, log: Rc<dyn CoordinatorLog>) -> GroupPartition {
        self.resign(partition);
        let options = self.options.borrow().clone();
        let started = GroupPartition::start(&self.core, log, options);
        self.partitions
            .borrow_mut()
            .insert(partition, started.clone());
        started
    }

    /// This broker does not lead the partition any more, or the partition leaves this core.
    pub fn resign(&self, partition: i32) {
        let stopped = self.partitions.borrow_mut().remove(&partition);
        if let Some(stopped) = stopped {
            stopped.stop();
        }
    }

    pub fn resign_all(&self) {
        let all = std::mem::take(&mut *self.partitions.borrow_mut());
        all.values().for_each(GroupPartition::stop);
    }

    pub fn get(&self, partition: i32) -> Option<GroupPartition> {
        self.partitions.borrow().get(&partition).cloned()
    }

    /// Partitions with a coordinator here, in order.
    pub fn partitions(&self) -> Vec<i32> {
        self.partitions.borrow().keys().copied().collect()
    }

    /// Hands a request to the partition's coordinator, at this call (see
    /// [`GroupPartition::request`]); without one the answer is NOT_COORDINATOR.
    pub fn request(
        &self,
        partition: i32,
        caller: Caller,
        request: Request,
    ) -> impl Future<Output = Response> + use<> {
        let asked = match self.get(partition) {
            Some(coordinator) => Ok(coordinator.request(caller, request)),
            None => Err(Box::new(refuse(&request, ErrorCode::NotCoordinator))),
        };
        async move {
            match asked {
                Ok(answer) => answer.await,
                Err(refused) => *refused,
            }
        }
    }

    /// Hands a request to every coordinator here: ListGroups.
    pub fn request_all(
        &self,
        caller: &Caller,
        request: &Request,
    ) -> impl Future<Output = Vec<Response>> + use<> {
        let asked: Vec<_> = self
            .partitions
            .borrow()
            .values()
            .map(|partition| partition.request(caller.clone(), request.clone()))
            .collect();
        async move {
            let mut answers = Vec::with_capacity(asked.len());
            for answer in asked {
                answers.push(answer.await);
            }
            answers
        }
    }

    /// Topics are gone from the metadata (id and name): their offsets go too.
    pub fn topics_deleted(&self, topics: &[(Uuid, Str)]) {
        for partition in self.partitions.borrow().values() {
            partition.topics_deleted(topics);
        }
    }

    /// New settings, from the next request on.
    pub fn configure(&self, settings: &Settings) {
        for partition in self.partitions.borrow().values() {
            partition.configure(settings.clone());
        }
        self.options.borrow_mut().settings = settings.clone();
    }
}

impl fmt::Debug for GroupCoordinators {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupCoordinators")
            .field("partitions", &self.partitions)
            .finish()
    }
}
