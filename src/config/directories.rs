//! `meta.properties`: which node of which cluster a data directory belongs to, and the checks of it at start.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use protocol::Uuid;

use super::properties;

/// Name of the file in each data directory.
pub const META_PROPERTIES: &str = "meta.properties";

/// The contents of a `meta.properties` of version 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetaProperties {
    pub cluster_id: String,
    pub node_id: i32,
    /// Missing in files from before Kafka 3.7; such a directory gets an id at its next start.
    pub directory_id: Option<Uuid>,
}

impl MetaProperties {
    /// Reads the bytes of a file.
    ///
    /// # Errors
    /// What is wrong with the file, in words.
    pub fn parse(bytes: &[u8]) -> Result<MetaProperties, String> {
        let entries = properties::parse(bytes).map_err(|error| error.to_string())?;
        let entry = |key: &str| {
            entries
                .get(key)
                .map(|text| text.trim())
                .ok_or_else(|| format!("{key} is missing"))
        };
        match entries.get("version").map(|text| text.trim()) {
            Some("1") => {}
            None | Some("0") => {
                return Err(
                    "it is of version 0, of a cluster with ZooKeeper, which cannot be opened"
                        .to_string(),
                );
            }
            Some(other) => return Err(format!("version {other} is not known; known is 1")),
        }
        let node_id = entry("node.id")?;
        let directory_id = match entries.get("directory.id") {
            None => None,
            Some(text) => Some(parse_directory_id(text.trim())?),
        };
        Ok(MetaProperties {
            cluster_id: entry("cluster.id")?.to_string(),
            node_id: node_id
                .parse()
                .map_err(|_| format!("node.id={node_id} is not a number"))?,
            directory_id,
        })
    }

    /// The bytes of the file, as Apache's tool writes them: its own order, and the time as a comment.
    pub fn to_bytes(&self, now_ms: i64) -> Vec<u8> {
        let mut text = format!("#\n#{}\nnode.id={}\n", java_date(now_ms), self.node_id);
        if let Some(id) = &self.directory_id {
            text.push_str(&format!("directory.id={id}\n"));
        }
        text.push_str(&format!(
            "version=1\ncluster.id={}\n",
            escaped(&self.cluster_id)
        ));
        text.into_bytes()
    }
}

/// A directory id as text. The first hundred ids have meanings of their own.
///
/// # Errors
/// Not an id, or a reserved one, in words.
pub fn parse_directory_id(text: &str) -> Result<Uuid, String> {
    let id: Uuid = text
        .parse()
        .map_err(|_| format!("directory.id={text} is not an id of 22 characters"))?;
    if u128::from_be_bytes(id.0) < 100 {
        return Err(format!("directory.id={text} is reserved"));
    }
    Ok(id)
}

/// A value as `Properties.store` of Java escapes it; a cluster id may be any text.
fn escaped(value: &str) -> String {
    let mut text = String::new();
    for (at, letter) in value.chars().enumerate() {
        match letter {
            ' ' if at > 0 => text.push(' '),
            ' ' | '=' | ':' | '#' | '!' | '\\' => {
                text.push('\\');
                text.push(letter);
            }
            ' '..='~' => text.push(letter),
            other => {
                let mut units = [0; 2];
                for unit in other.encode_utf16(&mut units) {
                    text.push_str(&format!("\\u{unit:04X}"));
                }
            }
        }
    }
    text
}

/// `Date.toString` of Java in UTC: `Sun Nov 29 19:00:45 UTC 2026`.
fn java_date(now_ms: i64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let seconds = now_ms.div_euclid(1000);
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Days to civil date, with years that begin in March (Hinnant, "chrono-compatible low-level date algorithms").
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = (march_month + 2) % 12;
    let year = year_of_era + era * 400 + i64::from(month < 2);
    let weekday = DAYS[usize::try_from(days.rem_euclid(7)).unwrap_or(0)];
    let month = MONTHS[usize::try_from(month).unwrap_or(0)];
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{weekday} {month} {day:02} {hour:02}:{minute:02}:{second:02} UTC {year}")
}

/// What was found in a data directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    Formatted(MetaProperties),
    /// No `meta.properties`, or no directory at all.
    Unformatted,
    /// The file cannot be read or makes no sense.
    Failed(String),
}

/// Looks into each directory. Blocks: for the time before the cores run.
pub fn look<'a>(directories: impl IntoIterator<Item = &'a PathBuf>) -> BTreeMap<PathBuf, Found> {
    look_by(directories, |path| std::fs::read(path))
}

/// Looks into each directory; `read` gives the bytes of a file.
pub fn look_by<'a>(
    directories: impl IntoIterator<Item = &'a PathBuf>,
    read: impl Fn(&Path) -> io::Result<Vec<u8>>,
) -> BTreeMap<PathBuf, Found> {
    directories
        .into_iter()
        .map(|path| (path.clone(), look_into(path, &read)))
        .collect()
}

fn look_into(directory: &Path, read: impl Fn(&Path) -> io::Result<Vec<u8>>) -> Found {
    let path = directory.join(META_PROPERTIES);
    match read(&path) {
        Ok(bytes) => match MetaProperties::parse(&bytes) {
            Ok(meta) => Found::Formatted(meta),
            Err(why) => Found::Failed(format!("{}: {why}", path.display())),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Found::Unformatted,
        Err(error) => Found::Failed(format!("{}: {error}", path.display())),
    }
}

/// The directories with which a node can start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directories {
    pub cluster_id: String,
    /// Each directory that can be used; without an id where the file has none yet.
    pub usable: BTreeMap<PathBuf, Option<Uuid>>,
    /// Directories that cannot be read, and why. The node runs without them.
    pub failed: BTreeMap<PathBuf, String>,
}

/// Why a node must not start on its directories.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DirectoryProblem {
    #[error("{} {} not formatted", list(.missing), if .missing.len() == 1 { "is" } else { "are" })]
    Unformatted {
        missing: Vec<PathBuf>,
        /// The cluster of the directories that are formatted, if there are any.
        cluster_id: Option<String>,
    },
    #[error(
        "{} belongs to node {found}, but node.id is {expected}: set node.id={found}, or use another directory",
        .path.display()
    )]
    OtherNode {
        path: PathBuf,
        found: i32,
        expected: i32,
    },
    #[error("{} belongs to cluster {found}, but {} to cluster {expected}", .path.display(), .other.display())]
    OtherCluster {
        path: PathBuf,
        found: String,
        other: PathBuf,
        expected: String,
    },
    #[error("{} and {} have the same directory.id {id}: one is a copy of the other", .path.display(), .other.display())]
    SameId {
        path: PathBuf,
        other: PathBuf,
        id: Uuid,
    },
    #[error("the metadata log directory cannot be used: {why}")]
    MetadataDirectory { why: String },
    #[error("no data directory can be used: {why}")]
    NoneUsable { why: String },
}

fn list(paths: &[PathBuf]) -> String {
    paths
        .iter()
        .map(|path| path.display().to_string())
        .collect::<Vec<_>>()
        .join(", ")
}

/// May node `node_id` start on these directories?
///
/// # Errors
/// A directory of another node or cluster, a copied or an unformatted one, or no usable metadata directory.
pub fn verify(
    node_id: i32,
    metadata_directory: &Path,
    found: &BTreeMap<PathBuf, Found>,
) -> Result<Directories, DirectoryProblem> {
    let mut formatted: Vec<(&PathBuf, &MetaProperties)> = Vec::new();
    let mut missing = Vec::new();
    let mut failed = BTreeMap::new();
    for (path, state) in found {
        match state {
            Found::Formatted(meta) => formatted.push((path, meta)),
            Found::Unformatted => missing.push(path.clone()),
            Found::Failed(why) => {
                failed.insert(path.clone(), why.clone());
            }
        }
    }
    check_owner(node_id, &formatted)?;
    if !missing.is_empty() {
        let cluster_id = formatted.first().map(|(_, meta)| meta.cluster_id.clone());
        return Err(DirectoryProblem::Unformatted {
            missing,
            cluster_id,
        });
    }
    if let Some(why) = failed.get(metadata_directory) {
        return Err(DirectoryProblem::MetadataDirectory { why: why.clone() });
    }
    let Some((_, first)) = formatted.first() else {
        let why = failed
            .into_values()
            .next()
            .unwrap_or_else(|| "none is set".to_string());
        return Err(DirectoryProblem::NoneUsable { why });
    };
    Ok(Directories {
        cluster_id: first.cluster_id.clone(),
        usable: formatted
            .iter()
            .map(|(path, meta)| (path.to_path_buf(), meta.directory_id))
            .collect(),
        failed,
    })
}

/// All directories belong to this node, to one cluster, and are different ones.
fn check_owner(
    node_id: i32,
    formatted: &[(&PathBuf, &MetaProperties)],
) -> Result<(), DirectoryProblem> {
    let mut ids: BTreeMap<[u8; 16], &PathBuf> = BTreeMap::new();
    for (path, meta) in formatted {
        if meta.node_id != node_id {
            return Err(DirectoryProblem::OtherNode {
                path: path.to_path_buf(),
                found: meta.node_id,
                expected: node_id,
            });
        }
        let (first_path, first) = formatted[0];
        if meta.cluster_id != first.cluster_id {
            return Err(DirectoryProblem::OtherCluster {
                path: path.to_path_buf(),
                found: meta.cluster_id.clone(),
                other: first_path.clone(),
                expected: first.cluster_id.clone(),
            });
        }
        let Some(id) = meta.directory_id else {
            continue;
        };
        if let Some(other) = ids.insert(id.0, path) {
            return Err(DirectoryProblem::SameId {
                path: path.to_path_buf(),
                other: other.clone(),
                id,
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(cluster_id: &str, node_id: i32, directory_id: u8) -> Found {
        let directory_id = Some(Uuid([directory_id; 16]));
        Found::Formatted(MetaProperties {
            cluster_id: cluster_id.to_string(),
            node_id,
            directory_id,
        })
    }

    fn found(entries: &[(&str, Found)]) -> BTreeMap<PathBuf, Found> {
        entries
            .iter()
            .map(|(path, state)| (PathBuf::from(path), state.clone()))
            .collect()
    }

    fn problem(entries: &[(&str, Found)]) -> String {
        verify(1, Path::new("/a"), &found(entries))
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn a_file_of_apache_is_read_and_written_to_the_byte() {
        let file = b"#\n#Sun Nov 29 19:00:45 UTC 2026\nnode.id=1\ndirectory.id=CmROyTZTRuS1zydHpCgVkw\nversion=1\n\
                     cluster.id=MWu1rsSuRxyPlY6G6OYrzw\n";
        let meta = MetaProperties::parse(file).unwrap();
        assert_eq!(meta.cluster_id, "MWu1rsSuRxyPlY6G6OYrzw");
        assert_eq!(
            meta.directory_id.unwrap().to_string(),
            "CmROyTZTRuS1zydHpCgVkw"
        );
        assert_eq!(meta.to_bytes(1_795_978_845_257), file);
    }

    #[test]
    fn any_cluster_id_survives() {
        for cluster_id in ["my cluster", " x=1#:!\\", "ü€😀", "a"] {
            let meta = MetaProperties {
                cluster_id: cluster_id.to_string(),
                node_id: 3,
                directory_id: None,
            };
            let read = MetaProperties::parse(&meta.to_bytes(0)).unwrap();
            assert_eq!(read.cluster_id, cluster_id.trim(), "{cluster_id}");
        }
    }

    #[test]
    fn dates_are_javas() {
        assert_eq!(java_date(0), "Thu Jan 01 00:00:00 UTC 1970");
        assert_eq!(java_date(951_782_400_000), "Tue Feb 29 00:00:00 UTC 2000");
        assert_eq!(java_date(1_704_067_199_999), "Sun Dec 31 23:59:59 UTC 2023");
    }

    #[test]
    fn files_that_make_no_sense_say_why() {
        for (file, why) in [
            ("broker.id=1\n", "it is of version 0"),
            ("version=2\n", "version 2 is not known"),
            ("version=1\nnode.id=1\n", "cluster.id is missing"),
            ("version=1\ncluster.id=x\n", "node.id is missing"),
            (
                "version=1\ncluster.id=x\nnode.id=y\n",
                "node.id=y is not a number",
            ),
            (
                "version=1\ncluster.id=x\nnode.id=1\ndirectory.id=z\n",
                "directory.id=z is not an id",
            ),
            (
                "version=1\ncluster.id=x\nnode.id=1\ndirectory.id=AAAAAAAAAAAAAAAAAAAAAA\n",
                "is reserved",
            ),
        ] {
            let error = MetaProperties::parse(file.as_bytes()).unwrap_err();
            assert!(error.contains(why), "{file}: {error}");
        }
    }

    #[test]
    fn sound_directories_are_taken() {
        let usable = found(&[
            ("/a", meta("c", 1, 7)),
            ("/b", meta("c", 1, 8)),
            ("/x", Found::Failed("bad disk".into())),
        ]);
        let directories = verify(1, Path::new("/a"), &usable).unwrap();
        assert_eq!(directories.cluster_id, "c");
        assert_eq!(directories.usable.len(), 2);
        assert_eq!(directories.failed.len(), 1);
    }

    #[test]
    fn directories_of_others_are_refused() {
        assert_eq!(
            problem(&[("/a", meta("c", 2, 7))]),
            "/a belongs to node 2, but node.id is 1: set node.id=2, or use another directory"
        );
        assert_eq!(
            problem(&[("/a", meta("c", 1, 7)), ("/b", meta("d", 1, 8))]),
            "/b belongs to cluster d, but /a to cluster c"
        );
        assert_eq!(
            problem(&[("/a", meta("c", 1, 7)), ("/b", meta("c", 1, 7))]),
            "/b and /a have the same directory.id BwcHBwcHBwcHBwcHBwcHBw: one is a copy of the other"
        );
        assert_eq!(
            problem(&[("/a", Found::Unformatted), ("/b", meta("c", 1, 8))]),
            "/a is not formatted"
        );
        assert_eq!(
            problem(&[("/a", Found::Unformatted), ("/b", Found::Unformatted)]),
            "/a, /b are not formatted"
        );
        assert_eq!(
            problem(&[
                ("/a", Found::Failed("bad disk".into())),
                ("/b", meta("c", 1, 8))
            ]),
            "the metadata log directory cannot be used: bad disk"
        );
    }

    #[test]
    fn looking_tells_formatted_from_unformatted_and_broken() {
        let root = tempfile::tempdir().unwrap();
        let directory = |name: &str| root.path().join(name);
        for (name, contents) in [
            ("good", "version=1\ncluster.id=c\nnode.id=1\n"),
            ("bad", "version=9\n"),
        ] {
            std::fs::create_dir(directory(name)).unwrap();
            std::fs::write(directory(name).join(META_PROPERTIES), contents).unwrap();
        }
        let paths: Vec<PathBuf> = ["good", "bad", "absent"]
            .into_iter()
            .map(directory)
            .collect();
        let found = look(&paths);
        assert!(matches!(found[&paths[0]], Found::Formatted(_)));
        assert!(
            matches!(&found[&paths[1]], Found::Failed(why) if why.contains("meta.properties: version 9"))
        );
        assert_eq!(found[&paths[2]], Found::Unformatted);
    }
}
