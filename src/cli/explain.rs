//! `ringway explain`: why a tool is hidden, refused, limited or allowed.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde_json::Value;

use super::{AdminArguments, CommandError, admin_client::AdminClient, key, output};
use crate::{catalog::Trust, http::Method};

/// Arguments of `ringway explain`.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The client application, as TENANT/CLIENT
    #[arg(long, value_name = "TENANT/CLIENT")]
    client: String,
    /// The tool: the name clients call it by, the operation's, or TOOLSET/OPERATION
    #[arg(long, value_name = "TOOL")]
    tool: String,
    /// How far the caller is trusted [default: as the key is; without one,
    /// low where the client application is open, else medium]
    #[arg(long, value_name = "TRUST", value_parser = key::trust)]
    trust: Option<Trust>,
    /// The key of the caller, for what is left of its limits
    #[arg(long, value_name = "ID")]
    key: Option<String>,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    admin: AdminArguments,
}

/// What is shown of an explanation; all of it is in its JSON.
#[derive(Debug, Deserialize)]
struct Explained {
    tenant: String,
    client_application: String,
    asked: String,
    trust: Trust,
    time: String,
    conclusion: String,
    because: String,
    tool: Option<ExplainedTool>,
    calls: Vec<ExplainedCall>,
    limits: Vec<ExplainedLimit>,
}

#[derive(Debug, Deserialize)]
struct ExplainedTool {
    name: Option<String>,
    toolset: String,
    operation: String,
    origin: Option<String>,
}

#[derive(Debug, Deserialize)]
struct ExplainedCall {
    side_effect: String,
    reason: String,
    text: String,
    steps: Vec<Step>,
}

#[derive(Debug, Deserialize)]
struct Step {
    policy: String,
    origin: String,
    rule: Option<u32>,
    observes: bool,
    matches: bool,
    text: String,
    next_opening: Option<String>,
}

#[derive(Debug, Deserialize)]
struct ExplainedLimit {
    level: String,
    class: String,
    count: u32,
    seconds: Option<u32>,
    burst: u32,
    remaining: Option<u32>,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), CommandError> {
    let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let parameters = [
        ("client", Some(arguments.client.as_str())),
        ("tool", Some(arguments.tool.as_str())),
        ("trust", arguments.trust.map(Trust::as_str)),
        ("key", arguments.key.as_deref()),
    ];
    let query: Vec<String> = parameters
        .into_iter()
        .filter_map(|(name, value)| Some(format!("{name}={}", encoded(value?))))
        .collect();
    let target = format!("/explain?{}", query.join("&"));
    let admin = AdminClient::find(&arguments.admin)?;
    let explained: Value = admin.json(Method::Get, &target, None)?;
    if arguments.json {
        output::line(format_args!("{explained:#}"));
        return Ok(());
    }
    let explained: Explained = serde_json::from_value(explained).map_err(|error| {
        CommandError::Conversation { socket: admin.socket().to_owned(), what: error.to_string() }
    })?;
    lines(&explained).iter().for_each(output::line);
    Ok(())
}

/// The explanation as lines.
fn lines(explained: &Explained) -> Vec<String> {
    let Explained { tenant, client_application, asked, time, conclusion, because, .. } = explained;
    let trust = explained.trust.as_str();
    let mut lines = vec![
        format!("{asked} for {tenant}/{client_application}, trust {trust}, at {time}"),
        format!("{}: {because}", conclusion.to_uppercase()),
    ];
    if let Some(tool) = &explained.tool {
        let name = tool.name.as_deref().unwrap_or("not shown");
        let origin = tool.origin.as_deref().map_or(String::new(), |at| format!(" ({at})"));
        lines.push(format!("tool        {name}, {}/{}{origin}", tool.toolset, tool.operation));
    }
    for call in &explained.calls {
        lines.push(format!("{:<11} {}: {}", call.side_effect, call.reason, call.text));
        for step in &call.steps {
            let sign = if step.matches { '*' } else { ' ' };
            let rule = step.rule.map_or(String::new(), |number| format!(" rule {number}"));
            let observes = if step.observes { " (observes)" } else { "" };
            let policy = step.policy.replace('_', " ");
            let opening = step.next_opening.as_deref();
            let opening = opening.map_or(String::new(), |at| format!("; next from {at} on"));
            let Step { origin, text, .. } = step;
            lines.push(format!("  {sign} {policy}{rule}{observes}: {text}{opening} ({origin})"));
        }
    }
    for limit in &explained.limits {
        let ExplainedLimit { count, burst, .. } = limit;
        let (class, level) = (limit.class.replace('_', " "), limit.level.replace('_', " "));
        let rate = match limit.seconds {
            Some(seconds) => format!("{count} in {seconds} s, {burst} at once"),
            None => format!("{count} at a time"),
        };
        let left = limit.remaining.map_or("each".to_owned(), |left| format!("{left} left"));
        lines.push(format!("limit       {class} of the {level}: {rate}, {left}"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn everything_has_its_line() {
        let explained = json!({
            "asked": "drop", "tenant": "acme", "client_application": "desk", "trust": "medium",
            "time": "2026-01-01T00:00:00Z", "conclusion": "refused", "because": "It may not.",
            "tool": {"name": "drop", "toolset": "pets", "operation": "drop it", "origin": "a.toml:3"},
            "calls": [{"side_effect": "write", "allowed": false, "reason": "outside_window",
                "text": "Later.", "steps": [
                    {"policy": "client_application", "origin": "a.toml:9", "rule": 1,
                     "observes": false, "matches": true, "allows": false, "text": "at night only",
                     "next_opening": "2026-01-01T22:00:00Z"},
                    {"policy": "tenant", "origin": "a.toml:1", "observes": true, "matches": false,
                     "allows": null, "text": "allows"}]}],
            "limits": [
                {"level": "caller", "class": "tool_calls", "count": 5, "seconds": 60, "burst": 2},
                {"level": "tenant", "class": "listening_streams", "count": 5, "burst": 5,
                 "remaining": 4}],
        });
        let expected = "\
drop for acme/desk, trust medium, at 2026-01-01T00:00:00Z
REFUSED: It may not.
tool        drop, pets/drop it (a.toml:3)
write       outside_window: Later.
  * client application rule 1: at night only; next from 2026-01-01T22:00:00Z on (a.toml:9)
    tenant (observes): allows (a.toml:1)
limit       tool calls of the caller: 5 in 60 s, 2 at once, each
limit       listening streams of the tenant: 5 at a time, 4 left";
        let lines = lines(&serde_json::from_value(explained).unwrap());
        assert_eq!(lines.join("\n"), expected);
    }
}
