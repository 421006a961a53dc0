//! The broker's HTTP port, read plainly.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(5);
/// A page that is longer is cut off; 100,000 partitions take less.
const BYTES_MAX: u64 = 256 << 20;

/// Where it is.
pub(super) struct Port {
    address: String,
}

type Labels = BTreeMap<String, String>;

/// Values of a scrape: by name, each with its labels.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Metrics(BTreeMap<String, Vec<(Labels, f64)>>);

impl Port {
    pub(super) fn new(address: String) -> Self {
        Port { address }
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// What the broker has counted.
    pub(super) fn metrics(&self) -> io::Result<Metrics> {
        self.get("/metrics").map(|text| Metrics::parse(&text))
    }

    /// What is not as it should be.
    pub(super) fn state(&self) -> io::Result<Value> {
        let text = self.get("/state")?;
        serde_json::from_str(&text).map_err(io::Error::other)
    }

    fn get(&self, path: &str) -> io::Result<String> {
        let missing = || io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        let first = self.address.to_socket_addrs()?.next();
        let mut stream = TcpStream::connect_timeout(&first.ok_or_else(missing)?, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nhost: {}\r\n\r\n",
            self.address
        )?;
        let mut answer = Vec::new();
        stream.take(BYTES_MAX).read_to_end(&mut answer)?;
        let answer = String::from_utf8_lossy(&answer);
        match answer.split_once("\r\n\r\n") {
            Some((head, body)) if head.split(' ').nth(1) == Some("200") => Ok(body.to_owned()),
            _ => Err(io::Error::other(format!(
                "{path} is not there: is this the port of ringmain.http.listener?"
            ))),
        }
    }
}

impl Metrics {
    fn parse(text: &str) -> Self {
        let mut metrics = Metrics::default();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let Some((front, value)) = line.rsplit_once(' ') else {
                continue;
            };
            let Ok(value) = value.parse() else { continue };
            let (name, labels) = front.split_once('{').unwrap_or((front, ""));
            let values = metrics.0.entry(name.to_owned()).or_default();
            values.push((labels_of(labels.trim_end_matches('}')), value));
        }
        metrics
    }

    /// The value of all cores and labels together.
    pub(super) fn sum(&self, name: &str) -> f64 {
        let values = self.0.get(name).into_iter().flatten();
        values.map(|(_, value)| value).sum()
    }

    /// The values of all cores together, by one label.
    pub(super) fn by(&self, name: &str, label: &str) -> BTreeMap<String, f64> {
        let mut sums = BTreeMap::new();
        for (labels, value) in self.0.get(name).into_iter().flatten() {
            let of = labels.get(label).cloned().unwrap_or_default();
            *sums.entry(of).or_insert(0.0) += value;
        }
        sums
    }
}

fn labels_of(text: &str) -> Labels {
    // Values that clients choose hold no quotes: the broker takes names of software by Kafka's rule only.
    let parts = text.split("\",").filter_map(|part| part.split_once("=\""));
    parts
        .map(|(name, value)| (name.to_owned(), value.trim_end_matches('"').to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scrape_is_read_by_name_and_label() {
        let metrics = Metrics::parse(
            "# HELP a_b Text.\na_b_total{core=\"0\",reason=\"x y\"} 2\na_b_total{core=\"1\",reason=\"x y\"} 3.5\nplain 7\n# EOF\n",
        );
        assert_eq!(metrics.sum("a_b_total"), 5.5);
        assert_eq!(
            metrics.by("a_b_total", "reason"),
            BTreeMap::from([("x y".to_owned(), 5.5)])
        );
        assert_eq!(metrics.sum("plain"), 7.0);
        assert_eq!(metrics.sum("missing"), 0.0);
    }
}
