//! Lines that refer back, from the core to the reader.

use std::collections::HashMap;
use std::fs;

use proptest::prelude::*;

use super::super::line::write_record;
use super::super::repeat::{Run, Whole};
use super::*;
use crate::scratch;

/// The line of a record as it is read back, whatever it was written behind.
fn alone(record: &Record<'_>) -> String {
    // Nothing goes without saying of what was denied and went wrong.
    let told = Record { decision: Decision::Denied, outcome: Outcome::Error, ..*record };
    let mut out = Vec::new();
    write_record(&mut out, &told, &mut Run::default(), 1000);
    let mut line = String::from_utf8(out).unwrap();
    if record.decision == Decision::Allowed {
        line = line.replacen("\"decision\":\"denied\"", "\"decision\":\"allowed\"", 1);
        if record.reason == ALLOWED {
            line = line.replacen(",\"reason\":\"allowed\"", "", 1);
        }
    }
    let outcome = format!("\"outcome\":\"{}\"", record.outcome.as_str());
    line.replacen("\"outcome\":\"error\"", &outcome, 1).trim_end().to_owned()
}

/// A few that differ in little, and some that are equal.
fn askers() -> [Asker; 5] {
    let new = |caller, trust| Asker::new("acme", "support \"desk\\", caller, trust);
    [
        new("key:1", Some("medium")),
        new("key:1", None),
        new("key:1", Some("medium")),
        new("\",\"same_asker\":true", Some("high")),
        Asker::new("other", "desk", "key:1", Some("medium")),
    ]
}

fn subjects() -> [Subject; 4] {
    let new = |name, source| Subject::new(name, "orders", source, &[7; 32]);
    [new("find", None), new("find", None), new("find", Some("get{")), new("seek", None)]
}

/// One of many everyday calls, all of which end at once.
fn at_once<'a>(number: u64, asker: &'a Asker, subject: &'a Subject) -> Record<'a> {
    Record { time_ms: NOW_MS, asker, subject: Some(subject), ..record(number) }
}

/// Raw lines that refer back.
fn references(directory: &Path) -> usize {
    let texts = files(directory).into_iter().map(|path| fs::read_to_string(path).unwrap());
    texts.map(|text| text.matches("\"same_asker\":true,").count()).sum()
}

fn own_calls(lines: Vec<String>) -> Vec<String> {
    lines.into_iter().filter(|line| !line.contains("\"event\":")).collect()
}

type Given = (usize, (usize, usize), u64, (bool, bool), (u8, u8), Option<String>, bool);

fn given() -> impl Strategy<Value = Given> {
    (
        0..3usize,
        (0..5usize, 0..5usize),
        0..3u64,
        any::<(bool, bool)>(),
        (0..4u8, 0..4u8),
        proptest::option::of("\\PC{0,20}"),
        any::<bool>(),
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn what_cores_write_is_read_back_as_if_each_record_stood_alone(
        given in proptest::collection::vec(given(), 1..200),
    ) {
        let (askers, subjects) = (askers(), subjects());
        let directory = scratch::in_memory();
        let log = open(directory.path(), &settings());
        let writers: Vec<_> = (0..3).map(|core| log.writer(core)).collect();
        let mut expected = HashMap::new();
        let mut time_ms = NOW_MS;
        for (number, given) in given.iter().enumerate() {
            let (lane, (asker, subject), later_ms, (is_denied, is_listed), rest, name, flag) = given;
            // Mostly at once.
            time_ms += later_ms / 2;
            let payload = b"{\"same_asker\":true,\"tenant\":\"x\",\"outcome\":\"error\"}";
            let mut record = Record {
                time_ms,
                asker: &askers[*asker],
                subject: subjects.get(*subject),
                asked: name.as_deref(),
                correlation: name.as_deref().filter(|_| *flag),
                arguments: (rest.0 == 0).then_some(Payload(payload)),
                session: flag.then_some(&[0x3f; 16]),
                ..record(number as u64)
            };
            if *is_denied && rest.1 == 0 {
                record.decision = Decision::Denied;
                record.reason = "default_deny";
            }
            if rest.1 == 1 {
                record.outcome = Outcome::ToolError;
                record.observed = Some("observed_default_deny");
                record.downstream_status = None;
            }
            if *is_listed && rest.0 == 1 {
                record.call_type = CallType::ToolDiscovery;
                record.method = "tools/list";
                record.side_effect = None;
                record.revision = None;
            }
            writers[*lane].append(&record).unwrap();
            expected.insert(record.execution.to_string(), alone(&record));
        }
        log.stop().unwrap();
        verified(directory.path());
        let lines = own_calls(read(directory.path(), Filter::default()));
        prop_assert_eq!(lines.len(), expected.len());
        for line in lines {
            let id = Entry::read(line.as_bytes()).unwrap().execution_id.unwrap().into_owned();
            prop_assert_eq!(Some(line), expected.remove(&id));
        }
    }

    #[test]
    fn whatever_a_line_holds_it_is_read(lines in proptest::collection::vec(
        "\\{\"time\":1(,\"(same_asker|same_tool|tenant|tool|outcome|total_us)\":(true|\"x\"|7|\"\\\\|\\{\\})){0,6}[}\"]?",
        0..20,
    )) {
        let mut whole = Whole::default();
        for line in &lines {
            whole.take(line.as_bytes());
            prop_assert!(whole.line().len() <= 60 + 2 * line.len() + lines.concat().len());
        }
    }
}

/// A log of calls that ended at once: lines as they are to be read, two askers and two tools in turns.
fn made(count: u64) -> (tempfile::TempDir, Vec<String>) {
    let (askers, subjects) = (askers(), subjects());
    let directory = scratch::in_memory();
    let log = open(directory.path(), &settings());
    let writer = log.writer(0);
    let mut expected = Vec::new();
    for number in 0..count {
        let asker = &askers[if number % 20 < 15 { 0 } else { 4 }];
        let subject = &subjects[if number % 14 < 7 { 0 } else { 3 }];
        let record = at_once(number, asker, subject);
        writer.append(&record).unwrap();
        expected.push(alone(&record));
    }
    log.stop().unwrap();
    assert!(references(directory.path()) as u64 > count / 2);
    (directory, expected)
}

#[test]
fn reading_may_begin_within_a_run() {
    let (directory, expected) = made(300);
    assert_eq!(own_calls(read(directory.path(), Filter::default())), expected);
    for count in 0..=300 {
        let mut reader = Reader::open(directory.path(), Filter::default()).unwrap();
        // One is that the log was stopped.
        reader.seek_last(count + 1).unwrap();
        assert_eq!(own_calls(drain(&mut reader)), expected[300 - count..], "{count}");
    }
    let mut reader = Reader::open(directory.path(), Filter::default()).unwrap();
    reader.seek_last(0).unwrap();
    assert!(drain(&mut reader).is_empty());
    let log = open(directory.path(), &settings());
    let (askers, subjects) = (askers(), subjects());
    let more: Vec<_> = (300..310).map(|number| at_once(number, &askers[0], &subjects[0])).collect();
    let writer = log.writer(0);
    for record in &more {
        writer.append(record).unwrap();
    }
    log.stop().unwrap();
    let more: Vec<String> = more.iter().map(alone).collect();
    assert_eq!(own_calls(drain(&mut reader)), more);
}

#[test]
fn filters_find_what_lines_leave_out() {
    let (directory, expected) = made(300);
    let filters: [(Filter, &[&str]); 5] = [
        (Filter { tenant: Some("other".into()), ..Filter::default() }, &["\"tenant\":\"other\""]),
        (Filter { tool: Some("seek".into()), ..Filter::default() }, &["\"tool\":\"seek\""]),
        (
            Filter {
                client_application: Some("desk".into()),
                tool: Some("find".into()),
                call_type: Some("tool_execution".into()),
                ..Filter::default()
            },
            &["\"client_application\":\"desk\"", "\"tool\":\"find\""],
        ),
        (Filter { decision: Some("allowed".into()), ..Filter::default() }, &[]),
        (Filter { decision: Some("denied".into()), ..Filter::default() }, &["denied"]),
    ];
    for (filter, has) in filters {
        let is_wanted = |line: &&String| has.iter().all(|text| line.contains(text));
        let wanted: Vec<String> = expected.iter().filter(is_wanted).cloned().collect();
        let found = read(directory.path(), filter.clone());
        assert_eq!(found, wanted, "{filter:?}");
        for count in [1, 5, 60] {
            let mut reader = Reader::open(directory.path(), filter.clone()).unwrap();
            reader.seek_last(count).unwrap();
            assert_eq!(drain(&mut reader), wanted[wanted.len().saturating_sub(count)..]);
        }
    }
}

#[test]
fn a_crash_within_a_run_leaves_whole_lines() {
    let (askers, subjects) = (askers(), subjects());
    let directory = scratch::in_memory();
    let log = open(directory.path(), &settings());
    eventually("the log is begun", || log.figures().records == 1);
    let writer = log.writer(0);
    let records: Vec<_> = (0..40)
        .map(|number| at_once(number, &askers[usize::from(number >= 25)], &subjects[0]))
        .collect();
    for record in &records {
        writer.append(record).unwrap();
    }
    eventually("written", || log.figures().records == 41);
    // As it is while it runs.
    let path = files(directory.path()).remove(0);
    let (bytes, head) =
        (fs::read(&path).unwrap(), fs::read(directory.path().join("head")).unwrap());
    log.stop().unwrap();
    let expected: Vec<String> = records.iter().map(alone).collect();
    let blocks: Vec<_> = memchr::memmem::find_iter(&bytes, b"{\"block\"").collect();
    let begin = blocks[0] + memchr::memchr(b'\n', &bytes[blocks[0]..]).unwrap() + 1;
    for length in (begin..bytes.len()).step_by(211).chain([bytes.len()]) {
        fs::write(&path, &bytes[..length]).unwrap();
        fs::write(directory.path().join("head"), &head).unwrap();
        // A reader that was there before the next start goes on with it.
        let mut reader = Reader::open(directory.path(), Filter::default()).unwrap();
        let mut seen = own_calls(drain(&mut reader));
        let more = at_once(99, &askers[0], &subjects[0]);
        let log = open(directory.path(), &settings());
        log.writer(0).append(&more).unwrap();
        log.stop().unwrap();
        verified(directory.path());
        let lines = own_calls(read(directory.path(), Filter::default()));
        let (last, kept) = lines.split_last().unwrap();
        assert_eq!(kept, &expected[..kept.len()], "{length}");
        assert_eq!(last, &alone(&more));
        assert!(length < bytes.len() || kept.len() == 40, "{}", kept.len());
        seen.extend(own_calls(drain(&mut reader)));
        assert_eq!(seen, lines, "{length}");
    }
}

#[test]
fn what_refers_to_nothing_is_read_without_it() {
    let (askers, subjects) = (askers(), subjects());
    let (mut run, mut out) = (Run::default(), Vec::new());
    for number in 0..3 {
        write_record(&mut out, &at_once(number, &askers[0], &subjects[0]), &mut run, 1000);
    }
    let lines: Vec<&[u8]> = out.trim_ascii_end().split(|byte| *byte == b'\n').collect();
    let read = |whole: &mut Whole, line: &[u8]| {
        let stands_alone = whole.take(line);
        let entry = Entry::read(whole.line()).unwrap();
        let (tenant, tool) = (entry.tenant.is_some(), entry.tool.is_some());
        assert_eq!((tenant, tool), (entry.trust.is_some(), entry.schema_hash.is_some()));
        assert_eq!(entry.downstream_status, Some(200));
        (stands_alone, tenant, tool)
    };
    let mut whole = Whole::default();
    assert_eq!(read(&mut whole, lines[1]), (false, false, false));
    assert_eq!(read(&mut whole, lines[0]), (true, true, true));
    assert_eq!(read(&mut whole, lines[1]), (false, true, true));
    assert_eq!(read(&mut whole, lines[2]), (false, true, true));
    // Lines of the chain and events end a run.
    whole.forget();
    assert_eq!(read(&mut whole, lines[2]), (false, false, false));
    read(&mut whole, lines[0]);
    let mut event = Vec::new();
    line::write_stopped(&mut event, 1);
    assert!(whole.take(event.trim_ascii_end()));
    assert_eq!(read(&mut whole, lines[2]), (false, false, false));
}

#[test]
fn lines_of_earlier_versions_are_read_as_they_are() {
    let line = alone(&record(1));
    let mut whole = Whole::default();
    assert!(line.contains("\"decision\":\"allowed\",\"outcome\":\"ok\","));
    for line in [&line, "{\"time\":1,\"tenant\":\"acme\"}", "{\"time\":1}", "", "{", "x"] {
        assert!(whole.take(line.as_bytes()));
        assert_eq!(whole.line(), line.as_bytes());
    }
}
