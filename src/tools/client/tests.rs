//! Against a broker made by hand, which answers what a test says.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;

use bytes::Bytes;
use protocol::frame::{self, RequestHeader};
use protocol::messages::{
    ApiVersionsResponse, ApiVersionsResponseApiVersion, HeartbeatRequest, HeartbeatResponse,
    MetadataResponse, MetadataResponseMetadataResponseBroker,
};
use protocol::wire::Reader;
use protocol::{ApiKey, ErrorCode};

use super::*;

/// One connection of the broker; requests are answered as `answer` says.
fn broker(
    answer: impl Fn(&RequestHeader, &mut TcpStream) + Send + 'static,
) -> (Address, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let thread = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut length = [0; 4];
        while stream.read_exact(&mut length).is_ok() {
            let mut frame = vec![0; u32::from_be_bytes(length) as usize];
            stream.read_exact(&mut frame).unwrap();
            let header = RequestHeader::decode(&mut Reader::new(frame.into())).unwrap();
            answer(&header, &mut stream);
        }
    });
    let host = "127.0.0.1".to_owned();
    (Address { host, port }, thread)
}

fn versions(ranges: &[(ApiKey, i16, i16)]) -> ApiVersionsResponse {
    let row =
        |&(api, min_version, max_version): &(ApiKey, i16, i16)| ApiVersionsResponseApiVersion {
            api_key: api.code(),
            min_version,
            max_version,
        };
    ApiVersionsResponse {
        api_keys: ranges.iter().map(row).collect(),
        ..ApiVersionsResponse::default()
    }
}

fn write(stream: &mut TcpStream, frame: &[Bytes]) {
    stream.write_all(&frame.concat()).unwrap();
}

fn settings(address: &Address, properties: &[(&str, &str)]) -> Settings {
    let properties = properties
        .iter()
        .map(|(key, value)| (key.to_string(), value.to_string()));
    Settings::new(Target::Brokers, &address.to_string(), properties.collect()).unwrap()
}

#[test]
fn an_old_broker_says_what_it_speaks_and_is_spoken_to_so() {
    let (address, thread) = broker(|header, stream| {
        let old = [(ApiKey::ApiVersions, 0, 2), (ApiKey::Heartbeat, 0, 1)];
        let answer = match (header.api, header.version) {
            (ApiKey::ApiVersions, version @ 0..=2) => {
                frame::encode_response(&versions(&old), version, header.correlation_id)
            }
            (ApiKey::ApiVersions, _) => {
                let refusal = ApiVersionsResponse {
                    error_code: ErrorCode::UnsupportedVersion.code(),
                    ..versions(&old)
                };
                frame::encode_response(&refusal, 0, header.correlation_id)
            }
            (ApiKey::Heartbeat, 1) => {
                let beat = HeartbeatResponse {
                    error_code: 27,
                    ..HeartbeatResponse::default()
                };
                frame::encode_response(&beat, 1, header.correlation_id)
            }
            other => panic!("{other:?}"),
        };
        write(stream, &answer.unwrap());
    });
    let mut connection = Connection::open(&address, &settings(&address, &[])).unwrap();
    assert_eq!(connection.version::<HeartbeatRequest>().unwrap(), 1);
    let beat = connection.send(&HeartbeatRequest::default()).unwrap();
    assert_eq!(beat.error_code, 27);
    let missing = connection.send(&MetadataRequest::default()).unwrap_err();
    assert_eq!(
        missing.to_string(),
        format!(
            "{address} speaks no Metadata, this tool in versions 0-13: they have none in common"
        )
    );
    drop(connection);
    thread.join().unwrap();
}

/// Answers ApiVersions as a new broker does, and hands on the rest.
fn modern(
    answer: impl Fn(&RequestHeader, &mut TcpStream) + Send + 'static,
) -> (Address, JoinHandle<()>) {
    broker(move |header, stream| match header.api {
        ApiKey::ApiVersions => {
            let all = [(ApiKey::Heartbeat, 0, 4), (ApiKey::Metadata, 0, 13)];
            let frame =
                frame::encode_response(&versions(&all), header.version, header.correlation_id);
            write(stream, &frame.unwrap());
        }
        _ => answer(header, stream),
    })
}

#[test]
fn answers_of_requests_under_way_are_kept_for_their_turn() {
    let (address, thread) = modern(|header, stream| {
        let beat = HeartbeatResponse {
            throttle_time_ms: header.correlation_id,
            ..HeartbeatResponse::default()
        };
        let frame = frame::encode_response(&beat, header.version, header.correlation_id);
        write(stream, &frame.unwrap());
    });
    let mut connection = Connection::open(&address, &settings(&address, &[])).unwrap();
    let first = connection.start(&HeartbeatRequest::default()).unwrap();
    let second = connection.start(&HeartbeatRequest::default()).unwrap();
    let late = connection.finish(second).unwrap().throttle_time_ms;
    let early = connection.finish(first).unwrap().throttle_time_ms;
    assert_eq!(late, early + 1);
    drop(connection);
    thread.join().unwrap();
}

#[test]
fn silence_and_a_closed_connection_are_told_apart() {
    let (address, thread) = modern(|header, stream| {
        if header.client_id.as_deref() == Some("closed") {
            stream.shutdown(std::net::Shutdown::Both).unwrap();
        }
    });
    let settings_of = |client_id: &str| {
        settings(
            &address,
            &[("request.timeout.ms", "300"), ("client.id", client_id)],
        )
    };
    let mut connection = Connection::open(&address, &settings_of("closed")).unwrap();
    let error = connection.send(&HeartbeatRequest::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("the connection to {address} broke (closed by the other side)")
    );
    assert!(error.is_passing());
    thread.join().unwrap();

    let (address, thread) = modern(|_, _| ());
    let settings = settings(&address, &[("request.timeout.ms", "300")]);
    let mut connection = Connection::open(&address, &settings).unwrap();
    let error = connection.send(&HeartbeatRequest::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("{address} did not answer Heartbeat within 300 ms (request.timeout.ms)")
    );
    drop(connection);
    thread.join().unwrap();
}

#[test]
fn nobody_at_home_and_nodes_at_wrong_addresses_are_named() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let gone = free.local_addr().unwrap();
    drop(free);
    let address = Address {
        host: gone.ip().to_string(),
        port: gone.port(),
    };
    let error = Client::connect(settings(&address, &[])).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "no broker answers at {gone} (Connection refused (os error 111)): is it running, and is \
             --bootstrap-server right?"
        )
    );

    let port = i32::from(gone.port());
    let (address, thread) = modern(move |header, stream| {
        let metadata = MetadataResponse {
            brokers: [MetadataResponseMetadataResponseBroker {
                node_id: 7,
                host: "127.0.0.1".into(),
                port,
                ..MetadataResponseMetadataResponseBroker::default()
            }]
            .into(),
            ..MetadataResponse::default()
        };
        let frame = frame::encode_response(&metadata, header.version, header.correlation_id);
        write(stream, &frame.unwrap());
    });
    let mut client = Client::connect(settings(&address, &[])).unwrap();
    let error = client
        .send(Node::Id(7), &HeartbeatRequest::default())
        .unwrap_err();
    assert!(
        error.to_string().starts_with(&format!(
            "node 7 is advertised at {gone} and does not answer there"
        )),
        "{error}"
    );
    assert!(matches!(
        client.send(Node::Id(8), &HeartbeatRequest::default()),
        Err(ClientError::UnknownNode(8))
    ));
    drop(client);
    thread.join().unwrap();
}
