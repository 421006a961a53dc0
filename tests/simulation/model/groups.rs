//! Groups: one owner a partition in a generation, nobody of an old generation is served, committed
//! offsets are never lost and never go back unless committed so.

use std::collections::BTreeMap;

use super::Model;
use crate::record::Place;

#[derive(Default)]
pub(super) struct Groups {
    /// The order of everything that is noted here.
    now: u64,
    /// Starts of the broker.
    starts: u32,
    /// The newest generation that somebody has joined since the broker's last start.
    newest: i32,
    owners: BTreeMap<(i32, Place), String>,
    commits: BTreeMap<Place, Vec<Commit>>,
}

struct Commit {
    offset: i64,
    sent: u64,
    /// It takes no effect after this; of one whose answer is missing not known.
    over: Option<u64>,
    outcome: Outcome,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Unknown,
    Done,
    Refused,
}

/// A commit that was sent.
#[derive(Clone, Copy, Debug)]
pub struct Committing {
    place: Place,
    index: usize,
    losses: u32,
}

/// What an answer about the group has to respect if its request is sent now.
#[derive(Clone, Copy, Debug)]
pub struct GroupExpected {
    now: u64,
    starts: u32,
    newest: i32,
    losses: u32,
}

impl Groups {
    /// What was committed may have gone with the power, or not.
    pub(super) fn lose_unsynced(&mut self) {
        self.newest = 0;
        self.owners.clear();
        let now = self.tick();
        for commit in self.commits.values_mut().flatten() {
            commit.over = Some(now);
            if commit.outcome == Outcome::Done {
                commit.outcome = Outcome::Unknown;
            }
        }
    }

    fn tick(&mut self) -> u64 {
        self.now += 1;
        self.now
    }
}

impl Model {
    pub fn expect_group(&self) -> GroupExpected {
        let losses = self.losses();
        let mut groups = self.groups.borrow_mut();
        GroupExpected {
            now: groups.tick(),
            starts: groups.starts,
            newest: groups.newest,
            losses,
        }
    }

    /// The broker's process is gone: what it had not answered either took effect or never will. It may
    /// have forgotten generations that nobody was assigned partitions in.
    pub fn broker_ended(&self) {
        self.restarts.set(self.restarts.get() + 1);
        let mut groups = self.groups.borrow_mut();
        groups.starts += 1;
        groups.newest = 0;
        let now = groups.tick();
        for commit in groups.commits.values_mut().flatten() {
            commit.over.get_or_insert(now);
        }
    }

    pub fn joined(&self, expected: &GroupExpected, generation: i32) {
        let mut groups = self.groups.borrow_mut();
        if groups.starts == expected.starts {
            groups.newest = groups.newest.max(generation);
        }
    }

    /// The broker accepted what a member of `generation` asked.
    pub fn accepted(&self, expected: &GroupExpected, generation: i32, what: &str) {
        let groups = self.groups.borrow();
        let comparable = groups.starts == expected.starts && expected.losses == self.losses();
        let old = comparable && generation < expected.newest;
        drop(groups);
        self.verdict(if old {
            Err(format!("the group is in generation {}, but a {what} of generation {generation} was accepted", expected.newest))
        } else {
            Ok(())
        });
    }

    pub fn assigned(
        &self,
        expected: &GroupExpected,
        generation: i32,
        member: &str,
        places: &[Place],
    ) {
        if expected.losses != self.losses() {
            return;
        }
        let mut groups = self.groups.borrow_mut();
        let mut result = Ok(());
        for place in places {
            let owner = groups
                .owners
                .entry((generation, *place))
                .or_insert_with(|| member.to_owned());
            if owner != member {
                result = Err(format!(
                    "generation {generation} gives {place} to {member} and to {owner}"
                ));
            }
        }
        drop(groups);
        self.verdict(result);
    }

    pub fn committing(&self, place: Place, offset: i64) -> Committing {
        let losses = self.losses();
        let mut groups = self.groups.borrow_mut();
        let sent = groups.tick();
        let commits = groups.commits.entry(place).or_default();
        commits.push(Commit {
            offset,
            sent,
            over: None,
            outcome: Outcome::Unknown,
        });
        Committing {
            place,
            index: commits.len() - 1,
            losses,
        }
    }

    pub fn committed(&self, commit: Committing) {
        self.settle(commit, Outcome::Done);
    }

    pub fn commit_refused(&self, commit: Committing) {
        self.settle(commit, Outcome::Refused);
    }

    fn settle(&self, commit: Committing, outcome: Outcome) {
        if commit.losses != self.losses() {
            return;
        }
        let mut groups = self.groups.borrow_mut();
        let now = groups.tick();
        let commits = groups.commits.entry(commit.place).or_default();
        let commit = &mut commits[commit.index];
        commit.over.get_or_insert(now);
        commit.outcome = outcome;
    }

    /// The broker said what is committed, -1 for nothing.
    pub fn saw_committed(&self, expected: &GroupExpected, place: Place, offset: i64) {
        if expected.losses != self.losses() {
            return;
        }
        let groups = self.groups.borrow();
        let commits = groups
            .commits
            .get(&place)
            .map(Vec::as_slice)
            .unwrap_or_default();
        let since = |over: Option<u64>| {
            let over = over?;
            let mut later = commits
                .iter()
                .filter(|later| later.outcome == Outcome::Done);
            later.rfind(|later| {
                later.sent > over && later.over.is_some_and(|over| over < expected.now)
            })
        };
        let nothing = (offset == -1).then_some(Some(0));
        let may_be = commits
            .iter()
            .filter(|commit| commit.offset == offset && commit.outcome != Outcome::Refused);
        let mut possible = nothing.into_iter().chain(may_be.map(|commit| commit.over));
        let result = if possible.any(|over| since(over).is_none()) {
            Ok(())
        } else {
            let last = since(Some(0)).map_or(-1, |commit| commit.offset);
            Err(format!(
                "the committed offset of {place} is {offset}, but {last} was committed"
            ))
        };
        drop(groups);
        self.verdict(result);
    }
}
