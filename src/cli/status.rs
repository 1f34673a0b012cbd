//! `ringway status`: how the running server is.

use serde_json::Value;

use super::{AdminArguments, CommandError, admin_client::AdminClient, output};
use crate::http::Method;

/// Arguments of `ringway status`.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Print it as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    admin: AdminArguments,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), CommandError> {
    let status: Value = AdminClient::find(&arguments.admin)?.json(Method::Get, "/status", None)?;
    if arguments.json {
        output::line(format_args!("{status:#}"));
        return Ok(());
    }
    let rows = status.as_object().into_iter().flatten().map(|(name, value)| {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Array(items) => {
                // Remarks are sentences.
                let between = if name == "catalog_remarks" { "\n" } else { ", " };
                items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(between)
            }
            Value::Object(_) => problems(value),
            other => other.to_string(),
        };
        vec![name.replace('_', " "), text]
    });
    output::table(&["STATUS", ""], &rows.collect::<Vec<_>>());
    Ok(())
}

/// Files that are bad since a time, each problem a line of its own.
fn problems(value: &Value) -> String {
    let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
    let problems = value.get("problems").and_then(Value::as_array).into_iter().flatten();
    let lines: Vec<&str> = problems.filter_map(Value::as_str).collect();
    format!("bad since {}, an older catalog is served:\n{}", text("since"), lines.join("\n"))
}
