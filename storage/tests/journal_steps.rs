//! The process killed, and the power taken, at every step of the journal: at each change of the disk that writing frames, moving
//! batches to their segments, going round the ring, a clean stop and the replay itself make, on a simulated disk.
//!
//! A first run says after which steps of the simulated world the disk changed. Then the same seed runs again for each of them and
//! ends right behind the change (before anybody was told) and right before the next one (when all were told that can be).
//! What comes back is compared with a model, the replay is done twice, and the logs go on.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking, and shows the seed and the step then"
)]

mod support;

use shards::fault::{FileFault, FileFaults, FileOperation};
use shards::sim::{NodeId, World};
use shards::{Core, RuntimeOptions, TaskClass};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use storage::journal::replay;
use storage::{AppendOrigin, Log, LogConfig, Shutdown, Storage, StorageOptions, disk};
use support::*;

const ROOT: &str = "/data";
const JOURNAL: &str = "/data/ringmain-journal-0";
/// The smallest ring there is: the scenario goes round it more than once.
const RING_BYTES: u64 = 256 << 10;
/// Logs, of which the last answers when its batches are durable.
const LOGS: usize = 5;
const DURABLE: usize = LOGS - 1;
const ROUNDS: usize = 14;
/// What a write to a segment takes longer than one to the journal.
const MOVE_DELAY: Duration = Duration::from_millis(8);
const LONGEST: Duration = Duration::from_secs(60);

/// What a log must hold: everything that was promised, and of the rest what was appended, in its order.
#[derive(Default, Clone)]
struct Expected {
    appended: Vec<Vec<u8>>,
    /// So many survive a kill.
    acknowledged: usize,
    /// So many survive a power loss.
    durable: usize,
}

type Model = Rc<RefCell<Vec<Expected>>>;

/// How often a step of the journal is among the points.
type Hits = BTreeMap<&'static str, usize>;

/// How a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Kill,
    PowerLoss,
}

/// What a process did to its disk, by the steps of the world.
struct Watched {
    changes: Vec<Change>,
    /// The state behind each step; the first is that before any.
    steps: Vec<Moment>,
}

/// A change of the disk.
struct Change {
    /// The step that made it.
    step: usize,
    /// The last step before the next change.
    last: usize,
    what: What,
}

struct Moment {
    /// Lines of the trace: the same run has as many at the same step.
    lines: u64,
    /// Bytes of the ring in use, and frames whose writer knows that they are written.
    used: u64,
    frames: u64,
    /// Frames for which there was no room.
    refusals: u64,
    stopping: bool,
}

/// Changes by what they are to the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// A frame at this byte of the file.
    Frame(u64),
    SegmentWrite,
    SegmentSync,
    JournalGone,
    DirectorySync,
    Other,
}

impl What {
    /// Of a line of the trace; `None` where it changes no disk.
    fn of(line: &str) -> Option<What> {
        let (_, rest) = line.split_once(" disk ")?;
        let path = rest.rsplit(' ').next()?;
        let words: Vec<&str> = rest.split(' ').collect();
        let segment = path.ends_with(".log");
        Some(match words[..] {
            ["open", ..] | ["read", ..] | ["fails", ..] => return None,
            ["write", at, ..] if path == JOURNAL && at != "0" => What::Frame(at.parse().unwrap()),
            ["write", ..] if segment => What::SegmentWrite,
            ["sync", "directory", ..] => What::DirectorySync,
            ["sync", ..] if segment => What::SegmentSync,
            ["remove", ..] if path == JOURNAL => What::JournalGone,
            _ => What::Other,
        })
    }
}

/// The node and what tests see of it from outside.
struct Scene {
    world: World,
    node: NodeId,
    model: Model,
    storage: Rc<RefCell<Option<Storage>>>,
    /// All appends are done: what follows is the clean stop.
    stopping: Rc<Cell<bool>>,
}

impl Scene {
    fn new(seed: u64, traced: bool) -> Scene {
        let world = if traced {
            World::traced(seed)
        } else {
            World::new(seed)
        };
        // Moving is slow, so that the ring runs full.
        let slow: FileFaults = Arc::new(|operation, path: &Path| {
            let moves =
                operation == FileOperation::Write && path.to_string_lossy().ends_with(".log");
            if moves {
                FileFault::Delay(MOVE_DELAY)
            } else {
                FileFault::None
            }
        });
        let node = world.node(RuntimeOptions {
            cores: 1,
            file_faults: Some(slow),
            ..Default::default()
        });
        world
            .disk(node)
            .put(&Path::new(ROOT).join("here"), b"")
            .unwrap();
        Scene {
            world,
            node,
            model: Rc::new(RefCell::new(vec![Expected::default(); LOGS])),
            storage: Rc::default(),
            stopping: Rc::default(),
        }
    }

    fn start<F: Future<Output = ()> + 'static>(&self, main: impl FnOnce(Core) -> F + 'static) {
        let boot = self.world.boot(self.node).unwrap();
        let main = Box::new(move |core| Box::pin(main(core)) as Local);
        boot.run_local(vec![main]).unwrap();
    }

    fn serve(&self) {
        let (model, storage) = (self.model.clone(), self.storage.clone());
        let stopping = self.stopping.clone();
        self.start(move |core| serve(core, model, storage, stopping));
    }

    /// Starts the process that puts everything back, checks it and goes on.
    fn recover(&self, after: End) {
        let (model, disk) = (self.model.clone(), self.world.disk(self.node));
        self.start(move |core| recover(core, model, disk, after));
    }

    /// Lets a process that was watched before make so many steps, then ends it.
    fn end_after(&self, watched: &Watched, steps: usize, end: End) {
        let mut made = 0;
        self.world.run_until(LONGEST, || {
            made += 1;
            made > steps
        });
        let lines = self.world.trace_digest().1;
        assert_eq!(lines, watched.steps[steps].lines, "two runs of one seed");
        match end {
            End::Kill => self.world.kill(self.node),
            End::PowerLoss => self.world.crash(self.node),
        }
        self.storage.take();
    }

    /// Lets the process run to its end and answers what it did to the disk.
    fn watch(&self) -> Watched {
        let from = self.world.trace_digest().1 as usize;
        let mut steps: Vec<Moment> = Vec::new();
        let ended = self.world.run_until(LONGEST, || {
            let storage = self.storage.borrow();
            let counters = storage.as_ref().map(Storage::counters);
            let counters = counters.unwrap_or_default();
            steps.push(Moment {
                lines: self.world.trace_digest().1,
                used: counters.journal_used_bytes,
                frames: counters.journal_writes,
                refusals: counters.journal_refusals,
                stopping: self.stopping.get(),
            });
            !self.world.is_running(self.node)
        });
        assert!(ended, "the process ends by itself");
        let trace = self.world.trace();
        let mut changes: Vec<Change> = Vec::new();
        for (at, line) in trace.lines().enumerate().skip(from) {
            let Some(what) = What::of(line) else { continue };
            let step = steps.partition_point(|moment| moment.lines <= at as u64);
            if let Some(before) = changes.last_mut() {
                before.last = before.step.max(step - 1);
            }
            let last = steps.len() - 1;
            changes.push(Change { step, last, what });
        }
        Watched { changes, steps }
    }
}

fn config(log: usize) -> LogConfig {
    LogConfig {
        journal: true,
        flush_messages: if log == DURABLE { 1 } else { i64::MAX },
        // The logs roll once or twice.
        segment_bytes: 60_000,
        ..LogConfig::default()
    }
}

fn name(log: usize) -> String {
    format!("t{log}")
}

fn segments(disk: &shards::sim::Disk) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for log in 0..LOGS {
        let directory = Path::new(ROOT).join(format!("{}-0", name(log)));
        for file in disk.names(&directory).unwrap_or_default() {
            let path = directory.join(file);
            if path.extension().is_some_and(|ending| ending == "log") {
                found.insert(path.clone(), disk.contents(&path).unwrap());
            }
        }
    }
    found
}

fn new_storage(core: &Core) -> Storage {
    let options = StorageOptions {
        journal_bytes: RING_BYTES,
        ..StorageOptions::default()
    };
    Storage::new(core.clone(), options)
}

async fn open_log(storage: &Storage, log: usize, shutdown: Shutdown) -> Log {
    let options = options(&name(log), config(log), shutdown);
    let opened = Log::open(storage, Path::new(ROOT), options).await;
    opened.unwrap().0
}

/// Appends one record to each log and another, and writes down what was acknowledged the moment it is.
async fn append(log: &Log, which: usize, model: &Model, count: usize, length: usize) {
    let mut tickets = Vec::new();
    for _ in 0..count {
        let value = {
            let mut model = model.borrow_mut();
            let appended = &mut model[which].appended;
            // Each is another one, so that what is there twice shows.
            let mut value = format!("{which} {} ", appended.len()).into_bytes();
            value.resize(value.len() + length, b'.');
            appended.push(value.clone());
            value
        };
        tickets.push(
            log.append(&[batch(1, &value)], 0, AppendOrigin::Client)
                .unwrap(),
        );
    }
    for ticket in tickets {
        let offset = ticket.first_offset;
        ticket.await.unwrap();
        let expected = &mut model.borrow_mut()[which];
        expected.acknowledged = offset as usize + 1;
        if which == DURABLE {
            expected.durable = expected.acknowledged;
        }
    }
}

/// A broker's life: appends to all logs at once, some flushes, and a clean stop.
async fn serve(
    core: Core,
    model: Model,
    shown: Rc<RefCell<Option<Storage>>>,
    stopping: Rc<Cell<bool>>,
) {
    let storage = new_storage(&core);
    *shown.borrow_mut() = Some(storage.clone());
    let mut clients = Vec::new();
    let mut logs = Vec::new();
    for which in 0..LOGS {
        let log = open_log(&storage, which, Shutdown::Clean).await;
        logs.push(log.clone());
        let (model, random) = (model.clone(), core.random_u128() as u64);
        clients.push(core.spawn(TaskClass::Produce, "client", async move {
            let mut random = Random(random);
            for round in 0..ROUNDS {
                // Now and then more than the ring has room for, of each log less than goes past it.
                let count = if round % 8 >= 4 {
                    6
                } else {
                    1 + random.below(2)
                };
                let length = random.below(4_500);
                append(&log, which, &model, count as usize, length as usize).await;
                if which == 0 && round % 8 == 7 {
                    let before = model.borrow()[which].acknowledged;
                    log.flush().await.unwrap();
                    model.borrow_mut()[which].durable = before;
                }
            }
        }));
    }
    for client in clients {
        client.await.unwrap();
    }
    stopping.set(true);
    for log in &logs {
        log.close().await.unwrap();
    }
    assert!(storage.close_journals().await.is_empty());
    disk::write_clean_marker(&core, Path::new(ROOT), 1)
        .await
        .unwrap();
}

/// A broker's start: the journals put back, twice, the logs compared with the model, and one more append to each.
async fn recover(core: Core, model: Model, disk: shards::sim::Disk, after: End) {
    let root = Path::new(ROOT);
    let clean = disk::read_clean_marker(&core, root)
        .await
        .unwrap()
        .is_some();
    let journal = disk.contents(Path::new(JOURNAL)).ok();
    assert!(!clean || journal.is_none(), "clean, with a journal");
    let report = replay(&core, root, clean).await.unwrap();
    assert_eq!(report.conflicts, Vec::<String>::new());
    assert!(disk.contents(Path::new(JOURNAL)).is_err(), "removed");
    if let Some(journal) = journal {
        let once = segments(&disk);
        disk.put(Path::new(JOURNAL), &journal).unwrap();
        let again = replay(&core, root, clean).await.unwrap();
        assert_eq!(again.written_bytes, 0, "{again:?}");
        assert_eq!(
            (again.entries, &again.conflicts),
            (report.entries, &report.conflicts)
        );
        assert!(
            segments(&disk) == once,
            "the second replay changed a segment"
        );
    }
    disk::remove_clean_marker(&core, root).await.unwrap();
    let shutdown = if clean {
        Shutdown::Clean
    } else {
        Shutdown::Unclean { recovery_point: 0 }
    };
    let storage = new_storage(&core);
    for which in 0..LOGS {
        let log = open_log(&storage, which, shutdown).await;
        let found = check(&core, &log, which, &model, after).await;
        go_on(&mut model.borrow_mut()[which], found, log.recovery_point());
        append(&log, which, &model, 1, 10).await;
        assert_eq!(check(&core, &log, which, &model, after).await, found + 1);
    }
}

/// Nothing that was promised is lost, nothing is there twice, offsets are dense. Answers how many records there are.
async fn check(core: &Core, log: &Log, which: usize, model: &Model, after: End) -> usize {
    let records = records_from(core, log, 0).await;
    let expected = &model.borrow()[which];
    assert_eq!(log.log_end_offset(), records.len() as i64, "log {which}");
    for (at, (offset, _, value)) in records.iter().enumerate() {
        assert_eq!(*offset, at as i64, "log {which}: offsets are dense");
        let wanted = &expected.appended[at];
        assert!(value == wanted, "log {which}: another record at {at}");
    }
    let promised = match after {
        End::Kill => expected.acknowledged,
        End::PowerLoss => expected.durable,
    };
    let found = records.len();
    assert!(found >= promised, "log {which}: {found} of {promised}");
    found
}

/// What recovery found is what the log has, and what it calls durable has to be.
fn go_on(expected: &mut Expected, found: usize, recovery_point: i64) {
    expected.appended.truncate(found);
    expected.acknowledged = found;
    expected.durable = usize::try_from(recovery_point).unwrap();
}

impl Watched {
    /// Where a run is ended: behind each change, before anybody was told, and right before the next.
    fn points(&self) -> Vec<usize> {
        let behind = self.changes.iter().flat_map(|it| [it.step, it.last]);
        let mut points: Vec<usize> = behind.collect();
        points.dedup();
        points
    }

    /// How often the points hit each step of the journal.
    fn hits(&self) -> Hits {
        let mut hits = Hits::new();
        let mut seen = |name| *hits.entry(name).or_insert(0) += 1;
        let (mut frames, mut position) = (0, 0);
        for pair in self.changes.windows(2) {
            let (change, next) = (&pair[0], &pair[1]);
            let (behind, before_next) = (&self.steps[change.step], &self.steps[change.last]);
            // The file is also written from end to end when it is made: before there is a ring.
            if let What::Frame(at) = change.what
                && (behind.used > 0 || position > 0)
            {
                frames += 1;
                if behind.frames < frames {
                    seen("write: on the disk, nobody told");
                }
                if before_next.frames >= frames {
                    seen("write: told, before the next change");
                }
                if at < position {
                    seen("recycle: begun again, over what was freed");
                }
                position = at;
            }
            if let What::Frame(at) = next.what
                && position > 0
            {
                seen("write: before the frame");
                if at < position {
                    seen("recycle: before it begins again");
                }
            }
            if before_next.used < self.steps[change.step - 1].used && !before_next.stopping {
                seen("recycle: the start moved, no frame says so");
            }
            if before_next.refusals > self.steps[change.step - 1].refusals {
                seen("recycle: no room, batches go to their segments");
            }
            let held = before_next.used > 0;
            match (behind.stopping, change.what, next.what) {
                (false, _, What::SegmentWrite) if held => seen("move: before the segment's write"),
                (true, _, What::SegmentWrite) if held => seen("stop: before a segment's write"),
                (_, _, What::JournalGone) => seen("stop: empty, before the removal"),
                _ => {}
            }
            let held = behind.used > 0;
            match (behind.stopping, change.what) {
                (false, What::SegmentWrite) if held => seen("move: written, frames held"),
                (false, What::SegmentSync) if held => seen("move: synced"),
                (true, What::SegmentWrite) if held => seen("stop: a segment written"),
                (true, What::SegmentSync) => seen("stop: a segment synced"),
                (true, What::JournalGone) => seen("stop: the journal removed"),
                _ => {}
            }
        }
        hits
    }
}

impl Watched {
    /// The same of the process that puts the journal back.
    fn replay_hits(&self) -> Hits {
        let mut hits = Hits::new();
        let mut before = What::Other;
        let mut removed = false;
        for change in &self.changes {
            let name = match change.what {
                What::SegmentWrite if !removed => Some("replay: a segment written"),
                What::SegmentSync if !removed => Some("replay: a segment synced"),
                What::JournalGone => Some("replay: a journal removed"),
                What::DirectorySync if before == What::JournalGone => {
                    Some("replay: the removal durable")
                }
                _ => None,
            };
            if let Some(name) = name {
                *hits.entry(name).or_insert(0) += 1;
            }
            removed |= change.what == What::JournalGone;
            before = change.what;
        }
        hits
    }
}

/// Steps of the journal that every run of [`serve`] is ended at.
const STEPS: [&str; 15] = [
    "write: before the frame",
    "write: on the disk, nobody told",
    "write: told, before the next change",
    "move: before the segment's write",
    "move: written, frames held",
    "move: synced",
    "recycle: the start moved, no frame says so",
    "recycle: before it begins again",
    "recycle: begun again, over what was freed",
    "recycle: no room, batches go to their segments",
    "stop: before a segment's write",
    "stop: a segment written",
    "stop: a segment synced",
    "stop: empty, before the removal",
    "stop: the journal removed",
];

const REPLAY_STEPS: [&str; 4] = [
    "replay: a segment written",
    "replay: a segment synced",
    "replay: a journal removed",
    "replay: the removal durable",
];

/// Seeds to play; STORAGE_STEP_SEEDS=20 plays as many.
fn seeds() -> std::ops::Range<u64> {
    let count = std::env::var("STORAGE_STEP_SEEDS").ok();
    0..count.map_or(1, |count| count.parse().unwrap())
}

fn served(seed: u64) -> Watched {
    let scene = Scene::new(seed, true);
    scene.serve();
    scene.watch()
}

fn ended_at_every_step(end: End) {
    for seed in seeds() {
        let watched = served(seed);
        for step in watched.points() {
            println!("seed {seed}, {end:?} after step {step}");
            let scene = Scene::new(seed, false);
            scene.serve();
            scene.end_after(&watched, step, end);
            scene.recover(end);
            assert!(scene.world.run_until_stopped(scene.node, LONGEST));
        }
    }
}

/// Ends the replay and the opening of the logs behind it at each of their own changes, too.
fn ended_again_at_every_step(seed: u64, step: usize, [first, second]: [End; 2]) -> Hits {
    let watched = served(seed);
    let scene = |traced| {
        let scene = Scene::new(seed, traced);
        scene.serve();
        scene.end_after(&watched, step, first);
        scene.recover(first);
        scene
    };
    let replayed = scene(true).watch();
    for again in replayed.points() {
        println!("seed {seed}, {first:?} after step {step}, then {second:?} after {again}");
        let scene = scene(false);
        scene.end_after(&replayed, again, second);
        // A power loss in between is not undone by a kill.
        scene.recover(if first == second {
            first
        } else {
            End::PowerLoss
        });
        assert!(scene.world.run_until_stopped(scene.node, LONGEST));
    }
    replayed.replay_hits()
}

#[test]
fn a_kill_at_every_step_loses_nothing_acknowledged() {
    ended_at_every_step(End::Kill);
}

#[test]
fn power_lost_at_every_step_takes_only_what_was_not_durable() {
    ended_at_every_step(End::PowerLoss);
}

#[test]
fn a_replay_ended_at_every_step_is_replayed_again() {
    let ends = [
        [End::Kill, End::Kill],
        [End::Kill, End::PowerLoss],
        [End::PowerLoss, End::PowerLoss],
    ];
    let mut hits = Hits::new();
    for seed in seeds() {
        let points = served(seed).points();
        // While it serves, and in the clean stop.
        for part in [5, 9] {
            let step = points[points.len() * part / 10];
            for ends in ends {
                hits.extend(ended_again_at_every_step(seed, step, ends));
            }
        }
    }
    for name in REPLAY_STEPS {
        assert!(hits.contains_key(name), "{name}: {hits:?}");
    }
}

/// The points are what they are said to be.
#[test]
fn every_step_of_the_journal_is_among_them() {
    for seed in seeds() {
        let hits = served(seed).hits();
        for name in STEPS {
            assert!(hits.contains_key(name), "seed {seed}, {name}: {hits:?}");
        }
    }
}
