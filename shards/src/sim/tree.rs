//! Files and directories of one simulated disk, and which of their names are durable. See
//! `disk.rs` for the model.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Component, Path};
use std::rc::Rc;

use super::content::FileState;
use super::disk::PowerLoss;
use super::random::Random;
use crate::io::BLOCK;

/// Blocks of the disk: taken, and how many there are.
pub(super) struct Space {
    pub(super) used: Cell<u64>,
    pub(super) capacity: Cell<u64>,
}

impl Space {
    pub(super) fn free(&self) -> u64 {
        self.capacity.get().saturating_sub(self.used.get())
    }
}

pub(super) struct Inode {
    kind: Kind,
    space: Rc<Space>,
    pub(super) modified_ms: Cell<i64>,
    /// flock(2) is held.
    pub(super) locked: Cell<bool>,
    /// Names and open files: its blocks are taken while there is one. (A name that only the
    /// platter has does not count.)
    holders: Cell<u32>,
}

enum Kind {
    File(RefCell<FileState>),
    Directory(RefCell<Entries>),
}

#[derive(Default)]
struct Entries {
    now: BTreeMap<OsString, Rc<Inode>>,
    durable: BTreeMap<OsString, Rc<Inode>>,
}

impl Inode {
    fn new(kind: Kind, space: &Rc<Space>, modified_ms: i64) -> Rc<Self> {
        Rc::new(Self {
            kind,
            space: Rc::clone(space),
            modified_ms: Cell::new(modified_ms),
            locked: Cell::new(false),
            holders: Cell::new(0),
        })
    }

    fn directory(space: &Rc<Space>, now_ms: i64) -> Rc<Self> {
        Self::new(Kind::Directory(RefCell::default()), space, now_ms)
    }

    pub(super) fn is_directory(&self) -> bool {
        matches!(self.kind, Kind::Directory(_))
    }

    fn entries(&self) -> io::Result<&RefCell<Entries>> {
        match &self.kind {
            Kind::Directory(entries) => Ok(entries),
            Kind::File(_) => Err(io::Error::from_raw_os_error(libc::ENOTDIR)),
        }
    }

    pub(super) fn list(&self) -> io::Result<Vec<(OsString, Rc<Inode>)>> {
        let entries = self.entries()?.borrow();
        let pairs = entries.now.iter();
        Ok(pairs
            .map(|(name, inode)| (name.clone(), Rc::clone(inode)))
            .collect())
    }

    fn get(&self, name: &OsStr) -> io::Result<Rc<Inode>> {
        let entries = self.entries()?.borrow();
        let found = entries.now.get(name).map(Rc::clone);
        found.ok_or_else(|| io::Error::from_raw_os_error(libc::ENOENT))
    }

    fn blocks(&self) -> u64 {
        self.with(FileState::blocks).unwrap_or(0)
    }

    pub(super) fn hold(&self) {
        if self.holders.replace(self.holders.get() + 1) == 0 {
            self.space.used.set(self.space.used.get() + self.blocks());
        }
    }

    pub(super) fn release(&self) {
        self.holders.set(self.holders.get() - 1);
        if self.holders.get() == 0 {
            self.space.used.set(self.space.used.get() - self.blocks());
        }
    }

    /// Looks at a file's contents.
    pub(super) fn with<R>(&self, look: impl FnOnce(&FileState) -> R) -> io::Result<R> {
        match &self.kind {
            Kind::File(state) => Ok(look(&state.borrow())),
            Kind::Directory(_) => Err(io::Error::from_raw_os_error(libc::EISDIR)),
        }
    }

    /// Changes the contents of a file that somebody holds, and counts the blocks that it takes or
    /// gives back.
    pub(super) fn change<R>(&self, change: impl FnOnce(&mut FileState) -> R) -> io::Result<R> {
        let Kind::File(state) = &self.kind else {
            return Err(io::Error::from_raw_os_error(libc::EISDIR));
        };
        let mut state = state.borrow_mut();
        let before = state.blocks();
        let result = change(&mut state);
        let used = self.space.used.get() + state.blocks() - before;
        self.space.used.set(used);
        Ok(result)
    }
}

/// Names that change together: one for a creation or removal, two for a rename.
struct Change(Vec<(Rc<Inode>, OsString, Option<Rc<Inode>>)>);

pub(super) struct Tree {
    root: Rc<Inode>,
    pub(super) space: Rc<Space>,
    /// Changes of names that are not durable yet, oldest first.
    pending: Vec<Change>,
}

fn names(path: &Path) -> io::Result<Vec<&OsStr>> {
    let mut names = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => names.push(name),
            Component::ParentDir => drop(names.pop()),
            _ => {}
        }
    }
    Ok(names)
}

fn no_name() -> io::Error {
    io::Error::from_raw_os_error(libc::EINVAL)
}

impl Tree {
    pub(super) fn new(capacity_blocks: u64, now_ms: i64) -> Self {
        let space = Rc::new(Space {
            used: Cell::new(0),
            capacity: Cell::new(capacity_blocks),
        });
        Self {
            root: Inode::directory(&space, now_ms),
            space,
            pending: Vec::new(),
        }
    }

    pub(super) fn find(&self, path: &Path) -> io::Result<Rc<Inode>> {
        let mut at = Rc::clone(&self.root);
        for name in names(path)? {
            let next = at.get(name)?;
            at = next;
        }
        Ok(at)
    }

    /// The directory that holds `path`, and the name there.
    fn parent(&self, path: &Path) -> io::Result<(Rc<Inode>, OsString)> {
        let names = names(path)?;
        let (last, before) = names.split_last().ok_or_else(no_name)?;
        let mut at = Rc::clone(&self.root);
        for name in before {
            let next = at.get(name)?;
            at = next;
        }
        at.entries()?;
        Ok((at, (*last).to_owned()))
    }

    fn apply(&mut self, change: Change, now_ms: i64) {
        for (directory, name, target) in &change.0 {
            directory.modified_ms.set(now_ms);
            if let Ok(entries) = directory.entries() {
                target.iter().for_each(|inode| inode.hold());
                let old = set(&mut entries.borrow_mut().now, name, target.clone());
                old.iter().for_each(|inode| inode.release());
            }
        }
        self.pending.push(change);
    }

    pub(super) fn create_file(
        &mut self,
        path: &Path,
        exclusive: bool,
        now_ms: i64,
    ) -> io::Result<Rc<Inode>> {
        let (directory, name) = self.parent(path)?;
        match directory.get(&name) {
            Ok(_) if exclusive => Err(io::Error::from_raw_os_error(libc::EEXIST)),
            Ok(inode) => Ok(inode),
            Err(_) => {
                let inode = Inode::new(Kind::File(RefCell::default()), &self.space, now_ms);
                let change = Change(vec![(directory, name, Some(Rc::clone(&inode)))]);
                self.apply(change, now_ms);
                Ok(inode)
            }
        }
    }

    pub(super) fn create_dir_all(&mut self, path: &Path, now_ms: i64) -> io::Result<()> {
        let mut at = Rc::clone(&self.root);
        for name in names(path)? {
            let found = at.get(name);
            let next = match found {
                Ok(inode) => inode,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    let made = Inode::directory(&self.space, now_ms);
                    let entry = (Rc::clone(&at), name.to_owned(), Some(Rc::clone(&made)));
                    self.apply(Change(vec![entry]), now_ms);
                    made
                }
                Err(error) => return Err(error),
            };
            at = next;
        }
        if at.is_directory() {
            Ok(())
        } else {
            Err(io::Error::from_raw_os_error(libc::EEXIST))
        }
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path, now_ms: i64) -> io::Result<()> {
        let (from_directory, from_name) = self.parent(from)?;
        let moved = from_directory.get(&from_name)?;
        let (to_directory, to_name) = self.parent(to)?;
        if let Ok(replaced) = to_directory.get(&to_name) {
            if Rc::ptr_eq(&replaced, &moved) {
                return Ok(());
            }
            let refusal = match (moved.is_directory(), replaced.is_directory()) {
                (false, true) => Some(libc::EISDIR),
                (true, false) => Some(libc::ENOTDIR),
                (true, true) if !replaced.list()?.is_empty() => Some(libc::ENOTEMPTY),
                _ => None,
            };
            if let Some(errno) = refusal {
                return Err(io::Error::from_raw_os_error(errno));
            }
        }
        let change = Change(vec![
            (from_directory, from_name, None),
            (to_directory, to_name, Some(moved)),
        ]);
        self.apply(change, now_ms);
        Ok(())
    }

    pub(super) fn remove(&mut self, path: &Path, directory: bool, now_ms: i64) -> io::Result<()> {
        let (parent, name) = self.parent(path)?;
        let found = parent.get(&name)?;
        match (found.is_directory(), directory) {
            (true, false) => return Err(io::Error::from_raw_os_error(libc::EISDIR)),
            (false, true) => return Err(io::Error::from_raw_os_error(libc::ENOTDIR)),
            _ => {}
        }
        self.apply(Change(vec![(parent, name, None)]), now_ms);
        Ok(())
    }

    /// Makes the names of one directory durable, and what a journal has written before them in
    /// the same directories.
    pub(super) fn sync_dir(&mut self, directory: &Rc<Inode>) {
        let mut with = vec![Rc::clone(directory)];
        let mut chosen = vec![false; self.pending.len()];
        for (change, chosen) in self.pending.iter().zip(&mut chosen).rev() {
            let touches = |(inode, ..): &(Rc<Inode>, OsString, Option<Rc<Inode>>)| {
                with.iter().any(|other| Rc::ptr_eq(other, inode))
            };
            if change.0.iter().any(touches) {
                *chosen = true;
                with.extend(change.0.iter().map(|(inode, ..)| Rc::clone(inode)));
            }
        }
        let mut chosen = chosen.into_iter();
        let (commit, keep) = std::mem::take(&mut self.pending)
            .into_iter()
            .partition(|_| chosen.next() == Some(true));
        self.pending = keep;
        commit_all(commit);
    }

    /// What is found after the power failed: a seeded number of the pending changes was written,
    /// in order. All inodes are new, so what is still open writes to nowhere.
    pub(super) fn after_power_loss(&mut self, random: &Random, odds: &PowerLoss) -> io::Result<()> {
        let mut pending = std::mem::take(&mut self.pending);
        let written = if random.chance(odds.lost_per_million) {
            random.index(pending.len() + 1)
        } else {
            pending.len()
        };
        let written = if odds.lost_per_million == 1_000_000 {
            0
        } else {
            written
        };
        drop(pending.split_off(written));
        commit_all(pending);
        let space = Rc::new(Space {
            used: Cell::new(0),
            capacity: Cell::new(self.space.capacity.get()),
        });
        self.root = rebuild(&self.root, &space, random, odds)?;
        self.space = space;
        Ok(())
    }
}

fn set(
    names: &mut BTreeMap<OsString, Rc<Inode>>,
    name: &OsString,
    target: Option<Rc<Inode>>,
) -> Option<Rc<Inode>> {
    match target {
        Some(inode) => names.insert(name.clone(), inode),
        None => names.remove(name),
    }
}

fn commit_all(changes: Vec<Change>) {
    for (directory, name, target) in changes.into_iter().flat_map(|change| change.0) {
        if let Ok(entries) = directory.entries() {
            let old = set(&mut entries.borrow_mut().durable, &name, target);
            drop(old);
        }
    }
}

/// A copy of what is durable below `inode`.
fn rebuild(
    inode: &Inode,
    space: &Rc<Space>,
    random: &Random,
    odds: &PowerLoss,
) -> io::Result<Rc<Inode>> {
    let kind = match &inode.kind {
        Kind::File(state) => {
            let found = state.borrow().after_power_loss(random, odds);
            Kind::File(RefCell::new(found))
        }
        Kind::Directory(entries) => {
            let mut found = BTreeMap::new();
            for (name, child) in &entries.borrow().durable {
                let child = rebuild(child, space, random, odds)?;
                child.hold();
                found.insert(name.clone(), child);
            }
            Kind::Directory(RefCell::new(Entries {
                now: found.clone(),
                durable: found,
            }))
        }
    };
    Ok(Inode::new(kind, space, inode.modified_ms.get()))
}

/// Bytes in whole blocks, rounded up.
pub(super) fn blocks_in(bytes: u64) -> u64 {
    bytes.div_ceil(BLOCK as u64)
}
