//! What stands in the HTTP head of a request to a server besides what every API is sent.
//!
//! From 2026-07-28 on the head mirrors the body, so that who stands between can see what is asked
//! without reading it (MCP 2026-07-28, standard and custom headers). A value that a header cannot
//! hold as it is goes in as base64.

use crate::http::{is_field_name, mirrored::encode};
use crate::json::{Kind, Raw};
use crate::sessions::Revision;

/// Parameters of one tool that go into headers.
const PARAMETERS_MAX: usize = 64;

/// What is posted, as far as its head says so.
#[derive(Debug, Clone, Copy)]
pub struct Posted<'a> {
    /// The revision that is spoken; none before that is agreed on.
    pub revision: Option<Revision>,
    /// The session at the server.
    pub session: Option<&'a str>,
    /// The method; none for an answer.
    pub method: Option<&'a str>,
    /// The params.
    pub params: Option<Raw<'a>>,
    /// The input schema of the tool that is called, where it says that some of it goes into
    /// headers.
    pub schema: Option<Raw<'a>>,
}

/// Names and values.
pub fn request_headers(posted: &Posted<'_>) -> Vec<(String, String)> {
    let mut headers = Vec::with_capacity(6);
    let mut add = |name: &str, value: String| headers.push((name.to_owned(), value));
    add("Accept", "application/json, text/event-stream".to_owned());
    // Events are to be read as they come.
    add("Accept-Encoding", "identity".to_owned());
    if let Some(session) = posted.session {
        add("Mcp-Session-Id", session.to_owned());
    }
    let Some(revision) = posted.revision else { return headers };
    if revision >= Revision::V20250618 {
        add("MCP-Protocol-Version", revision.text().to_owned());
    }
    let (Some(method), true) = (posted.method, revision.is_modern()) else { return headers };
    add("Mcp-Method", method.to_owned());
    let named = match method {
        "tools/call" | "prompts/get" => Some("name"),
        "resources/read" => Some("uri"),
        _ => None,
    };
    let params = posted.params.unwrap_or(Raw::EMPTY_OBJECT);
    let name = named.and_then(|key| params.get(key)).and_then(Raw::as_str);
    if let Some(name) = name {
        add("Mcp-Name", encode(&name).into_owned());
    }
    if let Some(schema) = posted.schema {
        let arguments = params.get("arguments").unwrap_or(Raw::EMPTY_OBJECT);
        let mut found = Vec::new();
        // A tool with a fault is not listed, so it is not called.
        let _ = mirrored(schema, &mut |header, path| {
            let value = path.iter().try_fold(arguments, |value, key| value.get(key));
            if let Some(value) = value.and_then(scalar) {
                found.push((format!("Mcp-Param-{header}"), encode(&value).into_owned()));
            }
        });
        headers.append(&mut found);
    }
    headers
}

/// Why a tool with this input schema must not be listed; nothing where its headers are right.
pub fn faulty_headers(schema: Raw<'_>) -> Option<String> {
    mirrored(schema, &mut |_, _| {}).err()
}

/// An argument as a header has it. What no header may mirror is left out.
fn scalar(value: Raw<'_>) -> Option<String> {
    match value.kind() {
        Kind::String => value.as_str().map(Into::into),
        Kind::Bool => Some(value.text().to_owned()),
        Kind::Number => Some(whole_number(value.text())),
        Kind::Null | Kind::Array | Kind::Object => None,
    }
}

/// An integer in decimal, however it was written: `1.0` is one.
fn whole_number(text: &str) -> String {
    match text.split_once('.') {
        Some((whole, fraction))
            if !fraction.is_empty() && fraction.bytes().all(|digit| digit == b'0') =>
        {
            whole.to_owned()
        }
        _ => text.to_owned(),
    }
}

/// Gives each property that goes into a header, by its path, to `found`.
///
/// # Errors
/// What breaks the rules for it.
fn mirrored(schema: Raw<'_>, found: &mut dyn FnMut(&str, &[String])) -> Result<(), String> {
    let mut names: Vec<String> = Vec::new();
    // Open properties, each with its path. The depth of JSON bounds it.
    let mut open: Vec<(Raw<'_>, Vec<String>)> = vec![(schema, Vec::new())];
    while let Some((schema, path)) = open.pop() {
        for (key, property) in schema.get("properties").into_iter().flat_map(Raw::entries) {
            let mut path = path.clone();
            path.push(key.into_owned());
            if let Some(header) = property.get("x-mcp-header") {
                let header = header.as_str().filter(|name| is_field_name(name));
                let Some(header) = header else {
                    return Err(format!("x-mcp-header of {:?} is no header name", path.join(".")));
                };
                if names.iter().any(|other| other.eq_ignore_ascii_case(&header)) {
                    return Err(format!("x-mcp-header {header:?} stands there twice"));
                }
                let kind = property.get("type").and_then(Raw::as_str);
                if !matches!(kind.as_deref(), Some("string" | "integer" | "boolean")) {
                    return Err(format!(
                        "x-mcp-header {header:?} is of what is no string, integer or boolean"
                    ));
                }
                if names.len() == PARAMETERS_MAX {
                    return Err(format!("more than {PARAMETERS_MAX} x-mcp-header"));
                }
                found(&header, &path);
                names.push(header.into_owned());
            }
            open.push((property, path));
        }
    }
    let occurrences = count(schema);
    if occurrences > names.len() {
        return Err("x-mcp-header stands where `properties` alone do not lead".to_owned());
    }
    Ok(())
}

/// How often the keyword stands anywhere in a schema, but for properties of that name.
fn count(schema: Raw<'_>) -> usize {
    let mut occurrences = 0;
    let mut open = vec![(schema, false)];
    while let Some((value, names_properties)) = open.pop() {
        for (key, member) in value.entries() {
            // What is a value and no schema may hold anything.
            if !names_properties && matches!(&*key, "const" | "enum" | "default" | "examples") {
                continue;
            }
            occurrences += usize::from(!names_properties && key == "x-mcp-header");
            open.push((member, !names_properties && key == "properties"));
        }
        open.extend(value.items().map(|item| (item, false)));
    }
    occurrences
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::OwnedRaw;

    fn raw(text: &str) -> OwnedRaw {
        OwnedRaw::parse(text.as_bytes()).unwrap()
    }

    fn headers(posted: &Posted<'_>) -> Vec<(String, String)> {
        let mut headers = request_headers(posted);
        headers.retain(|(name, _)| !name.starts_with("Accept"));
        headers
    }

    fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
        list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    const NOTHING: Posted<'_> =
        Posted { revision: None, session: None, method: None, params: None, schema: None };

    #[test]
    fn each_revision_has_its_headers() {
        assert!(headers(&NOTHING).is_empty());
        let session = Posted { session: Some("s"), method: Some("tools/call"), ..NOTHING };
        let of = |revision| headers(&Posted { revision: Some(revision), ..session });
        assert_eq!(of(Revision::V20250326), pairs(&[("Mcp-Session-Id", "s")]));
        assert_eq!(
            of(Revision::V20251125),
            pairs(&[("Mcp-Session-Id", "s"), ("MCP-Protocol-Version", "2025-11-25")])
        );
        let params = raw(r#"{"name":"größe","uri":"x"}"#);
        let modern = Posted {
            revision: Some(Revision::V20260728),
            method: Some("tools/call"),
            params: Some(params.as_raw()),
            ..NOTHING
        };
        let encoded = encode("größe").into_owned();
        let expected = [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call")];
        let mut expected = pairs(&expected);
        expected.push(("Mcp-Name".to_owned(), encoded));
        assert_eq!(headers(&modern), expected);
        let read = headers(&Posted { method: Some("resources/read"), ..modern });
        assert!(read.contains(&("Mcp-Name".to_owned(), "x".to_owned())));
    }

    #[test]
    fn arguments_go_into_the_headers_that_their_schema_names() {
        let schema = raw(r#"{"type":"object","properties":{
            "region":{"type":"string","x-mcp-header":"Region"},
            "x-mcp-header":{"type":"string"},
            "deep":{"type":"object","properties":{
                "count":{"type":"integer","x-mcp-header":"Count"},
                "dry":{"type":"boolean","x-mcp-header":"Dry"},
                "none":{"type":"string","x-mcp-header":"None"}}}}}"#);
        assert_eq!(faulty_headers(schema.as_raw()), None);
        let params = raw(
            r#"{"name":"t","arguments":{"region":" a","deep":{"count":7.0,"dry":true,"none":null}}}"#,
        );
        let posted = Posted {
            revision: Some(Revision::V20260728),
            method: Some("tools/call"),
            params: Some(params.as_raw()),
            schema: Some(schema.as_raw()),
            ..NOTHING
        };
        let mut found = headers(&posted);
        found.retain(|(name, _)| name.starts_with("Mcp-Param-"));
        found.sort();
        let region = encode(" a");
        let expected =
            [("Mcp-Param-Count", "7"), ("Mcp-Param-Dry", "true"), ("Mcp-Param-Region", &region)];
        assert_eq!(found, pairs(&expected));
    }

    #[test]
    fn schemas_that_break_the_rules_are_found() {
        for (properties, expected) in [
            (r#"{"a":{"type":"string","x-mcp-header":"a b"}}"#, "is no header name"),
            (r#"{"a":{"type":"string","x-mcp-header":7}}"#, "is no header name"),
            (r#"{"a":{"type":"number","x-mcp-header":"A"}}"#, "no string, integer"),
            (r#"{"a":{"x-mcp-header":"A"}}"#, "no string, integer"),
            (
                r#"{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}"#,
                "twice",
            ),
            (
                r#"{"a":{"type":"array","items":{"type":"string","x-mcp-header":"A"}}}"#,
                "alone do not lead",
            ),
            (
                r#"{"a":{"anyOf":[{"properties":{"b":{"type":"string","x-mcp-header":"A"}}}]}}"#,
                "alone do not lead",
            ),
        ] {
            let schema = raw(&format!(r#"{{"type":"object","properties":{properties}}}"#));
            let fault = faulty_headers(schema.as_raw()).unwrap_or_default();
            assert!(fault.contains(expected), "{properties}: {fault}");
        }
        let harmless = raw(r#"{"properties":{"a":{"default":{"x-mcp-header":"A"}}}}"#);
        assert_eq!(faulty_headers(harmless.as_raw()), None);
    }
}
