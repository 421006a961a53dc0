//! Apache Kafka itself: the jars that `tests/tools/pom.xml` names, from Maven Central.
use std::path::{Path, PathBuf};
use std::process::Command;

use super::driver;

/// The folder with the jars, fetched when first needed.
pub fn jars() -> PathBuf {
    let folder = driver::build_folder("tools");
    let pom = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tools/pom.xml");
    let jars = folder.join("jars");
    driver::once(&folder, &[&pom], || {
        // What an older pom left must not stand beside the new.
        let _ = std::fs::remove_dir_all(&jars);
        driver::maven_jars(&pom, &jars);
    });
    jars
}

fn java(options: &[&str], class: &str) -> Command {
    let mut command = Command::new("java");
    command
        .args(options)
        .arg("-cp")
        .arg(jars().join("*"))
        .arg(class);
    command
}

/// A program of Apache's that does one thing and ends. Little time is spent on compiling it well.
pub fn tool(class: &str) -> Command {
    java(&["-Xmx512m", "-XX:TieredStopAtLevel=1"], class)
}

/// `kafka-storage`.
pub fn storage() -> Command {
    tool("kafka.tools.StorageTool")
}

/// `kafka-server-start`, its log on standard output.
pub fn server() -> Command {
    let options = [
        "-Xmx512m",
        "-XX:TieredStopAtLevel=1",
        "-XX:+UseSerialGC",
        "-Dlog4j2.level=INFO",
    ];
    java(&options, "kafka.Kafka")
}
