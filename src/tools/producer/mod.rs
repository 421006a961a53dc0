//! A producer as Kafka's clients have it: records are collected into batches by partition, several requests are under way to
//! each broker, and with idempotence (the default) what is sent again is written once and in order.
//!
//! [`Producer::send`] collects; a thread of its own (`sender.rs`) writes and reads. They share [`state::State`].

mod batch;
mod id;
mod partitioner;
mod responses;
mod sender;
mod settings;
mod state;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Instant;

use protocol::Str;

use super::Failure;
use super::client::Client;
use super::wake::Wake;
pub(super) use batch::Delivery;
use partitioner::Partitioner;
pub(super) use settings::ProducerSettings;
use state::State;

/// A record to be sent.
#[derive(Clone, Debug, Default)]
pub(super) struct ProducerRecord<'a> {
    pub(super) key: Option<&'a [u8]>,
    pub(super) value: Option<&'a [u8]>,
    pub(super) headers: &'a [(&'a [u8], Option<&'a [u8]>)],
    /// Unix milliseconds.
    pub(super) timestamp: i64,
}

/// Told of each batch that is done, on the thread that sends.
pub(super) type OnDelivery = Box<dyn FnMut(&Delivery) + Send>;

/// What both threads see.
struct Shared {
    state: Mutex<State>,
    /// Something was done: there is room again, or all is sent.
    progress: Condvar,
    /// Tells the sender that there is something to do.
    wake: Wake,
}

impl Shared {
    /// A thread that panicked leaves numbers that are still true.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.progress
            .wait(state)
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Sends records to one topic.
pub(super) struct Producer {
    shared: Arc<Shared>,
    partitioner: Partitioner,
    settings: ProducerSettings,
    thread: Option<JoinHandle<()>>,
}

impl Producer {
    /// Connects and learns the topic's partitions.
    ///
    /// # Errors
    /// Nobody answers, or the topic does not come to be within `max.block.ms`.
    pub(super) fn start(
        client: Client,
        topic: &str,
        settings: ProducerSettings,
        on_delivery: OnDelivery,
    ) -> Result<Producer, Failure> {
        let wake = Wake::new().map_err(|error| Failure::new(format!("eventfd: {error}")))?;
        let mut sender =
            sender::Sender::new(client, Str::from(topic), settings.clone(), on_delivery);
        let partitions = sender.first_metadata()?;
        let shared = Arc::new(Shared {
            state: Mutex::new(State::new(partitions)),
            progress: Condvar::new(),
            wake,
        });
        let theirs = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("producer".to_owned())
            .spawn(move || sender.run(&theirs))
            .map_err(|error| Failure::new(format!("no thread can be started: {error}")))?;
        Ok(Producer {
            shared,
            partitioner: Partitioner::new(settings.batch_size),
            settings,
            thread: Some(thread),
        })
    }

    /// Puts a record into the batch of its partition. Waits while `buffer.memory` is full, for `max.block.ms` at most.
    ///
    /// # Errors
    /// The record is larger than a request may be, there was no room in time, or the producer cannot go on.
    pub(super) fn send(&mut self, record: &ProducerRecord<'_>) -> Result<(), Failure> {
        let size = batch::record_size(record);
        if size > self.settings.max_request_size {
            return Err(Failure::new(format!(
                "The message is {size} bytes when serialized which is larger than {}, which is the value of the max.request.size configuration.",
                self.settings.max_request_size
            )));
        }
        let mut state = room_for(&self.shared, &self.settings, size)?;
        let partition = self.partitioner.partition(record.key, size, &state);
        let became_ready = state.append(partition, record, size, &self.settings, Instant::now());
        drop(state);
        if became_ready {
            self.shared.wake.wake();
        }
        Ok(())
    }

    /// Waits until all that was sent so far is delivered or has failed.
    ///
    /// # Errors
    /// The producer cannot go on.
    pub(super) fn flush(&self) -> Result<(), Failure> {
        let mut state = self.shared.lock();
        state.flushing += 1;
        self.shared.wake.wake();
        while state.undelivered > 0 && state.broken.is_none() {
            state = self.shared.wait(state);
        }
        state.flushing -= 1;
        match &state.broken {
            Some(why) => Err(Failure::new(why.clone())),
            None => Ok(()),
        }
    }

    /// Delivers what is left, and ends.
    ///
    /// # Errors
    /// The producer could not go on.
    pub(super) fn close(mut self) -> Result<(), Failure> {
        let flushed = self.flush();
        self.stop();
        flushed
    }

    fn stop(&mut self) {
        self.shared.lock().closing = true;
        self.shared.wake.wake();
        if let Some(thread) = self.thread.take() {
            // Whatever ended it was told through the state.
            let _ = thread.join();
        }
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The state, once there is room for so many bytes.
fn room_for<'a>(
    shared: &'a Shared,
    settings: &ProducerSettings,
    size: usize,
) -> Result<MutexGuard<'a, State>, Failure> {
    let mut state = shared.lock();
    let mut deadline = None;
    loop {
        if let Some(why) = &state.broken {
            return Err(Failure::new(why.clone()));
        }
        if state.buffered + size <= settings.buffer_memory || state.buffered == 0 {
            return Ok(state);
        }
        let now = Instant::now();
        let until = *deadline.get_or_insert(now + settings.max_block);
        if now >= until {
            return Err(Failure::new(format!(
                "Failed to allocate {size} bytes within the configured max blocking time {} ms. Total memory: {} bytes. Available memory: {} bytes.",
                settings.max_block.as_millis(),
                settings.buffer_memory,
                settings.buffer_memory.saturating_sub(state.buffered)
            )));
        }
        // What waits for company goes now.
        state.hurry = true;
        shared.wake.wake();
        let (back, _) = shared
            .progress
            .wait_timeout(state, until - now)
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        state = back;
    }
}
