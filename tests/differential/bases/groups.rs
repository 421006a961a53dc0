//! Groups and their offsets.
use crate::case::{Asked, Base, Names};
use crate::stage::Stage;
use crate::value::Value;

/// `simple` has offsets and no members, `stable` one member, `static` one that says who it is.
pub fn fixture(stage: &mut Stage) {
    // The first who asks for a coordinator makes the topic of offsets.
    let request = Value::fields([("coordinator_keys", Value::strings(["simple"]))]);
    stage.make("FindCoordinator", 4, &request, "coordinators.0.error_code");
    // And the first who asks for a producer id makes the broker ask for a block of them.
    let request = Value::fields([
        ("transactional_id", Value::Null),
        ("transaction_timeout_ms", Value::Int(60_000)),
    ]);
    stage.make("InitProducerId", 4, &request, "error_code");
    for group in ["simple", "stable", "static"] {
        commit_alone(stage, group);
    }
    member(stage, "stable", Value::Null);
    stage_renames(stage, "stable member");
    member(stage, "static", Value::text("instance"));
    stage_renames(stage, "static member");
}

fn stage_renames(stage: &mut Stage, name: &str) {
    for side in &mut stage.sides {
        if let Some(member) = side.known.remove("member") {
            side.known.insert(name.to_owned(), member);
        }
    }
}

fn commit_alone(stage: &mut Stage, group: &str) {
    stage.make(
        "OffsetCommit",
        8,
        &commit(Value::text(group), -1, Value::text("")),
        "topics.0.partitions.0.error_code",
    );
}

fn commit(group: Value, generation: i64, member: Value) -> Value {
    let partition = Value::fields([
        ("partition_index", Value::Int(0)),
        ("committed_offset", Value::Int(5)),
        ("committed_metadata", Value::text("note")),
    ]);
    let topic = Value::fields([
        ("name", Value::text("fixture")),
        ("topic_id", Value::known("fixture id")),
        ("partitions", Value::list([partition])),
    ]);
    Value::fields([
        ("group_id", group),
        ("generation_id_or_member_epoch", Value::Int(generation)),
        ("member_id", member),
        ("topics", Value::list([topic])),
    ])
}

fn join(group: Value, instance: Value) -> Value {
    let protocol = Value::fields([("name", Value::text("range")), ("metadata", subscription())]);
    Value::fields([
        ("group_id", group),
        ("session_timeout_ms", Value::Int(1_800_000)),
        ("rebalance_timeout_ms", Value::Int(300_000)),
        ("member_id", Value::text("")),
        ("group_instance_id", instance),
        ("protocol_type", Value::text("consumer")),
        ("protocols", Value::list([protocol])),
    ])
}

/// Of the topic `fixture`, as consumers write it in version 0.
fn subscription() -> Value {
    Value::Bytes(b"\0\0\0\0\0\x01\0\x07fixture\xff\xff\xff\xff".to_vec())
}

/// One member, joined and synced in generation 1, known as `member`.
fn member(stage: &mut Stage, group: &str, instance: Value) {
    let version = if instance == Value::Null { 3 } else { 5 };
    let request = join(Value::text(group), instance.clone());
    let answers = stage.make("JoinGroup", version, &request, "error_code");
    stage.remember("member", &answers, "member_id");
    stage.make(
        "SyncGroup",
        3,
        &sync(Value::text(group)).with([("group_instance_id", instance)]),
        "error_code",
    );
}

fn sync(group: Value) -> Value {
    let assignment = Value::fields([
        ("member_id", Value::known("member")),
        ("assignment", Value::Bytes(b"assigned".to_vec())),
    ]);
    Value::fields([
        ("group_id", group),
        ("generation_id", Value::Int(1)),
        ("member_id", Value::known("member")),
        ("protocol_type", Value::text("consumer")),
        ("protocol_name", Value::text("range")),
        ("assignments", Value::list([assignment])),
    ])
}

fn joined(stage: &mut Stage, names: Names) {
    member(stage, &names.of("group"), Value::Null);
}

fn joined_by_name(stage: &mut Stage, names: Names) {
    member(stage, &names.of("group"), Value::text("instance"));
}

/// Joined and not synced yet.
fn rebalancing(stage: &mut Stage, names: Names) {
    let request = join(names.text("group"), Value::Null);
    let answers = stage.make("JoinGroup", 3, &request, "error_code");
    stage.remember("member", &answers, "member_id");
}

fn committed(stage: &mut Stage, names: Names) {
    commit_alone(stage, &names.of("group"));
}

/// What became of the group of this case.
fn described(names: Names) -> Asked {
    let request = Value::fields([("groups", Value::list([names.text("group")]))]);
    ("DescribeGroups", 5, request)
}

/// What became of its offsets.
fn fetched(names: Names) -> Asked {
    ("OffsetFetch", 7, fetch(names.text("group"), Value::Null))
}

fn fetch(group: Value, topics: Value) -> Value {
    let one = Value::fields([("group_id", group.clone()), ("topics", topics.clone())]);
    Value::fields([
        ("group_id", group),
        ("topics", topics),
        ("groups", Value::list([one])),
    ])
}

fn fetched_topics() -> Value {
    Value::list([Value::fields([
        ("name", Value::text("fixture")),
        ("topic_id", Value::known("fixture id")),
        ("partition_indexes", Value::ints([0, 1])),
    ])])
}

pub fn bases() -> Vec<Base> {
    [reading(), joining(), offsets(), deleting()].concat()
}

fn reading() -> Vec<Base> {
    vec![
        Base::new("ListGroups", "all", |_| Value::Struct([].into())),
        Base::new("ListGroups", "stable ones", |_| {
            Value::fields([("states_filter", Value::strings(["Stable"]))])
        })
        .versions(4..=i16::MAX)
        .unbroken(),
        Base::new("ListGroups", "in other letters", |_| {
            Value::fields([
                ("states_filter", Value::strings(["eMPTY", "stable"])),
                ("types_filter", Value::strings(["Classic", "consumer"])),
            ])
        })
        .versions(5..=i16::MAX)
        .unbroken(),
        Base::new("DescribeGroups", "one", |_| {
            Value::fields([
                ("groups", Value::strings(["stable"])),
                ("include_authorized_operations", Value::Bool(true)),
            ])
        }),
        Base::new("DescribeGroups", "four", |_| {
            Value::fields([(
                "groups",
                Value::strings(["simple", "static", "stable", "no-such"]),
            )])
        })
        .unbroken(),
        Base::new("OffsetFetch", "two partitions", |_| {
            fetch(Value::text("simple"), fetched_topics())
        }),
        Base::new("OffsetFetch", "all", |_| {
            fetch(Value::text("simple"), Value::Null)
        })
        .versions(2..=i16::MAX)
        .only("group_id"),
        Base::new("OffsetFetch", "as a member", |_| {
            let mut request = fetch(Value::text("stable"), fetched_topics());
            if let Value::Struct(fields) = &mut request {
                let group = Value::fields([
                    ("group_id", Value::text("stable")),
                    ("member_id", Value::known("stable member")),
                    ("member_epoch", Value::Int(1)),
                    ("topics", fetched_topics()),
                ]);
                fields.insert("groups".to_owned(), Value::list([group]));
            }
            request
        })
        .versions(9..=i16::MAX)
        .only("member"),
    ]
}

/// Names that another case joins too, or looks at: members who wait for each other.
const SHARED_GROUPS: &[&str] = &[
    "group_id=\"s",
    "group_id=\"no-such",
    "group_id=\"ö",
    "group_id=2",
    "group_id=3",
    "group_id=not",
];

fn joining() -> Vec<Base> {
    vec![
        Base::new("JoinGroup", "a new group", |names| {
            join(names.text("group"), Value::Null)
        })
        .without(SHARED_GROUPS)
        .then(described),
        Base::new("JoinGroup", "a new group by name", |names| {
            join(names.text("group"), Value::text("instance"))
        })
        .versions(5..=i16::MAX)
        .unbroken()
        .then(described),
        Base::new("JoinGroup", "again", |names| {
            join(names.text("group"), Value::Null).with([("member_id", Value::known("member"))])
        })
        .without(SHARED_GROUPS)
        .prepare(joined)
        .then(described),
        Base::new("JoinGroup", "again by name, without its id", |names| {
            join(names.text("group"), Value::text("instance"))
        })
        .versions(5..=i16::MAX)
        .prepare(joined_by_name)
        .unbroken()
        .then(described),
        Base::new("SyncGroup", "the leader", |names| sync(names.text("group")))
            .prepare(rebalancing)
            .then(described),
        Base::new("SyncGroup", "again", |names| sync(names.text("group")))
            .prepare(joined)
            .unbroken()
            .then(described),
        Base::new("Heartbeat", "a member", heartbeat).prepare(joined),
        Base::new("Heartbeat", "a member by name", |names| {
            heartbeat(names).with([("group_instance_id", Value::text("instance"))])
        })
        .versions(3..=i16::MAX)
        .prepare(joined_by_name),
        Base::new("Heartbeat", "while it rebalances", heartbeat)
            .prepare(rebalancing)
            .unbroken(),
        Base::new("LeaveGroup", "a member", |names| leave(names, Value::Null))
            .prepare(joined)
            .then(described),
        Base::new("LeaveGroup", "a member by name", |names| {
            leave(names, Value::text("instance"))
        })
        .versions(3..=i16::MAX)
        .prepare(joined_by_name)
        .only("members")
        .then(described),
    ]
}

fn heartbeat(names: Names) -> Value {
    Value::fields([
        ("group_id", names.text("group")),
        ("generation_id", Value::Int(1)),
        ("member_id", Value::known("member")),
    ])
}

fn leave(names: Names, instance: Value) -> Value {
    let member = Value::fields([
        ("member_id", Value::known("member")),
        ("group_instance_id", instance),
        ("reason", Value::text("over")),
    ]);
    Value::fields([
        ("group_id", names.text("group")),
        ("member_id", Value::known("member")),
        ("members", Value::list([member])),
    ])
}

fn offsets() -> Vec<Base> {
    vec![
        Base::new("OffsetCommit", "without a group", |names| {
            commit(names.text("group"), -1, Value::text(""))
        })
        .then(fetched),
        Base::new("OffsetCommit", "a member", |names| {
            commit(names.text("group"), 1, Value::known("member"))
        })
        .prepare(joined)
        .then(fetched),
        Base::new("OffsetCommit", "a member by name", |names| {
            commit(names.text("group"), 1, Value::known("member"))
                .with([("group_instance_id", Value::text("instance"))])
        })
        .versions(7..=i16::MAX)
        .prepare(joined_by_name)
        .only("group_instance_id")
        .then(fetched),
        Base::new("OffsetDelete", "without a group", |names| {
            offset_delete(names)
        })
        .prepare(committed)
        .then(fetched),
        Base::new("OffsetDelete", "of a subscribed topic", |names| {
            offset_delete(names)
        })
        .prepare(joined)
        .unbroken()
        .then(fetched),
    ]
}

fn offset_delete(names: Names) -> Value {
    let partition = Value::fields([("partition_index", Value::Int(0))]);
    let topic = Value::fields([
        ("name", Value::text("fixture")),
        ("partitions", Value::list([partition])),
    ]);
    Value::fields([
        ("group_id", names.text("group")),
        ("topics", Value::list([topic])),
    ])
}

fn deleting() -> Vec<Base> {
    let delete =
        |names: Names| Value::fields([("groups_names", Value::list([names.text("group")]))]);
    vec![
        Base::new("DeleteGroups", "one without members", delete)
            .prepare(committed)
            .then(described),
        Base::new("DeleteGroups", "one with a member", delete)
            .prepare(joined)
            .unbroken()
            .then(described),
    ]
}
