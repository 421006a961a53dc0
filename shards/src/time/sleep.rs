use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::{Instant, TimerKey};
use crate::Core;

/// The time given to [`Core::timeout`] has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elapsed;

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the time allowed has passed")
    }
}

impl std::error::Error for Elapsed {}

impl From<Elapsed> for std::io::Error {
    fn from(_: Elapsed) -> Self {
        std::io::ErrorKind::TimedOut.into()
    }
}

/// Ready once its deadline has passed. Dropping it disarms the timer.
#[must_use = "futures do nothing unless awaited"]
pub struct Sleep {
    core: Core,
    deadline: Instant,
    armed: Option<TimerKey>,
}

impl Sleep {
    pub(crate) fn new(core: Core, deadline: Instant) -> Self {
        Self {
            core,
            deadline,
            armed: None,
        }
    }

    pub fn deadline(&self) -> Instant {
        self.deadline
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.core.now() >= self.deadline {
            if let Some(key) = self.armed.take() {
                self.core.timers().disarm(key);
            }
            return Poll::Ready(());
        }
        let armed = match self.armed {
            Some(key) => self.core.timers().rewake(key, context.waker()),
            None => false,
        };
        if !armed {
            let key = self
                .core
                .timers()
                .arm(self.deadline, context.waker().clone());
            self.armed = Some(key);
        }
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(key) = self.armed.take() {
            self.core.timers().disarm(key);
        }
    }
}
