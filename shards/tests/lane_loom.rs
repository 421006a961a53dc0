//! The lane between two cores, and the way a sleeper is woken, under the model checker:
//! `RUSTFLAGS="--cfg loom" cargo test -p shards --test lane_loom --release`
#![cfg(loom)]

#[allow(dead_code, reason = "the checker uses its part")]
#[path = "../src/mesh/lane.rs"]
mod lane;

/// What `src/mesh/lane_parts.rs` is to the crate.
mod lane_parts {
    pub(super) use loom::cell::UnsafeCell as SlotCell;
    pub(super) use loom::sync::Arc;
    pub(super) use loom::sync::atomic::{AtomicUsize, Ordering};

    pub(super) struct CachePadded<T>(T);

    impl<T> CachePadded<T> {
        pub(super) fn new(value: T) -> Self {
            Self(value)
        }
    }

    impl<T> std::ops::Deref for CachePadded<T> {
        type Target = T;

        fn deref(&self) -> &T {
            &self.0
        }
    }
}

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering, fence};
use loom::thread;

use lane::lane;

#[test]
fn messages_arrive_once_and_in_order() {
    loom::model(|| {
        let (mut sender, mut receiver) = lane::<Box<u32>>(2);
        let sending = thread::spawn(move || {
            let mut sent = 0;
            for number in 0..4 {
                if sender.push(Box::new(number)).is_err() {
                    break;
                }
                sent += 1;
            }
            sent
        });
        let mut received = Vec::new();
        for _ in 0..3 {
            if let Some(number) = receiver.pop() {
                received.push(*number);
            } else {
                thread::yield_now();
            }
        }
        let sent = sending.join().unwrap();
        while let Some(number) = receiver.pop() {
            received.push(*number);
        }
        assert!(
            received.iter().copied().eq(0..sent),
            "{received:?} of {sent}"
        );
    });
}

#[test]
fn what_is_left_in_a_lane_is_dropped() {
    loom::model(|| {
        let counted = Arc::new(());
        let (mut sender, mut receiver) = lane::<Arc<()>>(4);
        let message = Arc::clone(&counted);
        let sending = thread::spawn(move || {
            for _ in 0..2 {
                assert!(sender.push(Arc::clone(&message)).is_ok());
            }
        });
        drop(receiver.pop());
        drop(receiver);
        sending.join().unwrap();
        assert_eq!(Arc::strong_count(&counted), 1);
    });
}

/// `CoreShared::wake_if_sleeping` against `announce_sleep`: after both have run, the message was
/// seen before the sleep, or the sleeper was told.
#[test]
fn a_sleeper_sees_the_message_or_is_told() {
    loom::model(|| {
        let (mut sender, mut receiver) = lane::<u32>(2);
        let sleeping = Arc::new(AtomicBool::new(false));
        let told = Arc::new(AtomicBool::new(false));
        let (sleeping_of_waker, told_by_waker) = (Arc::clone(&sleeping), Arc::clone(&told));
        let waking = thread::spawn(move || {
            sender.push(7).unwrap();
            fence(Ordering::SeqCst);
            if sleeping_of_waker.load(Ordering::Relaxed)
                && sleeping_of_waker.swap(false, Ordering::Relaxed)
            {
                told_by_waker.store(true, Ordering::Release);
            }
        });
        sleeping.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let seen = receiver.len() > 0;
        waking.join().unwrap();
        assert!(
            seen || told.load(Ordering::Acquire),
            "the core sleeps and nobody tells it"
        );
        assert_eq!(receiver.pop(), Some(7));
    });
}
