//! What the log costs. Run in release: `cargo test --release -- --ignored audit_append_cost`.

use super::super::line::write_record;
use super::super::repeat::Run;
use super::*;

/// Every byte is written, hashed and copied: what a record has of them is what it costs.
#[test]
fn lines_of_a_run_are_short() {
    let (mut run, mut out) = (Run::default(), Vec::new());
    let mut bytes_of = |number| {
        let begin = out.len();
        write_record(&mut out, &record(number), &mut run, 1000);
        out.len() - begin
    };
    let (first, next) = (bytes_of(1), bytes_of(2));
    eprintln!("{first} bytes alone, {next} behind another of its run");
    assert!(first < 600 && next < 350, "{first} {next}");
    assert_eq!(bytes_of(3), next);
}

/// CPU time of the audit thread of this process: all of it in nanoseconds, and its ticks of 10 ms
/// in user code and in the kernel.
fn thread_time() -> (u64, u64, u64) {
    for task in std::fs::read_dir("/proc/self/task").unwrap() {
        let path = task.unwrap().path();
        let name = std::fs::read_to_string(path.join("comm")).unwrap_or_default();
        if name.trim() == "ringway-audit" {
            let text = std::fs::read_to_string(path.join("stat")).unwrap();
            let rest = text.rsplit_once(") ").unwrap().1;
            let fields: Vec<&str> = rest.split(' ').collect();
            let scheduled = std::fs::read_to_string(path.join("schedstat")).unwrap_or_default();
            let on_cpu = scheduled.split(' ').next().and_then(|text| text.parse().ok());
            let ticks = |at: usize| fields[at].parse().unwrap();
            return (on_cpu.unwrap_or_default(), ticks(11), ticks(12));
        }
    }
    (0, 0, 0)
}

/// CPU time of this thread, in nanoseconds: what others do on a busy machine is not in it.
fn own_time() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse().unwrap()
}

#[test]
#[ignore = "measures; run in release"]
fn audit_append_cost() {
    const RECORDS: u64 = 1_000_000;
    const PAUSE_EVERY: u64 = 2000;
    let directory = tempfile::tempdir().unwrap();
    let settings = Audit { buffer_bytes_max: 16 << 20, ..Audit::default() };
    let log = open(directory.path(), &settings);
    let writer = log.writer(0);
    let record = record(1);
    let mut appending = 0;
    let begun = Instant::now();
    for number in 0..RECORDS / PAUSE_EVERY {
        let record = Record { time_ms: NOW_MS + number, ..record };
        let start = own_time();
        for _ in 0..PAUSE_EVERY {
            let _ = writer.append(&record);
        }
        appending += own_time() - start;
        // Some 100,000 a second, so that the thread works while the core appends.
        thread::park_timeout(Duration::from_millis(20));
    }
    eventually("written", || writer.waiting_bytes() == 0);
    let (elapsed, (on_cpu, user, system)) = (begun.elapsed(), thread_time());
    let figures = log.figures();
    log.stop().unwrap();
    let written = figures.records.max(1);
    eprintln!(
        "append: {} ns a record of {} bytes; audit thread: {} ns CPU a record ({user} ticks user, \
         {system} system); {} written, {} dropped in {elapsed:?}",
        appending / RECORDS,
        figures.bytes / written,
        on_cpu / written,
        figures.records,
        figures.dropped,
    );
}

#[test]
#[ignore = "measures; run in release"]
fn audit_verify_cost() {
    const RECORDS: u64 = 500_000;
    let directory = tempfile::tempdir().unwrap();
    let settings = Audit { buffer_bytes_max: 1 << 30, ..Audit::default() };
    let log = open(directory.path(), &settings);
    let writer = log.writer(0);
    for number in 0..RECORDS {
        writer.append(&record(number)).unwrap();
    }
    log.stop().unwrap();
    let start = Instant::now();
    assert_eq!(verified(directory.path()).records, RECORDS + 2);
    let verifying = start.elapsed();
    let start = Instant::now();
    let wanted = Filter { execution_id: Some(execution(77).to_string()), ..Filter::default() };
    assert_eq!(read(directory.path(), wanted).len(), 1);
    eprintln!("{RECORDS} records: verified in {verifying:?}, searched in {:?}", start.elapsed());
}
