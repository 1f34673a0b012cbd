//! `ringway apply`: catalog files into the running server.

use std::{collections::HashMap, path::PathBuf};

use serde::Deserialize;
use serde_json::json;

use super::{AdminArguments, CommandError, admin_client::AdminClient, check, output};
use crate::http::Method;

/// Arguments of `ringway apply`.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Catalog files or directories (TOML, YAML or JSON)
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Print what would change and change nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    admin: AdminArguments,
}

/// What the server changed, or would change.
#[derive(Debug, Deserialize)]
struct Applied {
    added: Vec<String>,
    changed: Vec<String>,
    removed: Vec<String>,
    version: u64,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), CommandError> {
    let entities = check::read_catalog(&arguments.paths)?;
    let client = AdminClient::find(&arguments.admin)?;
    // Only what the files say: what they refer to may be in the server's catalog already, and is
    // checked there.
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let rows: HashMap<String, String> =
        entities.rows().into_iter().map(|(key, value)| (text(key), text(value))).collect();
    let body = json!({ "rows": rows, "dry_run": arguments.dry_run });
    let applied: Applied = client.json(Method::Post, "/apply", Some(&body))?;
    for (sign, names) in [("+", &applied.added), ("~", &applied.changed), ("-", &applied.removed)] {
        for name in names {
            output::line(format_args!("{sign} {name}"));
        }
    }
    let counts = format!(
        "{} added, {} changed, {} removed",
        applied.added.len(),
        applied.changed.len(),
        applied.removed.len()
    );
    if arguments.dry_run {
        output::line(format_args!("{counts}. Nothing was changed (--dry-run)."));
    } else {
        output::line(format_args!("{counts}. The catalog is at version {}.", applied.version));
    }
    Ok(())
}
