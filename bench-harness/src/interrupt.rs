//! Ctrl-C: the first asks for the end and keeps what was measured, the second ends the process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Error, Result, anyhow, ensure};
use signal_hook::consts::SIGINT;
use signal_hook::flag;

/// What shells show of a process that SIGINT ended.
const EXIT_CODE: i32 = 128 + SIGINT;
/// How often those look who wait for something else.
const BETWEEN: Duration = Duration::from_millis(20);

/// Whether the run was interrupted; seen by all threads.
#[derive(Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Listens for Ctrl-C from now on.
    pub fn listen() -> Result<Self> {
        let interrupt = Self::default();
        // In this order: what the first signal sets, only the second finds set.
        flag::register_conditional_shutdown(SIGINT, EXIT_CODE, interrupt.0.clone())?;
        flag::register(SIGINT, interrupt.0.clone())?;
        Ok(interrupt)
    }

    pub fn came(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// # Errors
    /// When it came.
    pub fn check(&self) -> Result<()> {
        ensure!(!self.came(), "interrupted");
        Ok(())
    }

    /// Waits until it comes, or for so long: why nobody waits any longer.
    pub async fn or_after(&self, limit: Duration) -> Error {
        let begin = Instant::now();
        while begin.elapsed() < limit {
            if let Err(interrupted) = self.check() {
                return interrupted;
            }
            glommio::timer::sleep(BETWEEN).await;
        }
        anyhow!("no answer within {} s", limit.as_secs())
    }
}
