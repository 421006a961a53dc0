//! Following the metadata: partitions that appear are opened on their core, those that go are
//! deleted, and only then do requests see the new cluster.
//!
//! A change is shown to no core before every core is ready for it. So whoever is told that a topic
//! exists can use it at once, over any connection.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use futures_util::future::join_all;
use protocol::{Array, Pieces, Str, Uuid};
use shards::io::dir;
use shards::{BackendKind, CoreId, TaskClass};
use storage::{Shutdown, StorageError, TopicPartition};
use tracing::{info, warn};

use super::doors;
use super::hosted::{self, OpenJob};
use super::inventory::{self, LogDirectory};
use crate::config::{BrokerConfig, DynamicSettings, TopicConfig};
use crate::controller::{Command, Controller};
use crate::metadata::partition::directory;
use crate::metadata::{Image, PLACEMENT_FILE, Partition, Placement, changed_partitions};
use crate::replication::{BrokerLimits, PartitionKey, PartitionSettings};
use crate::shard::{ClusterView, Shard};

/// Bytes of the placement file that are read back; 100,000 partitions take a tenth.
const PLACEMENT_BYTES_MAX: usize = 64 << 20;
/// What one compressed batch may unpack to while it is checked.
const DECOMPRESSED_BATCH_MAX: usize = 1 << 30;
/// Idempotent producers remembered in one partition.
const PRODUCERS_MAX: usize = 100_000;

/// Lives on core 0 and keeps all cores in step with the metadata.
pub struct Hosting {
    shard: Rc<Shard>,
    directories: Vec<LogDirectory>,
    /// Directories that failed while the broker ran.
    failed: RefCell<BTreeSet<Uuid>>,
    /// The configuration with what the metadata sets.
    config: RefCell<Arc<BrokerConfig>>,
    /// What the metadata set when that was last looked at.
    dynamic: RefCell<DynamicSettings>,
    placement: RefCell<Placement>,
    placement_path: PathBuf,
    placement_dirty: Cell<bool>,
    backend: BackendKind,
}

/// The work that a change means for one core.
#[derive(Default)]
struct CoreWork {
    open: Array<OpenJob>,
    /// Partitions whose log directory is not there.
    offline: Array<(PartitionKey, StorageError)>,
    delete: Array<PartitionKey>,
    lead: Array<(PartitionKey, i32)>,
    settings: Array<(PartitionKey, Arc<PartitionSettings>)>,
}

impl Hosting {
    /// Reads the placement of the last run, if there is a sound one.
    pub async fn new(
        shard: Rc<Shard>,
        directories: Vec<LogDirectory>,
        backend: BackendKind,
    ) -> Self {
        let path = shard.config.storage.metadata_log_dir.join(PLACEMENT_FILE);
        let stored = dir::read_pieces(&shard.core, &path, PLACEMENT_BYTES_MAX).await;
        let placement = match stored.map(|file| Placement::read(&mut Pieces::from(file))) {
            Ok(Ok(placement)) => placement.for_cores(shard.core_count()),
            Ok(Err(problem)) => {
                warn!(file = %path.display(), %problem, "placing all partitions anew");
                Placement::new(shard.core_count())
            }
            Err(_) => Placement::new(shard.core_count()),
        };
        Hosting {
            config: RefCell::new(shard.config.clone()),
            dynamic: RefCell::default(),
            backend,
            shard,
            directories,
            failed: RefCell::default(),
            placement: RefCell::new(placement),
            placement_path: path,
            placement_dirty: Cell::new(false),
        }
    }

    /// The log directories that work.
    pub fn directories(&self) -> impl Iterator<Item = &LogDirectory> {
        let works = |directory: &&LogDirectory| !self.failed.borrow().contains(&directory.id);
        self.directories.iter().filter(works)
    }

    /// The id of a log directory, while it works.
    pub fn online(&self, path: &Path) -> Option<Uuid> {
        let found = self.directories().find(|directory| directory.path == path);
        found.map(|directory| directory.id)
    }

    /// A log directory has failed: nothing is placed there any more.
    pub fn set_failed(&self, directory: Uuid) {
        self.failed.borrow_mut().insert(directory);
    }

    /// Opens every partition of the first image, on all cores at once. Returns how many there are,
    /// and how many are offline.
    pub async fn open_first(
        &self,
        image: Arc<Image>,
        held: BTreeMap<PartitionKey, usize>,
    ) -> (usize, usize) {
        self.follow_config(&image);
        let node = self.shard.config.node_id;
        if self.placement.borrow_mut().reconcile(&image, node) {
            self.placement_dirty.set(true);
        }
        let mut work: BTreeMap<CoreId, CoreWork> = BTreeMap::new();
        let (mut count, mut gone) = (0, Array::new());
        for topic in image.topics() {
            let settings = Arc::new(self.settings_of(&image, &topic.name));
            for (index, partition) in topic.partitions.iter() {
                let key = PartitionKey {
                    topic_id: topic.id,
                    partition: index,
                };
                let Some(core) = self.placement.borrow().core_of(topic.id, index) else {
                    continue;
                };
                count += 1;
                let work = work.entry(CoreId(core)).or_default();
                let holder = held.get(&key).map(|index| &self.directories[*index]);
                match holder.map_or_else(|| self.directory(partition), Ok) {
                    Ok(directory) => {
                        if holder.is_none() && directory.clean {
                            gone.push(TopicPartition::new(&*topic.name, index));
                        }
                        let mut job =
                            open_job(key, &topic.name, partition, settings.clone(), directory);
                        directory.place(&mut job);
                        work.open.push(job);
                    }
                    Err(missing) => work.offline.push((key, missing)),
                }
            }
        }
        inventory::tell_gone(&gone);
        self.shard.start.expect(count, self.shard.core.now());
        let opened = work.into_iter().map(|(core, work)| {
            let open = move |shard: &Rc<Shard>| {
                let offline = work.offline.len();
                set_offline(shard, work.offline);
                let opened = hosted::open_all(shard.clone(), work.open);
                async move { offline + opened.await }
            };
            self.shard.mesh().call(core, TaskClass::Background, open)
        });
        let offline = join_all(opened).await.into_iter().sum();
        self.show(image).await;
        (count, offline)
    }

    /// Follows a newer image; returns when every core serves it.
    pub async fn follow(&self, image: Arc<Image>) {
        let old = self.shard.image();
        let every_topic = self.follow_config(&image);
        let node = self.shard.config.node_id;
        let changes = changed_partitions(&old, &image);
        let owners_before = self.placement.borrow().clone();
        if self.placement.borrow_mut().follow(&changes, node) {
            self.placement_dirty.set(true);
        }
        let mut work: BTreeMap<CoreId, CoreWork> = BTreeMap::new();
        let mut settings: BTreeMap<Uuid, Arc<PartitionSettings>> = BTreeMap::new();
        let mut gone: BTreeMap<Uuid, Str> = BTreeMap::new();
        for change in &changes {
            let key = PartitionKey {
                topic_id: change.topic,
                partition: change.index,
            };
            let before = owners_before
                .core_of(change.topic, change.index)
                .map(CoreId);
            let after = self
                .placement
                .borrow()
                .core_of(change.topic, change.index)
                .map(CoreId);
            match (change.new, before, after) {
                (Some(partition), Some(owner), Some(_)) if partition.leader == node => {
                    work.entry(owner)
                        .or_default()
                        .lead
                        .push((key, partition.leader_epoch));
                }
                (Some(partition), None, Some(owner)) => {
                    let shared = settings
                        .entry(change.topic)
                        .or_insert_with(|| Arc::new(self.settings_of(&image, change.name)));
                    let work = work.entry(owner).or_default();
                    match self.directory(partition) {
                        Ok(directory) => {
                            let settings = shared.clone();
                            let job = open_job(key, change.name, partition, settings, directory);
                            work.open.push(job);
                        }
                        Err(missing) => work.offline.push((key, missing)),
                    }
                }
                // Without a leader, since its directory failed: the log is out of service already.
                (Some(_), Some(_), Some(_)) => {}
                (_, Some(owner), None) => work.entry(owner).or_default().delete.push(key),
                (_, None, None) | (None, _, Some(_)) => {}
            }
            if image.topic(change.topic).is_none() {
                gone.insert(change.topic, change.name.clone());
            }
        }
        self.add_new_settings(&mut work, &old, &image, every_topic);
        let prepared = work.into_iter().map(|(core, work)| {
            self.shard
                .mesh()
                .call(core, TaskClass::Background, move |shard: &Rc<Shard>| {
                    prepare(shard.clone(), work)
                })
        });
        join_all(prepared).await;
        self.show(image).await;
        if !gone.is_empty() {
            self.forget_offsets(gone.into_iter().collect());
        }
    }

    /// The directory that the metadata names for this node's replica, or the first where it names none.
    /// One that is not there may come back with the partition's records: no other takes its place.
    fn directory(&self, partition: &Partition) -> Result<&LogDirectory, StorageError> {
        let assigned = partition
            .directory_of(self.shard.config.node_id)
            .unwrap_or(directory::UNASSIGNED);
        let open = assigned == directory::UNASSIGNED || assigned == directory::MIGRATING;
        let mut online = self.directories();
        let found = online.find(|directory| open || directory.id == assigned);
        found.ok_or_else(|| StorageError::Offline {
            path: PathBuf::from(format!("the log directory with the id {assigned}")),
            reason: "it failed, or `log.dirs` does not name it".to_owned(),
        })
    }

    /// Tells the metadata in which directories partitions really lie, where it does not know: they come
    /// from a broker without directory ids, or were moved while none ran.
    pub async fn assign_directories(&self, controller: &Rc<Controller>) {
        let asked = self.shard.cores().map(|core| {
            self.shard
                .mesh()
                .call(core, TaskClass::Background, |shard: &Rc<Shard>| {
                    std::future::ready(hosted::where_they_lie(shard))
                })
        });
        let image = self.shard.image();
        let node = self.shard.config.node_id;
        let elsewhere = |(key, path): (PartitionKey, PathBuf)| {
            let lies = self.online(&path)?;
            let partition = image.partition(key.topic_id, key.partition)?;
            let said = partition.directory_of(node)?;
            (said != lies).then_some((key.topic_id, key.partition, lies))
        };
        let found = join_all(asked).await.into_iter().flatten();
        let assignments: Array<_> = found.filter_map(elsewhere).collect();
        if assignments.is_empty() {
            return;
        }
        info!(
            partitions = assignments.len(),
            "telling the metadata in which directories partitions lie"
        );
        if let Err(problem) = controller
            .submit(Command::AssignDirectories(assignments))
            .await
        {
            warn!(%problem, "the metadata does not know in which directories some partitions lie");
        }
    }

    fn settings_of(&self, image: &Image, topic: &str) -> PartitionSettings {
        let config = self.config.borrow();
        let topic = topic_config(&config, image, topic);
        PartitionSettings::new(&topic, broker_limits(&config))
    }

    /// Takes over what the metadata sets for this broker; says whether anything changed, and with it
    /// what topics have by default.
    fn follow_config(&self, image: &Image) -> bool {
        let dynamic = image.configs.dynamic_settings(self.shard.config.node_id);
        if *self.dynamic.borrow() == dynamic {
            return false;
        }
        self.dynamic.replace(dynamic.clone());
        match self.shard.config.with_dynamic(dynamic) {
            Ok(config) => {
                doors::follow(&self.shard, &config, self.backend);
                *self.config.borrow_mut() = Arc::new(config);
            }
            Err(problem) => {
                warn!(%problem, "settings in the metadata do not fit together; keeping those from before");
            }
        }
        true
    }

    /// Partitions that stay, of topics whose settings changed.
    fn add_new_settings(
        &self,
        work: &mut BTreeMap<CoreId, CoreWork>,
        old: &Image,
        image: &Image,
        every_topic: bool,
    ) {
        let topics: Vec<_> = match every_topic {
            true => image.topics().collect(),
            false => image
                .configs
                .changed_topics(&old.configs)
                .filter_map(|name| image.topic_by_name(name))
                .collect(),
        };
        for topic in topics {
            let settings = Arc::new(self.settings_of(image, &topic.name));
            for (index, _) in topic.partitions.iter() {
                let owner = self.placement.borrow().core_of(topic.id, index);
                if let Some(owner) = owner {
                    let key = PartitionKey {
                        topic_id: topic.id,
                        partition: index,
                    };
                    let work = work.entry(CoreId(owner)).or_default();
                    work.settings.push((key, settings.clone()));
                }
            }
        }
    }

    /// Lets every core see the image and the placement that belongs to it.
    async fn show(&self, image: Arc<Image>) {
        let placement = Arc::new(self.placement.borrow().clone());
        let view = Arc::new(ClusterView {
            image,
            config: self.config.borrow().clone(),
            placement,
        });
        let shown = self.shard.cores().map(|core| {
            let view = view.clone();
            self.shard
                .mesh()
                .call(core, TaskClass::Network, move |shard: &Rc<Shard>| {
                    shard.show(view);
                    std::future::ready(())
                })
        });
        join_all(shown).await;
    }

    /// Offsets of topics that are gone go with them.
    fn forget_offsets(&self, topics: Vec<(Uuid, Str)>) {
        info!(topics = topics.len(), "topics deleted");
        for core in self.shard.cores() {
            let topics = topics.clone();
            self.shard
                .mesh()
                .post(core, TaskClass::Background, move |shard: &Rc<Shard>| {
                    shard.groups.topics_deleted(&topics);
                    std::future::ready(())
                });
        }
    }

    /// Writes the placement if it changed. Losing it costs balance, not data.
    pub async fn save_placement(&self) {
        if !self.placement_dirty.replace(false) {
            return;
        }
        let encoded = self.placement.borrow().encode();
        let written = match encoded {
            Ok(pieces) => dir::write_pieces_atomic(&self.shard.core, &self.placement_path, pieces)
                .await
                .map_err(|error| error.to_string()),
            Err(problem) => Err(problem.to_string()),
        };
        if let Err(problem) = written {
            self.placement_dirty.set(true);
            warn!(file = %self.placement_path.display(), %problem, "cannot save the placement");
        }
    }
}

/// A partition to open in a directory in which it is new.
fn open_job(
    key: PartitionKey,
    topic: &Str,
    partition: &Partition,
    settings: Arc<PartitionSettings>,
    directory: &LogDirectory,
) -> OpenJob {
    OpenJob {
        key,
        topic: topic.clone(),
        log_directory: directory.path.clone(),
        leader_epoch: partition.leader_epoch,
        replica_count: u32::try_from(partition.replicas.len()).unwrap_or(u32::MAX),
        settings,
        topic_id_seen: false,
        shutdown: Shutdown::Clean,
        log_start_offset: 0,
    }
}

/// Does the work of one change on one core.
async fn prepare(shard: Rc<Shard>, work: CoreWork) {
    for (key, leader_epoch) in work.lead {
        if let Some(partition) = shard.replicas.get(&key) {
            partition.lead(leader_epoch);
        }
    }
    set_offline(&shard, work.offline);
    for (key, settings) in work.settings {
        if let Some(partition) = shard.replicas.get(&key) {
            partition.set_settings(Rc::new(PartitionSettings::clone(&settings)));
        }
    }
    hosted::delete_all(shard.clone(), work.delete).await;
    hosted::open_all(shard, work.open).await;
}

fn set_offline(shard: &Shard, partitions: Array<(PartitionKey, StorageError)>) {
    for (key, missing) in partitions {
        shard.replicas.set_offline(key, missing, None);
    }
}

/// The configuration of a topic: its own settings over the broker's.
pub fn topic_config(config: &BrokerConfig, image: &Image, topic: &str) -> TopicConfig {
    let overrides = match image.configs.topic(topic) {
        Some(values) => values
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()))
            .collect(),
        None => return config.topic_defaults.clone(),
    };
    TopicConfig::new(&config.settings, &overrides)
}

fn broker_limits(config: &BrokerConfig) -> BrokerLimits {
    let expiration = config.producer_ids.expiration.as_millis();
    BrokerLimits {
        producer_id_expiration_ms: i64::try_from(expiration).unwrap_or(i64::MAX),
        max_producers: PRODUCERS_MAX,
        max_decompressed: DECOMPRESSED_BATCH_MAX,
    }
}
