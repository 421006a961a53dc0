//! Wake-ups: from the core itself (a plain queue) and from other threads (a lock-free queue plus
//! an eventfd when the core sleeps).

use std::any::Any;
use std::cell::UnsafeCell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
use std::task::Wake;

use crossbeam_queue::SegQueue;

use super::{CLASSES, TaskClass};
use crate::sys::{EventFd, thread_token};

/// The ready tasks of one core by class, in the order in which they were woken.
#[derive(Default)]
struct ReadyQueues {
    queues: [VecDeque<Arc<TaskHeader>>; CLASSES],
    len: usize,
}

/// The half of a core that other threads may touch.
pub(crate) struct CoreShared {
    /// [`thread_token`] of the thread that runs the core; 0 before it starts and after it ends.
    owner: AtomicUsize,
    /// Touched only by the owner thread, see [`CoreShared::with_ready`].
    ready: UnsafeCell<ReadyQueues>,
    /// Tasks woken by other threads. A task stands in at most one queue, once (`scheduled`).
    remote: SegQueue<Arc<TaskHeader>>,
    /// Answers of the blocking pool, for [`super::Pending`].
    answers: SegQueue<(u64, Box<dyn Any + Send>)>,
    sleeping: AtomicBool,
    event: EventFd,
    wakeups: AtomicU64,
    stop: AtomicBool,
}

// SAFETY: every field but `ready` is Sync by itself; `ready` is reached only through `with_ready`,
// which first checks that the calling thread is the owner, and no reference to it escapes.
unsafe impl Sync for CoreShared {}
// SAFETY: the queues hold `Arc<TaskHeader>`, which is Send.
unsafe impl Send for CoreShared {}

impl CoreShared {
    pub(crate) fn new() -> std::io::Result<Self> {
        Ok(Self {
            owner: AtomicUsize::new(0),
            ready: UnsafeCell::new(ReadyQueues::default()),
            remote: SegQueue::new(),
            answers: SegQueue::new(),
            sleeping: AtomicBool::new(false),
            event: EventFd::new()?,
            wakeups: AtomicU64::new(0),
            stop: AtomicBool::new(false),
        })
    }

    /// The calling thread runs this core from now on.
    pub(crate) fn adopt(&self) {
        self.owner.store(thread_token(), Ordering::Release);
    }

    /// The calling thread, which must be the owner, runs this core no more. A thread that later
    /// gets the same token must not be taken for the owner.
    pub(crate) fn abandon(&self) {
        let ready = self.with_ready(std::mem::take);
        drop(ready);
        self.owner.store(0, Ordering::Release);
        while self.remote.pop().is_some() {}
        while self.answers.pop().is_some() {}
    }

    fn is_owner(&self) -> bool {
        self.owner.load(Ordering::Relaxed) == thread_token()
    }

    fn with_ready<R>(&self, f: impl FnOnce(&mut ReadyQueues) -> R) -> Option<R> {
        if !self.is_owner() {
            return None;
        }
        // SAFETY: only the owner thread gets here (the token of a live thread is unique, and a
        // thread clears its ownership before it ends), and `f` is one of the closures in this
        // file, none of which calls back into `with_ready` or drops a waker.
        Some(f(unsafe { &mut *self.ready.get() }))
    }

    /// Queues a task that was marked scheduled by the caller.
    fn schedule(&self, header: Arc<TaskHeader>) {
        if self.is_owner() {
            self.with_ready(|ready| {
                ready.queues[header.class as usize].push_back(header);
                ready.len += 1;
            });
        } else if self.owner.load(Ordering::Relaxed) != 0 {
            // (A core that has ended runs nothing; its queue would only keep the tasks alive.)
            self.remote.push(header);
            self.wake_if_sleeping();
        }
    }

    pub(crate) fn pop(&self, class: TaskClass) -> Option<Arc<TaskHeader>> {
        self.with_ready(|ready| {
            let header = ready.queues[class as usize].pop_front();
            ready.len -= usize::from(header.is_some());
            header
        })
        .flatten()
    }

    pub(crate) fn ready_len(&self, class: TaskClass) -> usize {
        self.with_ready(|ready| ready.queues[class as usize].len())
            .unwrap_or(0)
    }

    #[cfg(feature = "sim")]
    pub(crate) fn all_ready_len(&self) -> usize {
        self.with_ready(|ready| ready.len).unwrap_or(0)
    }

    /// Takes the task at `index`, counted through the classes in order.
    #[cfg(feature = "sim")]
    pub(crate) fn take_at(&self, mut index: usize) -> Option<Arc<TaskHeader>> {
        self.with_ready(|ready| {
            for queue in &mut ready.queues {
                if index < queue.len() {
                    ready.len -= 1;
                    return queue.remove(index);
                }
                index -= queue.len();
            }
            None
        })
        .flatten()
    }

    pub(crate) fn has_ready(&self) -> bool {
        self.with_ready(|ready| ready.len > 0).unwrap_or(false)
    }

    /// Takes over what other threads have woken.
    pub(crate) fn take_remote(&self) {
        while let Some(header) = self.remote.pop() {
            self.schedule(header);
        }
    }

    /// Called by a pool thread: hands an answer to the core.
    pub(crate) fn answer(&self, key: u64, value: Box<dyn Any + Send>) {
        self.answers.push((key, value));
        self.wake_if_sleeping();
    }

    pub(crate) fn take_answer(&self) -> Option<(u64, Box<dyn Any + Send>)> {
        self.answers.pop()
    }

    /// Ends the core's sleep, if it sleeps or is about to. The caller has published its work
    /// before; true when an event had to be written.
    ///
    /// Store-buffering pattern: the waker writes its work, fences, reads `sleeping`; the sleeper
    /// writes `sleeping`, fences, looks for work. With both fences SeqCst at least one of them
    /// sees the other's write.
    pub(crate) fn wake_if_sleeping(&self) -> bool {
        fence(Ordering::SeqCst);
        if self.sleeping.load(Ordering::Relaxed) && self.sleeping.swap(false, Ordering::Relaxed) {
            self.wakeups.fetch_add(1, Ordering::Relaxed);
            self.event.signal();
            return true;
        }
        false
    }

    /// Announces sleep; the caller must look for work once more after this and before it blocks.
    pub(crate) fn announce_sleep(&self) {
        self.sleeping.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    pub(crate) fn end_sleep(&self) {
        self.sleeping.store(false, Ordering::Relaxed);
    }

    pub(crate) fn has_remote_work(&self) -> bool {
        !self.remote.is_empty() || !self.answers.is_empty() || self.stops()
    }

    /// Asks the core to leave its main loop; from any thread.
    pub(crate) fn request_stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.wake_if_sleeping();
    }

    pub(crate) fn stops(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    pub(crate) fn event(&self) -> &EventFd {
        &self.event
    }

    /// Events written to end this core's sleep, by anybody.
    pub(crate) fn wakeups(&self) -> u64 {
        self.wakeups.load(Ordering::Relaxed)
    }
}

/// What a waker points to. Wakers may be cloned, sent, used and dropped on any thread.
pub(crate) struct TaskHeader {
    pub(crate) shared: Arc<CoreShared>,
    pub(crate) slot: usize,
    pub(crate) class: TaskClass,
    /// True from the wake-up until just before the next poll: a task is queued at most once.
    scheduled: AtomicBool,
}

impl TaskHeader {
    pub(crate) fn new(shared: Arc<CoreShared>, slot: usize, class: TaskClass) -> Arc<Self> {
        Arc::new(Self {
            shared,
            slot,
            class,
            scheduled: AtomicBool::new(false),
        })
    }

    /// Called right before a poll: a wake-up from here on queues the task again.
    pub(crate) fn begin_poll(&self) {
        // AcqRel: what a waker wrote before it found `scheduled` set is visible to this poll.
        self.scheduled.swap(false, Ordering::AcqRel);
    }
}

impl Wake for TaskHeader {
    fn wake(self: Arc<Self>) {
        if !self.scheduled.swap(true, Ordering::AcqRel) {
            let shared = Arc::clone(&self.shared);
            shared.schedule(self);
        }
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.scheduled.swap(true, Ordering::AcqRel) {
            self.shared.schedule(Arc::clone(self));
        }
    }
}
