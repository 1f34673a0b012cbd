//! Lines that refer back: what a line has in common with the one before it is not written again.
//!
//! Under load a core ends many calls within a millisecond, mostly of few callers and few tools. Their
//! lines are one run, which stands in a segment as the core has written it. Within a run a line says
//! `"same_asker":true` where who asks and how (tenant, client application, caller, trust, transport,
//! revision) is as in the line before, and `"same_tool":true` where the tool and what is said about
//! it (call type, method, tool to schema hash, side effect) is.
//!
//! Invariants worth naming:
//! - The first line of a run has everything, and nothing refers to what a core did not write right
//!   before it: events of the log and lines of the chain end a run for who reads.
//! - Members that are left out stand where the line says that they are. Read back, a line is byte for
//!   byte what it would be had it been written alone.
//! - What nobody has said before is not made up: a line that refers back to nothing stays as it is.

use std::ops::Range;

use super::line::{ALLOWED_MEMBER, OK_MEMBER};
use super::record::{CallType, Record, Transport};

/// Stands for the members of who asks and how.
pub(super) const SAME_ASKER: &[u8] = b",\"same_asker\":true";
/// Stands for the members of the tool.
pub(super) const SAME_TOOL: &[u8] = b",\"same_tool\":true";

/// What the last line of the run that is being written says, and where in the buffer. No line of it
/// goes before the run does.
#[derive(Debug, Default)]
pub(super) struct Run {
    asker: Option<AskerSaid>,
    tool: Option<ToolSaid>,
}

#[derive(Debug)]
struct AskerSaid {
    members: Range<usize>,
    transport: Transport,
    revision: Option<&'static str>,
}

#[derive(Debug)]
struct ToolSaid {
    members: Range<usize>,
    call_type: CallType,
    method: &'static str,
    side_effect: Option<&'static str>,
}

impl Run {
    /// Whether the last line in `lines` says the same about who asks, and how.
    ///
    /// Texts are compared, not who holds them: each connection of a caller has its own.
    #[inline]
    pub(super) fn has_asker_of(&self, record: &Record<'_>, lines: &[u8]) -> bool {
        self.asker.as_ref().is_some_and(|said| {
            said.transport == record.transport
                && said.revision == record.revision
                && lines.get(said.members.clone()) == Some(record.asker.members())
        })
    }

    /// The line that is being written has the members of its asker there.
    #[inline]
    pub(super) fn says_asker(&mut self, record: &Record<'_>, members: Range<usize>) {
        let Record { transport, revision, .. } = *record;
        self.asker = Some(AskerSaid { members, transport, revision });
    }

    /// Whether the last line in `lines` is of the same tool. What is of none is written out.
    #[inline]
    pub(super) fn has_tool_of(&self, record: &Record<'_>, lines: &[u8]) -> bool {
        self.tool.as_ref().zip(record.subject).is_some_and(|(said, subject)| {
            said.call_type == record.call_type
                && said.method == record.method
                && said.side_effect == record.side_effect
                && lines.get(said.members.clone()) == Some(subject.members())
        })
    }

    /// The line that is being written has the members of its tool there; none: it is of no tool.
    #[inline]
    pub(super) fn says_tool(&mut self, record: &Record<'_>, members: Option<Range<usize>>) {
        let Record { call_type, method, side_effect, .. } = *record;
        self.tool = members.map(|members| ToolSaid { members, call_type, method, side_effect });
    }
}

/// Gives back whole lines. It is to be shown the lines of a segment in their order, from one that
/// stands alone on.
#[derive(Debug, Default)]
pub(super) struct Whole {
    line: Vec<u8>,
    asker: Group,
    tool: Group,
}

impl Whole {
    /// Takes the next entry, without its newline. Whether it stands alone: reading may begin there.
    pub(super) fn take(&mut self, line: &[u8]) -> bool {
        let out = &mut self.line;
        out.clear();
        self.asker.begin();
        self.tool.begin();
        let (mut has_decision, mut has_outcome) = (false, false);
        let mut stands_alone = true;
        let mut at = 0;
        while let Some((name, end)) = member(line, at) {
            let bytes = &line[at..end];
            match name {
                b"tenant"
                | b"client_application"
                | b"caller"
                | b"trust"
                | b"transport"
                | b"revision" => self.asker.say(out, bytes),
                b"call_type" | b"method" | b"tool" | b"toolset" | b"source_name"
                | b"schema_hash" | b"side_effect" => self.tool.say(out, bytes),
                b"same_asker" if bytes == SAME_ASKER => {
                    stands_alone = false;
                    self.asker.say_again(out, bytes);
                }
                b"same_tool" if bytes == SAME_TOOL => {
                    stands_alone = false;
                    self.tool.say_again(out, bytes);
                }
                b"time" | b"execution_id" | b"correlation_id" | b"session" => {
                    out.extend_from_slice(bytes);
                }
                b"decision" => {
                    has_decision = true;
                    out.extend_from_slice(bytes);
                }
                b"reason" | b"observed" | b"outcome" | b"downstream_status" | b"total_us" => {
                    if !std::mem::replace(&mut has_decision, true) {
                        out.extend_from_slice(ALLOWED_MEMBER);
                    }
                    if matches!(name, b"downstream_status" | b"total_us") {
                        if !has_outcome {
                            out.extend_from_slice(OK_MEMBER);
                        }
                        break;
                    }
                    has_outcome |= name == b"outcome";
                    out.extend_from_slice(bytes);
                }
                // An event, or nothing of ours.
                _ => break,
            }
            at = end;
        }
        out.extend_from_slice(&line[at..]);
        self.asker.end(out);
        self.tool.end(out);
        stands_alone
    }

    /// What was taken last, whole.
    pub(super) fn line(&self) -> &[u8] {
        &self.line
    }

    /// Something else stood between: nothing refers to what was before it.
    pub(super) fn forget(&mut self) {
        self.asker.members.clear();
        self.tool.members.clear();
    }
}

/// Members that stand together and are left out together.
#[derive(Debug, Default)]
struct Group {
    /// As the last line has them; empty: it has none.
    members: Vec<u8>,
    /// Where the line that is being read has them itself.
    here: Range<usize>,
    is_repeated: bool,
}

impl Group {
    fn begin(&mut self) {
        self.here = 0..0;
        self.is_repeated = false;
    }

    fn say(&mut self, out: &mut Vec<u8>, member: &[u8]) {
        if self.here.end != out.len() {
            self.here.start = out.len();
        }
        out.extend_from_slice(member);
        self.here.end = out.len();
    }

    fn say_again(&mut self, out: &mut Vec<u8>, reference: &[u8]) {
        // Once: a line made by hand must not grow by saying it again and again.
        if self.members.is_empty() || self.is_repeated {
            out.extend_from_slice(reference);
        } else {
            out.extend_from_slice(&self.members);
            self.is_repeated = true;
        }
    }

    fn end(&mut self, out: &[u8]) {
        if !self.is_repeated {
            self.members.clear();
            self.members.extend_from_slice(out.get(self.here.clone()).unwrap_or_default());
        }
    }
}

/// The member of an object that begins at `begin` with its brace or comma: its name, and where it
/// ends. `None` where there is none, and where its value is a list or an object: such come last.
fn member(line: &[u8], begin: usize) -> Option<(&[u8], usize)> {
    let name_begin = begin + 2;
    if line.get(begin + 1) != Some(&b'"') {
        return None;
    }
    let name = line.get(name_begin..)?;
    let name = &name[..memchr::memchr(b'"', name)?];
    let colon = name_begin + name.len() + 1;
    if line.get(colon) != Some(&b':') {
        return None;
    }
    let value = colon + 1;
    let end = match line.get(value)? {
        b'"' => string_end(line, value + 1)?,
        b'{' | b'[' => return None,
        _ => value + memchr::memchr2(b',', b'}', &line[value..])?,
    };
    matches!(line.get(end), Some(b',' | b'}')).then_some((name, end))
}

/// Behind the closing quote of a string whose inside begins at `at`.
fn string_end(line: &[u8], mut at: usize) -> Option<usize> {
    loop {
        let found = at + memchr::memchr2(b'"', b'\\', line.get(at..)?)?;
        if line[found] == b'"' {
            return Some(found + 1);
        }
        at = found + 2;
    }
}
