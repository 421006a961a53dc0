//! The backend on io_uring: one ring per core, one io_uring_enter(2) a turn.

mod files;
mod listener;
mod op;
mod probe;
mod socket;

use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::rc::Rc;
use std::time::Duration;

use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{EnterFlags, IoUring, cqueue, opcode, squeue};

use super::Wait;
use super::recv_pool::{RECV_GROUP, RecvPool};
use crate::Core;
use crate::executor::CoreShared;
use crate::metrics::Counters;
use crate::sys;
use op::{LeftOver, OnDrop, Ops};

pub(crate) use listener::RingListener;
use op::Op;
pub(crate) use probe::{Refusal, explain, probe};
pub(crate) use socket::RingSocket;

/// Operations that may gather between two enters; more are handed over at once.
const SUBMISSION_ENTRIES: u32 = 256;
/// Completions that may wait to be taken; the kernel keeps more in a list of its own.
const COMPLETION_ENTRIES: u32 = 4096;

/// `user_data` of the poll on the core's wake-up event, and of cancellations.
const WAKE_UP: u64 = u64::MAX;
const CANCELLATION: u64 = u64::MAX - 1;
/// `user_data` of operations that do nothing; they post no completion.
const NOTHING: u64 = u64::MAX - 2;

/// From so many operations in one call on, the kernel gathers what they write: neighbouring blocks become one request to the
/// disk, and the disk is told once of all requests.
const GATHERED_FROM: usize = 3;

/// How long a stopping core waits for the kernel to let go of its memory.
const SHUT_DOWN_WAIT: Duration = Duration::from_secs(10);

pub(crate) struct RingDriver {
    ring: RefCell<IoUring>,
    ops: RefCell<Ops>,
    completions: RefCell<Vec<(u64, i32, u32)>>,
    pub(super) recv_pool: Rc<RecvPool>,
    pub(super) counters: Rc<Counters>,
    wait_flags: EnterFlags,
    wake_up_armed: Cell<bool>,
    /// Writes are among the operations to hand over.
    gathers: Cell<bool>,
    /// Operations could not all be submitted or completions not all be taken: do not wait.
    congested: Cell<bool>,
}

/// A ring as this backend uses it. Must be made on the thread that will submit to it.
fn build_ring() -> io::Result<IoUring> {
    IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_taskrun_flag()
        .setup_submit_all()
        .setup_cqsize(COMPLETION_ENTRIES)
        .setup_clamp()
        .build(SUBMISSION_ENTRIES)
}

/// Has the kernel's workers for this ring run on one CPU; where it refuses, they run anywhere, which is slower and no more. The thread sleeps or goes on when they have something to do, so that
/// a switch on the same CPU is enough; waking another one out of its sleep costs several times the work of a small
/// buffered write.
fn keep_workers_on(ring: &IoUring, cpu: usize) {
    if cpu >= libc::CPU_SETSIZE as usize {
        return;
    }
    // SAFETY: a mask of zeros is one without CPUs, and the index lies in the mask.
    let mask = unsafe {
        let mut mask: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut mask);
        mask
    };
    let _ = ring.submitter().register_iowq_aff(&mask);
}

impl RingDriver {
    /// With a CPU, what the kernel cannot do at once its workers do on that one too, where the thread is tied to it.
    pub(crate) fn new(
        recv_pool_bytes: usize,
        counters: Rc<Counters>,
        cpu: Option<usize>,
    ) -> io::Result<Rc<Self>> {
        let ring = build_ring()?;
        if let Some(cpu) = cpu {
            keep_workers_on(&ring, cpu);
        }
        let recv_pool =
            RecvPool::provided(recv_pool_bytes, Rc::clone(&counters), |base, entries| {
                // SAFETY: the pool owns the memory of `entries` entries at `base` and outlives the
                // registration: a driver that drops with operations in flight leaks it, see
                // `shut_down`, and one without drops the ring (first field) before the pool.
                unsafe {
                    ring.submitter()
                        .register_buf_ring_with_flags(base, entries, RECV_GROUP, 0)
                }
            })?;
        let wait_flags = if ring.params().is_feature_no_iowait() {
            EnterFlags::NO_IOWAIT
        } else {
            EnterFlags::empty()
        };
        Ok(Rc::new(Self {
            ring: RefCell::new(ring),
            ops: RefCell::default(),
            completions: RefCell::default(),
            recv_pool,
            counters,
            wait_flags,
            wake_up_armed: Cell::new(false),
            gathers: Cell::new(false),
            congested: Cell::new(false),
        }))
    }

    /// Queues an entry for the next enter.
    fn push(&self, entry: &squeue::Entry) {
        let mut ring = self.ring.borrow_mut();
        self.counters.submissions.one();
        loop {
            // SAFETY: entries come from `Op::submit`, whose slot keeps what they point to until
            // their completion, or point to nothing (polls, cancellations).
            if unsafe { ring.submission().push(entry) }.is_ok() {
                return;
            }
            self.counters.enters.one();
            if let Err(error) = ring.submit() {
                assert!(is_passing(&error), "io_uring_enter: {error}");
                // The kernel wants completions to be taken first. They are kept for `turn`.
                self.take_completions(&mut ring);
            }
        }
    }

    pub(crate) fn turn(&self, core: &Core, wait: Wait) {
        if !self.wake_up_armed.replace(true) {
            self.arm_wake_up(core.shared());
        }
        let wait = if self.congested.take() {
            Wait::No
        } else {
            wait
        };
        let mut span = Timespec::new();
        let mut args = SubmitArgs::new();
        if let Wait::Until(at) = wait {
            span = Timespec::from(at.saturating_duration_since(core.now()));
        }
        if let Wait::Until(_) = wait {
            args = args.timespec(&span);
        }
        self.enter(wait != Wait::No, &args);
        self.dispatch(Some(core));
    }

    /// One system call: submits, runs the kernel's deferred work, and waits if told to. None at
    /// all when there is nothing to submit and the kernel has nothing to run.
    fn enter(&self, wait: bool, args: &SubmitArgs<'_, '_>) {
        let mut ring = self.ring.borrow_mut();
        if self.gathers.take() {
            fill_up(&mut ring);
        }
        let idle = {
            let submission = ring.submission();
            submission.is_empty() && !submission.taskrun() && !submission.cq_overflow()
        };
        let waits = wait && ring.completion().is_empty() && self.completions.borrow().is_empty();
        if waits || !idle {
            let flags = if waits {
                self.wait_flags
            } else {
                EnterFlags::empty()
            };
            self.counters.enters.one();
            let entered =
                ring.submitter()
                    .submit_with_args_and_flags(usize::from(waits), args, flags);
            if let Err(error) = entered {
                // ETIME ends a wait, EINTR is a signal.
                let expected = matches!(error.raw_os_error(), Some(libc::ETIME | libc::EINTR));
                if !expected {
                    assert!(is_passing(&error), "io_uring_enter: {error}");
                    self.congested.set(true);
                }
            }
        }
        self.take_completions(&mut ring);
    }

    fn take_completions(&self, ring: &mut IoUring) {
        let mut taken = self.completions.borrow_mut();
        taken.extend(
            ring.completion()
                .map(|cqe| (cqe.user_data(), cqe.result(), cqe.flags())),
        );
    }

    /// Files the completions taken and wakes who waits for them.
    fn dispatch(&self, core: Option<&Core>) {
        let mut completions = std::mem::take(&mut *self.completions.borrow_mut());
        self.counters.completions.add(completions.len() as u64);
        for (key, result, flags) in completions.drain(..) {
            match key {
                CANCELLATION | NOTHING => {}
                WAKE_UP => {
                    if let Some(core) = core
                        && !cqueue::more(flags)
                    {
                        self.arm_wake_up(core.shared());
                    }
                }
                key => self.complete(key, result, flags),
            }
        }
        let mut slot = self.completions.borrow_mut();
        if slot.is_empty() {
            *slot = completions; // keeps its capacity
        }
    }

    fn complete(&self, key: u64, result: i32, flags: u32) {
        let forgotten = self.ops.borrow_mut().complete(key, result, flags);
        // Nobody waits: what the operation held goes now, and what it brought must not leak.
        if let Some((held, left_over)) = forgotten {
            match left_over {
                LeftOver::Buffer => {
                    if let Some(index) = cqueue::buffer_select(flags) {
                        drop(self.recv_pool.taken(index));
                    }
                }
                LeftOver::Descriptor if result >= 0 => {
                    // SAFETY: a successful accept gives a new descriptor that nobody else knows.
                    drop(unsafe { OwnedFd::from_raw_fd(result) });
                }
                LeftOver::Descriptor | LeftOver::Nothing => {}
            }
            drop(held);
        }
    }

    /// A multishot poll: every signal of the event posts a completion; the event is never read,
    /// so that no memory is in the kernel's hands.
    fn arm_wake_up(&self, shared: &CoreShared) {
        let event = Fd(shared.event().as_fd().as_raw_fd());
        let entry = opcode::PollAdd::new(event, libc::POLLIN as u32)
            .multi(true)
            .build();
        self.push(&entry.user_data(WAKE_UP));
    }

    pub(crate) fn operations_in_flight(&self) -> usize {
        self.ops.borrow().len()
    }

    fn cancel(&self, key: u64) {
        self.push(
            &opcode::AsyncCancel::new(key)
                .build()
                .user_data(CANCELLATION),
        );
    }

    /// Waits until a poll(2) for `events` on the descriptor would return.
    pub(crate) async fn poll_once(
        self: &Rc<Self>,
        fd: &Rc<OwnedFd>,
        events: libc::c_short,
    ) -> io::Result<()> {
        let held = Box::new(Rc::clone(fd));
        let op = Op::submit(self, held, LeftOver::Nothing, OnDrop::Cancel, |fd| {
            opcode::PollAdd::new(Fd(fd.as_raw_fd()), events as u32).build()
        });
        op.await.0.value().map(drop)
    }

    /// Waits until the kernel has let go of everything. What it keeps beyond a limit (a disk that
    /// hangs) is leaked: memory that the kernel may write to is never given to anybody else.
    pub(crate) fn shut_down(&self) {
        let waiting = self.ops.borrow().cancellable();
        for key in waiting {
            self.cancel(key);
        }
        let end = sys::monotonic() + SHUT_DOWN_WAIT;
        let tick = Timespec::from(Duration::from_millis(100));
        let args = SubmitArgs::new().timespec(&tick);
        while !self.ops.borrow().is_empty() && sys::monotonic() < end {
            self.enter(true, &args);
            self.ops.borrow_mut().forget_all();
            self.dispatch(None);
            self.ops.borrow_mut().sweep_done();
        }
        if !self.ops.borrow().is_empty() {
            self.ops.borrow_mut().leak();
            std::mem::forget(Rc::clone(&self.recv_pool));
        }
    }
}

/// Makes two operations enough to be gathered: the parts of one write are two.
fn fill_up(ring: &mut IoUring) {
    let mut submission = ring.submission();
    if submission.len() + 1 != GATHERED_FROM {
        return;
    }
    let nothing = opcode::Nop::new().build().user_data(NOTHING);
    // SAFETY: a no-op points to nothing. Where it finds no room, the writes go out as they are.
    let _ = unsafe { submission.push(&nothing.flags(squeue::Flags::SKIP_SUCCESS)) };
}

/// EBUSY and EAGAIN: the kernel wants completions to be taken, or lacks memory for the moment.
fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EBUSY | libc::EAGAIN | libc::EINTR)
    )
}
