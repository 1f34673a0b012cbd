//! `ringway audit`: reads and checks the audit log, from its files.
//!
//! No running server is needed, and none is disturbed. Whoever runs this must be able to read the
//! data directory: the server's user, or root.

mod sink;
mod told;
mod wanted;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Subcommand, ValueEnum};

use self::sink::Sink;
use self::told::{COLUMNS, HEADER, csv, row, time_text};
use self::wanted::{FilterArguments, LogArguments};
use super::{CommandError, output};
use crate::audit::{self, Entry, Reader, Verified};

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
    /// Print each entry whole, as one line of JSON; its time is in milliseconds since 1970
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
    /// Print each entry whole, as one line of JSON; its time is in milliseconds since 1970
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
    /// The entries as JSON, one a line; times are milliseconds since 1970
    Jsonl,
    /// A table with a header, for spreadsheets; times are as 2026-03-01T12:00:00.000Z
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
            "{}: blocks {} to {}, {}",
            segment.path.display(),
            segment.first_block,
            segment.last_block,
            records(segment.records)
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
    output::line(format_args!("The log is whole: {}, {signed}.", records(found.records)));
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
}

fn tail(arguments: &TailArguments) -> Result<(), CommandError> {
    let directory = arguments.log.directory()?;
    let mut reader = Reader::open(&directory, arguments.filter.filter()?)?;
    reader.seek_last(arguments.lines)?;
    let mut out = Sink::standard();
    let (mut columns, mut rows) = (None, Vec::new());
    loop {
        while out.is_open && reader.advance()? {
            if arguments.json {
                out.line(&Entry::whole_line(reader.line()));
            } else if let Some(entry) = Entry::read(reader.line()) {
                rows.push(row(&entry));
                if rows.len() == TABLE_PAGE {
                    out.rows(&mut columns, &mut rows);
                }
            }
        }
        out.rows(&mut columns, &mut rows);
        out.flush();
        if !arguments.follow || !out.is_open {
            return Ok(());
        }
        std::thread::park_timeout(LOOK_EVERY);
    }
}

fn query(arguments: &QueryArguments) -> Result<(), CommandError> {
    let directory = arguments.log.directory()?;
    let mut reader = Reader::open(&directory, arguments.filter.filter()?)?;
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
            out.line(&Entry::whole_line(reader.line()));
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
        output::remark(format_args!("{}; there are more (--limit).", entries(found)));
    } else if !arguments.json {
        output::remark(format_args!("{}.", entries(found)));
    }
    Ok(())
}

fn export(arguments: &ExportArguments) -> Result<(), CommandError> {
    let directory = arguments.log.directory()?;
    let mut reader = Reader::open(&directory, arguments.filter.filter()?)?;
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
            Format::Jsonl => out.line(&Entry::whole_line(reader.line())),
            Format::Csv => {
                let Some(entry) = Entry::read(reader.line()) else { continue };
                out.line(csv(&entry).as_bytes());
            }
        }
        count += 1;
    }
    out.finish(arguments.output.as_deref())?;
    if let Some(path) = &arguments.output {
        output::remark(format_args!("{} in {}.", entries(count), path.display()));
    }
    Ok(())
}

fn entries(count: u64) -> String {
    output::count(count, "entry", "entries")
}

fn records(count: u64) -> String {
    output::count(count, "record", "records")
}
