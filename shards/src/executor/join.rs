use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::TaskHeader;
use crate::Core;

/// The task was aborted, or its core stopped, before it had a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aborted;

impl fmt::Display for Aborted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the task was aborted")
    }
}

impl std::error::Error for Aborted {}

pub(crate) struct JoinState<T> {
    result: RefCell<Option<T>>,
    ended: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

/// Lives inside the task: marks its end however it ends, by result, abort or shutdown.
pub(crate) struct JoinGuard<T>(Rc<JoinState<T>>);

impl<T> JoinGuard<T> {
    pub(crate) fn new() -> Self {
        Self(Rc::new(JoinState {
            result: RefCell::new(None),
            ended: Cell::new(false),
            waker: RefCell::new(None),
        }))
    }

    /// The other end, for the handle.
    pub(crate) fn state(&self) -> Rc<JoinState<T>> {
        Rc::clone(&self.0)
    }

    pub(crate) fn finish(self, result: T) {
        *self.0.result.borrow_mut() = Some(result);
    }
}

impl<T> Drop for JoinGuard<T> {
    fn drop(&mut self) {
        self.0.ended.set(true);
        let waker = self.0.waker.borrow_mut().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// A handle to a spawned task: await its result, or abort it. Dropping the handle detaches.
pub struct JoinHandle<T> {
    core: Core,
    header: Arc<TaskHeader>,
    state: Rc<JoinState<T>>,
}

impl<T> JoinHandle<T> {
    pub(crate) fn new(core: Core, header: Arc<TaskHeader>, state: Rc<JoinState<T>>) -> Self {
        Self {
            core,
            header,
            state,
        }
    }

    /// Drops the task's future now (or, from inside that task, as soon as it next yields).
    /// Kernel operations in flight are cancelled or left to end by themselves; see the crate docs.
    pub fn abort(&self) {
        self.core.abort_task(&self.header);
    }

    pub fn is_finished(&self) -> bool {
        self.state.ended.get()
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, Aborted>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.state.ended.get() {
            return Poll::Ready(self.state.result.borrow_mut().take().ok_or(Aborted));
        }
        *self.state.waker.borrow_mut() = Some(context.waker().clone());
        Poll::Pending
    }
}
