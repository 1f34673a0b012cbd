//! A JSON Schema that an operator gives for a field.
//!
//! It is taken over into the schema of the tool with three changes: `$ref`s are replaced by what
//! they point to, arrays always have `items`, and property names that are no keys are replaced by
//! keys. What it says is checked: a word that the validator does not know is an error and not
//! passed over, except words that only describe. Every size is bounded, so is the recursion.

use serde_json::{Map, Value, json};

use super::keys::{self, Wish, is_key};
use super::kinds::Kinds;
use super::shape::{Content, Node};
use super::validator::Validator;
use super::{FieldRule, FieldType, Location, MappingError};

/// How deep a raw schema may nest, `$ref`s replaced, counted in arrays and objects.
const DEPTH_MAX: usize = 64;
/// How many values it may have, `$ref`s replaced.
const VALUES_MAX: usize = 10_000;
/// How long its texts may be together, `$ref`s replaced.
const TEXT_BYTES_MAX: usize = 256 * 1024;

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// Words whose value is one schema.
const SCHEMA: &[&str] = &[
    "items",
    "additionalProperties",
    "contains",
    "not",
    "if",
    "then",
    "else",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
];
/// Words whose value is a list of schemas.
const SCHEMA_LIST: &[&str] = &["allOf", "anyOf", "oneOf", "prefixItems"];
/// Words whose value has schemas by name; `properties` is told apart.
const SCHEMA_MAP: &[&str] = &["patternProperties", "dependentSchemas"];
/// Words that are checked and hold no schemas.
const ASSERTION: &[&str] = &[
    "type",
    "enum",
    "const",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minContains",
    "maxContains",
    "minProperties",
    "maxProperties",
    "dependentRequired",
];
/// Words that describe and demand nothing; formats are told and not checked everywhere.
const ANNOTATION: &[&str] = &[
    "title",
    "description",
    "default",
    "examples",
    "example",
    "deprecated",
    "readOnly",
    "writeOnly",
    "format",
    "contentEncoding",
    "contentMediaType",
    "externalDocs",
    "xml",
    "discriminator",
];

/// What is left of a raw schema.
#[derive(Debug)]
pub(super) struct RawSchema {
    /// Under exposed names.
    pub(super) schema: Value,
    /// Where names differ; a leaf when none does.
    pub(super) content: Content,
}

impl RawSchema {
    pub(super) fn compile(rule: &FieldRule, schema: &Value) -> Result<Self, MappingError> {
        let refuse = |problem| MappingError::RawSchema { field: rule.name(), problem };
        if let Some(key) = rule.beside_schema() {
            return Err(refuse(format!("it says itself what `{key}` says; remove one of them")));
        }
        let mut reader = Reader { root: schema, open: Vec::new(), values: 0, text_bytes: 0 };
        if !schema.is_object() {
            return Err(refuse(
                "it has to be an object; write {} for a field of any kind".to_owned(),
            ));
        }
        let (schema, content) = reader.schema(schema, 0, Names::Mapped).map_err(refuse)?;
        let raw = Self { schema, content };
        let validator = Validator::compile(&raw.schema).map_err(|error| match error {
            MappingError::Schema { problem } => refuse(problem),
            other => other,
        })?;
        if matches!(raw.content, Content::Leaf) {
            let fixed = [("constant", &rule.constant), ("default", &rule.default)];
            for (key, value) in
                fixed.into_iter().filter_map(|(key, value)| Some((key, value.as_ref()?)))
            {
                let is_null = rule.nullable && value.is_null();
                if !is_null
                    && !rule.source_field_name.ends_with("[*]")
                    && !validator.accepts_value(value)
                {
                    return Err(refuse(format!("{key} does not fit it; change one of them")));
                }
            }
        }
        Ok(raw)
    }
}

/// What becomes of property names that are no keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Names {
    /// They are replaced.
    Mapped,
    /// They are an error: a value below is not found by the names above it alone.
    Fixed,
}

struct Reader<'a> {
    root: &'a Value,
    /// The `$ref`s that are being replaced.
    open: Vec<&'a str>,
    values: usize,
    text_bytes: usize,
}

impl<'a> Reader<'a> {
    /// Counts a value before anything is made of it.
    fn enter(&mut self, text: &str, depth: usize) -> Result<(), String> {
        self.values += 1;
        self.text_bytes += text.len();
        if depth > DEPTH_MAX {
            return Err(format!("it is nested deeper than {DEPTH_MAX} levels"));
        }
        if self.values > VALUES_MAX || self.text_bytes > TEXT_BYTES_MAX {
            return Err(format!(
                "with every $ref replaced it has more than {VALUES_MAX} values or \
                 {TEXT_BYTES_MAX} bytes of text; describe less of the field"
            ));
        }
        Ok(())
    }

    fn schema(
        &mut self,
        value: &'a Value,
        depth: usize,
        names: Names,
    ) -> Result<(Value, Content), String> {
        self.enter("", depth)?;
        let Value::Object(words) = value else {
            return match value {
                Value::Bool(_) => Ok((value.clone(), Content::Leaf)),
                _ => Err("it has something else where a schema belongs".to_owned()),
            };
        };
        if let Some(pointer) = words.get("$ref") {
            return self.reference(pointer, words, depth, names);
        }
        self.words(words, depth, names)
    }

    fn words(
        &mut self,
        words: &'a Map<String, Value>,
        depth: usize,
        names: Names,
    ) -> Result<(Value, Content), String> {
        let mut schema = Map::new();
        let mut content = Content::Leaf;
        for (word, value) in words {
            self.enter(word, depth)?;
            let key = word.as_str();
            let read = if key == "properties" {
                let (properties, members) = self.properties(value, depth + 1, names)?;
                if !members.is_empty() {
                    content = Content::Object(members);
                }
                properties
            } else if key == "items" {
                let (items, below) = self.schema(value, depth + 1, names)?;
                if !matches!(below, Content::Leaf) {
                    content = Content::Array(Box::new(node("", "", below)));
                }
                items
            } else if key == "required" {
                self.required(value, words.get("properties"), names)?
            } else if SCHEMA.contains(&key) {
                self.schema(value, depth + 1, Names::Fixed)?.0
            } else if SCHEMA_LIST.contains(&key) {
                let list = value.as_array().ok_or_else(|| format!("`{key}` is no list"))?;
                let each = |item| Ok(self.schema(item, depth + 1, Names::Fixed)?.0);
                Value::Array(list.iter().map(each).collect::<Result<_, String>>()?)
            } else if SCHEMA_MAP.contains(&key) {
                let map = value.as_object().ok_or_else(|| format!("`{key}` is no object"))?;
                let mut read = Map::new();
                for (name, value) in map {
                    self.enter(name, depth)?;
                    read.insert(name.clone(), self.schema(value, depth + 1, Names::Fixed)?.0);
                }
                Value::Object(read)
            } else if matches!(key, "$defs" | "definitions" | "$comment") {
                continue;
            } else if key == "$schema" {
                match value.as_str().map(|dialect| dialect.trim_end_matches('#')) {
                    Some(DIALECT) => continue,
                    _ => return Err(format!("`$schema` has to be \"{DIALECT}\" or absent")),
                }
            } else if ASSERTION.contains(&key) || ANNOTATION.contains(&key) || key.starts_with("x-")
            {
                self.literal(value, depth + 1)?
            } else {
                return Err(unknown(key));
            };
            schema.insert(word.clone(), read);
        }
        let fixed = ["enum", "const", "dependentRequired", "dependentSchemas"];
        if !matches!(content, Content::Leaf) && fixed.iter().any(|word| schema.contains_key(*word))
        {
            return Err(
                "it has property names that clients cannot be shown beside `enum`, `const`, \
                 `dependentRequired` or `dependentSchemas`; remove these"
                    .to_owned(),
            );
        }
        let mut schema = Value::Object(schema);
        if !Kinds::of_schema(&schema).has_none_of(Kinds::ARRAY)
            && schema.get("type").is_some()
            && schema.get("items").is_none()
            && let Value::Object(words) = &mut schema
        {
            words.insert("items".to_owned(), json!({}));
        }
        Ok((schema, content))
    }

    fn reference(
        &mut self,
        pointer: &'a Value,
        words: &'a Map<String, Value>,
        depth: usize,
        names: Names,
    ) -> Result<(Value, Content), String> {
        let pointer = pointer.as_str().unwrap_or_default();
        let target = pointer.strip_prefix('#').and_then(|path| self.root.pointer(path));
        let Some(target) = target else {
            return Err(format!("the $ref {pointer:?} points to nothing in it"));
        };
        if self.open.contains(&pointer) {
            return Err(format!(
                "the $ref {pointer:?} goes round; write {{}} where the next round would begin"
            ));
        }
        let around = || {
            let is_beside =
                |word: &str| !matches!(word, "$ref" | "$defs" | "definitions" | "$schema");
            words.iter().filter(move |(word, _)| is_beside(word) && *word != "$comment")
        };
        if !around().all(|(word, _)| ANNOTATION.contains(&word.as_str()) || word.starts_with("x-"))
        {
            return Err(format!(
                "the $ref {pointer:?} has other words beside it; put both into `allOf`"
            ));
        }
        self.open.push(pointer);
        let (mut schema, content) = self.schema(target, depth + 1, names)?;
        self.open.pop();
        for (word, value) in around() {
            self.enter(word, depth)?;
            let value = self.literal(value, depth + 1)?;
            if let Value::Object(schema) = &mut schema {
                schema.insert(word.clone(), value);
            }
        }
        Ok((schema, content))
    }

    /// The schemas by key, and the members where one of them is not called what the API calls it.
    fn properties(
        &mut self,
        value: &'a Value,
        depth: usize,
        names: Names,
    ) -> Result<(Value, Vec<Node>), String> {
        let map = value.as_object().ok_or("`properties` is no object")?;
        let keys = keys_of(map.keys());
        let mut properties = Map::new();
        let mut members = Vec::new();
        let mut differs = false;
        for ((name, value), key) in map.iter().zip(keys) {
            self.enter(name, depth)?;
            if names == Names::Fixed {
                check_fixed(name)?;
            }
            let (schema, below) = self.schema(value, depth + 1, names)?;
            differs |= **name != *key || !matches!(below, Content::Leaf);
            properties.insert(key.to_string(), schema);
            members.push(node(name, &key, below));
        }
        Ok((Value::Object(properties), if differs { members } else { Vec::new() }))
    }

    /// The names by their keys; `properties` are those of the same object.
    fn required(
        &mut self,
        value: &'a Value,
        properties: Option<&'a Value>,
        names: Names,
    ) -> Result<Value, String> {
        let list = value.as_array().ok_or("`required` is no list")?;
        let known: Vec<&String> =
            properties.and_then(Value::as_object).into_iter().flat_map(Map::keys).collect();
        let keys = keys_of(known.iter().copied());
        let mut required = Vec::new();
        for name in list {
            let name = name.as_str().ok_or("`required` has what is no name")?;
            self.enter(name, 0)?;
            if names == Names::Fixed {
                check_fixed(name)?;
            }
            // Both are in the order of the names.
            let known = known.binary_search_by(|known| known.as_str().cmp(name)).ok();
            let key = known.and_then(|index| keys.get(index));
            required.push(key.map_or(name, |key| key).to_owned());
        }
        Ok(json!(required))
    }

    /// A value that holds no schemas.
    fn literal(&mut self, value: &'a Value, depth: usize) -> Result<Value, String> {
        self.enter(value.as_str().unwrap_or_default(), depth)?;
        Ok(match value {
            Value::Array(items) => {
                let items = items.iter().map(|item| self.literal(item, depth + 1));
                Value::Array(items.collect::<Result<_, _>>()?)
            }
            Value::Object(members) => {
                let mut read = Map::new();
                for (name, value) in members {
                    self.enter(name, depth)?;
                    read.insert(name.clone(), self.literal(value, depth + 1)?);
                }
                Value::Object(read)
            }
            single => single.clone(),
        })
    }
}

fn keys_of<'n>(names: impl Iterator<Item = &'n String>) -> Vec<Box<str>> {
    let wish =
        |name: &'n String| Wish { name, is_said: false, location: Location::Body, source: name };
    keys::assign(&names.map(wish).collect::<Vec<_>>(), None)
}

fn node(source: &str, key: &str, below: Content) -> Node {
    let mut node = Node::new(source);
    node.exposed = key.into();
    node.field_type = match &below {
        Content::Leaf => node.field_type,
        Content::Object(_) => FieldType::Object,
        Content::Array(_) => FieldType::Array,
    };
    node.content = below;
    node
}

fn check_fixed(name: &str) -> Result<(), String> {
    if is_key(name) {
        return Ok(());
    }
    Err(format!(
        "the property {name:?} cannot be shown to clients by this name, and none other can be \
         given to it inside of combinators and `additionalProperties`; describe it with \
         `properties` and `items` only"
    ))
}

fn unknown(word: &str) -> String {
    let advice = match word {
        "nullable" => "write `\"type\": [\"string\", \"null\"]` instead",
        "dependencies" => "write `dependentRequired` or `dependentSchemas` instead",
        "additionalItems" => "write `prefixItems` and `items` instead",
        "$id" | "$anchor" | "$dynamicRef" | "$dynamicAnchor" | "$vocabulary" => {
            "`$ref`s can only be pointers such as \"#/$defs/name\""
        }
        _ => "correct or remove it; words of your own start with \"x-\"",
    };
    format!("`{word}` cannot be checked; {advice}")
}

#[cfg(test)]
#[path = "raw_schema_tests.rs"]
mod tests;
