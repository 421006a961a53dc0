//! DescribeLogDirs: which directory holds which partitions, how large they are, and the space there is.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use futures_util::future::join_all;
use protocol::messages::{
    DescribeLogDirsRequest, DescribeLogDirsResponse,
    DescribeLogDirsResponseDescribeLogDirsPartition, DescribeLogDirsResponseDescribeLogDirsResult,
    DescribeLogDirsResponseDescribeLogDirsTopic,
};
use protocol::{Array, ErrorCode, Str};
use shards::TaskClass;
use shards::io::dir;
use tracing::warn;

use super::api::{Call, Handler};
use crate::shard::Shard;

type Partitions = Array<DescribeLogDirsResponseDescribeLogDirsPartition>;

/// The handler.
pub struct DescribeLogDirs;

impl Handler for DescribeLogDirs {
    type Request = DescribeLogDirsRequest;

    async fn handle(call: Call, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse {
        let wanted: Option<BTreeSet<(Str, i32)>> = request.topics.map(|topics| {
            let pairs = topics.into_iter().flat_map(|topic| {
                let name = topic.topic;
                let indexes = topic.partitions.into_iter();
                indexes.map(move |index| (name.clone(), index))
            });
            pairs.collect()
        });
        let asked = call.shard.cores().map(|core| {
            let there = |shard: &Rc<Shard>| std::future::ready(sizes(shard));
            call.shard.mesh().call(core, TaskClass::Background, there)
        });
        let mut directories: BTreeMap<PathBuf, BTreeMap<Str, Partitions>> = BTreeMap::new();
        for log in join_all(asked).await.into_iter().flatten() {
            let named = (log.topic, log.partition);
            if wanted
                .as_ref()
                .is_some_and(|wanted| !wanted.contains(&named))
            {
                continue;
            }
            let topics = directories.entry(log.directory).or_default();
            topics.entry(named.0).or_default().push(
                DescribeLogDirsResponseDescribeLogDirsPartition {
                    partition_index: log.partition,
                    partition_size: log.bytes,
                    ..Default::default()
                },
            );
        }
        let failed = call.shard.failed_directories().await;
        let paths = call.shard.config.storage.log_dirs.iter();
        let described = paths.map(|path| {
            let topics = directories.remove(path).unwrap_or_default();
            describe(&call, path, topics, failed.contains(path))
        });
        let described: Vec<_> = described.collect();
        DescribeLogDirsResponse {
            results: join_all(described).await.into(),
            ..Default::default()
        }
    }
}

/// One log of a core.
struct LogSize {
    directory: PathBuf,
    topic: Str,
    partition: i32,
    bytes: i64,
}

fn sizes(shard: &Shard) -> Array<LogSize> {
    let all = shard.replicas.all();
    all.iter()
        .map(|partition| LogSize {
            directory: partition
                .log
                .directory()
                .parent()
                .map(Path::to_path_buf)
                .unwrap_or_default(),
            topic: partition.topic.clone(),
            partition: partition.key.partition,
            bytes: i64::try_from(partition.log.size_bytes()).unwrap_or(i64::MAX),
        })
        .collect()
}

async fn describe(
    call: &Call,
    path: &Path,
    topics: BTreeMap<Str, Partitions>,
    failed: bool,
) -> DescribeLogDirsResponseDescribeLogDirsResult {
    let shown = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let mut result = DescribeLogDirsResponseDescribeLogDirsResult {
        log_dir: Str::from(shown.display().to_string()),
        ..Default::default()
    };
    if failed {
        result.error_code = ErrorCode::KafkaStorageError.code();
        return result;
    }
    let bytes = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    match dir::free_space(&call.shard.core, path).await {
        Ok(space) => {
            result.total_bytes = bytes(space.total);
            result.usable_bytes = bytes(space.free);
            result.topics = topics
                .into_iter()
                .map(
                    |(name, partitions)| DescribeLogDirsResponseDescribeLogDirsTopic {
                        name,
                        partitions,
                    },
                )
                .collect();
        }
        Err(error) => {
            warn!(directory = %path.display(), %error, "cannot describe a log directory");
            result.error_code = ErrorCode::KafkaStorageError.code();
        }
    }
    result
}
