//! Free space of the log directories, as the controller sees it when it places a new partition.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use protocol::Uuid;
use shards::Core;
use shards::io::dir;
use tracing::warn;

use super::inventory::LogDirectory;
use crate::controller::FreeBytes;

/// The last look at each directory, by its id.
#[derive(Clone, Default)]
pub struct DiskSpace(Rc<RefCell<BTreeMap<Uuid, u64>>>);

impl DiskSpace {
    /// Asks the filesystems.
    pub async fn look(&self, core: &Core, directories: impl Iterator<Item = &LogDirectory>) {
        for directory in directories {
            match dir::free_space(core, &directory.path).await {
                Ok(space) => {
                    self.0.borrow_mut().insert(directory.id, space.free);
                }
                Err(error) => {
                    self.0.borrow_mut().remove(&directory.id);
                    warn!(directory = %directory.path.display(), %error, "cannot ask for free space");
                }
            }
        }
    }

    /// What the controller reads; 0 for a directory that could not be asked.
    pub fn reader(&self) -> FreeBytes {
        let space = self.clone();
        Rc::new(move |id| space.0.borrow().get(&id).copied().unwrap_or(0))
    }
}
