//! What a file holds: now, as everybody who reads it sees it, and on the platter, as it is found
//! after the power failed. See `disk.rs` for the model.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::disk::PowerLoss;
use super::random::Random;
use crate::io::BLOCK;

/// What a disk writes as a whole or not at all.
const SECTOR: usize = 512;

type Block = Rc<[u8; BLOCK]>;

/// Blocks by number. An absent one is a hole; `None` is reserved space without contents. Both read
/// as zeros.
#[derive(Clone, Default)]
pub(super) struct Content {
    len: u64,
    blocks: BTreeMap<u64, Option<Block>>,
}

fn place(offset: u64) -> (u64, usize) {
    let block = BLOCK as u64;
    (offset / block, (offset % block) as usize)
}

impl Content {
    fn read(&self, offset: u64, memory: &mut [u8]) -> usize {
        let len = self.len.saturating_sub(offset).min(memory.len() as u64) as usize;
        let mut done = 0;
        while done < len {
            let (number, start) = place(offset + done as u64);
            let count = (BLOCK - start).min(len - done);
            let target = &mut memory[done..done + count];
            match self.blocks.get(&number) {
                Some(Some(block)) => target.copy_from_slice(&block[start..start + count]),
                _ => target.fill(0),
            }
            done += count;
        }
        len
    }

    fn write(&mut self, offset: u64, data: &[u8]) {
        let mut done = 0;
        while done < data.len() {
            let (number, start) = place(offset + done as u64);
            let count = (BLOCK - start).min(data.len() - done);
            let block = self.block_mut(number);
            block[start..start + count].copy_from_slice(&data[done..done + count]);
            done += count;
        }
        self.len = self.len.max(offset + data.len() as u64);
    }

    fn block_mut(&mut self, number: u64) -> &mut [u8; BLOCK] {
        let slot = self.blocks.entry(number).or_default();
        Rc::make_mut(slot.get_or_insert_with(|| Rc::new([0; BLOCK])))
    }

    /// Cuts or extends; the first byte beyond a cut reads as zero if the file grows again.
    fn set_len(&mut self, len: u64) {
        if len < self.len {
            let (last, used) = place(len);
            let beyond = if used == 0 { last } else { last + 1 };
            drop(self.blocks.split_off(&beyond));
            if used > 0
                && let Some(Some(block)) = self.blocks.get_mut(&last)
            {
                Rc::make_mut(block)[used..].fill(0);
            }
        }
        self.len = len;
    }
}

#[derive(Default)]
pub(super) struct FileState {
    now: Content,
    durable: Content,
    /// Blocks that differ, or may, and that a sync would write.
    dirty: BTreeSet<u64>,
    /// In the page cache: what sendfile asks for.
    pub(super) warm: bool,
}

fn blocks_of(offset: u64, len: u64) -> std::ops::Range<u64> {
    let block = BLOCK as u64;
    offset / block..(offset + len).div_ceil(block)
}

impl FileState {
    pub(super) fn len(&self) -> u64 {
        self.now.len
    }

    pub(super) fn blocks(&self) -> u64 {
        self.now.blocks.len() as u64
    }

    pub(super) fn read(&self, offset: u64, memory: &mut [u8]) -> usize {
        self.now.read(offset, memory)
    }

    /// Past the page cache: what it has to write is written first, what it takes for clean comes from the platter. After a
    /// failed sync the two differ.
    pub(super) fn read_direct(&self, offset: u64, memory: &mut [u8]) -> usize {
        let read = self.now.read(offset, memory);
        let end = offset + read as u64;
        for number in blocks_of(offset, read as u64) {
            if self.dirty.contains(&number) {
                continue;
            }
            let begin = number * BLOCK as u64;
            let (from, to) = (begin.max(offset), (begin + BLOCK as u64).min(end));
            let part = &mut memory[(from - offset) as usize..(to - offset) as usize];
            match self.durable.blocks.get(&number) {
                Some(Some(block)) => {
                    let skip = (from - begin) as usize;
                    part.copy_from_slice(&block[skip..skip + part.len()]);
                }
                _ => part.fill(0),
            }
        }
        read
    }

    /// How many of `len` bytes at `offset` fit, when `free` blocks may still be taken.
    pub(super) fn fitting(&self, offset: u64, len: u64, mut free: u64) -> u64 {
        if len.div_ceil(BLOCK as u64) < free {
            return len;
        }
        for number in blocks_of(offset, len) {
            if self.now.blocks.contains_key(&number) {
                continue;
            }
            if free == 0 {
                return (number * BLOCK as u64).saturating_sub(offset);
            }
            free -= 1;
        }
        len
    }

    pub(super) fn write(&mut self, offset: u64, data: &[u8]) {
        self.now.write(offset, data);
        self.dirty.extend(blocks_of(offset, data.len() as u64));
    }

    pub(super) fn set_len(&mut self, len: u64) {
        let (old, block) = (self.now.len, BLOCK as u64);
        if len < old {
            let cut = self.now.blocks.range(len / block..);
            self.dirty.extend(cut.map(|(number, _)| *number));
        }
        self.now.set_len(len);
    }

    /// Reserves blocks; the file grows to cover them.
    pub(super) fn reserve(&mut self, offset: u64, len: u64) {
        for number in blocks_of(offset, len) {
            self.now.blocks.entry(number).or_default();
            self.dirty.insert(number);
        }
        self.now.len = self.now.len.max(offset + len);
    }

    pub(super) fn punch(&mut self, offset: u64, len: u64) {
        let end = (offset + len).min(self.now.len);
        let mut at = offset;
        while at < end {
            let (number, start) = place(at);
            let count = ((BLOCK - start) as u64).min(end - at);
            if count == BLOCK as u64 {
                self.now.blocks.remove(&number);
            } else if let Some(Some(block)) = self.now.blocks.get_mut(&number) {
                Rc::make_mut(block)[start..start + count as usize].fill(0);
            }
            self.dirty.insert(number);
            at += count;
        }
    }

    /// Everything is on the platter.
    pub(super) fn sync(&mut self) {
        for number in std::mem::take(&mut self.dirty) {
            self.settle(number);
        }
        self.durable.set_len(self.now.len);
    }

    /// One range is on the platter, and a length that covers it.
    pub(super) fn sync_range(&mut self, offset: u64, len: u64) {
        for number in blocks_of(offset, len) {
            if self.dirty.remove(&number) {
                self.settle(number);
            }
        }
        let end = (offset + len).min(self.now.len);
        let len = self.durable.len.min(self.now.len).max(end);
        self.durable.set_len(len);
    }

    fn settle(&mut self, number: u64) {
        match self.now.blocks.get(&number) {
            Some(block) => self.durable.blocks.insert(number, block.clone()),
            None => self.durable.blocks.remove(&number),
        };
    }

    /// A sync has failed: the kernel takes the pages for clean, though nothing was written.
    pub(super) fn forget_dirty(&mut self) {
        self.dirty.clear();
    }

    /// Turns one bit over, on the platter and in the cache.
    pub(super) fn flip_bit(&mut self, offset: u64, bit: u8) {
        if offset >= self.now.len {
            return;
        }
        let (number, start) = place(offset);
        self.now.block_mut(number)[start] ^= 1 << (bit % 8);
        if self.durable.blocks.contains_key(&number) {
            self.durable.block_mut(number)[start] ^= 1 << (bit % 8);
        }
    }

    /// What is found after the power failed.
    pub(super) fn after_power_loss(&self, random: &Random, odds: &PowerLoss) -> FileState {
        let mut found = self.durable.clone();
        if self.now.len != self.durable.len && !random.chance(odds.lost_per_million) {
            found.set_len(self.now.len);
        }
        for number in &self.dirty {
            if random.chance(odds.lost_per_million) {
                continue;
            }
            let new = self.now.blocks.get(number).cloned();
            let torn = random.chance(odds.torn_per_million);
            match new {
                Some(Some(new)) if torn => tear(random, found.block_mut(*number), &new),
                Some(new) => drop(found.blocks.insert(*number, new)),
                None => drop(found.blocks.remove(number)),
            }
        }
        // A block that came through is of no use beyond a length that did not.
        let len = found.len;
        found.len = u64::MAX;
        found.set_len(len);
        FileState {
            now: found.clone(),
            durable: found,
            dirty: BTreeSet::new(),
            warm: false,
        }
    }
}

/// Some sectors are new, the others old: at least one of each.
fn tear(random: &Random, old: &mut [u8; BLOCK], new: &[u8; BLOCK]) {
    let sectors = BLOCK / SECTOR;
    let (kept, taken) = (random.index(sectors), random.index(sectors - 1));
    for sector in 0..sectors {
        let is_new =
            sector != kept && (sector == (kept + 1 + taken) % sectors || random.below(2) == 0);
        if is_new {
            let range = sector * SECTOR..(sector + 1) * SECTOR;
            old[range.clone()].copy_from_slice(&new[range]);
        }
    }
}
