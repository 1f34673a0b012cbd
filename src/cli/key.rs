//! `ringway key`: API keys of client applications.

use clap::Subcommand;
use serde::Deserialize;
use serde_json::json;

use super::{AdminArguments, CommandError, admin_client::AdminClient, output};
use crate::{catalog::Trust, http::Method};

/// Arguments of `ringway key`.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: KeyCommand,
}

#[derive(Debug, Subcommand)]
enum KeyCommand {
    /// Create a key and print it; it is shown this once and stored hashed
    Create {
        /// The client application, as TENANT/CLIENT
        #[arg(long, value_name = "TENANT/CLIENT")]
        client: String,
        /// What the key is for, as `key list` shows it
        #[arg(long, default_value = "")]
        label: String,
        /// How long it is valid: a number and d, h or m, as 90d [default: until revoked]
        #[arg(long, value_name = "TIME", value_parser = lifetime)]
        expires: Option<Lifetime>,
        /// How far its holder is trusted: low, medium or high; policies ask for it
        #[arg(long, value_name = "TRUST", default_value = "medium", value_parser = trust)]
        trust: Trust,
        #[command(flatten)]
        admin: AdminArguments,
    },
    /// List keys; secrets are never shown
    List {
        #[command(flatten)]
        admin: AdminArguments,
    },
    /// Revoke a key at once
    Revoke {
        /// The key's id, as `key list` shows it
        id: String,
        #[command(flatten)]
        admin: AdminArguments,
    },
}

/// Reads a trust as it is written in policies.
pub(super) fn trust(text: &str) -> Result<Trust, String> {
    Trust::parse(text).ok_or_else(|| format!("{text:?} is none of low, medium and high"))
}

/// How long a key is valid, in seconds.
#[derive(Debug, Clone, Copy)]
struct Lifetime(u64);

/// The longest lifetime taken: a hundred years.
const LIFETIME_SECONDS_MAX: u64 = 100 * 366 * 86_400;

fn lifetime(text: &str) -> Result<Lifetime, String> {
    let advice = || format!("{text:?} is not a time such as 90d, 12h or 30m");
    let unit = match text.chars().last() {
        Some('d') => 86_400,
        Some('h') => 3_600,
        Some('m') => 60,
        _ => return Err(advice()),
    };
    let count: u64 = text[..text.len() - 1].parse().map_err(|_| advice())?;
    match count.checked_mul(unit) {
        Some(seconds) if (1..=LIFETIME_SECONDS_MAX).contains(&seconds) => Ok(Lifetime(seconds)),
        _ => Err(format!("{text:?} is outside 1m to 36600d")),
    }
}

#[derive(Debug, Deserialize)]
struct Created {
    key: String,
    id: String,
}

#[derive(Debug, Deserialize)]
struct Listed {
    keys: Vec<ListedKey>,
}

#[derive(Debug, Deserialize)]
struct ListedKey {
    id: String,
    tenant: String,
    client_application: String,
    label: String,
    trust: Trust,
    created: String,
    expires: Option<String>,
    state: String,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), CommandError> {
    match &arguments.command {
        KeyCommand::Create { client, label, expires, trust, admin } => {
            create(client, label, *expires, *trust, admin)
        }
        KeyCommand::List { admin } => list(admin),
        KeyCommand::Revoke { id, admin } => revoke(id, admin),
    }
}

fn create(
    client: &str,
    label: &str,
    expires: Option<Lifetime>,
    trust: Trust,
    admin: &AdminArguments,
) -> Result<(), CommandError> {
    let (tenant, client_application) = client.split_once('/').ok_or_else(|| {
        CommandError::Usage(format!("--client {client:?}: write it as TENANT/CLIENT"))
    })?;
    let body = json!({
        "tenant": tenant,
        "client_application": client_application,
        "label": label,
        "expires_seconds": expires.map(|lifetime| lifetime.0),
        "trust": trust,
    });
    let created: Created = AdminClient::find(admin)?.json(Method::Post, "/keys", Some(&body))?;
    output::line(created.key);
    output::remark(format_args!(
        "Key {} for {client}. It is not shown again; keep it safe.",
        created.id
    ));
    Ok(())
}

fn list(admin: &AdminArguments) -> Result<(), CommandError> {
    let listed: Listed = AdminClient::find(admin)?.json(Method::Get, "/keys", None)?;
    let rows: Vec<Vec<String>> = listed
        .keys
        .into_iter()
        .map(|key| {
            vec![
                key.id,
                format!("{}/{}", key.tenant, key.client_application),
                key.state,
                key.trust.as_str().to_owned(),
                key.created,
                key.expires.unwrap_or_else(|| "never".to_owned()),
                key.label,
            ]
        })
        .collect();
    output::table(&["ID", "CLIENT", "STATE", "TRUST", "CREATED", "EXPIRES", "LABEL"], &rows);
    Ok(())
}

fn revoke(id: &str, admin: &AdminArguments) -> Result<(), CommandError> {
    let target = format!("/keys/{id}/revoke");
    let _: serde_json::Value = AdminClient::find(admin)?.json(Method::Post, &target, None)?;
    output::line(format_args!("Key {id} is revoked."));
    Ok(())
}
