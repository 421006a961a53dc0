//! Where this broker promises more than Apache does, or something else: these do not pass there.
use bytes::Bytes;
use kafka_protocol::messages::delete_topics_request::DeleteTopicState;
use kafka_protocol::messages::{
    ApiVersionsRequest, DeleteTopicsRequest, FindCoordinatorRequest, InitProducerIdRequest,
};

use crate::batch::{self, Batch};
use crate::client::Connection;
use crate::common::{
    PRODUCE, Topic, connect, creatable, create, fetch_as, fetch_request, parts, produce,
    produce_as, text,
};
use crate::producing::producer;
use crate::support::broker::Broker;
use crate::support::clock;

fn some(values: &[&str]) -> Bytes {
    Batch::of(clock::wall_clock_ms(), values).bytes()
}

#[test]
fn a_new_topic_takes_records_at_once() {
    let mut connection = connect();
    for number in 0..60 {
        let answer = create(
            &mut connection,
            creatable(&format!("at-once-{number}"), 3),
            false,
        );
        assert_eq!(
            (
                answer.error_code,
                answer.num_partitions,
                answer.replication_factor
            ),
            (0, 3, 1)
        );
        let topic = Topic {
            name: answer.name,
            id: answer.topic_id,
        };
        let produced = produce_as(&mut connect(), PRODUCE, &topic, -1, some(&["x"]));
        assert_eq!(produced.error_code, 0, "topic {number}");
        assert_eq!(
            fetch_as(&mut connect(), 13, &topic, 0).error_code,
            0,
            "topic {number}"
        );
    }
}

/// Apache takes any first sequence of a producer it does not know, also where nothing can have been lost.
#[test]
fn an_unknown_producer_starts_at_0_in_a_partition_never_written() {
    let topic = Topic::new("produce-unknown-id");
    let mut connection = connect();
    let (id, epoch) = producer(&mut connection);
    let from = |sequence| {
        Batch::of(clock::wall_clock_ms(), &["a"])
            .by(id, epoch, sequence)
            .bytes()
    };
    let answer = produce_as(&mut connection, PRODUCE, &topic, -1, from(9));
    assert_eq!(answer.error_code, 45, "OUT_OF_ORDER_SEQUENCE_NUMBER");
    assert_eq!(produce(&mut connection, &topic, from(0)), 0);
}

/// Clients must fail at once: none of these errors makes them try again.
#[test]
fn transactional_ids_are_refused_for_good() {
    let mut connection = connect();
    const RETRIABLE: [i16; 10] = [3, 5, 6, 7, 13, 14, 15, 16, 51, 56];
    for version in 1..=6 {
        let mut request = FindCoordinatorRequest::default().with_key_type(1);
        if version < 4 {
            request.key = text("transactions");
        } else {
            request.coordinator_keys = vec![text("transactions")];
        }
        let answer = connection.call(version, &request);
        let (code, message) = match answer.coordinators.first() {
            Some(found) => (found.error_code, found.error_message.clone()),
            None => (answer.error_code, answer.error_message.clone()),
        };
        assert!(
            code != 0 && !RETRIABLE.contains(&code),
            "error {code} in version {version}"
        );
        assert!(
            message.is_some_and(|message| message.len() > 10),
            "words for people in version {version}"
        );
    }
    for version in 0..=5 {
        let request = InitProducerIdRequest::default()
            .with_transactional_id(Some(text("transactions").into()))
            .with_transaction_timeout_ms(60_000)
            .with_producer_id((-1).into())
            .with_producer_epoch(-1);
        let code = connection.call(version, &request).error_code;
        assert!(
            code != 0 && !RETRIABLE.contains(&code),
            "error {code} in version {version}"
        );
    }
}

#[test]
fn claims_of_large_frames_cost_no_memory() {
    let broker = Broker::start("wire-claims", &[]);
    let mut witness = Connection::open(broker.port);
    // A hundred that each claim the largest frame allowed and send nothing of it.
    let mut claimants: Vec<Connection> = (0..100).map(|_| Connection::open(broker.port)).collect();
    for claimant in &mut claimants {
        claimant.send_raw(&104_857_600i32.to_be_bytes());
    }
    let request = ApiVersionsRequest::default()
        .with_client_software_name(text("wire"))
        .with_client_software_version(text("1"));
    assert_eq!(
        witness.call(3, &request).error_code,
        0,
        "others are served as before"
    );
    let resident = broker.resident_kib().expect("the kernel counts it");
    println!("{resident} KiB resident with a hundred claims of 100 MiB");
    assert!(resident < 1 << 20, "{resident} KiB resident");
}

/// KIP-110: clients before Fetch 10 cannot know zstd. What lies in a topic that leaves the codec to its producers is theirs
/// to cope with. (Apache 4.4 sends it to all of them, earlier versions refused as this broker does.)
#[test]
fn a_topic_of_zstd_is_for_clients_that_know_it() {
    let zstd = Topic::with("fetch-zstd", 1, &[("compression.type", "zstd")]);
    let any = Topic::new("fetch-any-codec");
    let mut connection = connect();
    produce(&mut connection, &zstd, some(&["a", "b"]));
    for version in [4, 9] {
        let data = fetch_as(&mut connection, version, &zstd, 0);
        assert_eq!(
            data.error_code, 76,
            "UNSUPPORTED_COMPRESSION_TYPE, version {version}"
        );
        assert_eq!(
            (data.high_watermark, data.records),
            (-1, Some(Bytes::new()))
        );
    }
    let packed = fetch_as(&mut connection, 10, &zstd, 0).records;
    let packed = packed.expect("records");
    assert_eq!(batch::read(packed.clone())[0].attributes & 7, 4, "zstd");
    // Compressed so already: its bytes stay as they are, whatever the level was.
    for topic in [&zstd, &any] {
        let base = produce(&mut connection, topic, packed.clone());
        let again = fetch_as(&mut connection, 10, topic, base).records;
        assert_eq!(again.expect("records")[16..], packed[16..]);
    }
    for version in [4, 9, 10] {
        let data = fetch_as(&mut connection, version, &any, 0);
        let records = data.records.expect("records");
        assert_eq!(
            (data.error_code, &records[16..]),
            (0, &packed[16..]),
            "version {version}"
        );
    }
}

/// The topic with that id is gone for good, whatever has its name now. (Apache looks by the name that it found when the
/// session began: first there is no such partition, later its id is inconsistent.)
#[test]
fn a_session_by_id_is_told_that_its_topic_is_gone() {
    let first = Topic::new("session-id-anew");
    let mut connection = connect();
    produce(&mut connection, &first, some(&["a"]));
    let request = fetch_request(13, &[(&first, 0, 1)]).with_session_epoch(0);
    let opened = connection.call(13, &request);
    assert!(opened.session_id != 0);
    let state = DeleteTopicState::default().with_name(Some(first.name.clone()));
    let delete = DeleteTopicsRequest::default()
        .with_topics(vec![state])
        .with_timeout_ms(30_000);
    assert_eq!(connection.call(6, &delete).responses[0].error_code, 0);
    for epoch in 1..=2 {
        let request = fetch_request(13, &[])
            .with_session_id(opened.session_id)
            .with_session_epoch(epoch);
        let answer = connection.call(13, &request);
        assert_eq!(parts(&answer), [(0, 100, 0)], "UNKNOWN_TOPIC_ID");
        if epoch == 1 {
            Topic::new("session-id-anew");
        }
    }
}
