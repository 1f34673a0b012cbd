//! The writer of lines, with everything that can be in a record.

use proptest::option;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::line::{RECORD_BYTES_MAX, payload_bytes_bound, write_record};
use super::super::repeat::{Run, Whole};
use super::*;

fn line_of(record: &Record<'_>, payload_bytes_max: usize) -> (Vec<u8>, Value) {
    let mut out = Vec::new();
    write_record(&mut out, record, &mut Run::default(), payload_bytes_max);
    assert_eq!(memchr::memchr_iter(b'\n', &out).count(), 1);
    assert_eq!(out.last(), Some(&b'\n'));
    let value = serde_json::from_slice(&out).unwrap();
    (out, value)
}

/// As it is read from a log.
fn whole(line: &[u8]) -> Vec<u8> {
    let mut whole = Whole::default();
    assert!(whole.take(line.trim_ascii_end()));
    whole.line().to_vec()
}

#[test]
fn a_record_is_one_object_with_the_names_of_the_log() {
    let (out, _) = line_of(&record(1), 1000);
    let mut text = String::from_utf8(out).unwrap();
    let id = execution(1).to_string();
    text = text.replace(&id, "ID");
    let (hash, session) = ("07".repeat(32), "3f".repeat(16));
    assert_eq!(
        text,
        format!(
            "{{\"time\":1796000000001,\"execution_id\":\"ID\",\"correlation_id\":\"order-4711\",\
             \"tenant\":\"acme\",\"client_application\":\"support-desk\",\
             \"caller\":\"key:0123456789ab\",\"trust\":\"medium\",\
             \"transport\":\"streamable_http\",\"revision\":\"2025-06-18\",\
             \"session\":\"{session}\",\"call_type\":\"tool_execution\",\
             \"tool\":\"orders__find_order\",\"toolset\":\"orders\",\
             \"schema_hash\":\"{hash}\",\"side_effect\":\"read\",\"downstream_status\":200,\
             \"total_us\":1234,\"downstream_us\":1100,\"request_bytes\":310,\
             \"response_bytes\":5120}}\n"
        )
    );
}

#[test]
fn what_goes_without_saying_is_read_all_the_same() {
    let denied = Record { decision: Decision::Denied, reason: "default_deny", ..record(1) };
    let observed = Record { reason: "observed_default_deny", ..record(1) };
    let cancelled = Record { reason: "cancelled", ..record(1) };
    let listed = Record { call_type: CallType::ToolDiscovery, method: "tools/list", ..record(1) };
    let searched = Record { call_type: CallType::ToolDiscovery, ..record(1) };
    let rest =
        Record { call_type: CallType::RestInvocation, method: "POST /tools/{tool}", ..record(1) };
    for record in [record(1), denied, observed, cancelled, listed, searched, rest] {
        let (line, value) = line_of(&record, 1000);
        let line = whole(&line);
        let entry = Entry::read(&line).unwrap();
        assert_eq!(entry.decision.as_deref(), Some(record.decision.as_str()));
        assert_eq!(entry.outcome.as_deref(), Some(record.outcome.as_str()));
        assert_eq!(entry.reason.as_deref(), Some(record.reason));
        assert_eq!(entry.method.as_deref(), Some(record.method));
        assert_eq!(value.get("reason").is_none(), record.reason == ALLOWED);
        let whole: Value = serde_json::from_slice(&Entry::whole_line(&line)).unwrap();
        assert_eq!(
            (&whole["reason"], &whole["method"]),
            (&json!(record.reason), &json!(record.method))
        );
        assert_eq!(whole["tool"], value["tool"]);
    }
    // Events have neither.
    let mut event = Vec::new();
    line::write_stopped(&mut event, 1);
    assert_eq!(whole(&event), event.trim_ascii_end());
    let entry = Entry::read(&event).unwrap();
    assert!(entry.reason.is_none() && entry.method.is_none());
    assert_eq!(Entry::whole_line(event.trim_ascii_end()), event.trim_ascii_end());
}

/// As long as a word may be; there is none like it.
const WORD: &str = "a_word_that_is_far_longer_than_any_that_there_will_ever_be_in_this_product_because\
                    _whoever_makes_words_up_keeps_them_to_a_few_syllab";

#[test]
fn the_longest_record_fits_in_its_room() {
    for piece in ["x", "\u{1}", "\"", "€", "\u{1F600}"] {
        let long = piece.repeat(1000);
        let asker = Asker::new(&long, &long, &long, Some(WORD));
        let subject = Subject::new(&long, &long, Some(&long), &[0xff; 32]);
        let record = Record {
            correlation: Some(&long),
            revision: Some(WORD),
            session: Some(&[0xff; 16]),
            subject: Some(&subject),
            side_effect: Some(WORD),
            decision: Decision::Allowed,
            reason: WORD,
            observed: Some(WORD),
            outcome: Outcome::ToolError,
            downstream_status: Some(u16::MAX),
            total_us: u64::MAX,
            downstream_us: Some(u64::MAX),
            request_bytes: u64::MAX,
            response_bytes: u64::MAX,
            repairs: u32::MAX,
            cut: true,
            ..Record::new(
                u64::MAX,
                execution(1),
                &asker,
                Transport::StreamableHttp,
                CallType::SchemaDiscovery,
                WORD,
            )
        };
        let (mut out, value) = line_of(&record, 1000);
        assert!(value["tenant"].as_str().unwrap().ends_with('…'), "{value}");
        line::mark_payloads_left_out(&mut out);
        assert!(out.len() <= RECORD_BYTES_MAX, "{piece:?}: {}", out.len());
        serde_json::from_slice::<Value>(&out).unwrap();
    }
}

#[test]
fn payloads_stand_as_they_are_or_say_that_they_were_cut() {
    let with = |payload: &[u8]| {
        let record = Record { arguments: Some(Payload(payload)), ..record(1) };
        line_of(&record, 100).1
    };
    assert_eq!(with(b"{\"a\":[1.50,\n\r\n \"x\\ny\"]}")["arguments"]["a"][1], "x\ny");
    for (payload, text) in [
        (&b"not json"[..], "not json"),
        (b"{\"a\":1", "{\"a\":1"),
        (b"", ""),
        (b"ab\xffcd", "ab"),
        (b"{\"a\":1,\"a\":2}", "{\"a\":1,\"a\":2}"),
    ] {
        let value = with(payload);
        assert_eq!(value["arguments_cut"]["text"], text);
        assert_eq!(value["arguments_cut"]["bytes"], payload.len());
        assert!(value.get("arguments").is_none());
    }
    let long = format!("[{}]", "\"€\\\\\",".repeat(500));
    let value = with(long.as_bytes());
    let cut = &value["arguments_cut"];
    assert_eq!(cut["bytes"], long.len());
    let text = cut["text"].as_str().unwrap();
    assert!(long.starts_with(text) && (40..=100).contains(&text.len()), "{text}");
}

proptest! {
    #[test]
    fn whatever_a_record_holds_is_read_back(
        tenant: String,
        caller in "\\PC{0,300}",
        tool in option::of(any::<String>()),
        correlation in option::of("[\\x00-\\x7f]{0,200}"),
        times: (u64, u64),
        payload: Vec<u8>,
        json in crate::json::any_json(),
        limit in 16usize..2000,
    ) {
        let json = json.to_string();
        let asker = Asker::new(&tenant, "support-desk", &caller, None);
        let record = Record {
            asker: &asker,
            subject: None,
            asked: tool.as_deref(),
            correlation: correlation.as_deref(),
            total_us: times.1,
            arguments: Some(Payload(&payload)),
            result: Some(Payload(json.as_bytes())),
            ..record(1)
        };
        let record = Record { time_ms: times.0, ..record };
        let mut out = Vec::new();
        write_record(&mut out, &record, &mut Run::default(), limit);
        prop_assert_eq!(memchr::memchr_iter(b'\n', &out).count(), 1);
        prop_assert!(out.len() <= RECORD_BYTES_MAX + payload_bytes_bound(&record, limit));
        let entry = Entry::read(&out).unwrap();
        prop_assert_eq!(entry.time, times.0);
        prop_assert_eq!(entry.total_us, Some(times.1));
        for (found, given) in [
            (entry.tenant, Some(tenant.as_str())),
            (entry.caller, Some(caller.as_str())),
            (entry.tool, tool.as_deref()),
            (entry.correlation_id, correlation.as_deref()),
        ] {
            match (found.as_deref(), given) {
                (Some(found), Some(given)) => {
                    let start = found.strip_suffix('…').unwrap_or(found);
                    prop_assert!(found == given || given.starts_with(start));
                    prop_assert!(found == given || given.len() > 20);
                }
                (found, given) => prop_assert_eq!(found, given),
            }
        }
    }
}
