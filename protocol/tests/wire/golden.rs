//! Layouts written out by hand, from the protocol guide and from what Kafka's own clients send.

use bytes::Bytes;
use protocol::messages::{
    ApiVersionsResponse, ApiVersionsResponseApiVersion, ApiVersionsResponseFinalizedFeatureKey,
    ApiVersionsResponseSupportedFeatureKey, DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsRequestCursor, DescribeTopicPartitionsRequestTopicRequest,
    MetadataRequest, MetadataRequestMetadataRequestTopic,
};
use protocol::stored::{
    GroupKey, GroupValue, MetadataRecord, OffsetCommitKey, OffsetCommitValue,
    PartitionChangeRecord, TopicRecord, UnknownKey, UnknownRecord,
};
use protocol::wire::{Reader, Writer};
use protocol::{Message, Uuid};

fn assert_bytes<M: Message>(message: &M, version: i16, expected: &[&[u8]]) {
    let expected = expected.concat();
    let mut writer = Writer::new();
    message
        .encode(&mut writer, version)
        .expect("this version has all of it");
    assert_eq!(writer.freeze(), expected, "{} v{version}", M::NAME);
    let mut reader = Reader::new(Bytes::from(expected));
    assert_eq!(M::decode(&mut reader, version).as_ref(), Ok(message));
    assert_eq!(reader.remaining(), 0);
}

#[test]
fn metadata_request() {
    let all = MetadataRequest {
        topics: None,
        ..MetadataRequest::default()
    };
    assert_bytes(&all, 1, &[b"\xff\xff\xff\xff"]);
    let topic = |name: &'static str| MetadataRequestMetadataRequestTopic {
        name: Some(name.into()),
        ..Default::default()
    };
    let two = MetadataRequest {
        topics: Some([topic("a"), topic("bc")].into()),
        ..all
    };
    assert_bytes(&two, 0, &[b"\0\0\0\x02", b"\0\x01a", b"\0\x02bc"]);
    // Count + 1; id, name, tags of each; auto create, topic operations, tags.
    let id = [0; 16];
    let topics: [&[u8]; 7] = [b"\x03", &id, b"\x02a\0", &id, b"\x03bc\0", b"\x01\0", b"\0"];
    assert_bytes(&two, 13, &topics);
}

#[test]
fn api_versions_response_with_features() {
    let response = ApiVersionsResponse {
        api_keys: [ApiVersionsResponseApiVersion {
            api_key: 18,
            min_version: 0,
            max_version: 5,
        }]
        .into(),
        supported_features: [ApiVersionsResponseSupportedFeatureKey {
            name: "group.version".into(),
            min_version: 0,
            max_version: 1,
        }]
        .into(),
        finalized_features_epoch: 42,
        finalized_features: [ApiVersionsResponseFinalizedFeatureKey {
            name: "group.version".into(),
            max_version_level: 1,
            min_version_level: 1,
        }]
        .into(),
        ..ApiVersionsResponse::default()
    };
    let expected: &[&[u8]] = &[
        b"\0\0",                                        // no error
        b"\x02\0\x12\0\0\0\x05\0",                      // one range: key, min, max, tags
        b"\0\0\0\0",                                    // throttle time
        b"\x03",                                        // three tagged fields
        b"\0\x14\x02\x0egroup.version\0\0\0\x01\0",     // 0: supported, 20 bytes
        b"\x01\x08\0\0\0\0\0\0\0\x2a",                  // 1: epoch, 8 bytes
        b"\x02\x14\x02\x0egroup.version\0\x01\0\x01\0", // 2: finalized, 20 bytes
    ];
    assert_bytes(&response, 4, expected);
}

#[test]
fn nullable_struct() {
    let mut request = DescribeTopicPartitionsRequest {
        topics: [DescribeTopicPartitionsRequestTopicRequest { name: "t".into() }].into(),
        cursor: None,
        ..DescribeTopicPartitionsRequest::default()
    };
    assert_bytes(
        &request,
        0,
        &[b"\x02\x02t\0", b"\0\0\x07\xd0", b"\xff", b"\0"],
    );
    request.cursor = Some(DescribeTopicPartitionsRequestCursor {
        topic_name: "t".into(),
        partition_index: 1,
    });
    let cursor: &[&[u8]] = &[
        b"\x02\x02t\0",
        b"\0\0\x07\xd0",
        b"\x01\x02t\0\0\0\x01\0",
        b"\0",
    ];
    assert_bytes(&request, 0, cursor);
}

#[test]
fn metadata_records() {
    let record = MetadataRecord::from(TopicRecord {
        name: "foo".into(),
        topic_id: Uuid::ONE,
    });
    let bytes = record.encode(0).unwrap();
    // Frame version, type 2, version 0, name, id, tags.
    let expected = b"\x01\x02\0\x04foo\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\0";
    assert_eq!(bytes[..], expected[..]);
    assert_eq!(MetadataRecord::decode(bytes.clone()), Ok((record, 0)));
    let longer = [&bytes[..], b"x"].concat();
    assert!(MetadataRecord::decode(longer.into()).is_err());
    assert!(MetadataRecord::decode(Bytes::from_static(b"\0\x02\0")).is_err());

    // All fields but the two that name the partition are tagged.
    let change = PartitionChangeRecord {
        partition_id: 5,
        topic_id: Uuid::ONE,
        isr: Some([1, 2].into()),
        leader: 2,
        ..PartitionChangeRecord::default()
    };
    let bytes = MetadataRecord::from(change).encode(0).unwrap();
    let expected: &[&[u8]] = &[
        b"\x01\x05\0\0\0\0\x05",
        &Uuid::ONE.0,
        b"\x02\0\x09\x03\0\0\0\x01\0\0\0\x02\x01\x04\0\0\0\x02",
    ];
    assert_eq!(bytes, expected.concat());
}

#[test]
fn unknown_metadata_records_are_kept() {
    // A type that nobody knows, and a version of a topic record to come.
    for (bytes, type_id, version) in [
        (&b"\x01\xe7\x07\x03body"[..], 999, 3),
        (b"\x01\x02\x63body", 2, 99),
    ] {
        let (record, read) = MetadataRecord::decode(Bytes::from_static(bytes)).unwrap();
        let body = Bytes::from_static(b"body");
        assert_eq!(
            record,
            MetadataRecord::Unknown(UnknownRecord {
                type_id,
                version,
                body
            })
        );
        assert_eq!((record.type_id(), read), (type_id, version));
        assert_eq!(record.encode(0).unwrap(), bytes);
    }
}

#[test]
fn coordinator_records() {
    let key = GroupKey::from(OffsetCommitKey {
        group: "g".into(),
        topic: "t".into(),
        partition: 7,
    });
    let bytes = key.encode().unwrap();
    assert_eq!(bytes[..], b"\0\x01\0\x01g\0\x01t\0\0\0\x07"[..]);
    assert_eq!(GroupKey::decode(bytes), Ok(key.clone()));
    let value = GroupValue::from(OffsetCommitValue {
        offset: 9,
        metadata: "m".into(),
        commit_timestamp: 1,
        ..OffsetCommitValue::default()
    });
    let bytes = value.encode(3).unwrap();
    let expected = b"\0\x03\0\0\0\0\0\0\0\x09\xff\xff\xff\xff\0\x01m\0\0\0\0\0\0\0\x01";
    assert_eq!(bytes[..], expected[..]);
    assert_eq!(
        GroupValue::decode(key.type_id(), bytes.clone()),
        Ok((value, 3))
    );
    assert!(GroupValue::decode(999, bytes).is_err());
    assert!(GroupValue::decode(1, Bytes::from_static(b"\0\x63")).is_err());
    let unknown = GroupKey::decode(Bytes::from_static(b"\x03\xe7what")).unwrap();
    let body = Bytes::from_static(b"what");
    assert_eq!(
        unknown,
        GroupKey::Unknown(UnknownKey { type_id: 999, body })
    );
    assert_eq!(unknown.encode().unwrap()[..], b"\x03\xe7what"[..]);
}
