//! `ringway audit`: reads and checks the audit log, from its files.
//!
//! No running server is needed, and none is disturbed. Whoever runs this must be able to read the
//! data directory: the server's user, or root.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Subcommand, ValueEnum};
use jiff::{Timestamp, civil, tz::TimeZone};

use super::{CommandError, SERVICE_SETTINGS, output, quickstart};
use crate::{
    audit::{self, CallType, Decision, Entry, Filter, Reader, Verified},
    settings::{self, Settings},
};

/// How often `tail --follow` looks for more.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Entries of a table that are gathered to find out how wide its columns are.
const TABLE_PAGE: usize = 1000;

/// Arguments of `ringway audit`.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: AuditCommand,
}

#[derive(Debug, Subcommand)]
enum AuditCommand {
    /// Check that nothing in the log was changed, removed or inserted
    Verify(VerifyArguments),
    /// Show the newest entries
    Tail(TailArguments),
    /// Find entries
    Query(QueryArguments),
    /// Write entries to a file or to standard output
    Export(ExportArguments),
}

/// Where the log is.
#[derive(Debug, clap::Args)]
struct LogArguments {
    /// Directory of the log [default: `audit` in the data directory of the settings, else of
    /// quickstart]
    #[arg(long, value_name = "DIRECTORY")]
    log: Option<PathBuf>,
    /// Settings file that names the data directory
    #[arg(long, value_name = "FILE", env = "RINGWAY_CONFIG")]
    config: Option<PathBuf>,
}

/// Which entries.
#[derive(Debug, clap::Args)]
struct FilterArguments {
    /// Not older: a time as 2026-03-01T12:00:00Z, a day as 2026-03-01, or how long ago as 90m, 12h
    /// or 7d
    #[arg(long, value_name = "TIME", value_parser = moment)]
    since: Option<u64>,
    /// Older than this, written as for --since
    #[arg(long, value_name = "TIME", value_parser = moment)]
    until: Option<u64>,
    /// Of this tenant
    #[arg(long, value_name = "TENANT")]
    tenant: Option<String>,
    /// Of this client application, as CLIENT or TENANT/CLIENT
    #[arg(long, value_name = "CLIENT")]
    client: Option<String>,
    /// Of this caller, as the log names it
    #[arg(long, value_name = "CALLER")]
    caller: Option<String>,
    /// Of this tool, by the name clients see or by its own
    #[arg(long, value_name = "TOOL")]
    tool: Option<String>,
    /// Of this kind, as `tool_execution`
    #[arg(long = "type", value_name = "TYPE", value_parser = call_type)]
    call_type: Option<String>,
    /// `allowed` or `denied`
    #[arg(long, value_name = "DECISION", value_parser = decision)]
    decision: Option<String>,
    /// With this reason code, also where a policy only observed it
    #[arg(long, value_name = "CODE")]
    reason: Option<String>,
    /// The one with this execution id
    #[arg(long, value_name = "ID")]
    execution: Option<String>,
    /// With this correlation id of the client's
    #[arg(long, value_name = "ID")]
    correlation: Option<String>,
}

#[derive(Debug, clap::Args)]
struct VerifyArguments {
    #[command(flatten)]
    log: LogArguments,
    /// Public key to check with, kept elsewhere than the log [default: `signing.pub` beside it]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// A checkpoint kept elsewhere (a copy of `head`): the log must contain it
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct TailArguments {
    /// How many
    #[arg(short = 'n', long, default_value_t = 20, value_name = "COUNT")]
    lines: usize,
    /// Go on with what is written from now on
    #[arg(short, long)]
    follow: bool,
    /// Print the entries as they stand in the log
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    filter: FilterArguments,
    #[command(flatten)]
    log: LogArguments,
}

#[derive(Debug, clap::Args)]
struct QueryArguments {
    /// At most so many, the oldest first
    #[arg(long, default_value_t = 1000, value_name = "COUNT")]
    limit: u64,
    /// Print the entries as they stand in the log
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    filter: FilterArguments,
    #[command(flatten)]
    log: LogArguments,
}

#[derive(Debug, clap::Args)]
struct ExportArguments {
    /// Form of the entries
    #[arg(long, value_enum, default_value = "jsonl")]
    format: Format,
    /// File to write, which must not exist yet [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    filter: FilterArguments,
    #[command(flatten)]
    log: LogArguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// The lines of the log
    Jsonl,
    /// A table with a header, for spreadsheets
    Csv,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), CommandError> {
    match &arguments.command {
        AuditCommand::Verify(arguments) => verify(arguments),
        AuditCommand::Tail(arguments) => tail(arguments),
        AuditCommand::Query(arguments) => query(arguments),
        AuditCommand::Export(arguments) => export(arguments),
    }
}

impl LogArguments {
    /// The directory named on the command line, else that of the settings file (the named one, or
    /// the service's), else that of quickstart.
    fn directory(&self) -> Result<PathBuf, CommandError> {
        if let Some(directory) = &self.log {
            return Ok(directory.clone());
        }
        let service = Path::new(SERVICE_SETTINGS);
        let config = self.config.as_deref().or_else(|| service.exists().then_some(service));
        let settings = Settings::load(config, settings::environment().into_iter())?;
        let directory = settings.audit_directory();
        let fallback = quickstart::default_data_directory().map(|data| data.join("audit"));
        match fallback {
            Some(fallback) if self.config.is_none() && is_absent(&directory) => Ok(fallback),
            _ => Ok(directory),
        }
    }
}

/// Not there; one that may not be looked into is there.
fn is_absent(directory: &Path) -> bool {
    matches!(directory.try_exists(), Ok(false))
}

impl FilterArguments {
    fn filter(&self) -> Filter {
        let client = self.client.as_deref();
        let (tenant, client) = match client.and_then(|client| client.split_once('/')) {
            Some((tenant, client)) => (Some(tenant.to_owned()), Some(client.to_owned())),
            None => (None, client.map(str::to_owned)),
        };
        Filter {
            from_ms: self.since,
            to_ms: self.until,
            tenant: self.tenant.clone().or(tenant),
            client_application: client,
            caller: self.caller.clone(),
            tool: self.tool.clone(),
            call_type: self.call_type.clone(),
            decision: self.decision.clone(),
            reason: self.reason.clone(),
            execution_id: self.execution.clone(),
            correlation_id: self.correlation.clone(),
        }
    }
}

fn verify(arguments: &VerifyArguments) -> Result<(), CommandError> {
    let directory = arguments.log.directory()?;
    let found =
        audit::verify(&directory, arguments.key.as_deref(), arguments.checkpoint.as_deref())?;
    for segment in &found.segments {
        if segment.last_block < segment.first_block {
            output::line(format_args!("{}: only begun", segment.path.display()));
            continue;
        }
        output::line(format_args!(
            "{}: blocks {} to {}, {} records",
            segment.path.display(),
            segment.first_block,
            segment.last_block,
            segment.records
        ));
    }
    if let Some((segments, bytes, through, time_ms)) = found.removed {
        output::line(format_args!(
            "{segments} older segments ({bytes} bytes, through block {through}) were deleted by \
             the log itself, last on {}.",
            time_text(time_ms)
        ));
    }
    if let Some(fault) = &found.fault {
        return Err(CommandError::AuditFault(fault.to_string()));
    }
    conclude(&found);
    if arguments.key.is_none() {
        output::remark(
            "Checked with the key beside the log. Who could write there could have replaced both: \
             keep a copy of signing.pub elsewhere, and name it with --key.",
        );
    }
    Ok(())
}

fn conclude(found: &Verified) {
    let signed = match found.signed {
        Some((block, time_ms)) => format!("signed through block {block}, {}", time_text(time_ms)),
        None => "not signed yet".to_owned(),
    };
    output::line(format_args!("The log is whole: {} records, {signed}.", found.records));
    if found.unsigned_records > 0 {
        output::line(format_args!(
            "{} records are behind the last signature.",
            found.unsigned_records
        ));
    }
    if found.open_records > 0 || found.torn_bytes > 0 {
        output::line(format_args!(
            "Behind the last block are {} lines and {} bytes that no hash covers yet: they are \
             being written, or a crash left them for the next start.",
            found.open_records, found.torn_bytes
        ));
    }
    if found.head_is_missing {
        output::remark(
            "`head`, the copy of the last checkpoint, is not there: an end that was cut off would \
             not be noticed.",
        );
    }
}

fn tail(arguments: &TailArguments) -> Result<(), CommandError> {
    let directory = arguments.log.directory()?;
    let mut reader = Reader::open(&directory, arguments.filter.filter())?;
    reader.seek_last(arguments.lines)?;
    let mut out = Sink::standard();
    loop {
        while out.is_open && reader.advance()? {
            if arguments.json {
                out.line(reader.line());
            } else if let Some(entry) = Entry::read(reader.line()) {
                out.line(told(&entry).as_bytes());
            }
        }
        out.flush();
        if !arguments.follow || !out.is_open {
            return Ok(());
        }
        std::thread::park_timeout(LOOK_EVERY);
    }
}

fn query(arguments: &QueryArguments) -> Result<(), CommandError> {
    let directory = arguments.log.directory()?;
    let mut reader = Reader::open(&directory, arguments.filter.filter())?;
    let mut out = Sink::standard();
    let mut rows = Vec::new();
    let mut found = 0;
    let mut is_cut = false;
    while out.is_open && reader.advance()? {
        if found == arguments.limit {
            is_cut = true;
            break;
        }
        found += 1;
        if arguments.json {
            out.line(reader.line());
        } else if let Some(entry) = Entry::read(reader.line()) {
            rows.push(row(&entry));
            if rows.len() == TABLE_PAGE {
                output::table(&HEADER, &rows);
                rows.clear();
            }
        }
    }
    out.flush();
    if !rows.is_empty() {
        output::table(&HEADER, &rows);
    }
    if is_cut {
        output::remark(format_args!("{found} entries; there are more (--limit)."));
    } else if !arguments.json {
        output::remark(format_args!("{found} entries."));
    }
    Ok(())
}

fn export(arguments: &ExportArguments) -> Result<(), CommandError> {
    let directory = arguments.log.directory()?;
    let mut reader = Reader::open(&directory, arguments.filter.filter())?;
    let mut out = match &arguments.output {
        Some(path) => Sink::file(path)?,
        None => Sink::standard(),
    };
    if arguments.format == Format::Csv {
        out.line(COLUMNS.join(",").as_bytes());
    }
    let mut count = 0_u64;
    while out.is_open && reader.advance()? {
        match arguments.format {
            Format::Jsonl => out.line(reader.line()),
            Format::Csv => {
                let Some(entry) = Entry::read(reader.line()) else { continue };
                out.line(csv(&entry).as_bytes());
            }
        }
        count += 1;
    }
    out.finish(arguments.output.as_deref())?;
    if let Some(path) = &arguments.output {
        output::remark(format_args!("{count} entries in {}.", path.display()));
    }
    Ok(())
}

/// Where entries go. A reader that has seen enough closes it; a file that cannot be written is an
/// error.
struct Sink {
    out: BufWriter<Box<dyn Write>>,
    is_open: bool,
    error: Option<io::Error>,
    /// A terminal obeys control characters.
    is_terminal: bool,
}

impl Sink {
    fn standard() -> Self {
        let out = io::stdout();
        let is_terminal = out.is_terminal();
        Self { out: BufWriter::new(Box::new(out)), is_open: true, error: None, is_terminal }
    }

    fn file(path: &Path) -> Result<Self, CommandError> {
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::AlreadyExists => CommandError::Usage(format!(
                "{} exists already: name another file, or remove that one first",
                path.display()
            )),
            _ => CommandError::File { path: path.to_owned(), source },
        };
        let mut options = OpenOptions::new();
        let file: File =
            options.write(true).create_new(true).mode(0o600).open(path).map_err(failed)?;
        let out = BufWriter::new(Box::new(file) as Box<dyn Write>);
        Ok(Self { out, is_open: true, error: None, is_terminal: false })
    }

    fn line(&mut self, line: &[u8]) {
        let written = if self.is_terminal {
            writeln!(self.out, "{}", tame(&String::from_utf8_lossy(line)))
        } else {
            self.out.write_all(line).and_then(|()| self.out.write_all(b"\n"))
        };
        self.note(written);
    }

    fn flush(&mut self) {
        let flushed = self.out.flush();
        self.note(flushed);
    }

    fn note(&mut self, done: io::Result<()>) {
        if let Err(error) = done {
            self.is_open = false;
            self.error.get_or_insert(error);
        }
    }

    fn finish(mut self, path: Option<&Path>) -> Result<(), CommandError> {
        self.flush();
        match (self.error, path) {
            (Some(source), Some(path)) => Err(CommandError::File { path: path.to_owned(), source }),
            _ => Ok(()),
        }
    }
}

/// A text that nothing can hide in: control characters of both kinds are shown as `·`.
fn tame(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { '·' } else { letter }).collect()
}

const HEADER: [&str; 9] =
    ["TIME", "CLIENT", "CALLER", "TYPE", "TOOL", "DECISION", "REASON", "OUTCOME", "TOTAL"];

fn row(entry: &Entry<'_>) -> Vec<String> {
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
        format!("{}/{}", text(&entry.tenant), text(&entry.client_application)),
        text(&entry.caller),
        text(&entry.call_type),
        text(named),
        text(&entry.decision),
        reason,
        outcome,
        entry.total_us.map_or("-".to_owned(), milliseconds),
    ]
}

/// One entry as one line.
fn told(entry: &Entry<'_>) -> String {
    let cells = row(entry);
    cells.iter().filter(|cell| *cell != "-").map(String::as_str).collect::<Vec<_>>().join("  ")
}

fn milliseconds(microseconds: u64) -> String {
    format!("{}.{:03} ms", microseconds / 1000, microseconds % 1000)
}

fn time_text(time_ms: u64) -> String {
    i64::try_from(time_ms)
        .ok()
        .and_then(|time_ms| Timestamp::from_millisecond(time_ms).ok())
        .map_or_else(|| time_ms.to_string(), |time| format!("{time:.3}"))
}

const COLUMNS: [&str; 31] = [
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
fn csv(entry: &Entry<'_>) -> String {
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

fn call_type(text: &str) -> Result<String, String> {
    let known = || CallType::ALL.iter().map(|known| known.as_str()).collect::<Vec<_>>().join(", ");
    CallType::parse(text)
        .map(|known| known.as_str().to_owned())
        .ok_or_else(|| format!("no such kind of call; there are: {}", known()))
}

fn decision(text: &str) -> Result<String, String> {
    Decision::parse(text)
        .map(|known| known.as_str().to_owned())
        .ok_or_else(|| "write allowed or denied".to_owned())
}

/// A time, a day (in UTC), or how long ago; in milliseconds since the Unix epoch.
fn moment(text: &str) -> Result<u64, String> {
    let time = if let Ok(time) = text.parse::<Timestamp>() {
        Some(time)
    } else if let Ok(day) = text.parse::<civil::Date>() {
        TimeZone::UTC.to_timestamp(day.at(0, 0, 0, 0)).ok()
    } else {
        ago(text).and_then(|ago| Timestamp::now().checked_sub(ago).ok())
    };
    time.and_then(|time| u64::try_from(time.as_millisecond()).ok()).ok_or_else(|| {
        format!("{text:?} is not a time such as 2026-03-01T12:00:00Z, 2026-03-01, 90m, 12h or 7d")
    })
}

fn ago(text: &str) -> Option<Duration> {
    let unit = match text.chars().last()? {
        'd' => 86_400,
        'h' => 3_600,
        'm' => 60,
        's' => 1,
        _ => return None,
    };
    let count: u64 = text[..text.len() - 1].parse().ok()?;
    count.checked_mul(unit).map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_forms() {
        assert_eq!(moment("2026-03-01T12:00:00Z"), Ok(1_772_366_400_000));
        assert_eq!(moment("2026-03-01T13:00:00+01:00"), Ok(1_772_366_400_000));
        assert_eq!(moment("2026-03-01"), Ok(1_772_323_200_000));
        let now = u64::try_from(Timestamp::now().as_millisecond()).unwrap();
        for (text, seconds) in [("90m", 5400), ("12h", 43_200), ("7d", 604_800), ("5s", 5)] {
            let ago = now - moment(text).unwrap();
            assert!(ago.abs_diff(seconds * 1000) < 5000, "{text} {ago}");
        }
        for bad in ["", "m", "7", "7w", "-1d", "yesterday", "99999999999999999d", "1€"] {
            assert!(moment(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn nothing_in_an_entry_is_obeyed_by_a_terminal_or_a_spreadsheet() {
        let line = "{\"time\":1796000000000,\"tenant\":\"a\\u001b[2J\",\"caller\":\"x\u{9b}y\",\
                    \"tool\":\"=HYPERLINK(\\\"x\\\")\",\"arguments\":{\"a\":\"b\"}}";
        let entry = Entry::read(line.as_bytes()).unwrap();
        let told = told(&entry);
        assert!(!told.chars().any(char::is_control), "{told}");
        assert!(told.contains("a·[2J") && told.contains("x·y"), "{told}");
        assert!(told.starts_with("2026-11-30T"), "{told}");
        let csv = csv(&entry);
        assert!(csv.contains(",\"'=HYPERLINK(\"\"x\"\")\","), "{csv}");
        assert!(csv.ends_with(",\"{\"\"arguments\"\":{\"\"a\"\":\"\"b\"\"}}\""), "{csv}");
        let outside = csv.split('"').step_by(2).map(|part| part.matches(',').count());
        assert_eq!(outside.sum::<usize>(), COLUMNS.len() - 1);
    }

    #[test]
    fn a_client_can_be_named_with_its_tenant() {
        let mut arguments = FilterArguments {
            since: None,
            until: None,
            tenant: None,
            client: Some("acme/desk".into()),
            caller: None,
            tool: None,
            call_type: None,
            decision: None,
            reason: None,
            execution: None,
            correlation: None,
        };
        let filter = arguments.filter();
        assert_eq!(filter.tenant.as_deref(), Some("acme"));
        assert_eq!(filter.client_application.as_deref(), Some("desk"));
        arguments.client = Some("desk".into());
        assert_eq!(arguments.filter().tenant, None);
        assert!(call_type("tools").unwrap_err().contains("tool_execution"));
        assert_eq!(decision("denied").as_deref(), Ok("denied"));
    }
}
