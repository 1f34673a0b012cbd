//! Records as lines of JSON, written by hand into a buffer that has room for them.
//!
//! Invariants worth naming:
//! - A line has exactly one newline, its last byte, whatever the record holds.
//! - A line without payloads has at most [`RECORD_BYTES_MAX`] bytes, whatever the record holds.
//! - What was cut says so: texts end in `…`, payloads stand under another name (`arguments_cut`)
//!   with their full size.
//!
//! - What goes without saying is left out: that a call was allowed and went well, which [`Whole`] says
//!   where lines are read; the reason of what nothing spoke against and the method of a kind of call
//!   that has but one, which [`super::Entry`] says. What the line before has said is left out as well:
//!   see [`super::repeat`].
//!
//! The first member of a record is its time; the lines of the chain begin otherwise.
//!
//! [`Whole`]: super::repeat::Whole

use super::record::{ALLOWED, Decision, Outcome, Payload, Record};
use super::repeat::{Run, SAME_ASKER, SAME_TOOL};
use crate::json;

/// The longest line of a record without payloads.
pub(super) const RECORD_BYTES_MAX: usize = 3584;

/// What every record's line begins with.
pub(super) const RECORD_PREFIX: &[u8] = b"{\"time\":";

/// What records leave out of calls that were allowed.
pub(super) const ALLOWED_MEMBER: &[u8] = b",\"decision\":\"allowed\"";
/// What records leave out of calls that went well.
pub(super) const OK_MEMBER: &[u8] = b",\"outcome\":\"ok\"";

/// Bytes that names and ids may take in a line, without quotes; the catalog's have at most 64,
/// correlation ids 128.
pub(super) const NAME_BYTES_MAX: usize = 132;
/// Bytes that the text naming a caller, or an operation, may take in a line.
pub(super) const TEXT_BYTES_MAX: usize = 260;
/// What is appended to a text that was cut.
const CUT_MARK: &str = "…";

/// How many bytes the payloads of `record` take at most.
pub(super) fn payload_bytes_bound(record: &Record<'_>, payload_bytes_max: usize) -> usize {
    /// Names of members and sizes around it.
    const AROUND: usize = 64;
    // Escapes make at most six bytes of one.
    let bound = |payload: Option<Payload<'_>>| {
        payload.map_or(0, |payload| AROUND + payload_bytes_max.min(6 * payload.0.len()))
    };
    bound(record.arguments) + bound(record.result) + bound(record.listed)
}

/// Appends the line of `record`, behind the others of its `run` in `out`.
pub(super) fn write_record(
    out: &mut Vec<u8>,
    record: &Record<'_>,
    run: &mut Run,
    payload_bytes_max: usize,
) {
    number(out, RECORD_PREFIX, record.time_ms);
    out.extend_from_slice(b",\"execution_id\":\"");
    out.extend_from_slice(&record.execution.to_text());
    out.push(b'"');
    optional(out, b",\"correlation_id\":", record.correlation, NAME_BYTES_MAX);
    asker(out, record, run);
    if let Some(session) = record.session {
        out.extend_from_slice(b",\"session\":\"");
        write_hex(out, session);
        out.push(b'"');
    }
    tool(out, record, run);
    if record.decision != Decision::Allowed {
        word(out, b",\"decision\":\"", record.decision.as_str());
    }
    if record.decision != Decision::Allowed || record.reason != ALLOWED {
        word(out, b",\"reason\":\"", record.reason);
    }
    optional_word(out, b",\"observed\":\"", record.observed);
    if record.outcome != Outcome::Ok {
        word(out, b",\"outcome\":\"", record.outcome.as_str());
    }
    if let Some(status) = record.downstream_status {
        number(out, b",\"downstream_status\":", u64::from(status));
    }
    number(out, b",\"total_us\":", record.total_us);
    if let Some(microseconds) = record.downstream_us {
        number(out, b",\"downstream_us\":", microseconds);
    }
    number(out, b",\"request_bytes\":", record.request_bytes);
    number(out, b",\"response_bytes\":", record.response_bytes);
    if record.repairs > 0 {
        number(out, b",\"repairs\":", u64::from(record.repairs));
    }
    if record.cut {
        out.extend_from_slice(b",\"cut\":true");
    }
    if record.has_payloads() {
        payload(out, "arguments", record.arguments, payload_bytes_max);
        payload(out, "result", record.result, payload_bytes_max);
        payload(out, "listed", record.listed, payload_bytes_max);
    }
    out.extend_from_slice(b"}\n");
}

/// Who asks, and how.
#[inline]
fn asker(out: &mut Vec<u8>, record: &Record<'_>, run: &mut Run) {
    if run.has_asker_of(record, out) {
        out.extend_from_slice(SAME_ASKER);
        return;
    }
    let begin = out.len();
    out.extend_from_slice(record.asker.members());
    run.says_asker(record, begin..out.len());
    word(out, b",\"transport\":\"", record.transport.as_str());
    optional_word(out, b",\"revision\":\"", record.revision);
}

/// What for: the kind of call, the tool, what it does to the world.
#[inline]
fn tool(out: &mut Vec<u8>, record: &Record<'_>, run: &mut Run) {
    if run.has_tool_of(record, out) {
        out.extend_from_slice(SAME_TOOL);
        return;
    }
    word(out, b",\"call_type\":\"", record.call_type.as_str());
    if record.call_type.only_method() != Some(record.method) {
        word(out, b",\"method\":\"", record.method);
    }
    let begin = out.len();
    let members = record.subject.map(|subject| {
        out.extend_from_slice(subject.members());
        begin..out.len()
    });
    if members.is_none() {
        optional(out, b",\"tool\":", record.asked, TEXT_BYTES_MAX);
    }
    run.says_tool(record, members);
    optional_word(out, b",\"side_effect\":\"", record.side_effect);
}

/// Ends a line without its payloads, and says that they are missing.
pub(super) fn mark_payloads_left_out(out: &mut Vec<u8>) {
    if out.ends_with(b"}\n") {
        out.truncate(out.len() - 2);
        out.extend_from_slice(b",\"payloads_left_out\":true}\n");
    }
}

/// What all lines about the log itself begin with.
fn begin_event(out: &mut Vec<u8>, time_ms: u64, event: &'static str) {
    out.extend_from_slice(RECORD_PREFIX);
    write_number(out, time_ms);
    word(out, b",\"event\":\"", event);
}

/// Records that are missing here.
pub(super) fn write_dropped(out: &mut Vec<u8>, time_ms: u64, core: usize, dropped: u64) {
    begin_event(out, time_ms, "dropped");
    number(out, b",\"core\":", core as u64);
    number(out, b",\"dropped\":", dropped);
    out.extend_from_slice(b"}\n");
}

/// The log was opened.
pub(super) fn write_started(out: &mut Vec<u8>, time_ms: u64) {
    begin_event(out, time_ms, "started");
    word(out, b",\"version\":\"", env!("CARGO_PKG_VERSION"));
    out.extend_from_slice(b"}\n");
}

/// The log was closed in order.
pub(super) fn write_stopped(out: &mut Vec<u8>, time_ms: u64) {
    begin_event(out, time_ms, "stopped");
    out.extend_from_slice(b"}\n");
}

/// What a crash left was taken up again: so many whole lines were kept, so many bytes cut off.
pub(super) fn write_recovered(out: &mut Vec<u8>, time_ms: u64, kept_lines: u64, cut_bytes: u64) {
    begin_event(out, time_ms, "recovered");
    number(out, b",\"kept_lines\":", kept_lines);
    number(out, b",\"cut_bytes\":", cut_bytes);
    out.extend_from_slice(b"}\n");
}

/// The log ended before a checkpoint that is known to have been in it.
pub(super) fn write_missing(out: &mut Vec<u8>, time_ms: u64, found_block: u64, known_block: u64) {
    begin_event(out, time_ms, "found_shortened");
    number(out, b",\"found_block\":", found_block);
    number(out, b",\"known_block\":", known_block);
    out.extend_from_slice(b"}\n");
}

/// The head was not there, or not ours: there may have been more.
pub(super) fn write_headless(out: &mut Vec<u8>, time_ms: u64, found_block: u64) {
    begin_event(out, time_ms, "found_headless");
    number(out, b",\"found_block\":", found_block);
    out.extend_from_slice(b"}\n");
}

/// Old segments were deleted.
pub(super) fn write_removed(out: &mut Vec<u8>, time_ms: u64, segments: u64, through_block: u64) {
    begin_event(out, time_ms, "removed");
    number(out, b",\"segments\":", segments);
    number(out, b",\"through_block\":", through_block);
    out.extend_from_slice(b"}\n");
}

#[inline]
pub(super) fn write_number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

pub(super) fn write_hex<const BYTES: usize>(out: &mut Vec<u8>, bytes: &[u8; BYTES]) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut text = [[0; 2]; BYTES];
    for (pair, byte) in text.iter_mut().zip(bytes) {
        *pair = [HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]];
    }
    out.extend_from_slice(text.as_flattened());
}

#[inline]
fn number(out: &mut Vec<u8>, name: &[u8], value: u64) {
    out.extend_from_slice(name);
    write_number(out, value);
}

/// `name` includes the opening quote. Only for words of this product, which need no escapes and are
/// short; what else there might be is left out.
#[inline]
fn word(out: &mut Vec<u8>, name: &[u8], word: &'static str) {
    out.extend_from_slice(name);
    debug_assert!(is_word(word), "{word:?}");
    out.extend_from_slice(
        word.get(..word.len().min(NAME_BYTES_MAX)).unwrap_or_default().as_bytes(),
    );
    out.push(b'"');
}

fn is_word(word: &str) -> bool {
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\';
    word.len() <= NAME_BYTES_MAX && word.bytes().all(is_plain)
}

#[inline]
fn optional_word(out: &mut Vec<u8>, name: &[u8], value: Option<&'static str>) {
    if let Some(value) = value {
        word(out, name, value);
    }
}

#[inline]
pub(super) fn text(out: &mut Vec<u8>, name: &[u8], text: &str, bytes_max: usize) {
    out.extend_from_slice(name);
    write_bounded(out, text, bytes_max);
}

#[inline]
pub(super) fn optional(out: &mut Vec<u8>, name: &[u8], value: Option<&str>, bytes_max: usize) {
    if let Some(value) = value {
        text(out, name, value, bytes_max);
    }
}

/// Appends `text` as a JSON string whose inside has at most `bytes_max` bytes, then cut.
fn write_bounded(out: &mut Vec<u8>, text: &str, bytes_max: usize) {
    if text.len() <= bytes_max {
        let begin = out.len();
        json::write_string(out, text);
        if out.len() - begin <= bytes_max + 2 {
            return;
        }
        // Its escapes are too long.
        out.truncate(begin);
    }
    out.push(b'"');
    write_prefix(out, text, bytes_max - CUT_MARK.len());
    out.extend_from_slice(CUT_MARK.as_bytes());
    out.push(b'"');
}

/// Appends as much of `text`, escaped, as fits in `bytes_max`: piece by piece, the last piece
/// character by character.
fn write_prefix(out: &mut Vec<u8>, text: &str, bytes_max: usize) {
    let mut rest = text;
    let mut left = bytes_max;
    let mut piece_bytes = 64;
    while let Some(first) = rest.chars().next() {
        let end = rest.floor_char_boundary(piece_bytes).max(first.len_utf8());
        let (piece, after) = rest.split_at(end);
        let begin = out.len();
        json::write_string(out, piece);
        let length = out.len() - begin - 2;
        if length > left {
            out.truncate(begin);
            if piece_bytes == 1 {
                return;
            }
            piece_bytes = 1;
            continue;
        }
        // Of the quoted piece only the inside stays.
        out.pop();
        out.remove(begin);
        left -= length;
        rest = after;
    }
}

fn payload(out: &mut Vec<u8>, name: &str, payload: Option<Payload<'_>>, bytes_max: usize) {
    let Some(Payload(bytes)) = payload else { return };
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    if bytes.len() <= bytes_max
        && let Ok(checked) = json::guard(bytes)
    {
        out.extend_from_slice(b"\":");
        write_on_one_line(out, checked.text().as_bytes());
        return;
    }
    // The longest prefix that can be used; a character cut in half is no reason to lose the rest.
    let prefix = &bytes[..bytes.len().min(bytes_max)];
    let prefix = match std::str::from_utf8(prefix) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&prefix[..error.valid_up_to()]).unwrap_or_default(),
    };
    out.extend_from_slice(b"_cut\":{\"bytes\":");
    write_number(out, bytes.len() as u64);
    out.extend_from_slice(b",\"text\":\"");
    write_prefix(out, prefix, bytes_max);
    out.extend_from_slice(b"\"}");
}

/// Newlines of checked JSON stand between its tokens only, where a blank means the same.
fn write_on_one_line(out: &mut Vec<u8>, json: &[u8]) {
    let mut written = 0;
    for at in memchr::memchr2_iter(b'\n', b'\r', json) {
        out.extend_from_slice(&json[written..at]);
        out.push(b' ');
        written = at + 1;
    }
    out.extend_from_slice(&json[written..]);
}
