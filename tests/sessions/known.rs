//! What a client has learnt from answers, so that later requests can be about something that is there.

use bytes::Bytes;
use protocol::frame::decode_response;
use protocol::messages::{
    CreateTopicsResponse, FetchResponse, InitProducerIdResponse, JoinGroupResponse,
    MetadataResponse,
};
use protocol::{ApiKey, Uuid};

use crate::generate::TOPICS;

/// As many of each are remembered.
const KEPT: usize = 4;

#[derive(Clone, Default)]
pub struct Known {
    pub topics: Vec<Uuid>,
    pub members: Vec<String>,
    pub numbers: Vec<i64>,
    /// Where a broker listens that is told of in answers.
    pub port: Option<u16>,
}

fn keep<T: PartialEq>(all: &mut Vec<T>, one: T) {
    if !all.contains(&one) {
        if all.len() == KEPT {
            all.remove(0);
        }
        all.push(one);
    }
}

impl Known {
    pub fn learn(&mut self, api: ApiKey, version: i16, answer: &Bytes) {
        match api {
            ApiKey::JoinGroup => {
                if let Ok((_, joined)) =
                    decode_response::<JoinGroupResponse>(answer.clone(), version)
                {
                    keep(&mut self.members, joined.member_id.to_string());
                    keep(&mut self.numbers, joined.generation_id.into());
                }
            }
            ApiKey::CreateTopics => {
                let created = decode_response::<CreateTopicsResponse>(answer.clone(), version);
                for topic in created.into_iter().flat_map(|(_, created)| created.topics) {
                    keep(&mut self.topics, topic.topic_id);
                }
            }
            // Topics come again, with other ids, after they were deleted.
            ApiKey::Metadata => {
                let told = decode_response::<MetadataResponse>(answer.clone(), version);
                let topics = told.into_iter().flat_map(|(_, told)| told.topics);
                for topic in topics.filter(|topic| topic.topic_id != Uuid::ZERO) {
                    if topic
                        .name
                        .as_deref()
                        .is_some_and(|name| TOPICS.contains(&name))
                    {
                        keep(&mut self.topics, topic.topic_id);
                    }
                }
            }
            ApiKey::InitProducerId => {
                if let Ok((_, ids)) =
                    decode_response::<InitProducerIdResponse>(answer.clone(), version)
                {
                    keep(&mut self.numbers, ids.producer_id);
                }
            }
            ApiKey::Fetch => {
                if let Ok((_, fetched)) = decode_response::<FetchResponse>(answer.clone(), version)
                {
                    keep(&mut self.numbers, fetched.session_id.into());
                }
            }
            _ => {}
        }
    }
}
