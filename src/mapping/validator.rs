//! Arguments against the schema: the one place that names `jsonschema`.
//!
//! The validator reads [`Raw`] text where it stands: no tree is built, and numbers are judged by
//! their digits. Patterns run on an engine that is linear in its input; formats are not checked;
//! references outside of the schema are compile errors.

use std::borrow::Cow;

use jsonschema::json::{Array, Json, JsonNumber, Node, NodeIdentity, Object, cmp, unique};
use jsonschema::paths::{Location, LocationSegment};
use jsonschema::types::JsonType;
use jsonschema::{PatternOptions, ValidationError};
use serde_json::{Number, Value};

use super::MappingError;
use super::error::FieldProblem;
use crate::json::{Kind, OwnedRaw, Raw, to_value};

/// Above this size of the arguments only the first problem is looked for: a huge array of wrong
/// items must not become as many errors.
const ALL_PROBLEMS_BYTES_MAX: usize = 16 * 1024;
/// How many allowed values or known fields a text lists.
const LISTED_MAX: usize = 12;

/// A schema, compiled once.
#[derive(Debug)]
pub(super) struct Validator(jsonschema::Validator<RawJson>);

impl Validator {
    pub(super) fn compile(schema: &Value) -> Result<Self, MappingError> {
        jsonschema::options_for::<RawJson>()
            .with_pattern_options(PatternOptions::regex())
            .should_validate_formats(false)
            .build(schema)
            .map(Self)
            .map_err(|error| MappingError::Schema { problem: error.to_string() })
    }

    #[inline]
    pub(super) fn accepts(&self, arguments: Raw<'_>) -> bool {
        self.0.is_valid(Instance::Value(arguments))
    }

    /// The same for a value that is no argument yet.
    pub(super) fn accepts_value(&self, value: &Value) -> bool {
        OwnedRaw::parse(value.to_string().as_bytes())
            .is_ok_and(|value| self.accepts(value.as_raw()))
    }

    /// What does not fit; empty when everything does.
    pub(super) fn problems(&self, arguments: Raw<'_>) -> Vec<FieldProblem> {
        let instance = Instance::Value(arguments);
        if arguments.text().len() > ALL_PROBLEMS_BYTES_MAX {
            return self.0.validate(instance).err().iter().flat_map(problems_of).collect();
        }
        self.0.iter_errors(instance).flat_map(|error| problems_of(&error)).collect()
    }
}

fn problems_of(error: &ValidationError<'_>) -> Vec<FieldProblem> {
    use jsonschema::error::{TypeKind, ValidationErrorKind as Problem};
    let at = exposed_path(error.instance_path());
    let one = |problem: String| vec![FieldProblem { field: at.clone(), problem }];
    match error.kind() {
        Problem::Type { kind } => {
            let expected: Vec<&str> = match kind {
                TypeKind::Single(expected) => vec![expected.as_str()],
                TypeKind::Multiple(set) => set.iter().map(JsonType::as_str).collect(),
            };
            let given = kind_of(error.instance()).described();
            one(format!("expected {}, got {given}", expected.join(" or ")))
        }
        Problem::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            let problem = "this field is required".to_owned();
            vec![FieldProblem { field: joined(&at, name), problem }]
        }
        Problem::AdditionalProperties { unexpected } => {
            let unknown = unexpected.iter().map(|name| FieldProblem {
                field: joined(&at, &shortened(name)),
                problem: "there is no such field".to_owned(),
            });
            unknown.collect()
        }
        // What a schema without fields says of any field.
        Problem::FalseSchema => one("there is no field to be given here".to_owned()),
        Problem::Enum { options } => {
            let options = options.as_array().map(Vec::as_slice).unwrap_or_default();
            let listed: Vec<String> =
                options.iter().take(LISTED_MAX).map(ToString::to_string).collect();
            let more = if options.len() > LISTED_MAX { ", …" } else { "" };
            one(format!("expected one of {}{more}", listed.join(", ")))
        }
        _ => one(error.masked_with("the value").to_string()),
    }
}

/// Names come from the client here; a message shows what fits on a line.
fn shortened(name: &str) -> String {
    name.chars().take(64).map(|shown| if shown.is_control() { '?' } else { shown }).collect()
}

fn exposed_path(location: &Location) -> String {
    let mut path = String::new();
    for segment in location {
        match segment {
            LocationSegment::Index(index) => path = format!("{path}[{index}]"),
            LocationSegment::Property(name) => path = joined(&path, &shortened(&name)),
        }
    }
    path
}

fn joined(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

pub(super) const fn kind_of(value: &Value) -> Kind {
    match value {
        Value::Null => Kind::Null,
        Value::Bool(_) => Kind::Bool,
        Value::Number(_) => Kind::Number,
        Value::String(_) => Kind::String,
        Value::Array(_) => Kind::Array,
        Value::Object(_) => Kind::Object,
    }
}

/// JSON as exact text, for the validator.
#[derive(Debug)]
struct RawJson;

#[derive(Debug, Clone, Copy)]
enum Instance<'a> {
    Value(Raw<'a>),
    /// The name of a member, where a schema judges names.
    Name(&'a str),
}

impl Json for RawJson {
    type Node<'a> = Instance<'a>;
    type PreparedKey = Box<str>;
    type StringBuffer = String;

    /// A lookup passes over the members as well, so one pass for all keys is always better.
    const KEYS_PER_LOOKUP: usize = 1 << 20;
    const ACYCLIC: bool = true;

    fn prepare_key(key: &str) -> Box<str> {
        key.into()
    }

    fn with_string_node<T>(
        buffer: &mut String,
        string: &str,
        judge: impl FnOnce(Instance<'_>) -> T,
    ) -> T {
        buffer.clear();
        buffer.push_str(string);
        judge(Instance::Name(buffer))
    }
}

impl<'a> Instance<'a> {
    fn of_kind(self, kind: Kind) -> Option<Raw<'a>> {
        match self {
            Instance::Value(raw) if raw.kind() == kind => Some(raw),
            _ => None,
        }
    }
}

impl<'a> Node<'a, RawJson> for Instance<'a> {
    type Object = Members<'a>;
    type Array = Elements<'a>;
    type Number = ExactNumber<'a>;

    fn as_object(&self) -> Option<Members<'a>> {
        self.of_kind(Kind::Object).map(Members)
    }

    fn as_array(&self) -> Option<Elements<'a>> {
        self.of_kind(Kind::Array).map(Elements)
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        match *self {
            Instance::Value(raw) => raw.as_str(),
            Instance::Name(name) => Some(Cow::Borrowed(name)),
        }
    }

    fn as_number(&self) -> Option<ExactNumber<'a>> {
        self.of_kind(Kind::Number).map(|raw| ExactNumber(raw.text()))
    }

    fn as_boolean(&self) -> Option<bool> {
        self.of_kind(Kind::Bool).and_then(Raw::as_bool)
    }

    fn is_null(&self) -> bool {
        self.of_kind(Kind::Null).is_some()
    }

    fn json_type(&self) -> JsonType {
        let Instance::Value(raw) = self else { return JsonType::String };
        match raw.kind() {
            Kind::Null => JsonType::Null,
            Kind::Bool => JsonType::Boolean,
            Kind::Number => JsonType::Number,
            Kind::String => JsonType::String,
            Kind::Array => JsonType::Array,
            Kind::Object => JsonType::Object,
        }
    }

    fn equals_value(&self, expected: &Value) -> bool {
        match (self, expected) {
            (_, Value::String(expected)) => {
                self.as_string().is_some_and(|text| text == expected.as_str())
            }
            (_, Value::Number(expected)) => {
                self.as_number().is_some_and(|number| cmp::equal_numbers(&number, expected))
            }
            (Instance::Value(raw), _) => cmp::equal(&to_value(*raw), expected),
            (Instance::Name(_), _) => false,
        }
    }

    /// Only errors ask for it, and of them only the kind is told: an empty value of the kind does.
    fn to_value(&self) -> Cow<'a, Value> {
        Cow::Owned(match self.json_type() {
            JsonType::Null => Value::Null,
            JsonType::Boolean => Value::Bool(false),
            JsonType::Number | JsonType::Integer => Value::from(0),
            JsonType::String => Value::String(String::new()),
            JsonType::Array => Value::Array(Vec::new()),
            JsonType::Object => Value::Object(serde_json::Map::new()),
        })
    }

    /// No two values of a text start at one byte.
    fn identity(&self) -> Option<NodeIdentity> {
        let text = match self {
            Instance::Value(raw) => raw.text(),
            Instance::Name(name) => name,
        };
        Some(NodeIdentity::new(text.as_ptr().addr()))
    }
}

#[derive(Debug, Clone, Copy)]
struct Members<'a>(Raw<'a>);

impl<'a> Object<'a, RawJson> for Members<'a> {
    type Node = Instance<'a>;
    type MemberName = Cow<'a, str>;
    type MembersIter = MembersIter<'a>;

    fn len(&self) -> usize {
        self.0.entries().count()
    }

    fn is_empty(&self) -> bool {
        self.0.entries().next().is_none()
    }

    fn get(&self, key: &Box<str>) -> Option<Instance<'a>> {
        self.0.get(key).map(Instance::Value)
    }

    fn members(&self) -> MembersIter<'a> {
        MembersIter(self.0.entries())
    }
}

struct MembersIter<'a>(crate::json::Entries<'a>);

impl<'a> Iterator for MembersIter<'a> {
    type Item = (Cow<'a, str>, Instance<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|(name, value)| (name, Instance::Value(value)))
    }
}

#[derive(Debug, Clone, Copy)]
struct Elements<'a>(Raw<'a>);

impl<'a> Array<'a, RawJson> for Elements<'a> {
    type Node = Instance<'a>;
    type ElementsIter = ElementsIter<'a>;

    fn len(&self) -> usize {
        self.0.items().count()
    }

    fn elements(&self) -> ElementsIter<'a> {
        ElementsIter(self.0.items())
    }

    fn is_unique(&self) -> bool {
        unique::is_unique(&self.0.items().map(to_value).collect::<Vec<_>>())
    }
}

struct ElementsIter<'a>(crate::json::Items<'a>);

impl<'a> Iterator for ElementsIter<'a> {
    type Item = Instance<'a>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(Instance::Value)
    }
}

/// A number as its digits.
#[derive(Debug, Clone, Copy)]
struct ExactNumber<'a>(&'a str);

impl JsonNumber for ExactNumber<'_> {
    fn as_u64(&self) -> Option<u64> {
        self.0.parse().ok()
    }

    fn as_i64(&self) -> Option<i64> {
        self.0.parse().ok()
    }

    fn as_f64(&self) -> Option<f64> {
        self.0.parse().ok()
    }

    fn as_str(&self) -> Cow<'_, str> {
        Cow::Borrowed(self.0)
    }

    fn to_number(&self) -> Cow<'_, Number> {
        let nearest = |text: &str| Number::from_f64(text.parse().ok()?);
        let number = self.as_i64().map(Number::from).or_else(|| self.as_u64().map(Number::from));
        Cow::Owned(number.or_else(|| nearest(self.0)).unwrap_or_else(|| Number::from(u64::MAX)))
    }

    fn is_integer(&self) -> bool {
        is_integer(self.0)
    }
}

/// Whether the number has no fractional part, by its digits: `10`, `1e3`, `1.0`, `100e-2`.
fn is_integer(text: &str) -> bool {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let fraction = fraction.trim_end_matches('0');
    let digits = whole.trim_start_matches('-');
    if fraction.is_empty() && digits.bytes().all(|digit| digit == b'0') {
        return true;
    }
    let negative = exponent.starts_with('-');
    let exponent = exponent.trim_start_matches(['+', '-']).trim_start_matches('0');
    // An exponent with more digits than this moves the point out of any text.
    let places: usize = match exponent {
        "" => 0,
        _ => exponent.parse().unwrap_or(usize::MAX),
    };
    if negative && places > 0 {
        let zeros = digits.len() - digits.trim_end_matches('0').len();
        fraction.is_empty() && places <= zeros
    } else {
        fraction.len() <= places
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::json::guard;

    fn root(text: &str) -> Raw<'_> {
        guard(text.as_bytes()).unwrap().root()
    }

    #[test]
    fn integers_are_told_by_their_digits() {
        for text in [
            "0",
            "-0",
            "0.0",
            "0e-5",
            "10",
            "1.0",
            "1e3",
            "1.5e1",
            "1.50e1",
            "100e-2",
            "1e400",
            "-12345678901234567890123",
            "0.00e-99999999999999999999",
            "1e99999999999999999999",
        ] {
            assert!(is_integer(text), "{text}");
        }
        for text in ["0.5", "1.5", "1e-1", "1.55e1", "100e-3", "1.0001", "1e-99999999999999999999"]
        {
            assert!(!is_integer(text), "{text}");
        }
    }

    #[test]
    fn a_plan_can_be_shared_between_cores() {
        fn shared<T: Send + Sync>() {}
        shared::<Validator>();
    }

    /// The same schema and value through `serde_json` trees gives the same verdict.
    #[test]
    fn verdicts_are_those_of_trees() {
        let schema = json!({
            "type": "object", "required": ["a"], "additionalProperties": false,
            "properties": {
                "a": {"type": "integer", "minimum": 1, "maximum": 100},
                "b": {"type": "array", "items": {"type": ["string", "null"]}, "uniqueItems": true},
                "c": {"enum": ["x", 1, 2.5, {"k": [1]}, null]},
                "d": {"type": "string", "minLength": 2, "pattern": "^é+$"},
                "e": {"type": "object", "propertyNames": {"maxLength": 2}},
            },
        });
        let ours = Validator::compile(&schema).unwrap();
        let theirs = jsonschema::validator_for(&schema).unwrap();
        for text in [
            r#"{"a":1}"#,
            r#"{"a":1.0}"#,
            r#"{"a":1.5}"#,
            r#"{"a":0}"#,
            r#"{"a":101}"#,
            r#"{"a":"1"}"#,
            "{}",
            r#"{"a":1,"z":1}"#,
            "[]",
            r#"{"a":1,"b":[]}"#,
            r#"{"a":1,"b":["x",null]}"#,
            r#"{"a":1,"b":["x","\u0078"]}"#,
            r#"{"a":1,"b":{}}"#,
            r#"{"a":1,"c":"x"}"#,
            r#"{"a":1,"c":1.0}"#,
            r#"{"a":1,"c":2.50}"#,
            r#"{"a":1,"c":{"k":[1.0]}}"#,
            r#"{"a":1,"c":null}"#,
            r#"{"a":1,"c":true}"#,
            r#"{"a":1,"d":"\u00e9é"}"#,
            r#"{"a":1,"d":"é"}"#,
            r#"{"a":1,"d":"ab"}"#,
            r#"{"a":1,"e":{"ab":1}}"#,
            r#"{"a":1,"e":{"abc":1}}"#,
            r#"{"\u0061":7}"#,
        ] {
            let expected = theirs.is_valid(&to_value(root(text)));
            assert_eq!(ours.accepts(root(text)), expected, "{text}");
            assert_eq!(ours.problems(root(text)).is_empty(), expected, "{text}");
        }
        assert!(!ours.accepts(root(r#"{"a":1e400}"#)));
        assert!(!ours.accepts(root(r#"{"a":123456789012345678901234567890}"#)));
    }

    #[test]
    fn outside_references_are_refused() {
        let schema =
            json!({"type": "object", "additionalProperties": {"$ref": "http://127.0.0.1/s"}});
        assert!(matches!(Validator::compile(&schema), Err(MappingError::Schema { .. })));
        let schema =
            json!({"type": "object", "additionalProperties": {"$ref": "file:///etc/passwd"}});
        assert!(matches!(Validator::compile(&schema), Err(MappingError::Schema { .. })));
    }

    #[test]
    fn a_flood_of_errors_is_told_by_its_first() {
        let array = json!({"type": "array", "items": {"type": "string"}});
        let schema = json!({"type": "object", "properties": {"a": array}});
        let validator = Validator::compile(&schema).unwrap();
        let text = format!("{{\"a\":[{}1]}}", "1,".repeat(500_000));
        assert_eq!(validator.problems(root(&text)).len(), 1);
    }
}
