//! House rules as an ordinary test: who may use whom, how long a file may be, nothing left undone.
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The modules of `src/`, each of which may use those before it. Modules in one row may use each other.
const ORDER: &[&[&str]] = &[
    &["features"],
    &["config"],
    &["telemetry"],
    &["metadata"],
    &["security", "quota"],
    &["outgoing"],
    &["replication"],
    &["coordinator", "controller"],
    &["shard"],
    &["handlers"],
    &["network", "http"],
    &["server"],
    &["tools"],
    &["cli"],
];

/// Uses against the order that stand today: to be taken away, never added to.
const TOLERATED: &[(&str, &str)] = &[];

const LINES_MAX: usize = 900;

/// Words that say that something is not finished; split, so that this list does not find itself.
const LEFTOVERS: &[&str] = &[
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X:"),
];

/// Places of the machines where this was written.
const MACHINE: &[&str] = &[
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("/ho", "me/"),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every file that is ours, with its path below the root and its text.
fn files(ends: &[&str]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)
            .expect("our own folders")
            .filter_map(Result::ok)
        {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            if path.is_dir() {
                if !["target", ".git", "ringmain-data", "node_modules"].contains(&name.as_str()) {
                    folders.push(path);
                }
            } else if ends.iter().any(|end| name.ends_with(end)) {
                found.extend(
                    fs::read_to_string(&path)
                        .ok()
                        .map(|text| (below_root(&path), text)),
                );
            }
        }
    }
    assert!(found.len() > 20, "the files of the project");
    found.sort();
    found
}

fn below_root(path: &Path) -> String {
    path.strip_prefix(root())
        .expect("below the root")
        .to_string_lossy()
        .into_owned()
}

fn rank(module: &str) -> Option<usize> {
    ORDER.iter().position(|row| row.contains(&module))
}

/// The modules that a line uses by `crate::`.
fn used(line: &str) -> Vec<String> {
    let code = line.split("//").next().unwrap_or_default();
    let behind = code.split("crate::").skip(1);
    let names = behind
        .filter(|_| !code.trim_start().starts_with("#["))
        .flat_map(|rest| {
            let list = rest
                .strip_prefix('{')
                .map_or(rest, |list| list.split('}').next().unwrap_or_default());
            let parts: Vec<&str> = if rest.starts_with('{') {
                list.split(',').collect()
            } else {
                vec![list]
            };
            let first = |part: &str| {
                part.trim()
                    .split(|c: char| !c.is_alphanumeric() && c != '_')
                    .next()
                    .map(str::to_owned)
            };
            parts.into_iter().filter_map(first).collect::<Vec<_>>()
        });
    names.filter(|name| rank(name).is_some()).collect()
}

#[test]
fn modules_use_only_those_before_them() {
    let mut against: BTreeMap<(String, String), String> = BTreeMap::new();
    for (path, text) in files(&[".rs"]) {
        let Some(module) = path
            .strip_prefix("src/")
            .and_then(|rest| rest.split(['/', '.']).next())
        else {
            continue;
        };
        let Some(own) = rank(module) else {
            assert!(
                ["lib", "main"].contains(&module),
                "{path}: where does {module} stand in the order?"
            );
            continue;
        };
        for (number, line) in (1..).zip(text.lines()) {
            for other in used(line) {
                if rank(&other).is_some_and(|other| other > own)
                    && !TOLERATED.contains(&(module, &other))
                {
                    let place = format!("{path}:{number}");
                    against.entry((module.to_owned(), other)).or_insert(place);
                }
            }
        }
    }
    assert!(
        against.is_empty(),
        "uses against the order of modules: {against:#?}"
    );
}

/// Whether a line of a manifest asks for a package: by its name, or by another with its name behind it.
fn depends_on(line: &str, package: &str) -> bool {
    let line = line.trim();
    let key = line
        .trim_start_matches('"')
        .strip_prefix(package)
        .is_some_and(|rest| rest.starts_with(['.', ' ', '=', '"']));
    let table = line.starts_with('[') && line.ends_with(&format!("dependencies.{package}]"));
    let renamed = line.contains("package") && line.contains(&format!("\"{package}\""));
    key || table || renamed
}

#[test]
fn libraries_know_only_what_they_may() {
    for (library, forbidden) in [
        ("shards", &["storage", "protocol", "ringmain"][..]),
        ("protocol", &["shards", "storage", "ringmain"]),
        ("storage", &["ringmain"]),
        // What measures brokers shares no code with one of them.
        (
            "bench-harness",
            &[
                "shards",
                "protocol",
                "storage",
                "planted",
                "ringmain",
                "ringmain-perf",
            ],
        ),
    ] {
        let manifest =
            fs::read_to_string(root().join(library).join("Cargo.toml")).expect("a manifest");
        for name in forbidden {
            let line = manifest.lines().find(|line| depends_on(line, name));
            assert_eq!(line, None, "{library} knows {name}");
        }
    }
    for (path, text) in files(&[".rs"]) {
        if path.starts_with("shards/src") {
            let code = text
                .lines()
                .filter(|line| !line.trim_start().starts_with("//"));
            let kafka = code
                .filter(|line| line.to_lowercase().contains("kafka"))
                .count();
            assert_eq!(kafka, 0, "{path}: the runtime knows no Kafka");
        }
    }
}

#[test]
fn a_dependency_is_found_however_it_is_written() {
    for line in [
        "storage.workspace = true",
        "storage = { path = \"../storage\" }",
        "  \"storage\" = \"1\"",
        "storage=\"1\"",
        "[target.'cfg(unix)'.dev-dependencies.storage]",
        "disk = { package = \"storage\", version = \"1\" }",
    ] {
        assert!(depends_on(line, "storage"), "{line}");
    }
    for line in [
        "storage-of-others.workspace = true",
        "description = \"knows nothing of storage\"",
        "kafka-storage = { package = \"kafka-storage\" }",
    ] {
        assert!(!depends_on(line, "storage"), "{line}");
    }
}

#[test]
fn no_file_is_two_subjects() {
    let long: Vec<_> = files(&[".rs"])
        .into_iter()
        .map(|(path, text)| (path, text.lines().count()))
        .filter(|(path, lines)| *lines > LINES_MAX && !path.contains("generated"))
        .collect();
    assert!(long.is_empty(), "longer than {LINES_MAX} lines: {long:?}");
}

#[test]
fn nothing_is_left_undone() {
    let mut left = Vec::new();
    for (path, text) in files(&[".rs", ".java", ".py", ".toml", ".md", "run"]) {
        for (number, line) in (1..).zip(text.lines()) {
            if LEFTOVERS.iter().any(|word| line.contains(word)) {
                left.push(format!("{path}:{number}: {}", line.trim()));
            }
        }
    }
    assert!(left.is_empty(), "{left:#?}");
}

#[test]
fn nothing_names_the_machine_it_was_written_on() {
    let mut named = Vec::new();
    for (path, text) in files(&[".rs", ".java", ".py", ".toml", ".md", ".xml", "run"]) {
        for (number, line) in (1..).zip(text.lines()) {
            if MACHINE.iter().any(|place| line.contains(place)) {
                named.push(format!("{path}:{number}: {}", line.trim()));
            }
        }
    }
    assert!(named.is_empty(), "{named:#?}");
}
