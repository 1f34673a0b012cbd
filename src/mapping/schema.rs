//! JSON Schemas from field rules, on exposed names. Plain enough for every client: the root is an
//! object without combinators, arrays always say what their items are, no references.

use serde_json::{Map, Value, json};

use super::kinds::Kinds;
use super::shape::{self, Content, Field, Node};
use super::{FieldRule, FieldType, MappingErrors, check_count, digits, file};

/// How deep raw schemas are followed. They are bounded more tightly where they are read.
const LEVELS_MAX: usize = 64;

/// The input schema of a tool.
///
/// Nesting and `[*]` of the source paths are kept, constants are hidden. An object that rules
/// describe takes no other members, unless its rule has `additional_properties`.
///
/// # Errors
///
/// Names every rule that does not fit and what to change.
pub fn input_schema(rules: &[FieldRule]) -> Result<Value, MappingErrors> {
    check_count(rules)?;
    let mut errors = MappingErrors::default();
    let fields = shape::request_fields(rules, &mut errors);
    errors.check()?;
    Ok(schema_of_fields(&fields, rules))
}

pub(super) fn schema_of_fields(fields: &[Field], rules: &[FieldRule]) -> Value {
    let nodes = fields.iter().map(|field| &field.node);
    Value::Object(object(nodes, rules, None))
}

/// What is told of what a tool answers.
#[derive(Debug)]
pub struct OutputSchema {
    /// The schema of an object; where an answer is none, that of the wrapper around it.
    pub schema: Value,
    /// Whether the answer that the rules describe is no object.
    pub is_wrapped: bool,
}

/// The output schema of a tool: names, nesting and descriptions of what it answers, or `None`
/// where no rule says anything.
///
/// Every answer conforms to it, whatever the API sends, so a client that checks answers never
/// refuses one: types of fields are told in their descriptions and not demanded, and no member is
/// forbidden, whether others are picked out or pass. An answer that is
/// not an object has to be wrapped as `{"result": …}` before it is sent as structured content; the
/// schema of a mapping whose root is an array is already that of the wrapper.
///
/// # Errors
///
/// Names every rule that does not fit and what to change.
pub fn output_schema(rules: &[FieldRule]) -> Result<Option<Value>, MappingErrors> {
    Ok(output(rules)?.map(|output| output.schema))
}

/// The same, and what it is of.
///
/// # Errors
///
/// As [`output_schema`].
pub fn output(rules: &[FieldRule]) -> Result<Option<OutputSchema>, MappingErrors> {
    check_count(rules)?;
    if rules.is_empty() {
        return Ok(None);
    }
    let mut errors = MappingErrors::default();
    let root = shape::body(rules, &mut errors);
    errors.check()?;
    let mut schema = described(&root, rules);
    let is_wrapped = !matches!(root.content, Content::Object(_));
    if is_wrapped {
        schema = Map::from_iter([("properties".to_owned(), json!({ "result": schema }))]);
    }
    schema.insert("type".to_owned(), json!("object"));
    Ok(Some(OutputSchema { schema: Value::Object(schema), is_wrapped }))
}

fn object<'a>(
    members: impl Iterator<Item = &'a Node>,
    rules: &[FieldRule],
    additional: Option<&Value>,
) -> Map<String, Value> {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for member in members.filter(|member| !member.is_hidden(rules)) {
        properties.insert(member.exposed.to_string(), Value::Object(node(member, rules)));
        if member.is_required(rules) {
            required.push(member.exposed.to_string());
        }
    }
    let mut schema = Map::new();
    schema.insert("type".to_owned(), json!("object"));
    if !properties.is_empty() {
        schema.insert("properties".to_owned(), Value::Object(properties));
    }
    if !required.is_empty() {
        required.sort_unstable();
        schema.insert("required".to_owned(), json!(required));
    }
    schema.insert("additionalProperties".to_owned(), additional.cloned().unwrap_or(json!(false)));
    schema
}

pub(super) fn node(node: &Node, rules: &[FieldRule]) -> Map<String, Value> {
    let rule = node.rule.and_then(|index| rules.get(index));
    let mut schema = value(node, rules);
    if rule.is_some_and(|rule| rule.nullable) {
        schema = with_null(schema);
    }
    if let Some(description) = rule.and_then(|rule| rule.description.as_ref()) {
        schema.insert("description".to_owned(), json!(description));
    }
    if let Some((rule, default)) = rule.and_then(|rule| Some((rule, rule.default.as_ref()?))) {
        let shown = if rule.as_string { digits::shown(default) } else { default.clone() };
        schema.insert("default".to_owned(), shown);
    }
    schema
}

/// The same or `null`.
fn with_null(mut schema: Map<String, Value>) -> Map<String, Value> {
    if Kinds::of_words(&schema).has(Kinds::NULL) {
        return schema;
    }
    let null = || json!("null");
    let is_listed = schema.get("const").is_none();
    match schema.get_mut("type").filter(|_| is_listed) {
        Some(Value::Array(words)) => words.push(null()),
        Some(word @ Value::String(_)) => {
            *word = Value::Array(vec![word.take(), null()]);
        }
        _ => return Map::from_iter([("anyOf".to_owned(), json!([schema, {"type": "null"}]))]),
    }
    if let Some(Value::Array(allowed)) = schema.get_mut("enum") {
        allowed.push(Value::Null);
    }
    schema
}

/// What holds for a field and for an item of an array alike.
fn value(node: &Node, rules: &[FieldRule]) -> Map<String, Value> {
    let rule = node.rule.and_then(|index| rules.get(index));
    if let Some(Value::Object(schema)) = node.schema.as_deref() {
        return schema.clone();
    }
    let additional = rule.and_then(|rule| rule.additional_properties.as_ref());
    let as_text = rule.filter(|rule| rule.as_string).and_then(|_| digits::pattern(node.field_type));
    let mut schema = match &node.content {
        Content::Object(members) => object(members.iter(), rules, additional),
        Content::Array(item) => {
            let items = Value::Object(value(item, rules));
            return Map::from_iter([
                ("type".to_owned(), json!("array")),
                ("items".to_owned(), items),
            ]);
        }
        Content::Leaf if node.field_type == FieldType::File => file::schema(),
        Content::Leaf => {
            let mut schema = Map::new();
            let shown = if as_text.is_some() { FieldType::String } else { node.field_type };
            schema.insert("type".to_owned(), json!(shown.as_str()));
            if let Some(pattern) = as_text {
                schema.insert("pattern".to_owned(), json!(pattern));
            }
            if let Some(additional) = additional.filter(|_| node.field_type == FieldType::Object) {
                schema.insert("additionalProperties".to_owned(), additional.clone());
            }
            schema
        }
    };
    if let Some(format) = rule.and_then(|rule| rule.format.as_ref()) {
        schema.insert("format".to_owned(), json!(format));
    }
    if let Some(allowed) = rule.and_then(|rule| rule.allowed.as_ref()) {
        let shown: Vec<Value> = match as_text {
            Some(_) => allowed.iter().map(digits::shown).collect(),
            None => allowed.clone(),
        };
        schema.insert("enum".to_owned(), json!(shown));
    }
    schema
}

/// A schema without demands: `properties` binds objects only, `items` arrays only.
fn described(node: &Node, rules: &[FieldRule]) -> Map<String, Value> {
    let rule = node.rule.and_then(|index| rules.get(index));
    let mut schema = Map::new();
    if let Some(raw) = &node.schema {
        schema = told(raw, LEVELS_MAX);
        if let Some(description) = rule.and_then(|rule| rule.description.as_ref()) {
            schema.insert("description".to_owned(), json!(description));
        }
        return schema;
    }
    match &node.content {
        Content::Leaf => {}
        Content::Array(item) => {
            let mut items = described(item, rules);
            // The text belongs to the array.
            items.remove("description");
            schema.insert("items".to_owned(), Value::Object(items));
        }
        Content::Object(members) => {
            let members = members.iter().map(|member| {
                (member.exposed.to_string(), Value::Object(described(member, rules)))
            });
            schema.insert("properties".to_owned(), members.collect());
        }
    }
    if let Some(rule) = rule {
        let format = rule.format.as_ref().map(|format| format!(", {format}")).unwrap_or_default();
        let as_text = rule.as_string && matches!(node.content, Content::Leaf);
        let shown = if as_text { FieldType::String } else { node.field_type };
        let told = format!("({}{format})", shown.as_str());
        let description = match &rule.description {
            Some(description) => format!("{description} {told}"),
            None => told,
        };
        schema.insert("description".to_owned(), json!(description));
    }
    schema
}

/// The same of a raw schema: names, nesting and descriptions, with the types in words.
fn told(schema: &Value, levels: usize) -> Map<String, Value> {
    let mut out = Map::new();
    let Some(levels) = levels.checked_sub(1) else { return out };
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        let members = properties
            .iter()
            .map(|(name, member)| (name.clone(), Value::Object(told(member, levels))));
        out.insert("properties".to_owned(), members.collect());
    }
    if let Some(items) = schema.get("items") {
        out.insert("items".to_owned(), Value::Object(told(items, levels)));
    }
    let kinds = Kinds::of_schema(schema);
    let words = if kinds == Kinds::ALL { String::new() } else { kinds.words().join(" or ") };
    let format = schema.get("format").and_then(Value::as_str);
    let words: Vec<&str> = [words.as_str(), format.unwrap_or_default()]
        .into_iter()
        .filter(|word| !word.is_empty())
        .collect();
    let mut told = schema.get("description").and_then(Value::as_str).unwrap_or_default().to_owned();
    if !words.is_empty() {
        let blank = if told.is_empty() { "" } else { " " };
        told = format!("{told}{blank}({})", words.join(", "));
    }
    if !told.is_empty() {
        out.insert("description".to_owned(), json!(told));
    }
    out
}
