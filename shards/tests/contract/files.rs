use std::io::ErrorKind;

use bytes::Bytes;
use shards::io::{AlignedBuf, BLOCK, Durability, File, OpenOptions, dir};
use shards::{Core, TaskClass};

use crate::support::{disk_dir, path_in, pattern};

fn direct() -> OpenOptions {
    OpenOptions {
        direct: true,
        ..OpenOptions::writing()
    }
}

fn aligned(bytes: &[u8]) -> Bytes {
    let mut buffer = AlignedBuf::with_capacity(bytes.len());
    buffer.extend_from_slice(bytes);
    buffer.freeze()
}

pub async fn a_file_gives_back_what_was_written(core: Core) {
    let root = disk_dir(&core).await;
    let path = path_in(&root, "f");
    let file = File::open(&core, &path, &OpenOptions::writing())
        .await
        .expect("opened");
    assert!(!file.is_direct());
    let data = Bytes::from(pattern(100_003, 1));
    file.write_all_at(&core, data.slice(..50_000), 0, Durability::Written)
        .await
        .expect("w");
    file.write_all_at(&core, data.slice(50_000..), 50_000, Durability::Durable)
        .await
        .expect("w");
    file.sync_data(&core).await.expect("synced");
    file.sync_all(&core).await.expect("synced");
    assert_eq!(file.len(&core).await.expect("len"), 100_003);
    assert_eq!(
        file.read_exact_at(&core, 0, 100_003).await.expect("read"),
        data
    );
    assert_eq!(
        file.read_exact_at(&core, 777, 1).await.expect("read"),
        data.slice(777..778)
    );
    file.set_len(&core, 10).await.expect("cut");
    assert_eq!(
        file.read_at_most(&core, 0, 100).await.expect("read"),
        data.slice(..10)
    );
    drop(file);
    let file = File::open(&core, &path, &OpenOptions::reading())
        .await
        .expect("opened");
    assert_eq!(
        file.read_exact_at(&core, 0, 10).await.expect("read"),
        data.slice(..10)
    );
    let error = file
        .write_all_at(&core, data, 0, Durability::Written)
        .await
        .expect_err("rdonly");
    assert_eq!(error.raw_os_error(), Some(libc::EBADF));
}

pub async fn direct_files_give_back_what_was_written(core: Core) {
    let root = disk_dir(&core).await;
    let file = File::open(&core, &path_in(&root, "f"), &direct())
        .await
        .expect("opened");
    let data = aligned(&pattern(64 * BLOCK, 2));
    file.write_all_at(&core, data.clone(), 0, Durability::Written)
        .await
        .expect("written");
    let more = data.slice(8 * BLOCK..16 * BLOCK);
    file.write_all_at(&core, more.clone(), 64 * BLOCK as u64, Durability::Durable)
        .await
        .expect("written");
    for (offset, len) in [
        (0, 64 * BLOCK),
        (1, 10),
        (BLOCK - 1, 2),
        (4095, 3 * BLOCK + 2),
        (5, 0),
    ] {
        let read = file
            .read_exact_at(&core, offset as u64, len)
            .await
            .expect("read");
        assert_eq!(
            read,
            data.slice(offset..offset + len),
            "{len} bytes at {offset}"
        );
    }
    assert_eq!(
        file.read_exact_at(&core, 64 * BLOCK as u64, 8 * BLOCK)
            .await
            .expect("read"),
        more
    );

    // A length that is no multiple of a block still reads to its very end.
    file.set_len(&core, 100_001).await.expect("cut");
    let tail = file.read_at_most(&core, 99_990, 5000).await.expect("read");
    assert_eq!(tail, data.slice(99_990..100_001));
    let error = file
        .read_exact_at(&core, 99_990, 12)
        .await
        .expect_err("beyond the end");
    assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
}

/// As a log is written: each write begins with the block in which the one before ended, and goes on where space is only
/// reserved.
pub async fn a_write_that_goes_on_behind_a_known_block_arrives_whole(core: Core) {
    let root = disk_dir(&core).await;
    let file = File::open(&core, &path_in(&root, "f"), &direct())
        .await
        .expect("opened");
    file.allocate(&core, 0, 200 * BLOCK as u64)
        .await
        .expect("reserved");
    let data = aligned(&pattern(100 * BLOCK, 3));
    let mut at = 0;
    for (known, blocks) in [(0, 2), (1, 17), (1, 1), (1, 30), (2, 2), (3, 40)] {
        at -= known;
        let part = data.slice(at * BLOCK..(at + blocks) * BLOCK);
        file.write_on_at(&core, part, (at * BLOCK) as u64, known * BLOCK)
            .await
            .expect("written");
        at += blocks;
        let all = file.read_exact_at(&core, 0, at * BLOCK).await;
        assert_eq!(all.expect("read"), data.slice(..at * BLOCK));
    }
}

pub async fn unaligned_direct_writes_are_refused(core: Core) {
    let root = disk_dir(&core).await;
    let file = File::open(&core, &path_in(&root, "f"), &direct())
        .await
        .expect("opened");
    if !file.is_direct() {
        return; // a filesystem without O_DIRECT takes any write
    }
    let data = aligned(&pattern(2 * BLOCK, 3));
    for (slice, offset) in [(0..100, 0), (0..BLOCK, 512), (8..BLOCK + 8, 0)] {
        let error = file
            .write_all_at(&core, data.slice(slice), offset, Durability::Written)
            .await
            .expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    }
    assert_eq!(file.len(&core).await.expect("len"), 0);
}

pub async fn reads_stop_at_the_end_of_the_file(core: Core) {
    let root = disk_dir(&core).await;
    for options in [OpenOptions::writing(), direct()] {
        let path = path_in(&root, if options.direct { "direct" } else { "plain" });
        dir::write_file_atomic(&core, &path, Bytes::from_static(b"hello"))
            .await
            .expect("written");
        let file = File::open(&core, &path, &options).await.expect("opened");
        assert_eq!(
            &file.read_at_most(&core, 0, 100).await.expect("read")[..],
            b"hello"
        );
        assert_eq!(
            &file.read_at_most(&core, 3, 9000).await.expect("read")[..],
            b"lo"
        );
        assert_eq!(
            &file.read_at_most(&core, 5, 10).await.expect("read")[..],
            b""
        );
        assert_eq!(
            &file.read_at_most(&core, 50_000, 10).await.expect("read")[..],
            b""
        );
        let error = file.read_exact_at(&core, 0, 6).await.expect_err("short");
        assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
    }
}

pub async fn many_writes_at_once_all_arrive(core: Core) {
    let root = disk_dir(&core).await;
    let file = File::open(&core, &path_in(&root, "f"), &direct())
        .await
        .expect("opened");
    let data = aligned(&pattern(256 * BLOCK, 4));
    let mut tasks = Vec::new();
    for block in (0..256).rev() {
        let (core_of_task, file) = (core.clone(), file.clone());
        let part = data.slice(block * BLOCK..(block + 1) * BLOCK);
        tasks.push(core.spawn(TaskClass::Produce, "writer", async move {
            let offset = (block * BLOCK) as u64;
            file.write_all_at(&core_of_task, part, offset, Durability::Written)
                .await
        }));
    }
    for task in tasks {
        task.await.expect("not aborted").expect("written");
    }
    assert_eq!(
        file.read_exact_at(&core, 0, 256 * BLOCK)
            .await
            .expect("read"),
        data
    );
}

pub async fn allocate_extends_with_zeros(core: Core) {
    let root = disk_dir(&core).await;
    let file = File::open(&core, &path_in(&root, "f"), &direct())
        .await
        .expect("opened");
    file.allocate(&core, 0, 1 << 20).await.expect("allocated");
    assert_eq!(file.len(&core).await.expect("len"), 1 << 20);
    let data = aligned(&pattern(BLOCK, 5));
    file.write_all_at(&core, data.clone(), BLOCK as u64, Durability::Written)
        .await
        .expect("w");
    let read = file.read_exact_at(&core, 0, 3 * BLOCK).await.expect("read");
    assert!(read[..BLOCK].iter().all(|byte| *byte == 0));
    assert_eq!(read.slice(BLOCK..2 * BLOCK), data);
    assert!(read[2 * BLOCK..].iter().all(|byte| *byte == 0));
}

pub async fn a_file_works_after_rename_and_removal(core: Core) {
    let root = disk_dir(&core).await;
    let (path, other) = (path_in(&root, "f"), path_in(&root, "g"));
    let file = File::open(&core, &path, &OpenOptions::writing())
        .await
        .expect("opened");
    dir::rename(&core, &path, &other).await.expect("renamed");
    file.write_all_at(
        &core,
        Bytes::from_static(b"still here"),
        0,
        Durability::Written,
    )
    .await
    .expect("written");
    assert_eq!(
        &dir::read_file(&core, &other, 100).await.expect("read")[..],
        b"still here"
    );
    dir::remove_file(&core, &other).await.expect("removed");
    assert_eq!(
        &file.read_exact_at(&core, 6, 4).await.expect("read")[..],
        b"here"
    );
}

pub async fn open_errors_are_those_of_the_kernel(core: Core) {
    let root = disk_dir(&core).await;
    let path = path_in(&root, "absent");
    let error = File::open(&core, &path, &OpenOptions::reading())
        .await
        .expect_err("absent");
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
    let new = OpenOptions {
        create_new: true,
        ..direct()
    };
    drop(File::open(&core, &path, &new).await.expect("made"));
    let error = File::open(&core, &path, &new).await.expect_err("exists");
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
}
