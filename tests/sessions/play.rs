//! The attackers: two connections that ask what the choices say, session after session.

use std::time::Duration;

use broker::handlers::{SUPPORTED, supported};
use bytes::{BufMut, Bytes, BytesMut};
use protocol::frame::RequestHeader;
use protocol::messages::{CreatePartitionsRequest, CreateTopicsRequest};
use protocol::wire::{Reader, Writer};
use protocol::{ApiKey, ListenerKind};

use crate::choices::Choices;
use crate::generate::{Generator, PARTITIONS_MAX, REFUSED_ABOVE, Schema};
use crate::interpreter::{self, Noise, Value};
use crate::known::Known;
use crate::link::{Came, Link, Owed};
use crate::witness::Witness;

/// Requests of one input.
const STEPS_MAX: u64 = 1024;
/// How long an answer is awaited where the next request depends on it.
const STEP_PATIENCE: Duration = Duration::from_millis(50);
/// How long answers are awaited at the end, longer than anything but what waits for others.
const LAST_PATIENCE: Duration = Duration::from_secs(30);

/// What came of one session.
#[derive(Default)]
pub struct Asked {
    pub requests: u64,
    /// Those of the API in focus.
    pub focused: u64,
    pub answers: u64,
}

/// Everybody who talks to the broker, from one session to the next.
pub struct Players<'a> {
    pub schema: &'a Schema,
    pub focus: ApiKey,
    pub attackers: [Link; 2],
    pub witness: Witness,
    pub known: Known,
}

impl Players<'_> {
    /// Asks until the choices are used up. The connections are those of the last session, or new ones.
    pub async fn session(&mut self, mut choices: Choices<'_>) -> Asked {
        let mut asked = Asked::default();
        if choices.one_in(8) {
            for link in &mut self.attackers {
                link.reopen().await;
            }
        }
        let patient = choices.one_in(4);
        while !choices.is_empty() && asked.requests < STEPS_MAX {
            let api = match choices.one_in(4) {
                false => self.focus,
                true => *choices.pick(SUPPORTED),
            };
            let link = &mut self.attackers[choices.below(2)];
            let frame = request(self.schema, &mut choices, &self.known, link, api);
            link.send(frame).await;
            asked.requests += 1;
            asked.focused += u64::from(api == self.focus);
            if !choices.one_in(3) {
                drain(link, &mut self.known, &mut asked, STEP_PATIENCE).await;
            }
            self.witness.notice().await;
        }
        for link in &mut self.attackers {
            settle(link, &mut self.known, &mut asked, patient).await;
        }
        asked
    }
}

/// Takes all answers that must come. Where one waits for others, the connection stays for its end or does not.
async fn settle(link: &mut Link, known: &mut Known, asked: &mut Asked, patient: bool) {
    drain(link, known, asked, STEP_PATIENCE).await;
    // Behind a request that waits for others everything waits.
    if link
        .owed
        .iter()
        .any(|owed| may_wait(owed.api) && owed.certain)
    {
        if patient {
            drain(link, known, asked, LAST_PATIENCE).await;
        }
        if !link.owed.is_empty() {
            link.reopen().await;
        }
        return;
    }
    if !link.owed.is_empty() {
        // All before the answer to this are answered, or will never be.
        let correlation = link.next_correlation();
        link.owed.push_back(Owed {
            correlation,
            api: ApiKey::ApiVersions,
            version: 0,
            certain: true,
        });
        link.send(framed(ApiKey::ApiVersions, 0, correlation, &[]))
            .await;
        drain(link, known, asked, LAST_PATIENCE).await;
    }
    if let Some(first) = link.owed.iter().find(|owed| owed.certain) {
        panic!("no answer to {} v{}", first.api.name(), first.version);
    }
    link.may_close = false;
}

/// Whether an answer can wait for what others do.
fn may_wait(api: ApiKey) -> bool {
    matches!(
        api,
        ApiKey::JoinGroup | ApiKey::SyncGroup | ApiKey::Fetch | ApiKey::Produce
    )
}

/// Takes the answers that are owed, as far as they come.
async fn drain(link: &mut Link, known: &mut Known, asked: &mut Asked, patience: Duration) {
    while !link.owed.is_empty() {
        match link.receive(patience).await {
            Came::Answer(api, version, answer) => {
                asked.answers += 1;
                known.learn(api, version, &answer);
            }
            Came::Closed => {
                let owed = link.owed.front().map(|owed| (owed.api, owed.version));
                assert!(
                    link.may_close,
                    "the connection is closed in place of an answer to {owed:?}"
                );
                link.reopen().await;
                return;
            }
            Came::Nothing => return,
        }
    }
}

/// The next request of a connection, and what is owed for it.
fn request(
    schema: &Schema,
    choices: &mut Choices<'_>,
    known: &Known,
    link: &mut Link,
    api: ApiKey,
) -> Bytes {
    let range = supported(api, ListenerKind::Broker).expect("it is served");
    let span = usize::from((range.max - range.min + 1).unsigned_abs());
    let mut version = range.max - choices.below(span) as i16;
    let message = schema.request(api);
    let value = Generator {
        message,
        version,
        choices,
        known,
    }
    .value();
    let noise = match choices.one_in(8) {
        true => Noise::UnknownTags,
        false => Noise::None,
    };
    let mut body = interpreter::write(message, &value, version, noise)
        .unwrap_or_else(|refusal| panic!("{} v{version}: {refusal:?}", message.name));
    let mut certain = true;
    let sound = (body.clone(), version);
    if choices.one_in(10) {
        damage(&mut body, choices);
        certain = false;
    }
    // A cluster that forgets its only broker has none, as with Apache Kafka: the witness would notice that.
    if api == ApiKey::UnregisterBroker && body.starts_with(&1_i32.to_be_bytes()) {
        body[3] = 7;
    }
    if choices.one_in(40) {
        version = choices.byte().into();
        certain = false;
    }
    if makes_many_partitions(api, version, &body) {
        (body, version) = sound;
    }
    // Produce without acknowledgement has no answer, and ends the connection where it failed.
    if api == ApiKey::Produce && acks(&value) == 0 {
        certain = false;
    }
    link.may_close |= !certain;
    let correlation = link.next_correlation();
    link.owed.push_back(Owed {
        correlation,
        api,
        version,
        certain,
    });
    framed(api, version, correlation, &body)
}

/// Whether damage has made a request for thousands of partitions. That may be asked for, and takes its memory.
fn makes_many_partitions(api: ApiKey, version: i16, body: &[u8]) -> bool {
    if supported(api, ListenerKind::Broker).is_none_or(|range| !range.contains(version)) {
        return false;
    }
    let mut reader = Reader::new(Bytes::copy_from_slice(body));
    let counts: Vec<i32> = match api {
        ApiKey::CreateTopics => {
            let request = CreateTopicsRequest::decode(&mut reader, version);
            let topics = request.into_iter().flat_map(|request| request.topics);
            topics.map(|topic| topic.num_partitions).collect()
        }
        ApiKey::CreatePartitions => {
            let request = CreatePartitionsRequest::decode(&mut reader, version);
            let topics = request.into_iter().flat_map(|request| request.topics);
            topics.map(|topic| topic.count).collect()
        }
        _ => return false,
    };
    counts
        .iter()
        .any(|count| (PARTITIONS_MAX..=REFUSED_ABOVE).contains(&i64::from(*count)))
}

fn acks(request: &Value) -> i64 {
    match request {
        Value::Struct(fields) => match fields.get("acks") {
            Some(Value::Int(acks)) => *acks,
            _ => 0,
        },
        _ => 0,
    }
}

fn framed(api: ApiKey, version: i16, correlation: i32, body: &[u8]) -> Bytes {
    let mut header = Writer::new();
    let head = RequestHeader {
        api,
        version,
        correlation_id: correlation,
        client_id: Some("fuzz".into()),
    };
    head.encode(&mut header).expect("a short header");
    let mut frame = BytesMut::new();
    frame.put_i32((header.len() + body.len()) as i32);
    frame.put_slice(&header.freeze());
    frame.put_slice(body);
    frame.freeze()
}

/// Makes something of a body that its schema does not allow, or only by chance.
fn damage(body: &mut Vec<u8>, choices: &mut Choices<'_>) {
    for _ in 0..=choices.below(3) {
        let at = (choices.below(256) << 8 | choices.below(256)) % (body.len() + 1);
        let huge: &[u8] = match choices.below(4) {
            0 => &[0x7f, 0xff, 0xff, 0xff],
            1 => &[0xff, 0xff, 0xff, 0xff, 0x0f],
            2 => &[0x80, 0, 0, 0],
            _ => &[0, 0, 0x40, 0],
        };
        match choices.below(5) {
            0 => body.truncate(at),
            1 => body.insert(at, choices.byte()),
            2 if at < body.len() => body[at] = choices.byte(),
            3 if at < body.len() => body[at] ^= 1 << choices.below(8),
            _ => {
                let end = body.len().min(at + huge.len());
                body.splice(at..end, huge.iter().copied());
            }
        }
    }
}
