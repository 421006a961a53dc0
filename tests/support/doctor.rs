//! `ringmain doctor` against a broker.
use std::process::Command;

use super::broker::binary;

/// Its exit code and what it said.
pub fn examine(arguments: &[&str]) -> (i32, String) {
    let done = Command::new(binary())
        // How full the disk of this machine is, is none of a test's business.
        .args(["doctor", "--watch", "1", "--min-free", "0"])
        .args(arguments)
        .output()
        .expect("the binary starts");
    let said =
        String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
    (done.status.code().expect("it was not killed"), said)
}

/// The findings alone.
pub fn findings(said: &str) -> Vec<&str> {
    said.lines()
        .filter_map(|line| line.trim().strip_prefix("BAD"))
        .map(str::trim)
        .collect()
}
