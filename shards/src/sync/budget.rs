use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use super::waiters::Waiters;

struct State {
    capacity: u64,
    /// May pass the capacity by what one permit has grown beyond it.
    used: u64,
    overdrawn: bool,
    /// How often somebody had to wait.
    waits: u64,
    /// Who wants a permit.
    waiters: Waiters,
    /// Who has one and wants more.
    growing: Waiters,
}

impl State {
    /// Whether `bytes` can be taken so that `spare` stay free.
    fn fits(&self, bytes: u64, spare: u64) -> bool {
        let taken = self.used.saturating_add(bytes).saturating_add(spare);
        taken <= self.capacity
    }
}

/// A bounded number of bytes to hand out; first come, first served, so that a large request is
/// not starved by small ones.
///
/// Permits may grow. Holders of permits that wait for each other's memory would wait for ever, so
/// one permit at a time may grow beyond the budget: see [`Permit::grow_to`].
#[derive(Clone)]
pub struct ByteBudget(Rc<RefCell<State>>);

impl ByteBudget {
    pub fn new(capacity: u64) -> Self {
        Self(Rc::new(RefCell::new(State {
            capacity,
            used: 0,
            overdrawn: false,
            waits: 0,
            waiters: Waiters::default(),
            growing: Waiters::default(),
        })))
    }

    pub fn capacity(&self) -> u64 {
        self.0.borrow().capacity
    }

    pub fn in_use(&self) -> u64 {
        self.0.borrow().used
    }

    /// Whether somebody waits for bytes.
    pub fn is_contended(&self) -> bool {
        let state = self.0.borrow();
        state.waiters.first().is_some() || state.growing.first().is_some()
    }

    /// How often somebody had to wait for bytes so far.
    pub fn waits(&self) -> u64 {
        self.0.borrow().waits
    }

    /// How many wait for bytes now.
    pub fn waiting(&self) -> usize {
        let state = self.0.borrow();
        state.waiters.len() + state.growing.len()
    }

    /// Waits until `bytes` are free. More than the whole budget is granted as the whole budget:
    /// such a request runs alone instead of never.
    pub fn reserve(&self, bytes: u64) -> Reserve {
        Reserve {
            budget: self.clone(),
            bytes,
            number: None,
        }
    }

    /// Takes `bytes` when they are free and nobody waits before.
    pub fn try_reserve(&self, bytes: u64) -> Option<Permit> {
        self.take(bytes, None)
    }

    fn take(&self, bytes: u64, number: Option<u64>) -> Option<Permit> {
        let mut state = self.0.borrow_mut();
        let bytes = bytes.min(state.capacity);
        let in_turn = match state.waiters.first() {
            None => true,
            first => first == number,
        };
        if !in_turn || !state.fits(bytes, 0) {
            return None;
        }
        state.used += bytes;
        Some(Permit {
            budget: self.clone(),
            bytes,
            overdraws: false,
        })
    }

    /// Lets the first of those who grow and the first waiter try; each that succeeds calls this again.
    fn wake_first(&self) {
        let wakers = {
            let state = self.0.borrow();
            [state.growing.first_waker(), state.waiters.first_waker()]
        };
        for waker in wakers.into_iter().flatten() {
            waker.wake();
        }
    }

    /// Takes back what a permit gives up.
    fn give_back(&self, bytes: u64, overdraft_ends: bool) {
        {
            let mut state = self.0.borrow_mut();
            state.used -= bytes;
            if overdraft_ends {
                state.overdrawn = false;
            }
        }
        self.wake_first();
    }

    fn leave(&self, number: u64) {
        let waker = self.0.borrow_mut().waiters.remove(number);
        drop(waker);
        self.wake_first();
    }
}

/// See [`ByteBudget::reserve`].
#[must_use = "futures do nothing unless awaited"]
pub struct Reserve {
    budget: ByteBudget,
    bytes: u64,
    number: Option<u64>,
}

impl Future for Reserve {
    type Output = Permit;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Permit> {
        if let Some(permit) = self.budget.take(self.bytes, self.number) {
            if let Some(number) = self.number.take() {
                self.budget.leave(number);
            }
            return Poll::Ready(permit);
        }
        let number = {
            let mut state = self.budget.0.borrow_mut();
            state.waits += u64::from(self.number.is_none());
            state.waiters.wait(self.number, context.waker())
        };
        self.number = Some(number);
        Poll::Pending
    }
}

impl Drop for Reserve {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.budget.leave(number);
        }
    }
}

/// Bytes taken from a budget; dropping it gives them back.
pub struct Permit {
    budget: ByteBudget,
    bytes: u64,
    /// The one that has grown beyond the budget.
    overdraws: bool,
}

impl Permit {
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Gives back all but `bytes`, when they turn out to be enough.
    pub fn shrink_to(&mut self, bytes: u64) {
        if bytes < self.bytes {
            let unused = self.bytes - bytes;
            self.bytes = bytes;
            self.budget.give_back(unused, false);
        }
    }

    /// Waits until this permit can be `bytes` large, so that `spare` bytes stay free for others.
    ///
    /// Where neither is to be had, one permit at a time gets its bytes beyond the budget, and keeps
    /// that right until it is dropped; the others wait. So somebody always comes to an end, and the
    /// budget is passed by no more than the largest single permit.
    pub fn grow_to(&mut self, bytes: u64, spare: u64) -> Grow<'_> {
        Grow {
            permit: self,
            bytes,
            spare,
            number: None,
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.budget.give_back(self.bytes, self.overdraws);
    }
}

/// See [`Permit::grow_to`].
#[must_use = "futures do nothing unless awaited"]
pub struct Grow<'a> {
    permit: &'a mut Permit,
    bytes: u64,
    spare: u64,
    number: Option<u64>,
}

impl Grow<'_> {
    /// Takes what is missing, if it can be had now and is this permit's turn.
    fn take(&mut self) -> bool {
        let more = self.bytes.saturating_sub(self.permit.bytes);
        let mut state = self.permit.budget.0.borrow_mut();
        let in_turn = state
            .growing
            .first()
            .is_none_or(|first| Some(first) == self.number);
        let granted = more == 0
            || self.permit.overdraws
            || (in_turn && (state.fits(more, self.spare) || !state.overdrawn));
        if granted {
            if more > 0 && !self.permit.overdraws && !state.fits(more, self.spare) {
                state.overdrawn = true;
                self.permit.overdraws = true;
            }
            state.used += more;
            self.permit.bytes += more;
        }
        granted
    }

    fn leave(&mut self) {
        let Some(number) = self.number.take() else {
            return;
        };
        let waker = self.permit.budget.0.borrow_mut().growing.remove(number);
        drop(waker);
        self.permit.budget.wake_first();
    }
}

impl Future for Grow<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.take() {
            self.leave();
            return Poll::Ready(());
        }
        let number = {
            let mut state = self.permit.budget.0.borrow_mut();
            state.waits += u64::from(self.number.is_none());
            state.growing.wait(self.number, context.waker())
        };
        self.number = Some(number);
        Poll::Pending
    }
}

impl Drop for Grow<'_> {
    fn drop(&mut self) {
        self.leave();
    }
}
