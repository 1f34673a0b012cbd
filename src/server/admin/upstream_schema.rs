//! The form of what is said of upstream MCP servers, for the description of the admin plane.

use serde_json::{Value, json};

use crate::governance::definitions::Flaw;

/// What an operator decides about.
pub(super) fn decided() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "all": {
                "type": "boolean",
                "description": "Everything that waits; needs If-Match with the ETag it was read with",
            },
            "definitions": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["kind", "hash"],
                    "additionalProperties": false,
                    "properties": { "kind": kind(), "name": text(), "hash": text() },
                },
                "description": "These, as they were seen; all of them or none",
            },
        },
    })
}

/// How one server stands.
pub(super) fn summary() -> Value {
    let time = json!({ "type": ["string", "null"], "format": "date-time" });
    let optional = json!({ "type": ["string", "null"] });
    let count = json!({ "type": "integer" });
    json!({
        "type": "object",
        "properties": {
            "tenant": text(),
            "toolset": text(),
            "status": {
                "enum": ["connected", "waiting", "faulty", "stale", "down", "unassigned"],
                "description": "waiting: not asked since the start; faulty: what it offers cannot \
                    be kept or shown; stale: down, and still in the lists; unassigned: nobody is \
                    shown it, so it is not asked",
            },
            "down_since": time,
            "error": optional,
            "asked": time,
            "answered": time,
            "era": { "enum": ["legacy", "modern", null] },
            "revision": optional,
            "server_name": optional,
            "server_version": optional,
            "trust": { "enum": ["pin", "approve_new", "trust", null] },
            "accepted": count,
            "pending": count,
            "refused": count,
            "gone": count,
            "findings": count,
            "sessions": { "type": ["integer", "null"] },
        },
    })
}

/// The same, with all definitions that are not served.
pub(super) fn whole() -> Value {
    let mut whole = summary();
    if let Some(properties) = whole["properties"].as_object_mut() {
        properties.insert("notes".to_owned(), json!({ "type": "array", "items": text() }));
        properties.insert("waiting".to_owned(), list(&withheld()));
        properties.insert("withheld".to_owned(), list(&withheld()));
        let gone = json!({
            "type": "object",
            "properties": { "kind": kind(), "name": text(), "hash": text(), "since": text() },
        });
        properties.insert("missing".to_owned(), list(&gone));
        let served = json!({
            "type": "object",
            "properties": { "kind": kind(), "name": text(), "hash": text() },
        });
        properties.insert("definitions".to_owned(), list(&served));
        let tag = json!({ "type": "string", "description": "Names what waits: the ETag" });
        properties.insert("tag".to_owned(), tag);
    }
    whole
}

fn withheld() -> Value {
    json!({
        "type": "object",
        "properties": {
            "kind": kind(),
            "name": text(),
            "hash": { "type": "string", "description": "SHA-256 of the definition" },
            "change": { "enum": ["new", "changed"] },
            "since": text(),
            "refused": {
                "type": ["object", "null"],
                "properties": { "by": text(), "at": text() },
            },
            "findings": list(&json!({
                "type": "object",
                "properties": {
                    "flaw": { "enum": Flaw::ALL.map(Flaw::as_str) },
                    "field": text(),
                    "detail": text(),
                    "withholds": { "type": "boolean" },
                },
            })),
            "differences": {
                "type": ["array", "null"],
                "items": {
                    "type": "object",
                    "properties": { "field": text(), "before": {}, "after": {} },
                },
            },
            "definition": {},
        },
    })
}

fn list(items: &Value) -> Value {
    json!({ "type": "array", "items": items })
}

fn text() -> Value {
    json!({ "type": "string" })
}

fn kind() -> Value {
    json!({ "enum": ["tool", "prompt", "resource", "resource_template", "instructions"] })
}
