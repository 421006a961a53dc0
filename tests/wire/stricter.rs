//! Where this broker promises more than Apache does, or something else: these do not pass there.
use bytes::Bytes;
use kafka_protocol::messages::{ApiVersionsRequest, FindCoordinatorRequest, InitProducerIdRequest};

use crate::batch::Batch;
use crate::client::Connection;
use crate::common::{
    PRODUCE, Topic, connect, creatable, create, fetch_as, produce, produce_as, text,
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
