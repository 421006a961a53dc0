//! `cores`: what one core does with bytes, and what a message to another core costs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, anyhow};
use glommio::{LocalExecutorBuilder, Placement, channels::shared_channel};

use super::repeat;
use super::sheet::Sheet;
use crate::placement;

const CHUNK: usize = 1 << 20;
/// How often the clock is looked at: a look costs as much as a hop.
const BETWEEN_LOOKS: u64 = 128;

pub fn measure(mut sheet: Sheet) -> Result<()> {
    let from = vec![3_u8; CHUNK];
    let mut to = vec![0_u8; CHUNK];
    let bytes = [("bytes", CHUNK as u64)];
    let checked = repeat(sheet.seconds, |_| {
        std::hint::black_box(crc32c::crc32c(std::hint::black_box(&from)));
        Ok(())
    })?;
    sheet.repeated("CRC-32C", &bytes, &checked);
    let copied = repeat(sheet.seconds, |_| {
        to.copy_from_slice(std::hint::black_box(&from));
        std::hint::black_box(&mut to);
        Ok(())
    })?;
    sheet.repeated("copy", &bytes, &copied);
    let cores: Vec<usize> = placement::own_cores()?.into_iter().collect();
    let [first, second, ..] = cores[..] else {
        sheet.remark("one core only: no messages between cores to measure".to_owned());
        return sheet.end();
    };
    let pair = [("core", first as u64), ("other core", second as u64)];
    let nanos = spinning_hop(first, second, sheet.seconds)?;
    sheet.time("there and back between two cores, spinning", &pair, nanos);
    let nanos = channel_hop(first, second, sheet.seconds)?;
    sheet.time("message of a stream between two executors", &pair, nanos);
    sheet.end()
}

/// Apart from its neighbours in memory: processors fetch cache lines in pairs.
#[derive(Default)]
#[repr(align(128))]
struct Alone(AtomicU64);

/// Two threads that spin on one cache line each: the least that a hop can cost, in nanoseconds there and back.
fn spinning_hop(first: usize, second: usize, seconds: f64) -> Result<f64> {
    const END: u64 = u64::MAX;
    let (there, back) = (Arc::new(Alone::default()), Arc::new(Alone::default()));
    let answering = std::thread::spawn({
        let (there, back) = (there.clone(), back.clone());
        move || {
            pin(second);
            let mut answered = 0;
            while answered != END {
                let round = there.0.load(Ordering::Acquire);
                if round == answered {
                    std::hint::spin_loop();
                    continue;
                }
                answered = round;
                back.0.store(round, Ordering::Release);
            }
        }
    });
    pin(first);
    let (begin, mut rounds) = (Instant::now(), 0);
    loop {
        for _ in 0..BETWEEN_LOOKS {
            rounds += 1;
            there.0.store(rounds, Ordering::Release);
            while back.0.load(Ordering::Acquire) < rounds {
                std::hint::spin_loop();
            }
        }
        if begin.elapsed().as_secs_f64() >= seconds {
            break;
        }
    }
    let nanos = begin.elapsed().as_nanos() as f64 / rounds as f64;
    there.0.store(END, Ordering::Release);
    let answered = answering.join();
    answered.map_err(|_| anyhow!("the other core panicked"))?;
    Ok(nanos)
}

fn pin(core: usize) {
    placement::pin_thread(&[core].into());
}

/// A stream of messages between two executors, both asleep when they have nothing to do: nanoseconds a message.
fn channel_hop(first: usize, second: usize, seconds: f64) -> Result<f64> {
    let (sender, receiver) = shared_channel::new_bounded::<u64>(1024);
    let start = |core| LocalExecutorBuilder::new(Placement::Fixed(core)).name("hop");
    let receiving = start(second)
        .spawn(move || async move {
            let receiver = receiver.connect().await;
            let mut received = 0;
            while receiver.recv().await.is_some() {
                received += 1;
            }
            (received, Instant::now())
        })
        .map_err(|error| anyhow!("{error}"))?;
    let sending = start(first)
        .spawn(move || async move {
            let sender = sender.connect().await;
            let (begin, mut sent) = (Instant::now(), 0_u64);
            loop {
                for _ in 0..BETWEEN_LOOKS {
                    sent += u64::from(sender.send(sent).await.is_ok());
                }
                if begin.elapsed().as_secs_f64() >= seconds {
                    break;
                }
            }
            (sent, begin)
        })
        .map_err(|error| anyhow!("{error}"))?;
    let (sent, begin) = sending.join().map_err(|error| anyhow!("{error}"))?;
    let (received, end) = receiving.join().map_err(|error| anyhow!("{error}"))?;
    (received == sent && sent > 0)
        .then(|| (end - begin).as_nanos() as f64 / sent as f64)
        .context("messages were lost between two executors")
}
