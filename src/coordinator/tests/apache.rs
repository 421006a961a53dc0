//! The same story as told by Apache Kafka 4.4: a static member of the Java consumer joins, commits,
//! is removed by an administrator, and its group is deleted. These are the records that stood in
//! `__consumer_offsets` afterwards (key, value); ours have to be the same bytes.

use bytes::Bytes;
use protocol::Uuid;

use super::super::record::Record;
use super::super::settings::Settings;
use super::super::wire::*;
use super::super::{Request, Response};
use super::harness::*;

const GROUP_KEY: &str = "00020006676f6c64656e";
const OFFSET_KEY: &str = "00010006676f6c64656e0003666f6f00000001";
const CREATED: &str = "0003000000000000ffffffff000001a228e8194d00000000";
const ASSIGNED: &str = "00030008636f6e73756d657200000001000572616e67650029696e73742d61653762613661302d31\
             6364662d346665382d383939642d383738646634333435623166000001a228e81a19000000010029\
             696e73742d61653762613661302d316364662d346665382d383939642d3837386466343334356231\
             660004696e73740006746573746572000a2f3132372e302e302e31000493e00000afc80000001900\
             03000000010003666f6fffffffff00000000ffffffffffff0000001b0003000000010003666f6f00\
             0000020000000000000001ffffffff";
const COMMITTED: &str = "0004000000000000002a00000003056d657461000001a228e81d23\
             010010c0cb509f236745ba91c0cf45622a81bc";
const EMPTIED: &str = "00030008636f6e73756d657200000002ffffffff000001a228e81ef200000000";

fn hex(text: &str) -> Bytes {
    let digits: Vec<char> = text.chars().collect();
    let byte = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16).unwrap();
    digits.chunks(2).map(byte).collect::<Vec<u8>>().into()
}

fn apache_log() -> Vec<Record> {
    [
        (GROUP_KEY, Some(CREATED)),
        (GROUP_KEY, Some(ASSIGNED)),
        (OFFSET_KEY, Some(COMMITTED)),
        (GROUP_KEY, Some(EMPTIED)),
        (OFFSET_KEY, None),
        (GROUP_KEY, None),
    ]
    .map(|(key, value)| Record {
        key: hex(key),
        value: value.map(hex),
    })
    .to_vec()
}

/// Subscription version 3 to "foo", as the Java consumer sends it.
const SUBSCRIPTION: &str = "0003000000010003666f6fffffffff00000000ffffffffffff";
/// Both partitions of "foo".
const ASSIGNMENT: &str = "0003000000010003666f6f000000020000000000000001ffffffff";
const MEMBER: &str = "inst-ae7ba6a0-1cdf-4fe8-899d-878df4345b1f";

#[test]
fn the_same_story_gives_the_same_records() {
    let settings = Settings {
        initial_rebalance_delay_ms: 0,
        ..Settings::default()
    };
    let mut bench = Bench::from_log(settings, Vec::new(), 0x1a2_28e8_194d);
    bench.client_id = "tester";
    bench.random = Some(
        hex("ae7ba6a01cdf4fe8899d878df4345b1f")[..]
            .try_into()
            .unwrap(),
    );
    let protocol = |name: &str| JoinProtocol {
        name: text(name),
        metadata: hex(SUBSCRIPTION),
    };
    let request = JoinGroupRequest {
        group_id: text("golden"),
        session_timeout_ms: 45_000,
        rebalance_timeout_ms: 300_000,
        group_instance_id: Some(text("inst")),
        protocol_type: text("consumer"),
        protocols: [protocol("range"), protocol("cooperative-sticky")].into(),
        ..Default::default()
    };
    let token = bench.join(9, request);
    bench.now_ms = 0x1a2_28e8_1a19;
    bench.advance_ms(0);
    let joined = joined(bench.take(token));
    assert_eq!(joined.member_id, MEMBER);
    let request = SyncGroupRequest {
        group_id: text("golden"),
        generation_id: 1,
        group_instance_id: Some(text("inst")),
        assignments: [SyncAssignment {
            member_id: text(MEMBER),
            assignment: hex(ASSIGNMENT),
        }]
        .into(),
        ..sync(MEMBER, 1, &[])
    };
    let token = bench.sync(request);
    bench.take(token);

    bench.now_ms = 0x1a2_28e8_1d23;
    let topic_id: [u8; 16] = hex("c0cb509f236745ba91c0cf45622a81bc")[..]
        .try_into()
        .unwrap();
    let partition = CommitPartition {
        partition_index: 1,
        committed_offset: 42,
        committed_leader_epoch: 3,
        committed_metadata: Some(text("meta")),
    };
    let request = OffsetCommitRequest {
        group_id: text("golden"),
        generation_id_or_member_epoch: 1,
        member_id: text(MEMBER),
        group_instance_id: Some(text("inst")),
        topics: [CommitTopic {
            name: text("foo"),
            topic_id: Uuid(topic_id),
            partitions: [partition].into(),
        }]
        .into(),
        ..Default::default()
    };
    bench.commit(request);

    bench.now_ms = 0x1a2_28e8_1ef2;
    let members = vec![LeavingMember {
        group_instance_id: Some(text("inst")),
        ..Default::default()
    }];
    let request = LeaveGroupRequest {
        group_id: text("golden"),
        members: members.into(),
        ..Default::default()
    };
    bench.ask(5, Request::LeaveGroup(request));
    bench.ask(2, Request::DeleteGroup(text("golden")));
    for (number, (ours, theirs)) in bench.log.iter().zip(apache_log()).enumerate() {
        assert_eq!(*ours, theirs, "record {number}");
    }
    assert_eq!(bench.log.len(), 6);
}

#[test]
fn a_log_of_apache_goes_on_here() {
    let log = apache_log();
    let mut bench = Bench::from_log(Settings::default(), log[..3].to_vec(), 0x1a2_28e8_1e00);
    let described = bench.describe("golden");
    assert_eq!(
        (described.group_state.as_str(), described.members.len()),
        ("Stable", 1)
    );
    assert_eq!(described.members[0].member_assignment, hex(ASSIGNMENT));
    assert_eq!(described.members[0].group_instance_id, Some(text("inst")));
    let group = OffsetFetchGroup {
        group_id: text("golden"),
        ..Default::default()
    };
    let group = OffsetFetchGroup {
        topics: None,
        ..group
    };
    let fetched = bench.ask(
        8,
        Request::OffsetFetch {
            group,
            require_stable: false,
        },
    );
    let Response::OffsetFetch(fetched) = fetched else {
        panic!()
    };
    let partition = &fetched.topics[0].partitions[0];
    assert_eq!(
        (partition.committed_offset, partition.committed_leader_epoch),
        (42, 3)
    );
    assert_eq!(partition.metadata, Some(text("meta")));

    let gone = Bench::from_log(Settings::default(), log, 0x1a2_28e8_2000);
    assert_eq!(*gone.machine.durable(), Default::default());
}
