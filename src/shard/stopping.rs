//! The flag that ends everything in order.

use std::cell::Cell;

use shards::sync::Event;

/// Raised once, when the broker stops.
#[derive(Default)]
pub struct Stopping {
    raised: Cell<bool>,
    event: Event,
}

impl Stopping {
    /// Asks everything on this core to end.
    pub fn raise(&self) {
        self.raised.set(true);
        self.event.notify_all();
    }

    /// Whether the broker stops.
    pub fn is_raised(&self) -> bool {
        self.raised.get()
    }

    /// Waits until the broker stops.
    pub async fn wait(&self) {
        while !self.raised.get() {
            self.event.wait().await;
        }
    }
}
