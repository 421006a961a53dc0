//! Bytes that mean harm: the connection ends, no other notices, and nothing of the claimed size is reserved.
use bytes::{BufMut, BytesMut};
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::{ApiVersionsRequest, ListOffsetsRequest, MetadataRequest};

use crate::batch::{Batch, Codec};
use crate::client::{Connection, frame, with_length};
use crate::common::{PRODUCE, Topic, connect, creatable, create, produce, produce_as, text};
use crate::support::broker::Broker;
use crate::support::clock;
use crate::support::random::{self, Random};

struct Witness(Connection);

impl Witness {
    fn new() -> Self {
        Self(connect())
    }

    fn served(&mut self) {
        let request = ApiVersionsRequest::default();
        let request = request
            .with_client_software_name(text("wire"))
            .with_client_software_version(text("1"));
        assert_eq!(
            self.0.call(3, &request).error_code,
            0,
            "others are served as before"
        );
    }
}

#[test]
fn a_length_beyond_the_limit_ends_the_connection() {
    let mut witness = Witness::new();
    for length in [i32::MAX, 104_857_601, -1, i32::MIN] {
        let mut connection = connect();
        connection.send_raw(&length.to_be_bytes());
        connection.try_send_raw(&[0, 3, 0, 1, 0, 0, 0, 9]);
        connection.expect_closed(&format!("a frame of length {length}"));
        witness.served();
    }
}

#[test]
fn a_frame_too_short_for_a_header_ends_the_connection() {
    let mut witness = Witness::new();
    for body in [
        &[][..],
        &[0],
        &[0, 18, 0],
        &[0, 3, 0, 1, 0, 0],
        &[0, 3, 0, 1, 0, 0, 0, 9, 0, 99, 1],
    ] {
        let mut connection = connect();
        connection.send_raw(&with_length(body));
        connection.expect_closed(&format!("a frame of {body:?}"));
        witness.served();
    }
}

#[test]
fn a_client_that_leaves_in_the_middle_of_a_frame_disturbs_nobody() {
    let mut witness = Witness::new();
    let whole = frame(9, 1, &MetadataRequest::default().with_topics(None));
    for cut in 0..whole.len() {
        let mut connection = connect();
        connection.send_raw(&whole[..cut]);
        connection.finish_sending();
        connection.expect_closed(&format!("the first {cut} bytes of a request"));
    }
    witness.served();
}

#[test]
fn a_body_cut_short_ends_the_connection() {
    let mut witness = Witness::new();
    let whole = frame(9, 1, &MetadataRequest::default().with_topics(None));
    for cut in 12..whole.len() - 4 {
        let mut connection = connect();
        connection.send_raw(&with_length(&whole[4..4 + cut]));
        connection.expect_closed(&format!("a request of {cut} bytes"));
    }
    witness.served();
}

#[test]
fn a_count_that_the_frame_cannot_hold_ends_the_connection() {
    let mut witness = Witness::new();
    // Metadata v1 with two thousand million topics, and v9 with as many in its compact form; Produce v3, Fetch v4.
    let bodies: [(i16, i16, &[u8]); 5] = [
        (3, 1, &[0x7f, 0xff, 0xff, 0xff, 0, 1, b'a']),
        (3, 9, &[0, 0xff, 0xff, 0xff, 0xff, 0x0f, 2, b'a']),
        (
            0,
            3,
            &[
                0xff, 0xff, 0, 1, 0, 0, 0, 9, 0x7f, 0xff, 0xff, 0xff, 0, 1, b'a',
            ],
        ),
        (
            1,
            4,
            &[
                0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0x7f, 0xff, 0xff,
                0xff,
            ],
        ),
        (3, 1, &[0, 0, 0, 1, 0x7f, 0xff, b'a']),
    ];
    for (key, version, body) in bodies {
        let mut connection = connect();
        connection.send_raw(&request_of(key, version, body));
        connection.expect_closed(&format!("API {key} version {version} with {body:?}"));
        witness.served();
    }
}

#[test]
fn a_negative_count_or_length_ends_the_connection() {
    let mut witness = Witness::new();
    let (least, less) = (i32::MIN.to_be_bytes(), (-2i32).to_be_bytes());
    // CreateTopics 2, DeleteTopics 1, ListOffsets 1, JoinGroup 0, and Produce 3 with records of such a length.
    for count in [least, less] {
        let with = |front: &[u8], back: &[u8]| [front, &count, back].concat();
        let produce = b"\xff\xff\0\x01\0\0\0\x09\0\0\0\x01\0\x01t\0\0\0\x01\0\0\0\0";
        let bodies = [
            (19, 2, with(b"", b"\0\0\0\x09\0")),
            (20, 1, with(b"", b"\0\0\0\x09")),
            (2, 1, with(b"\xff\xff\xff\xff", b"")),
            (11, 0, with(b"\0\x01g\0\0\x17\x70\0\0\0\x08consumer", b"")),
            (0, 3, with(produce, b"")),
        ];
        for (key, version, body) in bodies {
            let mut connection = connect();
            connection.send_raw(&request_of(key, version, &body));
            connection.expect_closed(&format!("API {key} version {version} with {body:?}"));
            witness.served();
        }
    }
    // A name of negative length in Metadata 1; one of no length at all in FindCoordinator 3, where it cannot be null.
    for (key, version, body) in [
        (3, 1, &b"\0\0\0\x01\x80\0"[..]),
        (3, 1, b"\0\0\0\x01\xff\xfea"),
        (10, 3, b"\0\0\0\0"),
    ] {
        let mut connection = connect();
        connection.send_raw(&request_of(key, version, body));
        connection.expect_closed(&format!("API {key} version {version} with {body:?}"));
        witness.served();
    }
}

/// Who speaks another protocol finds no one here.
#[test]
fn what_is_not_kafka_ends_the_connection() {
    let mut witness = Witness::new();
    for first in [
        &b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"[..],
        b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"\0\0\0\x10\xde\xad\xbe\xef\xde\xad\xbe\xef\xde\xad\xbe\xef\xde\xad\xbe\xef",
        &[0xff; 64],
        &[0; 64],
    ] {
        let mut connection = connect();
        connection.try_send_raw(first);
        connection.expect_closed(&format!("{first:?}"));
        witness.served();
    }
}

/// A byte at a time is slow, and no offence.
#[test]
fn a_request_in_single_bytes_is_answered() {
    let mut connection = connect();
    let request = MetadataRequest::default().with_topics(Some(vec![]));
    for byte in frame(9, 77, &request) {
        connection.send_raw(&[byte]);
    }
    let answer = connection.receive_frame().expect("an answer");
    assert_eq!(answer[..4], [0, 0, 0, 77]);
}

/// Batches of a few kilobytes that unpack to many megabytes, or say so: memory stays, and others are served.
#[test]
fn compression_bombs_cost_no_memory() {
    const MIB: usize = 1 << 20;
    let broker = Broker::start("bombs", &[("ringmain.shards", "2")]);
    let mut client = Connection::open(broker.port);
    let answer = create(&mut client, creatable("bombs", 1), false);
    let topic = Topic {
        name: answer.name,
        id: answer.topic_id,
    };
    let zeros = bytes::Bytes::from(vec![0; MIB]);
    let large = |count| {
        let record = (clock::wall_clock_ms(), None, zeros.clone());
        Batch::new(vec![record; count]).packed(Codec::Gzip).bytes()
    };
    produce(&mut client, &topic, large(1));
    let resident = broker.resident_kib().expect("it runs");

    // Apache takes these: what counts is the size as sent, and each record is one that could be sent alone.
    let bomb = large(64);
    assert!(bomb.len() < MIB, "{}", bomb.len());
    for _ in 0..3 {
        produce(&mut client, &topic, bomb.clone());
    }
    // Packed once more, the bytes inside are no records.
    let nested = repacked(&bomb, gzipped);
    // A zstd frame that asks for a window of 2 GiB, and one that promises 2^60 bytes.
    let window = repacked(&bomb, |_| b"\x28\xb5\x2f\xfd\0\xa8\x01\0\0".to_vec());
    let promise = repacked(&bomb, |_| {
        b"\x28\xb5\x2f\xfd\xe0\0\0\0\0\0\0\0\x10\x01\0\0".to_vec()
    });
    for (bytes, codec) in [(nested, 1), (window, 4), (promise, 4)] {
        let bytes = with_codec(&bytes, codec);
        let answer = produce_as(&mut client, PRODUCE, &topic, -1, bytes);
        assert_ne!(answer.error_code, 0, "{answer:?}");
    }
    // Looking for a time goes through them all again.
    let mut search = ListOffsetsTopic::default().with_name(topic.name.clone());
    for timestamp in [-3, clock::wall_clock_ms() + 1000] {
        let partition = ListOffsetsPartition::default().with_timestamp(timestamp);
        search.partitions = vec![partition];
        let request = ListOffsetsRequest::default()
            .with_replica_id((-1).into())
            .with_topics(vec![search.clone()]);
        let answer = client.call(7, &request);
        assert_eq!(answer.topics[0].partitions[0].error_code, 0);
    }
    let grown = broker
        .resident_kib()
        .expect("it runs")
        .saturating_sub(resident);
    println!(
        "{grown} KiB more after batches of 64 MiB in {} bytes",
        bomb.len()
    );
    assert!(grown < 24 << 10, "{grown} KiB");
}

fn gzipped(content: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(content).expect("memory takes bytes");
    encoder.finish().expect("memory takes bytes")
}

/// The batch with other content behind its head.
fn repacked(batch: &[u8], content: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    const HEAD: usize = 61;
    let mut bytes = [&batch[..HEAD], &content(&batch[HEAD..])].concat();
    let length = i32::try_from(bytes.len() - 12).expect("a small batch");
    bytes[8..12].copy_from_slice(&length.to_be_bytes());
    bytes
}

/// The batch under another codec's number, its checksum made right.
fn with_codec(batch: &[u8], codec: u8) -> bytes::Bytes {
    let mut bytes = batch.to_vec();
    bytes[22] = codec;
    let sum = crc32c::crc32c(&bytes[21..]);
    bytes[17..21].copy_from_slice(&sum.to_be_bytes());
    bytes.into()
}

fn request_of(key: i16, version: i16, body: &[u8]) -> bytes::Bytes {
    let mut request = BytesMut::new();
    request.put_i16(key);
    request.put_i16(version);
    request.put_i32(1);
    request.put_i16(-1);
    // The header of FindCoordinator 3 ends with tagged fields.
    if key == 10 {
        request.put_u8(0);
    }
    request.put_slice(body);
    with_length(&request)
}

/// Any bytes behind any header: an answer or the end of the connection, and the broker lives on.
#[test]
fn noise_disturbs_nobody() {
    let seed = random::seed();
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let mut witness = Witness::new();
    for _ in 0..600 {
        let mut request = BytesMut::new();
        request.put_i16(i16::try_from(random.between(0, 95)).unwrap());
        request.put_i16(i16::try_from(random.between(0, 19)).unwrap());
        request.put_i32(1);
        request.put_i16(-1);
        for _ in 0..random.between(0, 80) {
            let byte = random.next().to_be_bytes()[0];
            request.put_u8(if random.between(0, 3) == 0 {
                byte
            } else {
                byte & 3
            });
        }
        let mut connection = connect();
        connection.send_raw(&with_length(&request));
        connection.finish_sending();
        while connection.receive_frame().is_some() {}
    }
    witness.served();
}
