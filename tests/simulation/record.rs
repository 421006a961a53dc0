//! Records that say who made them, for where, and whether a byte of them has changed.

use bytes::{BufMut, Bytes, BytesMut};
use protocol::Uuid;
use protocol::records::BatchBuilder;

/// A partition of one incarnation of a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub topic: Uuid,
    pub partition: i32,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.topic, self.partition)
    }
}

/// A record: its maker, and its number among all that the maker made for this partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Id {
    pub maker: u32,
    pub number: u32,
}

impl std::fmt::Display for Id {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "record {} of maker {}", self.number, self.maker)
    }
}

/// Who sends a batch, as the broker tells idempotent producers apart.
#[derive(Clone, Copy, Debug)]
pub struct Producer {
    pub id: i64,
    pub epoch: i16,
    pub sequence: i32,
}

const MAGIC: u32 = 0x5EED_0001;

/// The bytes of a record; only this record, in this place, has them.
fn value(place: Place, id: Id) -> Bytes {
    let mut mixed = (u64::from(id.maker) << 32 | u64::from(id.number))
        .wrapping_add(place.partition.unsigned_abs().into())
        .wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let length = match mixed >> 60 {
        0 => 4000,
        1..4 => 1000,
        _ => 40,
    };
    let length = length + (mixed >> 40) as usize % 256;
    let mut bytes = BytesMut::with_capacity(length + 40);
    bytes.put_u32(MAGIC);
    bytes.put_slice(&place.topic.0);
    bytes.put_i32(place.partition);
    bytes.put_u32(id.maker);
    bytes.put_u32(id.number);
    while bytes.len() < length {
        mixed ^= mixed << 13;
        mixed ^= mixed >> 7;
        mixed ^= mixed << 17;
        bytes.put_u64(mixed);
    }
    bytes.freeze()
}

/// Who made a record that was read here; `None` if nobody made it for this place.
pub fn identify(place: Place, bytes: &[u8]) -> Option<Id> {
    let number = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let id = Id {
        maker: number(24)?,
        number: number(28)?,
    };
    (bytes == value(place, id)).then_some(id)
}

/// One batch of these records, as a client sends it.
pub fn batch(place: Place, ids: &[Id], now_ms: i64, producer: Option<Producer>) -> Bytes {
    let mut builder = BatchBuilder::new(0);
    if let Some(producer) = producer {
        builder = builder.producer(producer.id, producer.epoch, producer.sequence);
    }
    for id in ids {
        builder.append(now_ms, None, Some(&value(place, *id)), &[]);
    }
    builder.build_bytes().expect("a small batch")
}
