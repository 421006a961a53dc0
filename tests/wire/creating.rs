//! Topics by the thousand: whoever is told that a topic exists can use it at once, over any connection; and names that are
//! deleted and created again while they are in use.
use bytes::Bytes;
use kafka_protocol::messages::delete_topics_request::DeleteTopicState;
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::{
    CreateTopicsRequest, DeleteTopicsRequest, MetadataRequest, ProduceRequest,
};
use uuid::Uuid;

use crate::batch::{self, Batch};
use crate::client::Connection;
use crate::common::{PRODUCE, Topic, connect, creatable, fetch, produce_as, produce_request};
use crate::groups;
use crate::support::broker::Broker;
use crate::support::clock;

fn one(value: &str) -> Bytes {
    Batch::of(clock::wall_clock_ms(), &[value]).bytes()
}

/// (Apache answers before all of them serve: there some of these are refused at first.)
#[test]
fn thousands_of_new_topics_take_records_at_once() {
    const TOPICS: usize = 3000;
    const AT_ONCE: usize = 500;
    let broker = Broker::start("creating", &[("ringmain.shards", "3")]);
    let mut creator = Connection::open(broker.port);
    let mut writers: Vec<_> = (0..4).map(|_| Connection::open(broker.port)).collect();
    for first in (0..TOPICS).step_by(AT_ONCE) {
        let topics =
            (first..first + AT_ONCE).map(|number| creatable(&format!("topic-{number}"), 1));
        let request = CreateTopicsRequest::default()
            .with_topics(topics.collect())
            .with_timeout_ms(30_000);
        let answer = creator.call(7, &request);
        assert!(answer.topics.iter().all(|topic| topic.error_code == 0));
        for (made, number) in answer.topics.into_iter().zip(0..) {
            let topic = Topic {
                name: made.name,
                id: made.topic_id,
            };
            let others = writers.len();
            let writer = &mut writers[number % others];
            let version = if number % 2 == 0 { PRODUCE } else { 13 };
            let answer = produce_as(writer, version, &topic, -1, one("first"));
            assert_eq!(
                (answer.error_code, answer.base_offset),
                (0, 0),
                "{}",
                topic.name.as_str()
            );
        }
    }
}

fn delete(connection: &mut Connection, topic: &Topic) {
    let state = DeleteTopicState::default().with_name(Some(topic.name.clone()));
    let request = DeleteTopicsRequest::default()
        .with_topics(vec![state])
        .with_timeout_ms(30_000);
    assert_eq!(connection.call(6, &request).responses[0].error_code, 0);
}

/// Id and leader epoch of the topic with that name now.
fn described(connection: &mut Connection, topic: &Topic) -> (Uuid, i32) {
    let asked = MetadataRequestTopic::default().with_name(Some(topic.name.clone()));
    let request = MetadataRequest::default().with_topics(Some(vec![asked]));
    let found = connection.call(12, &request).topics.remove(0);
    (found.topic_id, found.partitions[0].leader_epoch)
}

/// A hundred times, under load, with offsets of a group. A name may be used by clients that know nothing of ids: for them the epoch must not go back, or they take what is new
/// for stale. Who names the old id is refused. (Apache's epochs begin again at 0.)
#[test]
fn a_name_that_comes_back_never_shows_what_was_under_it() {
    let mut connection = connect();
    let mut late = connect();
    let group = "comes-back";
    let mut coordinator = groups::coordinator(group);
    let mut epoch = -1;
    for round in 0..100 {
        let topic = Topic::new("comes-back");
        let (id, now) = described(&mut connection, &topic);
        assert!(id == topic.id && now > epoch, "epoch {now} after {epoch}");
        epoch = now;
        let value = format!("round {round}");
        for at in 0..3 {
            let answer = produce_as(&mut connection, PRODUCE, &topic, -1, one(&value));
            assert_eq!((answer.error_code, answer.base_offset), (0, at));
        }
        let heads = batch::read(fetch(&mut connection, &topic, 0).records.expect("records"));
        let values: Vec<&Bytes> = heads.iter().flat_map(|head| &head.values).collect();
        assert_eq!(values, [value.as_bytes(); 3], "of this topic alone");
        clock::wait_until("the offsets of the old topic to go", || {
            groups::committed(&mut coordinator, group, &topic).1 == -1
        });
        let code = groups::commit(&mut coordinator, group, -1, "", &topic, 1000 + round);
        assert_eq!(code, 0);
        // Batches that are under way when the topic goes are refused or written; each is answered.
        let under_way: Vec<i32> = (0..5)
            .map(|_| late.send(13, &produce_request(13, &topic, -1, one("late"))))
            .collect();
        delete(&mut connection, &topic);
        for number in under_way {
            let answer = late.receive::<ProduceRequest>(13, number);
            let code = answer.responses[0].partition_responses[0].error_code;
            assert!([0, 3, 6, 56, 100].contains(&code), "error {code}");
        }
        let answer = produce_as(&mut late, 13, &topic, -1, one("later"));
        assert_eq!(answer.error_code, 100, "UNKNOWN_TOPIC_ID");
    }
}
