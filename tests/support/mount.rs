//! Small filesystems of a test's own, on memory or in a file, that fill up or die. They need root; a test that cannot have
//! one says so and passes.
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the kernel calls EXT4_IOC_SHUTDOWN: from then on every access to the filesystem is an I/O error, as after a
/// device has gone. Nothing is written back first.
const SHUT_DOWN: &str = "import fcntl, os, struct, sys\n\
    directory = os.open(sys.argv[1], os.O_RDONLY)\n\
    fcntl.ioctl(directory, 0x8004587d, struct.pack('I', 2))\n";

pub struct Mount {
    pub path: PathBuf,
    image: Option<PathBuf>,
}

impl Mount {
    /// A filesystem in memory with room for so many bytes.
    pub fn memory(path: &Path, bytes: u64) -> Option<Self> {
        fs::create_dir_all(path).expect("the folder of the test can be written");
        let size = format!("size={bytes}");
        let done = done(
            Command::new("mount")
                .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
                .arg(path),
        );
        done.then(|| Self {
            path: path.to_owned(),
            image: None,
        })
    }

    /// An ext4 in a file beside it.
    pub fn disk(path: &Path, bytes: u64) -> Option<Self> {
        fs::create_dir_all(path).expect("the folder of the test can be written");
        let image = path.with_extension("image");
        let file = fs::File::create(&image).expect("the folder of the test can be written");
        file.set_len(bytes).expect("a sparse file");
        let made = done(Command::new("mkfs.ext4").arg("-q").arg(&image));
        let mount = Self {
            path: path.to_owned(),
            image: Some(image),
        };
        (made && mount.mount()).then_some(mount)
    }

    /// The disk dies: every access is an I/O error until it is mounted again.
    pub fn fail(&self) {
        let status = Command::new("python3")
            .args(["-c", SHUT_DOWN])
            .arg(&self.path)
            .status();
        assert!(
            status.is_ok_and(|status| status.success()),
            "the filesystem can be shut down"
        );
    }

    /// It comes back with what was on it. Nobody may have a file of it open.
    pub fn repair(&self) {
        assert!(done(Command::new("umount").arg(&self.path)), "not in use");
        assert!(self.mount(), "mounted before");
    }

    fn mount(&self) -> bool {
        let image = self.image.as_ref().expect("a disk in a file");
        done(
            Command::new("mount")
                .args(["-o", "loop"])
                .arg(image)
                .arg(&self.path),
        )
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        done(Command::new("umount").arg("-l").arg(&self.path));
        if let Some(image) = &self.image {
            let _ = fs::remove_file(image);
        }
    }
}

fn done(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}
