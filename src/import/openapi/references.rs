//! References in schemas: replaced by what they point to, cut where they go round.

use serde_json::{Map, Value, json};

use super::Version;
use super::clean;
use super::library::Spot;
use super::merge;
use super::schema::{Converter, Overflow};
use super::words;

impl<'a> Converter<'_, 'a> {
    /// What a reference points to, with the words beside it.
    pub(super) fn reference(
        &mut self,
        spot: Spot<'a>,
        words: &'a Map<String, Value>,
        reference: &'a str,
        depth: usize,
        is_fixed: bool,
    ) -> Result<Value, Overflow> {
        let target = match self.reader.index.resolve(spot, reference) {
            Ok(target) => target,
            Err(error) => {
                self.lose(format!("{error}; any value is taken there"));
                return Ok(json!({}));
            }
        };
        let schema = if self.open.contains(&target.address()) {
            let name = reference.rsplit('/').next().unwrap_or_default();
            let name = clean::line(name, 64);
            self.losses += 1;
            self.note(format!("`{name}` contains itself; the inner one is not described"));
            json!({ "description": format!("Another {name}, as around it.") })
        } else {
            self.open.push(target.address());
            let schema = self.schema(target, depth, is_fixed);
            self.open.pop();
            schema?
        };
        self.siblings(spot, words, schema, depth, is_fixed)
    }

    /// Words beside a `$ref`. Before 3.1 they mean nothing; those that only describe are taken, as
    /// their writers meant them.
    fn siblings(
        &mut self,
        spot: Spot<'a>,
        words: &'a Map<String, Value>,
        schema: Value,
        depth: usize,
        is_fixed: bool,
    ) -> Result<Value, Overflow> {
        if words.len() == 1 {
            return Ok(schema);
        }
        let Value::Object(mut schema) = schema else { return Ok(schema) };
        if self.reader.version == Version::V31 {
            let own = self.words(spot, words, depth, is_fixed)?;
            let mut merged = own;
            if let Some(conflict) = merge::into(&mut merged, schema) {
                self.lose(conflict);
            }
            return Ok(Value::Object(merged));
        }
        if let Some(description) = self.description(words)? {
            schema.insert("description".to_owned(), Value::String(description));
        }
        if words.get("nullable") == Some(&Value::Bool(true)) {
            words::add_null(&mut schema);
        }
        let is_judging = |word: &str| words::is_judging(word);
        if words.keys().any(|word| is_judging(word)) {
            self.lose("words beside a $ref mean nothing before OpenAPI 3.1 and are left out");
        }
        Ok(Value::Object(schema))
    }
}
