//! Answers to CreateTopics, CreatePartitions and DeleteTopics, as Apache Kafka 4.4.0 gives them.

use protocol::messages::{
    CreatePartitionsRequest, CreatePartitionsRequestCreatePartitionsAssignment,
    CreatePartitionsRequestCreatePartitionsTopic, CreatePartitionsResponse, CreateTopicsRequest,
    CreateTopicsRequestCreatableReplicaAssignment, CreateTopicsRequestCreatableTopic,
    CreateTopicsRequestCreatableTopicConfig, CreateTopicsResponse, DeleteTopicsRequest,
    DeleteTopicsRequestDeleteTopicState, DeleteTopicsResponse,
};
use protocol::{ErrorCode, Str, Uuid};

use super::harness::{DIRECTORIES, World, settings};
use crate::controller::{AutoTopic, Command, PRODUCER_ID_BLOCK, Reply};
use crate::metadata::changed_partitions;

type Creatable = CreateTopicsRequestCreatableTopic;

pub fn topic(name: &str, partitions: i32, replication: i16) -> Creatable {
    Creatable {
        name: Str::from(name),
        num_partitions: partitions,
        replication_factor: replication,
        ..Default::default()
    }
}

fn with_config(name: &str, key: &str, value: Option<&str>) -> Creatable {
    let config = CreateTopicsRequestCreatableTopicConfig {
        name: Str::from(key),
        value: value.map(Str::from),
    };
    Creatable {
        configs: [config].into(),
        ..topic(name, 1, 1)
    }
}

fn assigned(name: &str, assignments: &[(i32, &[i32])]) -> Creatable {
    let assignment =
        |&(partition_index, ids): &(i32, &[i32])| CreateTopicsRequestCreatableReplicaAssignment {
            partition_index,
            broker_ids: ids.to_vec().into(),
        };
    Creatable {
        assignments: assignments.iter().map(assignment).collect(),
        ..topic(name, -1, -1)
    }
}

pub fn create(world: &mut World, topics: Vec<Creatable>) -> CreateTopicsResponse {
    let request = CreateTopicsRequest {
        topics: topics.into(),
        ..Default::default()
    };
    match world.run(Command::CreateTopics(request)) {
        Reply::CreateTopics(response) => response,
        other => panic!("{other:?}"),
    }
}

pub fn delete(world: &mut World, names: &[&str]) -> DeleteTopicsResponse {
    let topic_names = names.iter().map(|name| Str::from(*name)).collect();
    let request = DeleteTopicsRequest {
        topic_names,
        ..Default::default()
    };
    delete_request(world, request)
}

fn delete_request(world: &mut World, request: DeleteTopicsRequest) -> DeleteTopicsResponse {
    match world.run(Command::DeleteTopics(request, 6)) {
        Reply::DeleteTopics(response) => response,
        other => panic!("{other:?}"),
    }
}

fn grow(
    world: &mut World,
    name: &str,
    count: i32,
    assignments: Option<&[&[i32]]>,
) -> CreatePartitionsResponse {
    let assignment = |ids: &&[i32]| CreatePartitionsRequestCreatePartitionsAssignment {
        broker_ids: ids.to_vec().into(),
    };
    let topic = CreatePartitionsRequestCreatePartitionsTopic {
        name: Str::from(name),
        count,
        assignments: assignments.map(|lists| lists.iter().map(assignment).collect()),
    };
    let request = CreatePartitionsRequest {
        topics: [topic].into(),
        ..Default::default()
    };
    match world.run(Command::CreatePartitions(request)) {
        Reply::CreatePartitions(response) => response,
        other => panic!("{other:?}"),
    }
}

#[test]
fn refusals_of_topics_have_kafkas_codes_and_words() {
    use ErrorCode::{
        InvalidConfig, InvalidPartitions, InvalidReplicaAssignment, InvalidReplicationFactor,
        InvalidRequest, InvalidTopicException, PolicyViolation, TopicAlreadyExists,
    };
    let mut world = World::new();
    let created = create(&mut world, vec![topic("def", -1, -1), topic("a.b", 2, 1)]);
    assert!(created.topics.iter().all(|it| it.error_code == 0));
    let long = "x".repeat(250);
    let too_long = format!(
        "Topic name is invalid: the length of '{long}' is longer than the max allowed length 249"
    );
    let not_positive = "Number of partitions was set to an invalid non-positive value.";
    let not_a_factor = "Replication factor must be larger than 0, or -1 to use the default value.";
    let set = |what: &str| {
        format!("A manual partition assignment was specified, but {what} was not set to -1.")
    };
    let includes = |what: &str| format!("The manual partition assignment includes {what}");
    let cases: Vec<(Creatable, ErrorCode, String)> = vec![
        (topic("a_b", 2, 1), InvalidTopicException, "Topic 'a_b' collides with existing topic: a.b".into()),
        (topic("def", 2, 1), TopicAlreadyExists, "Topic 'def' already exists.".into()),
        (topic("a.b", 2, 1), TopicAlreadyExists, "Topic 'a.b' already exists.".into()),
        (topic("a b", 2, 1), InvalidTopicException, "Topic name is invalid: 'a b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'".into()),
        (topic("", 2, 1), InvalidTopicException, "Topic name is invalid: the empty string is not allowed".into()),
        (topic(".", 2, 1), InvalidTopicException, "Topic name is invalid: '.' is not allowed".into()),
        (topic("..", 2, 1), InvalidTopicException, "Topic name is invalid: '..' is not allowed".into()),
        (topic(&long, 2, 1), InvalidTopicException, too_long),
        (topic("__cluster_metadata", 2, 1), InvalidRequest, "Creation of internal topic __cluster_metadata is prohibited.".into()),
        (topic("p", 0, 1), InvalidPartitions, not_positive.into()),
        (topic("p", -2, 1), InvalidPartitions, not_positive.into()),
        (topic("p", 1, 0), InvalidReplicationFactor, not_a_factor.into()),
        (topic("p", 1, -2), InvalidReplicationFactor, not_a_factor.into()),
        (topic("p", 1, 3), InvalidReplicationFactor, "Unable to replicate the partition 3 time(s): The target replication factor of 3 cannot be reached because only 1 broker(s) are registered or some brokers have all their log directories cordoned.".into()),
        (topic("p", 10_001, 1), PolicyViolation, "Excessively large number of partitions per request.".into()),
        (assigned("m", &[(0, &[1]), (2, &[1])]), InvalidReplicaAssignment, "partitions should be a consecutive 0-based integer sequence".into()),
        (assigned("m", &[(1, &[1])]), InvalidReplicaAssignment, "partitions should be a consecutive 0-based integer sequence".into()),
        (assigned("m", &[(0, &[1]), (0, &[1])]), InvalidReplicaAssignment, "Found multiple manual partition assignments for partition 0".into()),
        (assigned("m", &[(0, &[7])]), InvalidReplicaAssignment, includes("broker 7, but no such broker is registered.")),
        (assigned("m", &[(0, &[1, 1])]), InvalidReplicaAssignment, includes("the broker 1 more than once.")),
        (assigned("m", &[(0, &[])]), InvalidReplicaAssignment, includes("an empty replica list.")),
        (Creatable { replication_factor: 1, ..assigned("m", &[(0, &[1])]) }, InvalidRequest, set("replication factor")),
        (Creatable { num_partitions: 1, ..assigned("m", &[(0, &[1])]) }, InvalidRequest, set("numPartitions")),
        (with_config("c", "retention.ms", Some("abc")), InvalidConfig, "Invalid value abc for configuration retention.ms: Not a number of type LONG".into()),
        (with_config("c", "nope", Some("abc")), InvalidConfig, "Unknown topic config name: nope".into()),
        (with_config("c", "cleanup.policy", Some("foo")), InvalidConfig, "Invalid value foo for configuration cleanup.policy: String must be one of: compact, delete".into()),
        (with_config("c", "retention.ms", None), InvalidConfig, "Null value not supported for topic configs: retention.ms".into()),
    ];
    for (asked, code, text) in cases {
        let (before, end) = (world.image().clone(), world.end_offset);
        let response = create(&mut world, vec![asked.clone()]);
        let Some(result) = response.topics.only() else {
            panic!("{response:?}")
        };
        assert_eq!(
            result.error_code,
            code.code(),
            "{asked:?}: {:?}",
            result.error_message
        );
        assert_eq!(
            result.error_message.as_deref(),
            Some(text.as_str()),
            "{asked:?}"
        );
        assert_eq!(result.topic_id, Uuid::ZERO);
        assert_eq!(world.end_offset, end, "a refusal writes nothing");
        assert_eq!(*world.image(), before);
    }
}

#[test]
fn a_name_given_twice_is_refused_and_the_others_are_created() {
    let mut world = World::new();
    let response = create(
        &mut world,
        vec![topic("a", 1, 1), topic("b", 1, 1), topic("a", 2, 1)],
    );
    let results: Vec<(&str, i16, Option<&str>)> = response
        .topics
        .iter()
        .map(|it| (&*it.name, it.error_code, it.error_message.as_deref()))
        .collect();
    let refused = ErrorCode::InvalidRequest.code();
    assert_eq!(
        results,
        [
            ("b", 0, None),
            ("a", refused, Some("Duplicate topic name."))
        ]
    );
    assert!(world.image().topic_by_name("a").is_none());
    // As in Apache, names that collide within one request are not noticed.
    let response = create(&mut world, vec![topic("c.d", 1, 1), topic("c_d", 1, 1)]);
    assert!(response.topics.iter().all(|it| it.error_code == 0));
    delete(&mut world, &["c.d"]);
    assert_eq!(
        world.image().colliding_topic("c.d").map(|it| &**it),
        Some("c_d")
    );
}

#[test]
fn a_new_topic_is_described_and_spread_over_the_directories() {
    let mut world = World::with(settings(&[("num.partitions", "3")]));
    let asked = with_config("t", "retention.ms", Some("1000"));
    let asked = Creatable {
        num_partitions: -1,
        replication_factor: -1,
        ..asked
    };
    let response = create(&mut world, vec![asked]);
    let result = &response.topics[0];
    assert_eq!(
        (
            result.error_code,
            result.num_partitions,
            result.replication_factor
        ),
        (0, 3, 1)
    );
    let configs = result.configs.as_ref().unwrap();
    let retention = configs.iter().find(|it| it.name == "retention.ms").unwrap();
    assert_eq!(
        (retention.value.as_deref(), retention.config_source),
        (Some("1000"), 1)
    );
    assert_eq!(configs.len(), 37, "as many as Kafka 4.4 describes");
    let image = world.image();
    let created = image.topic_by_name("t").unwrap();
    assert_eq!(created.id, result.topic_id);
    for (_, partition) in created.partitions.iter() {
        assert_eq!(
            (&*partition.replicas, &*partition.isr),
            (&[1][..], &[1][..])
        );
        assert_eq!(
            (
                partition.leader,
                partition.leader_epoch,
                partition.partition_epoch
            ),
            (1, 0, 0)
        );
    }
    // The second has more free space in this test, so it is first and gets one more.
    let counts = DIRECTORIES.map(|directory| image.replicas_in_directory(directory));
    assert_eq!(counts, [1, 2]);
    assert_eq!(
        image
            .configs
            .topic("t")
            .unwrap()
            .get("retention.ms")
            .unwrap(),
        "1000"
    );
}

#[test]
fn validate_only_answers_and_creates_nothing() {
    let mut world = World::new();
    let end = world.end_offset;
    let request = CreateTopicsRequest {
        topics: [topic("t", 5, 1)].into(),
        validate_only: true,
        ..Default::default()
    };
    let Reply::CreateTopics(response) = world.run(Command::CreateTopics(request)) else {
        panic!()
    };
    assert_eq!(
        (
            response.topics[0].error_code,
            response.topics[0].num_partitions
        ),
        (0, 5)
    );
    assert_eq!(world.end_offset, end);
}

#[test]
fn growing_has_kafkas_codes_and_words() {
    use ErrorCode::{
        InvalidPartitions, InvalidReplicaAssignment, PolicyViolation, UnknownTopicOrPartition,
    };
    let mut world = World::new();
    create(&mut world, vec![topic("def", 3, 1)]);
    assert_eq!(grow(&mut world, "def", 5, None).results[0].error_code, 0);
    assert_eq!(
        grow(&mut world, "def", 6, Some(&[&[1]])).results[0].error_code,
        0
    );
    assert_eq!(
        world.image().topic_by_name("def").unwrap().partitions.len(),
        6
    );
    type Case<'a> = (
        &'a str,
        i32,
        Option<&'a [&'a [i32]]>,
        ErrorCode,
        Option<&'a str>,
    );
    let cases: Vec<Case<'_>> = vec![
        (
            "def",
            6,
            None,
            InvalidPartitions,
            Some("Topic already has 6 partition(s)."),
        ),
        (
            "def",
            2,
            None,
            InvalidPartitions,
            Some("The topic def currently has 6 partition(s); 2 would not be an increase."),
        ),
        (
            "def",
            -1,
            None,
            InvalidPartitions,
            Some("The topic def currently has 6 partition(s); -1 would not be an increase."),
        ),
        ("zzz", 2, None, UnknownTopicOrPartition, None),
        (
            "def",
            8,
            Some(&[&[1]]),
            InvalidReplicaAssignment,
            Some(
                "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified.",
            ),
        ),
        (
            "def",
            7,
            Some(&[&[9]]),
            InvalidReplicaAssignment,
            Some(
                "The manual partition assignment includes broker 9, but no such broker is registered.",
            ),
        ),
        (
            "def",
            20_000,
            None,
            PolicyViolation,
            Some("Excessively large number of additional partitions per request."),
        ),
    ];
    for (name, count, assignments, code, text) in cases {
        let end = world.end_offset;
        let response = grow(&mut world, name, count, assignments);
        assert_eq!(
            response.results[0].error_code,
            code.code(),
            "{name} {count}"
        );
        assert_eq!(
            response.results[0].error_message.as_deref(),
            text,
            "{name} {count}"
        );
        assert_eq!(world.end_offset, end);
    }
}

#[test]
fn topics_are_deleted_by_name_and_by_id() {
    let mut world = World::new();
    create(
        &mut world,
        vec![topic("a", 1, 1), topic("b", 1, 1), topic("c", 1, 1)],
    );
    let id = |world: &World, name: &str| world.image().topic_id(name).unwrap();
    let (a, b) = (id(&world, "a"), id(&world, "b"));
    let state = |name: Option<&str>, topic_id| DeleteTopicsRequestDeleteTopicState {
        name: name.map(Str::from),
        topic_id,
    };
    let unknown = Uuid([5; 16]);
    let topics = vec![
        state(None, a),
        state(Some("b"), Uuid::ZERO),
        state(None, b),
        state(Some("c"), Uuid([1; 16])),
        state(None, Uuid::ZERO),
        state(None, unknown),
        state(Some("zzz"), Uuid::ZERO),
    ];
    let response = delete_request(
        &mut world,
        DeleteTopicsRequest {
            topics: topics.into(),
            ..Default::default()
        },
    );
    let mut results: Vec<(Option<&str>, Uuid, i16, Option<&str>)> = response
        .responses
        .iter()
        .map(|it| {
            (
                it.name.as_deref(),
                it.topic_id,
                it.error_code,
                it.error_message.as_deref(),
            )
        })
        .collect();
    results.sort();
    let invalid = ErrorCode::InvalidRequest.code();
    let mut wanted = vec![
        (
            None,
            Uuid::ZERO,
            invalid,
            Some("Neither topic name nor id were specified."),
        ),
        (
            None,
            unknown,
            100,
            Some("This server does not host this topic ID."),
        ),
        (Some("a"), a, 0, None),
        (
            Some("b"),
            b,
            invalid,
            Some("The provided topic name maps to an ID that was already supplied."),
        ),
        (
            Some("c"),
            Uuid([1; 16]),
            invalid,
            Some("You may not specify both topic name and topic id."),
        ),
        (
            Some("zzz"),
            Uuid::ZERO,
            3,
            Some("This server does not host this topic-partition."),
        ),
    ];
    wanted.sort();
    assert_eq!(results, wanted);
    assert!(world.image().topic_by_name("a").is_none());
    assert!(world.image().topic_by_name("b").is_some());
    let twice = delete(&mut world, &["b", "b"]);
    assert_eq!(
        twice.responses[0].error_message.as_deref(),
        Some("Duplicate topic name.")
    );
}

#[test]
fn deletion_can_be_forbidden() {
    let mut world = World::with(settings(&[("delete.topic.enable", "false")]));
    create(&mut world, vec![topic("a", 1, 1)]);
    assert_eq!(delete(&mut world, &["a"]).responses[0].error_code, 73);
    let request = DeleteTopicsRequest {
        topic_names: ["a".into()].into(),
        ..Default::default()
    };
    let Reply::DeleteTopics(old) = world.run(Command::DeleteTopics(request, 2)) else {
        panic!()
    };
    assert_eq!(
        old.responses[0].error_code,
        ErrorCode::InvalidRequest.code()
    );
    assert!(world.image().topic_by_name("a").is_some());
}

#[test]
fn a_topic_is_created_once_for_all_who_ask() {
    let mut world = World::new();
    let asked = |names: &[&str]| {
        let topic = |name: &&str| AutoTopic {
            name: Str::from(*name),
            ..Default::default()
        };
        Command::AutoCreateTopics(names.iter().map(topic).collect())
    };
    let first = world.run(asked(&["t", "t", "a b"]));
    let wanted = vec![
        ("t".into(), ErrorCode::None),
        ("a b".into(), ErrorCode::InvalidTopicException),
    ];
    assert_eq!(first, Reply::AutoCreateTopics(wanted));
    let (id, end) = (world.image().topic_id("t"), world.end_offset);
    assert_eq!(
        world.run(asked(&["t"])),
        Reply::AutoCreateTopics(vec![("t".into(), ErrorCode::None)])
    );
    assert_eq!((world.image().topic_id("t"), world.end_offset), (id, end));
}

#[test]
fn producer_ids_come_in_blocks_and_never_twice() {
    let mut world = World::new();
    for block in 0..3 {
        let reply = world.run(Command::AllocateProducerIds);
        assert_eq!(reply, Reply::ProducerIds(Some(block * PRODUCER_ID_BLOCK)));
    }
    world.restart();
    let reply = world.run(Command::AllocateProducerIds);
    assert_eq!(reply, Reply::ProducerIds(Some(3 * PRODUCER_ID_BLOCK)));
}

#[test]
fn a_name_that_is_created_again_goes_on_above_its_last_epoch() {
    let mut world = World::new();
    create(&mut world, vec![topic("t", 1, 1)]);
    world.restart();
    world.restart();
    let epoch = |world: &World| {
        let topic = world.image().topic_by_name("t").unwrap().clone();
        topic.partitions.get(0).unwrap().leader_epoch
    };
    assert_eq!(epoch(&world), 2);
    let before = world.image().clone();
    delete(&mut world, &["t"]);
    create(&mut world, vec![topic("t", 2, 1), topic("new", 1, 1)]);
    assert_eq!(epoch(&world), 3);
    let fresh = world.image().topic_by_name("new").unwrap();
    assert_eq!(fresh.partitions.get(0).unwrap().leader_epoch, 0);
    let changes = changed_partitions(&before, world.image());
    let (gone, new): (Vec<_>, Vec<_>) = changes.iter().partition(|it| it.new.is_none());
    assert_eq!((gone.len(), new.len()), (1, 3));
    delete(&mut world, &["t"]);
    world.restart();
    create(&mut world, vec![topic("t", 1, 1)]);
    assert_eq!(
        epoch(&world),
        4,
        "also when the deletion lies before a start"
    );
}

#[test]
fn a_failed_directory_takes_only_its_partitions_along() {
    let mut world = World::new();
    create(&mut world, vec![topic("t", 4, 1)]);
    world.run(Command::TakeDirectoriesOffline(vec![
        DIRECTORIES[0],
        Uuid([9; 16]),
    ]));
    let created = world.image().topic_by_name("t").unwrap().clone();
    for (index, partition) in created.partitions.iter() {
        let lost = partition.directories[0] == DIRECTORIES[0];
        assert_eq!(partition.leader, if lost { -1 } else { 1 }, "{index}");
    }
    assert_eq!(world.image().broker(1).unwrap().log_dirs, [DIRECTORIES[1]]);
    let created = create(&mut world, vec![topic("u", 2, 1)]);
    assert_eq!(created.topics[0].error_code, 0);
    let u = world.image().topic_by_name("u").unwrap();
    assert!(
        u.partitions
            .iter()
            .all(|(_, it)| it.directories[0] == DIRECTORIES[1])
    );
    // One of them was carried over to the other disk, the rest come back with theirs.
    let lost = created_in(&world, "t", DIRECTORIES[0]);
    let id = world.image().topic_by_name("t").unwrap().id;
    world.run(Command::AssignDirectories(
        [(id, lost[0], DIRECTORIES[1])].into(),
    ));
    let t = world.image().topic_by_name("t").unwrap();
    let carried = t.partitions.get(lost[0]).unwrap();
    assert_eq!(
        (carried.leader, carried.directories[0]),
        (1, DIRECTORIES[1])
    );
    assert_eq!(t.partitions.get(lost[1]).unwrap().leader, -1);
    world.restart();
    let t = world.image().topic_by_name("t").unwrap();
    assert!(t.partitions.iter().all(|(_, it)| it.leader == 1));
}

/// The partitions of a topic that lie in a directory.
fn created_in(world: &World, topic: &str, directory: Uuid) -> Vec<i32> {
    let topic = world.image().topic_by_name(topic).unwrap();
    let lies = topic.partitions.iter();
    lies.filter(|(_, it)| it.directories[0] == directory)
        .map(|(index, _)| index)
        .collect()
}
