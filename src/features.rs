//! The features of a Kafka cluster (KIP-584): which levels this node can run at, and which it finalizes at format.
//!
//! A feature that is not built yet has the range 0 to 0: it is never finalized above 0, so no client and no other
//! node comes to rely on it.

/// The feature whose level says which metadata records may be written.
pub const METADATA_VERSION: &str = "metadata.version";
/// The feature whose level says which quorum records may be written; 1 means voters stand in the log (KIP-853).
pub const KRAFT_VERSION: &str = "kraft.version";

/// A feature and the levels that this node can run at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SupportedFeature {
    pub name: &'static str,
    pub min: i16,
    pub max: i16,
}

/// Every feature that Kafka 4.4 knows, by name.
pub const SUPPORTED_FEATURES: &[SupportedFeature] = &[
    SupportedFeature {
        name: "eligible.leader.replicas.version",
        min: 0,
        max: 0,
    },
    SupportedFeature {
        name: "group.version",
        min: 0,
        max: 0,
    },
    SupportedFeature {
        name: KRAFT_VERSION,
        min: 0,
        max: 1,
    },
    SupportedFeature {
        name: METADATA_VERSION,
        min: 7,
        max: 33,
    },
    SupportedFeature {
        name: "share.version",
        min: 0,
        max: 0,
    },
    SupportedFeature {
        name: "streams.version",
        min: 0,
        max: 0,
    },
    SupportedFeature {
        name: "transaction.version",
        min: 0,
        max: 0,
    },
];

/// The feature of this name.
pub fn supported_feature(name: &str) -> Option<&'static SupportedFeature> {
    SUPPORTED_FEATURES
        .iter()
        .find(|feature| feature.name == name)
}

/// Kafka's releases and the levels of `metadata.version` that they brought, in rising order.
const RELEASES: &[(&str, i16)] = &[
    ("3.3-IV3", 7),
    ("3.4-IV0", 8),
    ("3.5-IV0", 9),
    ("3.5-IV1", 10),
    ("3.5-IV2", 11),
    ("3.6-IV0", 12),
    ("3.6-IV1", 13),
    ("3.6-IV2", 14),
    ("3.7-IV0", 15),
    ("3.7-IV1", 16),
    ("3.7-IV2", 17),
    ("3.7-IV3", 18),
    ("3.7-IV4", 19),
    ("3.8-IV0", 20),
    ("3.9-IV0", 21),
    ("4.0-IV0", 22),
    ("4.0-IV1", 23),
    ("4.0-IV2", 24),
    ("4.0-IV3", 25),
    ("4.1-IV0", 26),
    ("4.1-IV1", 27),
    ("4.2-IV0", 28),
    ("4.2-IV1", 29),
    ("4.3-IV0", 30),
    ("4.4-IV0", 31),
    ("4.4-IV1", 32),
    ("4.4-IV2", 33),
];

/// Levels of `metadata.version` whose records hold more than those of the level before (Kafka: `didMetadataChange`).
const CHANGES_METADATA: &[i16] = &[7, 8, 11, 13, 14, 15, 17, 23, 30, 32, 33];

/// The level that a release finalizes: `4.4` and `4.4.0` mean the last level of 4.4, `4.4-IV1` that very level.
pub fn metadata_level_of_release(release: &str) -> Option<i16> {
    if let Some((_, level)) = RELEASES.iter().find(|(name, _)| *name == release) {
        return Some(*level);
    }
    let mut numbers = release.split('.');
    let (major, minor) = (numbers.next()?, numbers.next()?);
    let prefix = format!("{major}.{minor}-IV");
    RELEASES
        .iter()
        .rev()
        .find(|(name, _)| name.starts_with(&prefix))
        .map(|(_, level)| *level)
}

/// The name of a level of `metadata.version`: `4.4-IV2` for 33.
pub fn metadata_level_name(level: i16) -> Option<&'static str> {
    RELEASES
        .iter()
        .find(|(_, known)| *known == level)
        .map(|(name, _)| *name)
}

/// Whether metadata that `higher` can hold may be lost at `lower`, a level below it.
pub fn changes_metadata(higher: i16, lower: i16) -> bool {
    CHANGES_METADATA
        .iter()
        .any(|level| (lower + 1..=higher).contains(level))
}

/// Names of the lowest and the highest level that this node can run at.
pub fn supported_releases() -> (&'static str, &'static str) {
    (RELEASES[0].0, RELEASES[RELEASES.len() - 1].0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_have_their_last_level() {
        for (release, level) in [
            ("4.4", 33),
            ("4.4.0", 33),
            ("4.4-IV0", 31),
            ("3.9", 21),
            ("3.9.1", 21),
            ("3.7", 19),
            ("3.3-IV3", 7),
        ] {
            assert_eq!(metadata_level_of_release(release), Some(level), "{release}");
        }
        for unknown in ["4", "4.5", "3.2", "", "4.4-IV9", "x.y"] {
            assert_eq!(metadata_level_of_release(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn every_supported_metadata_level_has_a_name() {
        let range = supported_feature(METADATA_VERSION).unwrap();
        for level in range.min..=range.max {
            assert_eq!(
                metadata_level_name(level).and_then(metadata_level_of_release),
                Some(level)
            );
        }
        assert_eq!(supported_releases(), ("3.3-IV3", "4.4-IV2"));
    }
}
