//! Processes that are killed while they write, and what a power failure leaves.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use super::*;
use crate::scratch;

/// Makes [`child`] act: the directory.
const CHILD_VARIABLE: &str = "RINGWAY_AUDIT_TEST_CHILD";

/// Not a test of its own: the process that the tests below start and kill.
#[test]
fn child() {
    let Ok(directory) = std::env::var(CHILD_VARIABLE) else { return };
    let settings = Audit { segment_bytes_max: 1 << 18, checkpoint_seconds: 1, ..settings() };
    let log = open(Path::new(&directory), &settings);
    let writer = log.writer(0);
    println!("\nopen");
    let mut handed_over = 0;
    for number in 0u64.. {
        writer.append(&record(number)).unwrap();
        if number % 20 == 19 {
            println!("{handed_over}");
            thread::park_timeout(Duration::from_millis(2));
        }
        // Mostly it goes on while the last ones are on their way.
        if number % 400 == 399 {
            eventually("handed over", || writer.waiting_bytes() == 0);
            handed_over = number + 1;
        }
    }
}

#[test]
fn a_killed_process_loses_what_had_not_been_handed_over_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let mut expected = 0;
    for round in 0..5 {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "audit::tests::crash::child", "--nocapture", "--test-threads=1"])
            .env(CHILD_VARIABLE, directory.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        while lines.next().expect("the child opens the log").unwrap() != "open" {}
        let told = lines.by_ref().take(100 + round * 23).last();
        process.kill().unwrap();
        process.wait().unwrap();
        let promised: u64 = told.unwrap().unwrap().parse().unwrap();
        assert!(promised >= 1600, "{promised}");
        let before = verify(directory.path(), None, None).unwrap();
        assert_eq!(before.fault, None);
        let found = read(directory.path(), calls()).len() as u64;
        assert!(found >= expected + promised, "{found} of {expected} + {promised}");
        expected = found;
        if round % 2 == 0 {
            open(directory.path(), &settings()).stop().unwrap();
            assert_eq!(read(directory.path(), calls()).len() as u64, expected);
        }
    }
    let found = verified(directory.path());
    assert!(expected > 1000 && found.segments.len() > 1, "{expected} {found:?}");
}

/// A log of one segment whose last block can be torn; its bytes, and its head as it is then.
fn torn_log() -> (tempfile::TempDir, Vec<u8>, Vec<u8>) {
    let directory = scratch::in_memory();
    let log = open(directory.path(), &settings());
    let writer = log.writer(0);
    for round in 0..3 {
        for number in 0..10 {
            writer.append(&record(round * 10 + number)).unwrap();
        }
        let wanted = 1 + (round + 1) * 10;
        eventually("written", || log.figures().records == wanted);
    }
    // As it is while it runs: without a stop and its checkpoint.
    let bytes = fs::read(&files(directory.path())[0]).unwrap();
    let head = fs::read(directory.path().join("head")).unwrap();
    log.stop().unwrap();
    (directory, bytes, head)
}

#[test]
fn every_way_to_tear_the_last_block_is_recovered_from() {
    let (directory, bytes, head) = torn_log();
    let path = files(directory.path()).remove(0);
    let begin_of_last = {
        let blocks: Vec<_> = memchr::memmem::find_iter(&bytes, b"{\"block\"").collect();
        let before = blocks[blocks.len() - 2];
        before + memchr::memchr(b'\n', &bytes[before..]).unwrap() + 1
    };
    for length in (begin_of_last..bytes.len()).step_by(37).chain([bytes.len() - 1, bytes.len()]) {
        for garbage in [&b""[..], &[0; 300], b"\x00\xff\n{\"time\":12", b"{\"time\":1}\x00\n\n"] {
            fs::write(&path, [&bytes[..length], garbage].concat()).unwrap();
            fs::write(directory.path().join("head"), &head).unwrap();
            let log = open(directory.path(), &settings());
            log.stop().unwrap();
            let found = verified(directory.path());
            let lines = read(directory.path(), calls());
            let whole = &bytes[..length];
            let times = memchr::memmem::find_iter(whole, b"\"tenant\":\"acme\"").count();
            assert!(lines.len() == times || lines.len() + 1 == times, "{} {times}", lines.len());
            let all = read(directory.path(), Filter::default());
            let is_noted = all.iter().any(|line| line.contains("\"event\":\"recovered\""));
            let is_torn = length != bytes.len() && length != begin_of_last || !garbage.is_empty();
            assert_eq!(is_noted, is_torn, "{length} {garbage:?}");
            assert_eq!(found.open_records + found.torn_bytes, 0);
        }
    }
}

#[test]
fn a_segment_that_was_only_begun_is_begun_again() {
    let directory = tempfile::tempdir().unwrap();
    open(directory.path(), &settings()).stop().unwrap();
    let next = verified(directory.path()).segments[0].last_block + 1;
    // The segment before is closed, as it is when the next is begun.
    let key = SigningKey::read(directory.path()).unwrap();
    let path = files(directory.path()).remove(0);
    let text = fs::read_to_string(&path).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    let last = lines.pop().unwrap().as_bytes();
    let Some(chain::Line::Checkpoint(last)) = chain::read_line(last) else { panic!() };
    let end = Some(chain::Span { from_ms: 0, to_ms: u64::MAX });
    let mut bytes = format!("{}\n", lines.join("\n")).into_bytes();
    chain::Checkpoint { end, ..last }.write(&mut bytes, &key);
    fs::write(&path, bytes).unwrap();
    verified(directory.path());
    let head = fs::read(directory.path().join("head")).unwrap();
    for begun in ["", "{\"format\":1,\"time\":17"] {
        let begun_path = directory.path().join(format!("audit-{next:010}.jsonl"));
        let mut file = File::create(&begun_path).unwrap();
        file.write_all(begun.as_bytes()).unwrap();
        // As verify sees it before the next start.
        assert_eq!(verify(directory.path(), None, None).unwrap().fault, None, "{begun}");
        let log = open(directory.path(), &settings());
        log.stop().unwrap();
        assert_eq!(verified(directory.path()).segments.len(), 2);
        fs::remove_file(begun_path).unwrap();
        fs::write(directory.path().join("head"), &head).unwrap();
    }
}
