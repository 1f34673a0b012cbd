//! Schemas of a description as JSON Schema 2020-12, with every reference replaced.
//!
//! What comes out stands alone: no references, `nullable` and draft-4 forms rewritten, `allOf`
//! merged, fields that only the other direction has left out. What cannot be said is left out with
//! a note, and never in a way that forbids what the description allows.
//!
//! A schema that refers to itself is cut where the next round would begin. One that unrolls to more
//! than its allowance is read again less deep, until it fits: so the outer levels are whole, and
//! neither time nor memory depends on how often the description multiplies itself.

use std::cell::RefCell;
use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::Reader;
use super::clean::{self, FIELD_TEXT_MAX};
use super::library::Spot;
use super::merge;
use super::notes::Notes;
use super::words;

/// How deep a schema is followed at first, and how deep when that was too much.
const DEPTHS: [usize; 8] = [20, 10, 7, 5, 4, 3, 2, 1];
/// How many schemas may be open at a time, references and combinators counted.
const NESTING_MAX: usize = 80;
/// Longest text that only shows or presets a value, in bytes.
const LITERAL_BYTES_MAX: usize = 1_024;

/// Which way the described values go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Direction {
    /// To the API: everything that judges a value is kept.
    Input,
    /// From the API: what describes is kept.
    Output,
}

/// How much the schemas of one operation may come to in one direction.
#[derive(Debug)]
pub(super) struct Allowance {
    values: usize,
    text_bytes: usize,
}

impl Allowance {
    pub(super) const fn new(direction: Direction) -> Self {
        match direction {
            Direction::Input => Self { values: 3_000, text_bytes: 96 * 1024 },
            Direction::Output => Self { values: 1_000, text_bytes: 24 * 1024 },
        }
    }

    /// Enough to tell an object from something else.
    pub(super) const fn small() -> Self {
        Self { values: 200, text_bytes: 16 * 1024 }
    }
}

/// The schema is more than its allowance.
#[derive(Debug)]
pub(super) struct Overflow;

/// A schema, the way its values go, and which of [`DEPTHS`] it was followed to.
type Attempt = (usize, Direction, usize);

/// Attempts that were more than an allowance of values and text. What is too much for one is too
/// much for every smaller one, so nobody need try again.
#[derive(Debug, Default)]
pub(super) struct TooMuch(RefCell<HashMap<Attempt, (usize, usize)>>);

impl TooMuch {
    fn has(&self, attempt: Attempt, (values, text): (usize, usize)) -> bool {
        let known = self.0.borrow();
        known.get(&attempt).is_some_and(|known| values <= known.0 && text <= known.1)
    }

    fn add(&self, attempt: Attempt, allowance: (usize, usize)) {
        let mut known = self.0.borrow_mut();
        let known = known.entry(attempt).or_insert(allowance);
        if allowance.0 >= known.0 && allowance.1 >= known.1 {
            *known = allowance;
        }
    }
}

impl<'a> Reader<'a> {
    /// A schema that stands alone.
    pub(super) fn schema(
        &self,
        spot: Spot<'a>,
        direction: Direction,
        allowance: &mut Allowance,
        notes: &mut Notes,
    ) -> Value {
        for (index, depth_max) in DEPTHS.into_iter().enumerate() {
            // Once the whole import has taken its time, the rest is read at its surface only.
            if self.work_left.get() == 0 && depth_max > 1 {
                continue;
            }
            let values = allowance.values.min(self.values_left.get());
            let attempt = (spot.address(), direction, index);
            if self.too_much.has(attempt, (values, allowance.text_bytes)) {
                continue;
            }
            let mut converter = Converter {
                reader: self,
                direction,
                depth_max,
                values_left: values,
                text_left: allowance.text_bytes,
                open: Vec::new(),
                nesting: 0,
                notes: Vec::new(),
                losses: 0,
                is_cut: false,
            };
            let outcome = converter.schema(spot, 0, false);
            let used = values - converter.values_left;
            self.work_left.set(self.work_left.get().saturating_sub(used));
            let Ok(schema) = outcome else {
                self.too_much.add(attempt, (values, allowance.text_bytes));
                continue;
            };
            allowance.values -= used;
            allowance.text_bytes = converter.text_left;
            self.values_left.set(self.values_left.get().saturating_sub(used));
            converter.notes.iter().for_each(|note| notes.add(note));
            if converter.is_cut && direction == Direction::Input {
                notes
                    .add(format!("what is nested deeper than {depth_max} levels is not described"));
            }
            return schema;
        }
        notes.add("its schema is too large to be described");
        json!({})
    }
}

/// Reads one schema at one depth.
pub(super) struct Converter<'r, 'a> {
    pub(super) reader: &'r Reader<'a>,
    pub(super) direction: Direction,
    depth_max: usize,
    values_left: usize,
    text_left: usize,
    /// The targets of the references that are being replaced, by address.
    pub(super) open: Vec<usize>,
    nesting: usize,
    notes: Vec<String>,
    /// How often something was left out, so that a schema takes more than it should.
    pub(super) losses: usize,
    is_cut: bool,
}

impl<'a> Converter<'_, 'a> {
    pub(super) fn note(&mut self, note: impl Into<String>) {
        let note = note.into();
        if !self.notes.contains(&note) && self.notes.len() < 40 {
            self.notes.push(note);
        }
    }

    /// Notes that something is left out.
    pub(super) fn lose(&mut self, note: impl Into<String>) {
        self.losses += 1;
        self.note(note);
    }

    pub(super) fn count(&mut self, values: usize, text: usize) -> Result<(), Overflow> {
        self.values_left = self.values_left.checked_sub(values).ok_or(Overflow)?;
        self.text_left = self.text_left.checked_sub(text).ok_or(Overflow)?;
        Ok(())
    }

    pub(super) fn below(&self, spot: Spot<'a>, value: &'a Value) -> Spot<'a> {
        self.reader.index.below(spot, value)
    }

    /// `is_fixed` where property names that are no keys cannot be given another name.
    pub(super) fn schema(
        &mut self,
        spot: Spot<'a>,
        depth: usize,
        is_fixed: bool,
    ) -> Result<Value, Overflow> {
        self.count(1, 0)?;
        let words = match spot.value {
            Value::Object(words) => words,
            Value::Bool(false) => return Ok(Value::Bool(false)),
            Value::Bool(true) => return Ok(json!({})),
            _ => {
                self.lose("something else stands where a schema belongs");
                return Ok(json!({}));
            }
        };
        if self.nesting == NESTING_MAX {
            return Ok(self.cut());
        }
        self.nesting += 1;
        let reference = ["$ref", "$dynamicRef", "$recursiveRef"]
            .iter()
            .find_map(|word| words.get(*word).and_then(Value::as_str));
        let schema = match reference {
            Some(reference) => self.reference(spot, words, reference, depth, is_fixed),
            None if depth >= self.depth_max && is_compound(words) => Ok(self.surface(words)),
            None => self.words(spot, words, depth, is_fixed).map(Value::Object),
        };
        self.nesting -= 1;
        schema
    }

    fn cut(&mut self) -> Value {
        self.is_cut = true;
        self.losses += 1;
        json!({})
    }

    /// What is left of a schema that is too deep to be followed.
    fn surface(&mut self, words: &'a Map<String, Value>) -> Value {
        self.is_cut = true;
        self.losses += 1;
        let mut out = Map::new();
        let (mut types, _) = words::types(words);
        if words.get("nullable") == Some(&Value::Bool(true)) && !types.is_empty() {
            types.push("null");
        }
        words::set_types(&mut out, types);
        Value::Object(out)
    }

    pub(super) fn description(
        &mut self,
        words: &'a Map<String, Value>,
    ) -> Result<Option<String>, Overflow> {
        let said = |word| words.get(word).and_then(Value::as_str).filter(|text| !text.is_empty());
        let description = said("description").or_else(|| said("title"));
        let text = description.map(|text| clean::lines(text, FIELD_TEXT_MAX)).unwrap_or_default();
        self.count(0, text.len())?;
        Ok(Some(text).filter(|text| !text.is_empty()))
    }

    /// The words of a schema without `$ref`.
    pub(super) fn words(
        &mut self,
        spot: Spot<'a>,
        words: &'a Map<String, Value>,
        depth: usize,
        is_fixed: bool,
    ) -> Result<Map<String, Value>, Overflow> {
        let mut out = Map::new();
        let (types, unknown) = words::types(words);
        if let Some(unknown) = unknown {
            self.lose(format!("{} is no type and is left out", clean::quoted(unknown)));
        }
        if let Some(description) = self.description(words)? {
            out.insert("description".to_owned(), Value::String(description));
        }
        if words.get("type").and_then(Value::as_str) == Some("file") {
            out.insert("format".to_owned(), json!("binary"));
        }
        words::set_types(&mut out, types);
        self.structure(spot, words, &mut out, depth, is_fixed)?;
        if self.direction == Direction::Input {
            self.demands(spot, words, &mut out, depth)?;
        } else if let Some(format) = words.get("format").filter(|format| format.is_string()) {
            out.insert("format".to_owned(), format.clone());
        }
        self.all_of(spot, words, &mut out, depth, is_fixed)?;
        for word in ["oneOf", "anyOf"] {
            self.union(spot, words, word, &mut out, depth)?;
        }
        words::imply_type(&mut out);
        let flag = |word: &str| words.get(word) == Some(&Value::Bool(true));
        if flag("nullable") || flag("x-nullable") {
            words::add_null(&mut out);
        }
        Ok(out)
    }

    /// Members and items.
    fn structure(
        &mut self,
        spot: Spot<'a>,
        words: &'a Map<String, Value>,
        out: &mut Map<String, Value>,
        depth: usize,
        is_fixed: bool,
    ) -> Result<(), Overflow> {
        let mut left_out = Vec::new();
        if let Some(Value::Object(members)) = words.get("properties") {
            let properties = self.properties(spot, members, &mut left_out, depth, is_fixed)?;
            out.insert("properties".to_owned(), Value::Object(properties));
        }
        if self.direction == Direction::Input {
            self.required(words, &left_out, out, depth, is_fixed)?;
        }
        match words.get("items") {
            None => {}
            Some(Value::Array(tuple)) => {
                let mut items = Vec::new();
                for item in tuple {
                    items.push(self.schema(self.below(spot, item), depth + 1, true)?);
                }
                out.insert("prefixItems".to_owned(), Value::Array(items));
            }
            Some(items) => {
                let items = self.schema(self.below(spot, items), depth + 1, is_fixed)?;
                out.insert("items".to_owned(), items);
            }
        }
        Ok(())
    }

    fn properties(
        &mut self,
        spot: Spot<'a>,
        members: &'a Map<String, Value>,
        left_out: &mut Vec<&'a str>,
        depth: usize,
        is_fixed: bool,
    ) -> Result<Map<String, Value>, Overflow> {
        let mut properties = Map::new();
        for (name, member) in members {
            self.count(1, 0)?;
            let member = self.below(spot, member);
            if self.is_of_other_direction(member) {
                left_out.push(name);
                continue;
            }
            if name.is_empty() || (is_fixed && !words::is_key(name)) {
                left_out.push(name);
                let name = clean::quoted(name);
                self.lose(format!("the member {name} cannot be shown by that name in its place"));
                continue;
            }
            self.count(0, name.len())?;
            let schema = self.schema(member, depth + 1, is_fixed)?;
            properties.insert(name.clone(), schema);
        }
        Ok(properties)
    }

    /// Whether a member is only in what the other direction carries.
    fn is_of_other_direction(&self, member: Spot<'a>) -> bool {
        let word = match self.direction {
            Direction::Input => "readOnly",
            Direction::Output => "writeOnly",
        };
        let says = |spot: Spot<'a>| spot.flag(word) == Some(true);
        if says(member) {
            return true;
        }
        let Ok(target) = self.reader.index.follow(member) else { return false };
        let parts = target.get("allOf").and_then(Value::as_array);
        let mut parts = parts.into_iter().flatten().take(4);
        says(target)
            || parts.any(|part| {
                let part = self.reader.index.follow(self.below(target, part));
                part.is_ok_and(says)
            })
    }

    fn required(
        &mut self,
        words: &'a Map<String, Value>,
        left_out: &[&str],
        out: &mut Map<String, Value>,
        depth: usize,
        is_fixed: bool,
    ) -> Result<(), Overflow> {
        let names = match words.get("required") {
            None => return Ok(()),
            Some(Value::Array(names)) => names,
            // A parameter says it of itself.
            Some(Value::Bool(_)) if depth == 0 => return Ok(()),
            Some(_) => {
                self.lose("`required` is a list of names beside `properties`; another is left out");
                return Ok(());
            }
        };
        let mut required: Vec<&str> = Vec::new();
        for name in names.iter().filter_map(Value::as_str) {
            self.count(1, name.len())?;
            let is_shown = !left_out.contains(&name) && (!is_fixed || words::is_key(name));
            if is_shown && !required.contains(&name) {
                required.push(name);
            }
        }
        if !required.is_empty() {
            out.insert("required".to_owned(), json!(required));
        }
        Ok(())
    }

    fn all_of(
        &mut self,
        spot: Spot<'a>,
        words: &'a Map<String, Value>,
        out: &mut Map<String, Value>,
        depth: usize,
        is_fixed: bool,
    ) -> Result<(), Overflow> {
        let Some(Value::Array(parts)) = words.get("allOf") else { return Ok(()) };
        let mut is_closed = true;
        let is_own_closed = out.get("additionalProperties") == Some(&Value::Bool(false));
        for part in parts {
            let part = self.schema(self.below(spot, part), depth, is_fixed)?;
            let Value::Object(part) = part else { continue };
            let closes = part.get("additionalProperties") == Some(&Value::Bool(false));
            is_closed &= closes || !part.contains_key("properties");
            if let Some(conflict) = merge::into(out, part) {
                self.lose(conflict);
            }
        }
        // A part that takes no other members would forbid those of the parts beside it.
        let closes = out.get("additionalProperties") == Some(&Value::Bool(false));
        if closes && !is_own_closed && !is_closed {
            out.remove("additionalProperties");
        }
        Ok(())
    }

    /// A value that presets or shows.
    pub(super) fn literal(&mut self, value: &Value) -> Result<Option<Value>, Overflow> {
        if !is_small(value) {
            return Ok(None);
        }
        self.count(1, value.to_string().len())?;
        Ok(Some(value.clone()))
    }
}

/// Whether a value presets or shows no more than a text of a few lines.
pub(super) fn is_small(value: &Value) -> bool {
    let mut left = LITERAL_BYTES_MAX;
    let mut waiting = vec![value];
    while let Some(value) = waiting.pop() {
        let size = match value {
            Value::String(text) => text.len() + 2,
            Value::Array(items) => items.len(),
            Value::Object(members) => members.keys().take(left).map(|name| name.len() + 3).sum(),
            _ => 8,
        };
        let Some(less) = left.checked_sub(size) else { return false };
        left = less;
        match value {
            Value::Array(items) => waiting.extend(items),
            Value::Object(members) => waiting.extend(members.values()),
            _ => {}
        }
    }
    true
}

/// Whether a schema has others in it.
fn is_compound(words: &Map<String, Value>) -> bool {
    const COMPOUND: [&str; 6] =
        ["properties", "items", "additionalProperties", "allOf", "oneOf", "anyOf"];
    COMPOUND.iter().any(|word| words.get(*word).is_some_and(|value| !value.is_boolean()))
}
