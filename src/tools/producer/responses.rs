//! What an answer means for a batch.

use protocol::ErrorCode;
use protocol::messages::ProduceResponse;

/// The fate of a batch.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Written,
    /// Sent again, after the leaders are looked up if that may help.
    Again {
        code: i16,
        look_up: bool,
    },
    /// Sent again with new sequences, of a higher epoch.
    AgainRenewed {
        code: i16,
    },
    /// Another try would end the same way.
    Lost {
        code: i16,
    },
}

/// `first` says that no earlier batch of the partition is open, so that a hole in front of this one stays.
pub(super) fn fate(code: i16, idempotent: bool, first: bool) -> Fate {
    let Some(error) = ErrorCode::from_i16(code) else {
        return Fate::Lost { code };
    };
    match error {
        ErrorCode::None | ErrorCode::DuplicateSequenceNumber => Fate::Written,
        ErrorCode::OutOfOrderSequenceNumber if idempotent && !first => Fate::Again {
            code,
            look_up: false,
        },
        ErrorCode::OutOfOrderSequenceNumber
        | ErrorCode::UnknownProducerId
        | ErrorCode::InvalidProducerEpoch
            if idempotent =>
        {
            Fate::AgainRenewed { code }
        }
        error if error.is_retriable() => {
            let look_up = !matches!(
                error,
                ErrorCode::NotEnoughReplicas | ErrorCode::NotEnoughReplicasAfterAppend
            );
            Fate::Again { code, look_up }
        }
        _ => Fate::Lost { code },
    }
}

/// The error of a partition in an answer, and the words for it.
pub(super) fn of_partition(
    response: &ProduceResponse,
    partition: usize,
) -> (i16, Option<protocol::Str>) {
    let found = response
        .responses
        .iter()
        .flat_map(|topic| &topic.partition_responses)
        .find(|answer| usize::try_from(answer.index) == Ok(partition));
    match found {
        Some(answer) => (answer.error_code, answer.error_message.clone()),
        None => (
            ErrorCode::UnknownServerError.code(),
            Some(protocol::Str::from_static(
                "the answer leaves the partition out",
            )),
        ),
    }
}
