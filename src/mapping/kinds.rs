//! Which kinds of values a schema can take, as far as its words say.

use serde_json::{Map, Value};

use super::FieldType;

/// How deep combinators are looked into.
const LEVELS_MAX: usize = 16;

/// A set of the kinds of JSON. Integers are a kind of their own beside all other numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kinds(u8);

impl Kinds {
    pub(super) const NULL: Self = Self(1);
    pub(super) const BOOLEAN: Self = Self(1 << 1);
    pub(super) const INTEGER: Self = Self(1 << 2);
    /// With a fraction.
    pub(super) const FRACTION: Self = Self(1 << 3);
    pub(super) const STRING: Self = Self(1 << 4);
    pub(super) const ARRAY: Self = Self(1 << 5);
    pub(super) const OBJECT: Self = Self(1 << 6);
    pub(super) const ALL: Self = Self((1 << 7) - 1);
    const NUMBER: Self = Self(Self::INTEGER.0 | Self::FRACTION.0);

    /// Whether all of the others are in this set.
    pub(super) const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    pub(super) const fn has_none_of(self, other: Self) -> bool {
        self.0 & other.0 == 0
    }

    pub(super) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The words of JSON Schema for the set, `null` last.
    pub(super) fn words(self) -> Vec<&'static str> {
        let words = [
            ("string", Self::STRING),
            ("number", Self::NUMBER),
            ("integer", Self::INTEGER),
            ("boolean", Self::BOOLEAN),
            ("array", Self::ARRAY),
            ("object", Self::OBJECT),
            ("null", Self::NULL),
        ];
        let integer_only = !self.has(Self::FRACTION);
        let said = |word: &str, kind| match word {
            "integer" => integer_only && self.has(kind),
            _ => self.has(kind),
        };
        words.into_iter().filter(|(word, kind)| said(word, *kind)).map(|(word, _)| word).collect()
    }

    /// The one type besides `null`.
    pub(super) fn field_type(self) -> Option<FieldType> {
        Some(match self.without(Self::NULL) {
            Self::STRING => FieldType::String,
            Self::INTEGER => FieldType::Integer,
            Self::NUMBER => FieldType::Number,
            Self::BOOLEAN => FieldType::Boolean,
            Self::OBJECT => FieldType::Object,
            Self::ARRAY => FieldType::Array,
            _ => return None,
        })
    }

    fn of_word(word: &str) -> Self {
        match word {
            "null" => Self::NULL,
            "boolean" => Self::BOOLEAN,
            "integer" => Self::INTEGER,
            "number" => Self::NUMBER,
            "string" => Self::STRING,
            "array" => Self::ARRAY,
            "object" => Self::OBJECT,
            _ => Self(0),
        }
    }

    fn of_value(value: &Value) -> Self {
        match value {
            Value::Null => Self::NULL,
            Value::Bool(_) => Self::BOOLEAN,
            Value::Number(_) => Self::NUMBER,
            Value::String(_) => Self::STRING,
            Value::Array(_) => Self::ARRAY,
            Value::Object(_) => Self::OBJECT,
        }
    }

    fn union<'a>(values: &'a [Value], of: impl Fn(&'a Value) -> Self) -> Self {
        values.iter().map(of).fold(Self(0), Self::or)
    }

    /// What a schema can take by `type`, `enum`, `const` and its combinators.
    pub(super) fn of_schema(schema: &Value) -> Self {
        Self::of_level(schema, LEVELS_MAX)
    }

    /// The same of the words of a schema.
    pub(super) fn of_words(words: &Map<String, Value>) -> Self {
        Self::of_levels(words, LEVELS_MAX)
    }

    fn of_level(schema: &Value, levels: usize) -> Self {
        let Value::Object(schema) = schema else {
            return if *schema == Value::Bool(false) { Self(0) } else { Self::ALL };
        };
        Self::of_levels(schema, levels)
    }

    fn of_levels(schema: &Map<String, Value>, levels: usize) -> Self {
        let Some(levels) = levels.checked_sub(1) else { return Self::ALL };
        let mut kinds = match schema.get("type") {
            Some(Value::String(word)) => Self::of_word(word),
            Some(Value::Array(words)) => {
                Self::union(words, |word| Self::of_word(word.as_str().unwrap_or_default()))
            }
            _ => Self::ALL,
        };
        if let Some(Value::Array(values)) = schema.get("enum") {
            kinds = kinds.and(Self::union(values, Self::of_value));
        }
        if let Some(value) = schema.get("const") {
            kinds = kinds.and(Self::of_value(value));
        }
        for key in ["anyOf", "oneOf"] {
            if let Some(Value::Array(branches)) = schema.get(key) {
                kinds = kinds.and(Self::union(branches, |branch| Self::of_level(branch, levels)));
            }
        }
        if let Some(Value::Array(branches)) = schema.get("allOf") {
            let all = branches.iter().map(|branch| Self::of_level(branch, levels));
            kinds = all.fold(kinds, Self::and);
        }
        kinds
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn kinds_are_what_the_words_say() {
        let words = |schema: Value| Kinds::of_schema(&schema).words();
        assert_eq!(words(json!({"type": "integer"})), ["integer"]);
        assert_eq!(words(json!({"type": ["number", "null"]})), ["number", "null"]);
        assert_eq!(words(json!({"enum": ["a", null]})), ["string", "null"]);
        assert_eq!(words(json!({"type": "string", "enum": ["a", 1]})), ["string"]);
        assert_eq!(
            words(
                json!({"anyOf": [{"type": "object"}, {"const": 5}], "type": ["object", "integer"]})
            ),
            ["integer", "object"]
        );
        assert_eq!(words(json!({"allOf": [{"type": "object"}, {}]})), ["object"]);
        assert_eq!(Kinds::of_schema(&json!({})), Kinds::ALL);
        assert_eq!(words(json!(false)), [""; 0]);
        assert_eq!(
            Kinds::of_schema(&json!({"type": ["integer", "null"]})).field_type(),
            Some(FieldType::Integer)
        );
        let mut deep = json!({"type": "string"});
        (0..100_u8).for_each(|_| deep = json!({"anyOf": [deep]}));
        assert_eq!(Kinds::of_schema(&deep), Kinds::ALL);
    }
}
