//! The file `quorum-state` beside the metadata log: what this node knows about the quorum's epoch.
//!
//! JSON with a `data_version`: 0 while `kraft.version` is 0, 1 from `kraft.version` 1 on
//! (`QuorumStateData` of KIP-595 and KIP-853). Written by replacing the file, durably, before the
//! epoch is used.

use protocol::Uuid;

/// Name of the file.
pub const QUORUM_STATE_FILE: &str = "quorum-state";

/// Content of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuorumState {
    /// Leader of `leader_epoch`; `None` while there is none.
    pub leader_id: Option<i32>,
    /// Never goes back: every start of a lone controller is a new epoch.
    pub leader_epoch: i32,
    /// Whom this node voted for in `leader_epoch`.
    pub voted_id: Option<i32>,
    /// Directory of that voter; version 1 only.
    pub voted_directory_id: Uuid,
    /// Voters of version 0, in order; `None` in version 1, where they stand in the log.
    pub static_voters: Option<Vec<i32>>,
}

/// The file does not hold a quorum state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{QUORUM_STATE_FILE}: {problem}")]
pub struct QuorumStateError {
    problem: String,
}

impl QuorumState {
    /// The file's text, as Apache writes it: one line, no line end.
    #[must_use]
    pub fn to_json(&self) -> String {
        let leader = self.leader_id.unwrap_or(-1);
        let (epoch, voted) = (self.leader_epoch, self.voted_id.unwrap_or(-1));
        match &self.static_voters {
            Some(voters) => {
                let voters: Vec<String> = voters
                    .iter()
                    .map(|id| format!("{{\"voterId\":{id}}}"))
                    .collect();
                let voters = voters.join(",");
                format!(
                    "{{\"clusterId\":\"\",\"leaderId\":{leader},\"leaderEpoch\":{epoch},\
                     \"votedId\":{voted},\"appliedOffset\":0,\"currentVoters\":[{voters}],\
                     \"data_version\":0}}"
                )
            }
            None => format!(
                "{{\"leaderId\":{leader},\"leaderEpoch\":{epoch},\"votedId\":{voted},\
                 \"votedDirectoryId\":\"{}\",\"data_version\":1}}",
                self.voted_directory_id
            ),
        }
    }

    /// Reads the file's text. Unknown fields are ignored.
    ///
    /// # Errors
    /// Not JSON, a field missing or of the wrong type, an unknown `data_version`.
    pub fn from_json(text: &str) -> Result<Self, QuorumStateError> {
        let wrong = |problem: String| QuorumStateError { problem };
        let json: serde_json::Value =
            serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
        let number = |field: &str| {
            let value = json.get(field).and_then(serde_json::Value::as_i64);
            value
                .and_then(|value| i32::try_from(value).ok())
                .ok_or_else(|| wrong(format!("no number '{field}' in {text}")))
        };
        let optional = |field: &str| Ok(Some(number(field)?).filter(|&id| id >= 0));
        let static_voters = match number("data_version")? {
            0 => Some(voters(&json).ok_or_else(|| wrong(format!("no 'currentVoters' in {text}")))?),
            1 => None,
            other => return Err(wrong(format!("data_version {other} is not known"))),
        };
        let voted_directory_id = match json.get("votedDirectoryId").and_then(|id| id.as_str()) {
            Some(id) => id
                .parse()
                .map_err(|_| wrong(format!("no directory id: '{id}'")))?,
            None => Uuid::ZERO,
        };
        Ok(Self {
            leader_id: optional("leaderId")?,
            leader_epoch: number("leaderEpoch")?,
            voted_id: optional("votedId")?,
            voted_directory_id,
            static_voters,
        })
    }
}

/// Ids of `currentVoters`; empty when it is null.
fn voters(json: &serde_json::Value) -> Option<Vec<i32>> {
    let list = match json.get("currentVoters")? {
        serde_json::Value::Null => return Some(Vec::new()),
        other => other.as_array()?,
    };
    list.iter()
        .map(|voter| i32::try_from(voter.get("voterId")?.as_i64()?).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files that Apache Kafka 4.4.0 wrote.
    const STATIC: &str = r#"{"clusterId":"","leaderId":1,"leaderEpoch":2,"votedId":-1,"appliedOffset":0,"currentVoters":[{"voterId":1}],"data_version":0}"#;
    const DYNAMIC: &str = r#"{"leaderId":1,"leaderEpoch":1,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}"#;

    #[test]
    fn apaches_files_come_back_byte_for_byte() {
        for text in [STATIC, DYNAMIC] {
            assert_eq!(QuorumState::from_json(text).unwrap().to_json(), text);
        }
        let state = QuorumState::from_json(STATIC).unwrap();
        assert_eq!(
            (state.leader_epoch, state.static_voters),
            (2, Some(vec![1]))
        );
    }

    #[test]
    fn damage_is_told() {
        for text in [
            "",
            "{}",
            r#"{"data_version":7}"#,
            &STATIC[..40],
            &DYNAMIC.replace('2', "x"),
        ] {
            if text == DYNAMIC {
                continue;
            }
            assert!(QuorumState::from_json(text).is_err(), "{text}");
        }
    }
}
