//! The broker's listeners that are open, on the core that accepts.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use super::Stopping;

/// One listener that is open.
#[derive(Clone)]
pub struct OpenListener {
    /// What its connections are marked with.
    pub index: usize,
    /// Raised when it shall accept no more.
    pub closing: Rc<Stopping>,
}

/// All of them, by name. Empty until the broker serves.
#[derive(Default)]
pub struct OpenListeners {
    open: RefCell<BTreeMap<String, OpenListener>>,
    /// The next index of one that the configuration did not have at the start.
    next: Cell<usize>,
}

impl OpenListeners {
    /// Notes one of the configuration of the start, by its index there.
    pub fn add(&self, name: &str, index: usize) -> OpenListener {
        self.next.set(self.next.get().max(index + 1));
        let mut open = self.open.borrow_mut();
        let added = || OpenListener {
            index,
            closing: Rc::default(),
        };
        open.entry(name.to_owned()).or_insert_with(added).clone()
    }

    /// Notes one that came later. Nobody is told of it, so its index names none that the node registered.
    pub fn add_later(&self, name: &str) -> OpenListener {
        self.add(name, self.next.get())
    }

    /// Whether one of this name is open.
    pub fn has(&self, name: &str) -> bool {
        self.open.borrow().contains_key(name)
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.open.borrow().is_empty()
    }

    /// Takes out those that are not `wanted`.
    pub fn take_others(&self, wanted: impl Fn(&str) -> bool) -> Vec<(String, OpenListener)> {
        let mut open = self.open.borrow_mut();
        let all = std::mem::take(&mut *open);
        let (stay, go): (BTreeMap<_, _>, BTreeMap<_, _>) =
            all.into_iter().partition(|(name, _)| wanted(name));
        *open = stay;
        go.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_that_comes_later_has_an_index_of_its_own() {
        let listeners = OpenListeners::default();
        assert_eq!(listeners.add("A", 0).index, 0);
        assert_eq!(listeners.add("B", 1).index, 1);
        assert_eq!(listeners.add("B", 1).index, 1, "its second address");
        assert_eq!(listeners.add_later("C").index, 2);
        let gone = listeners.take_others(|name| name != "C");
        assert_eq!(gone.len(), 1);
        assert!(listeners.has("A") && !listeners.has("C"));
        assert_eq!(
            listeners.add_later("D").index,
            3,
            "C's connections may still be there"
        );
    }
}
