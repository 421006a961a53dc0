use std::io::ErrorKind;
use std::path::Path;

use bytes::Bytes;
use shards::Core;
use shards::fault::FileOperation;
use shards::io::{AlignedBuf, BLOCK, Durability, File, OpenOptions, dir};
use shards::sim::{DiskFaults, NodeId, PowerLoss, World};

use crate::{MS, SECOND, options, run, start};

const PATH: &str = "/data/f";
const LOST: PowerLoss = PowerLoss {
    lost_per_million: 1_000_000,
    torn_per_million: 0,
};

fn world(seed: u64) -> (World, NodeId) {
    let world = World::new(seed);
    let node = world.node(options(1));
    world.disk(node).put(Path::new(PATH), b"").expect("made");
    (world, node)
}

fn set_power_loss(world: &World, node: NodeId, power_loss: PowerLoss) {
    let disk = world.disk(node);
    disk.set_faults(DiskFaults {
        power_loss,
        ..disk.faults()
    });
}

async fn open(core: &Core) -> File {
    let path = Path::new(PATH);
    File::open(core, path, &OpenOptions::writing())
        .await
        .expect("opened")
}

async fn write(core: &Core, file: &File, byte: u8, block: u64, durability: Durability) {
    let data = Bytes::from(vec![byte; BLOCK]);
    file.write_all_at(core, data, block * BLOCK as u64, durability)
        .await
        .expect("written");
}

/// Power fails after `body` has run; gives the file's contents afterwards.
fn contents_after_crash<F, Fut>(world: &World, node: NodeId, body: F) -> Vec<u8>
where
    F: FnOnce(Core) -> Fut + 'static,
    Fut: Future<Output = ()> + 'static,
{
    run(world, node, body);
    world.crash(node);
    world.disk(node).contents(Path::new(PATH)).expect("there")
}

#[test]
fn an_unsynced_write_is_lost_and_a_synced_one_is_not() {
    for seed in 0..20 {
        let (world, node) = world(seed);
        set_power_loss(&world, node, LOST);
        let found = contents_after_crash(&world, node, |core| async move {
            let file = open(&core).await;
            write(&core, &file, 1, 0, Durability::Written).await;
            write(&core, &file, 2, 1, Durability::Written).await;
            file.sync_data(&core).await.expect("synced");
            write(&core, &file, 9, 0, Durability::Written).await;
            write(&core, &file, 3, 2, Durability::Durable).await;
            write(&core, &file, 4, 3, Durability::Written).await;
            // Everybody sees all of it as long as there is power.
            let now = file.read_exact_at(&core, 0, 4 * BLOCK).await.expect("read");
            let seen = [0, 1, 2, 3].map(|block| now[block * BLOCK]);
            assert_eq!(seen, [9, 2, 3, 4]);
        });
        assert_eq!(found.len(), 3 * BLOCK, "the fourth block was never synced");
        let survived = [0, 1, 2].map(|block| found[block * BLOCK]);
        assert_eq!(survived, [1, 2, 3]);
    }
}

/// With the default odds, both outcomes are seen, block by block.
#[test]
fn of_unsynced_blocks_some_are_lost() {
    let (world, node) = world(1);
    let found = contents_after_crash(&world, node, |core| async move {
        let file = open(&core).await;
        file.set_len(&core, 64 * BLOCK as u64).await.expect("grown");
        file.sync_data(&core).await.expect("synced");
        for block in 0..64 {
            write(&core, &file, 7, block, Durability::Written).await;
        }
    });
    let kept = found.chunks(BLOCK).filter(|block| block == &[7; BLOCK]);
    let lost = found.chunks(BLOCK).filter(|block| block == &[0; BLOCK]);
    let (kept, lost) = (kept.count(), lost.count());
    assert!(kept > 10 && lost > 10, "{kept} kept, {lost} lost");
    assert!(kept + lost < 64, "some are torn");
}

#[test]
fn a_killed_process_loses_nothing() {
    let (world, node) = world(2);
    set_power_loss(&world, node, LOST);
    start(&world, node, |core| async move {
        let file = open(&core).await;
        write(&core, &file, 5, 0, Durability::Written).await;
        core.sleep(SECOND * 60).await;
    });
    world.run_for(SECOND);
    world.kill(node);
    assert!(!world.is_running(node));
    let found = world.disk(node).contents(Path::new(PATH)).expect("there");
    assert_eq!(found, [5; BLOCK]);
}

/// Power fails while the writes and syncs are under way: what was acknowledged is there.
#[test]
fn acknowledged_durable_writes_survive_a_crash_at_any_moment() {
    for seed in 0..50 {
        let (world, node) = world(seed);
        set_power_loss(&world, node, LOST);
        let acknowledged = std::rc::Rc::new(std::cell::Cell::new(0));
        let count = acknowledged.clone();
        start(&world, node, |core| async move {
            let file = open(&core).await;
            for block in 0..1000 {
                write(
                    &core,
                    &file,
                    1 + (block % 200) as u8,
                    block,
                    Durability::Durable,
                )
                .await;
                count.set(block + 1);
            }
        });
        world.run_for(MS * (3 + seed as u32));
        world.crash(node);
        let found = world.disk(node).contents(Path::new(PATH)).expect("there");
        let blocks = acknowledged.get();
        assert!(blocks > 0, "the test has written something");
        for block in 0..blocks {
            let first = found.get(block as usize * BLOCK);
            assert_eq!(first, Some(&(1 + (block % 200) as u8)), "seed {seed}");
        }
    }
}

/// The page cache keeps what a failed sync could not write, and takes it for clean.
#[test]
fn a_direct_read_tells_what_a_failed_sync_left_off_the_platter() {
    let (world, node) = world(6);
    set_power_loss(&world, node, LOST);
    let disk = world.disk(node);
    let found = contents_after_crash(&world, node, |core| async move {
        let file = open(&core).await;
        write(&core, &file, 1, 0, Durability::Durable).await;
        write(&core, &file, 2, 0, Durability::Written).await;
        disk.fail(FileOperation::Sync, Path::new(PATH), libc::EIO);
        file.sync_data(&core).await.expect_err("it fails");
        disk.mend();
        write(&core, &file, 3, 1, Durability::Written).await;
        let options = OpenOptions {
            direct: true,
            ..OpenOptions::reading()
        };
        let direct = File::open(&core, Path::new(PATH), &options).await;
        let direct = direct.expect("opened");
        for (file, first) in [(file, 2), (direct, 1)] {
            let read = file.read_exact_at(&core, 0, 2 * BLOCK).await.expect("read");
            assert_eq!((read[0], read[BLOCK]), (first, 3));
            file.sync_data(&core).await.expect("it says so");
        }
    });
    assert_eq!((found[0], found[BLOCK]), (1, 3), "no sync wrote it later");
}

#[test]
fn a_torn_write_mixes_sectors() {
    let (world, node) = world(3);
    let torn = PowerLoss {
        lost_per_million: 0,
        torn_per_million: 1_000_000,
    };
    set_power_loss(&world, node, torn);
    let found = contents_after_crash(&world, node, |core| async move {
        let file = open(&core).await;
        write(&core, &file, 1, 0, Durability::Durable).await;
        write(&core, &file, 2, 0, Durability::Written).await;
    });
    let sectors: Vec<u8> = found.chunks(512).map(|sector| sector[0]).collect();
    for (sector, first) in found.chunks(512).zip(&sectors) {
        assert!(sector.iter().all(|byte| byte == first), "sectors are whole");
    }
    assert!(sectors.contains(&1) && sectors.contains(&2), "{sectors:?}");
}

#[test]
fn names_are_durable_once_their_directory_is_synced() {
    let (world, node) = world(4);
    set_power_loss(&world, node, LOST);
    run(&world, node, |core| async move {
        let at = Path::new("/data");
        for (name, synced) in [("kept", true), ("forgotten", false)] {
            let (path, options) = (at.join(name), OpenOptions::writing());
            let file = File::open(&core, &path, &options).await.expect("opened");
            write(&core, &file, 1, 0, Durability::Durable).await;
            if synced {
                dir::sync_dir(&core, at).await.expect("synced");
            }
        }
        let atomic = at.join("atomic");
        for contents in ["one", "two"] {
            let contents = Bytes::from_static(contents.as_bytes());
            dir::write_file_atomic(&core, &atomic, contents)
                .await
                .expect("written");
        }
        // Never synced: neither the new name nor the removal is durable.
        dir::rename(&core, &atomic, &at.join("renamed"))
            .await
            .expect("renamed");
        dir::remove_file(&core, &at.join("kept"))
            .await
            .expect("removed");
    });
    world.crash(node);
    let disk = world.disk(node);
    let names = disk.names(Path::new("/data")).expect("there");
    // The atomic writes have synced the directory, so "forgotten" was made durable by them.
    assert_eq!(names, ["atomic", "f", "forgotten", "kept"]);
    assert_eq!(
        disk.contents(Path::new("/data/atomic")).expect("read"),
        b"two"
    );
}

#[test]
fn an_unsynced_name_is_lost() {
    let (world, node) = world(5);
    set_power_loss(&world, node, LOST);
    run(&world, node, |core| async move {
        dir::create_dir_all(&core, Path::new("/data/a/b"))
            .await
            .expect("made");
        dir::sync_dir(&core, Path::new("/data/a"))
            .await
            .expect("synced");
        let path = Path::new("/data/new");
        let options = OpenOptions::writing();
        let file = File::open(&core, path, &options);
        file.await
            .expect("opened")
            .sync_all(&core)
            .await
            .expect("synced");
    });
    world.crash(node);
    let names = world.disk(node).names(Path::new("/data")).expect("there");
    assert_eq!(names, ["f"], "the parent of what was synced was not");
}

/// Whatever is lost, the atomic write leaves the old contents or the new.
#[test]
fn atomic_writes_are_atomic_at_any_moment() {
    let mut seen = [0; 2];
    for seed in 0..60u64 {
        let (world, node) = world(seed);
        let path = Path::new("/data/checkpoint");
        let old = [b'o'; 10_000];
        world.disk(node).put(path, &old).expect("put");
        start(&world, node, move |core| async move {
            let new = Bytes::from(vec![b'n'; 20_000]);
            dir::write_file_atomic(&core, path, new)
                .await
                .expect("written");
        });
        world.run_for(MS * (seed % 6) as u32 + MS / 2);
        world.crash(node);
        let found = world.disk(node).contents(path).expect("there");
        let is_new = found.len() == 20_000;
        let expected = if is_new {
            vec![b'n'; 20_000]
        } else {
            old.to_vec()
        };
        assert!(found == expected, "seed {seed}: neither old nor new");
        seen[usize::from(is_new)] += 1;
    }
    assert!(seen[0] > 0 && seen[1] > 0, "{seen:?}");
}

#[test]
fn a_failed_sync_is_not_made_good_by_the_next() {
    let (world, node) = world(6);
    set_power_loss(&world, node, LOST);
    let disk = world.disk(node);
    let found = contents_after_crash(&world, node, move |core| async move {
        let file = open(&core).await;
        write(&core, &file, 1, 0, Durability::Durable).await;
        write(&core, &file, 2, 0, Durability::Written).await;
        disk.fail(FileOperation::Sync, Path::new("/data"), libc::EIO);
        let error = file.sync_data(&core).await.expect_err("fails");
        assert_eq!(error.raw_os_error(), Some(libc::EIO));
        disk.mend();
        file.sync_data(&core).await.expect("says nothing");
    });
    assert_eq!(found, [1; BLOCK], "the kernel took the page for clean");
}

#[test]
fn reads_and_writes_fail_where_they_are_told_to() {
    let (world, node) = world(7);
    let disk = world.disk(node);
    run(&world, node, move |core| async move {
        let file = open(&core).await;
        write(&core, &file, 1, 0, Durability::Written).await;
        disk.fail(FileOperation::Read, Path::new(PATH), libc::EIO);
        let error = file.read_exact_at(&core, 0, 10).await.expect_err("fails");
        assert_eq!(error.raw_os_error(), Some(libc::EIO));
        disk.mend();
        disk.fail(FileOperation::Write, Path::new(PATH), libc::EIO);
        let data = Bytes::from(vec![2; BLOCK]);
        let written = file.write_all_at(&core, data, 0, Durability::Written).await;
        assert_eq!(written.expect_err("fails").raw_os_error(), Some(libc::EIO));
        let other = Path::new("/data/other");
        dir::write_file_atomic(&core, other, Bytes::from_static(b"fine"))
            .await
            .expect("another file is not touched by the rule");
        disk.mend();
        let always = DiskFaults {
            read_error_per_million: 1_000_000,
            ..disk.faults()
        };
        disk.set_faults(always);
        assert!(file.read_exact_at(&core, 0, 10).await.is_err());
    });
}

#[test]
fn a_full_disk_says_so_and_space_comes_back() {
    let (world, node) = world(8);
    let disk = world.disk(node);
    disk.set_capacity(64 * BLOCK as u64);
    run(&world, node, |core| async move {
        let file = open(&core).await;
        let data = Bytes::from(vec![1; 100 * BLOCK]);
        let written = file.write_all_at(&core, data, 0, Durability::Written).await;
        let error = written.expect_err("full");
        assert_eq!(error.raw_os_error(), Some(libc::ENOSPC));
        assert_eq!(file.len(&core).await.expect("len"), 64 * BLOCK as u64);
        let space = dir::free_space(&core, Path::new("/data"))
            .await
            .expect("space");
        assert_eq!((space.total, space.free), (64 * BLOCK as u64, 0));
        // What is there can still be written.
        write(&core, &file, 2, 63, Durability::Durable).await;
        let error = file.allocate(&core, 0, 65 * BLOCK as u64).await;
        assert_eq!(error.expect_err("full").raw_os_error(), Some(libc::ENOSPC));
        file.set_len(&core, 60 * BLOCK as u64).await.expect("cut");
        let other = Path::new("/data/other");
        dir::write_file_atomic(&core, other, Bytes::from(vec![3; 4 * BLOCK]))
            .await
            .expect("fits");
        dir::remove_file(&core, other).await.expect("removed");
        let space = dir::free_space(&core, Path::new("/data"))
            .await
            .expect("space");
        assert_eq!(space.free, 4 * BLOCK as u64);
    });
}

#[test]
fn bits_rot_and_writes_go_astray_silently() {
    let (world, node) = world(9);
    let disk = world.disk(node);
    run(&world, node, move |core| async move {
        let file = open(&core).await;
        write(&core, &file, 0, 0, Durability::Durable).await;
        disk.flip_bit(Path::new(PATH), 77, 3).expect("flipped");
        let read = file.read_exact_at(&core, 77, 1).await.expect("read");
        assert_eq!(read[0], 8);
        let astray = DiskFaults {
            misdirected_per_million: 1_000_000,
            short_per_million: 0,
            ..disk.faults()
        };
        disk.set_faults(astray);
        write(&core, &file, 5, 0, Durability::Durable).await;
        let read = file.read_exact_at(&core, 0, 2 * BLOCK).await.expect("read");
        assert_eq!((read[0], read[BLOCK]), (0, 5));
    });
}

#[test]
fn a_stalled_disk_holds_operations_up_until_it_is_mended() {
    let (world, node) = world(10);
    let disk = world.disk(node);
    run(&world, node, move |core| async move {
        let file = open(&core).await;
        disk.stall_for(SECOND * 5);
        let began = core.now();
        file.sync_data(&core).await.expect("synced");
        let took = core.now() - began;
        assert!(took >= SECOND * 4 && took < SECOND * 6, "{took:?}");
    });
}

#[test]
fn reads_and_writes_may_be_short_and_nothing_is_missing() {
    let (world, node) = world(11);
    let disk = world.disk(node);
    disk.set_faults(DiskFaults {
        short_per_million: 800_000,
        ..disk.faults()
    });
    run(&world, node, |core| async move {
        for direct in [false, true] {
            let name = if direct {
                "/data/direct"
            } else {
                "/data/plain"
            };
            let options = OpenOptions {
                direct,
                ..OpenOptions::writing()
            };
            let file = File::open(&core, Path::new(name), &options)
                .await
                .expect("opened");
            let mut buffer = AlignedBuf::zeroed(100 * BLOCK);
            for (index, byte) in buffer.as_mut_slice().iter_mut().enumerate() {
                *byte = (index % 251) as u8;
            }
            let data = buffer.freeze();
            file.write_all_at(&core, data.clone(), 0, Durability::Written)
                .await
                .expect("written");
            let read = file
                .read_exact_at(&core, 1, 99 * BLOCK)
                .await
                .expect("read");
            assert!(read == data.slice(1..=99 * BLOCK), "direct: {direct}");
        }
    });
}

#[test]
fn a_lock_is_freed_by_a_crash() {
    let (world, node) = world(12);
    let path = Path::new("/data/.lock");
    start(&world, node, move |core| async move {
        let _held = dir::lock_file(&core, path).await.expect("locked");
        let again = dir::lock_file(&core, path).await.expect_err("held");
        assert_eq!(again.kind(), ErrorKind::WouldBlock);
        core.sleep(SECOND * 100).await;
    });
    world.run_for(SECOND);
    world.crash(node);
    run(&world, node, move |core| async move {
        drop(dir::lock_file(&core, path).await.expect("free"));
    });
}
