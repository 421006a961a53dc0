//! The crates `kafka-protocol` 0.18 and 0.15 read what we write and write what we read.
//!
//! Bytes come from the interpreter of the schema, which the generated codec is held to elsewhere.
//! That their codec gives the same bytes back says that both have the same layout; that defaults
//! come out the same, that fields of one size are not swapped.

#[path = "../wire/interpreter.rs"]
#[allow(
    dead_code,
    reason = "shared with the tests of the wire, which use the rest"
)]
mod interpreter;
#[path = "../wire/random.rs"]
#[allow(
    dead_code,
    reason = "shared with the tests of the wire, which use the rest"
)]
mod random;
#[path = "../../build/schema.rs"]
#[allow(
    dead_code,
    reason = "shared with the build script, which uses the rest"
)]
mod schema;

use bytes::{Bytes, BytesMut};
use protocol::wire::{Reader, Writer};

use interpreter::Noise;
use random::Random;

const ROUNDS: u64 = 8;

/// One message of theirs.
struct Theirs {
    name: &'static str,
    versions: std::ops::RangeInclusive<i16>,
    /// Reads and writes; gives what was written, and how much was left unread.
    recode: fn(Bytes, i16) -> Result<(BytesMut, usize), String>,
    encode_default: fn(i16) -> Result<BytesMut, String>,
}

macro_rules! theirs {
    ($krate:ident: $($name:ident)*) => {
        [$(Theirs {
            name: stringify!($name),
            versions: {
                let range = <$krate::messages::$name as $krate::protocol::Message>::VERSIONS;
                range.min..=range.max
            },
            recode: |mut bytes, version| {
                use $krate::protocol::{Decodable, Encodable};
                let message = $krate::messages::$name::decode(&mut bytes, version)
                    .map_err(|error| error.to_string())?;
                let mut out = BytesMut::new();
                message.encode(&mut out, version).map_err(|error| error.to_string())?;
                Ok((out, bytes.len()))
            },
            encode_default: |version| {
                use $krate::protocol::Encodable;
                let mut out = BytesMut::new();
                let message = $krate::messages::$name::default();
                message.encode(&mut out, version).map_err(|error| error.to_string())?;
                Ok(out)
            },
        }),*]
    };
}

/// Gives the number of pairs of message and version that both know.
fn compare(all: &[Theirs]) -> usize {
    let ours = interpreter::all();
    let mut compared = 0;
    for theirs in all {
        let (message, info) = ours
            .iter()
            .find(|(message, _)| message.name == theirs.name)
            .expect("a message");
        for version in info
            .versions
            .iter()
            .filter(|version| theirs.versions.contains(version))
        {
            for round in 0..ROUNDS {
                let mut random = Random::of(theirs.name, version, 4000 + round);
                let value = interpreter::generate(message, version, &mut random);
                let bytes = interpreter::write(message, &value, version, Noise::None)
                    .expect("made for this version");
                let case = || format!("{} v{version}: {value:#?}", theirs.name);
                let their_bytes = match (theirs.recode)(Bytes::from(bytes.clone()), version) {
                    Ok((their_bytes, left)) => {
                        assert_eq!(left, 0, "{}", case());
                        their_bytes.freeze()
                    }
                    Err(error) => panic!("{error}: {}", case()),
                };
                assert_eq!(their_bytes, bytes, "{}", case());
                let mut writer = Writer::new();
                let mut reader = Reader::new(their_bytes);
                let ours = (info.recode)(&mut reader, version, &mut writer, version);
                assert_eq!(ours, Ok(()), "{}", case());
                assert_eq!(writer.freeze(), bytes, "{}", case());
            }
            let mut writer = Writer::new();
            let ours = (info.encode_default)(&mut writer, version);
            if let (Ok(()), Ok(default)) = (ours, (theirs.encode_default)(version)) {
                assert_eq!(
                    writer.freeze(),
                    default,
                    "default of {} v{version}",
                    theirs.name
                );
            }
            compared += 1;
        }
    }
    compared
}

/// Without LeaderChangeMessage and VotersRecord, where 0.18 takes the message's own field `version` for the version
/// of what follows.
#[test]
fn kafka_protocol_0_18() {
    let compared = compare(&theirs! { kafka_protocol:
        AddOffsetsToTxnRequest AddOffsetsToTxnResponse AddPartitionsToTxnRequest
        AddPartitionsToTxnResponse AddRaftVoterRequest AddRaftVoterResponse
        AllocateProducerIdsRequest AllocateProducerIdsResponse AlterClientQuotasRequest
        AlterClientQuotasResponse AlterConfigsRequest AlterConfigsResponse
        AlterPartitionReassignmentsRequest AlterPartitionReassignmentsResponse
        AlterPartitionRequest AlterPartitionResponse AlterReplicaLogDirsRequest
        AlterReplicaLogDirsResponse AlterShareGroupOffsetsRequest AlterShareGroupOffsetsResponse
        AlterUserScramCredentialsRequest AlterUserScramCredentialsResponse ApiVersionsRequest
        ApiVersionsResponse AssignReplicasToDirsRequest AssignReplicasToDirsResponse
        BeginQuorumEpochRequest BeginQuorumEpochResponse BrokerHeartbeatRequest
        BrokerHeartbeatResponse BrokerRegistrationRequest BrokerRegistrationResponse
        ConsumerGroupDescribeRequest ConsumerGroupDescribeResponse ConsumerGroupHeartbeatRequest
        ConsumerGroupHeartbeatResponse ControllerRegistrationRequest
        ControllerRegistrationResponse CreateAclsRequest CreateAclsResponse
        CreateDelegationTokenRequest CreateDelegationTokenResponse CreatePartitionsRequest
        CreatePartitionsResponse CreateTopicsRequest CreateTopicsResponse DeleteAclsRequest
        DeleteAclsResponse DeleteGroupsRequest DeleteGroupsResponse DeleteRecordsRequest
        DeleteRecordsResponse DeleteShareGroupOffsetsRequest DeleteShareGroupOffsetsResponse
        DeleteShareGroupStateRequest DeleteShareGroupStateResponse DeleteTopicsRequest
        DeleteTopicsResponse DescribeAclsRequest DescribeAclsResponse
        DescribeClientQuotasRequest DescribeClientQuotasResponse DescribeClusterRequest
        DescribeClusterResponse DescribeConfigsRequest DescribeConfigsResponse
        DescribeDelegationTokenRequest DescribeDelegationTokenResponse DescribeGroupsRequest
        DescribeGroupsResponse DescribeLogDirsRequest DescribeLogDirsResponse
        DescribeProducersRequest DescribeProducersResponse DescribeQuorumRequest
        DescribeQuorumResponse DescribeShareGroupOffsetsRequest
        DescribeShareGroupOffsetsResponse DescribeTopicPartitionsRequest
        DescribeTopicPartitionsResponse DescribeTransactionsRequest DescribeTransactionsResponse
        DescribeUserScramCredentialsRequest DescribeUserScramCredentialsResponse
        ElectLeadersRequest ElectLeadersResponse EndQuorumEpochRequest EndQuorumEpochResponse
        EndTxnRequest EndTxnResponse EnvelopeRequest EnvelopeResponse
        ExpireDelegationTokenRequest ExpireDelegationTokenResponse FetchRequest FetchResponse
        FetchSnapshotRequest FetchSnapshotResponse FindCoordinatorRequest
        FindCoordinatorResponse GetTelemetrySubscriptionsRequest
        GetTelemetrySubscriptionsResponse HeartbeatRequest HeartbeatResponse
        IncrementalAlterConfigsRequest IncrementalAlterConfigsResponse InitProducerIdRequest
        InitProducerIdResponse InitializeShareGroupStateRequest
        InitializeShareGroupStateResponse JoinGroupRequest JoinGroupResponse LeaveGroupRequest
        LeaveGroupResponse ListConfigResourcesRequest ListConfigResourcesResponse
        ListGroupsRequest ListGroupsResponse ListOffsetsRequest ListOffsetsResponse
        ListPartitionReassignmentsRequest ListPartitionReassignmentsResponse
        ListTransactionsRequest ListTransactionsResponse MetadataRequest MetadataResponse
        OffsetCommitRequest OffsetCommitResponse OffsetDeleteRequest OffsetDeleteResponse
        OffsetFetchRequest OffsetFetchResponse OffsetForLeaderEpochRequest
        OffsetForLeaderEpochResponse ProduceRequest ProduceResponse PushTelemetryRequest
        PushTelemetryResponse ReadShareGroupStateRequest ReadShareGroupStateResponse
        ReadShareGroupStateSummaryRequest ReadShareGroupStateSummaryResponse
        RemoveRaftVoterRequest RemoveRaftVoterResponse RenewDelegationTokenRequest
        RenewDelegationTokenResponse SaslAuthenticateRequest SaslAuthenticateResponse
        SaslHandshakeRequest SaslHandshakeResponse ShareAcknowledgeRequest
        ShareAcknowledgeResponse ShareFetchRequest ShareFetchResponse ShareGroupDescribeRequest
        ShareGroupDescribeResponse ShareGroupHeartbeatRequest ShareGroupHeartbeatResponse
        SyncGroupRequest SyncGroupResponse TxnOffsetCommitRequest TxnOffsetCommitResponse
        UnregisterBrokerRequest UnregisterBrokerResponse UpdateFeaturesRequest
        UpdateFeaturesResponse UpdateRaftVoterRequest UpdateRaftVoterResponse VoteRequest
        VoteResponse WriteShareGroupStateRequest WriteShareGroupStateResponse
        WriteTxnMarkersRequest WriteTxnMarkersResponse ConsumerProtocolAssignment
        ConsumerProtocolSubscription DefaultPrincipalData EndTxnMarker KRaftVersionRecord
        SnapshotFooterRecord SnapshotHeaderRecord
    });
    assert!(compared > 400, "{compared}");
}

#[test]
fn kafka_protocol_0_15() {
    let compared = compare(&theirs! { kafka_protocol_15:
        AddOffsetsToTxnRequest AddOffsetsToTxnResponse AddPartitionsToTxnRequest
        AddPartitionsToTxnResponse ApiVersionsRequest ApiVersionsResponse CreateTopicsRequest
        CreateTopicsResponse DeleteTopicsRequest DeleteTopicsResponse DescribeConfigsRequest
        DescribeConfigsResponse DescribeGroupsRequest DescribeGroupsResponse EndTxnRequest
        EndTxnResponse FetchRequest FetchResponse FindCoordinatorRequest FindCoordinatorResponse
        HeartbeatRequest HeartbeatResponse InitProducerIdRequest InitProducerIdResponse
        JoinGroupRequest JoinGroupResponse LeaveGroupRequest LeaveGroupResponse
        ListGroupsRequest ListGroupsResponse ListOffsetsRequest ListOffsetsResponse
        MetadataRequest MetadataResponse OffsetCommitRequest OffsetCommitResponse
        OffsetFetchRequest OffsetFetchResponse OffsetForLeaderEpochRequest
        OffsetForLeaderEpochResponse ProduceRequest ProduceResponse SaslAuthenticateRequest
        SaslAuthenticateResponse SaslHandshakeRequest SaslHandshakeResponse SyncGroupRequest
        SyncGroupResponse TxnOffsetCommitRequest TxnOffsetCommitResponse
    });
    assert!(compared > 150, "{compared}");
}
