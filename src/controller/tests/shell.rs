//! The controller on a real core, over a log in memory.

use std::cell::RefCell;
use std::future::Future;
use std::rc::Rc;
use std::time::Duration;

use protocol::messages::{CreateTopicsRequest, DeleteTopicsRequest};
use protocol::{ErrorCode, Str, Uuid};
use shards::{BackendChoice, Core, CoreMain, Runtime, RuntimeOptions, TaskClass};

use super::harness::{MemoryLog, replayed, settings};
use super::topics::topic;
use crate::controller::{
    AutoTopic, Command, Controller, ControllerError, ControllerOptions, LoadError, SnapshotRules,
};
use crate::metadata::{Image, QuorumState};

fn on_core<F: Future<Output = ()> + 'static>(test: impl FnOnce(Core) -> F + Send + 'static) {
    let options = RuntimeOptions {
        cores: 1,
        pin: false,
        backend: BackendChoice::Epoll,
        ..RuntimeOptions::default()
    };
    let main: CoreMain = Box::new(move |core| Box::pin(test(core)));
    Runtime::new(options).unwrap().run(vec![main]).unwrap();
}

fn rules() -> SnapshotRules {
    SnapshotRules {
        after_bytes: u64::MAX,
        after: None,
        retention_bytes: None,
        retention: None,
    }
}

fn options(snapshots: SnapshotRules) -> ControllerOptions {
    ControllerOptions {
        settings: settings(&[]),
        old_bootstrap: None,
        snapshots,
        free_bytes: Rc::new(|_: Uuid| 0),
    }
}

async fn start(core: &Core, log: &Rc<MemoryLog>) -> Rc<Controller> {
    Controller::start(core.clone(), log.clone(), options(rules()))
        .await
        .unwrap()
}

fn creation(name: &str) -> CreateTopicsRequest {
    CreateTopicsRequest {
        topics: [topic(name, 1, 1)].into(),
        ..Default::default()
    }
}

fn quorum_state(log: &MemoryLog) -> QuorumState {
    let files = log.files.borrow();
    QuorumState::from_json(std::str::from_utf8(&files["quorum-state"]).unwrap()).unwrap()
}

#[test]
fn starts_raise_the_quorum_epoch_and_go_on() {
    on_core(|core| async move {
        let log = MemoryLog::rc();
        for epoch in 1..4 {
            let controller = start(&core, &log).await;
            assert_eq!(controller.quorum_epoch(), epoch);
            let state = quorum_state(&log);
            assert_eq!(
                (state.leader_epoch, state.static_voters),
                (epoch, Some(vec![1]))
            );
            let name = format!("t{epoch}");
            let created = controller.create_topics(creation(&name)).await.unwrap();
            assert_eq!(created.topics[0].error_code, 0);
            assert_eq!(
                controller.image().topic_count(),
                usize::try_from(epoch).unwrap()
            );
            assert_eq!(replayed(&log.content()).image(), &*controller.image());
            controller.close().await.unwrap();
            assert!(controller.image().broker(1).unwrap().fenced);
            let late = controller.submit(Command::AllocateProducerIds).await;
            assert_eq!(late, Err(ControllerError::Stopping));
        }
    });
}

#[test]
fn waiting_commands_share_an_append_and_replies_follow_the_publication() {
    on_core(|core| async move {
        let log = MemoryLog::rc();
        let controller = start(&core, &log).await;
        let seen: Rc<RefCell<Option<std::sync::Arc<Image>>>> = Rc::default();
        let (sink, sleeper) = (seen.clone(), core.clone());
        controller.publish_to(move |image| {
            let (sink, sleeper) = (sink.clone(), sleeper.clone());
            Box::pin(async move {
                sleeper.sleep(Duration::from_millis(2)).await;
                *sink.borrow_mut() = Some(image);
            })
        });
        let before = log.appends.get();
        let clients: Vec<_> = (0..100)
            .map(|number| {
                let (controller, seen) = (controller.clone(), seen.clone());
                core.spawn(TaskClass::Network, "client", async move {
                    let name = format!("topic-{number}");
                    let created = controller.create_topics(creation(&name)).await.unwrap();
                    assert_eq!(created.topics[0].error_code, 0);
                    let published = seen.borrow().clone().unwrap();
                    assert!(
                        published.topic_by_name(&name).is_some(),
                        "answered too early"
                    );
                })
            })
            .collect();
        for client in clients {
            client.await.unwrap();
        }
        assert_eq!(controller.image().topic_count(), 100);
        assert!(
            log.appends.get() - before <= 3,
            "{} appends",
            log.appends.get() - before
        );
    });
}

#[test]
fn many_who_ask_for_a_topic_get_one() {
    on_core(|core| async move {
        let log = MemoryLog::rc();
        let controller = start(&core, &log).await;
        let asked = || {
            vec![
                AutoTopic {
                    name: Str::from("t"),
                    ..Default::default()
                },
                AutoTopic {
                    name: Str::from("no good"),
                    ..Default::default()
                },
            ]
        };
        let clients: Vec<_> = (0..20)
            .map(|_| {
                let controller = controller.clone();
                core.spawn(TaskClass::Network, "client", async move {
                    let failed = controller.auto_create(asked()).await;
                    let wanted = ErrorCode::InvalidTopicException;
                    assert_eq!(failed, [(Str::from("no good"), wanted)]);
                })
            })
            .collect();
        for client in clients {
            client.await.unwrap();
        }
        assert_eq!(controller.image().topic_count(), 1);
        let partition = controller
            .image()
            .topic_by_name("t")
            .unwrap()
            .partitions
            .get(0)
            .cloned();
        assert_eq!(partition.unwrap().partition_epoch, 0);
    });
}

#[test]
fn a_failed_append_is_told_and_nothing_is_seen_of_it() {
    on_core(|core| async move {
        let log = MemoryLog::rc();
        let controller = start(&core, &log).await;
        let before = controller.image();
        log.fail.set(true);
        let lost = controller.create_topics(creation("lost")).await;
        assert!(
            matches!(lost, Err(ControllerError::OutcomeUnknown(_))),
            "{lost:?}"
        );
        assert_eq!(*controller.image(), *before);
        log.fail.set(false);
        let later = controller.create_topics(creation("later")).await;
        assert!(
            matches!(later, Err(ControllerError::OutcomeUnknown(_))),
            "until the next start"
        );
        let controller = start(&core, &log).await;
        assert!(controller.create_topics(creation("later")).await.is_ok());
        assert_eq!(controller.image().topic_count(), 1);
    });
}

#[test]
fn a_full_disk_refuses_changes_until_there_is_space() {
    on_core(|core| async move {
        let log = MemoryLog::rc();
        let controller = start(&core, &log).await;
        let before = controller.image();
        log.full.set(true);
        for _ in 0..2 {
            let refused = controller.create_topics(creation("later")).await;
            let Err(refused) = refused else {
                panic!("{refused:?}");
            };
            assert_eq!(refused.code(), ErrorCode::KafkaStorageError);
        }
        assert_eq!(*controller.image(), *before);
        log.full.set(false);
        assert!(controller.create_topics(creation("later")).await.is_ok());
        let controller = start(&core, &log).await;
        assert_eq!(controller.image().topic_count(), 1, "created once");
    });
}

#[test]
fn snapshots_are_written_and_the_past_goes() {
    on_core(|core| async move {
        let log = MemoryLog::rc();
        let snapshots = SnapshotRules {
            after_bytes: 600,
            // The timer of this rule must not keep the other from its right.
            after: Some(Duration::from_secs(3600)),
            retention_bytes: Some(3000),
            retention: None,
        };
        let controller = Controller::start(core.clone(), log.clone(), options(snapshots.clone()))
            .await
            .unwrap();
        for number in 0..40 {
            controller
                .create_topics(creation(&format!("t{number}")))
                .await
                .unwrap();
            core.sleep(Duration::from_millis(2)).await;
        }
        let gone = DeleteTopicsRequest {
            topic_names: ["t3".into()].into(),
            ..Default::default()
        };
        controller.delete_topics(gone, 5).await.unwrap();
        controller.close().await.unwrap();
        assert_eq!(controller.snapshot_failure(), None);
        assert!(log.start.get() > 0, "the beginning of the log was deleted");
        let count = log
            .files
            .borrow()
            .keys()
            .filter(|it| it.ends_with(".checkpoint"))
            .count();
        assert!((1..5).contains(&count), "{count} snapshots");
        let image = controller.image();

        let again = Controller::start(core.clone(), log.clone(), options(snapshots))
            .await
            .unwrap();
        assert_eq!(again.image().topic_count(), 39);
        for topic in image.topics() {
            assert_eq!(again.image().topic(topic.id).unwrap().name, topic.name);
        }
        let created = again.create_topics(creation("t3")).await.unwrap();
        assert_eq!(created.topics[0].error_code, 0);
        let partition = again
            .image()
            .topic_by_name("t3")
            .unwrap()
            .partitions
            .get(0)
            .cloned();
        assert!(
            partition.unwrap().leader_epoch > 0,
            "its past lies in a snapshot"
        );
    });
}

#[test]
fn a_snapshot_is_written_when_its_time_comes_and_not_without_news() {
    on_core(|core| async move {
        let log = MemoryLog::rc();
        let snapshots = SnapshotRules {
            after: Some(Duration::from_millis(30)),
            ..rules()
        };
        let controller = Controller::start(core.clone(), log.clone(), options(snapshots))
            .await
            .unwrap();
        let count = || {
            log.files
                .borrow()
                .keys()
                .filter(|it| it.ends_with(".checkpoint"))
                .count()
        };
        let reaches = async |wanted: usize| {
            for _ in 0..2000 {
                if count() >= wanted {
                    return;
                }
                core.sleep(Duration::from_millis(1)).await;
            }
            panic!("{} snapshots, not {wanted}", count());
        };
        assert_eq!(count(), 0);
        reaches(1).await;
        core.sleep(Duration::from_millis(100)).await;
        assert_eq!(count(), 1, "nothing is new");
        controller.create_topics(creation("t")).await.unwrap();
        reaches(2).await;
    });
}

#[test]
fn a_snapshot_that_cannot_be_read_is_told_and_an_older_one_stands_in() {
    on_core(|core| async move {
        let log = MemoryLog::rc();
        let snapshots = SnapshotRules {
            after_bytes: 1,
            ..rules()
        };
        let controller = Controller::start(core.clone(), log.clone(), options(snapshots))
            .await
            .unwrap();
        for number in 0..4 {
            controller
                .create_topics(creation(&format!("t{number}")))
                .await
                .unwrap();
            core.sleep(Duration::from_millis(5)).await;
        }
        controller.close().await.unwrap();
        let newest = log
            .files
            .borrow()
            .keys()
            .filter(|it| it.ends_with(".checkpoint"))
            .max()
            .cloned();
        let newest = newest.unwrap();
        let cut = log.files.borrow()[&newest].slice(..100);
        log.files.borrow_mut().insert(newest.clone(), cut);
        let again = start(&core, &log).await;
        assert_eq!(again.image().topic_count(), 4);
        assert!(again.skipped_snapshots()[0].starts_with(&newest));
        // With the log's beginning gone, there is nothing to stand in.
        log.files
            .borrow_mut()
            .retain(|name, _| !name.ends_with(".checkpoint"));
        log.start.set(3);
        let lost = Controller::start(core.clone(), log.clone(), options(rules())).await;
        assert_eq!(
            lost.err(),
            Some(ControllerError::Load(LoadError::Gap { start: 3 }))
        );
    });
}

/// A controller that wrote a snapshot of four topics and ended, and the name of that snapshot.
async fn with_snapshot(core: &Core, log: &Rc<MemoryLog>) -> String {
    let snapshots = SnapshotRules {
        after_bytes: 1,
        ..rules()
    };
    let controller = Controller::start(core.clone(), log.clone(), options(snapshots))
        .await
        .unwrap();
    let newest = || {
        let files = log.files.borrow();
        let names = files.keys().filter(|it| it.ends_with(".checkpoint"));
        names.max().cloned()
    };
    for number in 0..4 {
        controller
            .create_topics(creation(&format!("t{number}")))
            .await
            .unwrap();
        // That of the start may still be on its way, and be told from this one by its offset alone.
        let end = format!("{:020}-", controller.image().provenance.offset + 1);
        while !newest().is_some_and(|name| name.starts_with(&end)) {
            core.sleep(Duration::from_millis(1)).await;
        }
    }
    controller.close().await.unwrap();
    newest().unwrap()
}

#[test]
fn a_log_cut_short_goes_on_behind_a_snapshot_that_has_more() {
    on_core(|core| async move {
        let log = MemoryLog::rc();
        let newest = with_snapshot(&core, &log).await;
        log.batches.borrow_mut().truncate(3);
        let ends: Vec<i64> = log.batches.borrow().iter().map(next_offset).collect();
        log.end.set(ends[2]);
        let again = start(&core, &log).await;
        assert_eq!(again.image().topic_count(), 4);
        assert!(again.mended()[0].contains(&newest), "{:?}", again.mended());
        let from = newest.split('-').next().unwrap().parse::<i64>().unwrap();
        assert_eq!(log.start.get(), from);
        again.create_topics(creation("more")).await.unwrap();
        again.close().await.unwrap();
        let once_more = start(&core, &log).await;
        assert_eq!(once_more.image().topic_count(), 5);
        assert_eq!(once_more.mended(), [] as [String; 0]);
        once_more.close().await.unwrap();

        // Where that snapshot cannot be read, metadata would go back: no start.
        let cut = log.files.borrow()[&newest].slice(..100);
        log.files.borrow_mut().insert(newest.clone(), cut);
        log.batches.borrow_mut().clear();
        log.start.set(0);
        log.end.set(0);
        let refused = Controller::start(core.clone(), log.clone(), options(rules())).await;
        let error = refused.err().unwrap().to_string();
        assert!(
            error.contains(&newest) && error.contains("ends at offset 0"),
            "{error}"
        );
        assert_eq!(log.end.get(), 0, "nothing was written");
    });
}

fn next_offset(batch: &bytes::Bytes) -> i64 {
    protocol::records::BatchView::parse(batch)
        .unwrap()
        .next_offset()
}

#[test]
fn a_torn_quorum_state_is_made_anew() {
    on_core(|core| async move {
        for text in ["", "{\"leaderId\":1,\"lead", "\0\0\0\0"] {
            let log = MemoryLog::rc();
            for _ in 0..3 {
                start(&core, &log).await.close().await.unwrap();
            }
            log.files
                .borrow_mut()
                .insert("quorum-state".to_owned(), text.into());
            let again = start(&core, &log).await;
            assert_eq!(again.quorum_epoch(), 4, "the log knows the epoch");
            assert_eq!(again.mended().len(), 1);
            assert_eq!(quorum_state(&log).leader_epoch, 4);
        }
    });
}

#[test]
fn a_quorum_of_several_is_refused() {
    on_core(|core| async move {
        let log = MemoryLog::rc();
        let state = QuorumState {
            leader_id: None,
            leader_epoch: 4,
            voted_id: None,
            voted_directory_id: Uuid::ZERO,
            static_voters: Some(vec![1, 2, 3]),
        };
        log.files
            .borrow_mut()
            .insert("quorum-state".to_owned(), state.to_json().into());
        let refused = Controller::start(core.clone(), log.clone(), options(rules())).await;
        let error = refused.err().unwrap();
        assert!(error.to_string().contains("1, 2, 3"), "{error}");
        assert_eq!(log.end.get(), 0, "nothing was written");
    });
}
