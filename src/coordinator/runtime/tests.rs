//! The shell on a real core, over a log in memory.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use protocol::records::{BatchView, rewrite};
use protocol::{ErrorCode, Str, Uuid};
use shards::sync::Event as Signal;
use shards::{BackendChoice, Core, CoreMain, Runtime, RuntimeOptions};

use super::super::tests::harness::{
    FOO_ID, GROUP, commit, committed, error_of, join, joined, sync, synced, text,
};
use super::super::wire::{OffsetFetchGroup, OffsetFetchTopic};
use super::*;
use crate::coordinator::{Request, Response, Settings};

/// A partition's log in memory. Appends can be made to wait, or to fail.
#[derive(Default)]
struct MemoryLog {
    batches: RefCell<Vec<Bytes>>,
    end: Cell<i64>,
    hold: Cell<bool>,
    released: Signal,
    fail: Cell<Option<ErrorCode>>,
    read_failure: Cell<Option<ErrorCode>>,
}

impl MemoryLog {
    fn release(&self) {
        self.hold.set(false);
        self.released.notify_all();
    }

    fn write(&self, batch: &Bytes) -> i64 {
        let base = self.end.get();
        let mut batch = batch.to_vec();
        rewrite::assign(&mut batch, base, 0);
        let batch = Bytes::from(batch);
        self.end
            .set(BatchView::parse(&batch).unwrap().next_offset());
        self.batches.borrow_mut().push(batch);
        base
    }
}

impl CoordinatorLog for MemoryLog {
    fn append(&self, batch: Bytes) -> LocalFuture<'_, Result<i64, ErrorCode>> {
        Box::pin(async move {
            while self.hold.get() {
                self.released.wait().await;
            }
            match self.fail.take() {
                Some(error) => Err(error),
                None => Ok(self.write(&batch)),
            }
        })
    }

    fn read(&self, offset: i64, _max: usize) -> LocalFuture<'_, Result<Bytes, ErrorCode>> {
        let failure = self.read_failure.get();
        let batches = self.batches.borrow();
        let found = batches
            .iter()
            .find(|batch| BatchView::parse(batch).unwrap().next_offset() > offset)
            .cloned();
        Box::pin(async move { failure.map_or(Ok(found.unwrap_or_default()), Err) })
    }

    fn start_offset(&self) -> i64 {
        0
    }

    fn end_offset(&self) -> i64 {
        self.end.get()
    }

    fn max_batch_bytes(&self) -> usize {
        1 << 20
    }
}

/// Runs a test on one core.
fn on_core<F: Future<Output = ()> + 'static>(test: impl FnOnce(Core) -> F + Send + 'static) {
    let options = RuntimeOptions {
        cores: 1,
        backend: BackendChoice::Epoll,
        propagate_panics: true,
        ..RuntimeOptions::default()
    };
    let main: CoreMain = Box::new(move |core| Box::pin(test(core)));
    Runtime::new(options).unwrap().run(vec![main]).unwrap();
}

fn caller(api_version: i16) -> Caller {
    Caller {
        api_version,
        client_id: text("client"),
        client_host: text("/127.0.0.1"),
    }
}

fn options() -> PartitionOptions {
    let settings = Settings {
        initial_rebalance_delay_ms: 0,
        ..Settings::default()
    };
    PartitionOptions {
        settings,
        ..PartitionOptions::default()
    }
}

async fn started(core: &Core, log: &Rc<MemoryLog>) -> GroupPartition {
    let partition = GroupPartition::start(core, Rc::clone(log) as _, options());
    partition.loaded().await.unwrap();
    partition
}

async fn fetch(partition: &GroupPartition) -> i64 {
    let group = OffsetFetchGroup {
        group_id: text(GROUP),
        topics: Some(
            [OffsetFetchTopic {
                name: text("foo"),
                topic_id: Uuid::ZERO,
                partition_indexes: [0].into(),
            }]
            .into(),
        ),
        ..Default::default()
    };
    let request = Request::OffsetFetch {
        group,
        require_stable: false,
    };
    match partition.request(caller(9), request).await {
        Response::OffsetFetch(fetched) => fetched.topics[0].partitions[0].committed_offset,
        other => panic!("{other:?}"),
    }
}

/// One member, in a stable group; its id.
async fn stable_member(partition: &GroupPartition) -> String {
    let request = |id: &str| Request::JoinGroup(join(id));
    let first = joined(partition.request(caller(9), request("")).await);
    assert_eq!(error_of(first.error_code), ErrorCode::MemberIdRequired);
    let id = first.member_id.to_string();
    let second = joined(partition.request(caller(9), request(&id)).await);
    assert_eq!((second.error_code, second.generation_id), (0, 1));
    let request = Request::SyncGroup(sync(&id, 1, &[(&id, "all")]));
    let response = synced(partition.request(caller(5), request).await);
    assert_eq!(&response.assignment[..], b"all");
    id
}

#[test]
fn a_group_forms_and_is_there_after_a_restart() {
    on_core(|core| async move {
        let log = Rc::new(MemoryLog::default());
        let partition = started(&core, &log).await;
        stable_member(&partition).await;
        let response = partition
            .request(caller(9), Request::OffsetCommit(commit(0, 5)))
            .await;
        assert_eq!(committed(response), [ErrorCode::UnknownMemberId]);
        partition.stop();
        assert_eq!(partition.status(), Status::Stopped);
        assert_eq!(partition.timer_count(), 0);

        let again = started(&core, &log).await;
        let described = again
            .request(caller(5), Request::DescribeGroup(text(GROUP)))
            .await;
        let Response::DescribeGroup(described) = described else {
            panic!()
        };
        assert_eq!(described.group_state, "Stable");
        assert_eq!(&described.members[0].member_assignment[..], b"all");
        again.stop();
    });
}

#[test]
fn answers_wait_for_the_log_and_concurrent_commits_share_a_batch() {
    on_core(|core| async move {
        let log = Rc::new(MemoryLog::default());
        let partition = started(&core, &log).await;
        log.hold.set(true);
        let commits: Vec<_> = (0..10)
            .map(|at| partition.request(caller(9), Request::OffsetCommit(commit(0, at))))
            .collect();
        core.yield_now().await;
        core.sleep(Duration::from_millis(5)).await;
        assert_eq!(fetch(&partition).await, -1, "not written, so not read");
        log.release();
        for answer in commits {
            assert_eq!(committed(answer.await), [ErrorCode::None]);
        }
        assert_eq!(fetch(&partition).await, 9);
        let batches = log.batches.borrow().len();
        assert!(batches <= 2, "{batches} batches for ten commits");
        partition.stop();
    });
}

#[test]
fn a_failed_append_is_answered_and_the_next_one_goes_on() {
    on_core(|core| async move {
        let log = Rc::new(MemoryLog::default());
        let partition = started(&core, &log).await;
        log.fail.set(Some(ErrorCode::KafkaStorageError));
        let response = partition
            .request(caller(9), Request::OffsetCommit(commit(0, 1)))
            .await;
        assert_eq!(committed(response), [ErrorCode::NotCoordinator]);
        let response = partition
            .request(caller(9), Request::OffsetCommit(commit(0, 2)))
            .await;
        assert_eq!(committed(response), [ErrorCode::None]);
        assert_eq!(fetch(&partition).await, 2);
        partition.stop();
    });
}

#[test]
fn stopping_answers_whoever_waits() {
    on_core(|core| async move {
        let log = Rc::new(MemoryLog::default());
        let partition = started(&core, &log).await;
        log.hold.set(true);
        let waiting = partition.request(caller(9), Request::OffsetCommit(commit(0, 1)));
        partition.stop();
        assert_eq!(committed(waiting.await), [ErrorCode::NotCoordinator]);
        let late = partition.request(caller(9), Request::OffsetCommit(commit(0, 1)));
        assert_eq!(committed(late.await), [ErrorCode::NotCoordinator]);
        log.release();
    });
}

#[test]
fn while_it_loads_and_when_it_cannot_the_answers_say_so() {
    on_core(|core| async move {
        let log = Rc::new(MemoryLog::default());
        let before = started(&core, &log).await;
        before
            .request(caller(9), Request::OffsetCommit(commit(0, 1)))
            .await;
        before.stop();

        let set = GroupCoordinators::new(core.clone(), options());
        let ask = |set: &GroupCoordinators| {
            set.request(3, caller(9), Request::OffsetCommit(commit(0, 2)))
        };
        assert_eq!(
            committed(ask(&set).await),
            [ErrorCode::NotCoordinator],
            "none there"
        );
        let loading = set.become_leader(3, Rc::clone(&log) as _);
        let early = ask(&set);
        assert_eq!(
            committed(early.await),
            [ErrorCode::CoordinatorLoadInProgress]
        );
        loading.loaded().await.unwrap();
        assert_eq!(committed(ask(&set).await), [ErrorCode::None]);

        log.read_failure.set(Some(ErrorCode::KafkaStorageError));
        let failing = set.become_leader(3, Rc::clone(&log) as _);
        let error = failing.loaded().await.unwrap_err();
        assert_eq!(
            error,
            LoadError::Read {
                offset: 0,
                error: ErrorCode::KafkaStorageError
            }
        );
        assert_eq!(committed(ask(&set).await), [ErrorCode::NotCoordinator]);

        set.resign_all();
        assert_eq!(set.partitions(), Vec::<i32>::new());
    });
}

#[test]
fn deleted_topics_take_their_offsets_with_them() {
    on_core(|core| async move {
        let log = Rc::new(MemoryLog::default());
        let set = GroupCoordinators::new(core.clone(), options());
        let partition = set.become_leader(0, Rc::clone(&log) as _);
        partition.loaded().await.unwrap();
        partition
            .request(caller(9), Request::OffsetCommit(commit(0, 1)))
            .await;
        set.topics_deleted(&[(FOO_ID, Str::from("foo"))]);
        // Behind the tombstone in the same log.
        partition
            .request(caller(9), Request::OffsetCommit(commit(1, 1)))
            .await;
        assert_eq!(fetch(&partition).await, -1);
        set.resign_all();
    });
}

#[test]
fn an_empty_partition_serves_at_once() {
    on_core(|core| async move {
        let log = Rc::new(MemoryLog::default());
        let partition = GroupPartition::start(&core, Rc::clone(&log) as _, options());
        assert_eq!(partition.status(), Status::Active);
        let request = Request::OffsetCommit(commit(0, 1));
        let response = partition.request(caller(9), request).await;
        assert_eq!(committed(response), [ErrorCode::None]);
        partition.stop();
    });
}

#[test]
fn topics_deleted_while_loading_are_not_forgotten() {
    on_core(|core| async move {
        let log = Rc::new(MemoryLog::default());
        let before = started(&core, &log).await;
        let request = Request::OffsetCommit(commit(0, 1));
        before.request(caller(9), request).await;
        before.stop();
        let partition = GroupPartition::start(&core, Rc::clone(&log) as _, options());
        partition.topics_deleted(&[(FOO_ID, Str::from("foo"))]);
        partition.loaded().await.unwrap();
        let request = Request::OffsetCommit(commit(1, 1));
        partition.request(caller(9), request).await;
        assert_eq!(fetch(&partition).await, -1);
        partition.stop();
    });
}

#[test]
fn sessions_end_on_the_clock_of_the_core() {
    on_core(|core| async move {
        let log = Rc::new(MemoryLog::default());
        let mut options = options();
        options.settings.min_session_timeout_ms = 1;
        let partition = GroupPartition::start(&core, Rc::clone(&log) as _, options);
        partition.loaded().await.unwrap();
        let mut request = join("");
        request.session_timeout_ms = 50;
        request.rebalance_timeout_ms = 60_000;
        let response = joined(
            partition
                .request(caller(3), Request::JoinGroup(request))
                .await,
        );
        let id = response.member_id.to_string();
        partition
            .request(caller(5), Request::SyncGroup(sync(&id, 1, &[])))
            .await;
        loop {
            let answer = partition
                .request(caller(5), Request::DescribeGroup(text(GROUP)))
                .await;
            let Response::DescribeGroup(described) = answer else {
                panic!()
            };
            if described.group_state == "Empty" {
                break;
            }
            core.sleep(Duration::from_millis(10)).await;
        }
        partition.stop();
    });
}
