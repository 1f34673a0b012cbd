//! The errors of this room: one place for their codes and texts.

use std::borrow::Cow;

use super::Revision;
use crate::json;
use crate::rpc::{RpcError, code};
use crate::sessions::ClientCapabilities;

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
    with_json(RpcError::new(code::RESOURCE_NOT_FOUND, message), data)
}

/// An error as 2026-07-28 has it, where resources that are not there have no code of their own.
pub(super) fn in_newest(error: RpcError) -> RpcError {
    match error.code {
        code::RESOURCE_NOT_FOUND => RpcError { code: code::INVALID_PARAMS, ..error },
        _ => error,
    }
}

/// The answer to a request in a revision that is not spoken here (MCP 2026-07-28, versioning).
pub fn unsupported_version(asked: &str) -> RpcError {
    let mut data = b"{\"supported\":".to_vec();
    write_supported(&mut data);
    data.extend_from_slice(b",\"requested\":");
    json::write_string(&mut data, &shown(asked));
    data.push(b'}');
    with_json(RpcError::new(code::UNSUPPORTED_VERSION, "unsupported protocol version"), data)
}

/// The answer to a request that needs something of its client which the client has not declared (MCP
/// 2026-07-28, client capabilities).
pub fn missing_capabilities(needed: ClientCapabilities) -> RpcError {
    type Known = ClientCapabilities;
    type Members = &'static [(&'static str, Known)];
    let parts: [(&str, Known, Members); 3] = [
        (
            "elicitation",
            Known::NONE,
            &[("form", Known::ELICITATION_FORM), ("url", Known::ELICITATION_URL)],
        ),
        ("roots", Known::ROOTS, &[]),
        (
            "sampling",
            Known::SAMPLING,
            &[("context", Known::SAMPLING_CONTEXT), ("tools", Known::SAMPLING_TOOLS)],
        ),
    ];
    let is_needed = |known: Known| known != Known::NONE && needed.contains(known);
    let mut named = Vec::new();
    for (name, itself, members) in parts {
        let members: Vec<String> = members
            .iter()
            .filter(|(_, known)| is_needed(*known))
            .map(|(member, _)| format!("\"{member}\":{{}}"))
            .collect();
        if is_needed(itself) || !members.is_empty() {
            named.push(format!("\"{name}\":{{{}}}", members.join(",")));
        }
    }
    let data = format!("{{\"requiredCapabilities\":{{{}}}}}", named.join(","));
    let text = "this request needs a client that can be asked; the data say for what";
    RpcError::new(code::MISSING_CAPABILITY, text).with_data(data)
}

/// The revisions that are spoken here, the newest first: an array of texts.
pub(super) fn write_supported(out: &mut Vec<u8>) {
    for (index, revision) in Revision::ALL.iter().rev().enumerate() {
        out.push(if index == 0 { b'[' } else { b',' });
        json::write_string(out, revision.text());
    }
    out.push(b']');
}

fn with_json(error: RpcError, data: Vec<u8>) -> RpcError {
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
        assert!(unsupported_version(&long).data.unwrap().len() < 300);
    }

    #[test]
    fn refusals_of_the_newest_revision_have_data() {
        type Known = ClientCapabilities;
        let error = unsupported_version("1900-\"");
        assert_eq!(error.code, -32022);
        let supported = r#"["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"]"#;
        let expected = format!(r#"{{"supported":{supported},"requested":"1900-\""}}"#);
        assert_eq!(error.data.as_deref(), Some(&*expected));
        for (needed, expected) in [
            (Known::SAMPLING, r#"{"sampling":{}}"#),
            (Known::SAMPLING.with(Known::SAMPLING_TOOLS), r#"{"sampling":{"tools":{}}}"#),
            (Known::ELICITATION_URL.with(Known::ROOTS), r#"{"elicitation":{"url":{}},"roots":{}}"#),
        ] {
            let error = missing_capabilities(needed);
            let data = format!(r#"{{"requiredCapabilities":{expected}}}"#);
            assert_eq!((error.code, error.data.as_deref()), (-32021, Some(&*data)));
        }
        assert_eq!(in_newest(unknown_resource("a")).code, -32602);
        assert_eq!(in_newest(method_not_found("a")).code, -32601);
    }
}
