//! DeleteTopics, by name (all versions) or by id (from version 6).

use std::collections::{BTreeMap, BTreeSet};

use protocol::messages::{
    DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicsResponseDeletableTopicResult,
};
use protocol::stored::{MetadataRecord, RemoveTopicRecord};
use protocol::{Array, ErrorCode, Str, Uuid};

use super::create_topics::repeated_names;
use super::machine::{Decided, Machine, Reply};
use super::refusal::Refusal;

type TopicResult = DeleteTopicsResponseDeletableTopicResult;

pub(super) fn decide(machine: &Machine, request: &DeleteTopicsRequest, version: i16) -> Decided {
    if !machine.settings.delete_topics {
        return disabled(request, version);
    }
    let mut deletion = Deletion::default();
    let names = deletion.names(request);
    let ids = deletion.ids(request);
    deletion.resolve_ids(machine, ids);
    deletion.resolve_names(machine, names);
    let mut records = Array::new();
    for (topic_id, name) in std::mem::take(&mut deletion.chosen) {
        records.push(MetadataRecord::from(RemoveTopicRecord { topic_id }));
        deletion.results.push(TopicResult {
            name: Some(name),
            topic_id,
            ..Default::default()
        });
    }
    answer(records, deletion.results)
}

/// What the request comes down to, step by step.
#[derive(Default)]
struct Deletion {
    results: Vec<TopicResult>,
    /// Ids that were given more than once, or by name as well.
    repeated_ids: BTreeSet<Uuid>,
    /// Topics to delete.
    chosen: BTreeMap<Uuid, Str>,
}

impl Deletion {
    fn refuse(&mut self, name: Option<&Str>, id: Uuid, refusal: Refusal) {
        self.results.push(TopicResult {
            name: name.cloned(),
            topic_id: id,
            error_code: refusal.code.code(),
            error_message: refusal.message,
        });
    }

    /// Names given once; the others, and entries that are none, are refused.
    fn names(&mut self, request: &DeleteTopicsRequest) -> BTreeSet<Str> {
        let invalid = |text| Refusal::new(ErrorCode::InvalidRequest, Str::from_static(text));
        let mut named: Vec<&Str> = request.topic_names.iter().collect();
        for topic in &request.topics {
            match &topic.name {
                Some(name) if topic.topic_id.is_zero() => named.push(name),
                Some(name) => {
                    let refusal = invalid("You may not specify both topic name and topic id.");
                    self.refuse(Some(name), topic.topic_id, refusal);
                }
                None if topic.topic_id.is_zero() => {
                    let refusal = invalid("Neither topic name nor id were specified.");
                    self.refuse(None, Uuid::ZERO, refusal);
                }
                None => {}
            }
        }
        let repeated = repeated_names(named.iter().copied());
        for name in &repeated {
            self.refuse(Some(name), Uuid::ZERO, Refusal::duplicate_name());
        }
        named
            .into_iter()
            .filter(|name| !repeated.contains(*name))
            .cloned()
            .collect()
    }

    /// Ids given once; the others are refused.
    fn ids(&mut self, request: &DeleteTopicsRequest) -> BTreeSet<Uuid> {
        let mut once = BTreeSet::new();
        let by_id = request.topics.iter().filter(|topic| topic.name.is_none());
        for id in by_id.map(|topic| topic.topic_id).filter(|id| !id.is_zero()) {
            if !once.insert(id) {
                self.repeated_ids.insert(id);
            }
        }
        for id in self.repeated_ids.clone() {
            once.remove(&id);
            let text = Str::from_static("Duplicate topic id.");
            self.refuse(None, id, Refusal::new(ErrorCode::InvalidRequest, text));
        }
        once
    }

    fn resolve_ids(&mut self, machine: &Machine, ids: BTreeSet<Uuid>) {
        for id in ids {
            match machine.latest().topic(id) {
                Some(topic) => drop(self.chosen.insert(id, topic.name.clone())),
                None => {
                    let refusal = Refusal::with_default_text(ErrorCode::UnknownTopicId);
                    self.refuse(None, id, refusal);
                }
            }
        }
    }

    fn resolve_names(&mut self, machine: &Machine, names: BTreeSet<Str>) {
        for name in names {
            let Some(id) = machine.latest().topic_id(&name) else {
                let code = ErrorCode::UnknownTopicOrPartition;
                self.refuse(Some(&name), Uuid::ZERO, Refusal::with_default_text(code));
                continue;
            };
            let given_by_id = self.chosen.insert(id, name.clone()).is_some();
            if given_by_id || self.repeated_ids.contains(&id) {
                self.chosen.remove(&id);
                self.repeated_ids.insert(id);
                let text = Str::from_static(
                    "The provided topic name maps to an ID that was already supplied.",
                );
                self.refuse(
                    Some(&name),
                    id,
                    Refusal::new(ErrorCode::InvalidRequest, text),
                );
            }
        }
    }
}

/// With `delete.topic.enable=false`; the code has been there since version 3.
fn disabled(request: &DeleteTopicsRequest, version: i16) -> Decided {
    let refusal = if version < 3 {
        let text = Str::from_static("Topic deletion is disabled.");
        Refusal::new(ErrorCode::InvalidRequest, text)
    } else {
        Refusal::with_default_text(ErrorCode::TopicDeletionDisabled)
    };
    let mut deletion = Deletion::default();
    for name in &request.topic_names {
        deletion.refuse(Some(name), Uuid::ZERO, refusal.clone());
    }
    for topic in &request.topics {
        deletion.refuse(topic.name.as_ref(), topic.topic_id, refusal.clone());
    }
    answer(Array::new(), deletion.results)
}

fn answer(records: Array<MetadataRecord>, responses: Vec<TopicResult>) -> Decided {
    let response = DeleteTopicsResponse {
        responses: responses.into(),
        ..Default::default()
    };
    Decided::with(records, Reply::DeleteTopics(response))
}
