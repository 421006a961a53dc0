//! What records hold: seeded, so that every target gets the same bytes, and with the entropy of real data.

use crate::scenario::Content;

const SERVICES: [&str; 12] = [
    "checkout",
    "payments",
    "catalog",
    "search",
    "sessions",
    "inventory",
    "shipping",
    "pricing",
    "accounts",
    "gateway",
    "recommendations",
    "notifications",
];
const LEVELS: [&str; 8] = [
    "INFO", "INFO", "INFO", "INFO", "DEBUG", "DEBUG", "WARN", "ERROR",
];
const METHODS: [&str; 5] = ["GET", "GET", "POST", "PUT", "DELETE"];
const PATHS: [&str; 10] = [
    "/v1/orders",
    "/v1/orders/items",
    "/v2/users",
    "/v2/users/preferences",
    "/health",
    "/v1/cart",
    "/v1/products",
    "/v1/products/reviews",
    "/internal/sync",
    "/v3/quotes",
];
const STATUSES: [u16; 10] = [200, 200, 200, 200, 201, 204, 304, 400, 404, 500];
const WORDS: [&str; 24] = [
    "request",
    "completed",
    "timeout",
    "retry",
    "upstream",
    "connection",
    "reset",
    "cache",
    "miss",
    "hit",
    "token",
    "expired",
    "refreshed",
    "queue",
    "drained",
    "slow",
    "query",
    "commit",
    "rollback",
    "lease",
    "granted",
    "replica",
    "lagging",
    "throttled",
];

/// Makes values and keys of records.
pub struct Contents {
    random: fastrand::Rng,
    content: Content,
    millis: u64,
}

impl Contents {
    pub fn new(content: Content, seed: u64) -> Self {
        Self {
            random: fastrand::Rng::with_seed(seed),
            content,
            millis: 1_760_000_000_000,
        }
    }

    /// Exactly `length` bytes.
    pub fn value(&mut self, length: usize) -> Vec<u8> {
        match self.content {
            Content::Zeros => vec![0; length],
            Content::Random => {
                let mut bytes = vec![0; length];
                self.random.fill(&mut bytes);
                bytes
            }
            Content::JsonLog => {
                let mut bytes = Vec::with_capacity(length + 512);
                while bytes.len() < length {
                    bytes.extend_from_slice(self.line().as_bytes());
                    bytes.push(b'\n');
                }
                bytes.truncate(length);
                bytes
            }
        }
    }

    /// One of `distinct` keys.
    pub fn key(&mut self, distinct: u32) -> Vec<u8> {
        format!("customer-{:08}", self.random.u32(0..distinct)).into_bytes()
    }

    fn line(&mut self) -> String {
        self.millis += self.random.u64(0..40);
        let millis = self.millis;
        let (level, service, method, path) = (
            self.pick(&LEVELS),
            self.pick(&SERVICES),
            self.pick(&METHODS),
            self.pick(&PATHS),
        );
        let message: Vec<&str> = (0..self.random.usize(3..9))
            .map(|_| self.pick(&WORDS))
            .collect();
        let message = message.join(" ");
        let status = STATUSES[self.random.usize(0..STATUSES.len())];
        let random = &mut self.random;
        format!(
            r#"{{"timestamp":{millis},"level":"{level}","service":"{service}","host":"ip-10-{}-{}-{}","trace_id":"{:032x}","method":"{method}","path":"{path}/{}","status":{status},"latency_us":{},"bytes":{},"message":"{message}"}}"#,
            random.u8(0..4),
            random.u8(..),
            random.u8(..),
            random.u128(..),
            random.u32(1..2_000_000),
            random.u32(80..900_000),
            random.u32(20..40_000),
        )
    }

    fn pick(&mut self, from: &[&'static str]) -> &'static str {
        from[self.random.usize(0..from.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_bytes_of_the_asked_length() {
        for content in [Content::JsonLog, Content::Random, Content::Zeros] {
            for length in [0, 1, 100, 1024, 5000] {
                let first = Contents::new(content, 7).value(length);
                assert_eq!(first.len(), length);
                assert_eq!(first, Contents::new(content, 7).value(length));
            }
        }
        assert_ne!(
            Contents::new(Content::JsonLog, 7).value(100),
            Contents::new(Content::JsonLog, 8).value(100)
        );
    }
}
