//! The parts that need no broker.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use protocol::ErrorCode;

use super::partitioner::{Partitioner, murmur2};
use super::responses::{Fate, fate};
use super::settings::ProducerSettings;
use super::state::State;
use super::{ProducerRecord, batch};

fn settings(pairs: &[(&str, &str)]) -> Result<ProducerSettings, String> {
    let properties: BTreeMap<String, String> = pairs
        .iter()
        .map(|(key, value)| (key.to_string(), value.to_string()))
        .collect();
    ProducerSettings::new(&properties).map_err(|failure| failure.to_string())
}

#[test]
fn keys_are_hashed_as_java_does() {
    for (key, hash) in [
        ("21", -973_932_308),
        ("foobar", -790_332_482),
        ("a-little-bit-long-string", -985_981_536),
        ("a-little-bit-longer-string", -1_486_304_829),
        (
            "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8",
            -58_897_971,
        ),
        ("abc", 479_470_107),
    ] {
        assert_eq!(murmur2(key.as_bytes()).cast_signed(), hash, "{key}");
    }
}

#[test]
fn without_a_key_a_batch_goes_to_one_partition() {
    let state = State::new(vec![Some(1); 50]);
    let mut partitioner = Partitioner::new(1000);
    let first = partitioner.partition(None, 600, &state);
    assert_eq!(partitioner.partition(None, 600, &state), first);
    let others: Vec<usize> = (0..40)
        .map(|_| partitioner.partition(None, 1000, &state))
        .collect();
    assert!(others.iter().any(|other| *other != first));
}

#[test]
fn partitions_without_a_leader_get_nothing_unless_none_has_one() {
    let state = State::new(vec![None, Some(1), None]);
    let mut partitioner = Partitioner::new(1);
    assert!((0..20).all(|_| partitioner.partition(None, 1, &state) == 1));
    let state = State::new(vec![None, None]);
    assert!(partitioner.partition(None, 1, &state) < 2);
}

#[test]
fn a_batch_goes_when_it_is_full_or_has_lingered() {
    let settings = settings(&[("batch.size", "200"), ("linger.ms", "100")]).unwrap();
    let mut state = State::new(vec![Some(1)]);
    let value = [7; 50];
    let record = ProducerRecord {
        value: Some(&value),
        ..ProducerRecord::default()
    };
    let size = batch::record_size(&record);
    let start = Instant::now();
    assert!(state.append(0, &record, size, &settings, start));
    let ready = |state: &State, ms| {
        let now = start + Duration::from_millis(ms);
        state.ready_in(&state.partitions[0], &settings, now)
    };
    assert_eq!(ready(&state, 40), Some(Duration::from_millis(60)));
    assert_eq!(ready(&state, 120), Some(Duration::ZERO));
    for _ in 0..5 {
        state.append(0, &record, size, &settings, start);
    }
    assert_eq!(ready(&state, 0), Some(Duration::ZERO));
    assert_eq!(state.undelivered, 6);
}

#[test]
fn what_comes_back_stands_in_front_and_waits_for_those_under_way() {
    let settings = settings(&[("batch.size", "1"), ("retry.backoff.ms", "0")]).unwrap();
    let mut state = State::new(vec![Some(1)]);
    let record = ProducerRecord::default();
    let start = Instant::now();
    for _ in 0..4 {
        state.append(0, &record, 30, &settings, start);
    }
    let mut taken: Vec<_> = (0..3)
        .map(|sequence| {
            let mut batch = state.partitions[0].batches.pop_front().unwrap();
            batch.sequence = Some(sequence);
            batch.attempts = 1;
            batch
        })
        .collect();
    state.partitions[0].in_flight = 1;
    let third = taken.pop().unwrap();
    state.put_back(0, taken.remove(0));
    state.put_back(0, third);
    state.put_back(0, taken.remove(0));
    let sequences: Vec<_> = state.partitions[0]
        .batches
        .iter()
        .map(|batch| batch.sequence)
        .collect();
    assert_eq!(sequences, [Some(0), Some(1), Some(2), None]);
    let ready = state.ready_in(&state.partitions[0], &settings, start);
    assert_eq!(ready, None, "one is still under way");
    state.partitions[0].in_flight = 0;
    let ready = state.ready_in(&state.partitions[0], &settings, start);
    assert_eq!(ready, Some(Duration::ZERO));
}

#[test]
fn errors_mean_what_they_mean_in_java() {
    let of = |error: ErrorCode, idempotent, first| fate(error.code(), idempotent, first);
    let hole = ErrorCode::OutOfOrderSequenceNumber;
    assert_eq!(of(ErrorCode::None, true, true), Fate::Written);
    assert_eq!(
        of(ErrorCode::DuplicateSequenceNumber, true, true),
        Fate::Written
    );
    assert!(matches!(
        of(hole, true, false),
        Fate::Again { look_up: false, .. }
    ));
    assert!(matches!(of(hole, true, true), Fate::AgainRenewed { .. }));
    assert!(matches!(of(hole, false, true), Fate::Lost { .. }));
    assert!(matches!(
        of(ErrorCode::NotLeaderOrFollower, false, true),
        Fate::Again { look_up: true, .. }
    ));
    assert!(matches!(
        of(ErrorCode::MessageTooLarge, true, true),
        Fate::Lost { .. }
    ));
    assert!(matches!(fate(9999, true, true), Fate::Lost { .. }));
}

#[test]
fn idempotence_is_on_where_it_can_be() {
    assert!(settings(&[]).unwrap().idempotent);
    assert!(!settings(&[("acks", "1")]).unwrap().idempotent);
    assert!(!settings(&[("retries", "0")]).unwrap().idempotent);
    assert!(
        !settings(&[("enable.idempotence", "false")])
            .unwrap()
            .idempotent
    );
    let error = settings(&[("enable.idempotence", "true"), ("acks", "0")]).unwrap_err();
    assert!(
        error.starts_with("enable.idempotence=true: it needs acks=all"),
        "{error}"
    );
    assert!(settings(&[("acks", "2")]).is_err());
    assert!(settings(&[("compression.type", "rar")]).is_err());
    assert!(settings(&[("transactional.id", "t")]).is_err());
}
