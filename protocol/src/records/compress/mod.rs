//! The four codecs, as Kafka frames them.
//!
//! Reading is streamed in chunks through one small buffer and stops at a limit, so that a few bytes
//! that unpack to gigabytes cost neither memory nor, past the limit, time. Writing is what Kafka's
//! own Java classes write: gzip members, xerial-framed snappy, LZ4 frames of independent 64 KiB
//! blocks, zstd frames.

mod gzip;
mod lz4;
mod snappy;
mod zstandard;

use bytes::BytesMut;

use super::error::BatchError;

pub(crate) use lz4::Lz4Checksum;

/// The compression ids of all formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Compression {
    #[default]
    None,
    Gzip,
    Snappy,
    Lz4,
    Zstd,
}

impl Compression {
    pub const ALL: [Compression; 5] = [
        Compression::None,
        Compression::Gzip,
        Compression::Snappy,
        Compression::Lz4,
        Compression::Zstd,
    ];

    /// # Errors
    /// `UnknownCompression` from 5 on.
    pub fn from_id(id: u8) -> Result<Compression, BatchError> {
        Self::ALL
            .get(usize::from(id))
            .copied()
            .ok_or(BatchError::UnknownCompression { id })
    }

    pub fn id(self) -> u8 {
        self as u8
    }

    /// As in configurations: `none`, `gzip`, `snappy`, `lz4`, `zstd`.
    pub fn name(self) -> &'static str {
        match self {
            Compression::None => "none",
            Compression::Gzip => "gzip",
            Compression::Snappy => "snappy",
            Compression::Lz4 => "lz4",
            Compression::Zstd => "zstd",
        }
    }

    pub fn from_name(name: &str) -> Option<Compression> {
        Self::ALL
            .into_iter()
            .find(|compression| compression.name() == name)
    }

    /// The levels that Kafka's `compression.*.level` keys allow, and the default; `None` for codecs
    /// that have no level.
    pub fn levels(self) -> Option<Levels> {
        match self {
            Compression::None | Compression::Snappy => None,
            // -1 asks the library for its own default, which is 6.
            Compression::Gzip => Some(Levels {
                least: 1,
                most: 9,
                default: -1,
            }),
            Compression::Lz4 => Some(Levels {
                least: 1,
                most: 17,
                default: 9,
            }),
            Compression::Zstd => Some(Levels {
                least: -131_072,
                most: 22,
                default: 3,
            }),
        }
    }
}

/// See [`Compression::levels`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Levels {
    pub least: i32,
    pub most: i32,
    pub default: i32,
}

impl Levels {
    pub fn contains(self, level: i32) -> bool {
        (self.least..=self.most).contains(&level) || level == self.default
    }
}

/// A compression with the level to write it at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Codec {
    pub compression: Compression,
    /// Ignored for none, snappy and lz4: the LZ4 library here has one speed. Output of any level
    /// reads the same.
    pub level: i32,
}

impl Codec {
    pub const NONE: Codec = Codec {
        compression: Compression::None,
        level: 0,
    };

    /// Levels outside the codec's range are moved to its nearest end.
    pub fn new(compression: Compression, level: i32) -> Codec {
        let level = match compression.levels() {
            Some(levels) if !levels.contains(level) => level.clamp(levels.least, levels.most),
            Some(_) => level,
            None => 0,
        };
        Codec { compression, level }
    }
}

/// At the default level.
impl From<Compression> for Codec {
    fn from(compression: Compression) -> Codec {
        let level = compression.levels().map_or(0, |levels| levels.default);
        Codec { compression, level }
    }
}

/// Why bytes do not decompress.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecompressError {
    #[error("the {} data is corrupt: {why}", compression.name())]
    Corrupt {
        compression: Compression,
        why: String,
    },
    /// The caller's limit.
    #[error("the {} data unpacks to more than {limit} bytes", compression.name())]
    TooLarge {
        compression: Compression,
        limit: usize,
    },
}

/// The library refused to compress (out of memory, in practice).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} compression failed: {why}", compression.name())]
pub struct CompressError {
    pub compression: Compression,
    pub why: String,
}

/// Appends the compressed form of `data` to `out`.
///
/// # Errors
/// Only if the library runs out of memory.
pub fn compress(codec: Codec, data: &[u8], out: &mut BytesMut) -> Result<(), CompressError> {
    compress_with(codec, data, out, Lz4Checksum::Right)
}

pub(crate) fn compress_with(
    codec: Codec,
    data: &[u8],
    out: &mut BytesMut,
    checksum: Lz4Checksum,
) -> Result<(), CompressError> {
    let result = match codec.compression {
        Compression::None => {
            out.extend_from_slice(data);
            Ok(())
        }
        Compression::Gzip => gzip::compress(codec.level, data, out),
        Compression::Snappy => snappy::compress(data, out),
        Compression::Lz4 => lz4::compress(data, out, checksum),
        Compression::Zstd => zstandard::compress(codec.level, data, out),
    };
    result.map_err(|why| CompressError {
        compression: codec.compression,
        why,
    })
}

/// Decompresses all of `data` into memory.
///
/// # Errors
/// `TooLarge` as soon as the output passes `max` bytes, `Corrupt` with the library's reason.
pub fn decompress(
    compression: Compression,
    data: &[u8],
    max: usize,
) -> Result<Vec<u8>, DecompressError> {
    let mut out = Vec::new();
    decompress_into(compression, data, max, Lz4Checksum::Right, &mut out)?;
    Ok(out)
}

pub(crate) fn decompress_into(
    compression: Compression,
    data: &[u8],
    max: usize,
    checksum: Lz4Checksum,
    out: &mut Vec<u8>,
) -> Result<(), DecompressError> {
    let mut scratch = Scratch::default();
    let mut chunks = Chunks::new(compression, data, max, checksum, &mut scratch)?;
    while chunks.advance()? {
        out.extend_from_slice(chunks.chunk());
    }
    Ok(())
}

/// Memory that decompression reuses from batch to batch. One per core.
#[derive(Default)]
pub struct Scratch {
    buffer: Vec<u8>,
    zstd: Option<zstd::zstd_safe::DCtx<'static>>,
}

impl std::fmt::Debug for Scratch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scratch")
            .field("buffer_bytes", &self.buffer.capacity())
            .finish()
    }
}

/// Decompressed data piece by piece: after `advance` gave true, `chunk` is the next piece.
pub(crate) struct Chunks<'a> {
    compression: Compression,
    source: Source<'a>,
    produced: usize,
    limit: usize,
}

enum Source<'a> {
    Plain { data: &'a [u8], given: bool },
    Gzip(gzip::Reader<'a>),
    Snappy(snappy::Reader<'a>),
    Lz4(lz4::Reader<'a>),
    Zstd(zstandard::Reader<'a>),
}

/// What a reader that knows sizes before it unpacks came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Advanced {
    Chunk,
    End,
    TooLarge,
}

impl<'a> Chunks<'a> {
    pub(crate) fn new(
        compression: Compression,
        data: &'a [u8],
        limit: usize,
        checksum: Lz4Checksum,
        scratch: &'a mut Scratch,
    ) -> Result<Self, DecompressError> {
        let Scratch { buffer, zstd } = scratch;
        let source = match compression {
            Compression::None => Ok(Source::Plain { data, given: false }),
            Compression::Gzip => Ok(Source::Gzip(gzip::Reader::new(data, buffer))),
            Compression::Snappy => Ok(Source::Snappy(snappy::Reader::new(data, buffer))),
            Compression::Lz4 => lz4::Reader::new(data, checksum, buffer).map(Source::Lz4),
            Compression::Zstd => Ok(Source::Zstd(zstandard::Reader::new(data, buffer, zstd))),
        };
        let source = source.map_err(|why| DecompressError::Corrupt { compression, why })?;
        Ok(Chunks {
            compression,
            source,
            produced: 0,
            limit,
        })
    }

    /// False at the end of the data.
    pub(crate) fn advance(&mut self) -> Result<bool, DecompressError> {
        let compression = self.compression;
        let left = self.limit - self.produced;
        let more = match &mut self.source {
            Source::Plain { data, given } => {
                let more = !*given && !data.is_empty();
                if *given {
                    *data = &[];
                }
                *given = true;
                Ok(more)
            }
            Source::Gzip(reader) => reader.advance(),
            Source::Snappy(reader) => match reader.advance(left) {
                Ok(Advanced::TooLarge) => {
                    return Err(DecompressError::TooLarge {
                        compression,
                        limit: self.limit,
                    });
                }
                Ok(advanced) => Ok(advanced == Advanced::Chunk),
                Err(why) => Err(why),
            },
            Source::Lz4(reader) => reader.advance(),
            Source::Zstd(reader) => reader.advance(),
        };
        let more = more.map_err(|why| DecompressError::Corrupt { compression, why })?;
        let length = if more { self.chunk().len() } else { 0 };
        if length > left {
            return Err(DecompressError::TooLarge {
                compression,
                limit: self.limit,
            });
        }
        self.produced += length;
        Ok(more)
    }

    pub(crate) fn chunk(&self) -> &[u8] {
        match &self.source {
            Source::Plain { data, .. } => data,
            Source::Gzip(reader) => reader.chunk(),
            Source::Snappy(reader) => reader.chunk(),
            Source::Lz4(reader) => reader.chunk(),
            Source::Zstd(reader) => reader.chunk(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compressed(compression: Compression, data: &[u8]) -> BytesMut {
        let mut out = BytesMut::new();
        compress(compression.into(), data, &mut out).unwrap();
        out
    }

    fn text(length: usize) -> Vec<u8> {
        (0..length).map(|at| (at * at / 97) as u8).collect()
    }

    #[test]
    fn what_was_packed_unpacks_to_the_limit_exactly() {
        for compression in Compression::ALL {
            for length in [0, 1, 100, 40_000, 70_000, 300_000] {
                let data = text(length);
                let packed = compressed(compression, &data);
                assert_eq!(
                    decompress(compression, &packed, length),
                    Ok(data),
                    "{compression:?}"
                );
                if length > 0 {
                    assert_eq!(
                        decompress(compression, &packed, length - 1),
                        Err(DecompressError::TooLarge {
                            compression,
                            limit: length - 1
                        })
                    );
                }
            }
        }
    }

    #[test]
    fn a_bomb_is_stopped_before_it_takes_memory() {
        let zeros = vec![0; 64 << 20];
        for compression in Compression::ALL {
            let packed = compressed(compression, &zeros);
            let mut scratch = Scratch::default();
            let mut chunks = Chunks::new(
                compression,
                &packed,
                1 << 20,
                Lz4Checksum::Right,
                &mut scratch,
            )
            .unwrap();
            let error = loop {
                match chunks.advance() {
                    Ok(more) => assert!(more, "{compression:?} ended"),
                    Err(error) => break error,
                }
            };
            assert_eq!(
                error,
                DecompressError::TooLarge {
                    compression,
                    limit: 1 << 20
                }
            );
            drop(chunks);
            assert!(scratch.buffer.capacity() <= 4 << 20);
        }
    }

    #[test]
    fn cut_data_is_an_error_or_shorter_and_never_a_panic() {
        let data = text(5_000);
        for compression in Compression::ALL {
            let packed = compressed(compression, &data);
            for length in 0..packed.len() {
                if let Ok(unpacked) = decompress(compression, &packed[..length], 1 << 20) {
                    assert!(unpacked.len() < data.len() && data.starts_with(&unpacked));
                }
            }
        }
    }

    #[test]
    fn levels_are_those_of_kafka() {
        assert_eq!(Codec::new(Compression::Gzip, -1).level, -1);
        assert_eq!(Codec::new(Compression::Gzip, 77).level, 9);
        assert_eq!(Codec::from(Compression::Lz4).level, 9);
        assert!(!Compression::Lz4.levels().unwrap().contains(0));
        assert!(Compression::Zstd.levels().unwrap().contains(-131_072));
        let data = text(50_000);
        for (compression, level) in [
            (Compression::Gzip, 1),
            (Compression::Gzip, 9),
            (Compression::Zstd, 19),
        ] {
            let mut out = BytesMut::new();
            compress(Codec::new(compression, level), &data, &mut out).unwrap();
            assert_eq!(decompress(compression, &out, 50_000).unwrap(), data);
        }
    }

    #[test]
    fn snappy_reads_a_raw_block_and_streams_after_each_other() {
        let data = text(90_000);
        let raw = snap::raw::Encoder::new().compress_vec(&data).unwrap();
        assert_eq!(decompress(Compression::Snappy, &raw, 90_000).unwrap(), data);
        let mut twice = compressed(Compression::Snappy, &data);
        twice.extend_from_slice(&compressed(Compression::Snappy, b"more"));
        let both = [&data[..], b"more"].concat();
        assert_eq!(
            decompress(Compression::Snappy, &twice, 100_000).unwrap(),
            both
        );
    }

    #[test]
    fn gzip_reads_members_after_each_other_and_leaves_what_is_none() {
        let mut members = compressed(Compression::Gzip, b"one ");
        members.extend_from_slice(&compressed(Compression::Gzip, b""));
        members.extend_from_slice(&compressed(Compression::Gzip, b"two"));
        assert_eq!(
            decompress(Compression::Gzip, &members, 7).unwrap(),
            b"one two"
        );
        let checksum_at = members.len() - 8;
        members.extend_from_slice(b"rest");
        assert_eq!(
            decompress(Compression::Gzip, &members, 7).unwrap(),
            b"one two"
        );
        members[checksum_at] ^= 1;
        assert!(decompress(Compression::Gzip, &members, 7).is_err());
        assert!(decompress(Compression::Gzip, b"", 7).is_err());
    }

    #[test]
    fn a_raw_snappy_block_cannot_claim_gigabytes() {
        // The length varint says 4 GiB - 1.
        let claim = [0xff, 0xff, 0xff, 0xff, 0x0f, 0x00, 0x41];
        let error = decompress(Compression::Snappy, &claim, usize::MAX).unwrap_err();
        assert!(matches!(error, DecompressError::Corrupt { .. }), "{error}");
    }

    #[test]
    fn lz4_refuses_what_java_cannot_read() {
        let good = compressed(Compression::Lz4, &text(1000));
        let mut linked = good.clone();
        linked[4] &= !0x20;
        let error = decompress(Compression::Lz4, &linked, 1000).unwrap_err();
        assert!(
            error.to_string().contains("depend on each other"),
            "{error}"
        );
        let mut wrong = good.clone();
        wrong[6] ^= 1;
        assert!(decompress(Compression::Lz4, &wrong, 1000).is_err());
        let no_end_mark = &good[..good.len() - 4];
        assert!(decompress(Compression::Lz4, no_end_mark, 1000).is_err());
    }

    /// A frame with every optional field that Java and librdkafka may set.
    fn lz4_with_all_fields(data: &[u8]) -> Vec<u8> {
        let plain = compressed(Compression::Lz4, data);
        let mut frame = plain[..4].to_vec();
        let mut descriptor = vec![0x7c, 0x40];
        descriptor.extend_from_slice(&(data.len() as u64).to_le_bytes());
        frame.extend_from_slice(&descriptor);
        frame.push((twox_hash::XxHash32::oneshot(0, &descriptor) >> 8) as u8);
        let mut rest = &plain[7..];
        loop {
            let length = u32::from_le_bytes(rest[..4].try_into().unwrap());
            let block = 4 + (length & 0x7fff_ffff) as usize;
            frame.extend_from_slice(&rest[..block]);
            if length == 0 {
                break;
            }
            let checksum = twox_hash::XxHash32::oneshot(0, &rest[4..block]);
            frame.extend_from_slice(&checksum.to_le_bytes());
            rest = &rest[block..];
        }
        frame.extend_from_slice(&twox_hash::XxHash32::oneshot(0, data).to_le_bytes());
        frame
    }

    #[test]
    fn lz4_checksums_of_blocks_and_content_are_read_and_checked() {
        let data = text(150_000);
        let frame = lz4_with_all_fields(&data);
        assert_eq!(decompress(Compression::Lz4, &frame, 150_000).unwrap(), data);
        // Magic, descriptor, and at the end: block checksum, end mark, content checksum.
        for at in [
            0,
            4,
            5,
            8,
            14,
            frame.len() - 12,
            frame.len() - 8,
            frame.len() - 1,
        ] {
            let mut damaged = frame.clone();
            damaged[at] ^= 0x41;
            assert!(
                decompress(Compression::Lz4, &damaged, 150_000).is_err(),
                "byte {at}"
            );
        }
    }

    #[test]
    fn lz4_of_magic_0_has_the_other_checksum_and_either_is_read() {
        let data = text(1000);
        let mut out = BytesMut::new();
        compress_with(
            Compression::Lz4.into(),
            &data,
            &mut out,
            Lz4Checksum::Magic0,
        )
        .unwrap();
        assert!(decompress(Compression::Lz4, &out, 1000).is_err());
        for packed in [out, compressed(Compression::Lz4, &data)] {
            let mut read = Vec::new();
            let checksum = Lz4Checksum::Magic0;
            decompress_into(Compression::Lz4, &packed, 1000, checksum, &mut read).unwrap();
            assert_eq!(read, data);
        }
    }
}
