//! 200 members that join, sync, die, leave and dawdle at random: the group always gets stable
//! again, generations only grow, and nobody gets an assignment of another generation.

use std::collections::BTreeMap;

use super::super::settings::Settings;
use super::super::wire::{LeaveGroupRequest, LeavingMember};
use super::super::{Request, RequestToken};
use super::harness::*;
use protocol::ErrorCode;

const MEMBERS: usize = 200;

/// SplitMix64: a seed says all.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.next().is_multiple_of(n)
    }
}

/// What a client is doing.
enum Doing {
    /// Not in the group.
    Away,
    /// Has an id from MEMBER_ID_REQUIRED.
    HasId,
    Joining(RequestToken),
    /// In a generation, to sync; who leads learned all members.
    ToSync {
        generation: i32,
        members: Vec<String>,
    },
    Syncing {
        token: RequestToken,
        generation: i32,
    },
    Consuming {
        generation: i32,
    },
}

struct Client {
    id: String,
    instance: Option<String>,
    doing: Doing,
}

struct Churn {
    bench: Bench,
    clients: Vec<Client>,
    random: Random,
    last_generation: i32,
}

impl Churn {
    fn new(seed: u64) -> Self {
        let settings = Settings {
            max_session_timeout_ms: 60_000,
            ..Settings::default()
        };
        let clients = (0..MEMBERS).map(|index| Client {
            id: String::new(),
            instance: index.is_multiple_of(4).then(|| format!("instance-{index}")),
            doing: Doing::Away,
        });
        Churn {
            bench: Bench::with(settings),
            clients: clients.collect(),
            random: Random(seed),
            last_generation: 0,
        }
    }

    fn join(&mut self, at: usize) {
        let client = &self.clients[at];
        let mut request = join(&client.id);
        request.group_instance_id = client.instance.as_deref().map(text);
        // A few clients of old versions, which need no id first.
        let version = if at.is_multiple_of(10) { 3 } else { 9 };
        let version = if client.instance.is_some() {
            9
        } else {
            version
        };
        let token = self.bench.join(version, request);
        self.clients[at].doing = Doing::Joining(token);
    }

    /// The client's next step, as a correct client takes it.
    fn step(&mut self, at: usize) {
        match &self.clients[at].doing {
            Doing::Away | Doing::HasId => self.join(at),
            Doing::Joining(token) => {
                let token = *token;
                if self.bench.is_answered(token) {
                    self.joined(at, token);
                }
            }
            Doing::ToSync { .. } => self.sync(at),
            Doing::Syncing { token, generation } => {
                let (token, generation) = (*token, *generation);
                if self.bench.is_answered(token) {
                    self.synced(at, token, generation);
                }
            }
            Doing::Consuming { generation } => {
                let generation = *generation;
                let id = self.clients[at].id.clone();
                let error = self.bench.heartbeat(&id, generation);
                self.after_error(at, error);
            }
        }
    }

    fn joined(&mut self, at: usize, token: RequestToken) {
        let response = joined(self.bench.take(token));
        match error_of(response.error_code) {
            ErrorCode::None => {
                let generation = response.generation_id;
                assert!(generation >= self.last_generation, "generations only grow");
                self.last_generation = generation;
                let members = response
                    .members
                    .iter()
                    .map(|m| m.member_id.to_string())
                    .collect();
                self.clients[at].id = response.member_id.to_string();
                self.clients[at].doing = Doing::ToSync {
                    generation,
                    members,
                };
            }
            ErrorCode::MemberIdRequired => {
                self.clients[at].id = response.member_id.to_string();
                self.clients[at].doing = Doing::HasId;
            }
            error => self.after_error(at, error),
        }
    }

    fn sync(&mut self, at: usize) {
        let client = &self.clients[at];
        let Doing::ToSync {
            generation,
            members,
        } = &client.doing
        else {
            return;
        };
        let generation = *generation;
        // Everybody's assignment says for which generation and member it is.
        let parts: Vec<(String, String)> = members
            .iter()
            .map(|id| (id.clone(), format!("{generation} {id}")))
            .collect();
        let parts: Vec<(&str, &str)> = parts
            .iter()
            .map(|(id, part)| (id.as_str(), part.as_str()))
            .collect();
        let mut request = sync(&client.id, generation, &parts);
        request.group_instance_id = client.instance.as_deref().map(text);
        let token = self.bench.sync(request);
        self.clients[at].doing = Doing::Syncing { token, generation };
    }

    fn synced(&mut self, at: usize, token: RequestToken, generation: i32) {
        let response = synced(self.bench.take(token));
        let error = error_of(response.error_code);
        if error == ErrorCode::None {
            let part = String::from_utf8(response.assignment.to_vec()).unwrap();
            let told = part.split(' ').next().unwrap_or_default().to_owned();
            assert_eq!(
                told,
                generation.to_string(),
                "an assignment of another generation"
            );
            self.clients[at].doing = Doing::Consuming { generation };
        } else {
            self.after_error(at, error);
        }
    }

    fn after_error(&mut self, at: usize, error: ErrorCode) {
        match error {
            ErrorCode::None => {}
            ErrorCode::RebalanceInProgress => self.join(at),
            ErrorCode::IllegalGeneration => self.join(at),
            ErrorCode::UnknownMemberId | ErrorCode::FencedInstanceId => {
                self.clients[at].id.clear();
                self.clients[at].doing = Doing::Away;
            }
            other => panic!("{other:?}"),
        }
    }

    /// Something goes wrong with a client.
    fn hurt(&mut self, at: usize) {
        if self.random.one_in(3) {
            let client = &self.clients[at];
            let members = vec![LeavingMember {
                member_id: text(&client.id),
                group_instance_id: client.instance.as_deref().map(text),
                ..Default::default()
            }];
            let request = LeaveGroupRequest {
                group_id: text(GROUP),
                members: members.into(),
                ..Default::default()
            };
            self.bench.ask(5, Request::LeaveGroup(request));
        }
        // Killed: what it waited for is forgotten, a static one comes back under its name.
        self.clients[at].id.clear();
        self.clients[at].doing = Doing::Away;
    }

    fn rounds(&mut self, count: usize, hurting: bool) {
        for _ in 0..count {
            for at in 0..MEMBERS {
                // Some are slow, and skip turns; some fail.
                if hurting && self.random.one_in(40) {
                    self.hurt(at);
                } else if !hurting || !self.random.one_in(3) {
                    self.step(at);
                }
            }
            let span = if hurting {
                self.random.next() % 4_000
            } else {
                1_000
            };
            self.bench.advance_ms(span);
        }
    }

    fn is_settled(&self) -> bool {
        self.clients.iter().all(|client| {
            matches!(client.doing, Doing::Consuming { generation } if generation == self.last_generation)
        })
    }
}

fn run(seed: u64) -> Vec<super::super::record::Record> {
    let mut churn = Churn::new(seed);
    churn.rounds(150, true);
    // Healed: members that died silently take until the end of their session, then one rebalance
    // at most has to run its full time.
    churn.rounds(120, false);
    assert!(churn.is_settled(), "seed {seed}: not everybody consumes");
    assert_eq!(churn.bench.state(), "Stable", "seed {seed}");
    let members = churn.bench.describe(GROUP).members;
    assert_eq!(members.len(), MEMBERS, "seed {seed}");
    let ids: BTreeMap<String, ()> = members
        .iter()
        .map(|member| (member.member_id.to_string(), ()))
        .collect();
    assert!(
        churn
            .clients
            .iter()
            .all(|client| ids.contains_key(&client.id))
    );
    // A new coordinator goes on where this one stopped.
    churn.bench.check();
    let mut after = Bench::from_log(Settings::default(), churn.bench.log.clone(), START_MS);
    for client in &churn.clients {
        assert_eq!(
            after.heartbeat(&client.id, churn.last_generation),
            ErrorCode::None
        );
    }
    churn.bench.log.clone()
}

#[test]
fn two_hundred_unreliable_members_always_settle() {
    for seed in 0..5 {
        run(seed);
    }
}

#[test]
fn the_same_seed_gives_the_same_records() {
    assert!(run(77) == run(77));
}
