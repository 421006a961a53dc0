//! ListGroups, DescribeGroups, DeleteGroups, and groups of other types.

use protocol::stored::{
    ConsumerGroupMetadataKey, ConsumerGroupMetadataValue, GroupKey, GroupValue,
};
use protocol::{ErrorCode, Str};

use super::super::record::Record;
use super::super::settings::Settings;
use super::super::wire::ListGroupsRequest;
use super::super::{Request, Response};
use super::harness::*;

fn list(bench: &mut Bench, states: &[&str], types: &[&str]) -> Vec<(String, String, String)> {
    let texts = |all: &[&str]| all.iter().map(|one| text(one)).collect::<Vec<Str>>();
    let request = ListGroupsRequest {
        states_filter: texts(states).into(),
        types_filter: texts(types).into(),
    };
    match bench.ask(5, Request::ListGroups(request)) {
        Response::ListGroups(Ok(groups)) => groups
            .into_iter()
            .map(|group| {
                let (id, state) = (group.group_id.to_string(), group.group_state.to_string());
                (id, state, group.group_type.to_string())
            })
            .collect(),
        other => panic!("{other:?}"),
    }
}

fn delete(bench: &mut Bench, group: &str) -> ErrorCode {
    match bench.ask(2, Request::DeleteGroup(text(group))) {
        Response::DeleteGroup(id, error) => {
            assert_eq!(id, group);
            error
        }
        other => panic!("{other:?}"),
    }
}

fn entry(id: &str, state: &str) -> (String, String, String) {
    (id.to_owned(), state.to_owned(), "classic".to_owned())
}

#[test]
fn groups_are_listed_by_state_and_type() {
    let mut bench = Bench::new();
    let mut simple = commit(0, 1);
    simple.group_id = text("simple");
    bench.commit(simple);
    bench.stable_group(1);
    let both = [entry(GROUP, "Stable"), entry("simple", "Empty")];
    assert_eq!(list(&mut bench, &[], &[]), both);
    assert_eq!(list(&mut bench, &[" sTABLE "], &[]), both[..1]);
    assert_eq!(list(&mut bench, &["empty", "Stable"], &["Classic"]), both);
    assert_eq!(list(&mut bench, &[], &["consumer", "no type"]), []);
    assert_eq!(list(&mut bench, &["Dead"], &[]), []);
}

#[test]
fn a_group_is_seen_when_it_is_in_the_log() {
    let mut bench = Bench::new();
    bench.hold = true;
    bench.member_id();
    assert_eq!(list(&mut bench, &[], &[]), []);
    assert_eq!(bench.state(), "Dead");
    bench.write_next();
    assert_eq!(list(&mut bench, &[], &[]), [entry(GROUP, "Empty")]);
}

#[test]
fn a_missing_group_is_dead_or_an_error() {
    let mut bench = Bench::new();
    let described = bench.describe("missing");
    assert_eq!(
        (described.error_code, described.group_state.as_str()),
        (0, "Dead")
    );
    let Response::DescribeGroup(described) = bench.ask(6, Request::DescribeGroup(text("missing")))
    else {
        panic!()
    };
    assert_eq!(error_of(described.error_code), ErrorCode::GroupIdNotFound);
    assert_eq!(
        described.error_message,
        Some(text("Group missing not found."))
    );
    assert_eq!(described.group_state, "Dead");
}

#[test]
fn members_have_no_metadata_outside_of_a_stable_group() {
    let mut bench = Bench::new();
    let ids = bench.stable_group(1);
    let described = bench.describe(GROUP);
    assert!(!described.members[0].member_metadata.is_empty());
    let newcomer = bench.member_id();
    bench.join(9, join(&newcomer));
    let described = bench.describe(GROUP);
    assert_eq!(described.group_state, "PreparingRebalance");
    assert_eq!(described.protocol_data, "");
    assert!(
        described
            .members
            .iter()
            .all(|member| member.member_metadata.is_empty())
    );
    assert!(
        described
            .members
            .iter()
            .any(|member| member.member_id == ids[0].as_str())
    );
}

#[test]
fn empty_groups_can_be_deleted_with_their_offsets() {
    let mut bench = Bench::new();
    assert_eq!(delete(&mut bench, GROUP), ErrorCode::GroupIdNotFound);
    let ids = bench.stable_group(1);
    bench.commit(commit_as(&ids[0], 1, 3));
    assert_eq!(delete(&mut bench, GROUP), ErrorCode::NonEmptyGroup);
    bench.advance_ms(10_000);
    assert_eq!(bench.state(), "Empty");
    assert_eq!(delete(&mut bench, GROUP), ErrorCode::None);
    assert_eq!(bench.state(), "Dead");
    assert_eq!(bench.offset("foo", 0), -1);
    assert_eq!(*bench.machine.durable(), Default::default());
    assert_eq!(bench.heartbeat(&ids[0], 2), ErrorCode::UnknownMemberId);
}

#[test]
fn a_group_that_is_deleted_while_somebody_wants_in_starts_anew() {
    let mut bench = Bench::new();
    bench.commit(commit(0, 3));
    let pending = bench.member_id();
    bench.hold = true;
    let deleted = bench.send_as(2, Request::DeleteGroup(text(GROUP)));
    let token = bench.join(9, join(&pending));
    assert_eq!(
        error_of(joined(bench.take(token)).error_code),
        ErrorCode::UnknownMemberId
    );
    let id = bench.member_id();
    bench.write_next();
    bench.write_next();
    bench.hold = false;
    assert_eq!(
        bench.take(deleted),
        Response::DeleteGroup(text(GROUP), ErrorCode::None)
    );
    let token = bench.join(9, join(&id));
    bench.advance_ms(3_000);
    assert_eq!(joined(bench.take(token)).generation_id, 1);
    assert_eq!(bench.offset("foo", 0), -1);
}

/// The record that every group of the consumer protocol (KIP-848) has.
fn consumer_group(id: &str) -> Record {
    let key = GroupKey::ConsumerGroupMetadata(ConsumerGroupMetadataKey { group_id: text(id) });
    let value = GroupValue::ConsumerGroupMetadata(ConsumerGroupMetadataValue {
        epoch: 3,
        ..Default::default()
    });
    Record {
        key: key.encode().unwrap(),
        value: Some(value.encode(0).unwrap()),
    }
}

#[test]
fn groups_of_other_types_are_kept_and_left_alone() {
    let log = vec![
        consumer_group(GROUP),
        Record {
            key: bytes::Bytes::from_static(b"\x00\x63?"),
            value: None,
        },
    ];
    let mut bench = Bench::from_log(Settings::default(), log, START_MS);
    let token = bench.join(9, join(""));
    let response = joined(bench.take(token));
    assert_eq!(
        error_of(response.error_code),
        ErrorCode::InconsistentGroupProtocol
    );
    assert_eq!(bench.heartbeat("x", 1), ErrorCode::UnknownMemberId);
    assert_eq!(bench.commit(commit(0, 1)), [ErrorCode::UnknownMemberId]);
    assert_eq!(delete(&mut bench, GROUP), ErrorCode::NonEmptyGroup);
    assert_eq!(list(&mut bench, &[], &["consumer"]).len(), 1);
    let Response::DescribeGroup(described) = bench.ask(6, Request::DescribeGroup(text(GROUP)))
    else {
        panic!()
    };
    assert_eq!(error_of(described.error_code), ErrorCode::GroupIdNotFound);
    assert_eq!(bench.log.len(), 2, "nothing was written");
}
