//! What the tests drive the server with: the process, the wire, an MCP client, an HTTP API.

mod client;
mod process;
mod service;
mod upstream;
mod wire;

use std::time::{Duration, Instant};

pub(crate) use client::{Client, Events, NEWEST, call, cancel, initialize, ping, rpc};
pub(crate) use process::{Output, Ringway, Setup};
pub(crate) use service::{Asked, Plan, Service, answer, json_answer};
pub(crate) use upstream::Upstream;
pub(crate) use wire::{Answer, Request, Wire};

/// Longest wait for anything that must happen; a test that waits so long fails.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// Waits until `holds`; for what the outside sees only by asking again.
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < PATIENCE, "never came true: {what}");
        pause(Duration::from_millis(10));
    }
}

/// Lets time pass where time itself is what is tested.
#[expect(clippy::disallowed_methods, reason = "no core runs on this thread")]
pub(crate) fn pause(time: Duration) {
    std::thread::sleep(time);
}
