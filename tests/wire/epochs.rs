//! Leader epochs over restarts: every start leads under a higher one, and clients can tell the old from the new.
use kafka_protocol::messages::offset_for_leader_epoch_request::{
    OffsetForLeaderPartition, OffsetForLeaderTopic,
};
use kafka_protocol::messages::{BrokerId, MetadataRequest, OffsetForLeaderEpochRequest};

use crate::batch::{self, Batch};
use crate::client::Connection;
use crate::common::{FETCH, NO_EPOCH, Topic, creatable, create, fetch, fetch_request, produce};
use crate::support::broker::Broker;
use crate::support::clock;

const FENCED: i16 = 74;
const UNKNOWN: i16 = 75;

fn epoch_of(connection: &mut Connection) -> i32 {
    let answer = connection.call(9, &MetadataRequest::default().with_topics(None));
    answer.topics[0].partitions[0].leader_epoch
}

fn end_of(connection: &mut Connection, topic: &Topic, current: i32, epoch: i32) -> (i16, i32, i64) {
    let part = OffsetForLeaderPartition::default()
        .with_current_leader_epoch(current)
        .with_leader_epoch(epoch);
    let asked = OffsetForLeaderTopic::default()
        .with_topic(topic.name.clone())
        .with_partitions(vec![part]);
    let request = OffsetForLeaderEpochRequest::default()
        .with_replica_id(BrokerId(-1))
        .with_topics(vec![asked]);
    let answer = connection.call(4, &request);
    let end = &answer.topics[0].partitions[0];
    (end.error_code, end.leader_epoch, end.end_offset)
}

fn fetch_error(connection: &mut Connection, topic: &Topic, epoch: i32) -> i16 {
    let mut request = fetch_request(FETCH, &[(topic, 0, 0)]);
    request.topics[0].partitions[0].current_leader_epoch = epoch;
    let answer = connection.call(FETCH, &request);
    answer.responses[0].partitions[0].error_code
}

#[test]
fn epochs_of_earlier_starts_are_fenced_and_their_ends_are_known() {
    let mut broker = Broker::start("epochs", &[]);
    let mut connection = Connection::open(broker.port);
    let answer = create(&mut connection, creatable("t", 1), false);
    let topic = Topic {
        name: answer.name,
        id: answer.topic_id,
    };
    topic.wait_served_by(&mut connection, 1);
    let one = || Batch::of(clock::wall_clock_ms(), &["v"]).bytes();
    let mut ends: Vec<(i32, i64)> = Vec::new();
    for start in 0..4 {
        let epoch = epoch_of(&mut connection);
        assert!(
            ends.last().is_none_or(|(before, _)| *before < epoch),
            "{ends:?}, then {epoch}"
        );
        for _ in 0..3 {
            produce(&mut connection, &topic, one());
        }
        let heads = batch::read(fetch(&mut connection, &topic, 0).records.expect("records"));
        assert_eq!(heads.last().map(|head| head.leader_epoch), Some(epoch));
        ends.push((epoch, (start + 1) * 3));
        for (earlier, end) in &ends {
            assert_eq!(
                end_of(&mut connection, &topic, epoch, *earlier),
                (0, *earlier, *end)
            );
        }
        assert_eq!(
            end_of(&mut connection, &topic, NO_EPOCH, epoch + 1),
            (0, -1, -1)
        );
        if let Some((before, _)) = ends.iter().rev().nth(1) {
            assert_eq!(
                end_of(&mut connection, &topic, *before, epoch),
                (FENCED, -1, -1)
            );
            assert_eq!(fetch_error(&mut connection, &topic, *before), FENCED);
        }
        assert_eq!(fetch_error(&mut connection, &topic, epoch + 1), UNKNOWN);
        assert_eq!(
            end_of(&mut connection, &topic, epoch + 1, epoch),
            (UNKNOWN, -1, -1)
        );
        assert_eq!(fetch_error(&mut connection, &topic, epoch), 0);
        // A crash and a clean stop in turn.
        if start % 2 == 0 {
            broker.kill();
        } else {
            broker.stop();
        }
        broker.restart();
        connection = Connection::open(broker.port);
        topic.wait_served_by(&mut connection, 1);
    }
}
