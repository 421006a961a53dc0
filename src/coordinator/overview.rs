//! What the groups of a core are like, for those who watch the broker.

use protocol::Str;

use super::group::classic::{ClassicGroup, State};
use super::machine::Coordinator;
use super::runtime::GroupCoordinators;

/// The groups of a coordinator, or of a core.
#[derive(Clone, Debug, Default)]
pub struct GroupsOverview {
    /// Groups, those without members too.
    pub groups: usize,
    /// Their members.
    pub members: usize,
    /// Groups in the middle of a rebalance.
    pub rebalancing: Vec<Rebalance>,
}

/// A group in the middle of a rebalance.
#[derive(Clone, Debug)]
pub struct Rebalance {
    /// The group.
    pub group: Str,
    /// Kafka's name of its state.
    pub state: &'static str,
    /// Unix milliseconds since when it is in that state, where that is known.
    pub since_ms: Option<i64>,
    /// Its members.
    pub members: usize,
    /// Those that the others wait for.
    pub awaited: Vec<AwaitedMember>,
}

/// A member that others wait for.
#[derive(Clone, Debug)]
pub struct AwaitedMember {
    /// Its id.
    pub member_id: Str,
    /// Its client's name for itself.
    pub client_id: Str,
    /// Its address, as Java prints it.
    pub client_host: Str,
}

impl GroupsOverview {
    fn add(&mut self, group: &ClassicGroup) {
        self.groups += 1;
        self.members += group.size();
        if matches!(
            group.state,
            State::PreparingRebalance | State::CompletingRebalance
        ) {
            self.rebalancing.push(Rebalance {
                group: group.id.clone(),
                state: group.state.name(),
                since_ms: group.state_timestamp,
                members: group.size(),
                awaited: awaited(group),
            });
        }
    }
}

/// Whom a group waits for: for members to join again, then for its leader's assignment, then for
/// members to fetch it.
fn awaited(group: &ClassicGroup) -> Vec<AwaitedMember> {
    let leader = group.leader.as_ref().and_then(|id| group.member(id));
    let leader = leader.filter(|leader| leader.awaiting_sync.is_none());
    let members = group.members().filter(|member| match group.state {
        State::PreparingRebalance => !member.is_awaiting_join(),
        _ => match leader {
            Some(leader) => leader.id == member.id,
            None => group.pending_sync.contains(&member.id),
        },
    });
    members
        .map(|member| AwaitedMember {
            member_id: member.id.clone(),
            client_id: member.client_id.clone(),
            client_host: member.client_host.clone(),
        })
        .collect()
}

impl Coordinator {
    /// Adds its groups.
    pub(super) fn look_at_groups(&self, overview: &mut GroupsOverview) {
        self.groups().for_each(|group| overview.add(group));
    }
}

impl GroupCoordinators {
    /// What the groups of this core are like.
    pub fn overview(&self) -> GroupsOverview {
        let mut overview = GroupsOverview::default();
        for partition in self.partitions() {
            if let Some(partition) = self.get(partition) {
                partition.look_at_groups(&mut overview);
            }
        }
        overview
    }
}
