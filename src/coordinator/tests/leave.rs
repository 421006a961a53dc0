//! LeaveGroup.

use super::super::wire::{LeaveGroupRequest, LeaveGroupResponse, LeavingMember};
use super::super::{Request, Response};
use super::harness::*;
use protocol::ErrorCode;

fn leave(bench: &mut Bench, version: i16, request: LeaveGroupRequest) -> LeaveGroupResponse {
    match bench.ask(version, Request::LeaveGroup(request)) {
        Response::LeaveGroup(response) => response,
        other => panic!("{other:?}"),
    }
}

fn leaving(members: &[(&str, Option<&str>)]) -> LeaveGroupRequest {
    let members = members.iter().map(|(member_id, instance)| LeavingMember {
        member_id: text(member_id),
        group_instance_id: instance.map(text),
        ..Default::default()
    });
    LeaveGroupRequest {
        group_id: text(GROUP),
        members: members.collect(),
        ..Default::default()
    }
}

fn errors(response: &LeaveGroupResponse) -> Vec<ErrorCode> {
    assert_eq!(response.error_code, 0);
    response
        .members
        .iter()
        .map(|member| error_of(member.error_code))
        .collect()
}

#[test]
fn a_member_leaves_and_the_rest_rebalance() {
    let mut bench = Bench::new();
    let ids = bench.stable_group(2);
    let response = leave(&mut bench, 5, leaving(&[(&ids[0], None)]));
    assert_eq!(errors(&response), [ErrorCode::None]);
    assert_eq!(bench.state(), "PreparingRebalance");
    let token = bench.join(9, join(&ids[1]));
    let response = joined(bench.take(token));
    assert_eq!(
        (response.generation_id, response.leader.as_str()),
        (2, ids[1].as_str())
    );
}

#[test]
fn the_last_member_leaves_an_empty_group_with_a_record() {
    let mut bench = Bench::new();
    let ids = bench.stable_group(1);
    let before = bench.log.len();
    leave(&mut bench, 5, leaving(&[(&ids[0], None)]));
    assert_eq!(bench.state(), "Empty");
    assert_eq!(bench.log.len(), before + 1);
    let bench = bench.failover();
    let mut bench = bench;
    assert_eq!(bench.state(), "Empty");
}

#[test]
fn several_leave_at_once_each_with_its_own_result() {
    let mut bench = Bench::new();
    let ids = bench.stable_group(3);
    let request = leaving(&[(&ids[0], None), ("stranger", None), (&ids[1], None)]);
    let response = leave(&mut bench, 3, request);
    assert_eq!(
        errors(&response),
        [ErrorCode::None, ErrorCode::UnknownMemberId, ErrorCode::None]
    );
    assert_eq!(bench.describe(GROUP).members.len(), 1);
}

#[test]
fn before_version_3_one_member_and_one_error() {
    let mut bench = Bench::new();
    let ids = bench.stable_group(1);
    let request = |id: &str| LeaveGroupRequest {
        group_id: text(GROUP),
        member_id: text(id),
        ..Default::default()
    };
    let response = leave(&mut bench, 2, request("stranger"));
    assert_eq!(error_of(response.error_code), ErrorCode::UnknownMemberId);
    assert!(response.members.is_empty());
    let response = leave(&mut bench, 0, request(&ids[0]));
    assert_eq!(response.error_code, 0);
    assert_eq!(bench.state(), "Empty");
}

#[test]
fn a_group_that_is_not_there() {
    let mut bench = Bench::new();
    let response = leave(&mut bench, 5, leaving(&[("a", None), ("b", None)]));
    assert_eq!(errors(&response), [ErrorCode::UnknownMemberId; 2]);
    let mut request = leaving(&[("a", None)]);
    request.group_id = text("");
    let response = leave(&mut bench, 5, request);
    assert_eq!(error_of(response.error_code), ErrorCode::InvalidGroupId);
}

#[test]
fn a_pending_member_that_leaves_completes_the_join_phase() {
    let mut bench = Bench::new();
    let ids = bench.stable_group(1);
    let pending = bench.member_id();
    let token = bench.join(9, join(&ids[0]));
    assert!(!bench.is_answered(token));
    let response = leave(&mut bench, 5, leaving(&[(&pending, None)]));
    assert_eq!(errors(&response), [ErrorCode::None]);
    assert_eq!(joined(bench.take(token)).generation_id, 2);
}

#[test]
fn a_member_that_leaves_while_it_joins_or_syncs_is_answered() {
    let mut bench = Bench::new();
    let ids = bench.stable_group(2);
    let parked = bench.join(9, join(&ids[0]));
    leave(&mut bench, 5, leaving(&[(&ids[0], None)]));
    assert_eq!(
        error_of(joined(bench.take(parked)).error_code),
        ErrorCode::UnknownMemberId
    );
    let token = bench.join(9, join(&ids[1]));
    bench.take(token);
    let newcomer = bench.join(3, join(""));
    let rejoin = bench.join(9, join(&ids[1]));
    let id = joined(bench.take(newcomer)).member_id.to_string();
    let generation = joined(bench.take(rejoin)).generation_id;
    let waiting = bench.sync(sync(&id, generation, &[]));
    leave(&mut bench, 5, leaving(&[(&id, None)]));
    assert_eq!(
        error_of(synced(bench.take(waiting)).error_code),
        ErrorCode::UnknownMemberId
    );
}

#[test]
fn an_administrator_removes_static_members_by_instance_id() {
    let mut bench = Bench::new();
    let token = bench.join(9, static_join("", "one"));
    bench.advance_ms(10_000);
    let id = joined(bench.take(token)).member_id.to_string();
    let response = leave(&mut bench, 5, leaving(&[("", Some("two")), ("", None)]));
    assert_eq!(errors(&response), [ErrorCode::UnknownMemberId; 2]);
    let response = leave(&mut bench, 5, leaving(&[("wrong", Some("one"))]));
    assert_eq!(errors(&response), [ErrorCode::FencedInstanceId]);
    let response = leave(&mut bench, 5, leaving(&[("", Some("one"))]));
    assert_eq!(errors(&response), [ErrorCode::None]);
    assert_eq!(response.members[0].group_instance_id, Some(text("one")));
    assert_eq!(bench.heartbeat(&id, 1), ErrorCode::UnknownMemberId);
    assert_eq!(bench.state(), "Empty");
}
