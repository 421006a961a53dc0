//! Log lines for people, on standard error.
//!
//! `RINGMAIN_LOG` says how much: a level (`error`, `warn`, `info`, `debug`, `trace`, `off`), or levels by module as in
//! `info,broker.network=debug`. Without it, `info`. Administrators change it while the broker runs, see `levels.rs`.

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};

use super::levels::{Levels, LogLevels, logger_of};

/// The environment variable that says how much is logged.
pub const VARIABLE: &str = "RINGMAIN_LOG";

/// Why logging could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error(
        "{VARIABLE}={text} is no level: use error, warn, info, debug, trace or off, or \
         module=level,..."
    )]
    Level { text: String },
    #[error("logging is set up already")]
    Twice(#[from] TryInitError),
}

/// Sets up logging for the process, once. What it returns changes the levels.
///
/// # Errors
/// The variable makes no sense, or logging was set up before.
pub fn set_up() -> Result<LogLevels, LogError> {
    let text = std::env::var(VARIABLE).unwrap_or_default();
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_target(false);
    let (levels, layer) = LogLevels::with_layer(levels(&text)?);
    tracing_subscriber::registry()
        .with(layer)
        .with(lines)
        .try_init()?;
    Ok(levels)
}

fn levels(text: &str) -> Result<Levels, LogError> {
    let text = if text.trim().is_empty() {
        "info"
    } else {
        text.trim()
    };
    let wrong = || LogError::Level {
        text: text.to_string(),
    };
    // The parser would take any word for a module whose every line is wanted.
    let is_level = |part: &str| part.contains('=') || part.parse::<LevelFilter>().is_ok();
    if !text.split(',').all(is_level) {
        return Err(wrong());
    }
    let targets: Targets = text.parse().map_err(|_| wrong())?;
    Ok(Levels {
        root: targets.default_level().unwrap_or(LevelFilter::OFF).into(),
        own: targets
            .iter()
            .map(|(module, filter)| (logger_of(module), filter.into()))
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::levels::LogLevel;
    use super::*;

    #[test]
    fn levels_are_read_by_module() {
        let level = |text: &str, module: &str| levels(text).unwrap().effective(module);
        assert_eq!(level("", "broker::cli"), LogLevel::Info);
        for some in ["warn,broker.network=debug", "warn,broker::network=debug"] {
            assert_eq!(level(some, "broker::network::listener"), LogLevel::Debug);
            assert_eq!(level(some, "broker::cli"), LogLevel::Warn);
        }
        assert_eq!(level("off", "broker"), LogLevel::Off);
        assert_eq!(level("broker.network=debug", "broker::cli"), LogLevel::Off);
    }

    #[test]
    fn nonsense_names_the_variable_and_the_levels() {
        let error = levels("loud").unwrap_err().to_string();
        assert!(
            error.starts_with("RINGMAIN_LOG=loud is no level: use error, warn, info"),
            "{error}"
        );
    }
}
