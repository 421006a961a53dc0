//! `disk`, `net` and `cores` as people run them, for a moment each.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

const TOOL: &str = env!("CARGO_BIN_EXE_ringmain-bench");

/// What the README names of a command: every quantity of every figure.
fn named(command: &str) -> Vec<String> {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let readme = std::fs::read_to_string(readme).expect("the README");
    let rows = readme.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| ")?.split(" | ");
        (cells.next()? == format!("`{command}`")).then_some(())?;
        let (figure, quantities) = (cells.next()?.trim_matches('`'), cells.next()?);
        let named = quantities
            .split(", ")
            .map(move |of| format!("{figure}: {of}"));
        Some(named.collect::<Vec<_>>())
    });
    rows.flatten().collect()
}

fn measure(arguments: &[&str]) -> Output {
    Command::new(TOOL)
        .args(arguments)
        .output()
        .expect("a command")
}

/// Runs a command for a moment and holds its figures against those that the README names.
fn measures_what_is_named(command: &str, more: &[&str], named: &[String]) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("figures.json");
    let json = file.to_str().expect("a name");
    let mut arguments = vec![
        command,
        "--seconds",
        "0.02",
        "--commit",
        "abc",
        "--json",
        json,
    ];
    arguments.extend(more);
    let output = measure(&arguments);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let written: Value =
        serde_json::from_slice(&std::fs::read(&file).expect("a file")).expect("JSON");
    let figures = written["figures"].as_array().expect("figures");
    assert!(!named.is_empty(), "the README names something");
    for name in named {
        assert!(
            figures.iter().any(|one| one["name"] == **name),
            "{name} was not measured"
        );
    }
    for figure in figures {
        let name = figure["name"].as_str().expect("a name");
        assert!(
            named.iter().any(|one| one == name),
            "{name} is not in the README"
        );
        assert!(figure["value"].as_f64() > Some(0.0), "{figure}");
        assert!(
            figure["unit"].is_string() && figure["parameters"].is_object(),
            "{figure}"
        );
    }
    assert!(written["machine"]["cores"].as_u64() > Some(0), "{written}");
    assert!(
        written["command"]
            .as_str()
            .is_some_and(|text| text.contains("--seconds 0.02"))
    );
    assert_eq!(
        (&written["commit"], &written["seconds"]),
        (&"abc".into(), &0.02_f64.into())
    );
    assert_eq!(written["version"], env!("CARGO_PKG_VERSION"));
    let printed = String::from_utf8_lossy(&output.stdout).lines().count();
    assert!(
        printed >= named.len() / 6,
        "people see them, too: {printed} lines"
    );
}

/// A folder on a disk: that of temporary files may lie in memory.
fn disk() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder")
}

#[test]
fn every_figure_of_the_disk_is_measured() {
    let disk = disk();
    let folder = disk.path().to_str().expect("a name");
    measures_what_is_named("disk", &[folder], &named("disk"));
    let left = std::fs::read_dir(disk.path()).expect("the folder").count();
    assert_eq!(left, 0, "files are left");
}

#[test]
fn every_figure_of_the_sockets_is_measured() {
    let disk = disk();
    let folder = disk.path().to_str().expect("a name");
    measures_what_is_named("net", &["--folder", folder], &named("net"));
}

#[test]
fn every_figure_of_the_cores_is_measured() {
    let mut named = named("cores");
    let cores = std::thread::available_parallelism().expect("a count").get();
    named.retain(|name| cores > 1 || !name.contains(" between two "));
    measures_what_is_named("cores", &[], &named);
}

#[test]
fn what_cannot_be_measured_or_written_is_one_line_at_once() {
    let fails = |arguments: &[&str], wanted: &str| {
        let output = measure(arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{errors}");
        assert!(errors.starts_with(wanted), "{errors}");
        assert_eq!(errors.lines().count(), 1, "{errors}");
        assert!(output.stdout.is_empty(), "something was measured before");
    };
    let (missing, file) = ("not/there", env!("CARGO_MANIFEST_PATH"));
    for folder in [missing, file] {
        let wanted = format!("error: cannot create a file in {folder}: ");
        fails(&["disk", folder], &wanted);
        fails(&["net", "--folder", folder], &wanted);
    }
    let disk = disk();
    let folder = disk.path().to_str().expect("a name");
    for command in [
        &["disk", folder][..],
        &["net", "--folder", folder],
        &["cores"],
    ] {
        let wanted = "error: --json not/there.json: ";
        fails(&[command, &["--json", "not/there.json"]].concat(), wanted);
        fails(
            &[command, &["--seconds", "0"]].concat(),
            "error: --seconds 0: ",
        );
    }
}
