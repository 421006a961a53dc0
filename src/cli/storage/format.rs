//! Formatting of data directories: `meta.properties` in each, and the first metadata checkpoint in
//! the one of the metadata log. The files are those that Apache's storage tool writes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use protocol::Uuid;
use protocol::stored::{
    FeatureLevelRecord, MetadataRecord, VotersRecord, VotersRecordEndpoint,
    VotersRecordKRaftVersionFeature, VotersRecordVoter,
};

use super::files::{create_directory, write_file};
use super::voter::DynamicVoter;
use super::{Failure, random_id};
use crate::config::BrokerConfig;
use crate::config::directories::{self, Found, META_PROPERTIES, MetaProperties};
use crate::features::{KRAFT_VERSION, METADATA_VERSION, metadata_level_name, supported_feature};
use crate::metadata::snapshot_file::{FIRST_CHECKPOINT, write_checkpoint};
use crate::metadata::{MetadataVersion, QuorumFacts};

/// The directory of the metadata log inside the metadata directory.
const METADATA_PARTITION: &str = "__cluster_metadata-0";
/// Apache gives its snapshots no other right than this.
const CHECKPOINT_MODE: u32 = 0o400;
const META_PROPERTIES_MODE: u32 = 0o644;

/// What directories are formatted for.
#[derive(Clone, Debug)]
pub struct FormatPlan {
    pub cluster_id: String,
    /// Level of `metadata.version`.
    pub metadata_level: i16,
    /// Level of `kraft.version`: 1 for a dynamic quorum.
    pub kraft_version: i16,
    /// The first voter of a dynamic quorum, if it is known: this node.
    pub voter: Option<DynamicVoter>,
    /// Formatted directories are left alone instead of being an error.
    pub ignore_formatted: bool,
    pub now_ms: i64,
}

impl FormatPlan {
    /// For a node that is its own only controller; `directory_id` is the id of its metadata directory.
    pub fn of_one_node(
        config: &BrokerConfig,
        cluster_id: String,
        directory_id: Uuid,
        now_ms: i64,
    ) -> Result<FormatPlan, Failure> {
        let plan = FormatPlan::standalone(config, cluster_id, directory_id, now_ms)?;
        Ok(match config.quorum.static_voters.is_empty() {
            true => plan,
            // They stand in the configuration, not in the log.
            false => FormatPlan {
                kraft_version: 0,
                voter: None,
                ..plan
            },
        })
    }

    /// As [`Self::of_one_node`], with the voter in the log whatever the configuration says.
    pub fn standalone(
        config: &BrokerConfig,
        cluster_id: String,
        directory_id: Uuid,
        now_ms: i64,
    ) -> Result<FormatPlan, Failure> {
        Ok(FormatPlan {
            cluster_id,
            metadata_level: supported_feature(METADATA_VERSION).map_or(0, |feature| feature.max),
            kraft_version: 1,
            voter: Some(DynamicVoter::of_this_node(config, directory_id)?),
            ignore_formatted: true,
            now_ms,
        })
    }
}

/// Formats every directory of the node that is not formatted, and says what was done, a line each.
pub(in crate::cli) fn format_directories(
    config: &BrokerConfig,
    plan: &FormatPlan,
) -> Result<Vec<String>, Failure> {
    if plan.cluster_id.trim().is_empty() {
        return Err(Failure::new("You must specify the cluster id."));
    }
    let metadata = &config.storage.metadata_log_dir;
    let all: BTreeSet<PathBuf> = config
        .storage
        .log_dirs
        .iter()
        .chain([metadata])
        .cloned()
        .collect();
    let found = directories::look(&all);
    let mut ids = check_formatted(config, plan, &found)?;
    let mut lines = Vec::new();
    for (path, state) in &found {
        match state {
            Found::Unformatted => lines.push(format_one(config, plan, path, &mut ids)?),
            Found::Failed(why) => lines.push(format!("Cannot read {why}. Ignoring...")),
            Found::Formatted(_) => {}
        }
    }
    if !found.values().any(|state| *state == Found::Unformatted) {
        lines.push("All of the log directories are already formatted.".to_string());
    }
    Ok(lines)
}

/// The formatted directories belong to this cluster and node. Returns the ids that are taken.
fn check_formatted(
    config: &BrokerConfig,
    plan: &FormatPlan,
    found: &BTreeMap<PathBuf, Found>,
) -> Result<BTreeSet<[u8; 16]>, Failure> {
    let mut ids = BTreeSet::new();
    for (path, state) in found {
        let Found::Formatted(meta) = state else {
            continue;
        };
        let file = path.join(META_PROPERTIES);
        if meta.cluster_id != plan.cluster_id {
            return Err(Failure::new(format!(
                "Invalid cluster.id in: {}. Expected {}, but read {}",
                file.display(),
                plan.cluster_id,
                meta.cluster_id
            )));
        }
        if meta.node_id != config.node_id {
            return Err(Failure::new(format!(
                "Stored node id {} doesn't match previous node id {} in {}. If you moved your data, \
                 make sure your configured node id matches. If you intend to create a new node, you \
                 should remove all data in your data directories.",
                meta.node_id,
                config.node_id,
                file.display()
            )));
        }
        if !plan.ignore_formatted {
            return Err(Failure::new(format!(
                "Log directory {} is already formatted. Use --ignore-formatted to ignore this \
                 directory and format the others.",
                path.display()
            )));
        }
        ids.extend(meta.directory_id.map(|id| id.0));
    }
    if !found.is_empty()
        && found
            .values()
            .all(|state| matches!(state, Found::Failed(_)))
    {
        return Err(Failure::new("No available log directories to format."));
    }
    Ok(ids)
}

fn format_one(
    config: &BrokerConfig,
    plan: &FormatPlan,
    path: &Path,
    taken: &mut BTreeSet<[u8; 16]>,
) -> Result<String, Failure> {
    let holds_metadata = path == config.storage.metadata_log_dir;
    let (kind, directory_id) = match &plan.voter {
        _ if !holds_metadata => ("data directory", None),
        Some(voter) => ("dynamic metadata voter directory", Some(voter.directory_id)),
        None => ("metadata directory", None),
    };
    let directory_id = match directory_id {
        Some(id) => id,
        None => random_id()?,
    };
    if !taken.insert(directory_id.0) {
        return Err(Failure::new(format!(
            "directory id {directory_id} is used by another directory already"
        )));
    }
    refuse_lost_metadata(path, holds_metadata)?;
    for file in new_files(config, plan, path, directory_id)? {
        let failed =
            |error: std::io::Error| Failure::new(format!("{}: {error}", file.path.display()));
        create_directory(file.path.parent().unwrap_or(path)).map_err(failed)?;
        write_file(&file.path, &file.bytes, file.mode).map_err(failed)?;
    }
    let release = metadata_level_name(plan.metadata_level).unwrap_or("?");
    Ok(format!(
        "Formatting {kind} {} with metadata.version {release}.",
        path.display()
    ))
}

/// Writes the `meta.properties` of a directory, durably.
pub(in crate::cli) fn write_meta_properties(
    directory: &Path,
    meta: &MetaProperties,
    now_ms: i64,
) -> Result<(), Failure> {
    let path = directory.join(META_PROPERTIES);
    write_file(&path, &meta.to_bytes(now_ms), META_PROPERTIES_MODE)
        .map_err(|error| Failure::new(format!("{}: {error}", path.display())))
}

/// A file that formatting writes.
pub struct NewFile {
    pub path: PathBuf,
    pub bytes: Bytes,
    pub mode: u32,
}

/// The files of one directory in the order in which they are written: the one that makes it a formatted
/// directory comes last.
pub fn new_files(
    config: &BrokerConfig,
    plan: &FormatPlan,
    directory: &Path,
    directory_id: Uuid,
) -> Result<Vec<NewFile>, Failure> {
    let mut files = Vec::new();
    if directory == config.storage.metadata_log_dir {
        let name = FIRST_CHECKPOINT.file_name();
        files.push(NewFile {
            path: directory.join(METADATA_PARTITION).join(name),
            bytes: first_checkpoint(plan, &config.quorum.listener)?,
            mode: CHECKPOINT_MODE,
        });
    }
    let meta = MetaProperties {
        cluster_id: plan.cluster_id.clone(),
        node_id: config.node_id,
        directory_id: Some(directory_id),
    };
    files.push(NewFile {
        path: directory.join(META_PROPERTIES),
        bytes: meta.to_bytes(plan.now_ms).into(),
        mode: META_PROPERTIES_MODE,
    });
    Ok(files)
}

/// A metadata log whose directory has lost its `meta.properties` is not written over.
fn refuse_lost_metadata(path: &Path, holds_metadata: bool) -> Result<(), Failure> {
    let directory = path.join(METADATA_PARTITION);
    if !holds_metadata || !holds_a_log(&directory) {
        return Ok(());
    }
    Err(Failure::new(format!(
        "{} holds a metadata log, but {} is missing: put the file back, or move the directory away",
        directory.display(),
        path.join(META_PROPERTIES).display()
    )))
}

/// Has a controller written here? (A format that was cut off leaves the first checkpoint only.)
fn holds_a_log(directory: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return false;
    };
    entries.flatten().any(|entry| {
        entry
            .path()
            .extension()
            .is_some_and(|suffix| suffix == "log")
    })
}

/// The level of `metadata.version`, and for a dynamic quorum its version and voters. Features at
/// level 0 have no record.
fn first_checkpoint(plan: &FormatPlan, listener: &str) -> Result<Bytes, Failure> {
    let record = MetadataRecord::FeatureLevel(FeatureLevelRecord {
        name: METADATA_VERSION.into(),
        feature_level: plan.metadata_level,
    });
    let records = [MetadataVersion(plan.metadata_level).versioned(record)];
    let voters = plan
        .voter
        .as_ref()
        .map(|voter| voters_record(voter, listener));
    let quorum = QuorumFacts {
        kraft_version: plan.kraft_version,
        voters,
        ..QuorumFacts::default()
    };
    let pieces =
        write_checkpoint(&records, &quorum, 0, plan.now_ms, plan.now_ms).map_err(|error| {
            Failure::new(format!("the first checkpoint cannot be written: {error}"))
        })?;
    Ok(pieces.concat().into())
}

fn voters_record(voter: &DynamicVoter, listener: &str) -> VotersRecord {
    let range = supported_feature(KRAFT_VERSION);
    VotersRecord {
        version: 0,
        voters: [VotersRecordVoter {
            voter_id: voter.id,
            voter_directory_id: voter.directory_id,
            endpoints: [VotersRecordEndpoint {
                name: listener.to_string().into(),
                host: voter.host.clone().into(),
                port: voter.port,
            }]
            .into(),
            kraft_version_feature: VotersRecordKRaftVersionFeature {
                min_supported_version: range.map_or(0, |feature| feature.min),
                max_supported_version: range.map_or(0, |feature| feature.max),
            },
        }]
        .into(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::tests::ringmain;
    use super::*;
    use crate::metadata::snapshot_file::read_checkpoint;

    const CLUSTER: &str = "MWu1rsSuRxyPlY6G6OYrzw";
    const DIRECTORY: &str = "CmROyTZTRuS1zydHpCgVkw";

    /// A configuration file in a directory of its own, which `@` stands for in settings and answers.
    struct Node {
        root: tempfile::TempDir,
    }

    impl Node {
        fn new(settings: &str) -> Node {
            let root = tempfile::tempdir().unwrap();
            let settings = settings.replace('@', &root.path().display().to_string());
            let shipped = include_str!("../../config/fixtures/combined.properties");
            std::fs::write(
                root.path().join("node.properties"),
                format!("{shipped}\n{settings}"),
            )
            .unwrap();
            Node { root }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.root.path().join(name)
        }

        fn format(&self, flags: &[&str]) -> Result<String, String> {
            let file = self.path("node.properties");
            let arguments = [
                "storage",
                "format",
                "-t",
                CLUSTER,
                "-c",
                file.to_str().unwrap(),
            ];
            let shown = |text: String| text.replace(&self.root.path().display().to_string(), "@");
            ringmain(&[&arguments, flags].concat())
                .map(shown)
                .map_err(shown)
        }

        fn meta(&self, name: &str) -> MetaProperties {
            let bytes = std::fs::read(self.path(name).join(META_PROPERTIES)).unwrap();
            MetaProperties::parse(&bytes).unwrap()
        }

        fn checkpoint(&self, name: &str) -> Vec<u8> {
            let name = format!("{name}/__cluster_metadata-0/{:020}-{:010}.checkpoint", 0, 0);
            std::fs::read(self.path(&name)).unwrap()
        }
    }

    #[test]
    fn a_standalone_node_votes_from_its_metadata_directory() {
        let node = Node::new("log.dirs=@/b,@/a/deep\n");
        let answer = node.format(&["--standalone"]).unwrap();
        assert_eq!(
            answer,
            "Formatting data directory @/a/deep with metadata.version 4.4-IV2.\n\
             Formatting dynamic metadata voter directory @/b with metadata.version 4.4-IV2.\n"
        );
        let (first, second) = (node.meta("b"), node.meta("a/deep"));
        assert_eq!((first.cluster_id.as_str(), first.node_id), (CLUSTER, 1));
        assert_ne!(first.directory_id, second.directory_id);
        assert!(!node.path("a/deep/__cluster_metadata-0").exists());
        let checkpoint = read_checkpoint(Bytes::from(node.checkpoint("b")).into()).unwrap();
        assert_eq!(checkpoint.quorum.kraft_version, 1);
        let voter = &checkpoint.quorum.voters.unwrap().voters[0];
        assert_eq!(
            (voter.voter_id, Some(voter.voter_directory_id)),
            (1, first.directory_id)
        );
        let endpoint = &voter.endpoints[0];
        assert_eq!(
            (&*endpoint.name, &*endpoint.host, endpoint.port),
            ("CONTROLLER", "localhost", 9093)
        );
        assert_eq!(checkpoint.records.len(), 1);
    }

    /// Without what differs at every format: the times and checksums of the batches, and the time
    /// in the header record.
    fn without_times(checkpoint: &[u8]) -> Vec<u8> {
        let mut bytes = checkpoint.to_vec();
        let mut at = 0;
        while at < bytes.len() {
            let length = u32::from_be_bytes(bytes[at + 8..at + 12].try_into().unwrap());
            bytes[at + 17..at + 21].fill(0);
            bytes[at + 27..at + 43].fill(0);
            at += 12 + usize::try_from(length).unwrap();
        }
        bytes[73..81].fill(0);
        bytes
    }

    /// The golden file was written by Apache's tool with the same settings and `--feature NAME=0`
    /// for all features that are at 0 here.
    #[test]
    fn the_first_checkpoint_has_apaches_bytes() {
        let plan = FormatPlan {
            cluster_id: CLUSTER.to_string(),
            metadata_level: 33,
            kraft_version: 1,
            voter: Some(DynamicVoter {
                id: 1,
                host: "localhost".to_string(),
                port: 9093,
                directory_id: DIRECTORY.parse().unwrap(),
            }),
            ignore_formatted: false,
            now_ms: 1_795_978_845_257,
        };
        let written = first_checkpoint(&plan, "CONTROLLER").unwrap();
        assert_eq!(
            without_times(&written),
            without_times(include_bytes!("standalone.checkpoint"))
        );
    }

    #[test]
    fn static_voters_need_no_flag_and_none_of_a_dynamic_quorum() {
        let node = Node::new("log.dirs=@/a\ncontroller.quorum.voters=1@localhost:9093\n");
        let file = node.path("node.properties");
        let text = std::fs::read_to_string(&file).unwrap();
        let root = node.root.path().display().to_string();
        std::fs::write(
            &file,
            text.replace(&format!("1{root}localhost"), "1@localhost"),
        )
        .unwrap();
        let refused = node.format(&["--standalone"]).unwrap_err();
        assert!(
            refused.starts_with("You cannot specify controller.quorum.voters"),
            "{refused}"
        );
        let answer = node.format(&[]).unwrap();
        assert_eq!(
            answer,
            "Formatting metadata directory @/a with metadata.version 4.4-IV2.\n"
        );
        let checkpoint = read_checkpoint(Bytes::from(node.checkpoint("a")).into()).unwrap();
        assert_eq!(
            (checkpoint.quorum.kraft_version, checkpoint.quorum.voters),
            (0, None)
        );
    }

    #[test]
    fn a_dynamic_quorum_needs_a_flag() {
        let node = Node::new("log.dirs=@/a\n");
        let refused = node.format(&[]).unwrap_err();
        assert!(
            refused.starts_with("Because controller.quorum.voters is not set"),
            "{refused}"
        );
        let both = node
            .format(&["--standalone", "--no-initial-controllers"])
            .unwrap_err();
        assert!(both.contains("cannot be used with"), "{both}");
        let answer = node.format(&["-N"]).unwrap();
        let expected = "Formatting metadata directory @/a with metadata.version 4.4-IV2.\n";
        assert_eq!(answer, expected);
        let checkpoint = read_checkpoint(Bytes::from(node.checkpoint("a")).into()).unwrap();
        assert_eq!(
            (checkpoint.quorum.kraft_version, checkpoint.quorum.voters),
            (1, None)
        );
        let scram = node
            .format(&["-N", "-S", "SCRAM-SHA-256=[name=a]"])
            .unwrap_err();
        assert!(scram.starts_with("--add-scram"), "{scram}");
    }

    #[test]
    fn the_named_voter_gets_the_named_directory_id() {
        let node = Node::new("log.dirs=@/a\n");
        node.format(&["-I", &format!("1@localhost:9093:{DIRECTORY}"), "-r", "4.3"])
            .unwrap();
        assert_eq!(node.meta("a").directory_id.unwrap().to_string(), DIRECTORY);
        let checkpoint = read_checkpoint(Bytes::from(node.checkpoint("a")).into()).unwrap();
        let MetadataRecord::FeatureLevel(level) = &checkpoint.records[0].record else {
            panic!("{:?}", checkpoint.records[0]);
        };
        assert_eq!(level.feature_level, 30);
    }

    #[test]
    fn formatted_directories_are_left_alone() {
        let node = Node::new("log.dirs=@/a\n");
        node.format(&["-s"]).unwrap();
        let (meta, checkpoint) = (node.meta("a"), node.checkpoint("a"));
        assert_eq!(
            node.format(&["-s"]).unwrap_err(),
            "Log directory @/a is already formatted. Use --ignore-formatted to ignore this \
             directory and format the others."
        );
        let answer = node.format(&["-s", "-g"]).unwrap();
        assert_eq!(
            answer,
            "All of the log directories are already formatted.\n"
        );
        assert_eq!((node.meta("a"), node.checkpoint("a")), (meta, checkpoint));
    }

    #[test]
    fn directories_of_others_are_not_joined() {
        let node = Node::new("log.dirs=@/a,@/b\n");
        node.format(&["-s"]).unwrap();
        std::fs::remove_dir_all(node.path("b")).unwrap();
        let foreign =
            |text: &str| std::fs::write(node.path("a").join(META_PROPERTIES), text).unwrap();
        foreign("version=1\ncluster.id=other\nnode.id=1\n");
        assert_eq!(
            node.format(&["-s", "-g"]).unwrap_err(),
            format!(
                "Invalid cluster.id in: @/a/meta.properties. Expected {CLUSTER}, but read other"
            )
        );
        foreign(&format!("version=1\ncluster.id={CLUSTER}\nnode.id=9\n"));
        let refused = node.format(&["-s", "-g"]).unwrap_err();
        assert!(refused.starts_with("Stored node id 9 doesn't match previous node id 1 in"));
        assert!(!node.path("b").exists());
    }

    #[test]
    fn a_metadata_log_without_its_file_is_not_formatted_over() {
        let node = Node::new("log.dirs=@/a\n");
        node.format(&["-s"]).unwrap();
        std::fs::remove_file(node.path("a").join(META_PROPERTIES)).unwrap();
        node.format(&["-s"])
            .expect("a format that was cut off is done again");
        std::fs::remove_file(node.path("a").join(META_PROPERTIES)).unwrap();
        let log = node.path("a/__cluster_metadata-0/00000000000000000000.log");
        std::fs::write(log, "x").unwrap();
        let refused = node.format(&["-s"]).unwrap_err();
        assert!(refused.contains("holds a metadata log, but @/a/meta.properties is missing"));
    }

    #[test]
    fn info_shows_whose_directories_they_are() {
        let node = Node::new("log.dirs=@/a\n");
        let file = node.path("node.properties");
        let info = || ringmain(&["storage", "info", "-c", file.to_str().unwrap()]);
        assert!(info().is_err());
        node.format(&["-s"]).unwrap();
        let answer = info().unwrap();
        let id = node.meta("a").directory_id.unwrap();
        let metadata = format!(
            "Found metadata: {{cluster.id={CLUSTER}, directory.id={id}, node.id=1, version=1}}"
        );
        assert!(
            answer.contains("Found log directory:") && answer.contains(&metadata),
            "{answer}"
        );
    }
}
