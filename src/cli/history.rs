//! `ringway history` and `ringway rollback`: the changes of the catalog, and the way back.

use serde::Deserialize;

use super::{
    AdminArguments, AuthorArguments, CommandError,
    admin_client::AdminClient,
    difference::{self, Told},
    output,
};
use crate::http::Method;

/// Arguments of `ringway history`.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Show this change, field by field, instead of the list
    #[arg(value_name = "VERSION")]
    version: Option<u64>,
    /// At most so many
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=1000))]
    limit: u64,
    #[command(flatten)]
    admin: AdminArguments,
}

/// Arguments of `ringway rollback`.
#[derive(Debug, clap::Args)]
pub(super) struct RollbackArguments {
    /// The version whose state is brought back, as a new version
    version: u64,
    /// Print what would change and change nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    author: AuthorArguments,
    #[command(flatten)]
    admin: AdminArguments,
}

#[derive(Debug, Deserialize)]
struct Listed {
    changes: Vec<Header>,
    next: Option<u64>,
    oldest: u64,
}

#[derive(Debug, Deserialize)]
struct Header {
    version: u64,
    time: String,
    author: String,
    action: String,
    restored: Option<u64>,
    comment: String,
    added: u64,
    changed: u64,
    removed: u64,
    #[serde(default)]
    changes: Vec<difference::Change>,
}

impl Header {
    fn action(&self) -> String {
        match self.restored {
            Some(version) => format!("{} to {version}", self.action),
            None => self.action.clone(),
        }
    }
}

pub(super) fn run(arguments: &Arguments) -> Result<(), CommandError> {
    let client = AdminClient::find(&arguments.admin)?;
    if let Some(version) = arguments.version {
        let change: Header = client.json(Method::Get, &format!("/changes/{version}"), None)?;
        output::line(format_args!(
            "Version {}, {}, {} by {}",
            change.version,
            change.time,
            change.action(),
            change.author
        ));
        if !change.comment.is_empty() {
            output::line(&change.comment);
        }
        difference::print(&change.changes);
        output::line(format_args!("{}.", difference::counts(&change.changes)));
        return Ok(());
    }
    let target = format!("/changes?limit={}", arguments.limit);
    let listed: Listed = client.json(Method::Get, &target, None)?;
    let rows: Vec<Vec<String>> = listed
        .changes
        .iter()
        .map(|change| {
            vec![
                change.version.to_string(),
                change.time.clone(),
                change.author.clone(),
                change.action(),
                format!("+{} ~{} -{}", change.added, change.changed, change.removed),
                change.comment.lines().next().unwrap_or_default().to_owned(),
            ]
        })
        .collect();
    output::table(&["VERSION", "TIME", "AUTHOR", "ACTION", "ENTITIES", "COMMENT"], &rows);
    if listed.next.is_some() {
        output::remark(format_args!(
            "There are more, back to version {}: see --limit.",
            listed.oldest
        ));
    }
    Ok(())
}

pub(super) fn rollback(arguments: &RollbackArguments) -> Result<(), CommandError> {
    let client = AdminClient::find(&arguments.admin)?;
    let comment = arguments.author.comment_parameter();
    let target = format!("/changes/{}/rollback", arguments.version);
    let ask = |query: String| -> Result<Told, CommandError> {
        let target = format!("{target}?{query}{comment}");
        client.json_by(&arguments.author, Method::Post, &target, None)
    };
    let would = ask("dry_run=true".to_owned())?;
    difference::settle(would, arguments.dry_run, |version| {
        ask(format!("expected_version={version}"))
    })
}
