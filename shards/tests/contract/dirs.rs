use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::Path;

use bytes::Bytes;
use shards::Core;
use shards::io::dir::{self, FileKind};

use crate::support::{disk_dir, path_in};

pub async fn directories_come_and_go(core: Core) {
    let root = disk_dir(&core).await;
    let deep = path_in(&root, "a/b/c");
    dir::create_dir_all(&core, &deep).await.expect("made");
    dir::create_dir_all(&core, &deep)
        .await
        .expect("making it again is fine");
    dir::write_file_atomic(&core, &deep.join("two"), Bytes::from_static(b"22"))
        .await
        .expect("w");
    dir::write_file_atomic(&core, &deep.join("one"), Bytes::from_static(b"1"))
        .await
        .expect("w");
    dir::create_dir_all(&core, &deep.join("sub"))
        .await
        .expect("made");
    dir::sync_dir(&core, &deep).await.expect("synced");

    let entries = dir::read_dir(&core, &deep).await.expect("listed");
    let entries: Vec<_> = entries.into_iter().collect();
    let names: Vec<OsString> = entries.iter().map(|entry| entry.name.clone()).collect();
    assert_eq!(names, ["one", "sub", "two"]);
    assert_eq!(entries[0].len, 1);
    let kinds = dir::read_names(&core, &deep).await.expect("listed");
    let listed: Vec<_> = entries
        .iter()
        .map(|it| (it.name.clone(), it.kind))
        .collect();
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), listed);
    assert_eq!(
        (entries[1].kind, entries[2].kind),
        (FileKind::Directory, FileKind::File)
    );

    dir::rename(&core, &deep.join("one"), &deep.join("two"))
        .await
        .expect("replaces");
    assert_eq!(
        &dir::read_file(&core, &deep.join("two"), 10)
            .await
            .expect("read")[..],
        b"1"
    );
    dir::remove_file(&core, &deep.join("two"))
        .await
        .expect("removed");
    let gone = dir::metadata(&core, &deep.join("two"))
        .await
        .expect_err("gone");
    assert_eq!(gone.kind(), ErrorKind::NotFound);
    dir::remove_dir_all(&core, &path_in(&root, "a"))
        .await
        .expect("removed");
    let gone = dir::read_dir(&core, &deep).await.expect_err("gone");
    assert_eq!(gone.kind(), ErrorKind::NotFound);
    assert_eq!(gone.raw_os_error(), Some(libc::ENOENT));
    let space = dir::free_space(&core, root.path()).await.expect("space");
    assert!(space.total > 0 && space.free <= space.total);
}

pub async fn atomic_writes_replace_the_whole_file(core: Core) {
    let root = disk_dir(&core).await;
    let path = path_in(&root, "checkpoint");
    for contents in ["a longer first version", "short", ""] {
        let bytes = Bytes::from_static(contents.as_bytes());
        dir::write_file_atomic(&core, &path, bytes)
            .await
            .expect("written");
        let read = dir::read_file(&core, &path, 100).await.expect("read");
        assert_eq!(&read[..], contents.as_bytes());
    }
    let entries = dir::read_dir(&core, root.path()).await.expect("listed");
    assert_eq!(entries.len(), 1, "no temporary file is left");
    dir::write_file_atomic(&core, &path, Bytes::from_static(b"12345"))
        .await
        .expect("written");
    let error = dir::read_file(&core, &path, 4)
        .await
        .expect_err("too large");
    assert_eq!(error.kind(), ErrorKind::FileTooLarge);
}

pub async fn a_lock_has_one_holder(core: Core) {
    let root = disk_dir(&core).await;
    let path = path_in(&root, ".lock");
    let lock = dir::lock_file(&core, &path).await.expect("locked");
    let error = dir::lock_file(&core, &path).await.expect_err("held");
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    drop(lock);
    drop(dir::lock_file(&core, &path).await.expect("free again"));
}

pub async fn several_files_are_read_in_one_visit(core: Core) {
    let root = disk_dir(&core).await;
    let (whole, missing) = (path_in(&root, "whole"), path_in(&root, "missing"));
    dir::write_file_atomic(&core, &whole, Bytes::from_static(b"0123456789"))
        .await
        .expect("written");
    let paths = vec![missing.clone(), whole.clone()];
    let read = dir::read_files(&core, paths.clone(), 10).await;
    assert_eq!(kind(&read[0]), Err(ErrorKind::NotFound));
    assert_eq!(kind(&read[1]), Ok(&b"0123456789"[..]));
    let read = dir::read_files(&core, paths, 9).await;
    assert_eq!(kind(&read[1]), Err(ErrorKind::FileTooLarge));

    let part = |path: &Path, offset, len| dir::Part {
        path: path.to_path_buf(),
        offset,
        len,
    };
    let parts = vec![
        part(&whole, 2, 3),
        part(&missing, 0, 1),
        part(&whole, 8, 3),
        part(&whole, 10, 0),
        part(&whole, 0, 10),
    ];
    let read = dir::read_parts(&core, parts).await;
    let read: Vec<_> = read.iter().map(kind).collect();
    let wanted: [Result<&[u8], ErrorKind>; 5] = [
        Ok(b"234"),
        Err(ErrorKind::NotFound),
        Err(ErrorKind::UnexpectedEof),
        Ok(b""),
        Ok(b"0123456789"),
    ];
    assert_eq!(read, wanted);
}

fn kind(read: &std::io::Result<Bytes>) -> Result<&[u8], ErrorKind> {
    read.as_deref().map_err(std::io::Error::kind)
}
