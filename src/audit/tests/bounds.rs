//! A disk that is slow or full: what cores notice of it, what is kept, what is said.

use super::disk::Mood;
use super::*;

fn small() -> Audit {
    Audit { buffer_bytes_max: 1 << 16, payload_bytes_max: 4096, ..settings() }
}

#[test]
fn a_disk_that_hangs_stalls_no_core_and_loses_only_what_does_not_fit() {
    let directory = tempfile::tempdir().unwrap();
    let settings = Audit { buffer_bytes_max: 1 << 20, ..settings() };
    let log = open(directory.path(), &settings);
    eventually("the log is begun", || log.figures().records == 1);
    let writers: Vec<_> = (0..2).map(|core| log.writer(core)).collect();
    log.handle.shared.disk.set(Mood::Hangs);
    let mut taken = 0;
    let mut worst = Duration::ZERO;
    for number in 0..20_000u64 {
        let writer = &writers[number as usize % 2];
        let begun = Instant::now();
        taken += u64::from(writer.append(&record(number)).is_ok());
        worst = worst.max(begun.elapsed());
    }
    eprintln!("{taken} taken, the longest append took {worst:?}");
    // What a scheduler can do to a test is more than a lock would.
    assert!(worst < Duration::from_millis(200), "{worst:?}");
    assert!((1000..8000).contains(&taken), "{taken}");
    assert_eq!(log.figures().dropped, 20_000 - taken);
    assert!(!writers[0].has_room());
    assert!(writers.iter().all(|writer| writer.waiting_bytes() <= 1 << 20));
    log.handle.shared.disk.set(Mood::Writes);
    eventually("written", || writers[0].waiting_bytes() + writers[1].waiting_bytes() == 0);
    writers[0].append(&record(1)).unwrap();
    log.stop().unwrap();
    verified(directory.path());
    assert_eq!(read(directory.path(), calls()).len() as u64, taken + 1);
    let events = read(directory.path(), Filter::default());
    let dropped: u64 =
        events.iter().filter_map(|line| Entry::read(line.as_bytes()).unwrap().dropped).sum();
    assert_eq!(dropped, 20_000 - taken);
}

#[test]
fn a_full_disk_is_waited_for_and_nothing_is_written_twice() {
    for mood in [Mood::IsFull, Mood::TakesHalf] {
        let directory = tempfile::tempdir().unwrap();
        let log = open(directory.path(), &settings());
        eventually("the log is begun", || log.figures().records == 1);
        let writer = log.writer(0);
        writer.append(&record(0)).unwrap();
        eventually("written", || log.figures().records == 2);
        log.handle.shared.disk.set(mood);
        for number in 1..100 {
            writer.append(&record(number)).unwrap();
        }
        eventually("noticed", || !log.figures().writable && log.figures().write_errors > 0);
        // A reader meanwhile sees half a block, and no fault.
        assert_eq!(verified(directory.path()).records, 2);
        log.handle.shared.disk.set(Mood::Writes);
        eventually("recovered", || log.figures().writable);
        log.stop().unwrap();
        assert_eq!(verified(directory.path()).records, 102);
        assert_eq!(read(directory.path(), calls()).len(), 100);
        assert_eq!(log.figures().dropped, 0);
    }
}

#[test]
fn a_log_that_cannot_be_written_at_its_end_says_how_much_is_lost() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(directory.path(), &settings());
    eventually("the log is begun", || log.figures().records == 1);
    let writer = log.writer(0);
    log.handle.shared.disk.set(Mood::IsFull);
    for number in 0..50 {
        writer.append(&record(number)).unwrap();
    }
    let error = log.stop().unwrap_err();
    assert!(matches!(error, AuditError::NotWritten { records: 50, .. }), "{error}");
    open(directory.path(), &settings()).stop().unwrap();
    assert_eq!(verified(directory.path()).records, 3);
}

#[test]
fn a_disk_that_does_not_answer_does_not_hold_a_stop_up() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(directory.path(), &settings());
    eventually("the log is begun", || log.figures().records == 1);
    log.handle.shared.disk.set(Mood::Hangs);
    let writer = log.writer(0);
    writer.append(&record(1)).unwrap();
    let error = log.stop_within(Duration::from_millis(200)).unwrap_err();
    assert!(matches!(error, AuditError::NotStopped { .. }), "{error}");
    // It may still come round.
    log.handle.shared.disk.set(Mood::Writes);
    eventually("written", || writer.waiting_bytes() == 0);
    drop(log);
    eventually("closed", || AuditLog::open(directory.path(), &settings()).is_ok());
    assert_eq!(read(directory.path(), calls()).len(), 1);
}

#[test]
fn strict_logs_refuse_before_they_would_lose() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(directory.path(), &Audit { strict: true, ..small() });
    eventually("the log is begun", || log.figures().records == 1);
    let writer = log.writer(0);
    log.handle.shared.disk.set(Mood::Hangs);
    let mut kept = Vec::new();
    let refused = loop {
        match writer.reserve() {
            Ok(reservation) => kept.push(reservation),
            Err(refused) => break refused,
        }
    };
    assert_eq!(refused, Refused::NoRoom);
    assert!((5..20).contains(&kept.len()), "{}", kept.len());
    // Nobody else gets what is kept.
    assert_eq!(writer.append(&record(1)), Err(Dropped::NoRoom));
    drop(kept.pop());
    kept.push(writer.reserve().unwrap());
    let count = kept.len();
    let payload = vec![b'x'; 4000];
    for reservation in kept {
        // Even the longest: its payload is what gives way.
        let long = "\u{1}".repeat(400);
        let asker = Asker::new(&long, &long, &long, None);
        let record = Record {
            asker: &asker,
            correlation: Some(&long),
            arguments: Some(Payload(&payload)),
            result: Some(Payload(&payload)),
            ..record(2)
        };
        writer.append_reserved(reservation, &record).unwrap();
    }
    assert!(log.figures().payloads_left_out > 0);
    log.handle.shared.disk.set(Mood::IsFull);
    eventually("noticed", || writer.reserve().is_err_and(|why| why == Refused::NotWritable));
    log.handle.shared.disk.set(Mood::Writes);
    eventually("recovered", || writer.reserve().is_ok());
    log.stop().unwrap();
    assert_eq!(writer.reserve().unwrap_err(), Refused::Closed);
    let lines = read(
        directory.path(),
        Filter { tool: Some("orders__find_order".into()), ..Filter::default() },
    );
    assert_eq!(lines.len(), count);
    assert!(lines.iter().any(|line| line.ends_with(",\"payloads_left_out\":true}")));
    verified(directory.path());
}

#[test]
fn what_is_not_strict_refuses_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(directory.path(), &small());
    let writer = log.writer(0);
    log.handle.shared.disk.set(Mood::IsFull);
    for number in 0..2000 {
        let reservation = writer.reserve().unwrap();
        let _ = writer.append_reserved(reservation, &record(number));
    }
    assert!(writer.waiting_bytes() <= 1 << 16);
    assert!(log.figures().dropped > 1000);
    log.handle.shared.disk.set(Mood::Writes);
    log.stop().unwrap();
    verified(directory.path());
}

#[test]
fn a_disk_that_hangs_is_said_after_some_seconds() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(directory.path(), &settings());
    eventually("the log is begun", || log.figures().records == 1);
    let writer = log.writer(0);
    let shared = &log.handle.shared;
    let is_stalled_after = |ms| shared.is_stalled_at(shared.clock_ms() + ms);
    // Nothing waits: an idle log is no stalled one.
    writer.append(&record(0)).unwrap();
    eventually("written", || writer.waiting_bytes() == 0 && !is_stalled_after(3_600_000));
    shared.disk.set(Mood::Hangs);
    let begun = Instant::now();
    writer.append(&record(1)).unwrap();
    assert!(!is_stalled_after(0) && is_stalled_after(5001));
    eventually("taken", || shared.lanes().iter().all(|lane| lane.wants().is_none()));
    assert!(is_stalled_after(5001) && log.figures().writable);
    // What comes later does not make the first any younger.
    thread::park_timeout(Duration::from_millis(300));
    writer.append(&record(2)).unwrap();
    assert!(is_stalled_after(5001 - 300));
    eventually("said", || !log.figures().writable);
    assert!(begun.elapsed() > Duration::from_secs(5));
    shared.disk.set(Mood::Writes);
    eventually("written", || writer.waiting_bytes() == 0 && !is_stalled_after(3_600_000));
    assert!(log.figures().writable);
    log.stop().unwrap();
    assert_eq!(verified(directory.path()).records, 3 + 2);
}

#[test]
fn a_slow_disk_costs_records_and_all_of_them_are_counted() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(directory.path(), &small());
    eventually("the log is begun", || log.figures().records == 1);
    log.handle.shared.disk.set(Mood::IsSlow(Duration::from_millis(100)));
    let writer = log.writer(0);
    let (mut taken, mut refused) = (0, 0);
    for number in 0..3000 {
        match writer.append(&record(number)) {
            Ok(()) => taken += 1,
            Err(Dropped::NoRoom) => refused += 1,
            Err(error) => panic!("{error}"),
        }
        if number % 10 == 0 {
            thread::park_timeout(Duration::from_millis(1));
        }
    }
    let figures = log.figures();
    assert!(refused > 500 && taken > 100, "{taken} taken, {refused} refused");
    assert_eq!(figures.dropped, refused);
    assert!(figures.writable && figures.write_errors == 0, "{figures:?}");
    log.handle.shared.disk.set(Mood::Writes);
    log.stop().unwrap();
    verified(directory.path());
    assert_eq!(read(directory.path(), calls()).len() as u64, taken);
    let events = read(directory.path(), Filter::default());
    let told: Vec<u64> =
        events.iter().filter_map(|line| Entry::read(line.as_bytes()).unwrap().dropped).collect();
    assert_eq!(told.iter().sum::<u64>(), refused);
    assert!(told.len() > 1, "they are told of where they are missing: {told:?}");
}

#[test]
fn a_slow_disk_makes_a_strict_log_refuse_and_lose_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(directory.path(), &Audit { strict: true, ..small() });
    eventually("the log is begun", || log.figures().records == 1);
    log.handle.shared.disk.set(Mood::IsSlow(Duration::from_millis(100)));
    let writer = log.writer(0);
    let (mut run, mut refused) = (0, 0);
    for number in 0..3000 {
        match writer.reserve() {
            Ok(reservation) => {
                writer.append_reserved(reservation, &record(number)).unwrap();
                run += 1;
            }
            Err(Refused::NoRoom) => refused += 1,
            Err(error) => panic!("{error}"),
        }
        if number % 10 == 0 {
            thread::park_timeout(Duration::from_millis(1));
        }
    }
    assert!(refused > 500 && run > 100, "{run} run, {refused} refused");
    assert_eq!(log.figures().dropped, 0);
    log.handle.shared.disk.set(Mood::Writes);
    eventually("there is room again", || writer.reserve().is_ok());
    log.stop().unwrap();
    verified(directory.path());
    assert_eq!(read(directory.path(), calls()).len(), run);
}

#[test]
fn cores_may_come_and_go() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(directory.path(), &settings());
    for core in 0..20 {
        let writer = log.writer(core);
        writer.append(&record(core as u64)).unwrap();
        drop(writer);
        thread::park_timeout(Duration::from_millis(3));
    }
    eventually("let go", || log.handle.shared.lanes().is_empty());
    log.stop().unwrap();
    assert_eq!(read(directory.path(), calls()).len(), 20);
}
