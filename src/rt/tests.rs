//! The room from outside, on the driver that the environment chooses.

use std::time::{Duration, Instant};

use super::*;

mod cores;
mod sockets;

/// Runs a test as a core. The whole suite runs again with `MONOIO_FORCE_LEGACY_DRIVER=1`.
fn on_core<F: Future>(future: F) -> F::Output {
    run_once(CoreOptions::default(), async {
        timeout(Duration::from_secs(20), future).await.expect("the test hangs")
    })
    .expect("a runtime")
}

/// Open descriptors of this process that are sockets or other files; tests that count them take
/// the lock, for they share a process.
fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("proc").count()
}

async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(5), "waited in vain: {what}");
        sleep(Duration::from_millis(5)).await;
    }
}
