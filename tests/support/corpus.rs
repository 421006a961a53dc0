//! Real input: the files of whichever machine this is, cut into records.
use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};

use super::clock;
use super::random::Random;
use super::record::Record;

const ROOTS: &[&str] = &[
    "/usr/share",
    "/usr/lib/python3",
    "/usr/lib/jvm",
    "/usr/include",
    "/var/log",
    "~/.cargo/registry/cache",
    "~/.cargo/registry/src",
    "~/.m2/repository",
    env!("CARGO_MANIFEST_DIR"),
];
const FILE_BYTES_MAX: u64 = 8 << 20;
const FILES_A_ROOT: usize = 4_000;
/// A file up to this size is one record.
const WHOLE_FILE_BYTES: usize = 16 << 10;

/// An endless supply of records, the same in every run on an unchanged machine.
pub struct Corpus {
    files: Vec<PathBuf>,
    next_file: usize,
    cut: VecDeque<(String, Vec<u8>)>,
    random: Random,
    count: usize,
}

impl Corpus {
    pub fn open() -> Self {
        let home = std::env::var("HOME").unwrap_or_default();
        let mut lists: Vec<VecDeque<PathBuf>> = ROOTS
            .iter()
            .map(|root| files_below(Path::new(&root.replace('~', &home))))
            .collect();
        let mut files = Vec::new();
        while lists.iter().any(|list| !list.is_empty()) {
            files.extend(lists.iter_mut().filter_map(VecDeque::pop_front));
        }
        assert!(files.len() > 100, "a machine with files");
        Self {
            files,
            next_file: 0,
            cut: VecDeque::new(),
            random: Random::new(7),
            count: 0,
        }
    }

    /// The next records, until their values hold `bytes`; `partition` of the n-th is what `place` says.
    pub fn records(&mut self, bytes: usize, place: impl Fn(usize) -> i32) -> Vec<Record> {
        let mut records = Vec::new();
        let mut total = 0;
        while total < bytes {
            let record = self.next(place(records.len()));
            total += record.value.as_ref().map_or(0, Vec::len);
            records.push(record);
        }
        records
    }

    fn next(&mut self, partition: i32) -> Record {
        while self.cut.is_empty() {
            self.cut_file();
        }
        let (name, value) = self.cut.pop_front().expect("filled above");
        self.count += 1;
        let count = self.count;
        let timestamp =
            clock::wall_clock_ms() - 60_000 + i64::try_from(count % 50_000).expect("small");
        let mut record = Record {
            partition,
            timestamp,
            value: Some(value),
            ..Record::default()
        };
        record.key = match count % 17 {
            0 => None,
            1 => Some(Vec::new()),
            _ => Some(name.clone().into_bytes()),
        };
        if count.is_multiple_of(3) {
            record.headers = headers(&name, count);
        }
        match count % 29 {
            0 => record.value = Some(Vec::new()),
            1 if record.key.is_some() => record.value = None,
            _ => {}
        }
        record
    }

    fn cut_file(&mut self) {
        let path = &self.files[self.next_file % self.files.len()];
        self.next_file += 1;
        // A file that went away or may not be read is no matter.
        let Ok(content) = fs::read(path) else { return };
        let name = path.to_string_lossy().into_owned();
        if content.len() <= WHOLE_FILE_BYTES {
            self.cut.push_back((name, content));
            return;
        }
        let mut rest = content.as_slice();
        while !rest.is_empty() {
            let size = match self.random.between(0, 20) {
                0..9 => self.random.between(1, 300),
                9..15 => self.random.between(300, 4_096),
                15..19 => self.random.between(4_096, 64 << 10),
                _ => self.random.between(64 << 10, 700_000),
            };
            let (piece, behind) = rest.split_at(size.min(rest.len()));
            self.cut.push_back((name.clone(), piece.to_vec()));
            rest = behind;
        }
    }
}

/// Several headers of one name, an empty one, and a name beyond ASCII: order and repetition must stay.
fn headers(name: &str, count: usize) -> Vec<(String, Option<Vec<u8>>)> {
    let mut headers = vec![
        ("file".to_owned(), Some(name.as_bytes().to_vec())),
        ("count".to_owned(), Some(count.to_be_bytes().to_vec())),
        ("count".to_owned(), Some(count.to_string().into_bytes())),
    ];
    if count.is_multiple_of(2) {
        headers.push(("größe".to_owned(), Some(Vec::new())));
        headers.push(("file".to_owned(), Some(b"again".to_vec())));
    }
    headers
}

fn files_below(root: &Path) -> VecDeque<PathBuf> {
    let mut found = VecDeque::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        let mut entries: Vec<_> = entries.filter_map(Result::ok).collect();
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            if kind.is_dir()
                && !["target", ".git"]
                    .iter()
                    .any(|name| entry.file_name() == *name)
            {
                folders.push(entry.path());
            } else if kind.is_file()
                && entry
                    .metadata()
                    .is_ok_and(|meta| (1..FILE_BYTES_MAX).contains(&meta.len()))
            {
                found.push_back(entry.path());
            }
            if found.len() == FILES_A_ROOT {
                return found;
            }
        }
    }
    found
}
