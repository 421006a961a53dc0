//! Starting one thread per core, and ending them together.

use std::fmt;
use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::backend::epoll::EpollDriver;
use crate::backend::ring::{self, Refusal, RingDriver};
use crate::backend::{BackendKind, Driver};
use crate::core::{Core, CoreId, CoreParts, StallCallback};
use crate::executor::{CoreShared, TaskClass};
use crate::fault::FileFaults;
use crate::large_blocks;
use crate::metrics::Counters;
use crate::placement;
use crate::sys::{self, Pool};

/// Which backend to start on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BackendChoice {
    /// io_uring where it can be had, else epoll with a reason.
    #[default]
    Auto,
    /// io_uring or a start error.
    Ring,
    Epoll,
}

#[derive(Clone)]
pub struct RuntimeOptions {
    /// How many cores (shards); more than the machine has is fine.
    pub cores: usize,
    /// Ties each core's thread to one CPU of the affinity mask.
    pub pin: bool,
    pub backend: BackendChoice,
    /// Memory for received bytes, per core.
    pub recv_pool_bytes_per_core: usize,
    /// Memory for what is read from disks past the page cache to be sent, per core; room for two reads at least.
    pub cold_read_bytes_per_core: usize,
    /// Large blocks of memory that are free and kept to be used again, per core; where [`LargeBlocks`](crate::LargeBlocks)
    /// is the allocator.
    pub large_block_bytes_per_core: usize,
    /// Threads for directory work and [`Core::blocking`], for all cores together.
    pub blocking_threads: usize,
    /// Threads for file operations of the epoll backend, for all cores together.
    pub file_threads: usize,
    /// A poll longer than this is counted and reported as a stall.
    pub stall_threshold: Duration,
    pub on_stall: Option<StallCallback>,
    /// Disk faults on purpose, for tests.
    pub file_faults: Option<FileFaults>,
    /// A panic on a core ends the process, unless this is set: then every core is stopped, and
    /// the panic goes on in the caller of [`Runtime::run`]. For tests.
    pub propagate_panics: bool,
}

impl Default for RuntimeOptions {
    fn default() -> Self {
        Self {
            cores: placement::default_core_count(),
            pin: false,
            backend: BackendChoice::Auto,
            recv_pool_bytes_per_core: 4 * 1024 * 1024,
            cold_read_bytes_per_core: 8 * 1024 * 1024,
            large_block_bytes_per_core: 8 * 1024 * 1024,
            blocking_threads: 16,
            file_threads: 32,
            stall_threshold: Duration::from_millis(50),
            on_stall: None,
            file_faults: None,
            propagate_panics: false,
        }
    }
}

/// Why the runtime did not start: what happened and what to do.
#[derive(Debug)]
pub struct StartError {
    text: String,
    source: Option<io::Error>,
}

impl StartError {
    pub(crate) fn new(text: impl Into<String>, source: Option<io::Error>) -> Self {
        Self {
            text: text.into(),
            source,
        }
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        match &self.source {
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for StartError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| source as _)
    }
}

/// The first task of a core, made on its thread.
pub type CoreMain = Box<dyn FnOnce(Core) -> Pin<Box<dyn Future<Output = ()>>> + Send>;

/// Cores that are ready to run.
pub struct Runtime {
    options: RuntimeOptions,
    backend: BackendKind,
    fallback_reason: Option<String>,
    shared: Vec<Arc<CoreShared>>,
}

/// What the threads of one runtime share.
struct Group {
    options: RuntimeOptions,
    backend: BackendKind,
    cores: Vec<Arc<CoreShared>>,
    file_pool: Pool,
    blocking_pool: Pool,
    mains_running: AtomicUsize,
}

impl Group {
    fn main_ended(&self) {
        if self.mains_running.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.stop_all();
        }
    }

    fn stop_all(&self) {
        for core in &self.cores {
            core.request_stop();
        }
    }
}

impl Runtime {
    /// Checks what the kernel allows and picks the backend.
    ///
    /// # Errors
    /// A backend that was asked for and cannot be had; no descriptors left.
    pub fn new(options: RuntimeOptions) -> Result<Runtime, StartError> {
        if options.cores == 0 || options.cores > usize::from(u16::MAX) {
            let text = format!("{} cores asked for: it must be 1 to 65535", options.cores);
            return Err(StartError::new(text, None));
        }
        let (backend, fallback_reason) = choose_backend(options.backend)?;
        let shared = (0..options.cores)
            .map(|_| CoreShared::new().map(Arc::new))
            .collect::<io::Result<Vec<_>>>()
            .map_err(|error| StartError::new("cannot make a wake-up event", Some(error)))?;
        Ok(Runtime {
            options,
            backend,
            fallback_reason,
            shared,
        })
    }

    pub fn backend(&self) -> BackendKind {
        self.backend
    }

    /// Why `Auto` did not take io_uring, and what to do about it.
    pub fn fallback_reason(&self) -> Option<&str> {
        self.fallback_reason.as_deref()
    }

    pub fn core_count(&self) -> usize {
        self.options.cores
    }

    pub(crate) fn shared(&self) -> &[Arc<CoreShared>] {
        &self.shared
    }

    /// Runs one main per core, each on its own thread, until all of them have ended; then drops
    /// the tasks that are left. A panic on a core ends the process.
    ///
    /// # Errors
    /// When a thread, or a core's ring or epoll, cannot be made.
    ///
    /// # Panics
    /// When the number of mains is not that of the cores.
    pub fn run(self, mains: Vec<CoreMain>) -> Result<(), StartError> {
        assert_eq!(mains.len(), self.options.cores, "one main per core");
        large_blocks::map_large_blocks();
        let group = Arc::new(Group {
            backend: self.backend,
            cores: self.shared,
            file_pool: Pool::new("shard-file", self.options.file_threads),
            blocking_pool: Pool::new("shard-blocking", self.options.blocking_threads),
            mains_running: AtomicUsize::new(mains.len()),
            options: self.options,
        });
        let mut threads = Vec::new();
        let mut failed = None;
        for (index, main) in mains.into_iter().enumerate() {
            let group_of_thread = Arc::clone(&group);
            let name = format!("shard-{index}");
            match sys::spawn_thread(name, move || run_core(&group_of_thread, index, main)) {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    let text = format!("cannot start the thread of shard {index}");
                    failed = Some(StartError::new(text, Some(error)));
                    group.stop_all();
                    break;
                }
            }
        }
        let mut panic = None;
        for thread in threads {
            match thread.join() {
                Ok(Ok(())) => {}
                Ok(Err(error)) => failed = failed.or(Some(error)),
                Err(payload) => panic = panic.or(Some(payload)),
            }
        }
        if let Some(payload) = panic {
            resume_unwind(payload);
        }
        failed.map_or(Ok(()), Err)
    }
}

fn choose_backend(choice: BackendChoice) -> Result<(BackendKind, Option<String>), StartError> {
    if choice == BackendChoice::Epoll {
        return Ok((BackendKind::Epoll, None));
    }
    decide(choice, ring::probe())
}

/// The backend for what was found out about the ring.
fn decide(
    choice: BackendChoice,
    probed: Result<(), Refusal>,
) -> Result<(BackendKind, Option<String>), StartError> {
    match probed {
        Ok(()) => Ok((BackendKind::Ring, None)),
        // A limit that is too low is a mistake to be mended, not a reason to run slowly.
        Err(refusal) if choice == BackendChoice::Ring || refusal.fixable_limit => {
            Err(StartError::new(refusal.text, None))
        }
        Err(refusal) => Ok((BackendKind::Epoll, Some(refusal.text))),
    }
}

fn run_core(group: &Arc<Group>, index: usize, main: CoreMain) -> Result<(), StartError> {
    let run = || -> Result<(), StartError> {
        large_blocks::keep(group.options.large_block_bytes_per_core);
        let core = build_core(group, index).inspect_err(|_| group.stop_all())?;
        core.shared().adopt();
        let main = main(core.clone());
        let group = Arc::clone(group);
        drop(core.spawn(TaskClass::Network, "main", async move {
            main.await;
            group.main_ended();
        }));
        while !core.shared().stops() {
            core.turn();
        }
        core.shut_down();
        large_blocks::keep(0);
        Ok(())
    };
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(result) => result,
        Err(payload) if group.options.propagate_panics => {
            group.stop_all();
            resume_unwind(payload)
        }
        // The panic hook has said what happened. A process with one dead core would answer some
        // requests and hang on others.
        Err(_) => std::process::abort(),
    }
}

/// One ring was to be had at the probe; one for each core may still be too many.
fn no_driver(backend: BackendKind, index: usize, error: io::Error) -> StartError {
    let text = format!("cannot set up {} for shard {index}", backend.name());
    match backend {
        BackendKind::Ring => {
            StartError::new(format!("{text}: {}", ring::explain(&error).text), None)
        }
        _ => StartError::new(text, Some(error)),
    }
}

fn build_core(group: &Group, index: usize) -> Result<Core, StartError> {
    let options = &group.options;
    let cpu = options.pin.then(|| {
        let cpus = placement::allowed_cpus();
        cpus[index % cpus.len()]
    });
    if let Some(cpu) = cpu {
        placement::pin_to(cpu).map_err(|error| {
            let text = format!("cannot pin shard {index} to CPU {cpu} (turn pinning off)");
            StartError::new(text, Some(error))
        })?;
    }
    let shared = Arc::clone(&group.cores[index]);
    let counters = Rc::new(Counters::default());
    let pool_bytes = options.recv_pool_bytes_per_core;
    let driver = match group.backend {
        BackendKind::Ring => {
            RingDriver::new(pool_bytes, Rc::clone(&counters), cpu).map(Driver::Ring)
        }
        BackendKind::Epoll => {
            let pool = group.file_pool.clone();
            EpollDriver::new(&shared, pool, pool_bytes, Rc::clone(&counters)).map(Driver::Epoll)
        }
        BackendKind::Sim => unreachable!("a simulation has its own runtime"),
    };
    let driver = driver.map_err(|error| no_driver(group.backend, index, error))?;
    let parts = CoreParts {
        id: CoreId(u16::try_from(index).expect("checked in Runtime::new")),
        core_count: options.cores,
        shared,
        driver,
        pool: group.blocking_pool.clone(),
        seed: sys::random_seed(),
        cold_read_bytes: options.cold_read_bytes_per_core,
        stall_threshold: options.stall_threshold,
        on_stall: options.on_stall.clone(),
        file_faults: options.file_faults.clone(),
    };
    Ok(Core::new(parts, counters))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(errno: i32) -> Result<(), Refusal> {
        Err(ring::explain(&io::Error::from_raw_os_error(errno)))
    }

    #[test]
    fn a_limit_that_can_be_raised_stops_the_start() {
        for (errno, limit) in [
            (libc::ENOMEM, "RLIMIT_MEMLOCK"),
            (libc::EMFILE, "RLIMIT_NOFILE"),
        ] {
            for choice in [BackendChoice::Auto, BackendChoice::Ring] {
                let error = decide(choice, refused(errno)).expect_err("refused");
                let text = error.to_string();
                assert!(text.contains(limit) && text.contains("remedy:"), "{text}");
            }
        }
    }

    #[test]
    fn what_the_machine_forbids_is_gone_without_where_nobody_insists() {
        for errno in [
            libc::EPERM,
            libc::EACCES,
            libc::ENOSYS,
            libc::EINVAL,
            libc::EIO,
        ] {
            let (backend, reason) = decide(BackendChoice::Auto, refused(errno)).expect("starts");
            assert_eq!(backend, BackendKind::Epoll);
            assert!(reason.is_some_and(|reason| reason.contains("io_uring")));
            assert!(decide(BackendChoice::Ring, refused(errno)).is_err());
        }
        let (backend, reason) = decide(BackendChoice::Auto, Ok(())).expect("starts");
        assert_eq!((backend, reason), (BackendKind::Ring, None));
    }

    #[test]
    fn a_later_core_without_a_ring_says_what_to_do() {
        let error = no_driver(
            BackendKind::Ring,
            3,
            io::Error::from_raw_os_error(libc::ENOMEM),
        );
        let text = error.to_string();
        assert!(
            text.contains("shard 3") && text.contains("ulimit -l"),
            "{text}"
        );
    }
}
