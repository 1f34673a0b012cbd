//! The log as a whole: from several cores to the files and back.

mod bounds;
mod cost;
mod crash;
mod disk;
mod lines;
mod logs;
mod repeat;
mod tampering;

use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::thread;
use std::time::{Duration, Instant};

pub(super) use self::disk::Disk;
use super::directory::segments;
use super::*;
use crate::telemetry::{ExecutionId, ExecutionIds};

const NOW_MS: u64 = 1_796_000_000_000;

fn settings() -> Audit {
    Audit { sync_ms: 60_000, ..Audit::default() }
}

fn open(directory: &Path, settings: &Audit) -> AuditLog {
    AuditLog::open(directory, settings).unwrap()
}

fn execution(seed: u64) -> ExecutionId {
    ExecutionIds::new(seed).next(NOW_MS + seed)
}

static ASKER: LazyLock<Asker> =
    LazyLock::new(|| Asker::new("acme", "support-desk", "key:0123456789ab", Some("medium")));

static SUBJECT: LazyLock<Subject> =
    LazyLock::new(|| Subject::new("orders__find_order", "orders", None, &[7; 32]));

/// A call of everyday size.
fn record(number: u64) -> Record<'static> {
    Record {
        correlation: Some("order-4711"),
        revision: Some("2025-06-18"),
        session: Some(&[0x3f; 16]),
        subject: Some(&SUBJECT),
        side_effect: Some("read"),
        downstream_status: Some(200),
        total_us: 1234,
        downstream_us: Some(1100),
        request_bytes: 310,
        response_bytes: 5120,
        ..Record::new(
            NOW_MS + number,
            execution(number),
            &ASKER,
            Transport::StreamableHttp,
            CallType::ToolExecution,
            "tools/call",
        )
    }
}

/// The lines that are wanted, in the order of the log.
fn read(directory: &Path, filter: Filter) -> Vec<String> {
    let mut reader = Reader::open(directory, filter).unwrap();
    drain(&mut reader)
}

fn drain(reader: &mut Reader) -> Vec<String> {
    let mut lines = Vec::new();
    while reader.advance().unwrap() {
        lines.push(String::from_utf8(reader.line().to_vec()).unwrap());
    }
    lines
}

/// Only calls, no events of the log.
fn calls() -> Filter {
    Filter { tenant: Some("acme".into()), ..Filter::default() }
}

fn files(directory: &Path) -> Vec<PathBuf> {
    segments(directory).unwrap().into_iter().map(|file| file.path).collect()
}

fn verified(directory: &Path) -> Verified {
    let found = verify(directory, None, None).unwrap();
    assert_eq!(found.fault, None, "{}", found.fault.as_ref().unwrap());
    found
}

/// Appends records with these numbers, `each` of them before the next wait until they are written.
fn append_in_blocks(writer: &Writer, numbers: std::ops::Range<u64>, each: u64) {
    for number in numbers {
        writer.append(&record(number)).unwrap();
        if number % each == each - 1 {
            eventually("written", || writer.waiting_bytes() == 0);
        }
    }
}

fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let give_up_at = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < give_up_at, "{what}");
        thread::park_timeout(Duration::from_millis(5));
    }
}
