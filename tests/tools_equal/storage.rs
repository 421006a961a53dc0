//! `storage`, which needs no broker: each side formats directories of its own.
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::broker::fresh_directory;
use crate::support::commands::{Commands, Ended, ringmain};

/// What every file of settings has; `@` is the side's own folder.
const NODE: &str = "process.roles=broker,controller\nnode.id=1\nlisteners=PLAINTEXT://:9092,CONTROLLER://localhost:9093\n\
                    controller.listener.names=CONTROLLER\n";
const DYNAMIC: &str = "controller.quorum.bootstrap.servers=localhost:9093\n";
const STATIC: &str = "controller.quorum.voters=1@localhost:9093\n";

/// Settings besides those of every node, and commands on one folder, one after the other. `!name` removes a file,
/// `!name=text` writes one.
type Story = (&'static str, &'static [&'static str]);

const CONFIG: &str = "-c @/settings -t MkU3OEVBNTcwNTJENDM2Qg";

const STORIES: &[(&str, Story)] = &[
    (
        DYNAMIC,
        (
            "log.dirs=@/a\n",
            &[
                "info -c @/settings",
                "format #",
                "format # --standalone --no-initial-controllers",
                "format # --standalone",
                "info -c @/settings",
                "format # --standalone",
                "format # --standalone -g",
                "format -c @/settings -t AAAAAAAAAAAAAAAAAAAAAQ --standalone -g",
                "!a/meta.properties",
                "info -c @/settings",
            ],
        ),
    ),
    (
        DYNAMIC,
        (
            "log.dirs=@/a,@/b\nmetadata.log.dir=@/meta\n",
            &[
                "format # -N",
                "info -c @/settings",
                "!b/meta.properties",
                "info -c @/settings",
                "format # -N",
                "format # --no-initial-controllers --ignore-formatted",
                "!b/meta.properties=version=1\nnode.id=1\ncluster.id=another\n",
                "info -c @/settings",
                "format # -N -g",
                "!b/meta.properties=version=1\nnode.id=7\ncluster.id=MkU3OEVBNTcwNTJENDM2Qg\n",
                "info -c @/settings",
                "format # -N -g",
            ],
        ),
    ),
    (
        DYNAMIC,
        (
            "log.dirs=@/a/deep/er\n",
            &[
                "format # -I 1@localhost:9093:CmROyTZTRuS1zydHpCgVkw -r 4.3",
                "info -c @/settings",
            ],
        ),
    ),
    (
        DYNAMIC,
        (
            "log.dirs=@/a\n",
            &[
                "format # -I 1@localhost:9093",
                "format # -I nonsense",
                "format # --standalone -r 9.9",
                "format # --standalone -r 4.4 -f metadata.version=33",
                "format # --standalone -f metadata.version=99",
                "format # --standalone -f nope.version=1",
                "format # --standalone -f nope",
                "format # --standalone -f group.version=x",
                "format # --standalone -f kraft.version=0",
                "format # --standalone -f kraft.version=1 -f metadata.version=30",
            ],
        ),
    ),
    (
        STATIC,
        (
            "log.dirs=@/a\n",
            &[
                "format # --standalone",
                "format # -I 1@localhost:9093:CmROyTZTRuS1zydHpCgVkw",
                "format # -f kraft.version=1",
                "format # --release-version 4.2",
                "info -c @/settings",
            ],
        ),
    ),
    (
        STATIC,
        (
            "log.dirs=@/file\n",
            &[
                "!file=no directory\n",
                "info -c @/settings",
                "!settings=log.dirs=/nowhere\n",
                "format #",
            ],
        ),
    ),
    (
        "",
        (
            "",
            &[
                "format",
                "format -c @/settings",
                "format -c @/none -t x",
                "info",
                "info -c @/none",
                "nonsense",
                "version-mapping",
                "version-mapping --release-version 3.9",
                "version-mapping -r 4.4",
                "version-mapping -r 9.9",
                "feature-dependencies",
                "feature-dependencies --feature metadata.version=30 --feature group.version=1",
                "feature-dependencies -f transaction.version=2",
                "feature-dependencies -f eligible.leader.replicas.version=1",
                "feature-dependencies -f streams.version=1 -f share.version=1 -f kraft.version=1",
                "feature-dependencies -f share.version=9",
                "feature-dependencies -f nope.version=1",
                "feature-dependencies -f nope.version=x",
            ],
        ),
    ),
];

/// One side's folder.
struct Side {
    root: PathBuf,
}

impl Side {
    fn new(name: &str, settings: &str) -> Self {
        let side = Self {
            root: fresh_directory(name),
        };
        side.write("settings", settings);
        side
    }

    fn own(&self, text: &str) -> String {
        text.replace('@', &self.root.display().to_string())
    }

    /// `1@localhost` is no folder of anybody's.
    fn words(&self, command: &str) -> Vec<String> {
        let command = command.replace('#', CONFIG);
        let word = |word: &str| match word.starts_with('@') {
            true => self.own(word),
            false => word.to_owned(),
        };
        command.split(' ').map(word).collect()
    }

    fn write(&self, name: &str, text: &str) {
        let text = text.replace("=@/", &format!("={}/", self.root.display()));
        let text = text.replace(",@/", &format!(",{}/", self.root.display()));
        fs::write(self.root.join(name), text).expect("a file");
    }

    /// What a command said, with what is this side's alone taken out, and its lines in order: Apache's formats directories
    /// as its hash table has them. A record of its own that it prints as Java does is left out.
    fn plain(&self, ended: &Ended) -> (i32, Vec<String>) {
        let out = without_ids(&ended.out.replace(&self.root.display().to_string(), "@"));
        let lines = out
            .lines()
            .filter(|line| !line.starts_with("Bootstrap metadata: "));
        let mut lines: Vec<String> = lines.map(str::to_owned).collect();
        if lines.iter().all(|line| line.starts_with("Formatting ")) {
            lines.sort();
        }
        (ended.code, lines)
    }

    /// The names of all files.
    fn files(&self) -> Vec<String> {
        let mut names = Vec::new();
        collect(&self.root, &mut names);
        let start = self.root.display().to_string();
        let mut names: Vec<String> = names.iter().map(|name| name.replace(&start, "")).collect();
        names.sort();
        names
    }
}

fn collect(directory: &Path, names: &mut Vec<String>) {
    for entry in fs::read_dir(directory).expect("a folder").flatten() {
        match entry.path().is_dir() {
            true => collect(&entry.path(), names),
            false => names.push(entry.path().display().to_string()),
        }
    }
}

/// Ids of directories are random.
fn without_ids(text: &str) -> String {
    let mut parts = text.split("directory.id=");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain += "directory.id=?";
        plain += part.get(22..).unwrap_or_default();
    }
    plain
}

/// The number of commands, and what differed.
pub fn compare(apache: &mut Commands) -> (usize, Vec<String>) {
    let (mut compared, mut differences) = (0, Vec::new());
    for (number, (quorum, (settings, commands))) in STORIES.iter().enumerate() {
        let settings = format!("{NODE}{quorum}{settings}");
        let theirs = Side::new(&format!("storage-{number}-apaches"), &settings);
        let ours = Side::new(&format!("storage-{number}-ours"), &settings);
        for command in *commands {
            if let Some(change) = command.strip_prefix('!') {
                for side in [&theirs, &ours] {
                    match change.split_once('=') {
                        Some((name, text)) => side.write(name, text),
                        None => fs::remove_file(side.root.join(change)).expect("it is there"),
                    }
                }
                continue;
            }
            compared += 1;
            let words = theirs.words(command);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let apaches = apache.run("kafka.tools.StorageTool", &words);
            let words = ours.words(command);
            let mut line = vec!["storage"];
            line.extend(words.iter().map(String::as_str));
            let mine = ringmain(&line);
            if theirs.plain(&apaches) != ours.plain(&mine) || theirs.files() != ours.files() {
                differences.push(format!(
                    "{number}: storage {command}\n--- Apache's {apaches:?} {:?}\n--- ours {mine:?} {:?}",
                    theirs.files(),
                    ours.files()
                ));
            }
            let lines = mine.err.lines().count();
            if mine.code != 0 && mine.out.is_empty() && lines != 1 {
                differences.push(format!(
                    "{command} is told off in {lines} lines: {}",
                    mine.err
                ));
            }
        }
        for side in [theirs, ours] {
            let _ = fs::remove_dir_all(side.root);
        }
    }
    (compared, differences)
}
