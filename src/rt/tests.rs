//! The room from outside, on the driver that the environment chooses.

use std::time::{Duration, Instant};

use super::*;

mod cores;
mod listening;
mod messages;
mod process;
mod sockets;
mod tls;

/// Runs a test as a core. The whole suite runs again with `MONOIO_FORCE_LEGACY_DRIVER=1`.
fn on_core<F: Future>(future: F) -> F::Output {
    run_once(CoreOptions::default(), async {
        timeout(Duration::from_secs(20), future).await.expect("the test hangs")
    })
    .expect("a runtime")
}

/// Descriptors of this process. Other tests of the process come and go, so a test that counts them
/// runs a few times and looks for growth.
fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("proc").count()
}

/// Each run of `run` would leave tens of descriptors behind if it leaked; other tests that run at
/// the same time hold some for a moment.
fn leaks_nothing(run: impl Fn()) {
    run();
    let mut least = usize::MAX;
    let before = descriptors();
    for _ in 0..5 {
        run();
        least = least.min(descriptors());
        if least <= before {
            return;
        }
    }
    assert!(least < before + 20, "{before} descriptors before, {least} after");
}

async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(5), "waited in vain: {what}");
        sleep(Duration::from_millis(5)).await;
    }
}
