//! Zigzag variable-length integers (protocol buffers' sint32 and sint64), as records use them.

use super::error::RecordProblem;

/// At most 5 bytes; bits above the 32nd in the fifth byte are dropped, as Kafka does.
#[inline(always)]
pub(crate) fn read_varint(bytes: &[u8], position: &mut usize) -> Result<i32, RecordProblem> {
    // Most lengths and deltas fit one or two bytes.
    match bytes.get(*position..) {
        Some(&[first, ..]) if first < 0x80 => {
            *position += 1;
            Ok(zigzag_i32(u32::from(first)))
        }
        Some(&[first, second, ..]) if second < 0x80 => {
            *position += 2;
            Ok(zigzag_i32(u32::from(first & 0x7f) | u32::from(second) << 7))
        }
        _ => read_unsigned::<5>(bytes, position).map(|value| zigzag_i32(value as u32)),
    }
}

/// At most 10 bytes.
#[inline(always)]
pub(crate) fn read_varlong(bytes: &[u8], position: &mut usize) -> Result<i64, RecordProblem> {
    match bytes.get(*position..) {
        Some(&[first, ..]) if first < 0x80 => {
            *position += 1;
            Ok(zigzag_i64(u64::from(first)))
        }
        _ => read_unsigned::<10>(bytes, position).map(zigzag_i64),
    }
}

/// Seven bits a byte, the lowest first.
fn read_unsigned<const MOST: usize>(
    bytes: &[u8],
    position: &mut usize,
) -> Result<u64, RecordProblem> {
    let mut value = 0u64;
    for at in 0..MOST {
        let byte = *bytes.get(*position).ok_or(RecordProblem::Truncated)?;
        *position += 1;
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(RecordProblem::VarintTooLong)
}

pub(crate) fn zigzag_i32(value: u32) -> i32 {
    ((value >> 1) as i32) ^ -((value & 1) as i32)
}

pub(crate) fn zigzag_i64(value: u64) -> i64 {
    ((value >> 1) as i64) ^ -((value & 1) as i64)
}

pub(crate) fn write_varint(out: &mut Vec<u8>, value: i32) {
    write_unsigned(out, u64::from(((value << 1) ^ (value >> 31)) as u32));
}

pub(crate) fn write_varlong(out: &mut Vec<u8>, value: i64) {
    write_unsigned(out, ((value << 1) ^ (value >> 63)) as u64);
}

fn write_unsigned(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value as u8 & 0x7f) | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub(crate) fn varint_len(value: i32) -> usize {
    unsigned_len(u64::from(((value << 1) ^ (value >> 31)) as u32))
}

pub(crate) fn varlong_len(value: i64) -> usize {
    unsigned_len(((value << 1) ^ (value >> 63)) as u64)
}

fn unsigned_len(value: u64) -> usize {
    let bits = 64 - (value | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_at_the_edges() {
        for value in [0, -1, 1, 63, 64, -64, -65, 8191, 8192, i32::MAX, i32::MIN] {
            let mut out = Vec::new();
            write_varint(&mut out, value);
            assert_eq!(out.len(), varint_len(value));
            let mut position = 0;
            assert_eq!(read_varint(&out, &mut position), Ok(value));
            assert_eq!(position, out.len());
        }
        for value in [0, -1, 1, 64, i64::from(i32::MAX) + 1, i64::MAX, i64::MIN] {
            let mut out = Vec::new();
            write_varlong(&mut out, value);
            assert_eq!(out.len(), varlong_len(value));
            let mut position = 0;
            assert_eq!(read_varlong(&out, &mut position), Ok(value));
            assert_eq!(position, out.len());
        }
    }

    #[test]
    fn refuses_endless_and_cut_integers() {
        assert_eq!(
            read_varint(&[0xff; 5], &mut 0),
            Err(RecordProblem::VarintTooLong)
        );
        assert_eq!(
            read_varint(&[0xff; 4], &mut 0),
            Err(RecordProblem::Truncated)
        );
        assert_eq!(
            read_varlong(&[0xff; 10], &mut 0),
            Err(RecordProblem::VarintTooLong)
        );
        assert_eq!(read_varlong(&[], &mut 0), Err(RecordProblem::Truncated));
    }
}
