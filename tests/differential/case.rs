//! A case: a sound request, one or two things done to it, and what must be true before and is looked at after.
use crate::mutation::Mutation;
use crate::side::{Frame, Request};
use crate::stage::Stage;
use crate::value::Value;

/// Names that no other case has.
#[derive(Clone, Copy, Debug)]
pub struct Names(pub usize);

impl Names {
    fn start(self) -> String {
        // Letters, so that it is never mistaken for a port.
        let digits = format!("{:05}", self.0).into_bytes();
        let letters = digits
            .into_iter()
            .map(|digit| char::from(digit - b'0' + b'a'));
        format!("new-{}-", letters.collect::<String>())
    }

    pub fn of(&self, what: &str) -> String {
        self.start() + what
    }

    pub fn text(&self, what: &str) -> Value {
        Value::Text(self.of(what))
    }

    pub fn own(&self, name: &str) -> bool {
        name.starts_with(&self.start())
    }
}

/// API, version and body.
pub type Asked = (&'static str, i16, Value);

/// A sound request and what it stands on.
#[derive(Clone)]
pub struct Base {
    pub api: String,
    pub name: String,
    pub versions: std::ops::RangeInclusive<i16>,
    /// Makes what the request needs, under names of the case.
    pub prepare: fn(&mut Stage, Names),
    pub request: fn(Names) -> Value,
    /// What is asked afterwards, to see what the request did.
    pub then: Option<fn(Names) -> Asked>,
    /// Batches to try where the request has records.
    pub records: fn() -> Vec<(&'static str, Value)>,
    /// Mutations that no schema tells of.
    pub more: fn() -> Vec<Mutation>,
    /// Which mutations are worth trying, by a part of their names; none where it is asked as it is.
    pub mutated: Option<&'static str>,
    /// And which are tried elsewhere.
    pub without: &'static [&'static str],
}

impl Base {
    pub fn new(api: &str, name: &str, request: fn(Names) -> Value) -> Self {
        Self {
            api: api.to_owned(),
            name: name.to_owned(),
            versions: 0..=i16::MAX,
            prepare: |_, _| {},
            request,
            then: None,
            records: Vec::new,
            more: Vec::new,
            mutated: Some(""),
            without: &[],
        }
    }

    pub fn prepare(mut self, prepare: fn(&mut Stage, Names)) -> Self {
        self.prepare = prepare;
        self
    }

    pub fn then(mut self, then: fn(Names) -> Asked) -> Self {
        self.then = Some(then);
        self
    }

    pub fn versions(mut self, versions: std::ops::RangeInclusive<i16>) -> Self {
        self.versions = versions;
        self
    }

    pub fn records(mut self, records: fn() -> Vec<(&'static str, Value)>) -> Self {
        self.records = records;
        self
    }

    pub fn more(mut self, more: fn() -> Vec<Mutation>) -> Self {
        self.more = more;
        self
    }

    /// Only mutations with that in their names: the others are tried on another base.
    pub fn only(mut self, part: &'static str) -> Self {
        self.mutated = Some(part);
        self
    }

    /// No mutations with one of these in their names: they are tried on another base.
    pub fn without(mut self, parts: &'static [&'static str]) -> Self {
        self.without = parts;
        self
    }

    /// Whether it is asked as it is, and nothing else.
    pub fn is_one_case(&self) -> bool {
        self.mutated.is_none() && (self.more)().is_empty()
    }

    /// Asked as it is, in every version.
    pub fn unbroken(mut self) -> Self {
        self.mutated = None;
        self
    }
}

/// One case, by its place in the lists of bases and mutations.
#[derive(Clone)]
pub struct Case {
    pub base: Base,
    pub version: i16,
    pub mutations: Vec<Mutation>,
}

impl Case {
    pub fn name(&self) -> String {
        let done: Vec<&str> = self
            .mutations
            .iter()
            .map(|mutation| mutation.name.as_str())
            .collect();
        if done.is_empty() {
            format!("{}: as it is", self.base.name)
        } else {
            format!("{}: {}", self.base.name, done.join(" and "))
        }
    }

    pub fn request(&self, names: Names) -> Request {
        let mut request = Request {
            api: self.base.api.clone(),
            version: self.version,
            body: (self.base.request)(names),
            frame: Frame::Sound,
        };
        for mutation in &self.mutations {
            mutation.change.apply(&mut request);
        }
        request
    }
}
