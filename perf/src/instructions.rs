//! Instruction counts by valgrind: unlike times they are the same on a busy machine.

use std::process::Command;

use anyhow::{Context, Result, ensure};

/// Each piece of work is run so often and twice so often; the difference is free of start and set-up.
const COUNT: u64 = 200;
/// And so often where it is small: start and set-up differ a little from run to run.
const COUNT_OF_SMALL: u64 = 20_000;
const SMALL: f64 = 10_000.0;

pub fn print() -> Result<()> {
    for (index, work) in perf::steady::all()?.iter().enumerate() {
        let mut instructions = each(index, COUNT)?;
        if instructions < SMALL {
            instructions = each(index, COUNT_OF_SMALL)?;
        }
        let per_byte = if work.bytes > 0 {
            format!("{:>8.3} a byte", instructions / work.bytes as f64)
        } else {
            String::new()
        };
        println!(
            "{:<48}{instructions:>14.0} instructions {per_byte}",
            work.name
        );
    }
    Ok(())
}

fn each(index: usize, count: u64) -> Result<f64> {
    let once = counted(index, count)?;
    let twice = counted(index, 2 * count)?;
    Ok(twice.saturating_sub(once) as f64 / count as f64)
}

fn counted(index: usize, count: u64) -> Result<u64> {
    let output = Command::new("valgrind")
        .args([
            "--tool=cachegrind",
            "--cache-sim=no",
            "--cachegrind-out-file=/dev/null",
        ])
        .arg(std::env::current_exe()?)
        .args(["repeat", &index.to_string(), &count.to_string()])
        .output()
        .context("cannot run valgrind: install Debian's package valgrind")?;
    let text = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "valgrind failed: {text}");
    count_in(&text).with_context(|| format!("valgrind prints no count: {text}"))
}

/// The count in what cachegrind prints at its end: `==4242== I refs: 1,234,567`, with more blanks in some versions.
fn count_in(text: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        let of_instructions = words.next() == Some("I") && words.next() == Some("refs:");
        let count = words.next().filter(|_| of_instructions)?;
        count.replace(',', "").parse().ok()
    })
}

pub fn repeat(index: usize, count: u64) -> Result<()> {
    let mut all = perf::steady::all()?;
    let work = all.get_mut(index).context("no such piece of work")?;
    let mut done = 0_u64;
    for _ in 0..count {
        done = done.wrapping_add(std::hint::black_box((work.run)()));
    }
    std::hint::black_box(done);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_found_in_what_valgrind_prints() {
        let start = "==31337== Cachegrind, a high-precision tracing profiler\n==31337== Command: perf repeat 0 200\n";
        for (end, count) in [
            ("==31337== I refs:        8,766,543,210\n", 8_766_543_210),
            ("==31337== I   refs:      42\n", 42),
            (
                "==31337== I  refs:      1,234,567\n==31337== I1  misses:    9,999\n==31337== D   refs:    7\n",
                1_234_567,
            ),
        ] {
            assert_eq!(count_in(&format!("{start}{end}")), Some(count), "{end}");
        }
    }

    #[test]
    fn where_valgrind_prints_no_count_there_is_none() {
        for text in [
            "",
            "==1== D refs: 7",
            "==1== I refs:",
            "==1== I refs: many",
            "valgrind: failed to start tool",
        ] {
            assert_eq!(count_in(text), None, "{text}");
        }
    }

    #[test]
    fn a_piece_of_work_that_is_not_there_is_an_error() {
        assert!(repeat(usize::MAX, 1).is_err());
        assert!(repeat(0, 1).is_ok());
    }
}
