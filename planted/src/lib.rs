//! Bugs planted on purpose, so that it is known what the simulation finds.
//!
//! A site asks [`here`] and does the wrong thing if the answer is yes. Without the feature `bugs`, which only
//! `tests/simulation` turns on, the answer is a constant `false` and nothing of it is left in the program.
#![forbid(unsafe_code)]

macro_rules! bugs {
    ($($(#[doc = $text:literal])+ $name:ident,)+) => {
        /// One bug. The text says what goes wrong.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Bug {
            $($(#[doc = $text])+ $name,)+
        }

        impl Bug {
            /// All of them.
            pub const ALL: &[Bug] = &[$(Bug::$name,)+];

            /// What goes wrong.
            pub fn text(self) -> &'static str {
                match self {
                    $(Bug::$name => concat!($($text,)+).trim_ascii(),)+
                }
            }
        }
    };
}

bugs! {
    /// Of several fetches that wait for a partition, only the first is woken.
    LostWakeUp,
    /// A produce request is answered when its batch is queued, not when it is written.
    AnswerBeforeWrite,
    /// Recovery takes what follows the last good batch for records.
    SkippedTruncation,
    /// A fetch with an old leader epoch is served.
    DroppedEpochCheck,
    /// A lookup in the offset index takes the entry behind the right one.
    IndexOffByOne,
    /// After a start the producers are those of the last snapshot.
    ProducersNotRestored,
    /// The high watermark is where the next batch goes, not where the written ones end.
    WatermarkAboveWritten,
    /// An offset commit is answered before its record is written.
    CommitBeforeWrite,
    /// Commits and heartbeats of an old generation are accepted.
    GenerationNotChecked,
    /// A fetch session keeps the old offset of a partition that it knows.
    StaleSession,
    /// The metadata log is written without being made durable.
    MetadataNotDurable,
}

#[cfg(feature = "bugs")]
mod switch {
    use std::cell::Cell;

    use super::Bug;

    thread_local! {
        static PLANTED: Cell<Option<Bug>> = const { Cell::new(None) };
    }

    /// Switches one bug on for this thread, or none.
    pub fn plant(bug: Option<Bug>) {
        PLANTED.set(bug);
    }

    /// Whether this bug is to be played now.
    pub fn here(bug: Bug) -> bool {
        PLANTED.get() == Some(bug)
    }
}

#[cfg(feature = "bugs")]
pub use switch::{here, plant};

/// Whether this bug is to be played now: never.
#[cfg(not(feature = "bugs"))]
#[inline(always)]
pub const fn here(_bug: Bug) -> bool {
    false
}
