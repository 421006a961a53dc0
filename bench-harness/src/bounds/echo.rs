//! The bound of latency: a server that appends each request to a file and answers, under the scenario's own producers.
//!
//! It speaks the least of Kafka's protocol that they need, and of a request reads only what its answer has to name.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Result, anyhow, bail, ensure};
use bytes::{Buf, BufMut, BytesMut};
use kafka_protocol::messages::{
    ApiKey, ApiVersionsRequest, InitProducerIdRequest, InitProducerIdResponse, ProducerId,
};

use super::Place;
use crate::cluster::Placed;
use crate::hardware::files::Scratch;
use crate::hardware::loops::Moved;
use crate::hardware::{processor_seconds, thread_seconds};
use crate::measure::Phases;
use crate::placement::{Cores, pin_thread};
use crate::report::{Bound, BoundKind, Latency, ratio};
use crate::run;
use crate::scenario::Scenario;
use crate::sink;

/// Produce 3 is the last version but few whose fields have fixed places, and that every client speaks.
const SERVED: [(ApiKey, i16, i16); 3] = [
    (ApiKey::Produce, 3, 3),
    (ApiKey::ApiVersions, 0, 3),
    (ApiKey::InitProducerId, 0, 1),
];
/// Until all producers have made what they send, and files have their first pages.
const WARM_UP: Duration = Duration::from_secs(1);
/// What is received at a time; more where one request is larger.
const RECEIVED: usize = 256 << 10;
const LARGEST_REQUEST: usize = 128 << 20;
/// A generator that is later than this had no time to be anyone's measure, in microseconds.
const LATE: u64 = 2000;

/// Drives the server with the producers of the scenario, at its rate if it has one. Latencies count from the intended send.
///
/// # Errors
/// I/O errors, and those of the producers.
pub fn measure(scenario: &Scenario, place: &Place<'_>) -> Result<Bound> {
    let server = Server::start(place)?;
    let placed = Placed {
        topic: "bound".to_owned(),
        leaders: vec![(
            server.address.clone(),
            (0..i32::try_from(scenario.topic.partitions)?).collect(),
        )],
    };
    let measured = Duration::from_secs_f64(place.seconds);
    let phases = Arc::new(Phases::new(WARM_UP, measured));
    let processor = processor_seconds();
    let recorder = run::produce(scenario, &placed, place.cores, &phases, place.interrupt);
    let served = server.end()?;
    let generator = processor_seconds() - processor - served.processor;
    let recorder = recorder?;
    if let Some(error) = recorder.first_error {
        bail!(error);
    }
    let (steps, bytes) = (recorder.acknowledged_batches, recorder.acknowledged_bytes);
    // The server spent its time on the batches of the warm-up, too.
    let counted = ratio(steps as f64, served.steps as f64);
    let moved = Moved {
        steps,
        bytes,
        seconds: place.seconds,
        processor: served.processor * counted,
    };
    let late = recorder.lateness.value_at_percentile(99.0);
    if late > LATE {
        crate::say(&format!(
            "warning: the generator itself was late beside the bound, p99 {:.1} ms",
            late as f64 / 1000.0
        ));
    }
    let shape = scenario.shape();
    let rate = match shape.rate {
        Some(rate) => format!("at {rate} records/s"),
        None => "as fast as answers come".to_owned(),
    };
    let about = format!(
        "echo + append: requests appended through the page cache, to a file a connection, and answered; connections: {}, {rate}",
        shape.count
    );
    Ok(Bound {
        generator_cpu: generator.max(0.0) * counted,
        latency: Latency::new(&recorder.publish)?,
        ..Bound::new(BoundKind::Echo, about, moved)
    })
}

/// Threads that serve until they are asked to end.
struct Server {
    address: String,
    ending: Arc<AtomicBool>,
    accepting: JoinHandle<Result<Moved>>,
}

impl Server {
    fn start(place: &Place<'_>) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?.to_string();
        let ending = Arc::new(AtomicBool::new(false));
        let accepting = std::thread::spawn({
            let ending = ending.clone();
            let (folder, cores) = (place.folder.to_owned(), place.cores.clone());
            move || accept(&listener, &ending, &folder, &cores)
        });
        Ok(Self {
            address,
            ending,
            accepting,
        })
    }

    /// Takes no more connections, and ends those that there are.
    fn end(self) -> Result<Moved> {
        self.ending.store(true, Ordering::Relaxed);
        TcpStream::connect(&self.address)?;
        let accepted = self.accepting.join();
        accepted.map_err(|_| anyhow!("the server panicked"))?
    }
}

fn accept(
    listener: &TcpListener,
    ending: &AtomicBool,
    folder: &Path,
    cores: &Cores,
) -> Result<Moved> {
    pin_thread(&cores.targets);
    let mut connections = Vec::new();
    loop {
        let (stream, _) = listener.accept()?;
        if ending.load(Ordering::Relaxed) {
            break;
        }
        let scratch = Scratch::buffered(folder)?;
        let end = stream.try_clone()?;
        let serving = std::thread::spawn(move || serve(stream, &scratch.file));
        connections.push((end, serving));
    }
    let mut all = Moved::default();
    for (end, serving) in connections {
        // The producers' executors are gone, but may have left their sockets open.
        let _ = end.shutdown(Shutdown::Both);
        let one = serving.join();
        all = all.beside(one.map_err(|_| anyhow!("a connection panicked"))??);
    }
    Ok(all)
}

/// Serves one connection to its end, and counts no seconds: whatever requests have come are appended with one write and answered with another.
fn serve(mut stream: TcpStream, file: &File) -> Result<Moved> {
    stream.set_nodelay(true)?;
    let mut received = vec![0; RECEIVED];
    let (mut filled, mut answers, mut moved) = (0, BytesMut::new(), Moved::default());
    let processor = thread_seconds();
    // A connection that breaks is the end of it, too: the producers tell why.
    while let Ok(count @ 1..) = stream.read(&mut received[filled..]) {
        filled += count;
        let (whole, batches) = answer_all(&received[..filled], &mut answers)?;
        if whole > 0 {
            rustix::io::pwrite(file, &received[..whole], moved.bytes)?;
            stream.write_all(&answers)?;
            answers.clear();
            received.copy_within(whole..filled, 0);
            filled -= whole;
            moved.bytes += whole as u64;
            moved.steps += batches;
        }
        if filled == received.len() {
            ensure!(filled < LARGEST_REQUEST, "a request of over {filled} bytes");
            received.resize(2 * filled, 0);
        }
    }
    moved.processor = thread_seconds() - processor;
    Ok(moved)
}

/// Answers every request that is there in whole: how many bytes those are, and how many batches they bring.
fn answer_all(mut received: &[u8], answers: &mut BytesMut) -> Result<(usize, u64)> {
    let (all, mut batches) = (received.len(), 0);
    while let Some((length, rest)) = received.split_first_chunk() {
        let length = usize::try_from(i32::from_be_bytes(*length))?;
        let Some((request, rest)) = rest.split_at_checked(length) else {
            break;
        };
        batches += answer(request, answers)?;
        received = rest;
    }
    Ok((all - received.len(), batches))
}

fn answer(mut request: &[u8], out: &mut BytesMut) -> Result<u64> {
    let (key, version) = (request.try_get_i16()?, request.try_get_i16()?);
    let correlation = request.try_get_i32()?;
    match ApiKey::try_from(key) {
        Ok(ApiKey::Produce) => return produce(request, correlation, out),
        Ok(ApiKey::ApiVersions) => {
            let served = sink::api_versions(&SERVED);
            sink::write::<ApiVersionsRequest>(out, correlation, version, &served)?;
        }
        Ok(ApiKey::InitProducerId) => {
            let given = InitProducerIdResponse::default().with_producer_id(ProducerId(1));
            sink::write::<InitProducerIdRequest>(out, correlation, version, &given)?;
        }
        _ => bail!("API {key}: not served"),
    }
    Ok(0)
}

/// Produce 3: each partition is answered at offset 0, as nobody reads here.
fn produce(mut request: &[u8], correlation: i32, out: &mut BytesMut) -> Result<u64> {
    text(&mut request)?; // client
    text(&mut request)?; // transaction
    let acks = request.try_get_i16()?;
    request.try_get_i32()?; // patience
    let begin = out.len();
    out.put_i32(0);
    out.put_i32(correlation);
    let (topics, mut batches) = (request.try_get_i32()?, 0);
    out.put_i32(topics);
    for _ in 0..topics {
        let name = text(&mut request)?;
        out.put_i16(i16::try_from(name.len())?);
        out.put_slice(name);
        let partitions = request.try_get_i32()?;
        out.put_i32(partitions);
        for _ in 0..partitions {
            out.put_i32(request.try_get_i32()?);
            out.put_i16(0); // no error
            out.put_i64(0); // offset
            out.put_i64(-1); // no time of append
            let bytes = request.try_get_i32()?;
            skip(&mut request, bytes.try_into()?)?;
            batches += 1;
        }
    }
    out.put_i32(0); // not throttled
    if acks == 0 {
        out.truncate(begin);
    } else {
        let length = i32::try_from(out.len() - begin - 4)?;
        out[begin..begin + 4].copy_from_slice(&length.to_be_bytes());
    }
    Ok(batches)
}

/// A string, or nothing where it is absent.
fn text<'a>(request: &mut &'a [u8]) -> Result<&'a [u8]> {
    match request.try_get_i16()? {
        -1 => Ok(&[]),
        length => skip(request, length.try_into()?),
    }
}

fn skip<'a>(request: &mut &'a [u8], length: usize) -> Result<&'a [u8]> {
    let cut = request.split_at_checked(length);
    let (skipped, rest) = cut.ok_or_else(|| anyhow!("a request that ends early"))?;
    *request = rest;
    Ok(skipped)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
    use kafka_protocol::messages::{ProduceRequest, RequestHeader};
    use kafka_protocol::protocol::{Encodable, HeaderVersion, StrBytes};

    fn request(acks: i16) -> Vec<u8> {
        let partition = |index| {
            PartitionProduceData::default()
                .with_index(index)
                .with_records(Some(Bytes::from_static(&[9; 70])))
        };
        let topic = TopicProduceData::default()
            .with_name(crate::cluster::topic_name("bound"))
            .with_partition_data(vec![partition(3), partition(8)]);
        let mut bytes = BytesMut::zeroed(4);
        RequestHeader::default()
            .with_request_api_version(3)
            .with_correlation_id(77)
            .with_client_id(Some(StrBytes::from_static_str("test")))
            .encode(&mut bytes, ProduceRequest::header_version(3))
            .expect("a header");
        ProduceRequest::default()
            .with_transactional_id(None)
            .with_acks(acks)
            .with_topic_data(vec![topic])
            .encode(&mut bytes, 3)
            .expect("a request");
        let length = (bytes.len() - 4) as u32;
        bytes[..4].copy_from_slice(&length.to_be_bytes());
        bytes.to_vec()
    }

    #[test]
    fn what_came_in_whole_is_answered_as_kafka_does() {
        let request = request(-1);
        let mut received = request.repeat(2);
        received.extend_from_slice(&request[..50]);
        let mut answers = BytesMut::new();
        let answered = answer_all(&received, &mut answers).expect("answers");
        assert_eq!(answered, (2 * request.len(), 4));
        let half = answers.len() / 2;
        assert_eq!(answers[..half], answers[half..]);
        assert_eq!(answers[..8], [0, 0, 0, half as u8 - 4, 0, 0, 0, 77]);
        let frame = answers.freeze().slice(4..half);
        let answer = crate::connection::decode::<ProduceRequest>(frame, 3).expect("an answer");
        let partitions = &answer.responses[0].partition_responses;
        assert_eq!(answer.responses[0].name.as_str(), "bound");
        assert_eq!((partitions[0].index, partitions[1].index), (3, 8));
        assert!(partitions.iter().all(|answer| answer.error_code == 0));
    }

    #[test]
    fn who_wants_no_answer_gets_none() {
        let mut answers = BytesMut::new();
        let request = request(0);
        let answered = answer_all(&request, &mut answers).expect("none");
        assert_eq!((answered, answers.len()), ((request.len(), 2), 0));
    }

    #[test]
    fn a_request_that_lies_about_its_length_is_an_error() {
        let mut request = request(-1);
        let last = request.len() - 70 - 4;
        request[last..last + 4].copy_from_slice(&71_i32.to_be_bytes());
        let error = answer_all(&request, &mut BytesMut::new()).expect_err("too short");
        assert!(error.to_string().contains("ends early"), "{error}");
    }
}
