//! `/flamegraph?seconds=10`: where the processor time of the next seconds goes, thread by thread.
//!
//! The kernel takes the samples (`perf_event_open`) and follows the frame pointers itself: no signal interrupts a
//! thread of the broker, no code of ours runs in the middle of its work, and no system call ends early.
//!
//! Libraries that interrupt threads by SIGPROF need no permission, but those that there are would not do, by their
//! source: `pprof` 0.15 leaves out the innermost function when it follows frame pointers, reads the unwinder's tables
//! in the signal handler, may write a file there, and keeps some 18 MiB for good; its fork `rpprof` 0.18 likewise;
//! `dial9-perf-self-profile` 0.5 brings a hundred crates, and its timers do not start a second time. And a signal never
//! sees into the kernel, where most of a broker's time goes.

mod names;
mod recording;

use std::cell::Cell;
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use futures_util::future::{Either, select};
use shards::io::TcpStream;
use tracing::info;

use super::Answer;
use crate::shard::Shard;
use recording::Recording;

/// How often samples are taken out of the kernel's buffers, and new threads are found.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// What was asked for.
#[derive(Debug, PartialEq)]
struct Wanted {
    seconds: u64,
    /// Samples a second and thread that runs.
    frequency: u64,
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Format {
    Svg,
    Folded,
}

impl Wanted {
    /// The parameters of a query, or what is wrong with one of them.
    fn parse(query: &str) -> Result<Self, String> {
        let mut wanted = Wanted {
            seconds: 10,
            frequency: 99,
            format: Format::Svg,
        };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            match name {
                "seconds" => wanted.seconds = number(name, value, 60)?,
                "frequency" => wanted.frequency = number(name, value, 999)?,
                "format" => {
                    wanted.format = match value {
                        "svg" => Format::Svg,
                        "folded" => Format::Folded,
                        _ => return Err("format is svg or folded\n".to_owned()),
                    }
                }
                _ => {
                    return Err(format!(
                        "no parameter {name:?}: there is seconds, frequency and format\n"
                    ));
                }
            }
        }
        Ok(wanted)
    }
}

fn number(name: &str, value: &str, max: u64) -> Result<u64, String> {
    let number = value.parse().ok().filter(|it| (1..=max).contains(it));
    number.ok_or_else(|| format!("{name} is a number from 1 to {max}\n"))
}

/// Set while somebody records: one at a time.
#[derive(Clone, Default)]
pub(super) struct Busy(Rc<Cell<bool>>);

impl Busy {
    fn claim(&self) -> Option<Claim> {
        (!self.0.replace(true)).then(|| Claim(self.0.clone()))
    }
}

/// Given back when it is dropped, also with a request that came to nothing.
struct Claim(Rc<Cell<bool>>);

impl Drop for Claim {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

/// The answer; none when the client is gone.
pub(super) async fn page(
    shard: &Rc<Shard>,
    stream: &TcpStream,
    busy: &Busy,
    query: &str,
) -> Option<Answer> {
    let wanted = match Wanted::parse(query) {
        Ok(wanted) => wanted,
        Err(text) => return Some(Answer::text(400, text)),
    };
    if !cfg!(frame_pointers) {
        return Some(Answer::text(
            501,
            "this build has no frame pointers: build it with those of .cargo/config.toml of the project, \
             which RUSTFLAGS in the environment replaces\n",
        ));
    }
    let Some(_claim) = busy.claim() else {
        let text = "somebody else records just now: one at a time\n";
        return Some(Answer::text(409, text));
    };
    let frequency = wanted.frequency;
    let started = shard.core.blocking(move || Recording::start(frequency));
    let recording = match started.await {
        Ok(recording) => recording,
        Err(error) => return Some(Answer::text(503, refusal(&error))),
    };
    info!(
        seconds = wanted.seconds,
        frequency, "a flame graph is recorded"
    );
    let recording = record(shard, stream, recording, wanted.seconds).await?;
    Some(
        shard
            .core
            .blocking(move || answer(recording, &wanted))
            .await,
    )
}

/// Lets time pass; none when the client is gone meanwhile.
async fn record(
    shard: &Rc<Shard>,
    stream: &TcpStream,
    mut recording: Recording,
    seconds: u64,
) -> Option<Recording> {
    let end = shard.core.now() + Duration::from_secs(seconds);
    while shard.core.now() < end {
        let pause = shard
            .core
            .sleep_until(end.min(shard.core.now() + LOOK_EVERY));
        let left = match select(pause, pin!(gone(stream))).await {
            Either::Left(_) => false,
            Either::Right(_) => true,
        };
        let looked = shard.core.blocking(move || {
            if left {
                return None;
            }
            recording.look();
            Some(recording)
        });
        recording = looked.await?;
    }
    Some(recording)
}

/// Ends when the client closes; what it still says is thrown away.
async fn gone(stream: &TcpStream) {
    while stream.recv().await.is_ok_and(|chunk| !chunk.is_empty()) {}
}

fn refusal(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => format!(
            "perf_event_open is forbidden here ({error}): give the process CAP_PERFMON, or set \
             kernel.perf_event_paranoid to 2 or less; in a container its seccomp profile must allow it too\n"
        ),
        _ => format!("perf_event_open failed: {error}\n"),
    }
}

fn answer(recording: Recording, wanted: &Wanted) -> Answer {
    let title = title(&recording, wanted);
    let lines = recording.finish();
    match wanted.format {
        Format::Folded => {
            let body = lines.iter().map(|line| format!("{line}\n")).collect();
            Answer {
                status: 200,
                content_type: "text/plain; charset=utf-8",
                body,
            }
        }
        Format::Svg if lines.is_empty() => {
            Answer::text(200, "no samples: the broker had nothing to do\n")
        }
        Format::Svg => match draw(&lines, title) {
            Ok(body) => Answer {
                status: 200,
                content_type: "image/svg+xml",
                body,
            },
            Err(error) => Answer::text(500, format!("the graph cannot be drawn: {error}\n")),
        },
    }
}

fn title(recording: &Recording, wanted: &Wanted) -> String {
    let mut title = format!(
        "processor time, {} s at {} Hz",
        wanted.seconds, wanted.frequency
    );
    if !recording.with_kernel() {
        title += ", without the kernel's (it needs CAP_PERFMON or kernel.perf_event_paranoid of 1)";
    }
    match recording.left_out() {
        0 => {}
        threads => title += &format!(", {threads} threads left out"),
    }
    title
}

fn draw(lines: &[String], title: String) -> io::Result<String> {
    let mut options = inferno::flamegraph::Options::default();
    options.title = title;
    options.count_name = "samples".to_owned();
    let mut svg = Vec::new();
    let lines = lines.iter().map(String::as_str);
    inferno::flamegraph::from_lines(&mut options, lines, &mut svg).map_err(io::Error::other)?;
    String::from_utf8(svg).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_have_defaults_and_limits() {
        let wanted = |seconds, frequency, format| {
            Ok(Wanted {
                seconds,
                frequency,
                format,
            })
        };
        assert_eq!(Wanted::parse(""), wanted(10, 99, Format::Svg));
        assert_eq!(
            Wanted::parse("format=folded&seconds=60&frequency=1"),
            wanted(60, 1, Format::Folded)
        );
        for (query, named) in [
            ("seconds=0", "seconds"),
            ("seconds=61", "seconds"),
            ("seconds", "seconds"),
            ("seconds=-1&format=svg", "seconds"),
            ("frequency=1000", "frequency"),
            ("format=png", "format"),
            ("second=5", "\"second\""),
        ] {
            let text = Wanted::parse(query).expect_err(query);
            assert!(text.contains(named), "{query}: {text}");
        }
    }

    #[test]
    fn one_records_at_a_time() {
        let busy = Busy::default();
        let claim = busy.claim();
        assert!(claim.is_some() && busy.claim().is_none());
        drop(claim);
        assert!(busy.claim().is_some());
    }

    #[test]
    fn a_graph_is_drawn() {
        let lines = ["shard-0;read 3".to_owned(), "shard-0;write 1".to_owned()];
        let svg = draw(&lines, "a title".to_owned()).unwrap();
        assert!(
            svg.contains("<svg") && svg.contains("write (1 samples") && svg.contains("a title")
        );
    }
}
