//! Which log directory a new replica goes to.

use std::collections::BTreeMap;

use protocol::Uuid;

use crate::metadata::Image;
use crate::metadata::partition::directory;

/// Chooses directories for the new replicas of one command: the one with the fewest replicas,
/// among equals the one with the most free space, then the first.
pub(super) struct DirectoryChooser<'a> {
    image: &'a Image,
    node: i32,
    free_bytes: &'a dyn Fn(Uuid) -> u64,
    /// Given out by this command so far.
    given: BTreeMap<Uuid, u32>,
}

impl<'a> DirectoryChooser<'a> {
    pub fn new(image: &'a Image, node: i32, free_bytes: &'a dyn Fn(Uuid) -> u64) -> Self {
        Self {
            image,
            node,
            free_bytes,
            given: BTreeMap::new(),
        }
    }

    /// Directory of a new replica on `broker`. Another broker chooses for itself.
    pub fn choose(&mut self, broker: i32) -> Uuid {
        let registration = self.image.broker(broker).filter(|it| it.id == self.node);
        let Some(registration) = registration else {
            return directory::UNASSIGNED;
        };
        let order = |&id: &Uuid| {
            let replicas = self.image.replicas_in_directory(id) + self.given(id);
            (replicas, std::cmp::Reverse((self.free_bytes)(id)))
        };
        match registration.uncordoned_log_dirs().min_by_key(order) {
            Some(chosen) => {
                *self.given.entry(chosen).or_default() += 1;
                chosen
            }
            None => directory::UNASSIGNED,
        }
    }

    fn given(&self, directory: Uuid) -> u32 {
        self.given.get(&directory).copied().unwrap_or(0)
    }
}
