//! The argument that asks a tool for the next part of a result that was cut.
//!
//! A field of the tool's own keeps its name: what is written there goes to the API, so a call that
//! was to read on would be made again. The first free one of a few names is taken instead, always
//! the same for the same schema; where none is free, the rest is only a resource.

use serde_json::{Map, Value, json};

use crate::mapping::ResultBudget;

/// In the order they are tried.
const NAMES: [&str; 3] = ["next", "next_part", "next_part_of_result"];
/// How many schemas are looked through for what is taken. With more, all names count as taken.
const SCHEMAS_MAX: usize = 1_000;

/// The input schema of a tool whose results are cut, and the argument's name in it: clients that
/// hold a model to the schema must let it ask for the rest. `None` where it stays as it is.
pub(super) fn with_next(input: &Value, budget: &ResultBudget) -> Option<(Value, &'static str)> {
    if budget.is_unlimited() {
        return None;
    }
    let name = free_name(input)?;
    let mut input = input.clone();
    let properties = input.as_object_mut()?.entry("properties").or_insert_with(|| json!({}));
    properties.as_object_mut()?.insert(name.to_owned(), next_schema());
    Some((input, name))
}

pub(super) fn next_schema() -> Value {
    let description = "Only for more of a result that was cut: what that result says. The other \
                       arguments do not matter then.";
    json!({ "type": "string", "description": description })
}

fn free_name(input: &Value) -> Option<&'static str> {
    let mut is_taken = [false; NAMES.len()];
    let mut waiting = vec![input];
    for _ in 0..SCHEMAS_MAX {
        let Some(schema) = waiting.pop() else {
            return NAMES.into_iter().zip(is_taken).find(|(_, taken)| !taken).map(|(name, _)| name);
        };
        let Some(words) = schema.as_object() else { continue };
        for (name, is_taken) in NAMES.iter().zip(&mut is_taken) {
            *is_taken |= has(words, "properties", name) || is_required(words, name);
        }
        waiting.extend(beside(input, words));
    }
    None
}

fn has(words: &Map<String, Value>, word: &str, name: &str) -> bool {
    words.get(word).is_some_and(|properties| properties.get(name).is_some())
}

fn is_required(words: &Map<String, Value>, name: &str) -> bool {
    let required = words.get("required").and_then(Value::as_array);
    required.is_some_and(|required| required.iter().any(|known| known == name))
}

/// The schemas that are about the same object.
fn beside<'a>(root: &'a Value, words: &'a Map<String, Value>) -> impl Iterator<Item = &'a Value> {
    let lists = ["allOf", "anyOf", "oneOf"].into_iter();
    let listed = lists.filter_map(|word| words.get(word)?.as_array()).flatten();
    let single = ["if", "then", "else"].into_iter().filter_map(|word| words.get(word));
    let pointer = words.get("$ref").and_then(Value::as_str);
    let referred = pointer.and_then(|pointer| root.pointer(pointer.strip_prefix('#')?));
    listed.chain(single).chain(referred)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(input: &Value) -> Option<&'static str> {
        let budget = ResultBudget { rows: Some(3), ..ResultBudget::default() };
        let (shown, name) = with_next(input, &budget)?;
        assert_eq!(shown["properties"][name], next_schema());
        assert_eq!(with_next(input, &ResultBudget::default()), None);
        Some(name)
    }

    #[test]
    fn a_field_keeps_its_name_wherever_the_schema_has_it() {
        let taken = json!({"properties": {"next": true}});
        let both = json!({"properties": {"next": true, "next_part": true}});
        for (input, expected) in [
            (json!({}), Some("next")),
            (json!({"properties": {"node": taken.clone()}}), Some("next")),
            (taken.clone(), Some("next_part")),
            (both.clone(), Some("next_part_of_result")),
            (json!({"required": ["next"]}), Some("next_part")),
            (json!({"allOf": [{"anyOf": [taken.clone()]}]}), Some("next_part")),
            (json!({"if": {}, "then": taken.clone(), "else": both}), Some("next_part_of_result")),
            (json!({"$ref": "#/$defs/a", "$defs": {"a": taken}}), Some("next_part")),
            (json!({"properties": {"next": 1, "next_part": 1, "next_part_of_result": 1}}), None),
        ] {
            assert_eq!(name(&input), expected, "{input}");
        }
    }

    #[test]
    fn a_schema_that_goes_round_ends() {
        let round = json!({"allOf": [{"$ref": "#"}, {"$ref": "#"}]});
        assert_eq!(name(&round), None);
    }
}
