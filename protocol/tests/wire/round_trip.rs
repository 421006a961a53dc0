//! Every message in every version, against the interpreter.

use bytes::Bytes;
use protocol::wire::{EncodeErrorKind, Reader, Writer};
use protocol::{MessageInfo, RecodeError};

use crate::interpreter::{self, Noise, Refusal, Value};
use crate::random::Random;

const ROUNDS: u64 = 12;

fn recode(
    info: &MessageInfo,
    bytes: &[u8],
    from: i16,
    to: i16,
) -> (Result<Vec<u8>, RecodeError>, usize) {
    let mut reader = Reader::new(Bytes::copy_from_slice(bytes));
    let mut writer = Writer::new();
    let result = (info.recode)(&mut reader, from, &mut writer, to);
    (
        result.map(|()| writer.freeze().to_vec()),
        reader.remaining(),
    )
}

fn each_case(mut case: impl FnMut(&crate::schema::Message, &MessageInfo, i16, Random)) {
    for (message, info) in interpreter::all() {
        for version in message.versions.min..=message.versions.max {
            for round in 0..ROUNDS {
                case(
                    &message,
                    &info,
                    version,
                    Random::of(&message.name, version, round),
                );
            }
        }
    }
}

#[test]
fn bytes_come_back_as_they_were() {
    let mut cases = 0;
    each_case(|message, info, version, mut random| {
        let value = interpreter::generate(message, version, &mut random);
        let bytes = interpreter::write(message, &value, version, Noise::None).unwrap();
        let (result, left) = recode(info, &bytes, version, version);
        assert_eq!(
            result.as_ref(),
            Ok(&bytes),
            "{} v{version}: {value:#?}",
            message.name
        );
        assert_eq!(left, 0, "{} v{version}: {value:#?}", message.name);
        cases += 1;
    });
    // 279 messages with 2.3 versions each, on average.
    assert!(cases > 7_000, "{cases}");
}

#[test]
fn unknown_tags_are_skipped_and_bytes_behind_are_left() {
    each_case(|message, info, version, mut random| {
        let value = interpreter::generate(message, version, &mut random);
        let mut noisy = interpreter::write(message, &value, version, Noise::UnknownTags).unwrap();
        noisy.extend(b"behind");
        let bytes = interpreter::write(message, &value, version, Noise::None).unwrap();
        let (result, left) = recode(info, &noisy, version, version);
        assert_eq!(result, Ok(bytes), "{} v{version}: {value:#?}", message.name);
        assert_eq!(left, b"behind".len());
    });
}

/// Ignorable fields are dropped, others refused, defaults filled in.
#[test]
fn values_move_between_versions() {
    let mut refused = 0;
    let mut written = 0;
    each_case(|message, info, from, mut random| {
        let value = interpreter::generate(message, from, &mut random);
        let bytes = interpreter::write(message, &value, from, Noise::None).unwrap();
        for to in message.versions.min..=message.versions.max {
            let expected = interpreter::write(message, &value, to, Noise::None);
            let (result, _) = recode(info, &bytes, from, to);
            let case = || format!("{} v{from} to v{to}: {value:#?}", message.name);
            match (expected, result) {
                (Ok(expected), Ok(got)) => assert_eq!(got, expected, "{}", case()),
                (Err(refusal), Err(RecodeError::Encode(error))) => {
                    assert_eq!((error.message, error.version), (info.name, to));
                    let kind = match error.kind {
                        EncodeErrorKind::NotInVersion(_) => Refusal::NotInVersion,
                        EncodeErrorKind::NullNotAllowed(_) => Refusal::NullNotAllowed,
                        other => panic!("{other:?}: {}", case()),
                    };
                    assert_eq!(kind, refusal, "{}", case());
                    refused += 1;
                    continue;
                }
                other => panic!("{other:?}: {}", case()),
            }
            written += 1;
        }
    });
    assert!(
        refused > 1_000 && written > 10_000,
        "{refused} refused, {written} written"
    );
}

#[test]
fn defaults_are_the_schemas() {
    for (message, info) in interpreter::all() {
        for version in message.versions.min..=message.versions.max {
            let mut writer = Writer::new();
            let result = (info.encode_default)(&mut writer, version);
            match interpreter::write_default(&message, version) {
                Ok(expected) => {
                    assert_eq!(result, Ok(()), "{} v{version}", message.name);
                    assert_eq!(writer.freeze(), expected, "{} v{version}", message.name);
                }
                Err(_) => assert!(result.is_err(), "{} v{version}", message.name),
            }
        }
    }
}

#[test]
fn other_versions_are_refused() {
    for (message, info) in interpreter::all() {
        for version in [
            i16::MIN,
            -1,
            message.versions.min - 1,
            message.versions.max + 1,
        ] {
            let (result, _) = recode(&info, &[0; 64], version, version);
            assert!(
                matches!(result, Err(RecodeError::Decode(_))),
                "{} v{version}",
                message.name
            );
            let result = (info.encode_default)(&mut Writer::new(), version);
            assert!(result.is_err(), "{} v{version}", message.name);
        }
    }
}

/// The interpreter is only worth something if its values use what the schema offers.
#[test]
fn generated_values_are_rich() {
    let mut kinds = [0; 4];
    each_case(|message, _, version, mut random| {
        fn walk(value: &Value, kinds: &mut [i32; 4]) {
            match value {
                Value::Null => kinds[0] += 1,
                Value::Array(values) if values.is_empty() => kinds[1] += 1,
                Value::Array(values) => {
                    kinds[2] += 1;
                    values.iter().for_each(|value| walk(value, kinds));
                }
                Value::Struct(fields) => {
                    kinds[3] += 1;
                    fields.values().for_each(|value| walk(value, kinds));
                }
                _ => {}
            }
        }
        walk(
            &interpreter::generate(message, version, &mut random),
            &mut kinds,
        );
    });
    assert!(kinds.iter().all(|count| *count > 1_000), "{kinds:?}");
}
