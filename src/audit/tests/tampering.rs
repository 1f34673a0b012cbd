//! Whatever is done to a log afterwards, checking it finds the place.

use std::fs;

use super::*;
use crate::scratch;

/// A log of several segments, stopped in order.
fn made() -> tempfile::TempDir {
    let directory = scratch::in_memory();
    let settings = Audit { segment_bytes_max: 1 << 16, checkpoint_seconds: 1, ..settings() };
    let log = open(directory.path(), &settings);
    let writer = log.writer(0);
    append_in_blocks(&writer, 0..700, 50);
    log.stop().unwrap();
    assert!(files(directory.path()).len() >= 4);
    verified(directory.path());
    directory
}

fn copy(of: &Path) -> tempfile::TempDir {
    let directory = scratch::in_memory();
    for entry in fs::read_dir(of).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, directory.path().join(path.file_name().unwrap())).unwrap();
    }
    directory
}

fn lines(path: &Path) -> Vec<String> {
    fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect()
}

fn write(path: &Path, lines: &[String]) {
    let mut text = lines.join("\n");
    text.push('\n');
    fs::write(path, text).unwrap();
}

fn fault(directory: &Path) -> Fault {
    verify(directory, None, None).unwrap().fault.expect("a fault")
}

/// Where a block that holds line `at` begins and ends, counted from 1.
fn block_around(lines: &[String], at: usize) -> (u64, u64) {
    let is_block = |line: &String| line.starts_with("{\"block\"");
    let begin = lines[..at].iter().rposition(is_block).map_or(0, |at| at + 1);
    let end = at + lines[at..].iter().position(is_block).unwrap();
    (begin as u64 + 1, end as u64 + 1)
}

#[test]
fn every_changed_line_is_found_in_its_block() {
    let origin = made();
    for (index, path) in files(origin.path()).iter().enumerate() {
        let before = lines(path);
        for at in (0..before.len()).step_by(if index == 0 { 7 } else { 53 }) {
            let changed = copy(origin.path());
            let path = &files(changed.path())[index];
            let mut now = before.clone();
            // One digit of one number, or of a hash or signature.
            let digit = now[at].rfind(|letter: char| letter.is_ascii_digit()).unwrap();
            let other = if &now[at][digit..=digit] == "7" { "8" } else { "7" };
            now[at].replace_range(digit..=digit, other);
            write(path, &now);
            let fault = fault(changed.path());
            assert_eq!(&fault.path, path, "{fault}");
            let is_record = before[at].starts_with("{\"time\"");
            let (begin, end) = if is_record { block_around(&now, at) } else { (1, u64::MAX) };
            assert!((begin..=end).contains(&fault.line), "line {}: {fault}", at + 1);
            if !is_record {
                // The begin of the block, or the line itself.
                assert!(fault.line <= at as u64 + 1, "line {}: {fault}", at + 1);
            }
        }
    }
}

#[test]
fn removed_inserted_and_reordered_lines_are_found() {
    let origin = made();
    let path = &files(origin.path())[1];
    let before = lines(path);
    let try_with = |what: &str, at: usize, change: &dyn Fn(&mut Vec<String>)| {
        let changed = copy(origin.path());
        let path = &files(changed.path())[1];
        let mut now = before.clone();
        change(&mut now);
        if now == before {
            return;
        }
        write(path, &now);
        let fault = fault(changed.path());
        assert_eq!(&fault.path, path, "{what}: {fault}");
        assert!(fault.line <= at as u64 + 60, "{what} at {}: {fault}", at + 1);
    };
    for at in (0..before.len()).step_by(5).chain(before.len() - 3..before.len()) {
        try_with("removed", at, &|lines| drop(lines.remove(at)));
        try_with("doubled", at, &|lines| lines.insert(at, lines[at].clone()));
        let other = at.saturating_sub(1);
        try_with("swapped", at, &|lines| lines.swap(at, other));
        let blank = before[at].replacen(':', ": ", 1);
        try_with("written otherwise", at, &|lines| lines[at].clone_from(&blank));
    }
    let foreign = "{\"time\":1,\"tenant\":\"acme\"}".to_owned();
    for at in (0..=before.len()).step_by(9) {
        try_with("inserted", at, &|lines| lines.insert(at, foreign.clone()));
    }
}

#[test]
fn removed_renamed_and_exchanged_segments_are_found() {
    let origin = made();
    let count = files(origin.path()).len();
    for index in 0..count {
        let changed = copy(origin.path());
        fs::remove_file(&files(changed.path())[index]).unwrap();
        let fault = fault(changed.path());
        let expected = if index + 1 == count { "cut off" } else { "missing" };
        assert!(fault.what.contains(expected), "{fault}");
    }
    let changed = copy(origin.path());
    let paths = files(changed.path());
    let (one, two) = (fs::read(&paths[1]).unwrap(), fs::read(&paths[2]).unwrap());
    fs::write(&paths[1], two).unwrap();
    fs::write(&paths[2], one).unwrap();
    assert_eq!(fault(changed.path()).path, paths[1]);
    for path in &paths {
        fs::remove_file(path).unwrap();
    }
    let fault = fault(changed.path());
    assert!(fault.what.contains("ends at block 0"), "{fault}");
}

#[test]
fn a_cut_off_end_is_found_as_far_as_checkpoints_know() {
    let origin = made();
    let path = files(origin.path()).pop().unwrap();
    let before = lines(&path);
    for left in (0..before.len()).step_by(11) {
        let changed = copy(origin.path());
        let path = files(changed.path()).pop().unwrap();
        fs::write(&path, format!("{}\n", before[..left].join("\n"))).unwrap();
        let fault = fault(changed.path());
        // A header alone is "changed" where nothing is left of it.
        assert!(fault.what.contains("cut off") || left == 0, "{left}: {fault}");
    }
    // Together with the copy of the last checkpoint: how much, only somebody elsewhere can know.
    let changed = copy(origin.path());
    let path = files(changed.path()).pop().unwrap();
    let blocks: Vec<usize> =
        (0..before.len()).filter(|at| before[*at].starts_with("{\"block\"")).collect();
    let kept = if blocks.len() > 1 { blocks[0] } else { 0 };
    write(&path, &before[..=kept]);
    let elsewhere = changed.path().join("elsewhere");
    fs::rename(changed.path().join("head"), &elsewhere).unwrap();
    let found = fault(changed.path());
    assert_eq!(found.path, changed.path().join("head"), "{found}");
    let found = verify(changed.path(), None, Some(&elsewhere)).unwrap();
    assert!(found.fault.unwrap().what.contains("cut off"));
}

#[test]
fn a_log_without_its_head_is_at_fault_and_stays_so() {
    let origin = made();
    for change in [
        "removed",
        "removed with the newest segment",
        "all removed",
        "of another log",
        "an earlier checkpoint",
    ] {
        let changed = copy(origin.path());
        let head = changed.path().join("head");
        match change {
            "of another log" => drop(fs::copy(made().path().join("head"), &head).unwrap()),
            "an earlier checkpoint" => {
                let is_checkpoint = |line: &String| line.starts_with("{\"checkpoint\"");
                let earlier = lines(&files(changed.path())[0]).into_iter().rfind(is_checkpoint);
                write(&head, &[earlier.unwrap()]);
            }
            _ => fs::remove_file(&head).unwrap(),
        }
        let paths = files(changed.path());
        let removed = match change {
            "removed with the newest segment" => &paths[paths.len() - 1..],
            "an earlier checkpoint" => &paths[1..],
            "all removed" => &paths[..],
            _ => &[],
        };
        for path in removed {
            fs::remove_file(path).unwrap();
        }
        assert_eq!(fault(changed.path()).path, head, "{change}");
        // Going on writes a new head, and does not hide what was found.
        for round in 0..2 {
            let log = open(changed.path(), &settings());
            log.writer(0).append(&record(5000)).unwrap();
            log.stop().unwrap();
            assert!(head.exists());
            let what = fault(changed.path()).what;
            assert!(what.contains("missing") || what.contains("cut off"), "{change}: {what}");
            let events = read(changed.path(), Filter::default());
            let told = events.iter().filter(|line| line.contains("\"event\":\"found_headless\""));
            assert_eq!(told.count(), 1, "{change}, start {round}");
        }
    }
}

#[test]
fn what_is_no_file_is_an_error_and_not_waited_for() {
    let origin = made();
    let names = ["signing.key", "signing.pub", "head", "removed", "segment", "lock"];
    for name in names {
        let changed = copy(origin.path());
        let path = match name {
            "segment" => files(changed.path())[1].clone(),
            name => changed.path().join(name),
        };
        let _ = fs::remove_file(&path);
        let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        if !["signing.key", "lock"].contains(&name) {
            let error = verify(changed.path(), None, None).unwrap_err().to_string();
            let says = format!("cannot read {}: it is not a regular file", path.display());
            assert_eq!(error, says);
        }
        if name == "segment" {
            let mut reader = Reader::open(changed.path(), Filter::default()).unwrap();
            let error = loop {
                match reader.advance() {
                    Ok(true) => {}
                    Ok(false) => panic!("a pipe was passed over"),
                    Err(error) => break error.to_string(),
                }
            };
            assert!(error.ends_with("it is not a regular file"), "{error}");
            let mut reader = Reader::open(changed.path(), calls()).unwrap();
            reader.seek_last(10_000).unwrap_err();
            let wanted = Filter { from_ms: Some(1), ..calls() };
            let mut reader = Reader::open(changed.path(), wanted).unwrap();
            while let Ok(true) = reader.advance() {}
        }
        // A start ends as well, whatever comes of it.
        if let Ok(log) = AuditLog::open(changed.path(), &settings()) {
            log.stop().unwrap();
        }
    }
}

/// Somebody who knows how the log is made, but has not its key.
#[test]
fn a_chain_that_was_made_anew_fails_at_its_first_signature() {
    use super::super::chain::{Chain, Line, Link, read_line};
    let origin = made();
    let changed = copy(origin.path());
    let path = &files(changed.path())[0];
    let mut chain = Chain::after(Link::FIRST);
    let mut out = Vec::new();
    let mut is_changed = false;
    for line in lines(path) {
        let mut line = line.into_bytes();
        let kind = read_line(&line);
        if kind == Some(Line::Record) && !is_changed && line.ends_with(b"5120}") {
            is_changed = true;
            line.truncate(line.len() - 5);
            line.extend_from_slice(b"5121}");
        }
        line.push(b'\n');
        match kind {
            Some(Line::Block(_)) => chain.close().write(&mut out),
            kind => {
                chain.cover(&line, u64::from(kind == Some(Line::Record)));
                out.extend_from_slice(&line);
            }
        }
    }
    fs::write(path, out).unwrap();
    let found = fault(changed.path());
    assert!(found.what.contains("checkpoint is not of") && &found.path == path, "{found}");
    // With a key of his own, and everything signed anew, it is another log.
    let other = made();
    let key = origin.path().join("signing.pub");
    let found = verify(other.path(), Some(&key), None).unwrap().fault.unwrap();
    assert!(found.what.contains("signed with the key of this log"), "{found}");
}

#[test]
fn no_bytes_make_checking_or_going_on_panic() {
    let origin = made();
    let count = files(origin.path()).len();
    for round in 0..60_usize {
        let changed = copy(origin.path());
        let path = &files(changed.path())[round % count];
        let mut bytes = fs::read(path).unwrap();
        let at = bytes.len() * (round * 37 % 101) / 101;
        match round % 3 {
            0 => bytes.truncate(at),
            1 => bytes[at] ^= 0xff,
            _ => {
                let end = (at + 5000).min(bytes.len());
                bytes[at..end].fill(0);
            }
        }
        fs::write(path, bytes).unwrap();
        assert!(verify(changed.path(), None, None).unwrap().fault.is_some(), "{round}");
        let log = open(changed.path(), &settings());
        log.writer(0).append(&record(5000)).unwrap();
        log.stop().unwrap();
        let read = read(changed.path(), calls());
        assert!(read.last().unwrap().contains("1796000005000"), "{round}");
        // What was found stays to be found; what could be healed never hides a loss.
        assert!(verify(changed.path(), None, None).unwrap().fault.is_some(), "{round}");
    }
}
