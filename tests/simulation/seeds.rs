//! Many seeds, on every CPU: a world is one thread's, so they run side by side.

use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use crate::run::{Outcome, run};

/// What came of one seed.
pub struct Tried {
    pub seed: u64,
    pub outcome: Outcome,
}

/// A run whose panic is a finding too.
pub fn try_seed(seed: u64) -> Tried {
    let outcome = catch_unwind(AssertUnwindSafe(|| run(seed)));
    let outcome = outcome.unwrap_or_else(|panic| Outcome {
        digest: (0, 0),
        violation: Some(format!("panic: {}", text_of(&*panic))),
        checks: 0,
        simulated: Duration::ZERO,
    });
    Tried { seed, outcome }
}

fn text_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("without words").to_owned()
}

/// Tries all of these; with `until_found`, ends after the first violation.
pub fn try_all(seeds: &[u64], until_found: bool, before: impl Fn() + Sync) -> Vec<Tried> {
    let (next, found) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (sender, receiver) = channel();
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let (sender, next, found, before) = (sender.clone(), &next, &found, &before);
            scope.spawn(move || {
                before();
                while let Some(seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if until_found && found.load(Ordering::Relaxed) {
                        return;
                    }
                    let tried = try_seed(*seed);
                    found.fetch_or(tried.outcome.violation.is_some(), Ordering::Relaxed);
                    sender.send(tried).expect("the receiver waits");
                }
            });
        }
    });
    drop(sender);
    let mut tried: Vec<Tried> = receiver.into_iter().collect();
    tried.sort_by_key(|tried| tried.seed);
    tried
}
