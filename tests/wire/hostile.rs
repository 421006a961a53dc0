//! Bytes that mean harm: the connection ends, no other notices, and nothing of the claimed size is reserved.
use bytes::{BufMut, BytesMut};
use kafka_protocol::messages::{ApiVersionsRequest, MetadataRequest};

use crate::client::{Connection, frame, with_length};
use crate::common::{connect, text};
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
        let mut request = BytesMut::new();
        request.put_i16(key);
        request.put_i16(version);
        request.put_i32(1);
        request.put_i16(-1);
        request.put_slice(body);
        let mut connection = connect();
        connection.send_raw(&with_length(&request));
        connection.expect_closed(&format!("API {key} version {version} with {body:?}"));
        witness.served();
    }
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
