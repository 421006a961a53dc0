//! Expiry of offsets, and of groups without members and offsets (KIP-211).
//!
//! The clock of a group's offsets starts when the group becomes empty. A group in use keeps the
//! offsets of its topics however old they are; offsets of topics that nobody subscribes to any
//! more, and those of consumers without a group, expire from their last commit.

use super::super::super::event::TimerKey;
use super::super::super::machine::Turn;
use super::super::super::outbox::{Continuation, Rollback};
use super::super::super::record::Record;
use super::super::super::state::OffsetAndMetadata;
use super::super::classic::{ClassicGroup, State};
use protocol::Str;

/// From when on an offset counts.
enum Start {
    /// Since its commit.
    Commit,
    /// Since this time, in Unix milliseconds.
    At(i64),
}

impl Turn<'_> {
    /// Looks through all groups, and asks to be called again.
    pub(crate) fn expire(&mut self) {
        let ids: Vec<Str> = self.soft.groups.keys().cloned().collect();
        let mut records = Vec::new();
        for id in ids {
            self.expire_group(&id, &mut records);
        }
        self.append_in_parts(records);
        let interval = self.settings.offsets_retention_check_interval;
        self.out.set_timer_after(TimerKey::Expiry, interval);
    }

    fn expire_group(&mut self, id: &Str, records: &mut Vec<Record>) {
        // What is on its way into the log may change the picture: next time.
        if self.soft.uncommitted.touches(id) {
            return;
        }
        let Some(group) = self.soft.groups.get(id) else {
            return;
        };
        let mut all_expired = self.durable.pending(id).next().is_none();
        let mut expired = Vec::new();
        for (topic, offsets) in self.durable.offsets(id).into_iter().flatten() {
            let start = if group.is_subscribed_to(topic) {
                None
            } else {
                group.expiry_start()
            };
            for (&partition, committed) in offsets {
                let over = start
                    .as_ref()
                    .is_some_and(|start| self.is_over(start, committed));
                if over && !self.durable.is_unstable(id, topic, partition) {
                    expired.push(Record::offset_tombstone(id, topic, partition));
                } else {
                    all_expired = false;
                }
            }
        }
        if !(all_expired && group.state == State::Empty) {
            records.append(&mut expired);
            return;
        }
        // The group goes with its last offsets.
        self.append_in_parts(expired);
        let removed = self.soft.groups.remove(id);
        let rollback = Rollback {
            created: Vec::new(),
            removed: removed.into_iter().collect(),
        };
        let tombstone = vec![Record::group_tombstone(id)];
        self.out
            .append_or_roll_back(tombstone, Continuation::Nothing, rollback);
    }

    fn is_over(&self, start: &Start, committed: &OffsetAndMetadata) -> bool {
        if let Some(expires) = committed.expire_timestamp {
            return self.now_ms >= expires;
        }
        let since = match start {
            Start::Commit => committed.commit_timestamp,
            Start::At(time) => *time,
        };
        self.now_ms.saturating_sub(since) >= self.settings.offsets_retention_ms
    }
}

impl ClassicGroup {
    /// None while no offset may expire.
    fn expiry_start(&self) -> Option<Start> {
        if self.protocol_type.is_none() {
            return Some(Start::Commit);
        }
        match self.state {
            // Records of old brokers do not say when the group became empty.
            State::Empty => Some(self.state_timestamp.map_or(Start::Commit, Start::At)),
            State::Stable if self.subscribed_topics.is_some() => Some(Start::Commit),
            State::Stable | State::PreparingRebalance | State::CompletingRebalance => None,
        }
    }
}
