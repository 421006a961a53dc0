//! What producers and consumers write down while they run. Each executor has its own; they are added up at the end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use anyhow::Result;
use hdrhistogram::Histogram;

/// Latencies from 1 us to 2 min, to three digits.
const HIGHEST_MICROS: u64 = 120_000_000;
/// A list of marks is thinned out beyond this many.
const MOST_MARKS: usize = 1 << 20;

/// No moment at all.
const GOES_ON: u64 = u64::MAX;
/// How often those look who wait: whether it was stopped, or abandoned.
const LOOKS: Duration = Duration::from_millis(50);

/// The clock and the phases of one measurement, seen by all threads.
pub struct Phases {
    begin: Instant,
    /// The same moment for people.
    date: SystemTime,
    warm_up: Duration,
    measured: Duration,
    /// When it was stopped; `GOES_ON` until then.
    stopped: AtomicU64,
    abandoned: AtomicBool,
    /// Totals for the progress line.
    pub acknowledged: AtomicU64,
    pub consumed: AtomicU64,
    pub cold: AtomicU64,
    /// Producers' failures and readers' failures, counted as they come.
    pub errors: AtomicU64,
}

impl Phases {
    pub fn new(warm_up: Duration, measured: Duration) -> Self {
        Self {
            begin: Instant::now(),
            date: SystemTime::now(),
            warm_up,
            measured,
            stopped: AtomicU64::new(GOES_ON),
            abandoned: AtomicBool::new(false),
            acknowledged: AtomicU64::new(0),
            consumed: AtomicU64::new(0),
            cold: AtomicU64::new(0),
            errors: AtomicU64::new(0),
        }
    }

    /// Nanoseconds since the beginning.
    pub fn now(&self) -> u64 {
        u64::try_from(self.begin.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    pub fn window(&self) -> std::ops::Range<u64> {
        let from = u64::try_from(self.warm_up.as_nanos()).unwrap_or(u64::MAX);
        from..from.saturating_add(u64::try_from(self.measured.as_nanos()).unwrap_or(u64::MAX))
    }

    /// When the window begins, in milliseconds since 1970.
    pub fn window_date(&self) -> u64 {
        let date = self.date + self.warm_up;
        date.duration_since(SystemTime::UNIX_EPOCH)
            .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(0))
    }

    /// Nothing is sent any more; what is under way may still be answered.
    pub fn stop(&self) {
        self.stopped.fetch_min(self.now(), Ordering::Relaxed);
    }

    pub fn stopped_at(&self) -> Option<u64> {
        Some(self.stopped.load(Ordering::Relaxed)).filter(|at| *at != GOES_ON)
    }

    pub fn is_stopped(&self) -> bool {
        self.stopped_at().is_some()
    }

    /// Answers are not waited for any longer, either.
    pub fn abandon(&self) {
        self.stop();
        self.abandoned.store(true, Ordering::Relaxed);
    }

    pub fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Relaxed)
    }

    /// Waits for a moment, or less where it is stopped before.
    pub async fn until(&self, moment: u64) {
        while !self.is_stopped() {
            let ahead = Duration::from_nanos(moment.saturating_sub(self.now()));
            if ahead.is_zero() {
                break;
            }
            glommio::timer::sleep(ahead.min(LOOKS)).await;
        }
    }

    /// Waits until it is abandoned.
    pub async fn until_abandoned(&self) {
        while !self.is_abandoned() {
            glommio::timer::sleep(LOOKS).await;
        }
    }

    /// Whether producers should go on.
    pub fn is_over(&self) -> bool {
        self.is_stopped() || self.now() >= self.window().end
    }
}

/// How many requests an executor sent and how many were answered, for whoever watches from outside. Only the executor
/// itself writes it, so that nothing has to be locked.
#[derive(Default)]
pub struct Pulse {
    asked: AtomicU64,
    answered: AtomicU64,
    ended: AtomicBool,
}

impl Pulse {
    /// A request goes out, or a connection is opened.
    pub fn asked(&self) {
        let asked = self.asked.load(Ordering::Relaxed);
        self.asked.store(asked + 1, Ordering::Relaxed);
    }

    /// What was asked for came, or was sent where no answer was wanted.
    pub fn answered(&self) {
        let answered = self.answered.load(Ordering::Relaxed);
        self.answered.store(answered + 1, Ordering::Relaxed);
    }

    /// The executor has ended, one way or the other.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Release);
    }

    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Answers so far, and requests without one.
    pub fn read(&self) -> (u64, u64) {
        let answered = self.answered.load(Ordering::Relaxed);
        let asked = self.asked.load(Ordering::Relaxed);
        (answered, asked.saturating_sub(answered))
    }
}

/// What happened in one second of the measured window.
#[derive(Clone, Default)]
pub struct Second {
    pub acknowledged_records: u64,
    pub acknowledged_bytes: u64,
    pub consumed_bytes: u64,
    /// Of what was meant to be sent in it.
    pub publish: Option<Histogram<u64>>,
    pub end_to_end: Option<Histogram<u64>>,
}

/// Records in a second's histogram, which is there from its first latency on. Two digits, as there are many seconds.
fn record(histogram: &mut Option<Histogram<u64>>, micros: u64) {
    let histogram = histogram.get_or_insert_with(|| {
        // These bounds are valid for every build of the library.
        Histogram::new_with_bounds(1, HIGHEST_MICROS, 2)
            .unwrap_or_else(|_| Histogram::new(1).expect("one digit"))
    });
    histogram.saturating_record(micros);
}

/// A batch seen at a moment: written by one side when it was meant to be sent, by the other when it was read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Mark {
    partition: i32,
    base_offset: i64,
    at: u64,
}

/// Marks of batches, thinned out evenly: what is left on one side is left on the other.
#[derive(Default)]
pub struct Marks {
    marks: Vec<Mark>,
    mask: u64,
}

impl Marks {
    pub fn add(&mut self, partition: i32, base_offset: i64, at: u64) {
        if spread(partition, base_offset) & self.mask != 0 {
            return;
        }
        self.marks.push(Mark {
            partition,
            base_offset,
            at,
        });
        if self.marks.len() >= MOST_MARKS {
            self.thin_out(self.mask << 1 | 1);
        }
    }

    fn thin_out(&mut self, mask: u64) {
        self.mask = mask;
        self.marks
            .retain(|mark| spread(mark.partition, mark.base_offset) & mask == 0);
    }

    fn absorb(&mut self, other: Self) {
        self.marks.extend(other.marks);
        self.mask = self.mask.max(other.mask);
    }
}

/// SplitMix64's finisher: offsets of a run would otherwise share their low bits.
fn spread(partition: i32, base_offset: i64) -> u64 {
    let mut value = (base_offset as u64) ^ ((partition as u64) << 40);
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// Counts and latencies of the measured window.
pub struct Recorder {
    window: std::ops::Range<u64>,
    pub pulse: Arc<Pulse>,
    pub acknowledged_records: u64,
    pub acknowledged_bytes: u64,
    pub acknowledged_batches: u64,
    pub consumed_records: u64,
    pub consumed_bytes: u64,
    pub cold_bytes: u64,
    pub cold_nanos: u64,
    /// How late the generator itself was, with a free slot in flight.
    pub lateness: Histogram<u64>,
    pub publish: Histogram<u64>,
    pub seconds: Vec<Second>,
    sent: Marks,
    read: Marks,
    pub first_error: Option<String>,
}

impl Recorder {
    pub fn new(phases: &Phases) -> Result<Self> {
        Ok(Self {
            window: phases.window(),
            pulse: Arc::default(),
            acknowledged_records: 0,
            acknowledged_bytes: 0,
            acknowledged_batches: 0,
            consumed_records: 0,
            consumed_bytes: 0,
            cold_bytes: 0,
            cold_nanos: 0,
            lateness: Histogram::new_with_bounds(1, HIGHEST_MICROS, 3)?,
            publish: Histogram::new_with_bounds(1, HIGHEST_MICROS, 3)?,
            seconds: Vec::new(),
            sent: Marks::default(),
            read: Marks::default(),
            first_error: None,
        })
    }

    fn second(&mut self, at: u64) -> &mut Second {
        let index = ((at.saturating_sub(self.window.start)) / 1_000_000_000) as usize;
        if self.seconds.len() <= index {
            self.seconds.resize_with(index + 1, Second::default);
        }
        &mut self.seconds[index]
    }

    /// Batches acknowledged now, meant to be sent at `intended`.
    pub fn acknowledged(
        &mut self,
        intended: u64,
        now: u64,
        batches: u64,
        records: u64,
        bytes: u64,
    ) {
        if self.window.contains(&now) {
            self.acknowledged_records += records;
            self.acknowledged_bytes += bytes;
            self.acknowledged_batches += batches;
            let second = self.second(now);
            second.acknowledged_records += records;
            second.acknowledged_bytes += bytes;
        }
        if self.window.contains(&intended) {
            let micros = micros(intended, now);
            self.publish.saturating_record(micros);
            record(&mut self.second(intended).publish, micros);
        }
    }

    pub fn sent(&mut self, partition: i32, base_offset: i64, intended: u64) {
        if self.window.contains(&intended) {
            self.sent.add(partition, base_offset, intended);
        }
    }

    /// By when it was sent: one that is far behind never comes to what was meant for the window.
    pub fn late(&mut self, intended: u64, now: u64) {
        if self.window.contains(&now) {
            self.lateness.saturating_record(micros(intended, now));
        }
    }

    pub fn consumed(&mut self, now: u64, records: u64, bytes: u64) {
        if self.window.contains(&now) {
            self.consumed_records += records;
            self.consumed_bytes += bytes;
            self.second(now).consumed_bytes += bytes;
        }
    }

    pub fn read(&mut self, partition: i32, base_offset: i64, now: u64) {
        if now >= self.window.start {
            self.read.add(partition, base_offset, now);
        }
    }

    pub fn failed(&mut self, error: &anyhow::Error) {
        self.first_error.get_or_insert_with(|| format!("{error:#}"));
    }

    pub fn absorb(&mut self, other: Self) -> Result<()> {
        self.acknowledged_records += other.acknowledged_records;
        self.acknowledged_bytes += other.acknowledged_bytes;
        self.acknowledged_batches += other.acknowledged_batches;
        self.consumed_records += other.consumed_records;
        self.consumed_bytes += other.consumed_bytes;
        self.cold_bytes += other.cold_bytes;
        self.cold_nanos = self.cold_nanos.max(other.cold_nanos);
        self.lateness.add(&other.lateness)?;
        self.publish.add(&other.publish)?;
        if self.seconds.len() < other.seconds.len() {
            self.seconds
                .resize_with(other.seconds.len(), Second::default);
        }
        for (mine, theirs) in self.seconds.iter_mut().zip(other.seconds) {
            mine.acknowledged_records += theirs.acknowledged_records;
            mine.acknowledged_bytes += theirs.acknowledged_bytes;
            mine.consumed_bytes += theirs.consumed_bytes;
            match (&mut mine.publish, theirs.publish) {
                (Some(mine), Some(theirs)) => mine.add(&theirs)?,
                (mine @ None, theirs) => *mine = theirs,
                (Some(_), None) => {}
            }
        }
        self.sent.absorb(other.sent);
        self.read.absorb(other.read);
        if self.first_error.is_none() {
            self.first_error = other.first_error;
        }
        Ok(())
    }

    /// From the intended send to each reading of a batch: all of them, and in the seconds in which they were sent.
    pub fn end_to_end(&mut self) -> Result<Histogram<u64>> {
        let mut latencies = Histogram::new_with_bounds(1, HIGHEST_MICROS, 3)?;
        let mask = self.sent.mask.max(self.read.mask);
        self.sent.thin_out(mask);
        self.read.thin_out(mask);
        self.sent.marks.sort_unstable();
        for read in std::mem::take(&mut self.read.marks) {
            let found = self
                .sent
                .marks
                .binary_search_by_key(&(read.partition, read.base_offset), |mark| {
                    (mark.partition, mark.base_offset)
                });
            if let Ok(index) = found {
                let sent = self.sent.marks[index].at;
                let micros = micros(sent, read.at);
                latencies.saturating_record(micros);
                record(&mut self.second(sent).end_to_end, micros);
            }
        }
        Ok(latencies)
    }
}

fn micros(from: u64, to: u64) -> u64 {
    (to.saturating_sub(from) / 1000).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorder() -> Recorder {
        Recorder::new(&Phases::new(
            Duration::from_secs(1),
            Duration::from_secs(10),
        ))
        .expect("a recorder")
    }

    #[test]
    fn only_what_falls_into_the_window_counts() {
        let mut recorder = recorder();
        recorder.acknowledged(999_000_000, 1_001_000_000, 1, 10, 1000);
        assert_eq!(
            (recorder.acknowledged_records, recorder.publish.len()),
            (10, 0),
            "acknowledged inside, meant before"
        );
        recorder.acknowledged(10_999_000_000, 11_002_000_000, 1, 10, 1000);
        assert_eq!(
            (recorder.acknowledged_records, recorder.publish.len()),
            (10, 1),
            "meant inside, acknowledged after"
        );
        assert!(recorder.publish.max().abs_diff(3000) <= 3);
    }

    #[test]
    fn latency_counts_from_the_intended_time_to_each_reading() {
        let (mut producer, mut consumer) = (recorder(), recorder());
        producer.sent(3, 100, 2_000_000_000);
        consumer.read(3, 100, 2_005_000_000);
        consumer.read(3, 100, 2_009_000_000);
        consumer.read(4, 100, 2_009_000_000);
        producer.absorb(consumer).expect("the same bounds");
        let latencies = producer.end_to_end().expect("a histogram");
        assert_eq!(latencies.len(), 2);
        let counted: Vec<Option<u64>> = producer
            .seconds
            .iter()
            .map(|second| Some(second.end_to_end.as_ref()?.len()))
            .collect();
        // It was sent a second after the window began.
        assert_eq!(counted, [None, Some(2)]);
        assert!(latencies.min().abs_diff(5000) <= 5 && latencies.max().abs_diff(9000) <= 9);
    }

    #[test]
    fn thinned_marks_still_meet() {
        let mut recorder = recorder();
        let all = MOST_MARKS as i64 * 3;
        for offset in 0..all {
            recorder.sent(0, offset, 2_000_000_000);
        }
        for offset in (0..all).filter(|offset| offset % 7 == 0) {
            recorder.read(0, offset, 2_001_000_000);
        }
        let latencies = recorder.end_to_end().expect("a histogram");
        assert!(latencies.len() > 10_000, "{}", latencies.len());
        assert!(recorder.sent.marks.len() < MOST_MARKS);
    }
}
