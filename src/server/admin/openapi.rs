//! The description of the admin plane (OpenAPI 3.1), made from the table of routes.
//!
//! Requests are judged by it: a parameter that is not described is refused, and an answer whose
//! status is not declared is a defect.

use serde_json::{Map, Value, json};

use super::{
    routes::{self, Operation, Route},
    schema, upstream_schema,
};
use crate::catalog::{Action, Kind};

/// A parameter of the query.
#[derive(Debug)]
pub(super) struct Parameter {
    pub(super) name: &'static str,
    kind: &'static str,
    description: &'static str,
}

const fn parameter(name: &'static str, kind: &'static str, description: &'static str) -> Parameter {
    Parameter { name, kind, description }
}

const DRY_RUN: Parameter =
    parameter("dry_run", "boolean", "Only say what would change; nothing is changed");
const COMMENT: Parameter =
    parameter("comment", "string", "Why; kept in the change log, at most 1000 characters");

/// What the query may say.
pub(super) fn parameters(operation: Operation) -> &'static [Parameter] {
    const SESSIONS: &[Parameter] =
        &[parameter("limit", "integer", "At most so many; 100 where absent")];
    const EXPORT: &[Parameter] =
        &[parameter("mask", "boolean", "Put *** in place of the secrets of connections and tools")];
    const CHANGES: &[Parameter] = &[
        parameter("limit", "integer", "At most so many, up to 1000; 20 where absent"),
        parameter("before", "integer", "Only changes before this version"),
    ];
    const ROLLBACK: &[Parameter] = &[
        DRY_RUN,
        COMMENT,
        parameter("expected_version", "integer", "Refuse if the catalog has another version now"),
    ];
    const LIST: &[Parameter] = &[
        parameter("tenant", "string", "Only those of this tenant"),
        parameter("limit", "integer", "At most so many, up to 1000; 100 where absent"),
        parameter("after", "string", "Only those behind this key: `next` of the page before"),
    ];
    const UPSTREAMS: &[Parameter] = &[parameter("tenant", "string", "Only those of this tenant")];
    const WRITE: &[Parameter] = &[DRY_RUN, COMMENT];
    const EXPLAIN: &[Parameter] = &[
        parameter("client", "string", "The client application, as TENANT/CLIENT"),
        parameter("tool", "string", "The name clients call it by, or TOOLSET/OPERATION"),
        parameter("trust", "string", "low, medium or high; the key's, else medium, where absent"),
        parameter("key", "string", "The id of the caller's key, for what is left of its limits"),
    ];
    match operation {
        Operation::Metrics
        | Operation::OpenApi
        | Operation::Status
        | Operation::Keys
        | Operation::CreateKey
        | Operation::RevokeKey
        | Operation::Notify
        | Operation::Apply
        | Operation::Reload
        | Operation::Change
        | Operation::Upstream
        | Operation::ApproveDefinitions
        | Operation::RefuseDefinitions
        | Operation::RefreshUpstream
        | Operation::Read(_) => &[],
        Operation::Upstreams => UPSTREAMS,
        Operation::Sessions => SESSIONS,
        Operation::Explain => EXPLAIN,
        Operation::Export => EXPORT,
        Operation::Changes => CHANGES,
        Operation::Rollback => ROLLBACK,
        Operation::List(_) => LIST,
        Operation::Create(_)
        | Operation::Replace(_)
        | Operation::Patch(_)
        | Operation::Delete(_)
        | Operation::Publish
        | Operation::Unpublish => WRITE,
    }
}

/// The statuses an operation answers with, besides those that every one can.
fn own_statuses(operation: Operation) -> &'static [u16] {
    match operation {
        Operation::Metrics
        | Operation::OpenApi
        | Operation::Status
        | Operation::Sessions
        | Operation::Keys
        | Operation::Notify
        | Operation::Export
        | Operation::List(_)
        | Operation::Upstreams
        | Operation::Changes => &[200],
        Operation::Upstream | Operation::RefreshUpstream => &[200, 404],
        Operation::ApproveDefinitions | Operation::RefuseDefinitions => &[200, 404, 412, 422, 428],
        Operation::CreateKey => &[200, 404, 422],
        Operation::RevokeKey | Operation::Change | Operation::Explain => &[200, 404],
        Operation::Apply => &[200, 412, 422],
        Operation::Reload => &[200, 422],
        Operation::Read(_) => &[200, 304, 404],
        Operation::Create(_) => &[200, 201, 409, 422],
        Operation::Replace(_) => &[200, 201, 412, 422, 428],
        Operation::Patch(_) | Operation::Delete(_) => &[200, 404, 412, 422, 428],
        Operation::Rollback | Operation::Publish | Operation::Unpublish => &[200, 404, 412, 422],
    }
}

/// What every operation can answer, whatever is asked.
const COMMON_STATUSES: &[u16] = &[400, 413, 500, 503];

/// Whether an operation may answer with a status.
pub(super) fn is_declared(operation: Operation, status: u16) -> bool {
    COMMON_STATUSES.contains(&status) || own_statuses(operation).contains(&status)
}

fn meaning(status: u16) -> &'static str {
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

fn summary(operation: Operation) -> String {
    let one = |kind: Kind| kind.as_str().replace('_', " ");
    match operation {
        Operation::Metrics => "Metrics as Prometheus text".to_owned(),
        Operation::OpenApi => "This description".to_owned(),
        Operation::Status => "How the server is".to_owned(),
        Operation::Sessions => "The newest sessions in memory".to_owned(),
        Operation::Keys => "All API keys, without their secrets".to_owned(),
        Operation::CreateKey => "Make an API key; its text is told this once".to_owned(),
        Operation::RevokeKey => "Withdraw an API key".to_owned(),
        Operation::Explain => {
            "Why a call of a tool is allowed, refused, limited, or the tool hidden".to_owned()
        }
        Operation::Notify => "Tell all clients that listen to list their tools again".to_owned(),
        Operation::Apply => "Lay entities over the catalog, all of them or none".to_owned(),
        Operation::Export => "The whole catalog, secrets included unless masked".to_owned(),
        Operation::Reload => "Read the catalog files of the settings again".to_owned(),
        Operation::Changes => "The change log, the newest first".to_owned(),
        Operation::Change => "One change, field by field".to_owned(),
        Operation::Rollback => "Bring the catalog back to what it was at a version".to_owned(),
        Operation::Upstreams => "How the MCP servers behind toolsets stand".to_owned(),
        Operation::Upstream => {
            "How one stands, and each definition of it that waits: its difference, what is \
             remarkable about it"
                .to_owned()
        }
        Operation::ApproveDefinitions => {
            "Accept definitions as they were seen, by their hashes; or all that wait, by ETag"
                .to_owned()
        }
        Operation::RefuseDefinitions => {
            "Refuse definitions as they were seen: they are not served, and do not wait".to_owned()
        }
        Operation::RefreshUpstream => {
            "Ask the MCP server behind a toolset now what it offers".to_owned()
        }
        Operation::List(kind) => {
            format!("List entities: {}, in the order of their keys", one(kind))
        }
        Operation::Create(kind) => format!("Create: {}", one(kind)),
        Operation::Read(kind) => format!("Read: {}; secrets are masked", one(kind)),
        Operation::Replace(kind) => format!("Create or replace: {}", one(kind)),
        Operation::Patch(kind) => format!("Change fields (RFC 7396): {}", one(kind)),
        Operation::Delete(kind) => format!("Delete: {}", one(kind)),
        Operation::Publish => "Show a tool to clients".to_owned(),
        Operation::Unpublish => "Hide a tool from clients".to_owned(),
    }
}

/// The whole description.
pub(super) fn description() -> Value {
    let mut paths = Map::new();
    for route in routes::all() {
        let path = paths.entry(route.path.clone()).or_insert_with(|| json!({}));
        if let Some(methods) = path.as_object_mut() {
            methods.insert(routes::name_of(route.method).to_lowercase(), described(route));
        }
    }
    let mut schemas = Map::new();
    for kind in Kind::ALL {
        schemas.insert(kind.as_str().to_owned(), schema::of(kind));
    }
    schemas.insert("error".to_owned(), error());
    schemas.insert("change".to_owned(), change());
    schemas.insert("result".to_owned(), result());
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Ringway admin API",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Served on the admin socket. Every change of the catalog is one \
                transaction with a version and a place in the change log. Its author is the user at \
                the other end of the socket, and X-Author.",
        },
        "paths": paths,
        "components": { "schemas": schemas },
    })
}

fn described(route: &Route) -> Value {
    let operation = route.operation;
    let mut parameters: Vec<Value> = route
        .path
        .split('/')
        .filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'))
        .map(|name| {
            json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } })
        })
        .collect();
    for Parameter { name, kind, description } in self::parameters(operation) {
        parameters.push(json!({
            "name": name, "in": "query", "description": description, "schema": { "type": kind },
        }));
    }
    let mut header = |name: &str, description: &str| {
        parameters.push(json!({
            "name": name, "in": "header", "description": description,
            "schema": { "type": "string" },
        }));
    };
    let statuses = own_statuses(operation);
    if statuses.contains(&428) {
        header("If-Match", "The ETag it was read with, or *; needed to change what exists");
    }
    if matches!(operation, Operation::Publish | Operation::Unpublish) {
        header("If-Match", "The ETag it was read with");
    }
    if matches!(operation, Operation::Replace(_)) {
        header("If-None-Match", "*: only create");
    }
    if matches!(operation, Operation::Read(_)) {
        header("If-None-Match", "ETags that are known already");
    }
    if parameters_say_change(operation) {
        header(
            "X-Author",
            "Who makes the change, as they say themselves: in quotes behind the user at the socket",
        );
    }
    let mut answers = Map::new();
    for status in statuses.iter().chain(COMMON_STATUSES) {
        answers.insert(status.to_string(), answer(operation, *status));
    }
    let mut described = json!({
        "operationId": operation_id(operation),
        "summary": summary(operation),
        "parameters": parameters,
        "responses": answers,
    });
    if let (Some(body), Some(described)) = (body(operation), described.as_object_mut()) {
        described.insert("requestBody".to_owned(), body);
    }
    described
}

fn parameters_say_change(operation: Operation) -> bool {
    use Operation::{Apply, ApproveDefinitions, RefuseDefinitions};
    matches!(operation, Apply | ApproveDefinitions | RefuseDefinitions)
        || parameters(operation).iter().any(|parameter| parameter.name == DRY_RUN.name)
}

fn operation_id(operation: Operation) -> String {
    let camel = |name: &str| {
        let words = name.split('_').filter_map(|word| {
            let (first, rest) = word.split_at_checked(1)?;
            Some(first.to_uppercase() + rest)
        });
        words.collect::<String>()
    };
    match operation {
        Operation::List(kind) => format!("list{}", camel(&routes::plural(kind))),
        Operation::Create(kind) => format!("create{}", camel(kind.as_str())),
        Operation::Read(kind) => format!("read{}", camel(kind.as_str())),
        Operation::Replace(kind) => format!("replace{}", camel(kind.as_str())),
        Operation::Patch(kind) => format!("patch{}", camel(kind.as_str())),
        Operation::Delete(kind) => format!("delete{}", camel(kind.as_str())),
        other => {
            let name = format!("{other:?}");
            let (first, rest) = name.split_at_checked(1).unwrap_or_default();
            first.to_lowercase() + rest
        }
    }
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

fn body(operation: Operation) -> Option<Value> {
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

fn answer(operation: Operation, status: u16) -> Value {
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

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_route_is_described_and_nothing_else() {
        let description = description();
        let paths = description["paths"].as_object().unwrap();
        let mut described = HashSet::new();
        for (path, methods) in paths {
            for method in methods.as_object().unwrap().keys() {
                described.insert((method.to_uppercase(), path.clone()));
            }
        }
        let routed: HashSet<_> = routes::all()
            .iter()
            .map(|route| (routes::name_of(route.method).to_owned(), route.path.clone()))
            .collect();
        assert_eq!(described, routed);
    }

    #[test]
    fn operations_have_names_of_their_own_and_statuses_with_a_meaning() {
        let mut names = HashSet::new();
        for route in routes::all() {
            let name = operation_id(route.operation);
            assert!(names.insert(name.clone()), "{name} twice");
            for status in own_statuses(route.operation).iter().chain(COMMON_STATUSES) {
                assert!(!meaning(*status).is_empty(), "{name} {status}");
                assert!(is_declared(route.operation, *status));
            }
        }
    }

    #[test]
    fn references_lead_somewhere() {
        let description = description();
        let text = description.to_string();
        let named = text.split("#/components/schemas/").skip(1);
        for name in named.map(|rest| rest.split('"').next().unwrap()) {
            assert!(description["components"]["schemas"][name].is_object(), "{name}");
        }
    }
}
