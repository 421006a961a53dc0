//! A bounded pool of threads for calls that block: file operations of the epoll backend,
//! directory operations, name lookups, prefetching.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, unbounded};

use super::spawn_thread;
use crate::executor::CoreShared;

type Job = Box<dyn FnOnce() + Send>;

/// What a job leaves: its result, or the panic that the asking core goes on with.
pub(crate) type JobResult<R> = Result<R, Box<dyn Any + Send>>;

/// A thread that found nothing to do for this long ends.
const IDLE: Duration = Duration::from_secs(10);

/// Threads start on demand, up to the bound, and end when idle. Jobs beyond the bound queue; each
/// job has a task that waits for it, so the queue is as bounded as the tasks are.
#[derive(Clone)]
pub(crate) struct Pool(Arc<Shared>);

struct Shared {
    name: &'static str,
    max_threads: usize,
    jobs: Sender<Job>,
    queue: Receiver<Job>,
    threads: AtomicUsize,
    idle: AtomicUsize,
}

impl Pool {
    pub(crate) fn new(name: &'static str, max_threads: usize) -> Self {
        let (jobs, queue) = unbounded();
        Self(Arc::new(Shared {
            name,
            max_threads: max_threads.max(1),
            jobs,
            queue,
            threads: AtomicUsize::new(0),
            idle: AtomicUsize::new(0),
        }))
    }

    /// Runs `job` on a pool thread and sends its result to `core` under `key`.
    pub(crate) fn run<R: Send + 'static>(
        &self,
        core: Arc<CoreShared>,
        key: u64,
        job: impl FnOnce() -> R + Send + 'static,
    ) {
        self.submit(Box::new(move || {
            let result: JobResult<R> = catch_unwind(AssertUnwindSafe(job));
            core.answer(key, Box::new(result));
        }));
    }

    pub(crate) fn submit(&self, job: Job) {
        let shared = &self.0;
        shared
            .jobs
            .send(job)
            .expect("the pool holds the other end of its queue");
        // Either an idle thread sees the job, or we see that there is none: see `work`.
        if shared.queue.len() <= shared.idle.load(Ordering::SeqCst) {
            return;
        }
        let claimed = shared
            .threads
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |threads| {
                (threads < shared.max_threads).then_some(threads + 1)
            });
        if claimed.is_err() {
            return;
        }
        let pool = Arc::clone(shared);
        if spawn_thread(shared.name.to_owned(), move || work(&pool)).is_err() {
            // No thread to be had: one that exists takes the job; with none at all, this thread
            // must, or nobody ever would.
            if shared.threads.fetch_sub(1, Ordering::SeqCst) == 1 {
                while let Ok(job) = shared.queue.try_recv() {
                    job();
                }
            }
        }
    }
}

fn work(shared: &Shared) {
    loop {
        while let Ok(job) = shared.queue.try_recv() {
            job();
        }
        shared.idle.fetch_add(1, Ordering::SeqCst);
        let next = shared.queue.recv_timeout(IDLE);
        shared.idle.fetch_sub(1, Ordering::SeqCst);
        match next {
            Ok(job) => job(),
            Err(_) => {
                // A job sent while this thread still counted as idle is visible by now.
                match shared.queue.try_recv() {
                    Ok(job) => job(),
                    Err(_) => break,
                }
            }
        }
    }
    shared.threads.fetch_sub(1, Ordering::SeqCst);
}
