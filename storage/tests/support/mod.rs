//! Running a test on one core, and batches to append.
#![allow(dead_code, reason = "each test binary uses its own part")]

use bytes::Bytes;
use protocol::records::{BatchBuilder, Compression};
use shards::{BackendChoice, Core, Runtime, RuntimeOptions};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use storage::{
    Log, LogConfig, OpenOptions, Piece, ReadLimits, ReadResult, RecoveryReport, Shutdown, Storage,
    StorageOptions, TopicPartition,
};

pub type Local = Pin<Box<dyn Future<Output = ()>>>;

/// Runs `test` to its end on a core of its own.
pub fn on_core<F, Fut>(test: F)
where
    F: FnOnce(Core) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + 'static,
{
    on_faulty_core(None, test);
}

/// The same, with faults of its files.
pub fn on_faulty_core<F, Fut>(file_faults: Option<shards::fault::FileFaults>, test: F)
where
    F: FnOnce(Core) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + 'static,
{
    // STORAGE_TEST_BACKEND=epoll runs the tests where io_uring is not allowed.
    let epoll = std::env::var("STORAGE_TEST_BACKEND").is_ok_and(|backend| backend == "epoll");
    let options = RuntimeOptions {
        cores: 1,
        propagate_panics: true,
        file_faults,
        backend: if epoll {
            BackendChoice::Epoll
        } else {
            BackendChoice::Auto
        },
        ..Default::default()
    };
    let runtime = Runtime::new(options).expect("a runtime");
    runtime
        .run(vec![Box::new(move |core: Core| -> Local {
            Box::pin(test(core))
        })])
        .expect("the core ran");
}

/// A directory that goes when the test ends.
pub struct TempDir(std::path::PathBuf);

impl TempDir {
    pub fn new(name: &str) -> TempDir {
        let path = std::env::temp_dir().join(format!("storage-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a directory for the test");
        TempDir(path)
    }

    pub fn path(&self) -> std::path::PathBuf {
        self.0.clone()
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        // KEEP_TEST_DIRS=1 leaves them for a look with other tools.
        if std::env::var_os("KEEP_TEST_DIRS").is_none() {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}

/// A repeatable source of random numbers (SplitMix64).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

/// Records of a batch: (timestamp, value).
pub fn batch_of(records: &[(i64, &[u8])], codec: Compression, producer: (i64, i16, i32)) -> Bytes {
    let mut builder = BatchBuilder::new(0)
        .codec(codec)
        .producer(producer.0, producer.1, producer.2);
    for (timestamp, value) in records {
        builder.append(*timestamp, None, Some(value), &[]);
    }
    builder.build_bytes().expect("a batch")
}

/// One record.
pub fn batch(timestamp: i64, value: &[u8]) -> Bytes {
    batch_of(&[(timestamp, value)], Compression::None, (-1, -1, -1))
}

pub fn options(partition: &str, config: LogConfig, shutdown: Shutdown) -> OpenOptions {
    OpenOptions {
        partition: TopicPartition::new(partition, 0),
        topic_id: Some("JGSrYWUcTBKJqrKYrkPzUw".parse().expect("an id")),
        topic_id_seen: false,
        config: Rc::new(config),
        shutdown,
        log_start_offset: 0,
    }
}

pub fn storage(core: &Core) -> Storage {
    Storage::new(core.clone(), StorageOptions::default())
}

pub async fn open(
    storage: &Storage,
    directory: &std::path::Path,
    config: LogConfig,
    shutdown: Shutdown,
) -> (Log, RecoveryReport) {
    Log::open(storage, directory, options("topic", config, shutdown))
        .await
        .expect("opens")
}

pub const ALL: ReadLimits = ReadLimits {
    max_bytes: u32::MAX >> 1,
    up_to_offset: i64::MAX,
    whole_first_batch: true,
};

/// The bytes of a result, files read.
pub async fn bytes_of(core: &Core, result: &ReadResult) -> Vec<u8> {
    let mut bytes = Vec::new();
    for piece in &result.pieces {
        match piece {
            Piece::Memory(memory) => bytes.extend_from_slice(memory),
            Piece::File { file, offset, len } => {
                let read = file
                    .read_exact_at(core, *offset, *len as usize)
                    .await
                    .expect("reads");
                bytes.extend_from_slice(&read);
            }
        }
    }
    assert_eq!(bytes.len(), result.bytes as usize, "the pieces add up");
    bytes
}

/// Everything from `offset` on: (offset, timestamp, value) of each record.
pub async fn records_from(core: &Core, log: &Log, mut offset: i64) -> Vec<(i64, i64, Vec<u8>)> {
    let mut records = Vec::new();
    loop {
        let result = log.read(offset, ALL).await.expect("reads");
        if result.bytes == 0 {
            return records;
        }
        let bytes = Bytes::from(bytes_of(core, &result).await);
        for view in protocol::records::split_batches(bytes) {
            let view = view.expect("a whole batch");
            assert!(view.crc_ok());
            for record in view.records(64 << 20).expect("unpacks") {
                let record = record.expect("a record");
                if record.offset >= offset {
                    let value = record.value.unwrap_or_default().to_vec();
                    records.push((record.offset, record.timestamp, value));
                }
            }
        }
        offset = result.next_offset;
    }
}

/// Copies the journals of a log directory.
pub fn copy_journals(from: &std::path::Path, to: &std::path::Path) {
    for entry in std::fs::read_dir(from).expect("a directory") {
        let entry = entry.expect("an entry");
        if entry
            .file_name()
            .to_string_lossy()
            .starts_with("ringmain-journal-")
        {
            std::fs::copy(entry.path(), to.join(entry.file_name())).expect("a copy");
        }
    }
}
