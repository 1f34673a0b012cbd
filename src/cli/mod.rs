//! The command line: one file a command.
//!
//! `quickstart` and `serve` run the server in this process; `check` and `audit` read files only;
//! all others speak to a running process over its admin socket. Every error says what happened and
//! what to do next; results go to standard output, everything else to standard error.

mod admin_client;
mod apply;
mod audit;
mod call;
mod check;
mod difference;
mod error;
mod explain;
mod export;
mod history;
mod import;
mod key;
mod output;
mod quickstart;
mod serve;
mod sessions;
mod status;
mod upstream;

use std::{path::PathBuf, process::ExitCode};

use clap::{Args, Parser, Subcommand};

pub use error::CommandError;

/// The settings file of the service, as its unit names it.
const SERVICE_SETTINGS: &str = "/etc/ringway/ringway.toml";

/// Turns HTTP APIs, SOAP services and other MCP servers into tools for AI clients, over MCP.
#[derive(Debug, Parser)]
#[command(
    name = "ringway",
    version,
    after_help = "Start with `ringway quickstart`: it needs nothing else and prints a working \
                  MCP endpoint."
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a ready-made demo endpoint and print how clients connect to it
    Quickstart(quickstart::Arguments),
    /// Run the server
    Serve(serve::Arguments),
    /// Check settings, catalog and TLS files without running anything
    Check(check::Arguments),
    /// Put catalog files into the running server
    Apply(apply::Arguments),
    /// Make tools of the description of an API: OpenAPI, Swagger, WSDL
    Import(import::Arguments),
    /// Write the running server's catalog as files that `apply` takes back
    Export(export::Arguments),
    /// List the changes of the catalog, or show one
    History(history::Arguments),
    /// Bring the catalog back to what it was at a version
    Rollback(history::RollbackArguments),
    /// Create, list and revoke API keys of client applications
    Key(key::Arguments),
    /// List the tools a client application sees
    Tools(call::ToolsArguments),
    /// Call a tool as a client would
    Call(call::Arguments),
    /// Tell why a client application's call of a tool is allowed, refused, limited or hidden
    Explain(explain::Arguments),
    /// Tell how the running server is
    Status(status::Arguments),
    /// List the sessions in memory
    Sessions(sessions::Arguments),
    /// See the MCP servers behind toolsets, approve and refuse what they offer
    Upstream(upstream::Arguments),
    /// Read and check the audit log
    Audit(audit::Arguments),
}

/// Where the running server is.
#[derive(Debug, Clone, Args)]
struct AdminArguments {
    /// Admin socket of the running server [default: the one of the settings; where no --config is
    /// given and that one is not there, quickstart's]
    #[arg(long, value_name = "SOCKET", env = "RINGWAY_ADMIN")]
    admin: Option<PathBuf>,
    /// Settings file that names the data directory of the running server [default:
    /// /etc/ringway/ringway.toml, where it is there]
    #[arg(long, value_name = "FILE", env = "RINGWAY_CONFIG")]
    config: Option<PathBuf>,
}

/// Who changes the catalog, and why: for the change log.
#[derive(Debug, Clone, Args)]
struct AuthorArguments {
    /// Who makes this change, besides the user who runs the command
    #[arg(long, value_name = "NAME")]
    author: Option<String>,
    /// Why, for the change log
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    comment: String,
}

impl AuthorArguments {
    /// The comment as one more parameter of a query; empty where there is none.
    fn comment_parameter(&self) -> String {
        if self.comment.is_empty() {
            return String::new();
        }
        let encoded = percent_encoding::utf8_percent_encode(
            &self.comment,
            percent_encoding::NON_ALPHANUMERIC,
        );
        format!("&comment={encoded}")
    }
}

/// Runs the command line of this process.
pub fn run() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let done = match arguments.command {
        Command::Quickstart(arguments) => quickstart::run(&arguments),
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Check(arguments) => check::run(&arguments),
        Command::Apply(arguments) => apply::run(&arguments),
        Command::Import(arguments) => import::run(&arguments),
        Command::Export(arguments) => export::run(&arguments),
        Command::History(arguments) => history::run(&arguments),
        Command::Rollback(arguments) => history::rollback(&arguments),
        Command::Key(arguments) => key::run(&arguments),
        Command::Tools(arguments) => call::list(&arguments),
        Command::Call(arguments) => call::run(&arguments),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Status(arguments) => status::run(&arguments),
        Command::Sessions(arguments) => sessions::run(&arguments),
        Command::Upstream(arguments) => upstream::run(&arguments),
        Command::Audit(arguments) => audit::run(&arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::complain(&error);
            ExitCode::FAILURE
        }
    }
}
