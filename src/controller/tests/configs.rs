//! Answers to AlterConfigs and IncrementalAlterConfigs, as Apache Kafka 4.4.0 gives them.

use protocol::{ErrorCode, Str};

use super::harness::World;
use super::topics::{create, topic};
use crate::controller::{AlterConfigs, Command, ConfigChange, ConfigEdit, ConfigOutcome, Reply};
use crate::metadata::configs::ResourceType;

const TOPIC: ResourceType = ResourceType::TOPIC;
const BROKER: ResourceType = ResourceType::BROKER;
const SET: i8 = 0;
const DELETE: i8 = 1;
const APPEND: i8 = 2;
const SUBTRACT: i8 = 3;

fn change(kind: ResourceType, name: &str, edits: &[(&str, i8, Option<&str>)]) -> ConfigChange {
    let edit = |&(key, operation, value): &(&str, i8, Option<&str>)| ConfigEdit {
        key: Str::from(key),
        operation,
        value: value.map(Str::from),
    };
    ConfigChange {
        kind,
        name: Str::from(name),
        edits: edits.iter().map(edit).collect(),
    }
}

fn alter(world: &mut World, request: AlterConfigs) -> Vec<ConfigOutcome> {
    match world.run(Command::AlterConfigs(request)) {
        Reply::AlterConfigs(outcomes) => outcomes,
        other => panic!("{other:?}"),
    }
}

fn incrementally(world: &mut World, changes: Vec<ConfigChange>) -> Vec<ConfigOutcome> {
    alter(
        world,
        AlterConfigs {
            changes,
            replace: false,
            validate_only: false,
        },
    )
}

fn one(
    world: &mut World,
    kind: ResourceType,
    name: &str,
    edits: &[(&str, i8, Option<&str>)],
) -> (ErrorCode, String) {
    let mut outcomes = incrementally(world, vec![change(kind, name, edits)]);
    let (code, text) = outcomes.remove(0);
    (code, text.map(|text| text.to_string()).unwrap_or_default())
}

fn value(world: &World, kind: ResourceType, name: &str, key: &str) -> Option<String> {
    let values = world.image().configs.resource(kind, name)?;
    values.get(key).map(ToString::to_string)
}

fn world() -> World {
    let mut world = World::new();
    create(&mut world, vec![topic("t", 1, 1)]);
    world
}

#[test]
fn keys_are_set_and_go_back_to_their_defaults() {
    let mut world = world();
    let ok = (ErrorCode::None, String::new());
    let policy = |world: &World| value(world, TOPIC, "t", "cleanup.policy");
    let steps: [(i8, Option<&str>, Option<&str>); 6] = [
        (APPEND, Some("compact"), Some("delete,compact")),
        (APPEND, Some("compact"), Some("delete,compact")),
        (SUBTRACT, Some("delete"), Some("compact")),
        (SET, Some("delete"), Some("delete")),
        (DELETE, None, None),
        (DELETE, None, None),
    ];
    for (operation, with, expected) in steps {
        let edits = [("cleanup.policy", operation, with)];
        assert_eq!(one(&mut world, TOPIC, "t", &edits), ok);
        assert_eq!(policy(&world).as_deref(), expected);
    }
    // A key that nobody knows can still be taken away.
    assert_eq!(one(&mut world, TOPIC, "t", &[("nope", DELETE, None)]), ok);
}

#[test]
#[rustfmt::skip]
fn refusals_have_kafkas_codes_and_words() {
    use ErrorCode::{InvalidConfig, InvalidRequest, InvalidTopicException, UnknownTopicOrPartition};
    let mut world = world();
    let end = world.end_offset;
    let set = |key, value| [(key, SET, Some(value))];
    for (kind, name, edits, code, text) in [
        (TOPIC, "t", [("retention.ms", APPEND, Some("5"))], InvalidConfig, "Can't APPEND to key retention.ms because its type is not LIST."),
        (TOPIC, "t", [("nope", SUBTRACT, Some("5"))], InvalidConfig, "Can't SUBTRACT to key nope because its type is not LIST."),
        (TOPIC, "t", set("nope", "5"), InvalidConfig, "Unknown topic config name: nope"),
        (TOPIC, "t", set("retention.ms", "x"), InvalidConfig, "Invalid value x for configuration retention.ms: Not a number of type LONG"),
        (TOPIC, "zz", set("retention.ms", "1"), UnknownTopicOrPartition, "The topic 'zz' does not exist."),
        (TOPIC, "zz", set("retention.ms", "x"), InvalidConfig, "Invalid value x for configuration retention.ms: Not a number of type LONG"),
        (TOPIC, "a b", set("retention.ms", "1"), InvalidTopicException, "Topic name is invalid: 'a b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
        (TOPIC, "", set("retention.ms", "1"), InvalidRequest, "Default topic resources are not allowed."),
        (TOPIC, "", [("retention.ms", APPEND, Some("5"))], InvalidConfig, "Can't APPEND to key retention.ms because its type is not LIST."),
        (TOPIC, "t", [("retention.ms", SET, None)], InvalidRequest, "Null value not supported for : retention.ms"),
        (BROKER, "1", set("node.id", "5"), InvalidRequest, "Cannot update these configs dynamically: [node.id]"),
        (BROKER, "1", set("log.retention.ms", "x"), InvalidRequest, "Invalid value x for configuration log.retention.ms: Not a number of type LONG"),
        (BROKER, "1", set("listener.name.plaintext.max.connections", "x"), InvalidRequest, "Invalid value x for configuration max.connections: Not a number of type INT"),
        (BROKER, "", set("message.max.bytes", "-5"), InvalidRequest, "Invalid value -5 for configuration message.max.bytes: Value must be at least 0"),
        (BROKER, "7", set("log.retention.ms", "5"), InvalidRequest, "Unexpected broker id, expected 1, but received 7"),
        (BROKER, "x", set("log.retention.ms", "5"), InvalidRequest, "Node id must be an integer, but it is: x"),
        (BROKER, "", set("listeners", "PLAINTEXT://:1"), InvalidRequest, "Cannot update these configs at default cluster level, broker id must be specified: [listeners]"),
        (BROKER, "1", set("ssl.keystore.type", "JKS"), InvalidRequest, "These security configs can be dynamically updated only per-listener using the listener prefix: [ssl.keystore.type]"),
        (BROKER, "1", [("log.retention.ms", APPEND, Some("5"))], InvalidConfig, "Config value append is not allowed for config key: log.retention.ms"),
        (BROKER, "1", [("nope", APPEND, Some("5"))], InvalidConfig, "Unknown config name: nope"),
        (ResourceType(0), "1", [("a", APPEND, Some("b"))], InvalidRequest, "Unknown resource type 0"),
        (ResourceType(0), "1", set("a", "b"), InvalidRequest, "Unknown resource type 0"),
    ] {
        assert_eq!(one(&mut world, kind, name, &edits), (code, text.to_owned()), "{name} {edits:?}");
    }
    let lags = [("min.compaction.lag.ms", SET, Some("10")), ("max.compaction.lag.ms", SET, Some("5"))];
    let conflict = "conflict topic config setting min.compaction.lag.ms (10) > max.compaction.lag.ms (5)";
    assert_eq!(one(&mut world, TOPIC, "t", &lags), (InvalidConfig, conflict.to_owned()));
    let twice = [("retention.ms", SET, Some("1")), ("retention.ms", SET, Some("2"))];
    assert_eq!(one(&mut world, TOPIC, "t", &twice), (InvalidRequest, "Error due to duplicate config keys".to_owned()));
    assert_eq!(world.end_offset, end, "nothing was written");
}

#[test]
fn a_resource_changes_as_a_whole_and_for_itself() {
    let mut world = world();
    create(&mut world, vec![topic("u", 1, 1)]);
    let good = [("retention.ms", SET, Some("1"))];
    let half = [
        ("retention.ms", SET, Some("1")),
        ("flush.ms", SET, Some("x")),
    ];
    let changes = vec![change(TOPIC, "t", &half), change(TOPIC, "u", &good)];
    let codes: Vec<_> = incrementally(&mut world, changes)
        .into_iter()
        .map(|(code, _)| code)
        .collect();
    assert_eq!(codes, [ErrorCode::InvalidConfig, ErrorCode::None]);
    assert_eq!(value(&world, TOPIC, "t", "retention.ms"), None);
    assert_eq!(
        value(&world, TOPIC, "u", "retention.ms").as_deref(),
        Some("1")
    );
    let twice = vec![change(TOPIC, "t", &good), change(TOPIC, "t", &good)];
    let outcomes = incrementally(&mut world, twice);
    let text = Some(Str::from("Each resource must appear at most once."));
    assert_eq!(outcomes, vec![(ErrorCode::InvalidRequest, text); 2]);
}

#[test]
fn the_older_request_replaces_everything() {
    let mut world = world();
    let both = [
        ("retention.ms", SET, Some("1")),
        ("flush.ms", SET, Some("5")),
    ];
    one(&mut world, TOPIC, "t", &both);
    let request = |validate_only| AlterConfigs {
        changes: vec![change(TOPIC, "t", &[("flush.ms", SET, Some("6"))])],
        replace: true,
        validate_only,
    };
    let end = world.end_offset;
    assert_eq!(alter(&mut world, request(true)), [(ErrorCode::None, None)]);
    assert_eq!(world.end_offset, end, "only checked");
    alter(&mut world, request(false));
    assert_eq!(value(&world, TOPIC, "t", "retention.ms"), None);
    assert_eq!(value(&world, TOPIC, "t", "flush.ms").as_deref(), Some("6"));
}

/// What a broker is given stands in the way of a topic's defaults at once, and over a restart.
#[test]
fn new_topics_get_the_defaults_that_the_metadata_sets() {
    let mut world = world();
    let edits = [("message.max.bytes", SET, Some("4321"))];
    one(&mut world, BROKER, "", &edits);
    world.restart();
    let described = |world: &mut World, name: &str| {
        let configs = create(world, vec![topic(name, 1, 1)]).topics[0]
            .configs
            .clone();
        let configs = configs.unwrap();
        let found = configs
            .iter()
            .find(|config| &*config.name == "max.message.bytes");
        found.map(|config| (config.value.clone(), config.config_source))
    };
    assert_eq!(described(&mut world, "a"), Some((Some("4321".into()), 3)));
    one(
        &mut world,
        BROKER,
        "1",
        &[("message.max.bytes", SET, Some("99999"))],
    );
    assert_eq!(described(&mut world, "b"), Some((Some("99999".into()), 2)));
}
