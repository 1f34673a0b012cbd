//! Arguments whose values stand in headers of the request too (MCP 2026-07-28, `x-mcp-header`), so
//! that who is on the way can route by them.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::shape::{Content, Field, Node};
use super::{FieldRule, MappingError, MappingErrors, schema};
use crate::http::is_field_name;

/// The word of a schema that names the header, without what all such headers begin with.
const HEADER_WORD: &str = "x-mcp-header";
/// What they all begin with.
pub const HEADER_PREFIX: &str = "Mcp-Param-";
/// Longest name of a header, without that.
const NAME_BYTES_MAX: usize = 64;
/// How deep schemas are looked into.
const LEVELS_MAX: usize = 32;

/// An argument that a header repeats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MirroredArgument {
    /// The header's name, without [`HEADER_PREFIX`].
    pub header: Box<str>,
    /// Where the argument is: names of objects within each other.
    pub path: Box<[Box<str>]>,
}

impl MirroredArgument {
    /// Those of the rules of a request.
    pub(super) fn all(
        fields: &[Field],
        rules: &[FieldRule],
        errors: &mut MappingErrors,
    ) -> Box<[Self]> {
        let mut found = Vec::new();
        for field in fields {
            collect(&field.node, rules, &mut Vec::new(), &mut found);
        }
        let mut names = HashSet::new();
        for (index, rule) in rules.iter().enumerate() {
            let Some(name) = &rule.mcp_header else { continue };
            let problem = if name.len() > NAME_BYTES_MAX || !is_field_name(name) {
                "mcp_header is no name of a header; use up to 64 letters, digits and hyphens"
            } else if !names.insert(name.to_ascii_lowercase()) {
                "another field has the same mcp_header; give one of them another name"
            } else if !found.iter().any(|(place, _)| *place == index) {
                "mcp_header is for a string, an integer or a boolean that clients write, that is \
                 never null and in no array; remove it"
            } else {
                continue;
            };
            errors.note::<()>(Err(MappingError::Rule { field: rule.name(), problem }));
        }
        found.into_iter().map(|(_, argument)| argument).collect()
    }

    /// Those that a schema names, by the names of properties; none where it names them in a way that
    /// clients refuse.
    pub fn in_schema(schema: &Value) -> Box<[Self]> {
        let mut found = Vec::new();
        let mut names = HashSet::new();
        if read(schema, &mut Vec::new(), &mut names, &mut found) { found.into() } else { [].into() }
    }

    /// Names the header in a schema, where the argument is told as what a header can carry. A schema
    /// that does not show the argument stays as it is.
    pub fn mark(&self, schema: &mut Value) {
        let property = self
            .path
            .iter()
            .try_fold(schema, |schema, name| schema.get_mut("properties")?.get_mut(name.as_ref()));
        if let Some(Value::Object(property)) = property.filter(|property| is_mirrored(property)) {
            property.insert(HEADER_WORD.to_owned(), json!(self.header));
        }
    }
}

/// Follows the tree of the rules, through objects only.
fn collect(
    node: &Node,
    rules: &[FieldRule],
    path: &mut Vec<Box<str>>,
    found: &mut Vec<(usize, MirroredArgument)>,
) {
    if node.is_hidden(rules) {
        return;
    }
    path.push(node.exposed.clone());
    if let Content::Object(members) = &node.content {
        for member in members {
            collect(member, rules, path, found);
        }
    } else if let Some((index, rule)) = node.rule.and_then(|at| Some((at, rules.get(at)?)))
        && let Some(header) = &rule.mcp_header
        && is_mirrored(&Value::Object(schema::node(node, rules)))
    {
        let path = path.clone().into();
        found.push((index, MirroredArgument { header: header.as_str().into(), path }));
    }
    path.pop();
}

/// Whether a schema is of one value that a header can carry.
fn is_mirrored(schema: &Value) -> bool {
    let word = schema.get("type").and_then(Value::as_str);
    matches!(word, Some("string" | "integer" | "boolean"))
}

/// Reads the properties of a schema; false where clients refuse it.
fn read(
    schema: &Value,
    path: &mut Vec<Box<str>>,
    names: &mut HashSet<String>,
    found: &mut Vec<MirroredArgument>,
) -> bool {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return true };
    if path.len() >= LEVELS_MAX {
        return true;
    }
    properties.iter().all(|(name, property)| {
        path.push(name.as_str().into());
        let is_good = match property.get(HEADER_WORD) {
            None => true,
            Some(Value::String(header))
                if is_field_name(header)
                    && is_mirrored(property)
                    && names.insert(header.to_ascii_lowercase()) =>
            {
                let path = path.clone().into();
                found.push(MirroredArgument { header: header.as_str().into(), path });
                true
            }
            Some(_) => false,
        };
        let is_good = is_good && read(property, path, names, found);
        path.pop();
        is_good
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapping::{RequestBody, RequestPlan};

    fn compile(rules: &Value) -> Result<RequestPlan, String> {
        let rules: Vec<FieldRule> = serde_json::from_value(rules.clone()).unwrap();
        let plan = RequestPlan::compile("POST", "/x", &rules, RequestBody::default());
        plan.map_err(|errors| errors.to_string())
    }

    #[test]
    fn rules_name_headers_of_single_values() {
        let plan = compile(&json!([
            {"source_field_name": "region", "mcp_header": "Region", "location": "query"},
            {"source_field_name": "order.lines", "type": "integer", "exposed_field_name": "count",
             "mcp_header": "Count"},
            {"source_field_name": "order.id", "type": "integer", "as_string": true,
             "mcp_header": "Id"},
            {"source_field_name": "dry", "type": "boolean", "mcp_header": "dry-run"},
        ]));
        let plan = plan.unwrap();
        let mut told: Vec<(String, String)> = plan
            .mirrored()
            .iter()
            .map(|one| (one.header.to_string(), one.path.join(".")))
            .collect();
        told.sort();
        let text = |(header, path): (&str, &str)| (header.to_owned(), path.to_owned());
        let expected = [
            ("Count", "order.count"),
            ("Id", "order.id"),
            ("Region", "region"),
            ("dry-run", "dry"),
        ];
        assert_eq!(told, expected.map(text));

        // Told in a schema and read from it again; the schema that arguments are held to has none.
        let mut schema = plan.input_schema().clone();
        assert!(MirroredArgument::in_schema(&schema).is_empty());
        plan.mirrored().iter().for_each(|one| one.mark(&mut schema));
        assert_eq!(schema["properties"]["order"]["properties"]["count"][HEADER_WORD], "Count");
        let mut read = MirroredArgument::in_schema(&schema).into_vec();
        let mut own = plan.mirrored().to_vec();
        read.sort_by(|one, other| one.header.cmp(&other.header));
        own.sort_by(|one, other| one.header.cmp(&other.header));
        assert_eq!(read, own);
        // What is not told, or not as one value, is left alone.
        let mut other = json!({"properties": {"region": {"type": ["string", "null"]}}});
        let before = other.clone();
        plan.mirrored().iter().for_each(|one| one.mark(&mut other));
        assert_eq!(other, before);
    }

    #[test]
    fn headers_that_nobody_could_send_are_faults() {
        for (rules, part) in [
            (json!([{"source_field_name": "a", "mcp_header": ""}]), "no name of a header"),
            (json!([{"source_field_name": "a", "mcp_header": "a b"}]), "no name of a header"),
            (json!([{"source_field_name": "a", "mcp_header": "x".repeat(65)}]), "no name"),
            (
                json!([{"source_field_name": "a", "mcp_header": "X"},
                       {"source_field_name": "b", "mcp_header": "x"}]),
                "same mcp_header",
            ),
            (json!([{"source_field_name": "a", "type": "number", "mcp_header": "X"}]), "string"),
            (json!([{"source_field_name": "a[*]", "mcp_header": "X"}]), "in no array"),
            (json!([{"source_field_name": "a[*].b", "mcp_header": "X"}]), "in no array"),
            (json!([{"source_field_name": "a", "nullable": true, "mcp_header": "X"}]), "null"),
            (json!([{"source_field_name": "a", "constant": "c", "mcp_header": "X"}]), "write"),
            (json!([{"source_field_name": "a", "type": "object", "mcp_header": "X"}]), "string"),
            (json!([{"source_field_name": "a", "schema": {}, "mcp_header": "X"}]), "string"),
        ] {
            let error = compile(&rules).unwrap_err();
            assert!(error.contains(part), "{rules}: {error}");
        }
    }

    #[test]
    fn a_schema_that_clients_refuse_names_nothing() {
        let property = |header: Value, kind: &str| json!({"type": kind, "x-mcp-header": header});
        let schema =
            |one: Value| json!({"properties": {"a": property(json!("A"), "string"), "b": one}});
        assert_eq!(MirroredArgument::in_schema(&schema(property(json!("B"), "integer"))).len(), 2);
        for one in [
            property(json!("a"), "string"),
            property(json!("B b"), "string"),
            property(json!(""), "string"),
            property(json!(1), "string"),
            property(json!("B"), "number"),
        ] {
            assert!(MirroredArgument::in_schema(&schema(one)).is_empty());
        }
        // Of items there may be many: clients do not look there.
        let items = json!({"type": "array", "items": property(json!("B"), "string")});
        assert_eq!(MirroredArgument::in_schema(&schema(items)).len(), 1);
    }
}
