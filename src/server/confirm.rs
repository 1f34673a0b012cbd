//! Asking a user before a call is made.

use crate::{
    catalog::{SideEffect, ViewTool},
    downstream::Client,
    governance::{Reason, definitions::visible},
    json::{self, OwnedRaw, Raw},
    mcp::{Ask, AskMethod, AskOutcome},
    server::redact,
    sessions::ClientCapabilities,
};

/// Most bytes of arguments that a user is shown.
const SHOWN_BYTES_MAX: usize = 2000;

/// Why a call that is to be confirmed is not made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unconfirmed {
    /// The client cannot ask its user.
    CannotAsk,
    /// The question did not reach the user.
    Unasked,
    /// The user gave no answer.
    Unanswered,
    /// The user said no.
    Declined,
}

impl Unconfirmed {
    /// The reason, for records and metrics.
    pub(crate) fn reason(self) -> Reason {
        match self {
            Self::Declined => Reason::Declined,
            Self::CannotAsk | Self::Unasked | Self::Unanswered => Reason::NotConfirmed,
        }
    }

    /// What the model reads.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::CannotAsk => {
                "This call must be confirmed by the user, and this client cannot ask: it has not \
                 declared elicitation. Nothing was done."
            }
            Self::Unasked => "The user could not be asked to confirm this call. Nothing was done.",
            Self::Unanswered | Self::Declined => self.reason().text(),
        }
    }
}

/// Asks the user of a client.
///
/// # Errors
/// The user did not say yes, or cannot be asked.
pub(super) async fn ask(question: OwnedRaw, client: &dyn Client) -> Result<(), Unconfirmed> {
    if !client.capabilities().contains(ClientCapabilities::ELICITATION_FORM) {
        return Err(Unconfirmed::CannotAsk);
    }
    match client.ask(Ask { method: AskMethod::Elicitation, params: question }).await {
        AskOutcome::Answer(answer) => {
            match answer.as_raw().get("action").and_then(Raw::as_str).as_deref() {
                Some("accept") => Ok(()),
                Some("decline") => Err(Unconfirmed::Declined),
                _ => Err(Unconfirmed::Unanswered),
            }
        }
        AskOutcome::Refused(_) | AskOutcome::Unheard => Err(Unconfirmed::Unasked),
    }
}

/// Whether a call may be made, as `params` of an elicitation. Without a field: accepting is the
/// answer (MCP 2025-06-18, elicitation).
pub(super) fn question(
    tool: &ViewTool,
    side_effect: SideEffect,
    arguments: Option<&str>,
) -> OwnedRaw {
    let what = tool.title.as_deref().unwrap_or(tool.name.as_str());
    let (name, effect) = (&tool.name, side_effect.as_str());
    let arguments = arguments.unwrap_or("{}");
    let message = format!(
        "May the tool `{name}` ({what}) be called? Its effect: {effect}. Its arguments: {arguments}"
    );
    let mut params = b"{\"message\":".to_vec();
    json::write_string(&mut params, &message);
    params.extend_from_slice(b",\"requestedSchema\":{\"type\":\"object\",\"properties\":{}}}");
    OwnedRaw::parse(&params).unwrap_or_else(|_| OwnedRaw::empty_object())
}

/// What a user is shown of the arguments of a call, where the tool wants the user asked: one line,
/// without what is never kept either, and with nothing in it that the eye does not see.
pub(super) fn shown(tool: &ViewTool, arguments: Raw<'_>) -> Option<Box<str>> {
    tool.confirm?;
    let kept = redact::json(arguments, &tool.redact);
    Some(line(&String::from_utf8_lossy(&kept)).into())
}

fn line(json: &str) -> String {
    // Within strings JSON has no such characters.
    let flat = json.replace(char::is_control, " ");
    let shown = &flat[..flat.floor_char_boundary(SHOWN_BYTES_MAX)];
    let more = flat.len() - shown.len();
    let shown = visible(shown);
    if more == 0 { shown } else { format!("{shown}… (and {more} bytes more)") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_shown_on_one_bounded_line_without_hidden_characters() {
        assert_eq!(line("{\n\t\"id\":7 }"), "{  \"id\":7 }");
        let hidden = line("{\"a\":\"\u{202e}x\u{200b}\"}");
        assert!(!hidden.contains(['\u{202e}', '\u{200b}']) && hidden.contains("202e"), "{hidden}");
        let long = line(&format!("\"{}\"", "ä".repeat(2000)));
        assert!(long.ends_with("ä… (and 2003 bytes more)"), "{long}");
    }
}
