//! Records of Kafka's own topics as JSON, for the tools that show them.

use std::fmt;

use bytes::Bytes;
use protocol::Str;
use protocol::json::Json;
use protocol::stored::{
    ConsumerProtocolAssignment, ConsumerProtocolSubscription, GroupKey, GroupValue, ShareKey,
    ShareValue, TransactionKey, TransactionValue,
};
use protocol::wire::{DecodeError, Reader};

/// Whose topic it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coordinator {
    Group,
    Transaction,
    Share,
}

/// A coordinator's record.
pub(super) struct CoordinatorRecord {
    pub(super) type_id: i16,
    pub(super) key: Json,
    /// With its version; none for a deletion.
    pub(super) value: Option<(i16, Json)>,
}

/// Why a coordinator's record cannot be shown.
#[derive(Debug)]
pub(super) enum Unreadable {
    /// A key of a type that is not known.
    Type(i16),
    Bytes(DecodeError),
    TransactionState(i64),
}

impl From<DecodeError> for Unreadable {
    fn from(error: DecodeError) -> Unreadable {
        Unreadable::Bytes(error)
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unreadable::Type(kind) => write!(f, "Found an unknown record type {kind}"),
            Unreadable::Bytes(error) => write!(f, "{error}"),
            Unreadable::TransactionState(id) => write!(
                f,
                "Unknown transaction state id {id} from the transaction status message"
            ),
        }
    }
}

impl Coordinator {
    /// `members`: whether what members of consumer groups tell each other is read too.
    pub(super) fn read(
        self,
        key: Bytes,
        value: Option<Bytes>,
        members: bool,
    ) -> Result<CoordinatorRecord, Unreadable> {
        let (type_id, key) = match self {
            Coordinator::Group => {
                let key = GroupKey::decode(key)?;
                (key.type_id(), key.json())
            }
            Coordinator::Transaction => {
                let key = TransactionKey::decode(key)?;
                (key.type_id(), key.json())
            }
            Coordinator::Share => {
                let key = ShareKey::decode(key)?;
                (key.type_id(), key.json())
            }
        };
        let key = key.ok_or(Unreadable::Type(type_id))?;
        let value = value.map(|value| self.read_value(type_id, value, members));
        Ok(CoordinatorRecord {
            type_id,
            key,
            value: value.transpose()?,
        })
    }

    fn read_value(
        self,
        type_id: i16,
        value: Bytes,
        members: bool,
    ) -> Result<(i16, Json), Unreadable> {
        Ok(match self {
            Coordinator::Group => {
                let (value, version) = GroupValue::decode(type_id, value)?;
                let mut json = value.json(version);
                if members && matches!(value, GroupValue::GroupMetadata(_)) {
                    show_consumers(&mut json);
                }
                (version, json)
            }
            Coordinator::Transaction => {
                let (value, version) = TransactionValue::decode(type_id, value)?;
                let mut json = value.json(version);
                show_state(&mut json)?;
                (version, json)
            }
            Coordinator::Share => {
                let (value, version) = ShareValue::decode(type_id, value)?;
                (version, value.json(version))
            }
        })
    }
}

/// Members of consumer groups keep what they subscribe to, and what they are assigned, in a format of their own.
fn show_consumers(group: &mut Json) {
    if group.get("protocolType").and_then(Json::as_text) != Some("consumer") {
        return;
    }
    let Some(Json::Array(members)) = group.get_mut("members") else {
        return;
    };
    for member in members {
        replace(member, "subscription", |reader, version| {
            Ok(ConsumerProtocolSubscription::decode(reader, version)?.json(version))
        });
        replace(member, "assignment", |reader, version| {
            Ok(ConsumerProtocolAssignment::decode(reader, version)?.json(version))
        });
    }
}

/// What cannot be read stays as it is.
fn replace(
    member: &mut Json,
    name: &str,
    decode: fn(&mut Reader, i16) -> Result<Json, DecodeError>,
) {
    if let Some(field) = member.get_mut(name)
        && let Json::Bytes(bytes) = field
    {
        let mut reader = Reader::new(bytes.clone());
        let shown = reader
            .i16()
            .and_then(|version| decode(&mut reader, version));
        if let Ok(shown) = shown {
            *field = shown;
        }
    }
}

/// Kafka's tools name the state of a transaction.
fn show_state(transaction: &mut Json) -> Result<(), Unreadable> {
    const STATES: [&str; 8] = [
        "Empty",
        "Ongoing",
        "PrepareCommit",
        "PrepareAbort",
        "CompleteCommit",
        "CompleteAbort",
        "Dead",
        "PrepareEpochFence",
    ];
    if let Some(state) = transaction.get_mut("transactionStatus")
        && let Json::Int(id) = *state
    {
        let name = usize::try_from(id).ok().and_then(|id| STATES.get(id));
        let name = name.ok_or(Unreadable::TransactionState(id))?;
        *state = Json::Text(Str::from_static(name));
    }
    Ok(())
}
