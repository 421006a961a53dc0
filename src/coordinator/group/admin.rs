//! ListGroups, DescribeGroups, DeleteGroups.

use protocol::{ErrorCode, Str};

use super::super::event::{RequestContext, Response};
use super::super::machine::Turn;
use super::super::outbox::{Continuation, Rollback};
use super::super::record::Record;
use super::super::state::ForeignType;
use super::super::wire::{DescribedGroup, DescribedMember, ListGroupsRequest, ListedGroup};
use super::classic::{ClassicGroup, Member, State};

/// State of a group that is not there, or of another type.
const DEAD: Str = Str::from_static("Dead");
const CLASSIC: &str = "classic";
/// State of groups that are kept but not served.
const UNKNOWN: &str = "Unknown";

impl Turn<'_> {
    pub(crate) fn list_groups(&self, request: &ListGroupsRequest) -> Vec<ListedGroup> {
        let states: Vec<String> = request
            .states_filter
            .iter()
            .map(|state| state.trim().to_lowercase())
            .collect();
        let types: Vec<String> = request
            .types_filter
            .iter()
            .map(|kind| kind.to_lowercase())
            .collect();
        let wanted = |state: &str, kind: &str| {
            (states.is_empty() || states.contains(&state.to_lowercase()))
                && (types.is_empty() || types.iter().any(|wanted| wanted == kind))
        };
        // A group that is not in the log yet is not there for others.
        let classic = self
            .soft
            .groups
            .values()
            .filter(|group| self.durable.group(&group.id).is_some())
            .filter(|group| wanted(group.state.name(), CLASSIC))
            .map(|group| ListedGroup {
                group_id: group.id.clone(),
                protocol_type: group.protocol_type.clone().unwrap_or_default(),
                group_state: Str::from_static(group.state.name()),
                group_type: Str::from_static(CLASSIC),
            });
        let foreign = self
            .durable
            .foreign_groups()
            .map(|(id, kind)| (id, foreign_name(kind)))
            .filter(|(_, kind)| wanted(UNKNOWN, kind))
            .map(|(id, kind)| ListedGroup {
                group_id: id.clone(),
                // Kafka lists these with the name of the type as protocol type.
                protocol_type: Str::from_static(kind),
                group_state: Str::from_static(UNKNOWN),
                group_type: Str::from_static(kind),
            });
        classic.chain(foreign).collect()
    }

    pub(crate) fn describe_group(&self, version: i16, id: &Str) -> DescribedGroup {
        let known = self
            .soft
            .groups
            .get(id)
            .filter(|_| self.durable.group(id).is_some());
        if let Some(group) = known {
            return group.describe();
        }
        let mut answer = DescribedGroup {
            group_id: id.clone(),
            group_state: DEAD,
            ..Default::default()
        };
        if version >= 6 {
            // KIP-1043: before, a group that is not there was merely dead.
            let message = match self.durable.foreign(id) {
                Some(_) => format!("Group {id} is not a classic group."),
                None => format!("Group {id} not found."),
            };
            answer.error_code = ErrorCode::GroupIdNotFound.code();
            answer.error_message = Some(Str::from(message).shortened());
        }
        answer
    }

    pub(crate) fn delete_group(&mut self, context: &RequestContext, id: &Str) {
        if let Err(error) = self.check_delete(id) {
            let response = Response::DeleteGroup(id.clone(), error);
            return self.out.reply(context.token, response);
        }
        let mut records: Vec<Record> = self
            .partitions_with_offsets(id)
            .iter()
            .map(|(topic, partition)| Record::offset_tombstone(id, topic, *partition))
            .collect();
        records.push(Record::group_tombstone(id));
        let removed = self.soft.groups.remove(id);
        let rollback = Rollback {
            created: Vec::new(),
            removed: removed.into_iter().collect(),
        };
        let then = Continuation::Reply {
            token: context.token,
            response: Box::new(Response::DeleteGroup(id.clone(), ErrorCode::None)),
        };
        self.out.append_or_roll_back(records, then, rollback);
    }

    fn check_delete(&self, id: &Str) -> Result<(), ErrorCode> {
        if self.durable.foreign(id).is_some() {
            // Whether it has members, only its own protocol can tell.
            return Err(ErrorCode::NonEmptyGroup);
        }
        match self.soft.groups.get(id) {
            None => Err(ErrorCode::GroupIdNotFound),
            Some(group) if group.state == State::Empty => Ok(()),
            Some(_) => Err(ErrorCode::NonEmptyGroup),
        }
    }
}

fn foreign_name(kind: ForeignType) -> &'static str {
    match kind {
        ForeignType::Consumer => "consumer",
        ForeignType::Share => "share",
        ForeignType::Streams => "streams",
    }
}

impl ClassicGroup {
    fn describe(&self) -> DescribedGroup {
        // Metadata belongs to a protocol, and one is agreed on in a stable group only.
        let protocol = self
            .protocol_name
            .as_ref()
            .filter(|_| self.state == State::Stable);
        let describe = |member: &Member| DescribedMember {
            member_id: member.id.clone(),
            group_instance_id: member.instance_id.clone(),
            client_id: member.client_id.clone(),
            client_host: member.client_host.clone(),
            member_metadata: protocol
                .and_then(|protocol| member.metadata(protocol).cloned())
                .unwrap_or_default(),
            member_assignment: member.assignment.clone(),
        };
        DescribedGroup {
            group_id: self.id.clone(),
            group_state: Str::from_static(self.state.name()),
            protocol_type: self.protocol_type.clone().unwrap_or_default(),
            protocol_data: protocol.cloned().unwrap_or_default(),
            members: self.members().map(describe).collect(),
            ..Default::default()
        }
    }
}
