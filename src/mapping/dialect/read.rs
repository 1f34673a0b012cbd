//! From any schema to a tree that has one type at each place.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::super::kinds::Kinds;

/// How deep a form nests. Deeper values are of any kind.
const DEPTH_MAX: usize = 32;
/// How many places a form has. What is beyond is of any kind.
const PLACES_MAX: usize = 20_000;
/// How many alternatives one place has.
const ALTERNATIVES_MAX: usize = 32;

/// Words that say something about the values of one type, by that type.
const WORDS: &[(&str, &[FormKind])] = &[
    ("format", &[FormKind::String, FormKind::Integer, FormKind::Number]),
    ("pattern", &[FormKind::String]),
    ("minLength", &[FormKind::String]),
    ("maxLength", &[FormKind::String]),
    ("minimum", &[FormKind::Integer, FormKind::Number]),
    ("maximum", &[FormKind::Integer, FormKind::Number]),
    ("exclusiveMinimum", &[FormKind::Integer, FormKind::Number]),
    ("exclusiveMaximum", &[FormKind::Integer, FormKind::Number]),
    ("multipleOf", &[FormKind::Integer, FormKind::Number]),
    ("minItems", &[FormKind::Array]),
    ("maxItems", &[FormKind::Array]),
    ("uniqueItems", &[FormKind::Array]),
    ("minProperties", &[FormKind::Object]),
    ("maxProperties", &[FormKind::Object]),
];

/// What one place takes, besides `null`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FormKind {
    Any,
    Null,
    String,
    Integer,
    Number,
    Boolean,
    Array,
    Object,
    /// One of the alternatives, each with a kind of its own.
    Union,
}

impl FormKind {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::String | Self::Any | Self::Union => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::Array => "array",
            Self::Object => "object",
        }
    }
}

/// One place of a schema.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Form {
    pub(super) kind: FormKind,
    pub(super) is_nullable: bool,
    pub(super) description: String,
    pub(super) default: Option<Value>,
    pub(super) allowed: Option<Vec<Value>>,
    /// Those of [`WORDS`] that are said and fit the kind.
    pub(super) words: Map<String, Value>,
    pub(super) properties: BTreeMap<String, Property>,
    /// Members of other names: `None` where they are not allowed.
    pub(super) others: Option<Box<Form>>,
    pub(super) items: Option<Box<Form>>,
    pub(super) alternatives: Vec<Form>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Property {
    pub(super) is_required: bool,
    pub(super) form: Form,
}

impl Form {
    pub(super) fn any() -> Self {
        Self {
            kind: FormKind::Any,
            is_nullable: false,
            description: String::new(),
            default: None,
            allowed: None,
            words: Map::new(),
            properties: BTreeMap::new(),
            others: None,
            items: None,
            alternatives: Vec::new(),
        }
    }

    /// One object in place of several: all properties, required what all require.
    pub(super) fn folded(&self) -> Self {
        let objects = self.alternatives.iter().filter(|form| form.kind == FormKind::Object);
        let mut sets: Vec<String> = Vec::new();
        let mut folded = Self { kind: FormKind::Object, alternatives: Vec::new(), ..self.clone() };
        let count = objects.clone().count();
        let mut required: BTreeMap<&str, usize> = BTreeMap::new();
        for form in objects {
            let mut set = Vec::new();
            for (name, property) in &form.properties {
                if property.is_required {
                    *required.entry(name).or_default() += 1;
                    set.push(name.as_str());
                }
                let known = folded.properties.entry(name.clone());
                known.or_insert_with(|| Property { is_required: false, ..property.clone() });
            }
            sets.push(set.join(", "));
            folded.others = folded.others.take().or_else(|| form.others.clone());
        }
        for (name, property) in &mut folded.properties {
            property.is_required = required.get(name.as_str()) == Some(&count);
        }
        sets.retain(|set| !set.is_empty());
        sets.dedup();
        if sets.len() > 1 {
            let blank = if folded.description.is_empty() { "" } else { " " };
            folded.description = format!(
                "{}{blank}Needs one of these sets: {}.",
                folded.description,
                sets.join("; ")
            );
        }
        folded
    }
}

/// Reads a whole schema; its root is an object whatever it says.
pub(super) fn read(schema: &Value) -> Form {
    let mut expanding = Expanding { root: schema, open: Vec::new(), places: 0 };
    let expanded = expanding.expanded(schema, Place::Schema, 0);
    let form = Reader { places: 0 }.form(&expanded, 0).unwrap_or_else(Form::any);
    match form.kind {
        FormKind::Object => form,
        FormKind::Union => form.folded(),
        _ => Form { kind: FormKind::Object, ..Form::any() },
    }
}

/// Puts what a `$ref` points to in its place. A `$ref` that goes round, or leads out, is a place
/// for anything, and so is what is too deep or too much.
struct Expanding<'a> {
    root: &'a Value,
    open: Vec<&'a str>,
    places: usize,
}

/// Where a value stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Schema,
    /// A list of schemas, or an object with schemas by names that are no words.
    Schemas,
    /// A value that is no schema.
    Literal,
}

impl<'a> Expanding<'a> {
    fn expanded(&mut self, value: &'a Value, place: Place, depth: usize) -> Value {
        self.places += 1;
        if self.places > PLACES_MAX || depth > 4 * DEPTH_MAX {
            return Value::Object(Map::new());
        }
        match value {
            Value::Array(items) => {
                let place = if place == Place::Schemas { Place::Schema } else { place };
                items.iter().map(|item| self.expanded(item, place, depth + 1)).collect()
            }
            Value::Object(words) if place == Place::Schema => {
                let mut out = match words.get("$ref") {
                    Some(Value::String(pointer)) => self.target(pointer, depth),
                    _ => Map::new(),
                };
                for (word, value) in words {
                    let place = match word.as_str() {
                        "$ref" | "$defs" | "definitions" => continue,
                        "items" | "additionalProperties" => Place::Schema,
                        "properties" | "anyOf" | "oneOf" | "allOf" => Place::Schemas,
                        _ => Place::Literal,
                    };
                    out.insert(word.clone(), self.expanded(value, place, depth + 1));
                }
                Value::Object(out)
            }
            Value::Object(members) => {
                let place = if place == Place::Schemas { Place::Schema } else { place };
                let members = members
                    .iter()
                    .map(|(name, member)| (name.clone(), self.expanded(member, place, depth + 1)));
                Value::Object(members.collect())
            }
            single => single.clone(),
        }
    }

    fn target(&mut self, pointer: &'a str, depth: usize) -> Map<String, Value> {
        let target = pointer.strip_prefix('#').and_then(|path| self.root.pointer(path));
        let Some(target) = target.filter(|_| !self.open.contains(&pointer)) else {
            return Map::new();
        };
        self.open.push(pointer);
        let expanded = self.expanded(target, Place::Schema, depth + 1);
        self.open.pop();
        if let Value::Object(words) = expanded { words } else { Map::new() }
    }
}

struct Reader {
    places: usize,
}

impl Reader {
    /// `None` where nothing is allowed.
    fn form(&mut self, schema: &Value, depth: usize) -> Option<Form> {
        self.places += 1;
        match schema {
            Value::Bool(false) => None,
            Value::Object(words) if depth < DEPTH_MAX && self.places < PLACES_MAX => {
                self.form_of(&merged(words, DEPTH_MAX), depth)
            }
            _ => Some(Form::any()),
        }
    }

    fn form_of(&mut self, words: &Map<String, Value>, depth: usize) -> Option<Form> {
        if let Some(branches) =
            ["anyOf", "oneOf"].iter().find_map(|key| words.get(*key)?.as_array())
        {
            return self.union(words, branches, depth);
        }
        let mut kinds = Kinds::of_words(words);
        if kinds == Kinds::ALL {
            // Nothing is said, so what is described is what is meant.
            if words.contains_key("properties") {
                kinds = Kinds::OBJECT;
            } else if words.contains_key("items") {
                kinds = Kinds::ARRAY;
            }
        }
        let single: Vec<FormKind> = match kinds {
            Kinds::ALL => vec![FormKind::Any],
            _ => kinds.words().iter().map(|word| kind_of_word(word)).collect(),
        };
        let is_nullable = single.len() > 1 && single.last() == Some(&FormKind::Null);
        let single = single.into_iter().filter(|kind| !is_nullable || *kind != FormKind::Null);
        let mut forms: Vec<Form> = single.map(|kind| self.single(words, kind, depth)).collect();
        let form = match forms.pop() {
            Some(form) if forms.is_empty() => form,
            last => {
                forms.extend(last);
                Form { kind: FormKind::Union, alternatives: forms, ..Form::any() }
            }
        };
        if form.kind == FormKind::Union && form.alternatives.is_empty() {
            return None;
        }
        Some(described(Form { is_nullable, ..form }, words))
    }

    /// The branches with what stands beside them. `null` among them makes the place nullable.
    fn union(
        &mut self,
        words: &Map<String, Value>,
        branches: &[Value],
        depth: usize,
    ) -> Option<Form> {
        let mut base = words.clone();
        for key in ["anyOf", "oneOf", "description", "default"] {
            base.remove(key);
        }
        let mut form = Form { kind: FormKind::Union, ..Form::any() };
        for branch in branches.iter().take(ALTERNATIVES_MAX) {
            let Value::Object(branch) = branch else { continue };
            let mut layers = branch.clone();
            merge(&mut layers, &base);
            let layers = Value::Object(layers);
            let Some(mut read) = self.form(&layers, depth + 1) else { continue };
            form.is_nullable |= read.is_nullable || read.kind == FormKind::Null;
            read.is_nullable = false;
            match read.kind {
                FormKind::Null => {}
                FormKind::Union => form.alternatives.extend(read.alternatives),
                _ => form.alternatives.push(read),
            }
        }
        let mut distinct: Vec<Form> = Vec::new();
        for alternative in form.alternatives.drain(..).take(ALTERNATIVES_MAX) {
            if !distinct.contains(&alternative) {
                distinct.push(alternative);
            }
        }
        form.alternatives = distinct;
        if form.alternatives.len() == 1
            && let Some(only) = form.alternatives.pop()
        {
            return Some(described(Form { is_nullable: form.is_nullable, ..only }, words));
        }
        if form.alternatives.is_empty() {
            return form.is_nullable.then(|| Form { kind: FormKind::Null, ..Form::any() });
        }
        Some(described(form, words))
    }

    fn single(&mut self, words: &Map<String, Value>, kind: FormKind, depth: usize) -> Form {
        let mut form = Form { kind, ..Form::any() };
        let fits = |known: &&(&str, &[FormKind])| known.1.contains(&kind);
        for (word, _) in WORDS.iter().filter(fits) {
            if let Some(value) = words.get(*word) {
                form.words.insert((*word).to_owned(), value.clone());
            }
        }
        let allowed = words.get("const").map(std::slice::from_ref);
        let allowed = allowed.or_else(|| words.get("enum")?.as_array().map(Vec::as_slice));
        form.allowed = allowed
            .filter(|_| kind != FormKind::Any)
            .map(|values| values.iter().filter(|value| is_of(value, kind)).cloned().collect());
        if kind == FormKind::Array {
            let items = words.get("items").and_then(|items| self.form(items, depth + 1));
            form.items = Some(Box::new(items.unwrap_or_else(Form::any)));
        }
        if kind == FormKind::Object {
            self.add_members(&mut form, words, depth);
        }
        form
    }

    fn add_members(&mut self, form: &mut Form, words: &Map<String, Value>, depth: usize) {
        let required: Vec<&str> = words
            .get("required")
            .and_then(Value::as_array)
            .map(|names| names.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        for (name, schema) in
            words.get("properties").and_then(Value::as_object).into_iter().flatten()
        {
            if let Some(property) = self.form(schema, depth + 1) {
                let is_required = required.contains(&name.as_str());
                form.properties.insert(name.clone(), Property { is_required, form: property });
            }
        }
        form.others = match words.get("additionalProperties") {
            Some(others) => self.form(others, depth + 1).map(Box::new),
            None => Some(Box::new(Form::any())),
        };
    }
}

/// The words of a schema with those of its `allOf`. What is said twice is taken from the first.
fn merged(words: &Map<String, Value>, levels: usize) -> Cow<'_, Map<String, Value>> {
    if !words.contains_key("allOf") {
        return Cow::Borrowed(words);
    }
    let mut out = words.clone();
    let (Some(Value::Array(branches)), Some(levels)) = (out.remove("allOf"), levels.checked_sub(1))
    else {
        return Cow::Owned(out);
    };
    for branch in branches.iter().filter_map(Value::as_object) {
        merge(&mut out, &merged(branch, levels));
    }
    Cow::Owned(out)
}

fn merge(into: &mut Map<String, Value>, from: &Map<String, Value>) {
    for (word, value) in from {
        match (word.as_str(), into.get_mut(word), value) {
            (_, None, _) => {
                into.insert(word.clone(), value.clone());
            }
            ("properties", Some(Value::Object(known)), Value::Object(more)) => {
                for (name, schema) in more {
                    known.entry(name.clone()).or_insert_with(|| schema.clone());
                }
            }
            ("required", Some(Value::Array(known)), Value::Array(more)) => {
                for name in more {
                    if !known.contains(name) {
                        known.push(name.clone());
                    }
                }
            }
            _ => {}
        }
    }
}

fn described(mut form: Form, words: &Map<String, Value>) -> Form {
    if let Some(description) = words.get("description").and_then(Value::as_str) {
        description.clone_into(&mut form.description);
    }
    if let Some(default) = words.get("default") {
        form.default = Some(default.clone());
    }
    form
}

fn kind_of_word(word: &str) -> FormKind {
    match word {
        "null" => FormKind::Null,
        "integer" => FormKind::Integer,
        "number" => FormKind::Number,
        "boolean" => FormKind::Boolean,
        "array" => FormKind::Array,
        "object" => FormKind::Object,
        _ => FormKind::String,
    }
}

fn is_of(value: &Value, kind: FormKind) -> bool {
    match kind {
        FormKind::Any | FormKind::Union => true,
        FormKind::Null => value.is_null(),
        FormKind::String => value.is_string(),
        FormKind::Integer => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        FormKind::Number => value.is_number(),
        FormKind::Boolean => value.is_boolean(),
        FormKind::Array => value.is_array(),
        FormKind::Object => value.is_object(),
    }
}
