//! Waiting for the signals that ask a process to end.

use std::future::poll_fn;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::rc::Rc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use rustix::event::{EventfdFlags, eventfd};

use crate::Core;
use crate::backend::Driver;
use crate::backend::epoll::Registration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    Terminate,
    Interrupt,
}

/// Signals seen and not yet handed out: bit 0 SIGTERM, bit 1 SIGINT. Signals belong to the
/// process, so these are statics.
static SEEN: AtomicU32 = AtomicU32::new(0);
static EVENT: AtomicI32 = AtomicI32::new(-1);
static INSTALLED: OnceLock<Result<OwnedFd, i32>> = OnceLock::new();

extern "C" fn on_signal(number: libc::c_int) {
    let bit = if number == libc::SIGTERM { 1 } else { 2 };
    SEEN.fetch_or(bit, Ordering::SeqCst);
    let count = 1u64;
    // SAFETY: write(2) is async-signal-safe; the descriptor is never closed, the buffer is ours.
    unsafe {
        libc::write(EVENT.load(Ordering::SeqCst), (&raw const count).cast(), 8);
    }
}

fn install() -> io::Result<&'static OwnedFd> {
    let installed = INSTALLED.get_or_init(|| {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let event = eventfd(0, flags).map_err(rustix::io::Errno::raw_os_error)?;
        EVENT.store(event.as_raw_fd(), Ordering::SeqCst);
        for signal in [libc::SIGTERM, libc::SIGINT] {
            // SAFETY: the action is zeroed but for the handler, which does only what a signal
            // handler may.
            let result = unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = on_signal as *const () as libc::sighandler_t;
                action.sa_flags = libc::SA_RESTART;
                libc::sigaction(signal, &raw const action, std::ptr::null_mut())
            };
            if result != 0 {
                return Err(io::Error::last_os_error()
                    .raw_os_error()
                    .unwrap_or(libc::EINVAL));
            }
        }
        Ok(event)
    });
    installed
        .as_ref()
        .map_err(|code| io::Error::from_raw_os_error(*code))
}

/// Waits for SIGTERM or SIGINT. From the first call on, they no longer end the process by
/// themselves. One task of the process may wait at a time.
///
/// # Errors
/// When the handler cannot be installed.
pub async fn termination(core: &Core) -> io::Result<Signal> {
    #[cfg(feature = "sim")]
    if let Driver::Sim(driver) = core.driver() {
        return Ok(driver.termination().await);
    }
    let event = install()?;
    match core.driver() {
        #[cfg(feature = "sim")]
        Driver::Sim(_) => {} // above
        Driver::Ring(driver) => {
            let event = Rc::new(event.try_clone()?);
            while SEEN.load(Ordering::SeqCst) == 0 {
                driver.poll_once(&event, libc::POLLIN).await?;
                let _ = rustix::io::read(&event, &mut [0u8; 8]);
            }
        }
        Driver::Epoll(driver) => {
            let registration = Registration::new(driver, event.try_clone()?)?;
            poll_fn(|context| {
                registration.poll_read(context, |fd| {
                    while SEEN.load(Ordering::SeqCst) == 0 {
                        // Says EAGAIN when there was no signal: then this waits.
                        rustix::io::read(fd, &mut [0u8; 8])?;
                    }
                    Ok(())
                })
            })
            .await?;
        }
    }
    let seen = SEEN.swap(0, Ordering::SeqCst);
    Ok(if seen & 1 != 0 {
        Signal::Terminate
    } else {
        Signal::Interrupt
    })
}
