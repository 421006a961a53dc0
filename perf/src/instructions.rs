//! Instruction counts by valgrind: unlike times they are the same on a busy machine.

use std::process::Command;

use anyhow::{Context, Result, ensure};

/// Each piece of work is run so often and twice so often; the difference is free of start and set-up.
const COUNT: u64 = 200;

pub fn print() -> Result<()> {
    for (index, work) in perf::steady::all()?.iter().enumerate() {
        let once = counted(index, COUNT)?;
        let twice = counted(index, 2 * COUNT)?;
        let each = twice.saturating_sub(once) as f64 / COUNT as f64;
        let per_byte = if work.bytes > 0 {
            format!("{:>8.3} a byte", each / work.bytes as f64)
        } else {
            String::new()
        };
        println!("{:<48}{each:>14.0} instructions {per_byte}", work.name);
    }
    Ok(())
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
