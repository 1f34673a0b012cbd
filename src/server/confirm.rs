//! Asking a user before a call is made.

use crate::{
    catalog::ViewTool,
    downstream::Client,
    json::{self, OwnedRaw, Raw},
    mcp::{Ask, AskMethod, AskOutcome},
    sessions::ClientCapabilities,
};

/// Asks the user of a client whether a call of `tool` may be made.
///
/// # Errors
/// What the model is told where the user did not say yes, or cannot be asked: nothing was done.
pub(super) async fn ask(tool: &ViewTool, client: &dyn Client) -> Result<(), String> {
    if !client.capabilities().contains(ClientCapabilities::ELICITATION_FORM) {
        return Err(format!(
            "A call of `{}` must be confirmed by the user, and this client cannot ask: it has not \
             declared elicitation. Nothing was done.",
            tool.name
        ));
    }
    let params = question(tool);
    let ask = Ask { method: AskMethod::Elicitation, params };
    match client.ask(ask).await {
        AskOutcome::Answer(answer) => {
            match answer.as_raw().get("action").and_then(Raw::as_str).as_deref() {
                Some("accept") => Ok(()),
                Some("decline") => Err("The user declined this call. Nothing was done.".to_owned()),
                _ => Err("The user did not confirm this call. Nothing was done.".to_owned()),
            }
        }
        AskOutcome::Refused(_) | AskOutcome::Unheard => {
            Err("The user could not be asked to confirm this call. Nothing was done.".to_owned())
        }
    }
}

/// Without a field: accepting is the answer (MCP 2025-06-18, elicitation).
fn question(tool: &ViewTool) -> OwnedRaw {
    let what = tool.title.as_deref().unwrap_or(tool.name.as_str());
    let (name, effect) = (&tool.name, tool.side_effect.as_str());
    let message = format!("May the tool `{name}` ({what}) be called? Its effect: {effect}.");
    let mut params = b"{\"message\":".to_vec();
    json::write_string(&mut params, &message);
    params.extend_from_slice(b",\"requestedSchema\":{\"type\":\"object\",\"properties\":{}}}");
    OwnedRaw::parse(&params).unwrap_or_else(|_| OwnedRaw::empty_object())
}
