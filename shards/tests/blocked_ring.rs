//! A sandbox that blocks io_uring, as stock container profiles do: the runtime starts on epoll and
//! says why. Its own test binary, because the filter stays on its thread for ever.

mod support;

use shards::{BackendChoice, BackendKind, Runtime};
use support::{options, run};

/// Makes io_uring_setup(2) fail with EPERM on this thread and the threads it starts.
fn block_io_uring() {
    const LOAD_WORD: u16 = 0x20; // BPF_LD | BPF_W | BPF_ABS
    const JUMP_IF_EQUAL: u16 = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
    const RETURN: u16 = 0x06; // BPF_RET | BPF_K
    let setup = libc::SYS_io_uring_setup as u32;
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut program = [
        step(LOAD_WORD, 0, 0, 0), // the number of the system call
        step(JUMP_IF_EQUAL, 0, 1, setup),
        step(RETURN, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let filter = libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_mut_ptr(),
    };
    // SAFETY: the filter and its program live until the calls have returned.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        let mode = libc::SECCOMP_MODE_FILTER;
        assert_eq!(
            libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const filter),
            0
        );
    }
}

#[test]
fn a_blocked_ring_falls_back_with_a_reason_and_a_remedy() {
    block_io_uring();
    let runtime = Runtime::new(options(BackendChoice::Auto, 1)).expect("starts");
    assert_eq!(runtime.backend(), BackendKind::Epoll);
    let reason = runtime.fallback_reason().expect("a reason");
    assert!(
        reason.contains("seccomp") || reason.contains("io_uring_disabled"),
        "{reason}"
    );
    assert!(reason.contains("remedy:"), "{reason}");

    let error = Runtime::new(options(BackendChoice::Ring, 1))
        .err()
        .expect("refused");
    assert!(error.to_string().contains("io_uring"), "{error}");

    run(BackendChoice::Auto, |core| async move {
        assert_eq!(core.backend(), BackendKind::Epoll);
        assert_eq!(core.blocking(|| 7).await, 7);
    });
}
