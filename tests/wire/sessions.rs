//! Fetch sessions (KIP-227): what an answer leaves out, and what ends a session.
use kafka_protocol::messages::delete_topics_request::DeleteTopicState;
use kafka_protocol::messages::fetch_request::ForgottenTopic;
use kafka_protocol::messages::{DeleteTopicsRequest, FetchRequest, FetchResponse};

use crate::batch::Batch;
use crate::client::Connection;
use crate::common::{FETCH, Topic, connect, creatable, create, fetch_request, parts, produce};
use crate::support::broker::Broker;
use crate::support::clock;

const EPOCH_WRONG: i16 = 71;
const ID_UNKNOWN: i16 = 70;
const TOPIC_ID: i16 = 106;

fn add(connection: &mut Connection, topic: &Topic) -> usize {
    let batch = Batch::of(clock::wall_clock_ms(), &["0123456789"]).bytes();
    produce(connection, topic, batch.clone());
    batch.len()
}

struct Session {
    connection: Connection,
    version: i16,
    id: i32,
    epoch: i32,
}

impl Session {
    /// Opens a session over the parts and returns the first answer with it.
    fn open(version: i16, over: &[(&Topic, i32, i64)]) -> (Self, FetchResponse) {
        let mut session = Self {
            connection: connect(),
            version,
            id: 0,
            epoch: 0,
        };
        let answer = session.fetch(fetch_request(version, over));
        assert_eq!(answer.error_code, 0);
        assert_ne!(answer.session_id, 0, "a session was asked for");
        session.id = answer.session_id;
        (session, answer)
    }

    /// The next fetch of the session.
    fn fetch(&mut self, request: FetchRequest) -> FetchResponse {
        let request = request
            .with_session_id(self.id)
            .with_session_epoch(self.epoch);
        let answer = self.connection.call(self.version, &request);
        self.epoch += 1;
        answer
    }

    fn next(&mut self, change: &[(&Topic, i32, i64)]) -> FetchResponse {
        self.fetch(fetch_request(self.version, change))
    }
}

#[test]
fn only_what_changed_is_answered() {
    for version in [7, FETCH, 13, 18] {
        let topic = Topic::with(&format!("session-changes-{version}"), 2, &[]);
        let mut writer = connect();
        let size = add(&mut writer, &topic);
        let (mut session, first) = Session::open(version, &[(&topic, 0, 0), (&topic, 1, 0)]);
        assert_eq!(
            parts(&first),
            [(0, 0, size), (1, 0, 0)],
            "all of them at first, version {version}"
        );
        assert_eq!(
            parts(&session.next(&[])),
            [(0, 0, size)],
            "what has records"
        );
        assert_eq!(
            parts(&session.next(&[(&topic, 0, 1)])),
            [],
            "nothing new from the changed offset"
        );
        add(&mut writer, &topic);
        assert_eq!(parts(&session.next(&[])), [(0, 0, size)], "what came since");
        assert_eq!(parts(&session.next(&[(&topic, 0, 2)])), []);
    }
}

#[test]
fn partitions_may_be_added_and_forgotten() {
    for version in [FETCH, 13] {
        let topic = Topic::with(&format!("session-forgets-{version}"), 2, &[]);
        let mut writer = connect();
        let size = add(&mut writer, &topic);
        let (mut session, first) = Session::open(version, &[(&topic, 1, 0)]);
        assert_eq!(parts(&first), [(1, 0, 0)]);
        assert_eq!(
            parts(&session.next(&[(&topic, 0, 0)])),
            [(0, 0, size)],
            "added"
        );
        let mut forgotten = ForgottenTopic::default().with_partitions(vec![0]);
        if version < 13 {
            forgotten.topic = topic.name.clone();
        } else {
            forgotten.topic_id = topic.id;
        }
        let forget = fetch_request(version, &[]).with_forgotten_topics_data(vec![forgotten]);
        assert_eq!(parts(&session.fetch(forget)), [], "forgotten");
        add(&mut writer, &topic);
        assert_eq!(parts(&session.next(&[])), []);
    }
}

#[test]
fn an_error_is_repeated_until_it_is_gone() {
    let topic = Topic::new("session-errors");
    let mut writer = connect();
    add(&mut writer, &topic);
    let (mut session, first) = Session::open(FETCH, &[(&topic, 0, 9)]);
    assert_eq!(parts(&first), [(0, 1, 0)], "OFFSET_OUT_OF_RANGE");
    assert_eq!(parts(&session.next(&[])), [(0, 1, 0)], "again");
    assert_eq!(
        parts(&session.next(&[(&topic, 0, 1)])),
        [(0, 0, 0)],
        "and that it is over"
    );
    assert_eq!(parts(&session.next(&[])), []);
}

#[test]
fn a_wrong_epoch_or_id_is_told_apart() {
    let topic = Topic::new("session-wrong");
    let mut writer = connect();
    add(&mut writer, &topic);
    let (mut session, _) = Session::open(FETCH, &[(&topic, 0, 1)]);
    assert_eq!(session.next(&[]).error_code, 0);
    for epoch in [1, 4, 99] {
        session.epoch = epoch;
        let answer = session.next(&[]);
        assert_eq!(
            (answer.error_code, answer.responses.len()),
            (EPOCH_WRONG, 0),
            "epoch {epoch} in place of 2"
        );
        assert_eq!(answer.session_id, 0, "no session in the answer");
    }
    session.epoch = 2;
    assert_eq!(session.next(&[]).error_code, 0, "the right one still works");
    session.id = session.id.wrapping_add(1) & i32::MAX;
    let answer = session.next(&[]);
    assert_eq!((answer.error_code, answer.responses.len()), (ID_UNKNOWN, 0));
}

#[test]
fn a_session_ends_when_told() {
    let topic = Topic::new("session-ends");
    let mut writer = connect();
    let size = add(&mut writer, &topic);
    let (mut session, _) = Session::open(FETCH, &[(&topic, 0, 1)]);
    session.epoch = -1;
    let answer = session.next(&[(&topic, 0, 0)]);
    assert_eq!(
        (answer.session_id, parts(&answer)),
        (0, vec![(0, 0, size)]),
        "a full answer outside of any session"
    );
    session.epoch = 1;
    assert_eq!(session.next(&[]).error_code, ID_UNKNOWN);
}

#[test]
fn epoch_0_with_an_id_replaces_the_session() {
    let topic = Topic::new("session-replaced");
    let mut writer = connect();
    let size = add(&mut writer, &topic);
    let (mut session, _) = Session::open(FETCH, &[(&topic, 0, 1)]);
    let old = session.id;
    session.epoch = 0;
    let answer = session.next(&[(&topic, 0, 0)]);
    assert_eq!((answer.error_code, parts(&answer)), (0, vec![(0, 0, size)]));
    assert!(
        answer.session_id != 0 && answer.session_id != old,
        "a session of its own"
    );
    session.epoch = 1;
    assert_eq!(
        session.next(&[]).error_code,
        ID_UNKNOWN,
        "the old one is gone"
    );
}

#[test]
fn names_and_ids_do_not_mix_in_a_session() {
    let topic = Topic::new("session-mixed");
    let mut writer = connect();
    add(&mut writer, &topic);
    for (first, then) in [(FETCH, 13), (13, FETCH)] {
        let (mut session, _) = Session::open(first, &[(&topic, 0, 1)]);
        session.version = then;
        assert_eq!(
            session.next(&[(&topic, 0, 0)]).error_code,
            TOPIC_ID,
            "{first}, then {then}"
        );
    }
}

#[test]
fn without_room_for_a_session_the_fetch_is_answered_all_the_same() {
    let settings = [("max.incremental.fetch.session.cache.slots", "16")];
    let broker = Broker::start("sessions-full", &settings);
    let mut connection = Connection::open(broker.port);
    let answer = create(&mut connection, creatable("t", 1), false);
    let topic = Topic {
        name: answer.name,
        id: answer.topic_id,
    };
    topic.wait_served_by(&mut connection, 1);
    let size = add(&mut connection, &topic);
    // Brokers share the room out to parts of theirs. Connections that stay are spread over all of them.
    let mut opened = 0;
    let mut staying = Vec::new();
    for _ in 0..300 {
        let mut connection = Connection::open(broker.port);
        let request = fetch_request(FETCH, &[(&topic, 0, 0)]).with_session_epoch(0);
        let answer = connection.call(FETCH, &request);
        assert_eq!((answer.error_code, parts(&answer)), (0, vec![(0, 0, size)]));
        opened += usize::from(answer.session_id != 0);
        staying.push(connection);
    }
    assert_eq!(opened, 16, "no session is no error");
}

/// It goes on with the new topic, as without a session.
#[test]
fn a_session_by_name_survives_the_topic_that_is_made_anew() {
    let first = Topic::new("session-anew");
    let mut writer = connect();
    add(&mut writer, &first);
    let (mut session, _) = Session::open(FETCH, &[(&first, 0, 1)]);
    delete(&mut writer, &first);
    clock::wait_until("the session to hear of it", || {
        let answer = session.next(&[]);
        parts(&answer).contains(&(0, 3, 0))
    });
    let second = Topic::new("session-anew");
    let size = add(&mut writer, &second);
    let answer = session.next(&[(&second, 0, 0)]);
    assert_eq!(parts(&answer), [(0, 0, size)]);
}

fn delete(connection: &mut Connection, topic: &Topic) {
    let state = DeleteTopicState::default().with_name(Some(topic.name.clone()));
    let request = DeleteTopicsRequest::default()
        .with_topics(vec![state])
        .with_timeout_ms(30_000);
    assert_eq!(connection.call(6, &request).responses[0].error_code, 0);
}

#[test]
fn an_unknown_id_in_a_session_is_answered_for_its_partition() {
    let topic = Topic::new("session-unknown-id");
    let missing = Topic::missing("session-missing");
    let (mut session, first) = Session::open(13, &[(&topic, 0, 0), (&missing, 0, 0)]);
    assert_eq!(parts(&first), [(0, 0, 0), (0, 100, 0)], "UNKNOWN_TOPIC_ID");
    assert_eq!(parts(&session.next(&[])), [(0, 100, 0)]);
}
