//! The levels of features that a format finalizes, from `--release-version` and `--feature`.

use super::Failure;
use crate::features::{
    KRAFT_VERSION, METADATA_VERSION, SUPPORTED_FEATURES, metadata_level_of_release,
    supported_feature, supported_releases,
};

/// Levels of the features that can be above 0 yet.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Levels {
    /// `metadata.version`.
    pub metadata: i16,
    /// `kraft.version`.
    pub kraft: i16,
}

impl Levels {
    /// The latest levels, unless the flags say otherwise; `kraft.version` follows the kind of quorum.
    pub fn new(
        release: Option<&str>,
        features: &[String],
        dynamic: bool,
    ) -> Result<Levels, Failure> {
        let latest = supported_feature(METADATA_VERSION).map_or(0, |feature| feature.max);
        let mut levels = Levels {
            metadata: latest,
            kraft: i16::from(dynamic),
        };
        if let Some(release) = release {
            levels.metadata = metadata_level_of_release(release).ok_or_else(|| {
                let (first, last) = supported_releases();
                Failure::new(format!(
                    "Unknown metadata.version '{release}'. Supported metadata.version are: \
                     {first} to {last}"
                ))
            })?;
        }
        for text in features {
            let (name, level) = parse_feature(text)?;
            match name {
                METADATA_VERSION if release.is_some() => {
                    return Err(Failure::new(
                        "Use --release-version instead of --feature metadata.version=X to avoid \
                         ambiguity.",
                    ));
                }
                METADATA_VERSION => levels.metadata = level,
                KRAFT_VERSION => levels.kraft = check_kraft_version(level, dynamic)?,
                _ => {}
            }
        }
        Ok(levels)
    }
}

/// `name=level`, where this node knows the feature and can run at the level.
fn parse_feature(text: &str) -> Result<(&'static str, i16), Failure> {
    let cannot =
        |why: &str| Failure::new(format!("Can't parse feature=level string {text}: {why}"));
    let (name, level) = text
        .split_once('=')
        .ok_or_else(|| cannot("equals sign not found."))?;
    let (name, level) = (name.trim(), level.trim());
    let level: i16 = level
        .parse()
        .map_err(|_| cannot(&format!("unable to parse {level} as a short.")))?;
    let feature = supported_feature(name).ok_or_else(|| {
        let names: Vec<&str> = SUPPORTED_FEATURES
            .iter()
            .map(|feature| feature.name)
            .collect();
        let names = names.join(", ");
        Failure::new(format!(
            "Unsupported feature: {name}. Supported features are: {names}"
        ))
    })?;
    if level < feature.min || level > feature.max {
        return Err(Failure::new(format!(
            "--feature {name}={level}: this version supports levels {} to {}",
            feature.min, feature.max
        )));
    }
    Ok((feature.name, level))
}

fn check_kraft_version(level: i16, dynamic: bool) -> Result<i16, Failure> {
    let flags = "one of the flags --standalone, --initial-controllers, or \
                 --no-initial-controllers is used";
    match (level, dynamic) {
        (0, true) => Err(Failure::new(format!(
            "Cannot set kraft.version to 0 if controller.quorum.voters is empty and {flags}. For \
             dynamic controllers support, try removing the --feature flag for kraft.version."
        ))),
        (1.., false) => Err(Failure::new(format!(
            "Cannot set kraft.version to {level} unless controller.quorum.voters is empty and \
             {flags}."
        ))),
        _ => Ok(level),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(release: Option<&str>, features: &[&str], dynamic: bool) -> Result<Levels, String> {
        let features: Vec<String> = features.iter().map(|text| text.to_string()).collect();
        Levels::new(release, &features, dynamic).map_err(|failure| failure.to_string())
    }

    #[test]
    fn a_format_finalizes_the_latest_levels() {
        assert_eq!(
            levels(None, &[], true),
            Ok(Levels {
                metadata: 33,
                kraft: 1
            })
        );
        assert_eq!(
            levels(None, &[], false),
            Ok(Levels {
                metadata: 33,
                kraft: 0
            })
        );
        assert_eq!(
            levels(Some("4.2"), &[], true),
            Ok(Levels {
                metadata: 29,
                kraft: 1
            })
        );
        let chosen = levels(None, &["metadata.version=20", "kraft.version = 1"], true);
        assert_eq!(
            chosen,
            Ok(Levels {
                metadata: 20,
                kraft: 1
            })
        );
    }

    #[test]
    fn levels_that_cannot_be_are_refused() {
        for (release, feature, dynamic, why) in [
            (
                Some("5.0"),
                "",
                true,
                "Unknown metadata.version '5.0'. Supported metadata.version",
            ),
            (
                Some("4.4"),
                "metadata.version=33",
                true,
                "Use --release-version instead of",
            ),
            (
                None,
                "metadata.version=34",
                true,
                "--feature metadata.version=34: this version",
            ),
            (
                None,
                "share.version=1",
                true,
                "--feature share.version=1: this version supports",
            ),
            (
                None,
                "foo=1",
                true,
                "Unsupported feature: foo. Supported features are: eligible.",
            ),
            (
                None,
                "foo",
                true,
                "Can't parse feature=level string foo: equals sign not found.",
            ),
            (
                None,
                "foo=x",
                true,
                "Can't parse feature=level string foo=x: unable to parse x",
            ),
            (
                None,
                "kraft.version=0",
                true,
                "Cannot set kraft.version to 0 if controller.",
            ),
            (
                None,
                "kraft.version=1",
                false,
                "Cannot set kraft.version to 1 unless controller.",
            ),
        ] {
            let features: Vec<&str> = [feature]
                .into_iter()
                .filter(|one| !one.is_empty())
                .collect();
            let error = levels(release, &features, dynamic).unwrap_err();
            assert!(error.starts_with(why), "{error}");
        }
    }
}
