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
    let line = text.lines().find(|line| {
        line.contains("I refs:") || line.contains("I   refs:") || line.contains("I  refs:")
    });
    let digits: String = line
        .with_context(|| format!("valgrind prints no count: {text}"))?
        .rsplit(':')
        .next()
        .unwrap_or_default()
        .chars()
        .filter(char::is_ascii_digit)
        .collect();
    Ok(digits.parse()?)
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
