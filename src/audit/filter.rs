//! A record as it is read back, and which records somebody wants to see.

use std::borrow::Cow;

use memchr::memmem::Finder;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::record::{ALLOWED, CallType, Decision};
use super::resume::record_time;
use crate::json;

type Text<'a> = Option<Cow<'a, str>>;

/// One line of the log that is not of its chain: a record, or an event of the log itself.
#[derive(Debug, Deserialize)]
#[expect(missing_docs, reason = "the fields of `Record`, by the names they have in the log")]
pub struct Entry<'a> {
    pub time: u64,
    /// What happened to the log: `started`, `stopped`, `dropped`, `recovered`, `removed`,
    /// `found_shortened`, `found_headless`.
    #[serde(borrow)]
    pub event: Text<'a>,
    /// How many records are missing, of an event `dropped`.
    pub dropped: Option<u64>,
    #[serde(borrow)]
    pub execution_id: Text<'a>,
    #[serde(borrow)]
    pub correlation_id: Text<'a>,
    #[serde(borrow)]
    pub tenant: Text<'a>,
    #[serde(borrow)]
    pub client_application: Text<'a>,
    #[serde(borrow)]
    pub caller: Text<'a>,
    #[serde(borrow)]
    pub trust: Text<'a>,
    #[serde(borrow)]
    pub transport: Text<'a>,
    #[serde(borrow)]
    pub revision: Text<'a>,
    #[serde(borrow)]
    pub session: Text<'a>,
    #[serde(borrow)]
    pub call_type: Text<'a>,
    #[serde(borrow)]
    pub method: Text<'a>,
    #[serde(borrow)]
    pub tool: Text<'a>,
    #[serde(borrow)]
    pub toolset: Text<'a>,
    #[serde(borrow)]
    pub source_name: Text<'a>,
    #[serde(borrow)]
    pub schema_hash: Text<'a>,
    #[serde(borrow)]
    pub side_effect: Text<'a>,
    #[serde(borrow)]
    pub decision: Text<'a>,
    #[serde(borrow)]
    pub reason: Text<'a>,
    #[serde(borrow)]
    pub observed: Text<'a>,
    #[serde(borrow)]
    pub outcome: Text<'a>,
    pub downstream_status: Option<u16>,
    pub total_us: Option<u64>,
    pub downstream_us: Option<u64>,
    pub request_bytes: Option<u64>,
    pub response_bytes: Option<u64>,
    pub repairs: Option<u32>,
    pub cut: Option<bool>,
    #[serde(borrow)]
    pub arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    pub result: Option<&'a RawValue>,
    #[serde(borrow)]
    pub listed: Option<&'a RawValue>,
    /// Instead of `arguments` where they are longer than a payload may be.
    #[serde(borrow)]
    pub arguments_cut: Option<&'a RawValue>,
    #[serde(borrow)]
    pub result_cut: Option<&'a RawValue>,
    #[serde(borrow)]
    pub listed_cut: Option<&'a RawValue>,
}

impl<'a> Entry<'a> {
    /// Reads a line, whole as [`super::Reader::line`] gives it; `None` if it is neither record nor
    /// event. The reason and the method, which lines leave out where they go without saying, are
    /// said here.
    pub fn read(line: &'a [u8]) -> Option<Self> {
        let mut entry: Self = serde_json::from_slice(line).ok()?;
        let (reason, method) = entry.unsaid();
        entry.reason = entry.reason.or(reason.map(Cow::Borrowed));
        entry.method = entry.method.or(method.map(Cow::Borrowed));
        Some(entry)
    }

    /// The line of an entry, whole as [`super::Reader::line`] gives it, with the reason and the method
    /// said where they go without saying: for readers who do not know.
    pub fn whole_line(line: &'a [u8]) -> Cow<'a, [u8]> {
        let unsaid =
            serde_json::from_slice(line).map_or((None, None), |entry: Self| entry.unsaid());
        let (Some(begin), (reason, method)) = (line.strip_suffix(b"}"), unsaid) else {
            return Cow::Borrowed(line);
        };
        let mut whole = Vec::new();
        for (name, value) in [("method", method), ("reason", reason)] {
            if let Some(value) = value {
                if whole.is_empty() {
                    whole.extend_from_slice(begin);
                }
                whole.push(b',');
                json::write_string(&mut whole, name);
                whole.push(b':');
                json::write_string(&mut whole, value);
            }
        }
        if whole.is_empty() {
            return Cow::Borrowed(line);
        }
        whole.push(b'}');
        Cow::Owned(whole)
    }

    /// Reason and method, where the line leaves them out because they go without saying.
    fn unsaid(&self) -> (Option<&'static str>, Option<&'static str>) {
        let is_allowed = self.decision.as_deref() == Some(Decision::Allowed.as_str());
        let call_type = self.call_type.as_deref().and_then(CallType::parse);
        (
            (is_allowed && self.reason.is_none()).then_some(ALLOWED),
            call_type.and_then(CallType::only_method).filter(|_| self.method.is_none()),
        )
    }
}

/// Which entries are wanted: those that have every value that is set here. Events have none of
/// the texts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Not before, in milliseconds since the Unix epoch.
    pub from_ms: Option<u64>,
    /// Before.
    pub to_ms: Option<u64>,
    /// The tenant.
    pub tenant: Option<String>,
    /// The client application.
    pub client_application: Option<String>,
    /// Who called.
    pub caller: Option<String>,
    /// The tool's exposed name, or the operation's own.
    pub tool: Option<String>,
    /// The kind of call.
    pub call_type: Option<String>,
    /// `allowed` or `denied`.
    pub decision: Option<String>,
    /// The reason's code, also of what a policy that only observes would have said.
    pub reason: Option<String>,
    /// The execution.
    pub execution_id: Option<String>,
    /// What the client called it.
    pub correlation_id: Option<String>,
}

impl Filter {
    /// Whether a whole line is wanted.
    fn takes(&self, line: &[u8]) -> bool {
        let time_ms = record_time(line);
        if self.from_ms.is_some_and(|from| time_ms < from)
            || self.to_ms.is_some_and(|to| time_ms >= to)
        {
            return false;
        }
        let is = |found: &Text<'_>, wanted: &Option<String>| {
            wanted.as_deref().is_none_or(|wanted| found.as_deref() == Some(wanted))
        };
        let texts = self.texts();
        if texts.iter().all(|(_, wanted)| wanted.is_none()) {
            return true;
        }
        Entry::read(line).is_some_and(|entry| {
            is(&entry.tenant, &self.tenant)
                && is(&entry.client_application, &self.client_application)
                && is(&entry.caller, &self.caller)
                && (is(&entry.tool, &self.tool) || is(&entry.source_name, &self.tool))
                && is(&entry.call_type, &self.call_type)
                && is(&entry.decision, &self.decision)
                && (is(&entry.reason, &self.reason) || is(&entry.observed, &self.reason))
                && is(&entry.execution_id, &self.execution_id)
                && is(&entry.correlation_id, &self.correlation_id)
        })
    }

    /// The texts by the names they have in the log; none where a value can stand in two places.
    fn texts(&self) -> [(&'static str, &Option<String>); 9] {
        [
            ("tenant", &self.tenant),
            ("client_application", &self.client_application),
            ("caller", &self.caller),
            ("", &self.tool),
            ("call_type", &self.call_type),
            ("decision", &self.decision),
            ("", &self.reason),
            ("execution_id", &self.execution_id),
            ("correlation_id", &self.correlation_id),
        ]
    }
}

/// A filter that has been made ready to look at many lines.
#[derive(Debug)]
pub(super) struct Sieve {
    filter: Filter,
    /// Bytes that every wanted line, made whole, has: most others need not be read for that.
    needles: Vec<Finder<'static>>,
}

impl Sieve {
    pub(super) fn new(filter: Filter) -> Self {
        let texts = filter.texts();
        let is_said = |wanted: &str| wanted != ALLOWED;
        let needles = texts.iter().filter_map(|(name, wanted)| {
            // As a decision it stands there, as a reason it may be left out.
            let wanted = wanted.as_deref().filter(|wanted| !name.is_empty() || is_said(wanted))?;
            let mut needle = Vec::new();
            if !name.is_empty() {
                json::write_string(&mut needle, name);
                needle.push(b':');
            }
            json::write_string(&mut needle, wanted);
            Some(Finder::new(&needle).into_owned())
        });
        let needles = needles.collect();
        Self { filter, needles }
    }

    pub(super) fn filter(&self) -> &Filter {
        &self.filter
    }

    pub(super) fn takes(&self, line: &[u8]) -> bool {
        self.needles.iter().all(|needle| needle.find(line).is_some()) && self.filter.takes(line)
    }
}
