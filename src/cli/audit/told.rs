//! How entries are told: as rows of a table, as lines, as CSV.

use std::fmt::Write as _;

use jiff::Timestamp;

use super::super::output::tame;
use crate::audit::Entry;

pub(super) const HEADER: [&str; 9] =
    ["TIME", "CLIENT", "CALLER", "TYPE", "TOOL", "DECISION", "REASON", "OUTCOME", "TOTAL"];

pub(super) fn row(entry: &Entry<'_>) -> Vec<String> {
    let text = |text: &Option<std::borrow::Cow<'_, str>>| tame(text.as_deref().unwrap_or("-"));
    if let Some(event) = entry.event.as_deref() {
        let count = entry.dropped.map(|count| format!(" ({count})")).unwrap_or_default();
        let mut row = vec![time_text(entry.time), "-".into(), "-".into()];
        row.push(format!("log {}{count}", tame(event)));
        row.resize(HEADER.len(), "-".to_owned());
        return row;
    }
    let mut reason = text(&entry.reason);
    if let Some(observed) = entry.observed.as_deref() {
        // Writing into a String does not fail.
        let _ = write!(reason, " ({})", tame(observed));
    }
    let named = if entry.tool.is_some() { &entry.tool } else { &entry.method };
    let outcome = match entry.downstream_status {
        Some(status) => format!("{} {status}", text(&entry.outcome)),
        None => text(&entry.outcome),
    };
    vec![
        time_text(entry.time),
        match entry.client_application.as_deref() {
            // Concerns the whole tenant.
            None | Some("") => text(&entry.tenant),
            Some(client) => format!("{}/{}", text(&entry.tenant), tame(client)),
        },
        text(&entry.caller),
        text(&entry.call_type),
        text(named),
        text(&entry.decision),
        reason,
        outcome,
        entry.total_us.map_or("-".to_owned(), milliseconds),
    ]
}

fn milliseconds(microseconds: u64) -> String {
    format!("{}.{:03} ms", microseconds / 1000, microseconds % 1000)
}

pub(super) fn time_text(time_ms: u64) -> String {
    i64::try_from(time_ms)
        .ok()
        .and_then(|time_ms| Timestamp::from_millisecond(time_ms).ok())
        .map_or_else(|| time_ms.to_string(), |time| format!("{time:.3}"))
}

pub(super) const COLUMNS: [&str; 31] = [
    "time",
    "event",
    "dropped",
    "execution_id",
    "correlation_id",
    "tenant",
    "client_application",
    "caller",
    "trust",
    "transport",
    "revision",
    "session",
    "call_type",
    "method",
    "tool",
    "toolset",
    "source_name",
    "schema_hash",
    "side_effect",
    "decision",
    "reason",
    "observed",
    "outcome",
    "downstream_status",
    "total_us",
    "downstream_us",
    "request_bytes",
    "response_bytes",
    "repairs",
    "cut",
    "payloads",
];

/// One entry as a line of CSV (RFC 4180).
pub(super) fn csv(entry: &Entry<'_>) -> String {
    let mut line = time_text(entry.time);
    let number = |line: &mut String, number: Option<u64>| {
        line.push(',');
        if let Some(number) = number {
            let _ = write!(line, "{number}");
        }
    };
    csv_text(&mut line, entry.event.as_deref());
    number(&mut line, entry.dropped);
    for text in [
        &entry.execution_id,
        &entry.correlation_id,
        &entry.tenant,
        &entry.client_application,
        &entry.caller,
        &entry.trust,
        &entry.transport,
        &entry.revision,
        &entry.session,
        &entry.call_type,
        &entry.method,
        &entry.tool,
        &entry.toolset,
        &entry.source_name,
        &entry.schema_hash,
        &entry.side_effect,
        &entry.decision,
        &entry.reason,
        &entry.observed,
        &entry.outcome,
    ] {
        csv_text(&mut line, text.as_deref());
    }
    number(&mut line, entry.downstream_status.map(u64::from));
    number(&mut line, entry.total_us);
    number(&mut line, entry.downstream_us);
    number(&mut line, entry.request_bytes);
    number(&mut line, entry.response_bytes);
    number(&mut line, entry.repairs.map(u64::from));
    csv_text(&mut line, entry.cut.map(|cut| if cut { "true" } else { "false" }));
    let payloads = [
        ("arguments", entry.arguments),
        ("arguments_cut", entry.arguments_cut),
        ("result", entry.result),
        ("result_cut", entry.result_cut),
        ("listed", entry.listed),
        ("listed_cut", entry.listed_cut),
    ];
    let payloads: Vec<String> = payloads
        .into_iter()
        .filter_map(|(name, json)| Some(format!("\"{name}\":{}", json?.get())))
        .collect();
    let payloads = (!payloads.is_empty()).then(|| format!("{{{}}}", payloads.join(",")));
    csv_text(&mut line, payloads.as_deref());
    line
}

/// Spreadsheets take a text that begins like a formula for one, unless a quote stands before it.
fn csv_text(line: &mut String, text: Option<&str>) {
    line.push(',');
    let Some(text) = text else { return };
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    line.push('"');
    if is_formula {
        line.push('\'');
    }
    line.push_str(&text.replace('"', "\"\""));
    line.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_concerns_a_whole_tenant_names_no_client_application() {
        for (members, told) in [
            (r#""tenant":"acme","client_application":"desk""#, "acme/desk"),
            (r#""tenant":"acme","client_application":"""#, "acme"),
            (r#""tenant":"acme""#, "acme"),
        ] {
            let line = format!("{{\"time\":1796000000000,{members}}}");
            assert_eq!(row(&Entry::read(line.as_bytes()).unwrap())[1], told);
        }
    }

    #[test]
    fn nothing_in_an_entry_is_obeyed_by_a_terminal_or_a_spreadsheet() {
        let line = "{\"time\":1796000000000,\"tenant\":\"a\\u001b[2J\",\"caller\":\"x\u{9b}y\",\
                    \"tool\":\"=HYPERLINK(\\\"x\\\")\",\"arguments\":{\"a\":\"b\"}}";
        let entry = Entry::read(line.as_bytes()).unwrap();
        let told = row(&entry).join("  ");
        assert!(!told.chars().any(char::is_control), "{told}");
        assert!(told.contains("a·[2J") && told.contains("x·y"), "{told}");
        assert!(told.starts_with("2026-11-30T"), "{told}");
        let csv = csv(&entry);
        assert!(csv.contains(",\"'=HYPERLINK(\"\"x\"\")\","), "{csv}");
        assert!(csv.ends_with(",\"{\"\"arguments\"\":{\"\"a\"\":\"\"b\"\"}}\""), "{csv}");
        let outside = csv.split('"').step_by(2).map(|part| part.matches(',').count());
        assert_eq!(outside.sum::<usize>(), COLUMNS.len() - 1);
    }
}
