//! Cores: one thread, one runtime each.

use std::cell::Cell;
use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::mpsc;
use std::task::Poll;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use monoio::time::TimeDriver;
use monoio::{FusionRuntime, IoUringDriver, LegacyDriver, RuntimeBuilder};

use super::{deadline, panics, tasks};

/// How long a core waits for its tasks to end when its body has. They are dropped at once; this
/// only bounds a task whose drop does something silly.
const END_TASKS_WITHIN: Duration = Duration::from_secs(2);

/// Which interface of the kernel the sockets go through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DriverChoice {
    /// `io_uring`, and `epoll` where the kernel refuses it. `MONOIO_FORCE_LEGACY_DRIVER=1` in the
    /// environment makes it `epoll`.
    #[default]
    Auto,
    /// `io_uring` or an error.
    IoUring,
    /// `epoll`.
    Epoll,
}

/// What the cores run on.
#[derive(Debug, Clone)]
pub struct CoreOptions {
    /// The kernel interface.
    pub driver: DriverChoice,
    /// Set the ring up for one submitting thread that reaps its own completions. Where the kernel
    /// is too old for that, the default ring is taken.
    pub tuned_ring: bool,
    /// Entries of the submission queue of each core.
    pub ring_entries: u32,
    /// Core i is pinned to CPU `cpus[i % cpus.len()]`; empty: not pinned.
    pub cpus: Vec<usize>,
}

impl Default for CoreOptions {
    fn default() -> Self {
        Self { driver: DriverChoice::Auto, tuned_ring: true, ring_entries: 1024, cpus: Vec::new() }
    }
}

/// A core did not end well.
#[derive(Debug, thiserror::Error)]
pub enum CoreError {
    /// The body of a core panicked. The panic itself was logged.
    #[error("the body of core {core} panicked")]
    Panicked {
        /// Index of the core.
        core: usize,
    },
}

/// The running cores.
pub struct Cores {
    threads: Vec<JoinHandle<Result<(), CoreError>>>,
}

impl fmt::Debug for Cores {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Cores").field("count", &self.threads.len()).finish()
    }
}

thread_local! {
    static DRIVER: Cell<&'static str> = const { Cell::new("none") };
}

impl Cores {
    /// Starts `count` threads named `core-0` and on; each runs `body(index)` to its end, ends the
    /// tasks left over, and goes.
    ///
    /// # Errors
    ///
    /// When a thread or a runtime cannot be made. Cores that did start are told nothing: the
    /// process is expected to exit.
    pub fn start<B, F>(options: CoreOptions, count: usize, body: B) -> io::Result<Cores>
    where
        B: Fn(usize) -> F + Send + Sync + 'static,
        F: Future<Output = ()> + 'static,
    {
        let body = Arc::new(body);
        let mut threads = Vec::with_capacity(count);
        for core in 0..count {
            let (started, starting) = mpsc::sync_channel(1);
            let body = Arc::clone(&body);
            let options = options.clone();
            let thread = thread::Builder::new().name(format!("core-{core}")).spawn(move || {
                panics::quiet_thread();
                pin_thread(&options.cpus, core);
                let mut runtime = match build(&options) {
                    Ok(runtime) => runtime,
                    Err(error) => {
                        let _ = started.send(Err(error));
                        return Ok(());
                    }
                };
                let _ = started.send(Ok(()));
                drop(started);
                match run(&mut runtime, async move { body(core).await }) {
                    Ok(()) => Ok(()),
                    Err(panic) => {
                        panics::report(&panic, "the body of a core");
                        Err(CoreError::Panicked { core })
                    }
                }
            })?;
            starting.recv().map_err(|_| io::Error::other("a core ended while it started"))??;
            threads.push(thread);
        }
        Ok(Cores { threads })
    }

    /// Waits for all cores to end.
    ///
    /// # Errors
    ///
    /// The first core, by index, whose body panicked.
    pub fn join(self) -> Result<(), CoreError> {
        let mut outcome = Ok(());
        for (core, thread) in self.threads.into_iter().enumerate() {
            let ended = thread.join().unwrap_or(Err(CoreError::Panicked { core }));
            outcome = outcome.and(ended);
        }
        outcome
    }
}

/// Runs one future as a core on the calling thread.
///
/// # Errors
///
/// When the runtime cannot be made.
///
/// # Panics
///
/// With the panic of `future`, after its tasks have ended; and inside another core.
pub fn run_once<F: Future>(options: CoreOptions, future: F) -> io::Result<F::Output> {
    pin_thread(&options.cpus, 0);
    let mut runtime = build(&options)?;
    match run(&mut runtime, future) {
        Ok(output) => Ok(output),
        Err(panic) => std::panic::resume_unwind(panic.payload),
    }
}

/// `"io_uring"` or `"epoll"` on a core, `"none"` elsewhere.
pub fn driver_name() -> &'static str {
    DRIVER.get()
}

type CoreRuntime = FusionRuntime<TimeDriver<IoUringDriver>, TimeDriver<LegacyDriver>>;

fn run<F: Future>(runtime: &mut CoreRuntime, future: F) -> Result<F::Output, panics::Contained> {
    DRIVER.set(match runtime {
        FusionRuntime::Uring(_) => "io_uring",
        FusionRuntime::Legacy(_) => "epoll",
    });
    let output = runtime.block_on(async {
        let output = {
            let mut future = pin!(future);
            let mut share = tasks::Share::default();
            poll_fn(|context| {
                if !share.may_poll(context) {
                    return Poll::Pending;
                }
                match panics::contain(|| future.as_mut().poll(context)) {
                    Ok(poll) => poll.map(Ok),
                    Err(panic) => Poll::Ready(Err(panic)),
                }
            })
            .await
        };
        // No task may outlive the runtime: a waker held elsewhere would free it on that thread.
        tasks::end_tasks(END_TASKS_WITHIN).await;
        deadline::reset();
        // Once more around, so that canceled operations are handed to the kernel.
        super::sleep(Duration::ZERO).await;
        tasks::reset();
        output
    });
    DRIVER.set("none");
    output
}

fn build(options: &CoreOptions) -> io::Result<CoreRuntime> {
    match options.driver {
        DriverChoice::Epoll => build_epoll(),
        DriverChoice::IoUring => build_ring(options),
        DriverChoice::Auto if !monoio::utils::detect_uring() => build_epoll(),
        DriverChoice::Auto => build_ring(options).or_else(|error| {
            tracing::warn!(%error, "io_uring was refused, the core runs on epoll");
            build_epoll()
        }),
    }
}

fn build_ring(options: &CoreOptions) -> io::Result<CoreRuntime> {
    if options.tuned_ring {
        let mut ring = io_uring::IoUring::builder();
        ring.setup_single_issuer().setup_coop_taskrun().setup_defer_taskrun();
        let tuned = RuntimeBuilder::<IoUringDriver>::new()
            .with_entries(options.ring_entries)
            .uring_builder(ring)
            .enable_timer()
            .build();
        match tuned {
            Ok(runtime) => return Ok(runtime.into()),
            Err(error) => tracing::info!(%error, "no tuned ring, the default one is taken"),
        }
    }
    let plain = RuntimeBuilder::<IoUringDriver>::new().with_entries(options.ring_entries);
    Ok(plain.enable_timer().build()?.into())
}

fn build_epoll() -> io::Result<CoreRuntime> {
    Ok(RuntimeBuilder::<LegacyDriver>::new().enable_timer().build()?.into())
}

fn pin_thread(cpus: &[usize], core: usize) {
    let Some(cpu) = core.checked_rem(cpus.len()).and_then(|index| cpus.get(index)) else { return };
    if let Err(error) = monoio::utils::bind_to_cpu_set([*cpu]) {
        tracing::warn!(core, cpu, %error, "the core could not be pinned");
    }
}
