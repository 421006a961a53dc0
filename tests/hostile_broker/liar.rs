//! A broker that answers by seed: mostly what the schema allows, with names that the tools know; some of it damaged, cut
//! short, under a wrong number, or not at all.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use broker::handlers::SUPPORTED;
use protocol::ApiKey;
use protocol::frame::{RequestHeader, encode_response, encode_response_header};
use protocol::messages::{ApiVersionsResponse, ApiVersionsResponseApiVersion};
use protocol::wire::{Reader, Writer};

use crate::choices::Choices;
use crate::generate::{Generator, responses};
use crate::interpreter::{self, Noise};
use crate::known::Known;
use crate::random::Random;
use crate::schema::Message;

/// Bytes of choices for one answer at most.
const LENGTH: u64 = 500;

#[derive(Default)]
struct Shared {
    seed: AtomicU64,
    /// Answers of this run, which is the other half of the seed of each.
    of_run: AtomicU64,
    answers: AtomicU64,
}

pub struct Liar {
    port: u16,
    shared: Arc<Shared>,
}

impl Liar {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let shared = Arc::<Shared>::default();
        let for_thread = shared.clone();
        thread::spawn(move || {
            let schema = Arc::new(responses());
            for stream in listener.incoming().flatten() {
                let (shared, schema) = (for_thread.clone(), schema.clone());
                thread::spawn(move || serve(stream, &shared, &schema, port));
            }
        });
        Self { port, shared }
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// What comes now is another run.
    pub fn begin(&self, seed: u64) {
        self.shared.seed.store(seed, Ordering::SeqCst);
        self.shared.of_run.store(0, Ordering::SeqCst);
    }

    /// How many it has given so far.
    pub fn answers(&self) -> u64 {
        self.shared.answers.load(Ordering::SeqCst)
    }
}

/// One connection, until the tool ends it or a seed does.
fn serve(mut stream: TcpStream, shared: &Shared, schema: &BTreeMap<i16, Message>, port: u16) {
    let mut length = [0; 4];
    let _ = stream.set_nodelay(true);
    while stream.read_exact(&mut length).is_ok() {
        let mut frame = vec![0; u32::from_be_bytes(length) as usize];
        if stream.read_exact(&mut frame).is_err() {
            return;
        }
        let header = RequestHeader::decode(&mut Reader::new(frame.into())).expect("a tool's own");
        let number = shared.of_run.fetch_add(1, Ordering::SeqCst);
        shared.answers.fetch_add(1, Ordering::SeqCst);
        let seed = shared.seed.load(Ordering::SeqCst);
        let mut random = Random::of(header.api.name(), number as i16, seed);
        let Some(answer) = answer(&header, &mut random, schema, port) else {
            return;
        };
        if stream.write_all(&answer).is_err() {
            return;
        }
    }
}

/// A whole frame, or none where the connection ends.
fn answer(
    header: &RequestHeader,
    random: &mut Random,
    schema: &BTreeMap<i16, Message>,
    port: u16,
) -> Option<Vec<u8>> {
    if header.api == ApiKey::ApiVersions && !random.one_in(12) {
        return Some(sound_versions(header));
    }
    if random.one_in(60) {
        return None;
    }
    let most = random.below(LENGTH) as usize;
    let bytes = random.bytes(most);
    let message = &schema[&header.api.code()];
    let known = Known {
        port: Some(port),
        ..Known::default()
    };
    let mut choices = Choices::new(&bytes);
    let value = Generator {
        message,
        version: header.version,
        choices: &mut choices,
        known: &known,
    }
    .value();
    let body = interpreter::write(message, &value, header.version, Noise::None);
    let mut body = body.unwrap_or_else(|refusal| panic!("{}: {refusal:?}", message.name));
    if random.one_in(12) {
        for _ in 0..=random.below(3) {
            damage(&mut body, random);
        }
    }
    let correlation = match random.one_in(80) {
        true => random.next() as i32,
        false => header.correlation_id,
    };
    let mut writer = Writer::new();
    encode_response_header(&mut writer, header.api, header.version, correlation);
    let length = writer.len() + body.len();
    let claimed = match random.one_in(80) {
        true => random.next() as i32,
        false => length as i32,
    };
    let mut frame = claimed.to_be_bytes().to_vec();
    frame.extend_from_slice(&writer.freeze());
    frame.extend_from_slice(&body);
    Some(frame)
}

fn sound_versions(header: &RequestHeader) -> Vec<u8> {
    let rows = SUPPORTED.iter().filter_map(|api| {
        let range = broker::handlers::supported(*api, protocol::ListenerKind::Broker)?;
        Some(ApiVersionsResponseApiVersion {
            api_key: api.code(),
            min_version: range.min,
            max_version: range.max,
        })
    });
    let response = ApiVersionsResponse {
        api_keys: rows.collect(),
        ..ApiVersionsResponse::default()
    };
    let frame = encode_response(&response, header.version, header.correlation_id);
    frame.expect("a sound answer").concat()
}

fn damage(body: &mut Vec<u8>, random: &mut Random) {
    let at = random.below(body.len() as u64 + 1) as usize;
    match random.below(5) {
        0 => body.truncate(at),
        1 => body.insert(at, random.next() as u8),
        2 if at < body.len() => body[at] = random.next() as u8,
        3 if at < body.len() => body[at] ^= 1 << random.below(8),
        _ => {
            let end = body.len().min(at + 4);
            body.splice(at..end, [0x7f, 0xff, 0xff, 0xff]);
        }
    }
}
