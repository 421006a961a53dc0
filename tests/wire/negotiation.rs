//! ApiVersions, headers, and what happens with versions that are not served.
use std::collections::BTreeMap;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use kafka_protocol::messages::{ApiVersionsRequest, ApiVersionsResponse, MetadataRequest};
use kafka_protocol::protocol::Decodable;

use crate::client::{frame, with_length};
use crate::common::{connect, text};

fn client_of(name: &str, version: &str) -> ApiVersionsRequest {
    let request = ApiVersionsRequest::default();
    request
        .with_client_software_name(text(name))
        .with_client_software_version(text(version))
}

fn ranges(answer: &ApiVersionsResponse) -> BTreeMap<i16, (i16, i16)> {
    answer
        .api_keys
        .iter()
        .map(|api| (api.api_key, (api.min_version, api.max_version)))
        .collect()
}

/// The start of a request: key, version, correlation and a client id.
fn header(key: i16, version: i16, correlation: i32) -> BytesMut {
    let mut header = BytesMut::new();
    header.put_i16(key);
    header.put_i16(version);
    header.put_i32(correlation);
    header.put_i16(4);
    header.put_slice(b"wire");
    header
}

#[test]
fn an_unknown_version_of_api_versions_is_answered_in_the_oldest_layout() {
    let mut connection = connect();
    let mut request = header(18, 99, 7);
    request.put_u8(0); // no tagged fields in the header
    request.put_slice(&[0xff; 30]); // a body that nobody can know
    connection.send_raw(&with_length(&request));
    let mut answer = connection.receive_frame().expect("an answer");
    assert_eq!(answer.get_i32(), 7);
    assert_eq!(answer.get_i16(), 35, "UNSUPPORTED_VERSION");
    assert_eq!(answer.get_i32(), 1, "the range of ApiVersions alone");
    assert_eq!(
        (answer.get_i16(), answer.get_i16(), answer.get_i16()),
        (18, 0, 5)
    );
    assert_eq!(answer.len(), 0);
    let known = connection.call(3, &client_of("wire", "1.0"));
    assert_eq!(known.error_code, 0, "the same connection goes on");
}

#[test]
fn every_version_of_api_versions_names_the_same_ranges() {
    let mut connection = connect();
    let newest = ranges(&connection.call(4, &client_of("wire", "1.0")));
    for version in 0..4 {
        assert_eq!(
            ranges(&connection.call(version, &client_of("wire", "1.0"))),
            newest,
            "version {version}"
        );
    }
}

#[test]
fn the_ranges_are_those_that_clients_depend_on() {
    let listed = ranges(&connect().call(4, &client_of("wire", "1.0")));
    assert_eq!(
        listed[&0],
        (0, 13),
        "Produce from 0 on, or librdkafka sends nothing compressed"
    );
    assert_eq!(listed[&1], (4, 18), "Fetch");
    assert_eq!(listed[&22].1, 5, "InitProducerId 6 is not stable");
    assert!(
        !listed.contains_key(&71) && !listed.contains_key(&72),
        "nobody receives telemetry"
    );
    for key in [
        2, 3, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 19, 20, 22, 23, 32, 37, 42, 47, 60,
    ] {
        assert!(listed.contains_key(&key), "API {key} is served");
    }
}

#[test]
fn features_are_reported_as_old_clients_can_bear_them() {
    let mut connection = connect();
    let three = connection.call(3, &client_of("wire", "1.0"));
    assert!(
        three
            .supported_features
            .iter()
            .all(|feature| feature.min_version > 0),
        "{three:?}"
    );
    let four = connection.call(4, &client_of("wire", "1.0"));
    let level = four
        .finalized_features
        .iter()
        .find(|feature| &*feature.name == "metadata.version");
    assert!(
        level.is_some_and(|level| level.max_version_level > 0),
        "{four:?}"
    );
    assert!(four.finalized_features_epoch >= 0);
}

#[test]
fn a_client_must_name_its_software_in_plain_letters() {
    let mut connection = connect();
    for (name, version, wanted) in [
        ("wire", "1.0", 0),
        ("a-b.c9", "v1.0-rc1", 0),
        ("", "1.0", 42),
        ("wire", "", 42),
        ("-wire", "1.0", 42),
        ("wire client", "1.0", 42),
        ("wire", "1.0.", 42),
    ] {
        let answer = connection.call(3, &client_of(name, version));
        assert_eq!(answer.error_code, wanted, "{name:?} {version:?}");
    }
}

#[test]
fn tagged_fields_that_nobody_knows_are_skipped() {
    let tags = |tags: &[u32]| {
        let mut bytes = vec![u8::try_from(tags.len()).unwrap()];
        for &tag in tags {
            bytes.extend([
                u8::try_from(tag & 0x7f).unwrap() | 0x80,
                u8::try_from(tag >> 7).unwrap(),
                3,
                1,
                2,
                3,
            ]);
        }
        bytes
    };
    let mut request = header(18, 3, 5);
    request.put_slice(&tags(&[500, 501]));
    request.put_slice(&[5]);
    request.put_slice(b"wire");
    request.put_slice(&[4]);
    request.put_slice(b"1.0");
    request.put_slice(&tags(&[700]));
    let mut connection = connect();
    connection.send_raw(&with_length(&request));
    let mut answer = connection.receive_frame().expect("an answer");
    assert_eq!(answer.get_i32(), 5);
    // The header of this answer has no tagged fields whatever the version.
    let answer = ApiVersionsResponse::decode(&mut answer, 3).expect("version 3");
    assert_eq!(answer.error_code, 0);
}

#[test]
fn a_client_id_may_be_empty_or_null() {
    for id in [&[0u8, 0][..], &[0xff, 0xff]] {
        let mut request = BytesMut::new();
        request.put_slice(&[0, 3, 0, 1, 0, 0, 0, 9]); // Metadata v1
        request.put_slice(id);
        request.put_i32(0);
        let mut connection = connect();
        connection.send_raw(&with_length(&request));
        assert_eq!(connection.receive_frame().expect("an answer").get_i32(), 9);
    }
}

#[test]
fn what_is_not_served_ends_the_connection_and_no_other() {
    let mut witness = connect();
    for (key, version, what) in [
        (0, 2, "Produce 2, although listed"),
        (0, 99, "Produce 99"),
        (1, 3, "Fetch 3"),
        (3, 14, "Metadata 14"),
        (3, -1, "Metadata -1"),
        (4, 0, "LeaderAndIsr, long gone"),
        (999, 0, "an API that never was"),
        (-1, 0, "a negative API"),
    ] {
        let mut connection = connect();
        let mut request = header(key, version, 1);
        request.put_slice(&[0; 40]);
        connection.send_raw(&with_length(&request));
        connection.expect_closed(what);
        assert_eq!(witness.call(3, &client_of("wire", "1.0")).error_code, 0);
    }
}

#[test]
fn answers_come_in_the_order_of_the_requests() {
    let mut connection = connect();
    let mut all = BytesMut::new();
    for number in 0..300 {
        let request: Bytes = match number % 3 {
            0 => frame(
                9,
                number,
                &MetadataRequest::default().with_topics(Some(Vec::new())),
            ),
            1 => frame(3, number, &client_of("wire", "1.0")),
            _ => frame(1, number, &MetadataRequest::default().with_topics(None)),
        };
        all.put_slice(&request);
    }
    connection.send_raw(&all);
    for number in 0..300 {
        assert_eq!(
            connection.receive_frame().expect("an answer").get_i32(),
            number
        );
    }
}
