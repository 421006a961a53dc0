//! When a measurement ends before its time, and how long answers under way are waited for after its end. Whatever waits for
//! a target is dropped then: nothing that a target fails to do keeps a run from its end.

use std::sync::Arc;
use std::time::Duration;

use crate::interrupt::Interrupt;
use crate::measure::{Phases, Pulse};

/// A target that owes answers and gives none for so long is gone.
const SILENCE: Duration = Duration::from_secs(10);
/// How long answers may take after the window...
const AFTER_WINDOW: Duration = Duration::from_secs(10);
/// ...and after an interrupt or an error, when somebody waits for the end.
const AFTER_STOP: Duration = Duration::from_secs(3);
/// More than this between two looks is the generator's own sleep, in which it would not have heard an answer.
const LONGEST_STEP: Duration = Duration::from_millis(200);

/// Looks at a measurement from outside, again and again, and ends it where that is due.
pub struct Ending<'a> {
    phases: &'a Phases,
    pulses: Vec<Arc<Pulse>>,
    interrupt: &'a Interrupt,
    /// How long a healthy target may keep a request.
    longest_wait: Duration,
    silence: Silence,
}

impl<'a> Ending<'a> {
    pub fn new(
        phases: &'a Phases,
        pulses: Vec<Arc<Pulse>>,
        longest_wait: Duration,
        interrupt: &'a Interrupt,
    ) -> Self {
        Self {
            phases,
            pulses,
            interrupt,
            longest_wait,
            silence: Silence::default(),
        }
    }

    pub fn have_all_ended(&self) -> bool {
        self.pulses.iter().all(|pulse| pulse.has_ended())
    }

    /// Looks once. Why the measurement is not whole, where this look is what ends it.
    pub fn look(&mut self) -> Option<String> {
        self.look_at(self.phases.now())
    }

    fn look_at(&mut self, now: u64) -> Option<String> {
        let read = self.pulses.iter().map(|pulse| pulse.read());
        let (answered, waiting) = read.fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
        let silent = self.silence.lasts(now, answered, waiting);
        if let Some(stopped) = self.phases.stopped_at() {
            if now > stopped + nanos(AFTER_STOP) {
                self.phases.abandon();
            }
            return None;
        }
        if self.interrupt.came() {
            crate::say(
                "interrupted: it ends with what was measured; once more, and it ends at once",
            );
            self.phases.stop();
            return Some("interrupted".to_owned());
        }
        let patience = SILENCE + self.longest_wait;
        if silent >= nanos(patience) {
            self.phases.abandon();
            return Some(format!(
                "the target is gone: no answer for {} s, to {waiting} requests",
                patience.as_secs()
            ));
        }
        let patience = AFTER_WINDOW + self.longest_wait;
        let end = self.phases.window().end;
        if now > end.saturating_add(nanos(patience)) {
            self.phases.abandon();
            return Some(format!(
                "it went on for {} s after its time, with {waiting} requests without an answer",
                patience.as_secs()
            ));
        }
        None
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// For how long requests have waited without any answer.
#[derive(Default)]
struct Silence {
    looked_at: u64,
    answered: u64,
    lasts: u64,
}

impl Silence {
    fn lasts(&mut self, now: u64, answered: u64, waiting: u64) -> u64 {
        let step = now.saturating_sub(self.looked_at).min(nanos(LONGEST_STEP));
        if waiting == 0 || answered != self.answered {
            self.lasts = 0;
        } else {
            self.lasts += step;
        }
        (self.looked_at, self.answered) = (now, answered);
        self.lasts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TENTH: u64 = 100_000_000;

    /// A look every tenth of a second: answers so far, and requests without one.
    fn longest(looks: impl Iterator<Item = (u64, u64)>) -> u64 {
        let mut silence = Silence::default();
        let lasts = looks
            .zip(1..)
            .map(|((answered, waiting), tenth)| silence.lasts(tenth * TENTH, answered, waiting));
        lasts.max().unwrap_or(0)
    }

    #[test]
    fn silence_is_no_answer_while_requests_wait() {
        assert_eq!(
            longest((0..50).map(|_| (7, 3))),
            49 * TENTH,
            "one look after the answer"
        );
        assert_eq!(longest((0..50).map(|_| (7, 0))), 0, "nobody asked");
        assert_eq!(
            longest((0..50).map(|look| (look / 5 + 1, 3))),
            4 * TENTH,
            "an answer now and then"
        );
    }

    #[test]
    fn a_generator_that_slept_does_not_take_its_sleep_for_silence() {
        let mut silence = Silence::default();
        silence.lasts(TENTH, 7, 3);
        assert_eq!(silence.lasts(600_000_000_000, 7, 3), 2 * TENTH);
    }

    #[test]
    fn after_a_stop_answers_have_a_moment_and_whoever_stopped_says_why() {
        let (phases, interrupt) = (
            Phases::new(Duration::ZERO, Duration::MAX),
            Interrupt::default(),
        );
        let mut ending = Ending::new(&phases, Vec::new(), Duration::ZERO, &interrupt);
        phases.stop();
        let stopped = phases.stopped_at().expect("a moment");
        assert_eq!(ending.look_at(stopped + 10 * TENTH), None);
        assert!(!phases.is_abandoned());
        assert_eq!(ending.look_at(stopped + 31 * TENTH), None);
        assert!(phases.is_abandoned());
    }

    #[test]
    fn what_goes_on_long_after_its_time_is_abandoned_with_a_reason() {
        let second = Duration::from_secs(1);
        let (phases, interrupt) = (Phases::new(Duration::ZERO, second), Interrupt::default());
        let mut ending = Ending::new(&phases, Vec::new(), second, &interrupt);
        assert_eq!(ending.look_at(119 * TENTH), None);
        assert!(!phases.is_stopped(), "the end of the window is no stop");
        let reason = ending.look_at(121 * TENTH).expect("a reason");
        assert!(reason.contains("11 s after its time"), "{reason}");
        assert!(phases.is_abandoned());
    }
}
