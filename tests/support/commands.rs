//! Apache's command-line tools in one process, and ours, for the same arguments.
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Command, Output, Stdio};

use super::process::Process;
use super::{apache, broker, tools};

/// What a command left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    pub code: i32,
    pub out: String,
    pub err: String,
}

/// Apache's tools, one command after the other.
pub struct Commands {
    process: Process,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Commands {
    /// Starts them, with their log in `directory`.
    pub fn start(directory: &Path) -> Self {
        let log =
            File::create(directory.join("commands.log")).expect("the directory can be written");
        let path = format!(
            "{}:{}/*",
            tools::classes().display(),
            apache::jars().display()
        );
        let mut command = Command::new("java");
        command
            .args(["-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"])
            .args(["-Dlog4j2.level=OFF", "-cp", &path, "Commands"])
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
        }
    }

    /// Runs the `main` of a class, or one of the helpers in `Commands.java`.
    pub fn run(&mut self, class: &str, arguments: &[&str]) -> Ended {
        let words: Vec<&str> = [class]
            .into_iter()
            .chain(arguments.iter().copied())
            .collect();
        writeln!(self.input, "{}", words.join("\t")).expect("the tools read");
        let mut line = String::new();
        self.output.read_line(&mut line).expect("text");
        let parts: Vec<&str> = line.trim_end_matches('\n').split('\t').collect();
        let [code, out, err] = parts[..] else {
            panic!("{words:?}: {line:?}");
        };
        Ended {
            code: code.parse().expect("a number"),
            out: decoded(out),
            err: decoded(err),
        }
    }

    /// Like `run`, for what must succeed.
    pub fn must(&mut self, class: &str, arguments: &[&str]) {
        let ended = self.run(class, arguments);
        assert_eq!(ended.code, 0, "{class} {arguments:?}: {}", ended.err);
    }
}

impl Drop for Commands {
    fn drop(&mut self) {
        self.process.kill();
    }
}

/// Runs a command of the binary under test.
pub fn ringmain(arguments: &[&str]) -> Ended {
    let output = ringmain_with("", arguments);
    Ended {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// The same, on these lines of input.
pub fn ringmain_with(input: &str, arguments: &[&str]) -> Output {
    let mut child = Command::new(broker::binary())
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    // A tool that refuses its arguments reads nothing.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    child.wait_with_output().expect("it ends")
}

/// Base64, as Java writes it.
fn decoded(text: &str) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0_u32, 0);
    for letter in text.bytes().filter(|&letter| letter != b'=') {
        let value = LETTERS
            .iter()
            .position(|&known| known == letter)
            .expect("base64");
        bits = bits << 6 | u32::try_from(value).expect("below 64");
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from(bits >> count & 0xff).expect("a byte"));
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
