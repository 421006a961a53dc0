//! Having a log's files for oneself: for rest, truncation and closing.

use super::LogInner;
use std::rc::Rc;

/// While it lives no write is under way and none starts. Appends still get offsets and queue up, unless refused too.
pub(crate) struct Hold {
    log: Rc<LogInner>,
}

impl LogInner {
    /// Waits until the write under way has completed and earlier holds are over.
    pub async fn hold(self: &Rc<Self>) -> Hold {
        self.state.borrow_mut().hold_waiters += 1;
        let waiting = Waiting(self.clone());
        loop {
            {
                let mut state = self.state.borrow_mut();
                if !state.held && !state.writing {
                    state.held = true;
                    drop(state);
                    drop(waiting);
                    return Hold { log: self.clone() };
                }
            }
            self.quiet.wait().await;
        }
    }
}

/// Takes the waiter off the count, also when its future is dropped.
struct Waiting(Rc<LogInner>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.state.borrow_mut().hold_waiters -= 1;
        self.0.start_writer();
    }
}

impl LogInner {
    /// Waits until the queue is written, or failed.
    pub async fn drain(self: &Rc<Self>) {
        loop {
            {
                let state = self.state.borrow();
                if state.queue.is_empty() && !state.writing {
                    return;
                }
            }
            self.quiet.wait().await;
        }
    }

    /// Refuses appends until the answer is dropped: for operations that move the end of the log.
    pub fn refuse_appends(self: &Rc<Self>) -> Refusal {
        self.state.borrow_mut().refusals += 1;
        Refusal { log: self.clone() }
    }
}

/// While it lives appends are answered with `Busy`.
pub(crate) struct Refusal {
    log: Rc<LogInner>,
}

impl Drop for Refusal {
    fn drop(&mut self) {
        self.log.state.borrow_mut().refusals -= 1;
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.log.state.borrow_mut().held = false;
        self.log.quiet.notify_all();
        self.log.start_writer();
    }
}
