//! A node's disk in memory, and how it fails.
//!
//! # The model
//! A filesystem as POSIX promises it and no better; what ext4 or XFS do beyond that is not relied on.
//!
//! - **Unsynced bytes.** A write changes what everybody reads at once. It is on the platter after
//!   fdatasync or fsync of the file, or, for its own range, when a `Durable` write returns. When the
//!   power fails, each block (4096 bytes) written since then is kept, lost, or **torn**: some sectors of 512
//!   bytes new, some old ([`PowerLoss`]). An unsynced length is kept or lost, on its own: a longer
//!   file may hold zeros where blocks were lost.
//! - **Unsynced names.** Files and directories that were made, renamed or removed are durable once
//!   their directory was synced; syncing the file does not do it. When the power fails, the changes
//!   still pending were written up to some point, in order. A rename is one change.
//! - **A process that dies** (killed, not the machine) loses nothing of this.
//! - **EIO** by rule ([`Disk::fail`]) or by chance. A failed write may have written any prefix. After a failed
//!   sync the kernel takes the pages for clean: a later sync succeeds and they are still not on the
//!   platter. A direct read tells: it goes past the page cache.
//! - **ENOSPC** at the [capacity](Disk::set_capacity): a write stops where the space ends, and the
//!   next says ENOSPC. Holes take no space, reserved blocks do.
//! - **Short** reads and writes, by chance, as the system calls allow.
//! - **Bit rot** ([`Disk::flip_bit`]) and **misdirected writes** (a block lands elsewhere in its file), by
//!   chance: nothing reports them but a checksum.
//! - **Slow** operations by chance, and a disk that stalls ([`Disk::stall_for`]).
//!
//! An operation takes effect at its start or at its end, as the seed has it; one whose future is
//! dropped takes effect or not. Not modelled: barriers between disks, quotas, permissions, links.

use std::cell::{Cell, RefCell};
use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;

use super::NodeId;
use super::random::Random;
use super::shared::Shared;
use super::tree::{Inode, Tree, blocks_in};
use crate::Core;
use crate::fault::FileOperation;
use crate::time::Instant;

/// What happens to unsynced blocks, names and lengths when the power fails.
#[derive(Clone, Copy, Debug)]
pub struct PowerLoss {
    /// Blocks and lengths that are lost, in a million. With a million, all pending names too.
    pub lost_per_million: u32,
    /// Of the other blocks, those that are torn, in a million.
    pub torn_per_million: u32,
}

/// What the disk does by itself, see the module.
#[derive(Clone, Debug)]
pub struct DiskFaults {
    pub read_time: RangeInclusive<Duration>,
    pub write_time: RangeInclusive<Duration>,
    pub sync_time: RangeInclusive<Duration>,
    /// Opening, and everything that works with names.
    pub name_time: RangeInclusive<Duration>,
    /// Operations that take `slow_time` more, in a million.
    pub slow_per_million: u32,
    pub slow_time: Duration,
    /// Operations that fail with EIO, in a million.
    pub read_error_per_million: u32,
    pub write_error_per_million: u32,
    pub sync_error_per_million: u32,
    /// Reads and writes that do less than asked, in a million.
    pub short_per_million: u32,
    /// Writes whose bytes land one block too far, in a million.
    pub misdirected_per_million: u32,
    pub power_loss: PowerLoss,
}

impl Default for DiskFaults {
    fn default() -> Self {
        let micros = |least, most| Duration::from_micros(least)..=Duration::from_micros(most);
        Self {
            read_time: micros(10, 150),
            write_time: micros(10, 100),
            sync_time: micros(100, 2000),
            name_time: micros(10, 100),
            slow_per_million: 0,
            slow_time: Duration::from_millis(500),
            read_error_per_million: 0,
            write_error_per_million: 0,
            sync_error_per_million: 0,
            short_per_million: 20_000,
            misdirected_per_million: 0,
            power_loss: PowerLoss {
                lost_per_million: 500_000,
                torn_per_million: 200_000,
            },
        }
    }
}

struct Rule {
    operation: FileOperation,
    below: PathBuf,
    errno: i32,
}

/// The disk of one node, from [`World::disk`](super::World::disk). It survives its node's process
/// and, but for what was not synced, its power.
#[derive(Clone)]
pub struct Disk(Rc<Inner>);

struct Inner {
    shared: Rc<Shared>,
    node: NodeId,
    tree: RefCell<Tree>,
    faults: RefCell<DiskFaults>,
    rules: RefCell<Vec<Rule>>,
    stalled_until: Cell<u64>,
    random: Random,
}

const DEFAULT_CAPACITY: u64 = 64 << 30;

/// Switches and a view from outside, none of which takes simulated time.
impl Disk {
    pub(super) fn new(shared: &Rc<Shared>, node: NodeId, seed: u64) -> Self {
        Self(Rc::new(Inner {
            shared: Rc::clone(shared),
            node,
            tree: RefCell::new(Tree::new(blocks_in(DEFAULT_CAPACITY), 0)),
            faults: RefCell::default(),
            rules: RefCell::default(),
            stalled_until: Cell::new(0),
            random: Random::new(seed, 1000 + u64::from(node.0)),
        }))
    }

    pub fn set_faults(&self, faults: DiskFaults) {
        *self.0.faults.borrow_mut() = faults;
    }

    pub fn faults(&self) -> DiskFaults {
        self.0.faults.borrow().clone()
    }

    /// From now on, operations of this kind at or below `path` fail with `errno`. Work with names
    /// counts as `Write`, syncing a directory as `Sync`, listing and looking as `Read`.
    pub fn fail(&self, operation: FileOperation, path: &Path, errno: i32) {
        self.note(format_args!("rule {operation:?} {errno}"), path);
        self.0.rules.borrow_mut().push(Rule {
            operation,
            below: path.to_owned(),
            errno,
        });
    }

    /// Ends all rules of [`Disk::fail`] and a stall.
    pub fn mend(&self) {
        self.note(format_args!("mended"), Path::new("/"));
        self.0.rules.borrow_mut().clear();
        self.0.stalled_until.set(0);
    }

    /// No operation ends before this time has passed.
    pub fn stall_for(&self, span: Duration) {
        let until = Instant::from_nanos(self.0.shared.nanos()) + span;
        self.0.stalled_until.set(until.as_nanos());
    }

    /// How much fits, in bytes. Less than is taken already is fine: nothing fits then.
    pub fn set_capacity(&self, bytes: u64) {
        let tree = self.0.tree.borrow();
        tree.space.capacity.set(blocks_in(bytes));
    }

    /// Makes a durable file, and the directories that it needs.
    ///
    /// # Errors
    /// When something of another kind is in its place.
    pub fn put(&self, path: &Path, contents: &[u8]) -> io::Result<()> {
        let mut tree = self.0.tree.borrow_mut();
        let mut directory = PathBuf::new();
        if let Some(parent) = path.parent() {
            tree.create_dir_all(parent, 0)?;
        }
        let inode = tree.create_file(path, false, 0)?;
        inode.change(|state| {
            state.set_len(0);
            state.write(0, contents);
            state.sync();
            state.warm = true;
        })?;
        for name in path.parent().into_iter().flat_map(Path::iter) {
            directory.push(name);
            let inode = tree.find(&directory)?;
            tree.sync_dir(&inode);
        }
        let root = tree.find(Path::new("/"))?;
        tree.sync_dir(&root);
        Ok(())
    }

    /// All bytes of a file as a reader would see them now.
    ///
    /// # Errors
    /// When there is no such file.
    pub fn contents(&self, path: &Path) -> io::Result<Vec<u8>> {
        let inode = self.0.tree.borrow().find(path)?;
        inode.with(|state| {
            let mut bytes = vec![0; state.len() as usize];
            state.read(0, &mut bytes);
            bytes
        })
    }

    /// The names in a directory, sorted.
    ///
    /// # Errors
    /// When there is no such directory.
    pub fn names(&self, path: &Path) -> io::Result<Vec<std::ffi::OsString>> {
        let inode = self.0.tree.borrow().find(path)?;
        Ok(inode.list()?.into_iter().map(|(name, _)| name).collect())
    }

    /// Turns over one bit of a file, silently; nothing beyond its end.
    ///
    /// # Errors
    /// When there is no such file.
    pub fn flip_bit(&self, path: &Path, offset: u64, bit: u8) -> io::Result<()> {
        self.note(format_args!("bit {bit} flipped at {offset}"), path);
        let inode = self.0.tree.borrow().find(path)?;
        inode.change(|state| state.flip_bit(offset, bit))
    }
}

/// For the operations in `files.rs` and `names.rs`.
impl Disk {
    pub(super) fn note(&self, what: std::fmt::Arguments<'_>, path: &Path) {
        let node = self.0.node;
        self.0
            .shared
            .note(format_args!("{node} disk {what} {}", path.display()));
    }

    pub(super) fn tree(&self) -> &RefCell<Tree> {
        &self.0.tree
    }

    pub(super) fn random(&self) -> &Random {
        &self.0.random
    }

    /// What becomes of an operation that starts now.
    pub(super) fn verdict(&self, operation: FileOperation, path: &Path) -> io::Result<()> {
        let rules = self.0.rules.borrow();
        let rule = rules
            .iter()
            .find(|rule| rule.operation == operation && path.starts_with(&rule.below));
        let errno = match rule {
            Some(rule) => Some(rule.errno),
            None => {
                let faults = self.0.faults.borrow();
                let odds = match operation {
                    FileOperation::Read => faults.read_error_per_million,
                    FileOperation::Sync => faults.sync_error_per_million,
                    _ => faults.write_error_per_million,
                };
                self.random().chance(odds).then_some(libc::EIO)
            }
        };
        let Some(errno) = errno else { return Ok(()) };
        self.note(format_args!("fails {operation:?} {errno}"), path);
        Err(io::Error::from_raw_os_error(errno))
    }

    /// The time that an operation takes.
    pub(super) async fn take_time(&self, core: &Core, operation: FileOperation) {
        let span = {
            let faults = self.0.faults.borrow();
            let range = match operation {
                FileOperation::Read => &faults.read_time,
                FileOperation::Write | FileOperation::Allocate => &faults.write_time,
                FileOperation::Sync => &faults.sync_time,
                FileOperation::Open | FileOperation::SetLen => &faults.name_time,
            };
            let slow = self.random().chance(faults.slow_per_million);
            let span = self.random().span(range);
            if slow { span + faults.slow_time } else { span }
        };
        core.sleep(span).await;
        loop {
            let until = self.0.stalled_until.get();
            if until <= self.0.shared.nanos() {
                return;
            }
            // In steps, so that mending ends it.
            let step = Duration::from_millis(1);
            let rest = Duration::from_nanos(until - self.0.shared.nanos());
            core.sleep(rest.min(step)).await;
        }
    }

    /// `len`, or by chance less, but not nothing; whole blocks for direct files.
    pub(super) fn shortened(&self, len: usize, block: usize) -> usize {
        let odds = self.0.faults.borrow().short_per_million;
        if len <= block || !self.random().chance(odds) {
            return len;
        }
        block * (1 + self.random().index(len / block))
    }

    /// Where a write really lands.
    pub(super) fn directed(&self, offset: u64) -> u64 {
        let odds = self.0.faults.borrow().misdirected_per_million;
        if self.random().chance(odds) {
            offset + crate::io::BLOCK as u64
        } else {
            offset
        }
    }

    /// The inode's file as a whole, for what needs no time of its own.
    pub(super) fn whole(inode: &Inode, max: usize) -> io::Result<Bytes> {
        inode.with(|state| {
            if state.len() > max as u64 {
                return Err(io::Error::new(
                    io::ErrorKind::FileTooLarge,
                    format!("longer than {max} bytes"),
                ));
            }
            let mut bytes = vec![0; state.len() as usize];
            state.read(0, &mut bytes);
            Ok(Bytes::from(bytes))
        })?
    }

    pub(super) fn power_off(&self) {
        let odds = self.0.faults.borrow().power_loss;
        // It fails on inodes of the wrong kind only, of which there are none in a tree.
        let lost = self
            .0
            .tree
            .borrow_mut()
            .after_power_loss(self.random(), &odds);
        debug_assert!(lost.is_ok());
        self.0.stalled_until.set(0);
    }
}
