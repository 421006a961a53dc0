//! Which core of this node owns which partition: an explicit table, not a hash.
//!
//! Node-local, kept in a hidden file of the metadata log's directory, written and read by the
//! caller. A lost or damaged file costs balance, never data: partitions are assigned anew. Every
//! assignment has a revision of its own, so that a message meant for an earlier owner (or for a
//! topic that was deleted and created again) cannot touch a later one.

use imbl::OrdMap;
use protocol::Uuid;

use super::diff::PartitionChange;
use super::image::Image;

/// Name of the file.
pub const PLACEMENT_FILE: &str = ".ringmain-placement";

/// Where a partition lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// Index of the owning core.
    pub core: u16,
    /// Grows with every assignment made on this node.
    pub revision: u64,
}

/// Partition to core. Cloning shares all that is not changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    entries: OrdMap<(Uuid, i32), Assignment>,
    /// Partitions of each core.
    load: Vec<u32>,
    revision: u64,
}

impl Placement {
    /// An empty table for a node with `cores` cores, at least one.
    #[must_use]
    pub fn new(cores: u16) -> Self {
        Self {
            entries: OrdMap::new(),
            load: vec![0; usize::from(cores.max(1))],
            revision: 0,
        }
    }

    /// Owner of a partition, as the index of a core.
    #[must_use]
    pub fn core_of(&self, topic: Uuid, partition: i32) -> Option<u16> {
        self.get(topic, partition).map(|assignment| assignment.core)
    }

    /// Owner of a partition, and the revision of that ownership.
    #[must_use]
    pub fn get(&self, topic: Uuid, partition: i32) -> Option<Assignment> {
        self.entries.get(&(topic, partition)).copied()
    }

    /// How many cores the table is for.
    #[must_use]
    pub fn cores(&self) -> u16 {
        u16::try_from(self.load.len()).unwrap_or(u16::MAX)
    }

    /// Partitions that a core owns.
    #[must_use]
    pub fn load_of(&self, core: u16) -> u32 {
        self.load.get(usize::from(core)).copied().unwrap_or(0)
    }

    /// All assignments, by topic and partition.
    pub fn iter(&self) -> impl Iterator<Item = (Uuid, i32, Assignment)> {
        self.entries
            .iter()
            .map(|(&(topic, index), &assignment)| (topic, index, assignment))
    }

    /// Gives the partition to the core with the fewest, unless it has an owner.
    pub fn assign(&mut self, topic: Uuid, partition: i32) -> Assignment {
        match self.get(topic, partition) {
            Some(assignment) => assignment,
            None => self.put(topic, partition, self.least_loaded()),
        }
    }

    /// Takes the partition away from its core. True if it had one.
    pub fn remove(&mut self, topic: Uuid, partition: i32) -> bool {
        match self.entries.remove(&(topic, partition)) {
            Some(assignment) => {
                self.unload(assignment.core);
                true
            }
            None => false,
        }
    }

    /// Moves the partition to another core, under a new revision. `None` if it has no owner or
    /// there is no such core.
    pub fn move_to(&mut self, topic: Uuid, partition: i32, core: u16) -> Option<Assignment> {
        let before = self.get(topic, partition)?;
        if core >= self.cores() {
            return None;
        }
        self.unload(before.core);
        Some(self.put(topic, partition, core))
    }

    /// Follows changes of the image: partitions with a replica on `node` get an owner, all others
    /// lose theirs. True if the table changed.
    pub fn follow(&mut self, changes: &[PartitionChange<'_>], node: i32) -> bool {
        let before = self.revision;
        let mut removed = false;
        for change in changes {
            if change
                .new
                .is_some_and(|partition| partition.replicas.contains(&node))
            {
                self.assign(change.topic, change.index);
            } else {
                removed |= self.remove(change.topic, change.index);
            }
        }
        removed || self.revision != before
    }

    /// Brings the table in line with a whole image: what [`Self::follow`] keeps afterwards. True
    /// if it changed.
    pub fn reconcile(&mut self, image: &Image, node: i32) -> bool {
        let hosted = |topic: Uuid, index: i32| {
            image
                .partition(topic, index)
                .is_some_and(|it| it.replicas.contains(&node))
        };
        let gone: Vec<(Uuid, i32)> = self
            .iter()
            .filter(|&(topic, index, _)| !hosted(topic, index))
            .map(|(topic, index, _)| (topic, index))
            .collect();
        for &(topic, index) in &gone {
            self.remove(topic, index);
        }
        let before = self.revision;
        for topic in image.topics() {
            for (index, partition) in topic.partitions.iter() {
                if partition.replicas.contains(&node) {
                    self.assign(topic.id, index);
                }
            }
        }
        !gone.is_empty() || self.revision != before
    }

    /// The table for another number of cores: what a vanished core owned goes to those with the
    /// fewest; new cores are filled by what comes, and by moves.
    #[must_use]
    pub fn for_cores(mut self, cores: u16) -> Self {
        let cores = usize::from(cores.max(1));
        let homeless: Vec<(Uuid, i32)> = self
            .iter()
            .filter(|(_, _, assignment)| usize::from(assignment.core) >= cores)
            .map(|(topic, index, _)| (topic, index))
            .collect();
        self.load.resize(cores, 0);
        for (topic, index) in homeless {
            let core = self.least_loaded();
            self.put(topic, index, core);
        }
        self
    }

    fn least_loaded(&self) -> u16 {
        let lowest = self.load.iter().enumerate().min_by_key(|&(_, load)| *load);
        lowest
            .and_then(|(core, _)| u16::try_from(core).ok())
            .unwrap_or(0)
    }

    fn put(&mut self, topic: Uuid, partition: i32, core: u16) -> Assignment {
        self.revision += 1;
        let assignment = Assignment {
            core,
            revision: self.revision,
        };
        self.entries.insert((topic, partition), assignment);
        if let Some(load) = self.load.get_mut(usize::from(core)) {
            *load += 1;
        }
        assignment
    }

    fn unload(&mut self, core: u16) {
        if let Some(load) = self.load.get_mut(usize::from(core)) {
            *load = load.saturating_sub(1);
        }
    }
}

/// The file: magic, then pieces of the table, each with its length, its CRC-32C, and entries in rkyv's form, which is
/// checked when read. In pieces, so that many partitions need no memory in one.
mod file {
    use std::io::BufRead;

    use bytes::Bytes;
    use rkyv::rancor;
    use rkyv::util::AlignedVec;

    use super::{Assignment, Placement};
    use protocol::Uuid;

    const MAGIC: &[u8; 8] = b"RMPLACE2";
    /// Entries of a piece: some 32 KiB.
    const PIECE_ENTRIES: usize = 1000;
    /// No piece of as many entries is longer.
    const PIECE_BYTES_MAX: usize = 64 << 10;

    #[derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
    struct StoredEntry {
        topic: [u8; 16],
        partition: i32,
        core: u16,
        revision: u64,
    }

    /// The table's own values stand in every piece.
    #[derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
    struct StoredPiece {
        cores: u16,
        revision: u64,
        /// Entries of all pieces together.
        count: u64,
        entries: Vec<StoredEntry>,
    }

    /// The file holds no table; the caller starts from an empty one.
    #[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
    #[error("the placement table cannot be read: {0}")]
    pub struct PlacementError(String);

    fn wrong<T>(problem: &str) -> Result<T, PlacementError> {
        Err(PlacementError(problem.to_owned()))
    }

    impl Placement {
        /// The content of the file, in pieces.
        ///
        /// # Errors
        /// Out of memory.
        pub fn encode(&self) -> Result<Vec<Bytes>, PlacementError> {
            let mut pieces = vec![Bytes::from_static(MAGIC)];
            let mut entries = self
                .iter()
                .map(|(topic, partition, assignment)| StoredEntry {
                    topic: topic.0,
                    partition,
                    core: assignment.core,
                    revision: assignment.revision,
                });
            loop {
                let piece = StoredPiece {
                    cores: self.cores(),
                    revision: self.revision,
                    count: self.entries.len() as u64,
                    entries: entries.by_ref().take(PIECE_ENTRIES).collect(),
                };
                let last = piece.entries.len() < PIECE_ENTRIES;
                pieces.push(encode_piece(&piece)?);
                if last {
                    return Ok(pieces);
                }
            }
        }

        /// Reads a file's content. The table is for as many cores as it was written with; see
        /// [`Placement::for_cores`].
        ///
        /// # Errors
        /// Not such a file, or a damaged one.
        pub fn read(file: &mut dyn BufRead) -> Result<Self, PlacementError> {
            let mut magic = [0; MAGIC.len()];
            if file.read_exact(&mut magic).is_err() || magic != *MAGIC {
                return wrong("it does not begin as one");
            }
            let mut placement: Option<Self> = None;
            let mut count = 0;
            while let Some(body) = read_piece(file)? {
                let piece = rkyv::access::<ArchivedStoredPiece, rancor::Error>(&body)
                    .map_err(|error| PlacementError(error.to_string()))?;
                let cores = piece.cores.to_native();
                let placement = placement.get_or_insert_with(|| Placement::new(cores));
                placement.revision = piece.revision.to_native();
                count = piece.count.to_native();
                placement.take(piece)?;
            }
            match placement {
                Some(placement) if placement.entries.len() as u64 == count => Ok(placement),
                _ => wrong("it is too short"),
            }
        }

        fn take(&mut self, piece: &ArchivedStoredPiece) -> Result<(), PlacementError> {
            for entry in piece.entries.iter() {
                let core = entry.core.to_native();
                let Some(load) = self.load.get_mut(usize::from(core)) else {
                    return wrong("it names a core that there is not");
                };
                *load += 1;
                let key = (Uuid(entry.topic), entry.partition.to_native());
                let revision = entry.revision.to_native();
                let assignment = Assignment { core, revision };
                if self.entries.insert(key, assignment).is_some() {
                    return wrong("it names a partition twice");
                }
            }
            Ok(())
        }
    }

    fn encode_piece(piece: &StoredPiece) -> Result<Bytes, PlacementError> {
        let body = rkyv::to_bytes::<rancor::Error>(piece)
            .map_err(|error| PlacementError(error.to_string()))?;
        let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
        let head = [length.to_be_bytes(), crc32c::crc32c(&body).to_be_bytes()];
        Ok([&head.concat(), &body[..]].concat().into())
    }

    /// The body of the next piece; none at the end of the file.
    fn read_piece(file: &mut dyn BufRead) -> Result<Option<AlignedVec>, PlacementError> {
        if file.fill_buf().is_ok_and(<[u8]>::is_empty) {
            return Ok(None);
        }
        let mut head = [[0; 4]; 2];
        if file.read_exact(head.as_flattened_mut()).is_err() {
            return wrong("it is too short");
        }
        let [length, crc] = head.map(u32::from_be_bytes);
        let length = length as usize;
        if length > PIECE_BYTES_MAX {
            return wrong("a piece of it is too long");
        }
        let mut body = AlignedVec::with_capacity(length);
        body.resize(length, 0);
        if file.read_exact(&mut body).is_err() {
            return wrong("it is too short");
        }
        if crc != crc32c::crc32c(&body) {
            return wrong("its checksum is wrong");
        }
        Ok(Some(body))
    }
}

pub use file::PlacementError;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn topic(number: u8) -> Uuid {
        Uuid([number; 16])
    }

    #[test]
    fn partitions_spread_evenly_and_late_messages_can_be_told() {
        let mut placement = Placement::new(3);
        for index in 0..9 {
            placement.assign(topic(1), index);
        }
        assert!((0..3).all(|core| placement.load_of(core) == 3));
        let first = placement.get(topic(1), 0).unwrap();
        assert_eq!(placement.assign(topic(1), 0), first, "an owner stays");
        assert!(placement.remove(topic(1), 0));
        let again = placement.assign(topic(1), 0);
        assert!(again.revision > first.revision);
        let moved = placement.move_to(topic(1), 0, 2).unwrap();
        assert!(moved.revision > again.revision);
        assert_eq!(placement.move_to(topic(1), 0, 3), None);
    }

    #[test]
    fn fewer_cores_take_over_what_the_others_owned() {
        let mut placement = Placement::new(4);
        for index in 0..40 {
            placement.assign(topic(1), index);
        }
        let kept: Vec<_> = placement.iter().filter(|(_, _, it)| it.core < 2).collect();
        let fewer = placement.clone().for_cores(2);
        assert_eq!((fewer.load_of(0), fewer.load_of(1)), (20, 20));
        for (topic, index, assignment) in kept {
            assert_eq!(fewer.get(topic, index), Some(assignment));
        }
        let more = placement.for_cores(5);
        assert_eq!(more.load_of(4), 0);
        assert_eq!(more.clone().assign(topic(2), 0).core, 4);
    }

    fn check(placement: &Placement) {
        let mut load = vec![0; usize::from(placement.cores())];
        let mut revisions = std::collections::BTreeSet::new();
        for (_, _, assignment) in placement.iter() {
            load[usize::from(assignment.core)] += 1;
            assert!(
                revisions.insert(assignment.revision),
                "a revision stands for one assignment"
            );
            assert!(assignment.revision <= placement.revision);
        }
        assert_eq!(load, placement.load);
    }

    #[test]
    fn many_entries_are_written_in_pieces() {
        for count in [0, 999, 1000, 1001, 3500] {
            let mut placement = Placement::new(2);
            for index in 0..count {
                placement.assign(topic(7), index);
            }
            let pieces = placement.encode().unwrap();
            assert!(pieces.iter().all(|piece| piece.len() < 64 << 10));
            assert_eq!(Placement::read(&mut &pieces.concat()[..]), Ok(placement));
            // Whole pieces that are missing are noticed, too.
            let some = [&pieces[..1], &pieces[2..]].concat().concat();
            assert!(Placement::read(&mut &some[..]).is_err());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn any_history_is_consistent_and_comes_back_from_its_file(
            steps in prop::collection::vec((0u8..4, 0u8..3, 0i32..6, 0u16..5), 0..60),
        ) {
            let mut placement = Placement::new(3);
            for (what, number, index, core) in steps {
                match what {
                    0 => drop(placement.assign(topic(number), index)),
                    1 => drop(placement.remove(topic(number), index)),
                    2 => drop(placement.move_to(topic(number), index, core)),
                    _ => placement = placement.for_cores(core + 1),
                }
                check(&placement);
            }
            let bytes = placement.encode().unwrap().concat();
            prop_assert_eq!(Placement::read(&mut &bytes[..]).unwrap(), placement);
        }

        #[test]
        fn damage_is_an_error(at in 0usize..400, bit in 0u8..8, length in 0usize..400) {
            let mut placement = Placement::new(2);
            for index in 0..10 {
                placement.assign(topic(7), index);
            }
            let bytes = placement.encode().unwrap().concat();
            let mut damaged = bytes.clone();
            let at = at % bytes.len();
            damaged[at] ^= 1 << bit;
            prop_assert!(Placement::read(&mut &damaged[..]).is_err());
            prop_assert!(Placement::read(&mut &bytes[..length % bytes.len()]).is_err());
        }
    }
}
