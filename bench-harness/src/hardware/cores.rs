//! `cores`: what one core does with bytes, and what a message to another core costs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result, anyhow};
use glommio::{LocalExecutorBuilder, Placement, channels::shared_channel};

use super::{SECONDS, line, repeat};
use crate::placement;

const CHUNK: usize = 1 << 20;

pub fn print() -> Result<()> {
    let from = vec![3_u8; CHUNK];
    let mut to = vec![0_u8; CHUNK];
    repeat(SECONDS, |_| {
        std::hint::black_box(crc32c::crc32c(std::hint::black_box(&from)));
        Ok(())
    })?
    .print("CRC-32C of 1 MiB", CHUNK as u64);
    repeat(SECONDS, |_| {
        to.copy_from_slice(std::hint::black_box(&from));
        std::hint::black_box(&mut to);
        Ok(())
    })?
    .print("copy of 1 MiB", CHUNK as u64);
    let cores: Vec<usize> = placement::own_cores()?.into_iter().collect();
    let [first, second, ..] = cores[..] else {
        crate::say("one core only: no messages between cores to measure");
        return Ok(());
    };
    spinning_hop(first, second)?;
    channel_hop(first, second)
}

/// Apart from its neighbours in memory: processors fetch cache lines in pairs.
#[derive(Default)]
#[repr(align(128))]
struct Alone(AtomicU64);

/// Two threads that spin on one cache line each: the least that a hop can cost.
fn spinning_hop(first: usize, second: usize) -> Result<()> {
    const ROUNDS: u64 = 1_000_000;
    let (there, back) = (Arc::new(Alone::default()), Arc::new(Alone::default()));
    let answering = std::thread::spawn({
        let (there, back) = (there.clone(), back.clone());
        move || {
            pin(second);
            (1..=ROUNDS).for_each(|round| {
                while there.0.load(Ordering::Acquire) < round {
                    std::hint::spin_loop();
                }
                back.0.store(round, Ordering::Release);
            });
        }
    });
    pin(first);
    let begin = std::time::Instant::now();
    (1..=ROUNDS).for_each(|round| {
        there.0.store(round, Ordering::Release);
        while back.0.load(Ordering::Acquire) < round {
            std::hint::spin_loop();
        }
    });
    let nanos = begin.elapsed().as_nanos() as f64 / ROUNDS as f64;
    answering
        .join()
        .map_err(|_| anyhow!("the other core panicked"))?;
    line(
        &format!("there and back between cores {first} and {second}, spinning"),
        &format!("{nanos:>9.0} ns"),
    );
    Ok(())
}

fn pin(core: usize) {
    placement::pin_thread(&[core].into());
}

/// A stream of messages between two executors, both asleep when they have nothing to do.
fn channel_hop(first: usize, second: usize) -> Result<()> {
    const MESSAGES: u64 = 1_000_000;
    let (sender, receiver) = shared_channel::new_bounded::<u64>(1024);
    let start = |core| LocalExecutorBuilder::new(Placement::Fixed(core)).name("hop");
    let begin = std::time::Instant::now();
    let receiving = start(second)
        .spawn(move || async move {
            let receiver = receiver.connect().await;
            let mut received = 0;
            while receiver.recv().await.is_some() {
                received += 1;
            }
            received
        })
        .map_err(|error| anyhow!("{error}"))?;
    let sending = start(first)
        .spawn(move || async move {
            let sender = sender.connect().await;
            for message in 0..MESSAGES {
                if sender.send(message).await.is_err() {
                    break;
                }
            }
        })
        .map_err(|error| anyhow!("{error}"))?;
    sending.join().map_err(|error| anyhow!("{error}"))?;
    let received: u64 = receiving.join().map_err(|error| anyhow!("{error}"))?;
    (received == MESSAGES)
        .then_some(())
        .context("messages were lost between two executors")?;
    line(
        "stream of messages between two executors",
        &format!(
            "{:>9.0} ns each",
            begin.elapsed().as_nanos() as f64 / MESSAGES as f64
        ),
    );
    Ok(())
}
