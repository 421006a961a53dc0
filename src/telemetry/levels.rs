//! How much each logger tells, and how that changes while the broker runs (BROKER_LOGGER, KIP-412).
//!
//! A logger is a module of the broker, or `root`. One without a level of its own tells as much as the nearest around it
//! that has one. Where Rust has `::` its name has a point, since Kafka's own tool takes no colon; both are understood.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use tracing::subscriber::Interest;
use tracing::{Level, Metadata, Subscriber};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::Context;
use tracing_subscriber::{Layer, Registry, reload};

/// The modules that log, and those around them, by name.
const MODULES: &[&str] = include!(concat!(env!("OUT_DIR"), "/loggers.rs"));
/// The logger around all others.
pub const ROOT: &str = "root";

/// A level by the names of Kafka, whose logger this would be in Java.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Nothing; can only be set at the start, as in Kafka.
    Off,
    /// Nothing: no line here is above an error.
    Fatal,
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

/// The levels that can be set while the broker runs.
const SETTABLE: [(&str, LogLevel); 6] = [
    ("DEBUG", LogLevel::Debug),
    ("ERROR", LogLevel::Error),
    ("FATAL", LogLevel::Fatal),
    ("INFO", LogLevel::Info),
    ("TRACE", LogLevel::Trace),
    ("WARN", LogLevel::Warn),
];

impl LogLevel {
    /// A level that an administrator names.
    pub fn settable(name: &str) -> Option<LogLevel> {
        let found = SETTABLE.iter().find(|(settable, _)| *settable == name);
        found.map(|(_, level)| *level)
    }

    /// The names of all levels that can be set, for people.
    pub fn settable_names() -> String {
        SETTABLE.map(|(name, _)| name).join(", ")
    }

    fn filter(self) -> LevelFilter {
        match self {
            LogLevel::Off | LogLevel::Fatal => LevelFilter::OFF,
            LogLevel::Error => LevelFilter::ERROR,
            LogLevel::Warn => LevelFilter::WARN,
            LogLevel::Info => LevelFilter::INFO,
            LogLevel::Debug => LevelFilter::DEBUG,
            LogLevel::Trace => LevelFilter::TRACE,
        }
    }
}

impl From<LevelFilter> for LogLevel {
    fn from(filter: LevelFilter) -> Self {
        match filter.into_level() {
            None => LogLevel::Off,
            Some(Level::ERROR) => LogLevel::Error,
            Some(Level::WARN) => LogLevel::Warn,
            Some(Level::INFO) => LogLevel::Info,
            Some(Level::DEBUG) => LogLevel::Debug,
            Some(Level::TRACE) => LogLevel::Trace,
        }
    }
}

impl fmt::Display for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LogLevel::Off => "OFF",
            LogLevel::Fatal => "FATAL",
            LogLevel::Error => "ERROR",
            LogLevel::Warn => "WARN",
            LogLevel::Info => "INFO",
            LogLevel::Debug => "DEBUG",
            LogLevel::Trace => "TRACE",
        })
    }
}

/// The logger of a module that is named as Rust has it, or as the logger already.
#[must_use]
pub fn logger_of(module: &str) -> String {
    module.replace("::", ".")
}

/// The levels that are set; as a layer it lets through what they allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Levels {
    pub root: LogLevel,
    pub own: BTreeMap<String, LogLevel>,
}

impl Default for Levels {
    fn default() -> Self {
        let own = BTreeMap::new();
        Levels {
            root: LogLevel::Info,
            own,
        }
    }
}

impl Levels {
    /// The level that holds for a module, by either name.
    pub fn effective(&self, module: &str) -> LogLevel {
        let logger = logger_of(module);
        let mut name = &*logger;
        loop {
            if let Some(level) = self.own.get(name) {
                return *level;
            }
            match name.rsplit_once('.') {
                Some((around, _)) => name = around,
                None => return self.root,
            }
        }
    }

    fn lets_through(&self, metadata: &Metadata<'_>) -> bool {
        self.effective(metadata.target()).filter() >= *metadata.level()
    }
}

impl<S: Subscriber> Layer<S> for Levels {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        match self.lets_through(metadata) {
            true => Interest::always(),
            false => Interest::never(),
        }
    }

    fn enabled(&self, metadata: &Metadata<'_>, _context: Context<'_, S>) -> bool {
        self.lets_through(metadata)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        let most = self.own.values().copied().max();
        Some(most.map_or(self.root, |most| most.max(self.root)).filter())
    }
}

/// The layer of the process's subscriber that lets lines through.
pub(super) type LevelLayer = reload::Layer<Levels, Registry>;

/// The levels of this process, to look at and to change. Cheap to clone.
#[derive(Clone)]
pub struct LogLevels {
    handle: reload::Handle<Levels, Registry>,
    /// Keeps the levels where no subscriber does.
    _own: Option<Arc<LevelLayer>>,
}

/// One change of a logger: a level, or none of its own.
pub type LevelChange = (String, Option<LogLevel>);

impl LogLevels {
    /// These levels, and the layer that goes by them.
    pub(super) fn with_layer(levels: Levels) -> (LogLevels, LevelLayer) {
        let (layer, handle) = reload::Layer::new(levels);
        (LogLevels { handle, _own: None }, layer)
    }

    /// Levels that nothing goes by: of a node whose process logs on its own terms.
    #[must_use]
    pub fn unheeded() -> LogLevels {
        let (layer, handle) = reload::Layer::new(Levels::default());
        LogLevels {
            handle,
            _own: Some(Arc::new(layer)),
        }
    }

    /// Whether there is a logger of this name.
    #[must_use]
    pub fn exists(name: &str) -> bool {
        name == ROOT || MODULES.contains(&name)
    }

    /// Every logger with the level that holds for it, by name.
    #[must_use]
    pub fn all(&self) -> Vec<(&'static str, LogLevel)> {
        let levels = self.handle.clone_current().unwrap_or_default();
        let modules = MODULES.iter().map(|name| (*name, levels.effective(name)));
        let mut all: Vec<_> = modules.chain([(ROOT, levels.root)]).collect();
        all.sort_by_key(|(name, _)| *name);
        all
    }

    /// Makes changes, all at once. [`ROOT`] keeps its level where it would have none.
    pub fn change(&self, changes: Vec<LevelChange>) {
        let changed = self.handle.modify(|levels| {
            for (name, level) in changes {
                match level {
                    Some(level) if name == ROOT => levels.root = level,
                    Some(level) => drop(levels.own.insert(name, level)),
                    None => drop(levels.own.remove(&name)),
                }
            }
        });
        // The subscriber is gone only when the process ends; then there is nothing left to tell.
        drop(changed);
    }
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    #[test]
    fn a_logger_has_the_level_of_the_nearest_around_it() {
        let mut levels = Levels::default();
        levels.own.insert("broker.server".into(), LogLevel::Debug);
        levels
            .own
            .insert("broker.server.boot".into(), LogLevel::Error);
        for (module, level) in [
            ("broker", LogLevel::Info),
            ("broker::server", LogLevel::Debug),
            ("broker::server::disks", LogLevel::Debug),
            ("broker::server::boot", LogLevel::Error),
            ("broker::server::boot::inner", LogLevel::Error),
            ("broker::servers", LogLevel::Info),
            ("broker.server.disks", LogLevel::Debug),
        ] {
            assert_eq!(levels.effective(module), level, "{module}");
        }
    }

    #[test]
    fn every_module_that_logs_is_a_logger() {
        for name in [ROOT, "broker", "broker.network.listener", "broker.server"] {
            assert!(LogLevels::exists(name), "{name}");
        }
        for name in ["", "broker.nothing", "broker.config.check", "Root"] {
            assert!(!LogLevels::exists(name), "{name}");
        }
    }

    #[test]
    fn a_change_holds_for_lines_that_were_decided_about_before() {
        let (levels, layer) = LogLevels::with_layer(Levels::default());
        let subscriber = tracing_subscriber::registry().with(layer);
        let seen = || tracing::enabled!(target: "broker::server::boot", Level::DEBUG);
        tracing::subscriber::with_default(subscriber, || {
            assert!(!seen());
            levels.change(vec![("broker.server".into(), Some(LogLevel::Trace))]);
            assert!(seen());
            let all = levels.all();
            assert!(all.contains(&("broker.server.boot", LogLevel::Trace)));
            assert!(all.contains(&("root", LogLevel::Info)));
            levels.change(vec![
                ("broker.server".into(), None),
                ("root".into(), Some(LogLevel::Fatal)),
            ]);
            assert!(!seen());
            assert!(
                levels
                    .all()
                    .iter()
                    .all(|(_, level)| *level == LogLevel::Fatal)
            );
        });
    }

    #[test]
    fn levels_have_kafkas_names() {
        for (name, level) in SETTABLE {
            assert_eq!(level.to_string(), name);
            assert_eq!(LogLevel::settable(name), Some(level));
        }
        for name in ["OFF", "debug", "ALL", ""] {
            assert_eq!(LogLevel::settable(name), None, "{name}");
        }
    }
}
