//! `ringway tools` and `ringway call`: what a client application sees and can do, asked over MCP
//! as a client asks, by the caller `operator`.

use serde_json::{Value, json};

use super::{AdminArguments, CommandError, admin_client::AdminClient, key, output};
use crate::{catalog::Trust, http::Method};

/// Which client application to be.
#[derive(Debug, clap::Args)]
struct ClientArguments {
    /// The client application, as TENANT/CLIENT [default: the only one there is]
    #[arg(long, value_name = "TENANT/CLIENT")]
    client: Option<String>,
    #[command(flatten)]
    admin: AdminArguments,
}

/// Arguments of `ringway tools`.
#[derive(Debug, clap::Args)]
pub(super) struct ToolsArguments {
    #[command(flatten)]
    client: ClientArguments,
    /// Print the whole list as JSON, schemas included
    #[arg(long)]
    json: bool,
}

/// Arguments of `ringway call`.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The tool's name
    tool: String,
    /// The arguments, as a JSON object
    #[arg(default_value = "{}", value_name = "JSON")]
    given: String,
    #[command(flatten)]
    client: ClientArguments,
    /// Be trusted like a key made with this trust: low, medium or high [default: high]
    #[arg(long, value_name = "TRUST", value_parser = key::trust)]
    trust: Option<Trust>,
    /// Print the whole result as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn list(arguments: &ToolsArguments) -> Result<(), CommandError> {
    let conversation = Conversation::open(&arguments.client, None)?;
    let mut tools = Vec::new();
    let mut cursor: Option<Value> = None;
    loop {
        let parameters = cursor.map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }));
        let mut page = conversation.ask("tools/list", &parameters)?;
        if let Some(Value::Array(more)) = page.get_mut("tools").map(Value::take) {
            tools.extend(more);
        }
        cursor = page.get("nextCursor").cloned();
        if cursor.is_none() {
            break;
        }
    }
    if arguments.json {
        output::line(pretty(&json!({ "tools": tools })));
        return Ok(());
    }
    let text = |tool: &Value, key: &str| {
        let value = tool.get(key).and_then(Value::as_str).unwrap_or_default();
        value.lines().next().unwrap_or_default().to_owned()
    };
    let rows: Vec<Vec<String>> =
        tools.iter().map(|tool| vec![text(tool, "name"), text(tool, "description")]).collect();
    output::table(&["TOOL", "DESCRIPTION"], &rows);
    Ok(())
}

pub(super) fn run(arguments: &Arguments) -> Result<(), CommandError> {
    let parsed: Value = serde_json::from_str(&arguments.given).map_err(|error| {
        CommandError::Usage(format!("the arguments are not JSON ({error}): write '{{\"a\": 1}}'"))
    })?;
    if !parsed.is_object() {
        return Err(CommandError::Usage("the arguments must be a JSON object".to_owned()));
    }
    // The text goes out as it was typed, so that numbers keep their digits.
    let parameters =
        format!(r#"{{"name":{},"arguments":{}}}"#, json!(arguments.tool), arguments.given);
    let conversation = Conversation::open(&arguments.client, arguments.trust)?;
    let result = conversation.ask_text("tools/call", &parameters)?;
    if arguments.json {
        output::line(pretty(&result));
    } else {
        for block in result.get("content").and_then(Value::as_array).into_iter().flatten() {
            match block.get("text").and_then(Value::as_str) {
                Some(text) => output::line(text),
                None => output::line(pretty(block)),
            }
        }
    }
    if result.get("isError") == Some(&Value::Bool(true)) {
        return Err(CommandError::ToolFailed);
    }
    Ok(())
}

fn pretty(value: &Value) -> String {
    format!("{value:#}")
}

/// The protocol revision these commands speak.
const REVISION: &str = "2025-11-25";

struct Conversation {
    client: AdminClient,
    /// The client application it is led for.
    named: String,
    target: String,
    /// How far it is trusted, where that is less than operators are.
    trust: Option<Trust>,
}

impl Conversation {
    fn open(arguments: &ClientArguments, trust: Option<Trust>) -> Result<Self, CommandError> {
        let client = AdminClient::find(&arguments.admin)?;
        let named = match &arguments.client {
            Some(named) => named.clone(),
            None => only_client_application(&client)?,
        };
        if named.split('/').count() != 2 {
            return Err(CommandError::Usage(format!(
                "--client {named:?}: write it as TENANT/CLIENT"
            )));
        }
        Ok(Self { client, target: format!("/runtime/{named}/mcp"), named, trust })
    }

    fn ask(&self, method: &str, parameters: &Value) -> Result<Value, CommandError> {
        self.ask_text(method, &parameters.to_string())
    }

    fn ask_text(&self, method: &str, parameters: &str) -> Result<Value, CommandError> {
        let body =
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{parameters}}}"#);
        let mut headers = vec![
            ("Content-Type", "application/json"),
            ("Accept", "application/json"),
            ("MCP-Protocol-Version", REVISION),
        ];
        headers.extend(self.trust.map(|trust| ("X-Trust", trust.as_str())));
        let answer =
            self.client.send(Method::Post, &self.target, &headers, Some(body.as_bytes()))?;
        if answer.status == 404 {
            return Err(CommandError::Usage(format!(
                "the catalog has no client application {}; `ringway status` lists those it has",
                self.named
            )));
        }
        if answer.status != 200 {
            return Err(answer.refusal());
        }
        let broken = |what: &str| CommandError::Conversation {
            socket: self.client.socket().to_owned(),
            what: what.to_owned(),
        };
        let mut reply: Value =
            serde_json::from_slice(&answer.body).map_err(|error| broken(&error.to_string()))?;
        if reply.get("error").is_some() {
            return Err(answer.refusal());
        }
        reply.get_mut("result").map(Value::take).ok_or_else(|| broken("no result"))
    }
}

fn only_client_application(client: &AdminClient) -> Result<String, CommandError> {
    let status: Value = client.json(Method::Get, "/status", None)?;
    let names: Vec<&str> = status
        .get("client_applications")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    match names.as_slice() {
        [only] => Ok((*only).to_owned()),
        [] => Err(CommandError::Usage(
            "the catalog has no client application; declare one and `ringway apply` it".to_owned(),
        )),
        several => Err(CommandError::Usage(format!(
            "there are several client applications; choose one with --client: {}",
            several.join(", ")
        ))),
    }
}
