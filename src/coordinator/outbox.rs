//! What one turn of the coordinator wants done, in order.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use protocol::{ErrorCode, Str};

use super::event::{RequestToken, Response, TimerKey};
use super::group::classic::{Member, Waiter};
use super::record::Record;

/// What follows when an append has ended, well or not.
#[derive(Clone, Debug)]
pub(crate) enum Continuation {
    /// Nobody waits for it.
    Nothing,
    /// A request waits for its records: this answer if they are written, the refusal if not.
    Reply {
        token: RequestToken,
        response: Box<Response>,
    },
    /// The leader's assignment.
    SyncCompleted {
        group: Str,
        generation: i32,
        assignment: BTreeMap<Str, Bytes>,
    },
    /// A static member came back under a new id, and nothing else changed (KIP-345).
    StaticMemberReplaced(Box<StaticMemberReplaced>),
    /// The first record of a group.
    GroupCreated { group: Str },
}

#[derive(Clone, Debug)]
pub(crate) struct StaticMemberReplaced {
    pub(crate) group: Str,
    pub(crate) old: Member,
    pub(crate) new_id: Str,
    pub(crate) waiter: Waiter,
    /// The leader as it was before the replacement: what versions without `skip_assignment` see.
    pub(crate) leader: Option<Str>,
}

#[derive(Debug)]
pub(crate) enum Action {
    Append {
        records: Vec<Record>,
        then: Continuation,
        rollback: Rollback,
    },
    Reply(RequestToken, Box<Response>),
    SetTimer(TimerKey, Duration),
    CancelTimer(TimerKey),
}

/// What a failed append takes back from the groups in memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rollback {
    /// Groups that exist only because of these records.
    pub(crate) created: Vec<Str>,
    /// Groups that these records remove.
    pub(crate) removed: Vec<super::group::classic::ClassicGroup>,
}

/// Collects the actions of one turn.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    pub(crate) actions: Vec<Action>,
}

impl Outbox {
    pub(crate) fn reply(&mut self, token: RequestToken, response: Response) {
        self.actions.push(Action::Reply(token, Box::new(response)));
    }

    pub(crate) fn append(&mut self, records: Vec<Record>, then: Continuation) {
        self.append_or_roll_back(records, then, Rollback::default());
    }

    pub(crate) fn append_or_roll_back(
        &mut self,
        records: Vec<Record>,
        then: Continuation,
        rollback: Rollback,
    ) {
        self.actions.push(Action::Append {
            records,
            then,
            rollback,
        });
    }

    pub(crate) fn set_timer(&mut self, key: TimerKey, after_ms: i32) {
        let after = Duration::from_millis(u64::try_from(after_ms).unwrap_or(0));
        self.actions.push(Action::SetTimer(key, after));
    }

    pub(crate) fn set_timer_after(&mut self, key: TimerKey, after: Duration) {
        self.actions.push(Action::SetTimer(key, after));
    }

    pub(crate) fn cancel_timer(&mut self, key: TimerKey) {
        self.actions.push(Action::CancelTimer(key));
    }

    /// Did this turn ask for an append?
    pub(crate) fn has_append(&self) -> bool {
        self.actions
            .iter()
            .any(|action| matches!(action, Action::Append { .. }))
    }
}

/// The code that a group request answers when the log refused its records.
///
/// From Kafka's `appendGroupMetadataErrorToResponseError`: what goes away by itself asks the
/// client to try again, a lost leadership to look for the coordinator again.
pub(crate) fn append_error(error: ErrorCode) -> ErrorCode {
    match error {
        ErrorCode::UnknownTopicOrPartition
        | ErrorCode::NotEnoughReplicas
        | ErrorCode::NotEnoughReplicasAfterAppend
        | ErrorCode::RequestTimedOut => ErrorCode::CoordinatorNotAvailable,
        ErrorCode::NotLeaderOrFollower | ErrorCode::KafkaStorageError => ErrorCode::NotCoordinator,
        ErrorCode::MessageTooLarge
        | ErrorCode::RecordListTooLarge
        | ErrorCode::InvalidFetchSize => ErrorCode::UnknownServerError,
        other => other,
    }
}
