//! Writing and reading, stopping and going on.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use super::disk::Mood;
use super::*;

#[test]
fn what_several_cores_append_is_read_back_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(directory.path(), &settings());
    thread::scope(|scope| {
        for core in 0..4u64 {
            let writer = log.writer(core as usize);
            scope.spawn(move || {
                for number in 0..2000 {
                    let tool = format!("{core}-{number}");
                    let record = Record { subject: None, asked: Some(&tool), ..record(number) };
                    writer.append(&record).unwrap();
                    if number % 200 == 0 {
                        thread::park_timeout(Duration::from_millis(10));
                    }
                }
            });
        }
    });
    log.stop().unwrap();
    let lines = read(directory.path(), calls());
    assert_eq!(lines.len(), 8000);
    let mut next = [0; 4];
    for line in &lines {
        let entry = Entry::read(line.as_bytes()).unwrap();
        let tool = entry.tool.unwrap();
        let (core, number) = tool.split_once('-').unwrap();
        let expected = &mut next[core.parse::<usize>().unwrap()];
        assert_eq!(number.parse::<u64>().unwrap(), *expected);
        *expected += 1;
    }
    let found = verified(directory.path());
    assert_eq!(found.records, 8000 + 2, "and the events started and stopped");
    assert_eq!((found.unsigned_records, found.open_records), (0, 0));
    let figures = log.figures();
    assert_eq!((figures.records, figures.dropped, figures.segments), (8002, 0, 1));
    assert!(figures.bytes > 8000 * 400 && figures.write_errors == 0, "{figures:?}");
    for path in fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().path()) {
        let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{}", path.display());
    }
}

#[test]
fn a_record_is_written_within_its_time() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(directory.path(), &settings());
    let writer = log.writer(0);
    eventually("the log is begun", || !files(directory.path()).is_empty());
    let mut times = Vec::new();
    for number in 0..21 {
        let appended = Instant::now();
        writer.append(&record(number)).unwrap();
        let wanted = number as usize + 1;
        while read(directory.path(), calls()).len() < wanted {
            thread::park_timeout(Duration::from_millis(2));
        }
        times.push(appended.elapsed());
    }
    // 50 ms, and what a busy machine adds; it may forget a process for longer, but not always.
    times.sort_unstable();
    eprintln!("written after {times:?}");
    assert!(times[times.len() / 2] < Duration::from_millis(200), "{times:?}");
    log.stop().unwrap();
}

#[test]
fn segments_follow_each_other_over_stops() {
    let directory = tempfile::tempdir().unwrap();
    let settings = Audit { segment_bytes_max: 1 << 16, ..settings() };
    let mut number = 0;
    for _ in 0..3 {
        let log = open(directory.path(), &settings);
        let writer = log.writer(0);
        append_in_blocks(&writer, number..number + 600, 100);
        number += 600;
        log.stop().unwrap();
        assert_eq!(writer.append(&record(0)), Err(Dropped::Closed));
    }
    let found = verified(directory.path());
    assert_eq!(found.records, 1800 + 6);
    assert!(found.segments.len() > 3, "{found:?}");
    let lines = read(directory.path(), calls());
    assert_eq!(lines.len(), 1800);
    for (expected, line) in (NOW_MS..).zip(&lines) {
        assert_eq!(Entry::read(line.as_bytes()).unwrap().time, expected);
    }
    let wanted = Filter { from_ms: Some(NOW_MS + 500), to_ms: Some(NOW_MS + 510), ..calls() };
    assert_eq!(read(directory.path(), wanted).len(), 10);
    for count in [0, 1, 7, 300, 1800, 5000] {
        let mut reader = Reader::open(directory.path(), calls()).unwrap();
        reader.seek_last(count).unwrap();
        let last = drain(&mut reader);
        assert_eq!(last, lines[lines.len() - count.min(lines.len())..]);
    }
    // What a checkpoint kept elsewhere says.
    let head = directory.path().join("head");
    let found = verify(directory.path(), Some(&directory.path().join("signing.pub")), Some(&head));
    assert_eq!(found.unwrap().fault, None);
}

#[test]
fn a_reader_sees_what_is_written_after_it_began() {
    let directory = tempfile::tempdir().unwrap();
    let settings = Audit { segment_bytes_max: 1 << 16, ..settings() };
    let log = open(directory.path(), &settings);
    let writer = log.writer(0);
    eventually("the log is begun", || !files(directory.path()).is_empty());
    let mut reader = Reader::open(directory.path(), calls()).unwrap();
    reader.seek_last(0).unwrap();
    assert_eq!(drain(&mut reader).len(), 0);
    let mut seen = Vec::new();
    for number in 0..1000 {
        writer.append(&record(number)).unwrap();
        if number % 50 == 0 {
            eventually("written", || writer.waiting_bytes() == 0);
            seen.extend(drain(&mut reader));
        }
    }
    eventually("everything is seen", || {
        seen.extend(drain(&mut reader));
        seen.len() == 1000
    });
    assert_eq!(seen.iter().collect::<HashSet<_>>().len(), 1000);
    assert!(files(directory.path()).len() > 2);
    // A running log can be checked, too.
    verified(directory.path());
    log.stop().unwrap();
}

#[test]
fn old_segments_go_and_the_rest_is_still_whole() {
    let directory = tempfile::tempdir().unwrap();
    let settings = Audit { segment_bytes_max: 1 << 16, keep_bytes_max: 4 << 16, ..settings() };
    for _ in 0..2 {
        let log = open(directory.path(), &settings);
        let writer = log.writer(0);
        append_in_blocks(&writer, 0..30 * 150, 150);
        log.stop().unwrap();
        let found = verified(directory.path());
        let (segments, bytes, through, _) = found.removed.unwrap();
        assert!(segments > 5 && bytes > 5 << 16 && through > 5, "{found:?}");
        assert_eq!(found.segments[0].first_block, through + 1);
        let bytes: u64 =
            files(directory.path()).iter().map(|path| fs::metadata(path).unwrap().len()).sum();
        assert!(bytes < 6 << 16, "{bytes}");
        let events = read(directory.path(), Filter::default());
        assert!(events.iter().any(|line| line.contains("\"event\":\"removed\"")));
    }
    // The statement is gone, or is another's.
    let removed = directory.path().join("removed");
    let statement = fs::read_to_string(&removed).unwrap();
    fs::write(&removed, statement.replace("\"segments\":", "\"segments\":1")).unwrap();
    assert_eq!(verify(directory.path(), None, None).unwrap().fault.unwrap().path, removed);
    fs::remove_file(&removed).unwrap();
    let fault = verify(directory.path(), None, None).unwrap().fault.unwrap();
    assert!(fault.what.contains("no signed statement"), "{fault}");
}

/// A log that was stopped in order, and its segments.
fn of_several_segments(settings: &Audit) -> (tempfile::TempDir, Vec<PathBuf>) {
    let directory = tempfile::tempdir().unwrap();
    let log = open(directory.path(), settings);
    append_in_blocks(&log.writer(0), 0..600, 150);
    log.stop().unwrap();
    let segments = files(directory.path());
    assert!(segments.len() >= 3, "{segments:?}");
    (directory, segments)
}

#[test]
fn segments_go_when_they_are_too_old() {
    let settings = Audit { segment_bytes_max: 1 << 16, keep_days: 1, ..settings() };
    let (directory, before) = of_several_segments(&settings);
    let key = SigningKey::read(directory.path()).unwrap();
    let apply = |now_ms| retention::apply(directory.path(), &settings, &key, None, now_ms).unwrap();
    assert_eq!(apply(worker::now_ms()).count, 0);
    let done = apply(worker::now_ms() + 2 * 86_400_000);
    assert_eq!((done.count, done.left), (before.len() as u64 - 1, 1));
    assert_eq!(files(directory.path()), before[before.len() - 1..]);
    verified(directory.path());
    open(directory.path(), &settings).stop().unwrap();
    verified(directory.path());
}

#[test]
fn a_running_log_deletes_what_is_too_old() {
    const DAY_MS: u64 = 86_400_000;
    let directory = tempfile::tempdir().unwrap();
    let settings = Audit { segment_bytes_max: 1 << 16, keep_days: 2, ..settings() };
    let log = open(directory.path(), &settings);
    let writer = log.writer(0);
    let mut first = Vec::new();
    for day in 0..5 {
        log.handle.shared.disk.set_later_ms(day * DAY_MS);
        append_in_blocks(&writer, day * 900..(day + 1) * 900, 150);
        let now = files(directory.path());
        match day {
            0 | 1 => assert!(now.starts_with(&first), "day {day}: {now:?}"),
            // What was closed two days ago and a moment more.
            _ => assert!(!now.contains(&first[0]), "day {day}: {now:?}"),
        }
        if day == 0 {
            first.extend_from_slice(&now[..now.len() - 1]);
            assert!(first.len() >= 2, "{now:?}");
        }
    }
    let figures = log.figures();
    assert_eq!(figures.segments, files(directory.path()).len() as u64);
    log.stop().unwrap();
    let found = verified(directory.path());
    let (segments, bytes, through, _) = found.removed.unwrap();
    assert!(segments as usize >= first.len() && bytes > 1 << 16, "{found:?}");
    assert_eq!(found.segments[0].first_block, through + 1);
    let numbers: Vec<u64> = read(directory.path(), calls())
        .iter()
        .map(|line| Entry::read(line.as_bytes()).unwrap().time - NOW_MS)
        .collect();
    // What is left is the end, without a hole.
    assert!((900..=3600).contains(&numbers[0]), "{}", numbers[0]);
    assert!(numbers.iter().copied().eq(numbers[0]..4500));
    let events = read(directory.path(), Filter::default());
    assert!(events.iter().any(|line| line.contains("\"event\":\"removed\"")));
}

#[test]
fn segments_are_closed_when_they_are_old_enough() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(directory.path(), &Audit { segment_seconds: 1, ..settings() });
    let writer = log.writer(0);
    append_in_blocks(&writer, 0..2, 1);
    thread::park_timeout(Duration::from_millis(1100));
    append_in_blocks(&writer, 2..4, 1);
    assert!(files(directory.path()).len() >= 2);
    log.stop().unwrap();
    assert_eq!(verified(directory.path()).records, 4 + 2);
}

#[test]
fn a_deletion_that_was_interrupted_is_finished() {
    let settings = Audit { segment_bytes_max: 1 << 16, keep_days: 1, ..settings() };
    let (directory, before) = of_several_segments(&settings);
    let kept: Vec<_> = before.iter().map(|path| fs::read(path).unwrap()).collect();
    let key = SigningKey::read(directory.path()).unwrap();
    let later = worker::now_ms() + 2 * 86_400_000;
    retention::apply(directory.path(), &settings, &key, None, later).unwrap();
    for left in (0..before.len() - 1).rev() {
        fs::write(&before[left], &kept[left]).unwrap();
        verified(directory.path());
    }
    let log = open(directory.path(), &settings);
    // Where the last one was closed, writing goes on in a new one beside it.
    let (last, deleted) = before.split_last().unwrap();
    eventually("deleted again", || !deleted.iter().any(|path| path.exists()));
    log.stop().unwrap();
    assert_eq!(files(directory.path()).first(), Some(last));
    assert_eq!(verified(directory.path()).removed.unwrap().0, before.len() as u64 - 1);
}

#[test]
fn a_log_that_is_off_takes_everything_and_writes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("audit");
    let log = open(&place, &Audit { enabled: false, strict: true, ..settings() });
    let writer = log.writer(0);
    for number in 0..100_000 {
        writer.append(&record(number)).unwrap();
    }
    let reservation = writer.reserve().unwrap();
    writer.append_reserved(reservation, &record(1)).unwrap();
    log.stop().unwrap();
    assert!(!place.exists());
    assert!(matches!(verify(&place, None, None), Err(AuditError::NoLog { .. })));
}

#[test]
fn one_process_writes() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(directory.path(), &settings());
    let again = AuditLog::open(directory.path(), &settings());
    assert!(matches!(again, Err(AuditError::InUse { .. })));
    log.stop().unwrap();
    open(directory.path(), &settings()).stop().unwrap();
    fs::remove_file(directory.path().join("signing.key")).unwrap();
    let again = AuditLog::open(directory.path(), &settings());
    assert!(matches!(again, Err(AuditError::KeyMissing { .. })));
}

#[test]
fn idle_logs_are_signed_too() {
    let directory = tempfile::tempdir().unwrap();
    let settings = Audit { checkpoint_seconds: 1, ..settings() };
    let log = open(directory.path(), &settings);
    log.writer(0).append(&record(1)).unwrap();
    eventually("signed", || {
        !files(directory.path()).is_empty()
            && verify(directory.path(), None, None).is_ok_and(|found| {
                found.records == 2 && found.signed.is_some() && found.unsigned_records == 0
            })
    });
    drop(log.writer(1));
    log.handle.shared.disk.set(Mood::Writes);
    log.stop().unwrap();
}

#[test]
fn any_reader_of_json_can_read_it() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(directory.path(), &settings());
    let payload = Some(Payload(b"{\"a\":\n[1]}"));
    let writer = log.writer(0);
    writer.append(&Record { arguments: payload, result: payload, ..record(1) }).unwrap();
    log.stop().unwrap();
    for path in files(directory.path()) {
        for line in fs::read_to_string(path).unwrap().lines() {
            let value: Value = serde_json::from_str(line).unwrap();
            assert!(value.is_object(), "{line}");
        }
    }
    let filter = |name: &str, text: &str| {
        let mut filter = Filter::default();
        let place = match name {
            "tool" => &mut filter.tool,
            "reason" => &mut filter.reason,
            "execution_id" => &mut filter.execution_id,
            "call_type" => &mut filter.call_type,
            "decision" => &mut filter.decision,
            "caller" => &mut filter.caller,
            "correlation_id" => &mut filter.correlation_id,
            _ => &mut filter.client_application,
        };
        *place = Some(text.to_owned());
        read(directory.path(), filter).len()
    };
    let id = execution(1).to_string();
    for (name, text) in [
        ("tool", "orders__find_order"),
        ("reason", "allowed"),
        ("execution_id", &id),
        ("call_type", "tool_execution"),
        ("decision", "allowed"),
        ("caller", "key:0123456789ab"),
        ("correlation_id", "order-4711"),
        ("client", "support-desk"),
    ] {
        assert_eq!(filter(name, text), 1, "{name}");
        assert_eq!(filter(name, &text[..3]), 0, "{name}");
    }
}
