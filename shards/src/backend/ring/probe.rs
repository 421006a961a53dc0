//! Whether this process may use io_uring, and if not, what to tell the operator.

use std::io;
use std::rc::Rc;

use io_uring::opcode;

use super::{RingDriver, build_ring};

/// Why the ring cannot be used.
pub(crate) struct Refusal {
    /// What is wrong and what to do about it.
    pub(crate) text: String,
    /// A setting of the operator's that should be fixed rather than worked around.
    pub(crate) fixable_limit: bool,
}

/// Memory of the driver that is set up to see whether it can be.
const POOL_BYTES: usize = 64 * 1024;

/// Builds a ring and a driver as the backend uses them, and runs an operation.
pub(crate) fn probe() -> Result<(), Refusal> {
    let mut ring = build_ring().map_err(|error| explain(&error))?;
    let entry = opcode::Nop::new().build().user_data(7);
    // SAFETY: a no-op points to nothing.
    let pushed = unsafe { ring.submission().push(&entry) };
    let ran = pushed
        .map_err(io::Error::other)
        .and_then(|()| ring.submit_and_wait(1));
    ran.map_err(|error| explain(&error))?;
    let answered = ring
        .completion()
        .any(|cqe| cqe.user_data() == 7 && cqe.result() == 0);
    if answered {
        // A profile may allow rings and forbid to register buffers with them.
        let driver = RingDriver::new(POOL_BYTES, Rc::default(), None);
        return driver.map(drop).map_err(|error| explain(&error));
    }
    let text = "io_uring accepts operations but does not complete them".to_owned();
    Err(Refusal {
        text,
        fixable_limit: false,
    })
}

/// What the kernel's answer means, whatever kernel it came from.
pub(crate) fn explain(error: &io::Error) -> Refusal {
    let disabled = std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled")
        .map(|text| text.trim().to_owned())
        .unwrap_or_default();
    let (text, fixable_limit) = match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) if disabled == "1" || disabled == "2" => (
            format!(
                "io_uring is turned off on this machine (kernel.io_uring_disabled = {disabled}); \
                 remedy: sysctl kernel.io_uring_disabled=0"
            ),
            false,
        ),
        Some(libc::EPERM | libc::EACCES) => (
            "io_uring is blocked for this process, usually by the container's seccomp profile; \
             remedy: a profile that allows io_uring_setup, io_uring_enter and io_uring_register \
             (Docker: --security-opt seccomp=FILE)"
                .to_owned(),
            false,
        ),
        Some(libc::ENOSYS) => (
            "this kernel has no io_uring, or the sandbox hides it; remedy: Linux 6.1 or later, \
             outside of gVisor and of seccomp profiles that block it"
                .to_owned(),
            false,
        ),
        Some(libc::EINVAL) => {
            let release = rustix::system::uname()
                .release()
                .to_string_lossy()
                .into_owned();
            (
                format!(
                    "the io_uring of kernel {release} lacks what is needed (SINGLE_ISSUER and \
                     DEFER_TASKRUN); remedy: Linux 6.1 or later"
                ),
                false,
            )
        }
        Some(libc::ENOMEM) => (
            format!(
                "io_uring may not lock enough memory (RLIMIT_MEMLOCK is {}); remedy: ulimit -l \
                 65536, LimitMEMLOCK=64M in the systemd unit, or --ulimit memlock=67108864 for \
                 docker run",
                memlock()
            ),
            true,
        ),
        Some(libc::EMFILE | libc::ENFILE) => (
            "no descriptor is left for io_uring (RLIMIT_NOFILE); remedy: ulimit -n 100000 or \
             LimitNOFILE=100000 in the systemd unit"
                .to_owned(),
            true,
        ),
        _ => (format!("io_uring cannot be set up: {error}"), false),
    };
    Refusal {
        text,
        fixable_limit,
    }
}

fn memlock() -> String {
    match rustix::process::getrlimit(rustix::process::Resource::Memlock).current {
        Some(bytes) => format!("{} KiB", bytes / 1024),
        None => "unlimited".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_names_a_remedy() {
        for code in [
            libc::EPERM,
            libc::ENOSYS,
            libc::EINVAL,
            libc::ENOMEM,
            libc::EMFILE,
        ] {
            let refusal = explain(&io::Error::from_raw_os_error(code));
            assert!(refusal.text.contains("remedy:"), "{}", refusal.text);
        }
        assert!(
            explain(&io::Error::from_raw_os_error(libc::ENOMEM))
                .text
                .contains("MEMLOCK")
        );
    }
}
