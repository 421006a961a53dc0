//! Apache's own tools and Java clients, all in one process, because each start of a JVM costs seconds.
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

use super::apache;
use super::driver::{build_folder, once, run};
use super::process::Process;

/// Our small programs around them, compiled when first needed.
pub fn classes() -> PathBuf {
    let folder = build_folder("tools-classes");
    let sources = [
        "pom.xml",
        "AdminCalls.java",
        "Apache.java",
        "ConfigTable.java",
        "Commands.java",
        "RoundTrip.java",
        "TerseFailure.java",
    ]
    .map(|name| {
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/tools")
            .join(name)
    });
    let all: Vec<&Path> = sources.iter().map(PathBuf::as_path).collect();
    let jars = apache::jars().join("*");
    once(&folder, &all, || {
        run(Command::new("javac")
            .args(["-nowarn", "-d"])
            .arg(&folder)
            .arg("-cp")
            .arg(jars)
            .args(&all[1..]));
    });
    folder
}

/// Apache's tools and Java clients, one command after the other.
pub struct Tools {
    process: Process,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    errors: PathBuf,
}

impl Tools {
    /// Starts them, with their log in `directory`.
    pub fn start(directory: &Path) -> Self {
        let errors = directory.join("tools.log");
        let log = File::create(&errors).expect("the directory can be written");
        let classes = classes();
        let mut command = Command::new("java");
        command
            .args(["-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"])
            .args(["-Dlog4j2.level=WARN", "-cp"])
            .arg(format!(
                "{}:{}/*",
                classes.display(),
                apache::jars().display()
            ))
            .arg("Apache")
            .stderr(log)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut process = Process::spawn(&mut command);
        let input = process.child().stdin.take().expect("a pipe");
        let output = BufReader::new(process.child().stdout.take().expect("a pipe"));
        Self {
            process,
            input,
            output,
            errors,
        }
    }

    /// The lines that a command prints; it must succeed.
    pub fn ask(&mut self, words: &[&str]) -> Vec<String> {
        writeln!(self.input, "{}", words.join("\t")).expect("the tools read");
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            let length = self.output.read_line(&mut line).expect("text");
            let line = line.trim_end_matches('\n');
            match line.strip_prefix('\t') {
                Some(line) => lines.push(line.to_owned()),
                None if line == "done" => return lines,
                None => panic!(
                    "{words:?}: {}{line}\n{}\n{}",
                    if length == 0 {
                        "the end of the tools"
                    } else {
                        ""
                    },
                    lines.join("\n"),
                    self.errors()
                ),
            }
        }
    }

    /// `DumpLogSegments`, which must not complain, and our dump-log, which must say the same.
    pub fn dump(&mut self, arguments: &[&str], files: &[PathBuf]) -> String {
        let said = self.same_dump(arguments, files);
        for complaint in [
            "mismatch",
            "not in sync",
            "out of order",
            "Invalid",
            "Exception",
            "invalid bytes",
        ] {
            assert!(!said.contains(complaint), "{complaint}:\n{said}");
        }
        // It says so of the first batch of every segment that does not begin at 0, also of its own.
        let hole = said
            .lines()
            .find(|line| line.contains(" is followed by ") && !line.starts_with("  -1 is"));
        assert_eq!(hole, None, "{said}");
        said
    }

    /// Our dump-log says what `DumpLogSegments` says, on standard output and standard error, and ends alike. Where both
    /// fail, why is said in different words. Returns all that ours said.
    pub fn same_dump(&mut self, arguments: &[&str], files: &[PathBuf]) -> String {
        let list: Vec<_> = files.iter().map(|file| file.to_string_lossy()).collect();
        let list = list.join(",");
        let words = [arguments, &["--files", &list]].concat();
        let theirs = self.apart("DumpLogSegments", None, &words);
        let ours = Command::new(env!("CARGO_BIN_EXE_ringmain"))
            .arg("dump-log")
            .args(&words)
            .output()
            .expect("the binary runs");
        let said = String::from_utf8_lossy(&ours.stdout).into_owned();
        let complained = String::from_utf8_lossy(&ours.stderr);
        let failed = theirs.end.starts_with("end 1");
        assert_eq!(
            ours.status.success(),
            !failed,
            "{words:?}: {}, and ours: {complained}",
            theirs.end
        );
        assert_lines(&words, &theirs.out, &said);
        if !failed {
            // Apache has no order among the files that it complains of.
            let theirs = theirs.err.join("\n");
            assert_eq!(complaints(&theirs), complaints(&complained), "{words:?}");
        }
        format!("{said}{complained}")
    }

    /// What one of Apache's tools says, by its class in `org.apache.kafka.tools`; it reads a file, or nothing.
    pub fn apart(&mut self, class: &str, input: Option<&Path>, arguments: &[&str]) -> Apart {
        let class = format!("org.apache.kafka.tools.{class}");
        let input = input.map_or_else(|| "-".into(), Path::to_string_lossy);
        let words = [&["apart", &class, &input], arguments].concat();
        let mut said = self.ask(&words);
        let end = said.pop().expect("how it ended");
        let part = |name: &str| {
            let lines = said.iter().filter_map(|line| line.strip_prefix(name));
            lines.map(str::to_owned).collect()
        };
        Apart {
            out: part("out "),
            err: part("err "),
            end,
        }
    }

    fn errors(&self) -> String {
        let text = fs::read_to_string(&self.errors).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(60)..].join("\n")
    }
}

/// What a tool of Apache's said.
#[derive(Debug)]
pub struct Apart {
    pub out: Vec<String>,
    pub err: Vec<String>,
    /// "end 0", or "end 1" and why.
    pub end: String,
}

/// A heading and the lines below it, sorted by heading.
fn complaints(text: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for line in text.lines() {
        match all.last_mut() {
            Some(last) if line.starts_with("  ") || line.starts_with("Indexed") => {
                last.push('\n');
                last.push_str(line);
            }
            _ => all.push(line.to_owned()),
        }
    }
    all.sort();
    all
}

/// Names the first line that differs: the whole would be too long.
fn assert_lines(words: &[&str], theirs: &[String], ours: &str) {
    let ours: Vec<&str> = ours.lines().collect();
    for (at, (theirs, ours)) in theirs.iter().zip(&ours).enumerate() {
        assert_eq!(theirs, *ours, "line {} of {words:?}", at + 1);
    }
    assert_eq!(theirs.len(), ours.len(), "lines of {words:?}");
}

impl Drop for Tools {
    fn drop(&mut self) {
        self.process.kill();
    }
}
