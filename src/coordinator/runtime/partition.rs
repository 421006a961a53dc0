//! The shell of one partition.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::future::Future;
use std::rc::Rc;

use planted::Bug;
use protocol::records::{Codec, Compression};
use protocol::{ErrorCode, Str, Uuid};
use shards::sync::{Event as Signal, oneshot};
use shards::time::Instant;
use shards::{Core, TaskClass};

use crate::config::{GroupsConfig, OffsetsConfig};

use super::super::event::{
    Effect, Event, Request, RequestContext, RequestToken, Response, Sequence,
};
use super::super::machine::Coordinator;
use super::super::overview::GroupsOverview;
use super::super::record::Record;
use super::super::refusal::refuse;
use super::super::settings::Settings;
use super::log::{CoordinatorLog, LoadError, build_batch, encoded_size, replay_chunk};
use super::timers::Timers;

/// Who asks, as far as the coordinator cares.
#[derive(Clone, Debug)]
pub struct Caller {
    pub api_version: i16,
    pub client_id: Str,
    /// A slash and the address, as Java prints it: `/127.0.0.1`.
    pub client_host: Str,
}

/// What a partition's shell is started with.
#[derive(Clone, Debug)]
pub struct PartitionOptions {
    pub settings: Settings,
    /// `offsets.load.buffer.size`: bytes read at a time while loading.
    pub load_buffer_bytes: usize,
    /// `offsets.topic.compression.codec`
    pub codec: Codec,
}

impl PartitionOptions {
    /// The options that the broker was configured with.
    pub fn from_config(groups: &GroupsConfig, offsets: &OffsetsConfig) -> Self {
        let codec = u8::try_from(offsets.compression_codec).unwrap_or(0);
        PartitionOptions {
            settings: Settings::from_config(groups, offsets),
            load_buffer_bytes: usize::try_from(offsets.load_buffer_bytes).unwrap_or(usize::MAX),
            codec: Compression::from_id(codec).map_or(Codec::NONE, Codec::from),
        }
    }
}

impl Default for PartitionOptions {
    fn default() -> Self {
        PartitionOptions {
            settings: Settings::default(),
            load_buffer_bytes: 5 << 20,
            codec: Codec::NONE,
        }
    }
}

/// Where a partition's coordinator stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    Loading,
    Active,
    /// The log could not be read; requests are sent to look for another coordinator.
    Failed(LoadError),
    Stopped,
}

/// The coordinator of one partition, running. Clones share it; it stays on its core.
#[derive(Clone)]
pub struct GroupPartition(Rc<Shell>);

struct Shell {
    core: Core,
    log: Rc<dyn CoordinatorLog>,
    codec: Codec,
    status: RefCell<Status>,
    status_changed: Signal,
    machine: RefCell<Option<Coordinator>>,
    /// Topics that went away while the partition was loading.
    deleted_meanwhile: RefCell<Vec<(Uuid, Str)>>,
    /// Requests that are not answered yet. Connections bound their number: none has more than
    /// one such request under way.
    waiting: RefCell<BTreeMap<RequestToken, oneshot::Sender<Response>>>,
    next_token: Cell<u64>,
    appends: RefCell<VecDeque<PendingAppend>>,
    appends_added: Signal,
    timers: RefCell<Timers>,
    timers_changed: Signal,
}

struct PendingAppend {
    sequence: Sequence,
    records: Vec<Record>,
}

impl GroupPartition {
    /// Starts to load the partition; call it when this broker becomes its leader.
    pub fn start(core: &Core, log: Rc<dyn CoordinatorLog>, options: PartitionOptions) -> Self {
        let shell = Rc::new(Shell {
            core: core.clone(),
            log,
            codec: options.codec,
            status: RefCell::new(Status::Loading),
            status_changed: Signal::new(),
            machine: RefCell::new(None),
            deleted_meanwhile: RefCell::default(),
            waiting: RefCell::default(),
            next_token: Cell::new(0),
            appends: RefCell::default(),
            appends_added: Signal::new(),
            timers: RefCell::default(),
            timers_changed: Signal::new(),
        });
        if shell.log.start_offset() >= shell.log.end_offset() {
            // Nothing to load: the first group of a new broker does not have to come back.
            shell.activate(Coordinator::new(options.settings.clone()));
        }
        let task = Rc::clone(&shell);
        let run = async move { task.run(options).await };
        drop(core.spawn(TaskClass::Network, "group coordinator", run));
        GroupPartition(shell)
    }

    pub fn status(&self) -> Status {
        self.0.status.borrow().clone()
    }

    /// Waits for the end of loading.
    ///
    /// # Errors
    /// Why it could not be loaded.
    pub async fn loaded(&self) -> Result<(), LoadError> {
        loop {
            let changed = self.0.status_changed.wait();
            match self.status() {
                Status::Loading => changed.await,
                Status::Active => return Ok(()),
                Status::Failed(error) => return Err(error),
                Status::Stopped => return Err(LoadError::Stopped),
            }
        }
    }

    /// Hands a request to the coordinator, at this call; the answer may take as long as a
    /// rebalance. Dropping the future forgets the answer, not the request.
    pub fn request(
        &self,
        caller: Caller,
        request: Request,
    ) -> impl Future<Output = Response> + use<> {
        let outcome = self.0.submit(caller, request);
        async move {
            match outcome {
                Ok((answer, when_dropped)) => answer.await.unwrap_or(when_dropped),
                Err(refused) => *refused,
            }
        }
    }

    /// Topics are gone from the metadata: id and name.
    pub fn topics_deleted(&self, topics: &[(Uuid, Str)]) {
        if self.status() == Status::Loading {
            let mut meanwhile = self.0.deleted_meanwhile.borrow_mut();
            meanwhile.extend_from_slice(topics);
        } else {
            self.0.dispatch(Event::TopicsDeleted(topics.to_vec()));
        }
    }

    /// New settings, from the next request on.
    pub fn configure(&self, settings: Settings) {
        if let Some(machine) = self.0.machine.borrow_mut().as_mut() {
            machine.configure(settings);
        }
    }

    /// This broker does not lead the partition any more, or stops: everybody who waits is
    /// answered NOT_COORDINATOR, and so is whoever comes later.
    pub fn stop(&self) {
        self.0.stop();
    }

    /// Adds its groups to what is told of them.
    pub(in super::super) fn look_at_groups(&self, overview: &mut GroupsOverview) {
        if let Some(machine) = self.0.machine.borrow().as_ref() {
            machine.look_at_groups(overview);
        }
    }

    /// Timers that run; for metrics.
    pub fn timer_count(&self) -> usize {
        self.0.timers.borrow().len()
    }
}

impl fmt::Debug for GroupPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupPartition")
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}

/// The channel of the answer, and the answer if the channel breaks.
type Submitted = (oneshot::Receiver<Response>, Response);

impl Shell {
    fn submit(&self, caller: Caller, request: Request) -> Result<Submitted, Box<Response>> {
        let error = match &*self.status.borrow() {
            Status::Active => None,
            Status::Loading => Some(ErrorCode::CoordinatorLoadInProgress),
            Status::Failed(_) | Status::Stopped => Some(ErrorCode::NotCoordinator),
        };
        if let Some(error) = error {
            return Err(Box::new(refuse(&request, error)));
        }
        let when_dropped = refuse(&request, ErrorCode::NotCoordinator);
        let token = RequestToken(self.next_token.get());
        self.next_token.set(token.0 + 1);
        let (sender, receiver) = oneshot::oneshot();
        self.waiting.borrow_mut().insert(token, sender);
        let context = RequestContext {
            token,
            api_version: caller.api_version,
            client_id: caller.client_id,
            client_host: caller.client_host,
            random: self.random(),
        };
        self.dispatch(Event::Request(context, Box::new(request)));
        Ok((receiver, when_dropped))
    }

    fn random(&self) -> [u8; 16] {
        self.core.random_u128().to_be_bytes()
    }

    fn dispatch(&self, event: Event) {
        let now_ms = self.core.wall_clock_ms();
        let effects = match self.machine.borrow_mut().as_mut() {
            Some(machine) => machine.handle(now_ms, event),
            None => return,
        };
        self.perform(effects);
    }

    fn perform(&self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Append { sequence, records } => {
                    self.appends
                        .borrow_mut()
                        .push_back(PendingAppend { sequence, records });
                    self.appends_added.notify_all();
                }
                Effect::Reply { token, response } => {
                    let sender = self.waiting.borrow_mut().remove(&token);
                    if let Some(sender) = sender {
                        // Whoever asked may have gone away; then nobody needs the answer.
                        let _ = sender.send(*response);
                    }
                }
                Effect::SetTimer { key, after } => {
                    let deadline = self.core.now() + after;
                    let is_next = self.timers.borrow_mut().set(key, deadline);
                    if is_next {
                        self.timers_changed.notify_all();
                    }
                }
                Effect::CancelTimer(key) => self.timers.borrow_mut().cancel(&key),
            }
        }
    }

    fn is_stopped(&self) -> bool {
        *self.status.borrow() == Status::Stopped
    }

    fn set_status(&self, status: Status) {
        *self.status.borrow_mut() = status;
        self.status_changed.notify_all();
    }

    fn stop(&self) {
        if self.is_stopped() {
            return;
        }
        self.set_status(Status::Stopped);
        let machine = self.machine.borrow_mut().take();
        if let Some(machine) = machine {
            self.perform(machine.unload(self.core.wall_clock_ms()));
        }
        self.appends.borrow_mut().clear();
        self.waiting.borrow_mut().clear();
        *self.timers.borrow_mut() = Timers::default();
        self.appends_added.notify_all();
        self.timers_changed.notify_all();
    }

    /// Loads if need be, then serves appends, and timers beside them, until it is stopped.
    async fn run(self: Rc<Self>, options: PartitionOptions) {
        if *self.status.borrow() == Status::Loading {
            match self.load(options).await {
                Ok(machine) => self.activate(machine),
                Err(LoadError::Stopped) => return,
                Err(error) => return self.set_status(Status::Failed(error)),
            }
        }
        let timers = Rc::clone(&self);
        let run_timers = async move { timers.run_timers().await };
        let class = TaskClass::Network;
        drop(
            self.core
                .spawn(class, "group coordinator timers", run_timers),
        );
        self.run_appends().await;
    }

    fn activate(&self, mut machine: Coordinator) {
        let effects = machine.loaded(self.core.wall_clock_ms());
        *self.machine.borrow_mut() = Some(machine);
        self.perform(effects);
        self.set_status(Status::Active);
        let deleted = self.deleted_meanwhile.take();
        if !deleted.is_empty() {
            self.dispatch(Event::TopicsDeleted(deleted));
        }
    }

    async fn load(&self, options: PartitionOptions) -> Result<Coordinator, LoadError> {
        let mut machine = Coordinator::new(options.settings);
        let mut offset = self.log.start_offset();
        while offset < self.log.end_offset() {
            let chunk = self.log.read(offset, options.load_buffer_bytes).await;
            if self.is_stopped() {
                return Err(LoadError::Stopped);
            }
            let chunk = chunk.map_err(|error| LoadError::Read { offset, error })?;
            let next = replay_chunk(chunk, offset, |at, record| machine.replay(at, record))?;
            if next <= offset {
                // Nothing more to read, though the end is said to be further on.
                break;
            }
            offset = next;
            self.core.yield_now().await;
        }
        if self.is_stopped() {
            Err(LoadError::Stopped)
        } else {
            Ok(machine)
        }
    }

    async fn run_timers(&self) {
        while !self.is_stopped() {
            let changed = self.timers_changed.wait();
            let now = self.core.now();
            let expired = self.timers.borrow_mut().expired(now);
            match expired {
                Some(key) => self.dispatch(Event::Timer(key)),
                None => self.sleep_until_next(now, changed).await,
            }
        }
    }

    async fn sleep_until_next(&self, now: Instant, changed: impl Future<Output = ()>) {
        let next = self.timers.borrow().next();
        match next {
            None => changed.await,
            Some(next) => {
                let span = next.saturating_duration_since(now);
                // Either way there is something to look at.
                let _ = self.core.timeout(span, changed).await;
            }
        }
    }

    async fn run_appends(&self) {
        while !self.is_stopped() {
            let added = self.appends_added.wait();
            let batch = self.take_batch();
            if batch.is_empty() {
                added.await;
                continue;
            }
            if planted::here(Bug::CommitBeforeWrite) {
                self.append_late(batch).await;
                continue;
            }
            let outcome = self.append(&batch).await;
            self.report(batch, outcome);
        }
    }

    /// The appends that go out together: as many as fit a batch, at least one.
    fn take_batch(&self) -> Vec<PendingAppend> {
        let limit = self.log.max_batch_bytes();
        let mut queue = self.appends.borrow_mut();
        let mut batch = Vec::new();
        let mut size = 0;
        while let Some(next) = queue.front() {
            size += encoded_size(&next.records);
            if size > limit && !batch.is_empty() {
                break;
            }
            batch.extend(queue.pop_front());
        }
        batch
    }

    /// The planted bug: answers, then writes.
    async fn append_late(&self, batch: Vec<PendingAppend>) {
        let records = batch.iter().flat_map(|append| &append.records);
        let bytes = build_batch(records, self.core.wall_clock_ms(), self.codec);
        self.report(batch, Ok(self.log.end_offset()));
        if let Ok(bytes) = bytes {
            let _ = self.log.append(bytes).await;
        }
    }

    async fn append(&self, batch: &[PendingAppend]) -> Result<i64, ErrorCode> {
        let records = batch.iter().flat_map(|append| &append.records);
        let bytes = build_batch(records, self.core.wall_clock_ms(), self.codec)?;
        if bytes.len() > self.log.max_batch_bytes() {
            return Err(ErrorCode::RecordListTooLarge);
        }
        self.log.append(bytes).await
    }

    fn report(&self, batch: Vec<PendingAppend>, outcome: Result<i64, ErrorCode>) {
        let mut outcome = outcome;
        for append in batch {
            let sequence = append.sequence;
            match &mut outcome {
                Ok(next) => {
                    let base_offset = *next;
                    *next += append.records.len() as i64;
                    self.dispatch(Event::Written {
                        sequence,
                        base_offset,
                    });
                }
                Err(error) => self.dispatch(Event::Failed {
                    sequence,
                    error: *error,
                }),
            }
        }
    }
}
