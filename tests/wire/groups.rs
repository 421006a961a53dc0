//! Group coordination with hands on the wire: errors, versions, committed offsets.
use bytes::Bytes;
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::leave_group_request::MemberIdentity;
use kafka_protocol::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use kafka_protocol::messages::offset_delete_request::{
    OffsetDeleteRequestPartition, OffsetDeleteRequestTopic,
};
use kafka_protocol::messages::offset_fetch_request::{
    OffsetFetchRequestGroup, OffsetFetchRequestTopic, OffsetFetchRequestTopics,
};
use kafka_protocol::messages::sync_group_request::SyncGroupRequestAssignment;
use kafka_protocol::messages::{
    BrokerId, DeleteGroupsRequest, DescribeGroupsRequest, FindCoordinatorRequest, HeartbeatRequest,
    JoinGroupRequest, JoinGroupResponse, LeaveGroupRequest, ListGroupsRequest, OffsetCommitRequest,
    OffsetDeleteRequest, OffsetFetchRequest, SyncGroupRequest,
};
use kafka_protocol::protocol::StrBytes;

use crate::client::Connection;
use crate::common::{Topic, broker, connect, creatable, create, text};
use crate::support::broker::Broker;
use crate::support::clock;

/// The coordinator's partition loads when it is first asked for.
pub fn coordinator(group: &str) -> Connection {
    let mut connection = connect();
    clock::wait_until("the coordinator", || {
        let request = FindCoordinatorRequest::default()
            .with_key_type(0)
            .with_coordinator_keys(vec![text(group)]);
        let found = connection.call(4, &request).coordinators.remove(0);
        // Apache says 3 as well, while it makes the topic of the offsets.
        assert!([0, 3, 15].contains(&found.error_code), "{found:?}");
        found.error_code == 0
    });
    clock::wait_until("the coordinator to have loaded", || {
        let code = heartbeat(&mut connection, group, 0, "nobody");
        // A heartbeat that meets a loading coordinator is answered with 0.
        assert!([0, 14, 15, 16, 25].contains(&code), "error {code}");
        code == 25
    });
    connection
}

fn heartbeat(connection: &mut Connection, group: &str, generation: i32, member: &str) -> i16 {
    let request = HeartbeatRequest::default().with_group_id(text(group).into());
    connection
        .call(
            4,
            &request
                .with_generation_id(generation)
                .with_member_id(text(member)),
        )
        .error_code
}

fn join_request(group: &str, member: &str, protocols: &[&str]) -> JoinGroupRequest {
    let protocol = |name: &&str| {
        JoinGroupRequestProtocol::default()
            .with_name(text(name))
            .with_metadata(Bytes::from_static(b"topics"))
    };
    JoinGroupRequest::default()
        .with_group_id(text(group).into())
        .with_session_timeout_ms(10_000)
        .with_rebalance_timeout_ms(20_000)
        .with_member_id(text(member))
        .with_protocol_type(text("consumer"))
        .with_protocols(protocols.iter().map(protocol).collect())
}

/// Joins as a client does: asks for an id, then comes with it.
fn join(connection: &mut Connection, group: &str) -> JoinGroupResponse {
    let first = connection.call(9, &join_request(group, "", &["range"]));
    assert_eq!(first.error_code, 79, "MEMBER_ID_REQUIRED");
    let joined = connection.call(9, &join_request(group, &first.member_id, &["range"]));
    assert_eq!(joined.error_code, 0, "{joined:?}");
    assert_eq!(joined.member_id, first.member_id);
    joined
}

fn sync_request(
    group: &str,
    joined: &JoinGroupResponse,
    assignments: &[(&str, &'static str)],
) -> SyncGroupRequest {
    let assignment = |(member, bytes): &(&str, &'static str)| {
        SyncGroupRequestAssignment::default()
            .with_member_id(text(member))
            .with_assignment(Bytes::from_static(bytes.as_bytes()))
    };
    SyncGroupRequest::default()
        .with_group_id(text(group).into())
        .with_generation_id(joined.generation_id)
        .with_member_id(joined.member_id.clone())
        .with_protocol_type(Some(text("consumer")))
        .with_protocol_name(Some(text("range")))
        .with_assignments(assignments.iter().map(assignment).collect())
}

fn leave(connection: &mut Connection, group: &str, member: &StrBytes) -> i16 {
    let member = MemberIdentity::default().with_member_id(member.clone());
    let request = LeaveGroupRequest::default()
        .with_group_id(text(group).into())
        .with_members(vec![member]);
    let answer = connection.call(5, &request);
    assert_eq!(answer.error_code, 0);
    answer.members[0].error_code
}

/// A member alone in a stable group.
fn alone(group: &str) -> (Connection, JoinGroupResponse) {
    let mut connection = coordinator(group);
    let joined = join(&mut connection, group);
    let synced = connection.call(
        5,
        &sync_request(group, &joined, &[(&joined.member_id, "all")]),
    );
    assert_eq!(
        (synced.error_code, synced.assignment),
        (0, Bytes::from_static(b"all"))
    );
    (connection, joined)
}

pub fn commit(
    connection: &mut Connection,
    group: &str,
    generation: i32,
    member: &str,
    topic: &Topic,
    offset: i64,
) -> i16 {
    let part = OffsetCommitRequestPartition::default()
        .with_partition_index(0)
        .with_committed_offset(offset)
        .with_committed_leader_epoch(0)
        .with_committed_metadata(Some(text("a note")));
    let topic = OffsetCommitRequestTopic::default()
        .with_name(topic.name.clone())
        .with_partitions(vec![part]);
    let request = OffsetCommitRequest::default()
        .with_group_id(text(group).into())
        .with_generation_id_or_member_epoch(generation)
        .with_member_id(text(member))
        .with_topics(vec![topic]);
    connection.call(8, &request).topics[0].partitions[0].error_code
}

/// Error, offset, epoch and note of partition 0, as version 7 tells them.
pub fn committed(
    connection: &mut Connection,
    group: &str,
    topic: &Topic,
) -> (i16, i64, i32, String) {
    let asked = OffsetFetchRequestTopic::default()
        .with_name(topic.name.clone())
        .with_partition_indexes(vec![0]);
    let request = OffsetFetchRequest::default()
        .with_group_id(text(group).into())
        .with_topics(Some(vec![asked]));
    let answer = connection.call(7, &request);
    assert_eq!(answer.error_code, 0);
    let part = &answer.topics[0].partitions[0];
    let note = part
        .metadata
        .as_ref()
        .map_or_else(String::new, ToString::to_string);
    (
        part.error_code,
        part.committed_offset,
        part.committed_leader_epoch,
        note,
    )
}

#[test]
fn every_version_finds_the_coordinator() {
    let mut connection = coordinator("find");
    for version in 0..=6 {
        let mut request = FindCoordinatorRequest::default().with_key_type(0);
        if version < 4 {
            request.key = text("find");
        } else {
            request.coordinator_keys = vec![text("find"), text("find-another")];
        }
        let answer = connection.call(version, &request);
        let places: Vec<_> = if version < 4 {
            vec![(answer.error_code, answer.node_id, answer.port)]
        } else {
            answer
                .coordinators
                .iter()
                .map(|found| (found.error_code, found.node_id, found.port))
                .collect()
        };
        let wanted = (0, BrokerId(1), i32::from(broker().port));
        assert_eq!(
            places,
            vec![wanted; if version < 4 { 1 } else { 2 }],
            "version {version}"
        );
    }
}

#[test]
fn a_first_join_gets_an_id_and_has_to_come_again() {
    let group = "join-id";
    let mut connection = coordinator(group);
    for version in 4..=9 {
        let answer = connection.call(version, &join_request(group, "", &["range"]));
        assert_eq!(
            answer.error_code, 79,
            "MEMBER_ID_REQUIRED in version {version}"
        );
        assert!(!answer.member_id.is_empty());
        assert_eq!(
            answer.protocol_name.as_deref(),
            if version < 7 { Some("") } else { None },
            "version {version}"
        );
    }
    // An old client is let in at once.
    let joined = connection.call(3, &join_request("join-id-old", "", &["range"]));
    assert_eq!(
        (
            joined.error_code,
            joined.generation_id,
            joined.members.len()
        ),
        (0, 1, 1)
    );
    assert_eq!(joined.leader, joined.member_id);
}

#[test]
fn what_cannot_join_is_refused() {
    let group = "join-refused";
    let mut connection = coordinator(group);
    let member = join(&mut connection, group).member_id;
    let mut ask = |request: JoinGroupRequest| connection.call(9, &request).error_code;
    assert_eq!(
        ask(join_request(group, "stranger", &["range"])),
        25,
        "UNKNOWN_MEMBER_ID"
    );
    assert_eq!(
        ask(join_request("", "", &["range"])),
        24,
        "INVALID_GROUP_ID"
    );
    assert_eq!(
        ask(join_request(group, "", &["range"]).with_session_timeout_ms(1)),
        26,
        "INVALID_SESSION_TIMEOUT"
    );
    assert_eq!(
        ask(join_request(group, "", &["range"]).with_session_timeout_ms(i32::MAX)),
        26
    );
    assert_eq!(
        ask(join_request(group, "", &["sticky"])),
        23,
        "INCONSISTENT_GROUP_PROTOCOL"
    );
    assert_eq!(
        ask(join_request(group, "", &["range"]).with_protocol_type(text("connect"))),
        23
    );
    assert_eq!(ask(join_request(group, "", &[])), 23);
    let _ = member;
}

#[test]
fn two_members_go_through_a_generation() {
    let group = "generation";
    let (mut first, joined) = alone(group);
    assert_eq!(
        (joined.generation_id, joined.protocol_name.as_deref()),
        (1, Some("range"))
    );
    let mut second = coordinator(group);
    let id = second
        .call(9, &join_request(group, "", &["range"]))
        .member_id;
    let number = second.send(9, &join_request(group, &id, &["range"]));
    // The first learns of it from its heartbeat, and comes again.
    clock::wait_until("a rebalance", || {
        heartbeat(&mut first, group, 1, &joined.member_id) == 27
    });
    let leader = first.call(9, &join_request(group, &joined.member_id, &["range"]));
    let follower = second.receive::<JoinGroupRequest>(9, number);
    assert_eq!((leader.generation_id, follower.generation_id), (2, 2));
    assert_eq!(
        (leader.members.len(), follower.members.len()),
        (2, 0),
        "only the leader sees all"
    );
    assert_eq!(
        (&leader.leader, &follower.leader),
        (&joined.member_id, &joined.member_id)
    );
    // The follower waits for what the leader says.
    let number = second.send(5, &sync_request(group, &follower, &[]));
    let synced = first.call(
        5,
        &sync_request(group, &leader, &[(&joined.member_id, "one"), (&id, "two")]),
    );
    assert_eq!(synced.assignment, "one");
    assert_eq!(
        second.receive::<SyncGroupRequest>(5, number).assignment,
        "two"
    );
    assert_eq!(heartbeat(&mut first, group, 2, &joined.member_id), 0);
    assert_eq!(
        heartbeat(&mut first, group, 1, &joined.member_id),
        22,
        "ILLEGAL_GENERATION"
    );
    assert_eq!(
        heartbeat(&mut first, group, 2, "stranger"),
        25,
        "UNKNOWN_MEMBER_ID"
    );
    // One leaves: the other hears of it.
    assert_eq!(leave(&mut second, group, &id), 0);
    assert_eq!(
        heartbeat(&mut first, group, 2, &joined.member_id),
        27,
        "REBALANCE_IN_PROGRESS"
    );
    assert_eq!(
        leave(&mut second, group, &id),
        25,
        "it is no member any more"
    );
}

#[test]
fn a_sync_with_another_protocol_is_refused() {
    let group = "sync-protocol";
    let (mut connection, joined) = alone(group);
    let sound = || sync_request(group, &joined, &[]);
    let mut ask = |request: SyncGroupRequest| connection.call(5, &request).error_code;
    assert_eq!(
        ask(sound().with_protocol_name(Some(text("sticky")))),
        23,
        "INCONSISTENT_GROUP_PROTOCOL"
    );
    assert_eq!(ask(sound().with_protocol_type(Some(text("connect")))), 23);
    assert_eq!(ask(sound().with_generation_id(7)), 22, "ILLEGAL_GENERATION");
    assert_eq!(ask(sound().with_member_id(text("stranger"))), 25);
    assert_eq!(ask(sound()), 0, "a second sync of a stable group");
}

#[test]
fn a_static_member_comes_back_under_its_name() {
    let group = "static";
    let mut connection = coordinator(group);
    let request =
        || join_request(group, "", &["range"]).with_group_instance_id(Some(text("instance")));
    let first = connection.call(9, &request());
    assert_eq!((first.error_code, first.generation_id), (0, 1), "{first:?}");
    let sync = |joined: &JoinGroupResponse| {
        sync_request(group, joined, &[(&joined.member_id, "all")])
            .with_group_instance_id(Some(text("instance")))
    };
    assert_eq!(connection.call(5, &sync(&first)).assignment, "all");
    let again = coordinator(group).call(9, &request());
    assert_eq!(
        (again.error_code, again.generation_id),
        (0, 1),
        "no rebalance: {again:?}"
    );
    assert_ne!(again.member_id, first.member_id);
    let beat = |connection: &mut Connection, member: &StrBytes| {
        let request = HeartbeatRequest::default()
            .with_group_id(text(group).into())
            .with_generation_id(1);
        let request = request
            .with_member_id(member.clone())
            .with_group_instance_id(Some(text("instance")));
        connection.call(4, &request).error_code
    };
    assert_eq!(
        beat(&mut connection, &first.member_id),
        82,
        "FENCED_INSTANCE_ID"
    );
    assert_eq!(beat(&mut connection, &again.member_id), 0);
}

#[test]
fn a_member_that_falls_silent_is_dropped() {
    let group = "silent";
    let mut connection = coordinator(group);
    let request =
        |member: &str| join_request(group, member, &["range"]).with_session_timeout_ms(6_000);
    let id = connection.call(9, &request("")).member_id;
    assert_eq!(connection.call(9, &request(&id)).error_code, 0);
    let start = clock::now();
    clock::wait_until("the end of the session", || {
        state(&mut connection, group) == "Empty"
    });
    let took = clock::now() - start;
    assert!(took.as_millis() > 5_000, "{took:?} for a session of 6 s");
    assert_eq!(heartbeat(&mut connection, group, 1, &id), 25);
}

fn state(connection: &mut Connection, group: &str) -> String {
    let request = DescribeGroupsRequest::default().with_groups(vec![text(group).into()]);
    connection.call(5, &request).groups[0]
        .group_state
        .to_string()
}

#[test]
fn groups_are_described_and_listed() {
    let group = "described";
    let (mut connection, joined) = alone(group);
    let request = DescribeGroupsRequest::default().with_groups(vec![text(group).into()]);
    for version in 0..=6 {
        let found = connection.call(version, &request).groups.remove(0);
        assert_eq!(found.error_code, 0, "version {version}");
        assert_eq!(
            (
                &*found.group_state,
                &*found.protocol_type,
                &*found.protocol_data
            ),
            ("Stable", "consumer", "range")
        );
        let member = &found.members[0];
        assert_eq!(
            (&member.member_id, &*member.client_id),
            (&joined.member_id, "wire")
        );
        assert_eq!(
            (&member.member_metadata[..], &member.member_assignment[..]),
            (&b"topics"[..], &b"all"[..])
        );
        assert!(
            member.client_host.contains("127.0.0.1"),
            "{}",
            member.client_host
        );
    }
    let listed = |connection: &mut Connection, states: &[&str]| {
        let request = ListGroupsRequest::default()
            .with_states_filter(states.iter().map(|state| text(state)).collect());
        let groups = connection.call(5, &request).groups;
        groups.iter().any(|found| &*found.group_id == group)
    };
    assert!(listed(&mut connection, &[]) && listed(&mut connection, &["Stable"]));
    assert!(!listed(&mut connection, &["Empty"]));
    for version in 0..=5 {
        let answer = connection.call(version, &ListGroupsRequest::default());
        assert!(
            answer.groups.iter().any(|found| &*found.group_id == group),
            "version {version}"
        );
    }
}

#[test]
fn a_group_that_is_not_there_is_dead_or_unknown() {
    let mut connection = coordinator("absent");
    let request = DescribeGroupsRequest::default().with_groups(vec![text("absent").into()]);
    for version in 0..=5 {
        let found = connection.call(version, &request).groups.remove(0);
        assert_eq!(
            (found.error_code, &*found.group_state),
            (0, "Dead"),
            "version {version}"
        );
    }
    let found = connection.call(6, &request).groups.remove(0);
    assert_eq!(
        (found.error_code, &*found.group_state),
        (69, "Dead"),
        "GROUP_ID_NOT_FOUND"
    );
}

#[test]
fn committed_offsets_are_found_in_every_version() {
    let topic = Topic::new("offsets-versions");
    let group = "offsets-versions";
    let mut connection = coordinator(group);
    assert_eq!(
        committed(&mut connection, group, &topic),
        (0, -1, -1, String::new()),
        "none yet is no error"
    );
    assert_eq!(
        commit(&mut connection, group, -1, "", &topic, 42),
        0,
        "a consumer without membership"
    );
    assert_eq!(
        committed(&mut connection, group, &topic),
        (0, 42, 0, "a note".to_owned())
    );
    for version in 1..=9 {
        let asked = OffsetFetchRequestTopic::default()
            .with_name(topic.name.clone())
            .with_partition_indexes(vec![0]);
        let mut request = OffsetFetchRequest::default();
        if version < 8 {
            request.group_id = text(group).into();
            request.topics = Some(vec![asked]);
        } else {
            let asked = OffsetFetchRequestTopics::default()
                .with_name(topic.name.clone())
                .with_partition_indexes(vec![0]);
            let wanted = OffsetFetchRequestGroup::default()
                .with_group_id(text(group).into())
                .with_topics(Some(vec![asked]));
            let other = OffsetFetchRequestGroup::default()
                .with_group_id(text("offsets-nobody").into())
                .with_topics(None);
            request.groups = vec![wanted, other];
        }
        let answer = connection.call(version, &request);
        let offset = if version < 8 {
            answer.topics[0].partitions[0].committed_offset
        } else {
            assert_eq!(
                answer.groups[1].topics.len(),
                0,
                "all of a group that has none"
            );
            answer.groups[0].topics[0].partitions[0].committed_offset
        };
        assert_eq!((answer.error_code, offset), (0, 42), "version {version}");
    }
    // Null is all that there are.
    for version in 2..=7 {
        let request = OffsetFetchRequest::default()
            .with_group_id(text(group).into())
            .with_topics(None);
        let answer = connection.call(version, &request);
        let names: Vec<_> = answer
            .topics
            .iter()
            .map(|found| found.name.clone())
            .collect();
        assert_eq!(
            names,
            std::slice::from_ref(&topic.name),
            "version {version}"
        );
    }
}

#[test]
fn only_members_of_the_generation_commit() {
    let topic = Topic::new("offsets-members");
    let group = "offsets-members";
    let (mut connection, joined) = alone(group);
    let id = &joined.member_id;
    assert_eq!(commit(&mut connection, group, 1, id, &topic, 5), 0);
    assert_eq!(
        commit(&mut connection, group, 9, id, &topic, 6),
        22,
        "ILLEGAL_GENERATION"
    );
    assert_eq!(
        commit(&mut connection, group, 1, "stranger", &topic, 6),
        25,
        "UNKNOWN_MEMBER_ID"
    );
    assert_eq!(
        commit(&mut connection, group, -1, "", &topic, 6),
        25,
        "no outsider while there are members"
    );
    assert_eq!(committed(&mut connection, group, &topic).1, 5);
    let missing = Topic::missing("offsets-no-topic");
    assert_eq!(
        commit(&mut connection, group, 1, id, &missing, 6),
        3,
        "UNKNOWN_TOPIC_OR_PARTITION"
    );
    assert_eq!(leave(&mut connection, group, id), 0);
    assert_eq!(
        commit(&mut connection, group, -1, "", &topic, 7),
        0,
        "but when it is empty"
    );
    assert_eq!(committed(&mut connection, group, &topic).1, 7);
}

#[test]
fn the_offsets_of_a_deleted_topic_go_with_it() {
    let group = "offsets-deleted";
    let topic = Topic::new("offsets-deleted");
    let mut connection = coordinator(group);
    assert_eq!(commit(&mut connection, group, -1, "", &topic, 9), 0);
    let state = kafka_protocol::messages::delete_topics_request::DeleteTopicState::default()
        .with_name(Some(topic.name.clone()));
    let request = kafka_protocol::messages::DeleteTopicsRequest::default()
        .with_topics(vec![state])
        .with_timeout_ms(30_000);
    assert_eq!(connection.call(6, &request).responses[0].error_code, 0);
    let new = Topic::new("offsets-deleted");
    clock::wait_until("the old offsets to go", || {
        committed(&mut connection, group, &new).1 == -1
    });
}

/// A commit of an old client that says how long it is to be kept.
fn commit_for(connection: &mut Connection, group: &str, topic: &Topic, retention_ms: i64) -> i16 {
    let part = OffsetCommitRequestPartition::default()
        .with_partition_index(0)
        .with_committed_offset(7);
    let topic = OffsetCommitRequestTopic::default()
        .with_name(topic.name.clone())
        .with_partitions(vec![part]);
    let request = OffsetCommitRequest::default()
        .with_group_id(text(group).into())
        .with_generation_id_or_member_epoch(-1)
        .with_retention_time_ms(retention_ms)
        .with_topics(vec![topic]);
    connection.call(3, &request).topics[0].partitions[0].error_code
}

/// The clock of a group that is in use does not run (KIP-211); that of offsets without members runs from their commit.
#[test]
fn offsets_expire_when_nobody_uses_them() {
    let settings = [("offsets.retention.check.interval.ms", "200")];
    let broker = Broker::start("offsets-expire", &settings);
    let mut connection = Connection::open(broker.port);
    let answer = create(&mut connection, creatable("t", 1), false);
    let topic = Topic {
        name: answer.name,
        id: answer.topic_id,
    };
    let (short, long) = ("short", "long");
    for group in [short, long] {
        clock::wait_until("the coordinator", || {
            let request = FindCoordinatorRequest::default()
                .with_key_type(0)
                .with_coordinator_keys(vec![text(group)]);
            connection.call(4, &request).coordinators[0].error_code == 0
        });
        let retention = if group == short { 1_000 } else { -1 };
        clock::wait_until("the commit", || {
            commit_for(&mut connection, group, &topic, retention) == 0
        });
    }
    assert_eq!(committed(&mut connection, short, &topic).1, 7);
    clock::wait_until("the offset to expire", || {
        committed(&mut connection, short, &topic).1 == -1
    });
    assert_eq!(
        committed(&mut connection, long, &topic).1,
        7,
        "kept for seven days"
    );
    assert_eq!(
        state(&mut connection, short),
        "Dead",
        "nothing is left of the group"
    );
}

fn delete(connection: &mut Connection, group: &str) -> i16 {
    let request = DeleteGroupsRequest::default().with_groups_names(vec![text(group).into()]);
    connection.call(2, &request).results.remove(0).error_code
}

#[test]
fn only_an_empty_group_can_be_deleted() {
    let group = "deleted";
    let topic = Topic::new("group-deleted");
    let (mut connection, joined) = alone(group);
    assert_eq!(
        commit(&mut connection, group, 1, &joined.member_id, &topic, 5),
        0
    );
    assert_eq!(delete(&mut connection, group), 68, "NON_EMPTY_GROUP");
    assert_eq!(leave(&mut connection, group, &joined.member_id), 0);
    assert_eq!(state(&mut connection, group), "Empty");
    assert_eq!(delete(&mut connection, group), 0);
    assert_eq!(committed(&mut connection, group, &topic).1, -1);
    assert_eq!(delete(&mut connection, group), 69, "GROUP_ID_NOT_FOUND");
}

#[test]
fn offsets_can_be_deleted() {
    let group = "offset-delete";
    let topic = Topic::new("offset-delete");
    let mut connection = coordinator(group);
    let ask = |connection: &mut Connection, group: &str| {
        let part = OffsetDeleteRequestPartition::default().with_partition_index(0);
        let asked = OffsetDeleteRequestTopic::default()
            .with_name(topic.name.clone())
            .with_partitions(vec![part]);
        connection.call(
            0,
            &OffsetDeleteRequest::default()
                .with_group_id(text(group).into())
                .with_topics(vec![asked]),
        )
    };
    assert_eq!(ask(&mut connection, "offset-delete-nobody").error_code, 69);
    assert_eq!(commit(&mut connection, group, -1, "", &topic, 5), 0);
    let answer = ask(&mut connection, group);
    assert_eq!(
        (answer.error_code, answer.topics[0].partitions[0].error_code),
        (0, 0)
    );
    assert_eq!(committed(&mut connection, group, &topic).1, -1);
}

#[test]
fn the_note_of_a_commit_has_a_limit() {
    let topic = Topic::new("offsets-note");
    let group = "offsets-note";
    let mut connection = coordinator(group);
    let part = OffsetCommitRequestPartition::default()
        .with_partition_index(0)
        .with_committed_offset(1)
        .with_committed_metadata(Some(text(&"x".repeat(5_000))));
    let asked = OffsetCommitRequestTopic::default()
        .with_name(topic.name.clone())
        .with_partitions(vec![part]);
    let request = OffsetCommitRequest::default()
        .with_group_id(text(group).into())
        .with_generation_id_or_member_epoch(-1)
        .with_topics(vec![asked]);
    let answer = connection.call(8, &request);
    assert_eq!(
        answer.topics[0].partitions[0].error_code, 12,
        "OFFSET_METADATA_TOO_LARGE"
    );
}
