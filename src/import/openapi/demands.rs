//! The words of a schema that judge values, in the form of 2020-12.

use std::cell::RefCell;
use std::collections::HashMap;

use serde_json::{Map, Number, Value, json};

use super::clean;
use super::library::Spot;
use super::schema::{Converter, Overflow, is_small};
use super::words;
use crate::mapping::{self, FieldRule, Location};

/// Most values of an `enum`.
const ENUM_VALUES_MAX: usize = 600;
/// Most patterns of one import, and the longest of them in bytes.
const PATTERNS_MAX: usize = 2_000;
const PATTERN_BYTES_MAX: usize = 1_000;
/// Longest format, in bytes.
const FORMAT_BYTES_MAX: usize = 40;

/// Which patterns the validator can run: in time linear to its input.
#[derive(Debug, Default)]
pub(super) struct Patterns(RefCell<HashMap<Box<str>, bool>>);

impl Patterns {
    fn is_good(&self, pattern: &str) -> bool {
        if let Some(known) = self.0.borrow().get(pattern) {
            return *known;
        }
        if pattern.len() > PATTERN_BYTES_MAX || self.0.borrow().len() == PATTERNS_MAX {
            return false;
        }
        let schema = Some(json!({ "pattern": pattern }));
        let rule = FieldRule { schema, ..FieldRule::new("a", Location::Body) };
        let is_good = mapping::input_schema(&[rule]).is_ok();
        self.0.borrow_mut().insert(pattern.into(), is_good);
        is_good
    }
}

impl<'a> Converter<'_, 'a> {
    /// Takes over every word that judges. `out` has the type already.
    pub(super) fn demands(
        &mut self,
        spot: Spot<'a>,
        words: &'a Map<String, Value>,
        out: &mut Map<String, Value>,
        depth: usize,
    ) -> Result<(), Overflow> {
        self.values_allowed(words, out)?;
        for (word, value) in words {
            self.count(1, 0)?;
            match word.as_str() {
                "minimum" | "maximum" => self.bound(word, value, words, out),
                "exclusiveMinimum" | "exclusiveMaximum" if value.is_boolean() => {}
                "exclusiveMinimum" | "exclusiveMaximum" => {
                    self.number(word, value, |_| true, out);
                }
                "multipleOf" => self.number(word, value, |number| number > 0.0, out),
                "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties"
                | "maxProperties" | "minContains" | "maxContains" => {
                    self.size(word, value, out);
                }
                "uniqueItems" | "deprecated" => {
                    if *value == Value::Bool(true) {
                        out.insert(word.clone(), json!(true));
                    }
                }
                "pattern" => self.pattern(value, out)?,
                "format" | "contentEncoding" | "contentMediaType" => {
                    let text = value.as_str().filter(|text| text.len() <= FORMAT_BYTES_MAX);
                    if let Some(text) = text {
                        out.entry(word.clone()).or_insert_with(|| json!(text));
                    }
                }
                "default" if !value.is_null() => self.preset(value, out)?,
                _ => self.compound(spot, word, value, out, depth)?,
            }
        }
        self.condition(spot, words, out, depth)
    }

    fn values_allowed(
        &mut self,
        words: &'a Map<String, Value>,
        out: &mut Map<String, Value>,
    ) -> Result<(), Overflow> {
        let (types, _) = words::types(out);
        if let Some(constant) = words.get("const").filter(|constant| is_small(constant)) {
            match words::of_types(constant, &types) {
                Some(constant) => {
                    if let Some(constant) = self.literal(&constant)? {
                        out.insert("const".to_owned(), constant);
                    }
                }
                None => self.lose("its `const` is not of its type and is left out"),
            }
        }
        let Some(Value::Array(listed)) = words.get("enum") else { return Ok(()) };
        if listed.len() > ENUM_VALUES_MAX || !listed.iter().all(is_small) {
            self.lose(format!(
                "its `enum` has long values or more than {ENUM_VALUES_MAX}; it is left out"
            ));
            return Ok(());
        }
        let mut allowed: Vec<Value> = Vec::new();
        for value in listed {
            // `nullable` is written this way too.
            if value.is_null() && !types.is_empty() && !types.contains(&"null") {
                if words.get("nullable") == Some(&Value::Bool(true)) {
                    continue;
                }
                self.note("its `enum` has null, which its type does not allow; null is not taken");
                continue;
            }
            let Some(value) = words::of_types(value, &types) else {
                if value.is_number() && types.contains(&"string") {
                    self.lose(
                        "its `enum` has numbers of which it cannot be told how they are written \
                         as text; it is left out",
                    );
                    return Ok(());
                }
                self.note("values of its `enum` that are not of its type are left out");
                continue;
            };
            self.count(1, value.as_str().map_or(8, str::len))?;
            if !allowed.contains(&value) {
                allowed.push(value);
            }
        }
        if allowed.is_empty() {
            self.lose("its `enum` has no values and is left out");
        } else {
            out.insert("enum".to_owned(), Value::Array(allowed));
        }
        Ok(())
    }

    fn preset(&mut self, value: &Value, out: &mut Map<String, Value>) -> Result<(), Overflow> {
        if !is_small(value) {
            self.note("its default is too long to be told");
            return Ok(());
        }
        let value = words::of_types(value, &words::types(out).0);
        let allowed = out.get("enum").and_then(Value::as_array);
        let value = value.filter(|value| allowed.is_none_or(|allowed| allowed.contains(value)));
        match value {
            Some(value) => {
                if let Some(value) = self.literal(&value)? {
                    out.insert("default".to_owned(), value);
                }
            }
            None => self.note("its default is not what it takes; left out"),
        }
        Ok(())
    }

    /// `exclusiveMinimum: true` made `minimum` exclusive in draft 4.
    fn bound(
        &mut self,
        word: &str,
        value: &Value,
        words: &Map<String, Value>,
        out: &mut Map<String, Value>,
    ) {
        let exclusive = if word == "minimum" { "exclusiveMinimum" } else { "exclusiveMaximum" };
        let is_exclusive = words.get(exclusive) == Some(&Value::Bool(true));
        self.number(if is_exclusive { exclusive } else { word }, value, |_| true, out);
    }

    fn number(
        &mut self,
        word: &str,
        value: &Value,
        is_good: impl Fn(f64) -> bool,
        out: &mut Map<String, Value>,
    ) {
        let number = match value {
            Value::Number(number) => Some(number.clone()),
            Value::String(text) => serde_json::from_str::<Number>(text.trim()).ok(),
            _ => None,
        };
        match number.filter(|number| number.as_f64().is_some_and(&is_good)) {
            Some(number) => drop(out.insert(word.to_owned(), Value::Number(number))),
            None => self.lose(format!("its `{word}` is no number that it can be; it is left out")),
        }
    }

    fn size(&mut self, word: &str, value: &Value, out: &mut Map<String, Value>) {
        #[expect(clippy::cast_sign_loss, reason = "it is whole and not below zero")]
        let whole = |number: f64| (number >= 0.0 && number.fract() == 0.0).then_some(number as u64);
        let size = match value {
            Value::Number(number) => number.as_u64().or_else(|| whole(number.as_f64()?)),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        match size {
            Some(size) => drop(out.insert(word.to_owned(), json!(size))),
            None => self.lose(format!("its `{word}` is no size; it is left out")),
        }
    }

    fn pattern(&mut self, value: &Value, out: &mut Map<String, Value>) -> Result<(), Overflow> {
        let Some(pattern) = value.as_str() else {
            self.lose("its `pattern` is no text; it is left out");
            return Ok(());
        };
        if self.reader.patterns.is_good(pattern) {
            self.count(0, pattern.len())?;
            out.insert("pattern".to_owned(), json!(pattern));
        } else {
            let pattern = clean::quoted(pattern);
            self.lose(format!("the pattern {pattern} cannot be checked in linear time"));
        }
        Ok(())
    }

    /// Words with schemas in them.
    fn compound(
        &mut self,
        spot: Spot<'a>,
        word: &str,
        value: &'a Value,
        out: &mut Map<String, Value>,
        depth: usize,
    ) -> Result<(), Overflow> {
        let below = self.below(spot, value);
        match word {
            "additionalProperties" => {
                let others = match value {
                    Value::Object(words) if words.is_empty() => Value::Bool(true),
                    Value::Bool(flag) => Value::Bool(*flag),
                    _ => self.schema(below, depth + 1, true)?,
                };
                out.insert(word.to_owned(), others);
            }
            "not" => {
                // What takes too much would forbid too much here.
                let losses = self.losses;
                let denied = self.schema(below, depth + 1, true)?;
                if self.losses == losses {
                    out.insert(word.to_owned(), denied);
                } else {
                    self.note("its `not` cannot be said in full and is left out");
                }
            }
            "contains" | "propertyNames" | "unevaluatedItems" | "unevaluatedProperties" => {
                let schema = self.schema(below, depth + 1, true)?;
                out.insert(word.to_owned(), schema);
            }
            "prefixItems" => {
                let mut items = Vec::new();
                for item in value.as_array().into_iter().flatten() {
                    items.push(self.schema(self.below(spot, item), depth + 1, true)?);
                }
                if !items.is_empty() {
                    out.insert(word.to_owned(), Value::Array(items));
                }
            }
            "patternProperties" | "dependentSchemas" => {
                self.named(below, word, out, depth)?;
            }
            "dependentRequired" => {
                let is_good = value.as_object().is_some_and(|map| map.values().all(is_names));
                if is_good && is_small(value) {
                    self.count(1, value.to_string().len())?;
                    out.insert(word.to_owned(), value.clone());
                }
            }
            _ if is_silent(word) => {}
            _ => {
                self.note(format!("the word {} is not known and is left out", clean::quoted(word)));
            }
        }
        Ok(())
    }

    fn named(
        &mut self,
        spot: Spot<'a>,
        word: &str,
        out: &mut Map<String, Value>,
        depth: usize,
    ) -> Result<(), Overflow> {
        let mut named = Map::new();
        let Value::Object(map) = spot.value else { return Ok(()) };
        for (name, value) in map {
            if word == "patternProperties" && !self.reader.patterns.is_good(name) {
                let pattern = clean::quoted(name);
                self.lose(format!("the pattern {pattern} cannot be checked in linear time"));
                continue;
            }
            self.count(1, name.len())?;
            let schema = self.schema(self.below(spot, value), depth + 1, true)?;
            named.insert(name.clone(), schema);
        }
        if named.len() < map.len() {
            // Names that a lost pattern would let in must not be refused.
            out.insert("additionalProperties".to_owned(), Value::Bool(true));
        }
        if !named.is_empty() {
            out.insert(word.to_owned(), Value::Object(named));
        }
        Ok(())
    }

    /// `if`, `then` and `else`; all or none of them.
    fn condition(
        &mut self,
        spot: Spot<'a>,
        words: &'a Map<String, Value>,
        out: &mut Map<String, Value>,
        depth: usize,
    ) -> Result<(), Overflow> {
        let Some(condition) = words.get("if") else { return Ok(()) };
        let losses = self.losses;
        let condition = self.schema(self.below(spot, condition), depth + 1, true)?;
        if self.losses > losses {
            self.note("its `if` cannot be said in full and is left out");
            return Ok(());
        }
        out.insert("if".to_owned(), condition);
        for word in ["then", "else"] {
            if let Some(branch) = words.get(word) {
                let branch = self.schema(self.below(spot, branch), depth + 1, true)?;
                out.insert(word.to_owned(), branch);
            }
        }
        Ok(())
    }
}

fn is_names(value: &Value) -> bool {
    value.as_array().is_some_and(|names| names.iter().all(Value::is_string))
}

/// Words that are read elsewhere, or that say nothing about values.
fn is_silent(word: &str) -> bool {
    const SILENT: &[&str] = &[
        "type",
        "enum",
        "const",
        "nullable",
        "properties",
        "required",
        "items",
        "allOf",
        "oneOf",
        "anyOf",
        "if",
        "then",
        "else",
        "title",
        "description",
        "default",
        "example",
        "examples",
        "readOnly",
        "writeOnly",
        "discriminator",
        "xml",
        "externalDocs",
        "$ref",
        "$dynamicRef",
        "$recursiveRef",
        "$id",
        "$schema",
        "$anchor",
        "$dynamicAnchor",
        "$comment",
        "$defs",
        "$vocabulary",
        "definitions",
        "contentSchema",
        // Of a parameter of Swagger 2.0, which is its own schema.
        "name",
        "in",
        "collectionFormat",
        "allowEmptyValue",
    ];
    SILENT.contains(&word) || word.starts_with("x-")
}
