//! What lies in a data directory, looked at from outside.
use std::fs;
use std::path::{Path, PathBuf};

/// The partition directories of a log directory, in order.
pub fn partitions(data: &Path) -> Vec<PathBuf> {
    let mut found: Vec<_> = list(data)
        .into_iter()
        .filter(|path| path.is_dir())
        .collect();
    found.sort();
    found
}

fn list(directory: &Path) -> Vec<PathBuf> {
    let entries =
        fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    entries
        .map(|entry| entry.expect("a directory can be read").path())
        .collect()
}

/// The files of a partition with that ending, in order.
pub fn files_of(directory: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = list(directory);
    found.retain(|path| path.to_string_lossy().ends_with(ending));
    found.sort();
    found
}

/// The same of all partitions of a topic.
pub fn files_of_topic(data: &Path, topic: &str, ending: &str) -> Vec<PathBuf> {
    let of_topic = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.rsplit_once('-').is_some_and(|(name, _)| name == topic)
    };
    let mine = partitions(data).into_iter().filter(of_topic);
    mine.flat_map(|directory| files_of(&directory, ending))
        .collect()
}

/// Base offset and position of each batch in a segment, and where the last one ends.
pub fn batches(segment: &Path) -> (Vec<(i64, usize)>, usize) {
    let bytes = fs::read(segment).expect("a segment can be read");
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(head) = bytes.get(at..at + 12) {
        let (offset, length) = head.split_at(8);
        let offset = i64::from_be_bytes(offset.try_into().expect("eight bytes"));
        let length = i32::from_be_bytes(length.try_into().expect("four bytes"));
        let end = at + 12 + usize::try_from(length).unwrap_or(usize::MAX >> 1);
        if length == 0 || end > bytes.len() {
            break;
        }
        found.push((offset, at));
        at = end;
    }
    (found, at)
}

/// Every segment is as long as its batches, to the byte.
pub fn assert_exact(data: &Path) {
    for directory in partitions(data) {
        for segment in files_of(&directory, ".log") {
            let length = fs::metadata(&segment).expect("a segment").len();
            assert_eq!(batches(&segment).1 as u64, length, "{}", segment.display());
        }
    }
}
