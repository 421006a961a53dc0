use std::cell::Cell;
use std::future::Future;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use super::channel::{TrySendError, channel};
use super::oneshot::{Closed, oneshot};
use super::{ByteBudget, Event};

#[derive(Default)]
struct Count(AtomicU32);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn poll<F: Future + ?Sized>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn an_event_wakes_all_who_asked_before() {
    let event = Event::new();
    let mut asked = pin!(event.wait());
    let mut polled = pin!(event.wait());
    assert!(poll(polled.as_mut()).is_pending());
    event.notify_all();
    assert!(
        poll(asked.as_mut()).is_ready(),
        "asked before the event, polled after"
    );
    assert!(poll(polled.as_mut()).is_ready());
    assert!(
        poll(pin!(event.wait())).is_pending(),
        "an event has no memory"
    );
}

#[test]
fn an_event_wakes_each_waiter_once_and_not_the_dropped() {
    let (event, count) = (Event::new(), Arc::new(Count::default()));
    let waker = Waker::from(Arc::clone(&count));
    let mut stays = Box::pin(event.wait());
    let mut goes = Box::pin(event.wait());
    for waiter in [&mut stays, &mut goes] {
        assert!(
            waiter
                .as_mut()
                .poll(&mut Context::from_waker(&waker))
                .is_pending()
        );
    }
    drop(goes);
    event.notify_all();
    assert_eq!(count.0.load(Ordering::Relaxed), 1);
}

#[test]
fn a_oneshot_carries_one_value() {
    let (sender, receiver) = oneshot();
    let mut receiver = pin!(receiver);
    assert!(poll(receiver.as_mut()).is_pending());
    assert!(sender.send(7).is_ok());
    assert_eq!(poll(receiver.as_mut()), Poll::Ready(Ok(7)));

    let (sender, receiver) = oneshot::<u32>();
    drop(sender);
    assert_eq!(poll(pin!(receiver)), Poll::Ready(Err(Closed)));
    let (sender, receiver) = oneshot();
    drop(receiver);
    assert!(sender.is_closed());
    assert_eq!(sender.send(7), Err(7));
}

#[test]
fn a_budget_is_first_come_first_served() {
    let budget = ByteBudget::new(100);
    let first = budget.try_reserve(80).expect("free");
    let mut large = Box::pin(budget.reserve(90));
    assert!(poll(large.as_mut()).is_pending());
    let mut small = Box::pin(budget.reserve(10));
    assert!(
        poll(small.as_mut()).is_pending(),
        "20 are free, but the large one was first"
    );
    assert!(budget.try_reserve(1).is_none());
    drop(first);
    let Poll::Ready(permit) = poll(large.as_mut()) else {
        panic!("its turn")
    };
    assert_eq!((permit.bytes(), budget.in_use()), (90, 90));
    let Poll::Ready(_small) = poll(small.as_mut()) else {
        panic!("its turn")
    };
    assert_eq!(budget.in_use(), 100);
}

#[test]
fn a_waiter_that_gives_up_lets_the_next_one_through() {
    let budget = ByteBudget::new(10);
    let held = budget.try_reserve(5).expect("free");
    let mut large = Box::pin(budget.reserve(10));
    assert!(poll(large.as_mut()).is_pending());
    let count = Arc::new(Count::default());
    let waker = Waker::from(Arc::clone(&count));
    let mut small = Box::pin(budget.reserve(5));
    assert!(
        small
            .as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_pending()
    );
    drop(large);
    assert_eq!(count.0.load(Ordering::Relaxed), 1, "it is told");
    assert!(poll(small.as_mut()).is_ready());
    drop(held);
}

#[test]
fn a_request_beyond_the_budget_gets_all_of_it() {
    let budget = ByteBudget::new(10);
    let Poll::Ready(mut permit) = poll(pin!(budget.reserve(1000))) else {
        panic!("free")
    };
    assert_eq!(permit.bytes(), 10);
    permit.shrink_to(3);
    assert_eq!(budget.in_use(), 3);
    drop(permit);
    assert_eq!(budget.in_use(), 0);
}

#[test]
fn permits_that_wait_for_each_other_grow_one_by_one_beyond_the_budget() {
    let budget = ByteBudget::new(100);
    let mut permits: Vec<_> = (0..4).filter_map(|_| budget.try_reserve(25)).collect();
    assert_eq!(budget.in_use(), 100);
    let [first, second, third, _] = &mut permits[..] else {
        panic!("four")
    };
    assert!(poll(pin!(first.grow_to(60, 0))).is_ready(), "one may");
    assert_eq!((first.bytes(), budget.in_use()), (60, 135));
    {
        let mut waits = pin!(second.grow_to(60, 0));
        assert!(poll(waits.as_mut()).is_pending(), "only one");
        assert!(budget.is_contended());
        assert!(
            poll(pin!(third.grow_to(26, 0))).is_pending(),
            "another was first"
        );
        assert!(poll(pin!(first.grow_to(90, 0))).is_ready(), "it keeps it");
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        let context = &mut Context::from_waker(&waker);
        assert!(waits.as_mut().poll(context).is_pending());
        first.shrink_to(0);
        assert_eq!(count.0.load(Ordering::Relaxed), 1, "it is told");
        assert_eq!(budget.in_use(), 75);
        assert!(poll(waits.as_mut()).is_pending(), "35 more are not free");
        drop(std::mem::replace(
            first,
            budget.try_reserve(1).expect("free"),
        ));
        assert!(poll(waits.as_mut()).is_ready(), "the right passes on");
    }
    assert_eq!(budget.in_use(), 111);
    assert!(!budget.is_contended());
    drop(permits);
    assert_eq!(budget.in_use(), 0);
    assert!(budget.try_reserve(100).is_some());
}

#[test]
fn growing_leaves_spare_bytes_to_others() {
    let budget = ByteBudget::new(100);
    let mut overdraws = budget.try_reserve(10).expect("free");
    let mut waits = budget.try_reserve(10).expect("free");
    assert!(poll(pin!(overdraws.grow_to(90, 25))).is_ready());
    overdraws.shrink_to(10);
    assert!(poll(pin!(waits.grow_to(66, 25))).is_pending());
    assert!(poll(pin!(waits.grow_to(65, 25))).is_ready());
    assert!(budget.try_reserve(25).is_some());
    assert!(poll(pin!(waits.grow_to(66, 0))).is_ready());
}

#[test]
fn a_channel_is_bounded_and_ends() {
    let (sender, mut receiver) = channel(2);
    assert_eq!((sender.try_send(1), sender.try_send(2)), (Ok(()), Ok(())));
    assert_eq!(sender.try_send(3), Err(TrySendError::Full(3)));
    {
        let mut waiting = pin!(sender.send(4));
        assert!(poll(waiting.as_mut()).is_pending());
        assert_eq!(receiver.try_recv(), Some(1));
        assert_eq!(poll(waiting.as_mut()), Poll::Ready(Ok(())));
    }
    let other = sender.clone();
    drop(sender);
    for expected in [Some(2), Some(4)] {
        assert_eq!(poll(pin!(receiver.recv())), Poll::Ready(expected));
    }
    assert!(
        poll(pin!(receiver.recv())).is_pending(),
        "one sender is left"
    );
    drop(other);
    assert_eq!(poll(pin!(receiver.recv())), Poll::Ready(None));
}

#[test]
fn a_channel_without_receiver_gives_values_back() {
    let (sender, receiver) = channel(1);
    let dropped = Rc::new(Cell::new(0));
    assert!(sender.try_send(Rc::clone(&dropped)).is_ok());
    drop(receiver);
    assert_eq!(Rc::strong_count(&dropped), 1, "what was queued is dropped");
    assert!(sender.is_closed());
    assert!(matches!(
        poll(pin!(sender.send(dropped))),
        Poll::Ready(Err(_))
    ));
}
