use std::collections::VecDeque;
use std::task::Waker;

/// Wakers in the order in which their futures first waited, each under a number.
#[derive(Default)]
pub(crate) struct Waiters {
    queue: VecDeque<(u64, Waker)>,
    next: u64,
}

impl Waiters {
    /// Adds a waker, or renews that of `number`; returns the number.
    pub(crate) fn wait(&mut self, number: Option<u64>, waker: &Waker) -> u64 {
        if let Some(number) = number
            && let Ok(at) = self.queue.binary_search_by_key(&number, |(n, _)| *n)
        {
            self.queue[at].1.clone_from(waker);
            return number;
        }
        let number = self.next;
        self.next += 1;
        self.queue.push_back((number, waker.clone()));
        number
    }

    pub(crate) fn remove(&mut self, number: u64) -> Option<Waker> {
        let at = self.queue.binary_search_by_key(&number, |(n, _)| *n).ok()?;
        self.queue.remove(at).map(|(_, waker)| waker)
    }

    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    pub(crate) fn first(&self) -> Option<u64> {
        self.queue.front().map(|(number, _)| *number)
    }

    pub(crate) fn first_waker(&self) -> Option<Waker> {
        self.queue.front().map(|(_, waker)| waker.clone())
    }

    pub(crate) fn take_all(&mut self) -> Vec<Waker> {
        self.queue.drain(..).map(|(_, waker)| waker).collect()
    }
}
