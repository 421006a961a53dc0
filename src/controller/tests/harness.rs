//! A controller without a disk: commands in, and the log they leave in memory.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use protocol::records::BatchView;
use protocol::stored::MetadataRecord;
use protocol::{Pieces, Uuid};

use super::super::draft::Draft;
use super::super::log::{LogFuture, MetadataLog, MetadataLogError, StoredFile};
use super::super::machine::{Command, ControllerSettings, Decision, Machine, Reply, Surroundings};
use super::super::start::{NodeRegistration, StartError, draft_start};
use crate::config::BrokerConfig;
use crate::metadata::snapshot_file::{Checkpoint, SnapshotId, replay_snapshot, write_snapshot};
use crate::metadata::{
    BrokerRegistration, ControllerRegistration, Entry, Image, LogEntry, Replay, SupportedFeature,
    read_entries,
};

pub const NODE: i32 = 1;
pub const DIRECTORIES: [Uuid; 2] = [Uuid([0xd1; 16]), Uuid([0xd2; 16])];

pub fn settings(overrides: &[(&str, &str)]) -> ControllerSettings {
    let config = BrokerConfig::single_node(overrides).unwrap();
    ControllerSettings {
        node_id: NODE,
        default_partitions: config.topics.partitions,
        default_replication: config.topics.replication_factor,
        delete_topics: config.topics.delete,
        settings: config.settings,
        node: node(),
        directory_id: DIRECTORIES[0],
    }
}

pub fn node() -> NodeRegistration {
    let feature = |name: &str, min, max| SupportedFeature {
        name: name.into(),
        min,
        max,
    };
    let features = vec![
        feature("kraft.version", 0, 1),
        feature("metadata.version", 7, 33),
    ];
    NodeRegistration {
        broker: BrokerRegistration {
            id: NODE,
            epoch: -1,
            incarnation_id: Uuid::ZERO,
            endpoints: Vec::new(),
            features: features.clone(),
            rack: None,
            fenced: true,
            in_controlled_shutdown: false,
            is_migrating_zk_broker: false,
            log_dirs: DIRECTORIES.to_vec(),
            cordoned_log_dirs: None,
        },
        controller: ControllerRegistration {
            id: NODE,
            incarnation_id: Uuid::ZERO,
            zk_migration_ready: false,
            endpoints: Vec::new(),
            features,
        },
    }
}

/// A source of bits that repeats with its seed.
pub fn bits(seed: &mut u64) -> u64 {
    *seed = seed
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    *seed ^ (*seed >> 29)
}

/// A machine and everything it has written.
pub struct World {
    pub machine: Machine,
    pub log: BytesMut,
    pub end_offset: i64,
    seed: u64,
    /// Where restarts begin to read, if not with the log.
    snapshot: Option<(Bytes, SnapshotId)>,
}

impl World {
    /// A first start with default settings.
    pub fn new() -> Self {
        Self::with(settings(&[]))
    }

    pub fn with(settings: ControllerSettings) -> Self {
        let mut world = Self::not_started(settings);
        world.start(None).unwrap();
        world
    }

    /// A node before its first start.
    pub fn not_started(settings: ControllerSettings) -> Self {
        let machine = Machine::new(Arc::new(settings), 1, Replay::default());
        Self {
            machine,
            log: BytesMut::new(),
            end_offset: 0,
            seed: 7,
            snapshot: None,
        }
    }

    /// A start on what is in the log.
    pub fn start(&mut self, bootstrap: Option<&Checkpoint>) -> Result<(), StartError> {
        self.start_as(bootstrap, &node())
    }

    pub fn start_as(
        &mut self,
        bootstrap: Option<&Checkpoint>,
        node: &NodeRegistration,
    ) -> Result<(), StartError> {
        let mut draft = Draft::new(self.machine.clone(), self.end_offset, 1000);
        draft_start(&mut draft, bootstrap, node, &mut || bits(&mut self.seed))?;
        self.take(draft);
        Ok(())
    }

    /// The same settings in a new epoch, from the log alone.
    pub fn restart(&mut self) {
        let epoch = self.machine.quorum_epoch() + 1;
        let settings = self.machine.settings.clone();
        self.machine = Machine::new(settings, epoch, self.read_back());
        self.start(None).unwrap();
    }

    /// The state that snapshot and log, or the log alone, give.
    pub fn read_back(&self) -> Replay {
        let Some((content, id)) = &self.snapshot else {
            return replayed(&self.log);
        };
        let mut replay = replay_snapshot(content.clone().into(), *id).unwrap();
        for entry in entries(&self.log) {
            if entry.offset >= id.end_offset {
                replay.apply(&entry).unwrap();
            }
        }
        replay
    }

    /// The same node, started from a snapshot of its state instead of its log.
    pub fn started_from_snapshot(&self) -> Self {
        let quorum = self.machine.replay().quorum().clone();
        let content = write_snapshot(self.image(), &quorum, 5).unwrap();
        let content = Bytes::from(content.concat());
        let id = SnapshotId::of(self.image());
        let replay = replay_snapshot(content.clone().into(), id).unwrap();
        let (settings, epoch) = (self.machine.settings.clone(), self.machine.quorum_epoch());
        Self {
            machine: Machine::new(settings, epoch, replay),
            log: self.log.clone(),
            end_offset: self.end_offset,
            seed: self.seed,
            snapshot: Some((content, id)),
        }
    }

    /// Records that no command of ours writes, as another broker left them.
    pub fn write(&mut self, records: Vec<MetadataRecord>) {
        let version = self.machine.metadata_version();
        let records = records.into_iter().map(|record| version.versioned(record));
        let mut draft = Draft::new(self.machine.clone(), self.end_offset, 1000);
        draft.add(records).unwrap();
        self.take(draft);
    }

    pub fn run(&mut self, command: Command) -> Reply {
        self.decide(&command).reply
    }

    /// Runs a command; what was decided is in the log then.
    pub fn decide(&mut self, command: &Command) -> Decision {
        let mut draft = Draft::new(self.machine.clone(), self.end_offset, 1000);
        let seed = &mut self.seed;
        let mut random = || bits(seed);
        let free_bytes = |directory: Uuid| u64::from(directory.0[0]);
        let mut around = Surroundings {
            random: &mut random,
            free_bytes: &free_bytes,
        };
        let decision = self.machine.decide(command, &mut around);
        draft.add(decision.records.clone()).unwrap();
        draft.add_control(decision.control.clone()).unwrap();
        self.take(draft);
        decision
    }

    pub fn image(&self) -> &Image {
        self.machine.image()
    }

    fn take(&mut self, draft: Draft) {
        self.end_offset = draft.next_offset();
        let (bytes, machine) = draft.finish();
        self.log.extend_from_slice(&bytes.concat());
        self.machine = machine;
    }
}

/// What the log says.
pub fn replayed(log: &[u8]) -> Replay {
    let mut replay = Replay::default();
    read_entries(Bytes::copy_from_slice(log), |entry| replay.apply(&entry)).unwrap();
    replay
}

/// The entries of a log.
pub fn entries(log: &[u8]) -> Vec<LogEntry> {
    let mut entries = Vec::new();
    read_entries(Bytes::copy_from_slice(log), |entry| {
        entries.push(entry);
        Ok(())
    })
    .unwrap();
    entries
}

/// Names of the types of entries, as far as their first parenthesis or brace.
pub fn kinds(entries: &[LogEntry]) -> Vec<String> {
    let kind = |entry: &LogEntry| match &entry.entry {
        Entry::Control(control) => format!("{control:?}"),
        Entry::Metadata(record) => format!("{:?}", record.record),
    };
    let head = |text: String| text.split(['(', '{']).next().unwrap_or_default().to_owned();
    entries.iter().map(kind).map(head).collect()
}

/// `__cluster_metadata-0` in memory.
#[derive(Default)]
pub struct MemoryLog {
    pub batches: RefCell<Vec<Bytes>>,
    pub files: RefCell<BTreeMap<String, Bytes>>,
    pub end: Cell<i64>,
    pub start: Cell<i64>,
    pub appends: Cell<usize>,
    pub fail: Cell<bool>,
    pub full: Cell<bool>,
}

impl MemoryLog {
    pub fn rc() -> Rc<Self> {
        Rc::new(Self::default())
    }

    pub fn content(&self) -> BytesMut {
        let mut content = BytesMut::new();
        self.batches
            .borrow()
            .iter()
            .for_each(|batch| content.extend_from_slice(batch));
        content
    }
}

impl MetadataLog for MemoryLog {
    fn start_offset(&self) -> i64 {
        self.start.get()
    }

    fn end_offset(&self) -> i64 {
        self.end.get()
    }

    fn size_bytes(&self) -> u64 {
        self.batches
            .borrow()
            .iter()
            .map(|batch| batch.len() as u64)
            .sum()
    }

    fn append(&self, batches: Vec<Bytes>, epoch: i32) -> LogFuture<'_, ()> {
        Box::pin(async move {
            if self.fail.get() {
                return Err(MetadataLogError::Failed("the disk is gone".to_owned()));
            }
            if self.full.get() {
                return Err(MetadataLogError::Full("no space".to_owned()));
            }
            self.appends.set(self.appends.get() + 1);
            for batch in batches {
                let batch = BatchView::parse(&batch).unwrap();
                assert_eq!(batch.base_offset, self.end.get());
                assert_eq!(batch.partition_leader_epoch, epoch);
                self.end.set(batch.next_offset());
                self.batches.borrow_mut().push(batch.into_bytes());
            }
            Ok(())
        })
    }

    fn read(&self, offset: i64) -> LogFuture<'_, Bytes> {
        let next = |batch: &&Bytes| {
            let view = protocol::records::BatchView::parse(batch).unwrap();
            view.next_offset() > offset
        };
        let found = self
            .batches
            .borrow()
            .iter()
            .find(next)
            .cloned()
            .unwrap_or_default();
        Box::pin(async move { Ok(found) })
    }

    fn delete_before(&self, offset: i64) -> LogFuture<'_, ()> {
        self.batches.borrow_mut().retain(|batch| {
            protocol::records::BatchView::parse(batch)
                .unwrap()
                .next_offset()
                > offset
        });
        self.start.set(offset);
        Box::pin(async { Ok(()) })
    }

    fn start_over(&self, offset: i64) -> LogFuture<'_, ()> {
        self.batches.borrow_mut().clear();
        self.start.set(offset);
        self.end.set(offset);
        Box::pin(async { Ok(()) })
    }

    fn files(&self) -> LogFuture<'_, Vec<StoredFile>> {
        let file = |(name, content): (&String, &Bytes)| StoredFile {
            name: name.clone(),
            bytes: content.len() as u64,
        };
        let files = self.files.borrow().iter().map(file).collect();
        Box::pin(async move { Ok(files) })
    }

    fn read_file(&self, name: &str) -> LogFuture<'_, Option<Pieces>> {
        let content = self.files.borrow().get(name).cloned();
        Box::pin(async move { Ok(content.map(Pieces::from)) })
    }

    fn write_file(&self, name: &str, content: Vec<Bytes>) -> LogFuture<'_, ()> {
        self.files
            .borrow_mut()
            .insert(name.to_owned(), content.concat().into());
        Box::pin(async { Ok(()) })
    }

    fn remove_file(&self, name: &str) -> LogFuture<'_, ()> {
        self.files.borrow_mut().remove(name);
        Box::pin(async { Ok(()) })
    }
}
