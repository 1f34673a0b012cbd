//! Panics that are contained: counted, and described without the values they carried.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

static CONTAINED: AtomicU64 = AtomicU64::new(0);
static HOOK: Once = Once::new();

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
    static CONTAINING: Cell<bool> = const { Cell::new(false) };
    static LOCATION: RefCell<Option<(String, u32)>> = const { RefCell::new(None) };
}

/// What a contained panic left behind.
pub(super) struct Contained {
    pub(super) payload: Box<dyn Any + Send>,
    location: Option<(String, u32)>,
}

/// Makes panics inside [`contain`] on the calling thread silent: only their place is noted, for
/// the log. The hook that was there keeps working for all others.
pub(super) fn quiet_thread() {
    QUIET.set(true);
    HOOK.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |info: &PanicHookInfo<'_>| {
            let quiet = QUIET.try_with(Cell::get).unwrap_or(false)
                && CONTAINING.try_with(Cell::get).unwrap_or(false);
            if !quiet {
                return previous(info);
            }
            let location = info.location().map(|place| (place.file().to_owned(), place.line()));
            let _ = LOCATION.try_with(|cell| cell.replace(location));
        }));
    });
}

/// Runs `work`; a panic in it ends here.
pub(super) fn contain<T>(work: impl FnOnce() -> T) -> Result<T, Contained> {
    let outer = CONTAINING.replace(true);
    let outcome = panic::catch_unwind(AssertUnwindSafe(work));
    CONTAINING.set(outer);
    outcome.map_err(|payload| Contained { payload, location: LOCATION.take() })
}

/// Counts and logs a panic. Only literal messages are shown: a formatted one may hold data of a
/// tenant.
pub(super) fn report(contained: &Contained, what: &'static str) {
    CONTAINED.fetch_add(1, Ordering::Relaxed);
    let message = contained.payload.downcast_ref::<&'static str>().copied();
    let (file, line) = contained.location.as_ref().map_or(("", 0), |(file, line)| (file, *line));
    tracing::error!(
        file,
        line,
        message = message.unwrap_or("(formatted message, not shown)"),
        "a panic in {what} was contained"
    );
}

/// How many panics were contained since the process started.
pub(super) fn count() -> u64 {
    CONTAINED.load(Ordering::Relaxed)
}
