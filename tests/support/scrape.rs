//! The HTTP port of a broker, read plainly.
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::TcpStream;

/// Sends bytes and reads to the end: status and body.
pub fn exchange(port: u16, request: &[u8]) -> (u16, String) {
    try_exchange(port, request).expect("the HTTP port answers")
}

fn try_exchange(port: u16, request: &[u8]) -> io::Result<(u16, String)> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.write_all(request)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").expect("headers end");
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
    let length = format!("content-length: {}", body.len());
    assert!(head.contains(&length), "{head}");
    Ok((status.expect("a status"), body.to_owned()))
}

pub fn get(port: u16, path: &str) -> (u16, String) {
    try_get(port, path).expect("the HTTP port answers")
}

/// Where perhaps nobody listens yet, or still a process that was killed: the kernel takes its ring down after it.
pub fn try_get(port: u16, path: &str) -> io::Result<(u16, String)> {
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n");
    try_exchange(port, request.as_bytes())
}

/// The values of a scrape by name, added up over cores and all labels.
pub fn sums(port: u16) -> BTreeMap<String, f64> {
    let (status, text) = get(port, "/metrics");
    assert_eq!(status, 200);
    let mut sums = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (front, value) = line.rsplit_once(' ').expect("a value");
        let name = front.split('{').next().unwrap_or_default();
        *sums.entry(name.to_owned()).or_insert(0.0) += value.parse::<f64>().expect("a number");
    }
    sums
}
