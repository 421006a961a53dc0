//! How long threads are off their core, by what they waited for and where: from each switch away from a thread to the next
//! switch back to it.
//!
//! The kernel tells the first as `sched:sched_switch`, with the thread's state and stack, and the second as a switch event,
//! which has neither. `perf script --show-switch-events` prints both with their times.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, BufRead, Write};
use std::time::Duration;

/// What a recording says.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct OffCore {
    /// Time by thread, state and stack, outermost first: `shard-0;asleep (S);main;…;schedule`.
    pub stacks: BTreeMap<String, Duration>,
    /// Switches away that have no time, because the switch back was lost.
    pub lost: u64,
}

impl OffCore {
    /// As lines that flame graphs are drawn of, in microseconds.
    pub fn write(&self, mut out: impl Write) -> io::Result<()> {
        for (stack, time) in &self.stacks {
            writeln!(out, "{stack} {}", time.as_micros())?;
        }
        out.flush()
    }
}

/// Adds up what `perf script` printed of a recording.
pub fn fold(script: impl BufRead) -> io::Result<OffCore> {
    let mut folding = Folding::default();
    for line in script.lines() {
        folding.line(&line?);
    }
    Ok(folding.end())
}

/// A thread off its core.
struct Away {
    since: Duration,
    /// Name of the thread and its state.
    name: String,
    /// Innermost first.
    frames: Vec<String>,
}

#[derive(Default)]
struct Folding {
    away: HashMap<u32, Away>,
    /// The thread whose stack is being read.
    reading: Option<u32>,
    /// The time of the last event.
    now: Duration,
    folded: OffCore,
}

impl Folding {
    fn line(&mut self, line: &str) {
        if line.starts_with('\t') {
            let of = self.reading.and_then(|thread| self.away.get_mut(&thread));
            if let (Some(away), Some(frame)) = (of, frame(line)) {
                away.frames.push(frame);
            }
            return;
        }
        self.reading = None;
        let Some(event) = Event::parse(line) else {
            return;
        };
        self.now = self.now.max(event.time);
        match event.what {
            What::Leaves(state) => self.leaves(&event, state),
            What::Returns => {
                if let Some(away) = self.away.remove(&event.thread) {
                    self.add(away, event.time);
                }
            }
        }
    }

    fn leaves(&mut self, event: &Event<'_>, state: &str) {
        let Some(state) = state_name(state) else {
            self.away.remove(&event.thread);
            return;
        };
        let away = Away {
            since: event.time,
            name: format!("{};{state}", event.name.replace(';', ":")),
            frames: Vec::new(),
        };
        if self.away.insert(event.thread, away).is_some() {
            self.folded.lost += 1;
        }
        self.reading = Some(event.thread);
    }

    fn add(&mut self, away: Away, until: Duration) {
        let mut stack = away.name;
        for frame in away.frames.iter().rev() {
            stack.push(';');
            stack.push_str(frame);
        }
        // Clocks of two cores may differ a little.
        let time = until.saturating_sub(away.since);
        *self.folded.stacks.entry(stack).or_default() += time;
    }

    /// Whoever is still away was so to the end of the recording.
    fn end(mut self) -> OffCore {
        for away in std::mem::take(&mut self.away).into_values() {
            self.add(away, self.now);
        }
        self.folded
    }
}

/// The first line of an event: `NAME TID [CORE] SECONDS: EVENT…`.
struct Event<'a> {
    name: &'a str,
    thread: u32,
    time: Duration,
    what: What<'a>,
}

enum What<'a> {
    /// In this state.
    Leaves(&'a str),
    Returns,
}

impl<'a> Event<'a> {
    fn parse(line: &'a str) -> Option<Event<'a>> {
        let (front, time, rest) = line.match_indices(": ").find_map(|(at, _)| {
            let (front, time) = line[..at].rsplit_once(' ')?;
            Some((front.trim(), seconds(time)?, &line[at + 2..]))
        })?;
        let front = front
            .rsplit_once(" [")
            .map_or(front, |(front, _)| front.trim_end());
        let (name, thread) = front.rsplit_once(' ')?;
        // Alone, or behind that of its process.
        let thread = thread.rsplit('/').next()?.parse().ok()?;
        let what = if let Some(event) = rest.trim_start().strip_prefix("PERF_RECORD_SWITCH") {
            let direction = event.trim_start_matches("_CPU_WIDE").trim_start();
            direction.starts_with("IN").then_some(What::Returns)?
        } else {
            // `prev_state=S ==>`, or `[120] S ==>` where perf prints it in its own way.
            let (before, _) = rest.split_once("sched_switch: ")?.1.split_once(" ==>")?;
            let state = before.rsplit([' ', '=']).next()?;
            What::Leaves(state)
        };
        Some(Event {
            name: name.trim(),
            thread,
            time,
            what,
        })
    }
}

fn seconds(text: &str) -> Option<Duration> {
    let (whole, part) = text.split_once('.')?;
    let digits = u32::try_from(part.len()).ok()?;
    let nanoseconds = part.parse::<u32>().ok()? * 10_u32.pow(9_u32.checked_sub(digits)?);
    Some(Duration::new(whole.parse().ok()?, nanoseconds))
}

/// What a thread waits for, by the kernel's letter. `None` for one that does not come back.
fn state_name(state: &str) -> Option<&'static str> {
    match state.chars().next()? {
        'R' => Some("preempted (R)"),
        'S' => Some("asleep (S)"),
        'D' => Some("disk (D)"),
        'X' | 'Z' => None,
        _ => Some("stopped"),
    }
}

/// The name in a line of a stack: `ADDRESS NAME+OFFSET (FILE)`.
fn frame(line: &str) -> Option<String> {
    let (_, named) = line.trim().split_once(' ')?;
    let file_at = named.rfind(" (/").or_else(|| named.rfind(" (["));
    let (name, file) = named.split_at(file_at.unwrap_or(named.len()));
    let name = name.rsplit_once("+0x").map_or(name, |(name, _)| name);
    let file = file.trim().trim_matches(['(', ')', '[', ']']);
    let shown = match name {
        "[unknown]" => format!("[{}]", file.rsplit('/').next().unwrap_or(file)),
        name => name.to_owned(),
    };
    Some(shown.replace(';', ":"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str = include_str!("../tests/switches.txt");

    /// Microseconds of the stacks that begin so.
    fn micros(folded: &OffCore, front: &str) -> u128 {
        let of = folded
            .stacks
            .iter()
            .filter(|(stack, _)| stack.starts_with(front));
        of.map(|(_, time)| time.as_micros()).sum()
    }

    #[test]
    fn time_runs_from_a_switch_away_to_the_next_switch_back() {
        let folded = fold(SCRIPT.as_bytes()).expect("text");
        let mut lines = Vec::new();
        folded.write(&mut lines).expect("room");
        let lines = String::from_utf8(lines).expect("text");
        let expected = [
            "iou-wrk-4242;disk (D);ret_from_fork_asm;io_wq_worker;io_write;ext4_file_write_iter;schedule 1500",
            "pool: 2;asleep (S);[libc.so.6];futex_wait_queue;schedule 9400",
            "shard-0;asleep (S);start_thread;shards::runtime::run_core;io_cqring_wait;schedule 750",
            "shard-0;preempted (R);start_thread;<core::option::Option<T> as core::fmt::Debug>::fmt;schedule 10",
            "shard-1;asleep (S);start_thread;schedule 300",
        ];
        assert_eq!(lines.lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_switch_back_that_was_lost_adds_no_time_and_is_counted() {
        let folded = fold(SCRIPT.as_bytes()).expect("text");
        assert_eq!(folded.lost, 1);
        assert_eq!(micros(&folded, "shard-1;"), 300);
    }

    #[test]
    fn who_is_still_away_at_the_end_was_so_until_then_unless_it_has_ended() {
        let folded = fold(SCRIPT.as_bytes()).expect("text");
        assert_eq!(micros(&folded, "pool: 2;"), 9400);
        assert_eq!(micros(&folded, "gone"), 0);
    }

    #[test]
    fn anything_else_says_nothing() {
        for line in [
            "",
            "shard-0",
            "\t",
            "shard-0 x [001] 1.5: PERF_RECORD_SWITCH IN",
            "shard-0 1 [001] 1.5555555555: PERF_RECORD_SWITCH IN",
            "shard-0 1 [001] 1.5: sched:sched_switch: prev_state=S",
            "shard-0 1 [001] 1.5: PERF_RECORD_SWITCH OUT",
            "\tffff schedule ([kernel.kallsyms])",
        ] {
            assert_eq!(fold(line.as_bytes()).expect("text"), OffCore::default());
        }
    }

    #[test]
    fn frames_are_named_as_well_as_they_can_be() {
        for (line, name) in [
            ("\t 7f read+0x1a (/usr/lib/libc.so.6)", "read"),
            ("\t 7f [unknown] (/usr/lib/libc.so.6)", "[libc.so.6]"),
            ("\t 7f [unknown] ([unknown])", "[unknown]"),
            (
                "\t 7f <a::B as c::D<(E, F)>>::g (/usr/bin/ringmain)",
                "<a::B as c::D<(E, F)>>::g",
            ),
            ("\t 7f odd;name ([kernel.kallsyms])", "odd:name"),
        ] {
            assert_eq!(frame(line).as_deref(), Some(name), "{line}");
        }
    }
}
