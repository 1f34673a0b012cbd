//! Why a command failed, and what to do about it.

#![expect(missing_docs, reason = "each field is named by the error's text")]

use std::path::PathBuf;

use thiserror::Error;

use super::output;
use crate::catalog::Problem;

/// Where else what is missing in files may be.
const ELSEWHERE: &str = "\nWhat is not in these files a running server may have, such as an imported \
                         toolset: `ringway apply --dry-run` checks them against it, `ringway export` \
                         writes it as files.";

/// A command that did not do what was asked. The text says what to do next.
#[derive(Debug, Error)]
pub enum CommandError {
    /// The settings cannot be used.
    #[error("{0}")]
    Settings(#[from] crate::settings::SettingsError),
    /// Files have errors; each is a line of the text.
    #[error("{text}\n{count} found. Nothing was changed.")]
    Problems { text: String, count: String },
    /// As [`CommandError::Problems`], of a command that changes nothing anyway.
    #[error("{text}\n{count} found.{hint}")]
    Found { text: String, count: String, hint: &'static str },
    /// The server could not start.
    #[error("{0}")]
    Start(#[from] crate::server::StartError),
    /// No server listens on the admin socket.
    #[error(
        "no running server at {socket} ({source})\nStart one with `ringway serve` or `ringway \
         quickstart`, or say which one is meant: --config FILE (its settings) or --admin SOCKET \
         (admin.sock in its data directory)."
    )]
    NotRunning { socket: PathBuf, source: std::io::Error },
    /// The admin socket belongs to somebody else.
    #[error(
        "this user may not administer the server at {socket}\nOnly the user it runs as may (and \
         root): try again with sudo."
    )]
    NotAllowed { socket: PathBuf },
    /// The conversation with the server broke.
    #[error("the server at {socket} did not answer properly: {what}")]
    Conversation { socket: PathBuf, what: String },
    /// The server refused.
    #[error("{message}")]
    Refused { status: u16, message: String },
    /// The command was used in a way that makes no sense.
    #[error("{0}")]
    Usage(String),
    /// A file of this machine cannot be read or written.
    #[error("{path}: {source}")]
    File { path: PathBuf, source: std::io::Error },
    /// The data directory cannot be made.
    #[error("{path}: {source}\nName another data directory with --data.")]
    DataDirectory { path: PathBuf, source: std::io::Error },
    /// The audit log cannot be read.
    #[error("{0}")]
    Audit(#[from] crate::audit::AuditError),
    /// The audit log is not as it was written.
    #[error(
        "{0}\nEverything before that was checked, nothing behind it. Keep the files as they are: \
         they are the evidence."
    )]
    AuditFault(String),
    /// No operation of a description became a tool; the report says why.
    #[error("no operation was imported")]
    NothingImported,
    /// The called tool reported an error; its text was printed.
    #[error("the tool reported an error")]
    ToolFailed,
}

impl CommandError {
    /// All problems of catalog files, a line each.
    pub(super) fn problems(problems: &[Problem]) -> Self {
        let (text, count) = told(problems);
        Self::Problems { text, count }
    }

    /// All problems of files that are only looked at; `misses` tells that they name what none of
    /// them declares.
    pub(super) fn found(problems: &[Problem], misses: bool) -> Self {
        let (text, count) = told(problems);
        Self::Found { text, count, hint: if misses { ELSEWHERE } else { "" } }
    }
}

/// Each problem on a line, and how many there are.
fn told(problems: &[Problem]) -> (String, String) {
    let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
    (lines.join("\n"), output::count(lines.len(), "problem", "problems"))
}
