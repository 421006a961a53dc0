//! The controller at work on core 0: commands in, durable records, images out.
//!
//! Commands are decided one after the other. Those that wait while a write is under way go to disk
//! together, in one durable append. A reply leaves when its records are durable and everybody
//! follows the new image. After a failed append nobody knows what stands in the log, so the
//! controller answers nothing more than that, until the next start has read it. Only want of space is
//! different: nothing was written then, and the next command may find some.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use protocol::messages::{
    AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse,
    CreatePartitionsRequest, CreatePartitionsResponse, CreateTopicsRequest, CreateTopicsResponse,
    DeleteTopicsRequest, DeleteTopicsResponse,
};
use protocol::{ErrorCode, Str, Uuid};
use shards::sync::oneshot;
use shards::{Core, TaskClass};
use tracing::warn;

use super::alter_configs::{AlterConfigs, ConfigOutcome};
use super::draft::Draft;
use super::load::{LoadError, Loaded, load};
use super::log::{MetadataLog, MetadataLogError};
use super::machine::{AutoTopic, Command, ControllerSettings, Machine, Reply, Surroundings};
use super::snapshots::{Next, SnapshotRules, Snapshots};
use super::start::{StartError, draft_start};
use super::update_features::UpdateFeatures;
use crate::metadata::{Image, QUORUM_STATE_FILE, QuorumState, is_only_voter};

/// Commands that may wait; more are refused.
const QUEUE_MAX: usize = 1024;
/// Commands that go to disk in one append.
const COMMANDS_PER_APPEND_MAX: usize = 256;
/// Bytes from which an append takes no further command.
const APPEND_BYTES: usize = 1024 * 1024;

/// Free bytes of the disk under a log directory of this node.
pub type FreeBytes = Rc<dyn Fn(Uuid) -> u64>;
/// Done when everybody follows the image.
pub type PublishFuture = Pin<Box<dyn Future<Output = ()>>>;
type Publish = Rc<dyn Fn(Arc<Image>) -> PublishFuture>;

/// What a controller starts with.
pub struct ControllerOptions {
    pub settings: ControllerSettings,
    /// Content of `bootstrap.checkpoint` one level above the log, if there is one.
    pub old_bootstrap: Option<Bytes>,
    pub snapshots: SnapshotRules,
    pub free_bytes: FreeBytes,
}

/// The controller did not do what it was asked, or cannot say.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ControllerError {
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Log(#[from] MetadataLogError),
    /// Nothing was done; try again later.
    #[error("too many changes of the metadata wait already")]
    Busy,
    /// Nothing was done.
    #[error("the controller stops")]
    Stopping,
    /// An append failed, this one or an earlier one: the records may stand in the log or not.
    #[error("the outcome is not known: {0}")]
    OutcomeUnknown(String),
    /// Nothing was done; an error of ours.
    #[error("the decision was refused by the state it was made for: {0}")]
    Internal(String),
}

impl ControllerError {
    /// The code for clients. Never that of success.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Busy | Self::Stopping => ErrorCode::NotController,
            Self::OutcomeUnknown(_) => ErrorCode::RequestTimedOut,
            Self::Load(_) | Self::Start(_) | Self::Log(_) => ErrorCode::KafkaStorageError,
            Self::Internal(_) => ErrorCode::UnknownServerError,
        }
    }
}

/// What the only voter of a quorum knows about it.
#[derive(Clone, Copy, Debug)]
pub struct QuorumInfo {
    /// Epoch in which this node leads.
    pub epoch: i32,
    /// End of the metadata log, all of which is durable.
    pub end_offset: i64,
    /// Directory of the metadata log; zero in a quorum of static voters.
    pub directory_id: Uuid,
}

type Answer = Result<Reply, ControllerError>;

struct Waiting {
    command: Command,
    answer: oneshot::Sender<Answer>,
}

/// Owner of `__cluster_metadata-0`.
pub struct Controller {
    core: Core,
    log: Rc<dyn MetadataLog>,
    free_bytes: FreeBytes,
    machine: RefCell<Machine>,
    image: RefCell<Arc<Image>>,
    queue: RefCell<VecDeque<Waiting>>,
    /// A task takes commands off the queue.
    working: Cell<bool>,
    stopping: Cell<bool>,
    failure: RefCell<Option<String>>,
    publish: RefCell<Option<Publish>>,
    snapshots: Snapshots,
    skipped_snapshots: Vec<String>,
    mended: Vec<String>,
}

impl Controller {
    /// Reads the log back, begins a new epoch of the quorum and registers this node. On return the
    /// broker is unfenced and leads its partitions; all of it is durable.
    ///
    /// # Errors
    /// The metadata cannot be read or written, or belongs to a quorum of several voters.
    pub async fn start(
        core: Core,
        log: Rc<dyn MetadataLog>,
        options: ControllerOptions,
    ) -> Result<Rc<Self>, ControllerError> {
        let loaded = load(&*log, options.old_bootstrap).await?;
        let node_id = options.settings.node_id;
        let kraft_version = check_voters(&loaded, node_id, options.settings.directory_id)?;
        let epoch = next_epoch(&loaded);
        let state = QuorumState {
            leader_id: Some(node_id),
            leader_epoch: epoch,
            voted_id: None,
            voted_directory_id: Uuid::ZERO,
            static_voters: (kraft_version == 0).then(|| vec![node_id]),
        };
        log.write_file(QUORUM_STATE_FILE, vec![Bytes::from(state.to_json())])
            .await?;
        let settings = Arc::new(options.settings);
        let machine = Machine::new(settings.clone(), epoch, loaded.replay);
        let now_ms = core.wall_clock_ms();
        let mut draft = Draft::new(machine, log.end_offset(), now_ms);
        let mut random = || core.random_u64();
        draft_start(
            &mut draft,
            loaded.bootstrap.as_ref(),
            &settings.node,
            &mut random,
        )?;
        let (batches, machine) = draft.finish();
        let written: u64 = batches.iter().map(|batch| batch.len() as u64).sum();
        log.append(batches, epoch).await?;
        let image = Arc::new(machine.image().clone());
        let snapshots = Snapshots::new(options.snapshots, loaded.log_bytes + written, core.now());
        let controller = Rc::new(Self {
            core,
            log,
            free_bytes: options.free_bytes,
            machine: RefCell::new(machine),
            image: RefCell::new(image),
            queue: RefCell::default(),
            working: Cell::new(false),
            stopping: Cell::new(false),
            failure: RefCell::default(),
            publish: RefCell::default(),
            snapshots,
            skipped_snapshots: loaded.skipped,
            mended: loaded.mended,
        });
        controller.clone().consider_snapshot();
        Ok(controller)
    }

    /// The image of everything that is durable.
    #[must_use]
    pub fn image(&self) -> Arc<Image> {
        self.image.borrow().clone()
    }

    /// Epoch of this incarnation of the broker.
    #[must_use]
    pub fn broker_epoch(&self) -> i64 {
        let node = self.machine.borrow().node_id();
        self.image().broker(node).map_or(-1, |broker| broker.epoch)
    }

    /// Epoch of the quorum in which this node leads.
    #[must_use]
    pub fn quorum_epoch(&self) -> i32 {
        self.machine.borrow().quorum_epoch()
    }

    /// Snapshots that could not be read at the start, with the reason.
    #[must_use]
    pub fn skipped_snapshots(&self) -> &[String] {
        &self.skipped_snapshots
    }

    /// What of the metadata was damaged at the start, and could be made good.
    #[must_use]
    pub fn mended(&self) -> &[String] {
        &self.mended
    }

    /// Why the last snapshot was not written, if it was not.
    #[must_use]
    pub fn snapshot_failure(&self) -> Option<String> {
        self.snapshots.failure()
    }

    /// Who gets every later image, before the replies that it stands behind leave.
    pub fn publish_to(&self, publish: impl Fn(Arc<Image>) -> PublishFuture + 'static) {
        *self.publish.borrow_mut() = Some(Rc::new(publish));
    }

    /// Runs one command.
    ///
    /// # Errors
    /// See [`ControllerError`]; refusals of single topics are in the reply.
    pub async fn submit(self: &Rc<Self>, command: Command) -> Result<Reply, ControllerError> {
        if self.stopping.get() {
            return Err(ControllerError::Stopping);
        }
        self.enqueue(command)?
            .await
            .unwrap_or(Err(ControllerError::Stopping))
    }

    /// CreateTopics.
    ///
    /// # Errors
    /// As [`Self::submit`].
    pub async fn create_topics(
        self: &Rc<Self>,
        request: CreateTopicsRequest,
    ) -> Result<CreateTopicsResponse, ControllerError> {
        match self.submit(Command::CreateTopics(request)).await? {
            Reply::CreateTopics(response) => Ok(response),
            other => Err(unexpected(&other)),
        }
    }

    /// DeleteTopics.
    ///
    /// # Errors
    /// As [`Self::submit`].
    pub async fn delete_topics(
        self: &Rc<Self>,
        request: DeleteTopicsRequest,
        version: i16,
    ) -> Result<DeleteTopicsResponse, ControllerError> {
        match self.submit(Command::DeleteTopics(request, version)).await? {
            Reply::DeleteTopics(response) => Ok(response),
            other => Err(unexpected(&other)),
        }
    }

    /// AlterConfigs and IncrementalAlterConfigs. On return every core goes by the new settings.
    ///
    /// # Errors
    /// As [`Self::submit`].
    pub async fn alter_configs(
        self: &Rc<Self>,
        request: AlterConfigs,
    ) -> Result<Vec<ConfigOutcome>, ControllerError> {
        match self.submit(Command::AlterConfigs(request)).await? {
            Reply::AlterConfigs(outcomes) => Ok(outcomes),
            other => Err(unexpected(&other)),
        }
    }

    /// AlterPartitionReassignments.
    ///
    /// # Errors
    /// As [`Self::submit`].
    pub async fn alter_reassignments(
        self: &Rc<Self>,
        request: AlterPartitionReassignmentsRequest,
    ) -> Result<AlterPartitionReassignmentsResponse, ControllerError> {
        match self.submit(Command::AlterReassignments(request)).await? {
            Reply::AlterReassignments(response) => Ok(response),
            other => Err(unexpected(&other)),
        }
    }

    /// UpdateFeatures: done, or Kafka's code and text.
    ///
    /// # Errors
    /// As [`Self::submit`].
    pub async fn update_features(
        self: &Rc<Self>,
        request: UpdateFeatures,
    ) -> Result<Result<(), (ErrorCode, Str)>, ControllerError> {
        match self.submit(Command::UpdateFeatures(request)).await? {
            Reply::UpdateFeatures(outcome) => Ok(outcome),
            other => Err(unexpected(&other)),
        }
    }

    /// UnregisterBroker: done, or Kafka's code and text.
    ///
    /// # Errors
    /// As [`Self::submit`].
    pub async fn unregister_broker(
        self: &Rc<Self>,
        id: i32,
    ) -> Result<Result<(), (ErrorCode, Str)>, ControllerError> {
        match self.submit(Command::UnregisterBroker(id)).await? {
            Reply::UnregisterBroker(outcome) => Ok(outcome),
            other => Err(unexpected(&other)),
        }
    }

    /// The quorum as it is now.
    #[must_use]
    pub fn quorum(&self) -> QuorumInfo {
        let machine = self.machine.borrow();
        QuorumInfo {
            epoch: machine.quorum_epoch(),
            end_offset: self.log.end_offset(),
            directory_id: match machine.replay().quorum().kraft_version {
                0 => Uuid::ZERO,
                _ => machine.settings.directory_id,
            },
        }
    }

    /// CreatePartitions.
    ///
    /// # Errors
    /// As [`Self::submit`].
    pub async fn create_partitions(
        self: &Rc<Self>,
        request: CreatePartitionsRequest,
    ) -> Result<CreatePartitionsResponse, ControllerError> {
        match self.submit(Command::CreatePartitions(request)).await? {
            Reply::CreatePartitions(response) => Ok(response),
            other => Err(unexpected(&other)),
        }
    }

    /// Creates topics that somebody asked for, unless they exist. Returns those that could not be
    /// created, with the reason.
    pub async fn auto_create(self: &Rc<Self>, topics: Vec<AutoTopic>) -> Vec<(Str, ErrorCode)> {
        let names: Vec<Str> = topics.iter().map(|topic| topic.name.clone()).collect();
        match self.submit(Command::AutoCreateTopics(topics)).await {
            Ok(Reply::AutoCreateTopics(mut results)) => {
                results.retain(|(_, code)| *code != ErrorCode::None);
                results
            }
            Ok(other) => failed(names, unexpected(&other).code()),
            Err(error) => failed(names, error.code()),
        }
    }

    /// First id of the next block of [`super::PRODUCER_ID_BLOCK`] producer ids.
    ///
    /// # Errors
    /// As [`Self::submit`]; all ids used up.
    pub async fn producer_ids(self: &Rc<Self>) -> Result<i64, ControllerError> {
        match self.submit(Command::AllocateProducerIds).await? {
            Reply::ProducerIds(Some(first)) => Ok(first),
            Reply::ProducerIds(None) => Err(ControllerError::Internal(
                "all producer ids are used up".to_owned(),
            )),
            other => Err(unexpected(&other)),
        }
    }

    /// Ends: no further command, what waits is done, then the broker is fenced, so that the next
    /// incarnation may register at once. The log itself is closed by its owner.
    ///
    /// # Errors
    /// The last records could not be written.
    pub async fn close(self: &Rc<Self>) -> Result<(), ControllerError> {
        self.stopping.set(true);
        let done = self.enqueue(Command::Shutdown)?.await;
        done.unwrap_or(Err(ControllerError::Stopping)).map(drop)
    }

    fn enqueue(
        self: &Rc<Self>,
        command: Command,
    ) -> Result<oneshot::Receiver<Answer>, ControllerError> {
        if let Some(why) = &*self.failure.borrow() {
            return Err(ControllerError::OutcomeUnknown(why.clone()));
        }
        if self.queue.borrow().len() >= QUEUE_MAX {
            return Err(ControllerError::Busy);
        }
        let (answer, answered) = oneshot::oneshot();
        self.queue
            .borrow_mut()
            .push_back(Waiting { command, answer });
        if !self.working.replace(true) {
            let work = self.clone().work();
            drop(self.core.spawn(TaskClass::Background, "controller", work));
        }
        Ok(answered)
    }

    async fn work(self: Rc<Self>) {
        while !self.queue.borrow().is_empty() {
            self.turn().await;
            self.clone().consider_snapshot();
        }
        self.working.set(false);
    }

    /// Decides about waiting commands, appends their records, publishes, answers.
    async fn turn(&self) {
        let machine = self.machine.borrow().clone();
        let before = self.log.end_offset();
        let mut draft = Draft::new(machine, before, self.core.wall_clock_ms());
        let mut answers = Vec::new();
        while answers.len() < COMMANDS_PER_APPEND_MAX && draft.len() < APPEND_BYTES {
            let Some(waiting) = self.queue.borrow_mut().pop_front() else {
                break;
            };
            answers.push((self.decide(&mut draft, &waiting.command), waiting.answer));
        }
        let changed = draft.next_offset() > before;
        let (batches, machine) = draft.finish();
        let done = match changed {
            true => self.commit(batches, machine).await,
            false => Ok(()),
        };
        if let Err(full @ MetadataLogError::Full(_)) = done {
            warn!(%full, "changes of the metadata are refused");
            for (_, answer) in answers {
                drop(answer.send(Err(full.clone().into())));
            }
            return;
        }
        if let Err(error) = done {
            let why = error.to_string();
            *self.failure.borrow_mut() = Some(why.clone());
            let unknown = || ControllerError::OutcomeUnknown(why.clone());
            let rest = std::mem::take(&mut *self.queue.borrow_mut());
            let rest = rest.into_iter().map(|waiting| waiting.answer);
            for answer in answers.into_iter().map(|(_, answer)| answer).chain(rest) {
                // Whoever asked may have gone.
                drop(answer.send(Err(unknown())));
            }
            return;
        }
        for (answer, to) in answers {
            drop(to.send(answer));
        }
    }

    fn decide(&self, draft: &mut Draft, command: &Command) -> Answer {
        let mut random = || self.core.random_u64();
        let mut around = Surroundings {
            random: &mut random,
            free_bytes: &*self.free_bytes,
        };
        let decision = draft.machine().decide(command, &mut around);
        draft
            .add(decision.records)
            .and_then(|()| draft.add_control(decision.control))
            .map_err(|error| ControllerError::Internal(error.to_string()))?;
        Ok(decision.reply)
    }

    async fn commit(&self, batches: Vec<Bytes>, machine: Machine) -> Result<(), MetadataLogError> {
        let written: u64 = batches.iter().map(|batch| batch.len() as u64).sum();
        self.log.append(batches, machine.quorum_epoch()).await?;
        let image = Arc::new(machine.image().clone());
        *self.machine.borrow_mut() = machine;
        *self.image.borrow_mut() = image.clone();
        self.snapshots.add_bytes(written);
        let publish = self.publish.borrow().clone();
        if let Some(publish) = publish {
            publish(image).await;
        }
        Ok(())
    }

    /// Writes a snapshot or sets a timer for it, as the rules say. One of each runs at a time.
    fn consider_snapshot(self: Rc<Self>) {
        if self.stopping.get() || self.failure.borrow().is_some() {
            return;
        }
        let core = self.core.clone();
        let name = "metadata snapshot";
        match self.snapshots.next(core.now()) {
            Next::Nothing => {}
            Next::Write => drop(core.spawn(TaskClass::Background, name, self.write_snapshot())),
            Next::Wait(span) => {
                let ask_again = async move {
                    self.core.sleep(span).await;
                    self.snapshots.waited();
                    self.consider_snapshot();
                };
                drop(core.spawn(TaskClass::Background, name, ask_again));
            }
        }
    }

    async fn write_snapshot(self: Rc<Self>) {
        let image = self.image();
        let offset = image.provenance.offset;
        let quorum = self.machine.borrow().replay().quorum().clone();
        self.snapshots
            .write(&self.core, &*self.log, image, quorum)
            .await;
        if let Some(why) = self.snapshots.failure() {
            warn!(%why, offset, "a metadata snapshot could not be written; trying again later");
        }
        self.snapshots.written(self.core.now());
        self.consider_snapshot();
    }
}

fn failed(names: Vec<Str>, code: ErrorCode) -> Vec<(Str, ErrorCode)> {
    names.into_iter().map(|name| (name, code)).collect()
}

fn unexpected(reply: &Reply) -> ControllerError {
    ControllerError::Internal(format!("a reply to another command: {reply:?}"))
}

/// A new epoch, above all that the log and `quorum-state` know.
fn next_epoch(loaded: &Loaded) -> i32 {
    let in_log = loaded.replay.latest().provenance.epoch;
    let in_file = loaded
        .quorum_state
        .as_ref()
        .map_or(0, |state| state.leader_epoch);
    in_log.max(in_file).max(0) + 1
}

/// This node must be the only voter. Returns `kraft.version`.
fn check_voters(loaded: &Loaded, node_id: i32, directory: Uuid) -> Result<i16, LoadError> {
    let in_log = loaded.replay.quorum();
    let in_bootstrap = loaded
        .bootstrap
        .as_ref()
        .map(|checkpoint| &checkpoint.quorum);
    let quorum = if in_log.voters.is_some() {
        Some(in_log)
    } else {
        in_bootstrap
    };
    if let Some(voters) = quorum.and_then(|quorum| quorum.voters.as_ref()) {
        if is_only_voter(voters, node_id, directory) {
            return Ok(quorum.map_or(0, |quorum| quorum.kraft_version));
        }
        let name = |id: i32, directory: Uuid| format!("{id}-{directory}");
        let names: Vec<String> = voters
            .voters
            .iter()
            .map(|it| name(it.voter_id, it.voter_directory_id))
            .collect();
        return Err(LoadError::OtherVoters {
            voters: names.join(", "),
        });
    }
    let voters = loaded
        .quorum_state
        .as_ref()
        .and_then(|state| state.static_voters.as_ref());
    match voters {
        Some(voters) if !voters.is_empty() && *voters != [node_id] => {
            let names: Vec<String> = voters.iter().map(ToString::to_string).collect();
            Err(LoadError::OtherVoters {
                voters: names.join(", "),
            })
        }
        _ => Ok(0),
    }
}
