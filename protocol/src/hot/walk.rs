use std::marker::PhantomData;

use crate::wire::{DecodeError, Reader};
use crate::{Str, Uuid};

/// How a request or an answer names a topic, which its version decides.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TopicKey {
    Name(Str),
    Id(Uuid),
}

/// What stands below a topic, one per partition.
pub trait Entry: Clone {
    /// Fewest bytes that one takes in any version.
    const BYTES_MIN: usize;

    fn read(reader: &mut Reader, version: i16) -> Result<Self, DecodeError>;
}

/// An entry with the topic that it stands below.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicEntry<E> {
    /// Place of the topic in the request. A topic may be there twice, and one without entries
    /// leaves a gap.
    pub topic_index: usize,
    pub topic: TopicKey,
    pub entry: E,
}

/// The form of `[topic, [entry]]` in a version of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form {
    pub version: i16,
    /// Compact lengths, and tags at the end of each topic.
    pub flexible: bool,
    pub by_id: bool,
}

impl Form {
    /// Fewest bytes of a topic: its name or id, and a count.
    fn topic_bytes_min(self) -> usize {
        match (self.by_id, self.flexible) {
            (true, _) => 16 + 1,
            (false, true) => 1 + 1,
            (false, false) => 2 + 4,
        }
    }

    fn read_topic(self, reader: &mut Reader) -> Result<TopicKey, DecodeError> {
        if self.by_id {
            reader.uuid().map(TopicKey::Id)
        } else {
            reader.string(self.flexible).map(TopicKey::Name)
        }
    }
}

/// Goes through the entries of all topics, in order, without memory of its own.
///
/// The bytes were walked once before, when the request was parsed, so this cannot fail.
#[derive(Clone, Debug)]
pub struct Walk<E> {
    reader: Reader,
    form: Form,
    topics_left: usize,
    /// Of the topic at hand, and of all.
    entries_left: usize,
    total_left: usize,
    topics_begun: usize,
    topic: TopicKey,
    entry: PhantomData<E>,
}

impl<E: Entry> Walk<E> {
    /// Checks the section that starts where `reader` stands, and moves `reader` behind it.
    pub(super) fn parse(reader: &mut Reader, form: Form) -> Result<Self, DecodeError> {
        let topics_left = reader
            .count(form.flexible, form.topic_bytes_min())?
            .ok_or_else(|| reader.null("topics"))?;
        let mut walk = Walk::new(reader, form, topics_left);
        let mut ahead = walk.clone();
        while ahead.try_next()?.is_some() {
            walk.total_left += 1;
        }
        *reader = ahead.reader;
        Ok(walk)
    }

    /// Of a section that the version does not have.
    pub(super) fn empty(reader: &Reader, form: Form) -> Self {
        Walk::new(reader, form, 0)
    }

    fn new(reader: &Reader, form: Form, topics_left: usize) -> Self {
        Walk {
            reader: reader.clone(),
            form,
            topics_left,
            entries_left: 0,
            total_left: 0,
            topics_begun: 0,
            topic: TopicKey::Id(Uuid::ZERO),
            entry: PhantomData,
        }
    }

    fn try_next(&mut self) -> Result<Option<TopicEntry<E>>, DecodeError> {
        while self.entries_left == 0 {
            if self.topics_left == 0 {
                return Ok(None);
            }
            self.begin_topic()?;
        }
        let entry = E::read(&mut self.reader, self.form.version)?;
        let topic_index = self.topics_begun - 1;
        let topic = self.topic.clone();
        self.entries_left -= 1;
        if self.entries_left == 0 {
            self.end_topic()?;
        }
        Ok(Some(TopicEntry {
            topic_index,
            topic,
            entry,
        }))
    }

    fn begin_topic(&mut self) -> Result<(), DecodeError> {
        let reader = &mut self.reader;
        self.topic = self.form.read_topic(reader)?;
        self.entries_left = reader
            .count(self.form.flexible, E::BYTES_MIN)?
            .ok_or_else(|| reader.null("partitions"))?;
        self.topics_left -= 1;
        self.topics_begun += 1;
        if self.entries_left == 0 {
            self.end_topic()?;
        }
        Ok(())
    }

    fn end_topic(&mut self) -> Result<(), DecodeError> {
        if self.form.flexible {
            self.reader.skip_tags()
        } else {
            Ok(())
        }
    }
}

impl<E: Entry> Iterator for Walk<E> {
    type Item = TopicEntry<E>;

    fn next(&mut self) -> Option<TopicEntry<E>> {
        let next = self
            .try_next()
            .expect("the same bytes were walked when the request was parsed");
        self.total_left -= usize::from(next.is_some());
        next
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.total_left, Some(self.total_left))
    }
}

impl<E: Entry> ExactSizeIterator for Walk<E> {}
