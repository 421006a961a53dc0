//! Log lines for people, on standard error.
//!
//! `RINGMAIN_LOG` says how much: a level (`error`, `warn`, `info`, `debug`, `trace`, `off`), or levels by module as in
//! `info,broker::network=debug`. Without it, `info`.

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};

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

/// Sets up logging for the process, once.
///
/// # Errors
/// The variable makes no sense, or logging was set up before.
pub fn set_up() -> Result<(), LogError> {
    let text = std::env::var(VARIABLE).unwrap_or_default();
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_target(false);
    tracing_subscriber::registry()
        .with(levels(&text)?)
        .with(lines)
        .try_init()?;
    Ok(())
}

fn levels(text: &str) -> Result<Targets, LogError> {
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
    text.parse().map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing::Level;

    #[test]
    fn levels_are_read_by_module() {
        let would_log =
            |text: &str, target: &str, level| levels(text).unwrap().would_enable(target, &level);
        assert!(would_log("", "broker::cli", Level::INFO));
        assert!(!would_log("", "broker::cli", Level::DEBUG));
        assert!(would_log(
            "warn,broker::network=debug",
            "broker::network::listener",
            Level::DEBUG
        ));
        assert!(!would_log(
            "warn,broker::network=debug",
            "broker::cli",
            Level::INFO
        ));
        assert!(!would_log("off", "broker", Level::ERROR));
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
