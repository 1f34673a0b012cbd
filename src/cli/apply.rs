//! `ringway apply`: catalog files into the running server.

use std::{collections::HashMap, path::PathBuf};

use serde_json::json;

use super::{
    AdminArguments, AuthorArguments, CommandError,
    admin_client::AdminClient,
    check,
    difference::{self, Told},
};
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
    /// Remove everything that these files do not declare, of every tenant: the catalog becomes what
    /// the files say. Refused where they declare nothing. Look with --dry-run first
    #[arg(long)]
    prune: bool,
    #[command(flatten)]
    author: AuthorArguments,
    #[command(flatten)]
    admin: AdminArguments,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), CommandError> {
    let entities = check::read_catalog(&arguments.paths)?;
    let client = AdminClient::find(&arguments.admin)?;
    // Only what the files say: what they refer to may be in the server's catalog already, and is
    // checked there.
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let rows: HashMap<String, String> =
        entities.rows().into_iter().map(|(key, value)| (text(key), text(value))).collect();
    let mut body = json!({
        "rows": rows,
        "dry_run": true,
        "prune": arguments.prune,
        "comment": arguments.author.comment,
    });
    let mut ask = |more: &[(&str, serde_json::Value)]| -> Result<Told, CommandError> {
        for (name, value) in more {
            body[*name] = value.clone();
        }
        client.json_by(&arguments.author, Method::Post, "/apply", Some(&body))
    };
    let would = ask(&[])?;
    difference::settle(would, arguments.dry_run, |version| {
        ask(&[("dry_run", json!(false)), ("expected_version", json!(version))])
    })
}
