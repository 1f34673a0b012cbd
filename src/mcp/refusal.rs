//! The errors of this room: one place for their codes and texts.

use std::borrow::Cow;

use crate::json;
use crate::rpc::{RpcError, code};

/// How much of a client's own text an error shows.
const SHOWN_BYTES_MAX: usize = 120;
/// Longest URI that is given back whole as an error's data.
const URI_BYTES_MAX: usize = 2048;

pub(super) fn method_not_found(method: &str) -> RpcError {
    let message = format!("method not found: `{}`", shown(method));
    RpcError::new(code::METHOD_NOT_FOUND, message)
}

/// The answer to a call of a tool that this client does not have, or nobody has.
pub fn unknown_tool(name: &str) -> RpcError {
    let name = shown(name);
    RpcError::invalid_params(format!(
        "unknown tool `{name}`: it may have been renamed or removed; list the tools again"
    ))
}

pub(super) fn unknown_prompt(name: &str) -> RpcError {
    let name = shown(name);
    RpcError::invalid_params(format!("unknown prompt `{name}`; list the prompts again"))
}

/// Up to 2025-11-25 a resource that is not there has a code of its own, with the URI as data.
pub fn unknown_resource(uri: &str) -> RpcError {
    let message = format!("resource not found: `{}`", shown(uri));
    let mut data = Vec::with_capacity(uri.len().min(URI_BYTES_MAX) + 16);
    data.extend_from_slice(b"{\"uri\":");
    json::write_string(&mut data, &uri[..uri.floor_char_boundary(URI_BYTES_MAX)]);
    data.push(b'}');
    let error = RpcError::new(code::RESOURCE_NOT_FOUND, message);
    // What was written is text.
    String::from_utf8(data).map_or(error.clone(), |data| error.with_data(data))
}

/// Client's text for a message: short, and on one line.
fn shown(text: &str) -> Cow<'_, str> {
    let short = &text[..text.floor_char_boundary(SHOWN_BYTES_MAX)];
    if short.len() == text.len() && !short.contains(char::is_control) {
        return Cow::Borrowed(text);
    }
    let mut clean: String =
        short.chars().map(|char| if char.is_control() { ' ' } else { char }).collect();
    if short.len() < text.len() {
        clean.push('…');
    }
    Cow::Owned(clean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_shown_short_and_clean() {
        assert_eq!(unknown_tool("a").message.split(':').next(), Some("unknown tool `a`"));
        assert_eq!(method_not_found("a\nb").message, "method not found: `a b`");
        let long = "é".repeat(5000);
        assert!(unknown_tool(&long).message.len() < 250);
        let error = unknown_resource("a\"b");
        assert_eq!(error.code, -32002);
        assert_eq!(error.data.as_deref(), Some(r#"{"uri":"a\"b"}"#));
        assert!(unknown_resource(&long).data.unwrap().len() < 2100);
    }
}
