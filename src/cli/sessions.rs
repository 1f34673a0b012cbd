//! `ringway sessions`: the sessions of the running server.

use serde::Deserialize;

use super::{AdminArguments, CommandError, admin_client::AdminClient, output};
use crate::http::Method;

/// Arguments of `ringway sessions`.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// At most so many
    #[arg(long, default_value_t = 100)]
    limit: usize,
    #[command(flatten)]
    admin: AdminArguments,
}

#[derive(Debug, Deserialize)]
struct Listed {
    sessions: Vec<ListedSession>,
    total: u64,
}

#[derive(Debug, Deserialize)]
struct ListedSession {
    session: String,
    tenant: String,
    client_application: String,
    caller: String,
    revision: String,
    client: String,
    created: String,
    idle_seconds: u64,
    streams: usize,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), CommandError> {
    let target = format!("/sessions?limit={}", arguments.limit);
    let listed: Listed = AdminClient::find(&arguments.admin)?.json(Method::Get, &target, None)?;
    let rows: Vec<Vec<String>> = listed
        .sessions
        .into_iter()
        .map(|session| {
            vec![
                session.session,
                format!("{}/{}", session.tenant, session.client_application),
                session.caller,
                session.revision,
                session.client,
                session.created,
                format!("{} s", session.idle_seconds),
                session.streams.to_string(),
            ]
        })
        .collect();
    let header = [
        "SESSION",
        "CLIENT APPLICATION",
        "CALLER",
        "REVISION",
        "CLIENT",
        "CREATED",
        "IDLE",
        "STREAMS",
    ];
    output::table(&header, &rows);
    let not_listed = listed.total.saturating_sub(rows.len() as u64);
    if not_listed == 0 {
        output::remark(format_args!("{0} of {0} sessions.", rows.len()));
    } else {
        output::remark(format_args!(
            "{} of {} sessions. The others are over --limit, or idle and in the store only until \
             their clients come back.",
            rows.len(),
            listed.total
        ));
    }
    Ok(())
}
