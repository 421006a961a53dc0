//! What tools ask about leaders, replicas, producers, transactions and the quorum, as one node can answer it.
use std::collections::BTreeMap;

use kafka_protocol::messages::alter_partition_reassignments_request::{
    ReassignablePartition, ReassignableTopic,
};
use kafka_protocol::messages::create_acls_request::AclCreation;
use kafka_protocol::messages::describe_producers_request::TopicRequest;
use kafka_protocol::messages::elect_leaders_request::TopicPartitions;
use kafka_protocol::messages::{
    AlterPartitionReassignmentsRequest, CreateAclsRequest, DescribeAclsRequest,
    DescribeProducersRequest, DescribeQuorumRequest, DescribeTransactionsRequest,
    ElectLeadersRequest, ListPartitionReassignmentsRequest, ListTransactionsRequest,
};

use crate::batch::Batch;
use crate::common::{PRODUCE, Topic, connect, produce_as, text};
use crate::producing::producer;
use crate::support::clock;

const UNKNOWN_TOPIC: i16 = 3;

#[test]
fn leaders_are_elected_only_where_that_is_needed() {
    const NOT_NEEDED: i16 = 84;
    let topic = Topic::with("elections", 2, &[]);
    let mut connection = connect();
    let mut ask = |kind, topics: Option<Vec<(&str, i32)>>| {
        let asked = topics.map(|topics| {
            let one = |(name, partition): (&str, i32)| {
                TopicPartitions::default()
                    .with_topic(text(name).into())
                    .with_partitions(vec![partition])
            };
            topics.into_iter().map(one).collect()
        });
        let request = ElectLeadersRequest::default()
            .with_election_type(kind)
            .with_topic_partitions(asked);
        let answer = connection.call(2, &request);
        let results = answer.replica_election_results.iter();
        let codes: Vec<i16> = results
            .flat_map(|topic| topic.partition_result.iter().map(|it| it.error_code))
            .collect();
        (answer.error_code, codes)
    };
    for kind in [0, 1] {
        let asked = vec![("elections", 0), ("elections", 7), ("no-elections", 0)];
        let expected = vec![NOT_NEEDED, UNKNOWN_TOPIC, UNKNOWN_TOPIC];
        assert_eq!(ask(kind, Some(asked)), (0, expected));
        assert_eq!(ask(kind, None), (0, Vec::new()), "all of them have theirs");
    }
    assert_eq!(ask(2, Some(vec![("elections", 0)])).0, 42);
    drop(topic);
}

fn election(kind: i8, timeout_ms: i32) -> ElectLeadersRequest {
    let asked = TopicPartitions::default()
        .with_topic(text("not-elected").into())
        .with_partitions(vec![0, 1]);
    ElectLeadersRequest::default()
        .with_election_type(kind)
        .with_topic_partitions(Some(vec![asked]))
        .with_timeout_ms(timeout_ms)
}

#[test]
fn a_refused_election_is_refused_for_each_partition() {
    const UNKNOWN_KIND: i16 = 42;
    let mut connection = connect();
    let answer = connection.call(2, &election(7, 30_000));
    let partitions = &answer.replica_election_results[0].partition_result;
    assert_eq!((answer.error_code, partitions.len()), (UNKNOWN_KIND, 2));
    for partition in partitions {
        let told = partition.error_message.as_deref();
        assert_eq!(
            (partition.error_code, told),
            (UNKNOWN_KIND, Some("Unknown election type 7"))
        );
    }
    let nothing = election(7, 30_000).with_topic_partitions(Some(Vec::new()));
    let answer = connection.call(2, &nothing);
    assert_eq!(
        (answer.error_code, answer.replica_election_results.len()),
        (0, 0),
        "of nothing, any kind"
    );
}

#[test]
fn names_too_long_to_quote_are_quoted_in_part() {
    let mut connection = connect();
    for name in ["x".repeat(i16::MAX as usize), "/".repeat(i16::MAX as usize)] {
        let asked = TopicPartitions::default()
            .with_topic(text(&name).into())
            .with_partitions(vec![0]);
        let request = election(0, 30_000).with_topic_partitions(Some(vec![asked]));
        let answer = connection.call(2, &request);
        let told = &answer.replica_election_results[0].partition_result[0];
        let told = (told.error_code, told.error_message.as_deref());
        assert!(told.1.is_some_and(|text| text.ends_with("...")), "{told:?}");
        let topic = TopicRequest::default()
            .with_name(text(&name).into())
            .with_partition_indexes(vec![0]);
        let request = DescribeProducersRequest::default().with_topics(vec![topic]);
        let answer = connection.call(0, &request);
        let told = &answer.topics[0].partitions[0];
        let told = (told.error_code, told.error_message.as_deref());
        assert!(told.1.is_some_and(|text| text.ends_with("...")), "{told:?}");
    }
}

#[test]
fn elections_and_reassignments_without_time_are_refused() {
    const TIMED_OUT: i16 = 7;
    let mut connection = connect();
    for (version, whole) in [(0, 0), (1, TIMED_OUT), (2, TIMED_OUT)] {
        let answer = connection.call(version, &election(0, 0));
        assert_eq!(answer.error_code, whole, "version {version}");
        let partitions = answer.replica_election_results[0].partition_result.iter();
        let codes: Vec<i16> = partitions.map(|it| it.error_code).collect();
        assert_eq!(codes, [TIMED_OUT; 2], "version {version}");
    }
    let partition = ReassignablePartition::default().with_replicas(None);
    let topic = ReassignableTopic::default()
        .with_name(text("not-reassigned").into())
        .with_partitions(vec![partition]);
    let request = AlterPartitionReassignmentsRequest::default()
        .with_timeout_ms(-1)
        .with_topics(vec![topic]);
    let answer = connection.call(1, &request);
    let partition = &answer.responses[0].partitions[0];
    assert_eq!(
        (answer.error_code, partition.error_code),
        (TIMED_OUT, TIMED_OUT)
    );
    let answer = connection.call(1, &request.with_topics(Vec::new()));
    assert_eq!(answer.error_code, 0, "nothing takes no time");
}

#[test]
fn replicas_stay_where_they_are() {
    const NOT_IN_PROGRESS: i16 = 85;
    const INVALID: i16 = 39;
    let topic = Topic::new("reassigned");
    let mut connection = connect();
    let mut ask = |name: &str, partition: i32, replicas: Option<&[i32]>| {
        let replicas = replicas.map(|ids| ids.iter().map(|id| (*id).into()).collect());
        let partition = ReassignablePartition::default()
            .with_partition_index(partition)
            .with_replicas(replicas);
        let topic = ReassignableTopic::default()
            .with_name(text(name).into())
            .with_partitions(vec![partition]);
        let request = AlterPartitionReassignmentsRequest::default().with_topics(vec![topic]);
        let answer = connection.call(1, &request);
        assert_eq!(answer.error_code, 0);
        answer.responses[0].partitions[0].error_code
    };
    assert_eq!(ask("reassigned", 0, Some(&[1])), 0);
    assert_eq!(ask("reassigned", 0, None), NOT_IN_PROGRESS);
    for wrong in [&[5][..], &[1, 1], &[1, 5], &[-1], &[]] {
        assert_eq!(ask("reassigned", 0, Some(wrong)), INVALID, "{wrong:?}");
    }
    assert_eq!(ask("reassigned", 9, Some(&[1])), UNKNOWN_TOPIC);
    assert_eq!(ask("not-reassigned", 0, Some(&[1])), UNKNOWN_TOPIC);
    let listed = connect().call(0, &ListPartitionReassignmentsRequest::default());
    assert_eq!((listed.error_code, listed.topics.len()), (0, 0));
    drop(topic);
}

#[test]
fn a_partition_tells_the_producers_it_remembers() {
    let topic = Topic::new("remembered");
    let mut connection = connect();
    let mut written = BTreeMap::new();
    for last_sequence in [0, 2] {
        let (id, epoch) = producer(&mut connection);
        let values = vec!["a"; last_sequence as usize + 1];
        let batch = Batch::of(clock::wall_clock_ms(), &values).by(id, epoch, 0);
        assert_eq!(
            produce_as(&mut connection, PRODUCE, &topic, -1, batch.bytes()).error_code,
            0
        );
        written.insert(id, (i32::from(epoch), last_sequence, -1));
    }
    let mut ask = |name: &str, partition: i32| {
        let topic = TopicRequest::default()
            .with_name(text(name).into())
            .with_partition_indexes(vec![partition]);
        let request = DescribeProducersRequest::default().with_topics(vec![topic]);
        let mut answer = connection.call(0, &request);
        answer.topics.remove(0).partitions.remove(0)
    };
    let told = ask("remembered", 0).active_producers;
    let told: BTreeMap<_, _> = told
        .iter()
        .map(|it| {
            let start = it.current_txn_start_offset;
            (
                *it.producer_id,
                (it.producer_epoch, it.last_sequence, start),
            )
        })
        .collect();
    assert_eq!(told, written);
    assert_eq!(ask("remembered", 5).error_code, UNKNOWN_TOPIC);
    assert_eq!(ask("a b", 0).error_code, 17);
}

#[test]
fn there_are_no_transactions_and_no_acls() {
    const NOT_FOUND: i16 = 105;
    const SECURITY_DISABLED: i16 = 54;
    let mut connection = connect();
    let filters = vec![text("Ongoing"), text("Nonsense")];
    let listed = connection.call(
        1,
        &ListTransactionsRequest::default().with_state_filters(filters),
    );
    assert_eq!((listed.error_code, listed.transaction_states.len()), (0, 0));
    assert_eq!(listed.unknown_state_filters, [text("Nonsense")]);
    let request =
        DescribeTransactionsRequest::default().with_transactional_ids(vec![text("some").into()]);
    let described = connection.call(0, &request);
    assert_eq!(described.transaction_states[0].error_code, NOT_FOUND);
    let acls = connection.call(3, &DescribeAclsRequest::default());
    assert_eq!(acls.error_code, SECURITY_DISABLED);
    let request = CreateAclsRequest::default().with_creations(vec![AclCreation::default(); 2]);
    let created = connection.call(3, &request);
    assert!(
        created
            .results
            .iter()
            .all(|it| it.error_code == SECURITY_DISABLED)
    );
    assert_eq!(created.results.len(), 2);
}

#[test]
fn the_quorum_is_this_node() {
    use kafka_protocol::messages::describe_quorum_request::{PartitionData, TopicData};
    let mut connection = connect();
    let mut ask = |topic: &str, partition: i32| {
        let partition = PartitionData::default().with_partition_index(partition);
        let topic = TopicData::default()
            .with_topic_name(text(topic).into())
            .with_partitions(vec![partition]);
        let request = DescribeQuorumRequest::default().with_topics(vec![topic]);
        connection.call(2, &request)
    };
    let answer = ask("__cluster_metadata", 0);
    let partition = &answer.topics[0].partitions[0];
    assert_eq!((answer.error_code, partition.error_code), (0, 0));
    assert_eq!(*partition.leader_id, 1);
    let [voter] = partition.current_voters.as_slice() else {
        panic!("{partition:?}")
    };
    assert_eq!(voter.log_end_offset, partition.high_watermark);
    assert!(partition.high_watermark > 0 && partition.leader_epoch > 0);
    assert_eq!(&*answer.nodes[0].listeners[0].name, "CONTROLLER");
    Topic::new("one-more");
    let later = ask("__cluster_metadata", 0);
    assert!(later.topics[0].partitions[0].high_watermark > partition.high_watermark);
    let other = ask("one-more", 0);
    assert_eq!(other.topics[0].partitions[0].error_code, UNKNOWN_TOPIC);
}
