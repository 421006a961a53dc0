//! The part of the consumer protocol that the coordinator looks into: the subscribed topics.
//!
//! Members of protocol type `consumer` put `ConsumerProtocolSubscription` into their metadata. All
//! its versions start with the fields of version 0: version, topics, user data.

use std::collections::BTreeSet;

use protocol::Str;

/// The topics of a subscription, or None if the bytes are not one.
pub fn subscribed_topics(metadata: &[u8]) -> Option<BTreeSet<Str>> {
    let mut reader = Fields { rest: metadata };
    if reader.int16()? < 0 {
        return None;
    }
    let count = usize::try_from(reader.int32()?).ok()?;
    // A topic takes its length at least, so a count beyond the bytes left is a lie.
    if count > reader.rest.len() / 2 {
        return None;
    }
    let mut topics = BTreeSet::new();
    for _ in 0..count {
        let length = usize::try_from(reader.int16()?).ok()?;
        let text = std::str::from_utf8(reader.take(length)?).ok()?;
        topics.insert(Str::from(text.to_owned()));
    }
    // User data is nullable bytes: a length of -1 or that many bytes.
    match usize::try_from(reader.int32()?) {
        Ok(length) => reader.take(length).map(|_| topics),
        Err(_) => Some(topics),
    }
}

struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }

    fn int16(&mut self) -> Option<i16> {
        Some(i16::from_be_bytes(self.take(2)?.try_into().ok()?))
    }

    fn int32(&mut self) -> Option<i32> {
        Some(i32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subscription(version: i16, topics: &[&str], tail: &[u8]) -> Vec<u8> {
        let mut bytes = version.to_be_bytes().to_vec();
        bytes.extend((topics.len() as i32).to_be_bytes());
        for topic in topics {
            bytes.extend((topic.len() as i16).to_be_bytes());
            bytes.extend(topic.as_bytes());
        }
        bytes.extend(tail);
        bytes
    }

    #[test]
    fn reads_every_version_by_its_first_fields() {
        let null_user_data = (-1i32).to_be_bytes();
        let topics = subscribed_topics(&subscription(0, &["a", "b"], &null_user_data));
        let names: Vec<String> = topics
            .unwrap()
            .iter()
            .map(|topic| topic.to_string())
            .collect();
        assert_eq!(names, ["a", "b"]);
        let mut later = null_user_data.to_vec();
        later.extend([0, 0, 0, 0, 0xff, 0xff]);
        assert_eq!(
            subscribed_topics(&subscription(3, &["a"], &later))
                .unwrap()
                .len(),
            1
        );
    }

    #[test]
    fn refuses_bytes_that_are_no_subscription() {
        let whole = subscription(0, &["topic"], &2i32.to_be_bytes());
        for cut in 0..whole.len() {
            assert_eq!(subscribed_topics(&whole[..cut]), None);
        }
        assert_eq!(subscribed_topics(&whole), None, "user data cut short");
        let claims = [0, 0, 0x7f, 0xff, 0xff, 0xff];
        assert_eq!(subscribed_topics(&claims), None);
    }
}
