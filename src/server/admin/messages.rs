//! What the admin plane takes and answers, as its description says it.

use serde_json::{Map, Value, json};

use super::{
    openapi::{COMMENT, DRY_RUN},
    routes::Operation,
    schema, upstream_schema,
};
use crate::catalog::{Action, Kind};

/// The schemas that bodies and answers refer to.
pub(super) fn schemas() -> Map<String, Value> {
    let mut schemas = Map::new();
    for kind in Kind::ALL {
        schemas.insert(kind.as_str().to_owned(), schema::of(kind));
    }
    schemas.insert("error".to_owned(), error());
    schemas.insert("change".to_owned(), change());
    schemas.insert("result".to_owned(), result());
    schemas
}

/// What a status says, whoever answers with it.
pub(super) fn meaning(status: u16) -> &'static str {
    match status {
        200 => "Done; with dry_run: what would be done",
        201 => "Created",
        304 => "As in If-None-Match",
        400 => "The request is malformed",
        404 => "There is no such thing",
        409 => "It exists already",
        412 => "Somebody else changed it meanwhile",
        413 => "The body is too large",
        422 => {
            "It makes no sense; the text names each problem, with file and line where there is one"
        }
        428 => "A change of what exists needs If-Match",
        500 => "The store holds something this release cannot read",
        503 => "Nothing was done: the server is overloaded or its store cannot write",
        _ => "",
    }
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// The body of an operation's requests, where they have one.
pub(super) fn body(operation: Operation) -> Option<Value> {
    let (media, schema) = match operation {
        Operation::Create(kind) | Operation::Replace(kind) => {
            ("application/json", reference(kind.as_str()))
        }
        Operation::Patch(_) => ("application/merge-patch+json", json!({ "type": "object" })),
        Operation::CreateKey => (
            "application/json",
            json!({
                "type": "object",
                "required": ["tenant", "client_application"],
                "additionalProperties": false,
                "properties": {
                    "tenant": { "type": "string" },
                    "client_application": { "type": "string" },
                    "label": { "type": "string" },
                    "expires_seconds": { "type": "integer" },
                    "trust": { "enum": ["low", "medium", "high"], "default": "medium" },
                },
            }),
        ),
        Operation::Apply => (
            "application/json",
            json!({
                "type": "object",
                "required": ["rows"],
                "additionalProperties": false,
                "properties": {
                    "rows": {
                        "type": "object",
                        "description": "As /export gives them",
                        "additionalProperties": { "type": "string" },
                    },
                    "dry_run": { "type": "boolean", "description": DRY_RUN.description },
                    "prune": {
                        "type": "boolean",
                        "description": "Take out everything that is not in rows",
                    },
                    "expected_version": {
                        "type": "integer",
                        "description": "Refuse if the catalog has another version now",
                    },
                    "comment": { "type": "string", "description": COMMENT.description },
                },
            }),
        ),
        Operation::ApproveDefinitions | Operation::RefuseDefinitions => {
            ("application/json", upstream_schema::decided())
        }
        _ => return None,
    };
    Some(json!({ "required": true, "content": { media: { "schema": schema } } }))
}

/// What an operation answers with a status.
pub(super) fn answer(operation: Operation, status: u16) -> Value {
    let description = meaning(status);
    if status == 304 {
        return json!({ "description": description });
    }
    let schema = match operation {
        _ if status >= 400 => reference("error"),
        Operation::Metrics => {
            let text = json!({ "schema": { "type": "string" } });
            return json!({ "description": description, "content": { "text/plain": text } });
        }
        Operation::Read(kind) => reference(kind.as_str()),
        Operation::List(kind) => json!({
            "type": "object",
            "properties": {
                "items": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "entity": reference(kind.as_str()),
                            "etag": { "type": "string" },
                            "origin": { "type": "string" },
                        },
                    },
                },
                "next": { "type": ["string", "null"], "description": "The next page's `after`" },
            },
        }),
        Operation::Apply
        | Operation::Reload
        | Operation::Rollback
        | Operation::Create(_)
        | Operation::Replace(_)
        | Operation::Patch(_)
        | Operation::Delete(_)
        | Operation::Publish
        | Operation::Unpublish => reference("result"),
        Operation::Change => reference("change"),
        Operation::Upstreams => json!({
            "type": "object",
            "properties": {
                "upstreams": { "type": "array", "items": upstream_schema::summary() },
            },
        }),
        Operation::Upstream
        | Operation::ApproveDefinitions
        | Operation::RefuseDefinitions
        | Operation::RefreshUpstream => upstream_schema::whole(),
        Operation::Changes => json!({
            "type": "object",
            "properties": {
                "changes": { "type": "array", "items": reference("change") },
                "next": { "type": ["integer", "null"], "description": "The next page's `before`" },
                "oldest": { "type": "integer" },
            },
        }),
        _ => json!({ "type": "object" }),
    };
    json!({ "description": description, "content": { "application/json": { "schema": schema } } })
}

fn error() -> Value {
    json!({
        "type": "object",
        "required": ["error"],
        "properties": {
            "error": { "type": "string", "description": "What is wrong, and what to do" },
        },
    })
}

fn entity_changes() -> Value {
    json!({
        "type": "array",
        "items": {
            "type": "object",
            "required": ["kind", "key", "change", "fields"],
            "properties": {
                "kind": { "enum": Kind::ALL },
                "key": { "type": "string" },
                "change": { "enum": ["added", "changed", "removed"] },
                "fields": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["field"],
                        "properties": { "field": { "type": "string" }, "before": {}, "after": {} },
                    },
                },
            },
        },
    })
}

fn change() -> Value {
    json!({
        "type": "object",
        "required": ["version", "time", "author", "action"],
        "properties": {
            "version": { "type": "integer" },
            "time": { "type": "string", "format": "date-time" },
            "author": { "type": "string" },
            "action": { "enum": Action::ALL },
            "restored": { "type": ["integer", "null"] },
            "comment": { "type": "string" },
            "added": { "type": "integer" },
            "changed": { "type": "integer" },
            "removed": { "type": "integer" },
            "changes": entity_changes(),
        },
    })
}

fn result() -> Value {
    json!({
        "type": "object",
        "required": ["version", "dry_run", "changes", "remarks", "warnings"],
        "properties": {
            "version": { "type": "integer", "description": "Of the catalog, now" },
            "dry_run": { "type": "boolean" },
            "changes": entity_changes(),
            "remarks": {
                "type": "array",
                "items": { "type": "string" },
                "description": "What of the whole catalog has no effect: patterns that no tool \
                                fits, paths that no field is at",
            },
            "warnings": {
                "type": "array",
                "items": { "type": "string" },
                "description": "What will make calls fail: secrets that are missing, addresses that \
                                the egress policy refuses",
            },
            "entity": { "description": "As it is now, where one was changed" },
            "etag": { "type": "string" },
        },
    })
}
