//! The bytes of a document as a tree, whether they are JSON or YAML.
//!
//! Bounded in size by [`Documents`](crate::import::Documents), in depth by each parser, in memory by
//! a weight that every value has, and for YAML in what aliases may unfold to. A key that stands
//! twice in one object is an error in both: whichever was meant, the other would be lost.
//!
//! A tree has the members of its objects in the order of their names. Where the order of the document
//! matters, which is in XML and in parts, it stands beside them: see [`ORDER`].

use std::cell::Cell;
use std::fmt;

use encoding_rs::{Encoding, UTF_8};
use serde::Deserialize;
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::map::Entry;
use serde_json::{Map, Number, Value};

use crate::catalog::yaml_options;
use crate::import::{ImportError, Location};

/// How deep a document may nest; `serde_json` has the same bound.
pub(super) const DEPTH_MAX: usize = 127;
/// How much the documents of an import may weigh together: about a gigabyte as a tree.
const WEIGHT_MAX: usize = 16_000_000;
/// A tree keeps room for several members in every object.
const OBJECT_WEIGHT: usize = 8;

/// The member of a schema with the names of its `properties` in the order of the document, in
/// documents that speak of XML or of parts that have no names, and where it is another one than that
/// of the names.
pub(super) const ORDER: &str = "x-ringway-order";
/// Members that hold values of the API.
const VALUES: [&str; 6] = ["example", "examples", "default", "enum", "const", "value"];

/// What all documents of an import may weigh together.
#[derive(Debug)]
pub(super) struct Room(usize);

impl Room {
    pub(super) const fn new() -> Self {
        Self(WEIGHT_MAX)
    }
}

/// Reads a document.
///
/// # Errors
/// When it is neither JSON nor YAML, or goes beyond a bound.
pub(super) fn parse(
    location: &Location,
    bytes: &[u8],
    room: &mut Room,
) -> Result<Value, ImportError> {
    // YAML 1.2, section 5.2: a byte order mark says which it is.
    let (encoding, mark) = Encoding::for_bom(bytes).unwrap_or((UTF_8, 0));
    let text = encoding
        .decode_without_bom_handling_and_without_replacement(bytes.get(mark..).unwrap_or_default());
    let text = text.ok_or_else(|| {
        ImportError::unusable(location, format!("it is no text in {}", encoding.name()))
    })?;
    let text = &*text;
    if text.trim_start().starts_with(['{', '[']) {
        json(location, text, room)
    } else {
        yaml(location, text, room)
    }
}

fn json(location: &Location, text: &str, room: &mut Room) -> Result<Value, ImportError> {
    let state = State::new(Some(room.0), text);
    let left = &state.left;
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let tree = Tree::new(&state).deserialize(&mut deserializer);
    let tree = tree.and_then(|tree| deserializer.end().map(|()| tree));
    room.0 = left.get().unwrap_or_default();
    tree.map_err(|error| {
        let message = error.to_string();
        if left.get().is_none() {
            ImportError::limit(location, "it holds too many values")
        } else if message.starts_with("recursion limit") {
            ImportError::limit(location, format!("it is nested deeper than {DEPTH_MAX} levels"))
        } else {
            ImportError::unusable(location, format!("it is no JSON: {message}"))
        }
    })
}

fn yaml(location: &Location, text: &str, room: &mut Room) -> Result<Value, ImportError> {
    let options = yaml_options(DEPTH_MAX);
    let tree = if has_order(text) {
        serde_saphyr::from_str_with_options(text, options).map(|Unweighed::<true>(tree)| tree)
    } else {
        serde_saphyr::from_str_with_options(text, options).map(|Unweighed::<false>(tree)| tree)
    };
    let tree = tree.map_err(|error| yaml_error(location, &error))?;
    room.0 = room.0.checked_sub(weight(&tree)).ok_or_else(|| {
        ImportError::limit(location, "it and the documents before it hold too many values")
    })?;
    Ok(tree)
}

/// Recursion is bounded: a tree is at most [`DEPTH_MAX`] levels deep.
fn weight(tree: &Value) -> usize {
    match tree {
        Value::Array(items) => 1 + items.iter().map(weight).sum::<usize>(),
        Value::Object(members) => OBJECT_WEIGHT + members.values().map(weight).sum::<usize>(),
        _ => 1,
    }
}

fn yaml_error(location: &Location, error: &serde_saphyr::Error) -> ImportError {
    use serde_saphyr::budget::BudgetBreach;
    let line = error.location().map_or(0, |location| location.line());
    match error.without_snippet() {
        serde_saphyr::Error::Budget { breach: BudgetBreach::Documents { .. }, .. } => {
            ImportError::unusable(location, "it has a second YAML document; one is read")
        }
        serde_saphyr::Error::Budget { breach: BudgetBreach::Depth { .. }, .. } => {
            ImportError::limit(location, format!("it is nested deeper than {DEPTH_MAX} levels"))
        }
        other => {
            let message = other.to_string();
            // Inside an alias the variant is another one, and the words are the same.
            if message.starts_with("budget breached") {
                return ImportError::limit(
                    location,
                    "it holds too many values, counted with its aliases unfolded",
                );
            }
            if message.starts_with("recursion limit") {
                let limit = format!("it is nested deeper than {DEPTH_MAX} levels");
                return ImportError::limit(location, limit);
            }
            // Names of options do not concern the writer of the document.
            let end = [" at line ", ", set DuplicateKeyPolicy"]
                .iter()
                .filter_map(|tail| message.find(tail))
                .min();
            let message = message[..end.unwrap_or(message.len())].replace('\n', "; ");
            ImportError::unusable(location, format!("it is no YAML: line {line}: {message}"))
        }
    }
}

/// A tree whose weight the parser's own budget bounds, with or without [`ORDER`].
struct Unweighed<const ORDERED: bool>(Value);

impl<'de, const ORDERED: bool> Deserialize<'de> for Unweighed<ORDERED> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let state = State {
            left: Cell::new(Some(usize::MAX)),
            is_ordered: ORDERED,
            order: Cell::default(),
        };
        Tree::new(&state).deserialize(deserializer).map(Self)
    }
}

fn has_order(text: &str) -> bool {
    let words = ["xml", "multipart/mixed", "multipart/related"];
    words.iter().any(|word| memchr::memmem::find(text.as_bytes(), word.as_bytes()).is_some())
}

/// What the parts of a tree share.
struct State {
    /// The weight that is left, `None` once it was not enough.
    left: Cell<Option<usize>>,
    is_ordered: bool,
    /// The names of the `properties` that were read last.
    order: Cell<Vec<String>>,
}

impl State {
    fn new(left: Option<usize>, text: &str) -> Self {
        Self { left: Cell::new(left), is_ordered: has_order(text), order: Cell::default() }
    }
}

/// Where a part of a tree stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Its members are words of the description.
    Words,
    /// It is the table of a schema's members.
    Properties,
    /// It is a value of the API.
    Values,
}

/// Builds a tree.
#[derive(Clone, Copy)]
struct Tree<'c> {
    state: &'c State,
    place: Place,
}

impl<'c> Tree<'c> {
    const fn new(state: &'c State) -> Self {
        Self { state, place: Place::Words }
    }

    fn weigh<E: de::Error>(self, weight: usize) -> Result<(), E> {
        let left = &self.state.left;
        left.set(left.get().and_then(|left| left.checked_sub(weight)));
        left.get().map(drop).ok_or_else(|| E::custom("too many values"))
    }

    /// For the member of this name.
    fn below(self, name: &str) -> Self {
        let place = match self.place {
            Place::Words if name == "properties" => Place::Properties,
            Place::Words if VALUES.contains(&name) => Place::Values,
            Place::Words | Place::Properties => Place::Words,
            Place::Values => Place::Values,
        };
        Self { place, ..self }
    }
}

impl<'de> DeserializeSeed<'de> for Tree<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Tree<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("text, a number, true, false, null, a list or an object")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    #[expect(clippy::cast_precision_loss, reason = "a tree holds the nearest double")]
    fn visit_i128<E: de::Error>(self, value: i128) -> Result<Value, E> {
        self.visit_f64(value as f64)
    }

    #[expect(clippy::cast_precision_loss, reason = "a tree holds the nearest double")]
    fn visit_u128<E: de::Error>(self, value: u128) -> Result<Value, E> {
        self.visit_f64(value as f64)
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        let number = Number::from_f64(value);
        number.map(Value::Number).ok_or_else(|| E::custom("a number that is not finite"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element_seed(self)? {
            self.weigh(1)?;
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        self.weigh(OBJECT_WEIGHT)?;
        let mut members = Map::new();
        let lists_names = self.state.is_ordered && self.place == Place::Properties;
        let (mut names, mut order) = (Vec::new(), Vec::new());
        // A plain `null` is a name like others.
        while let Some(key) = access.next_key::<Option<String>>()? {
            let key = key.unwrap_or_else(|| "null".to_owned());
            self.weigh(1)?;
            if lists_names {
                names.push(key.clone());
            }
            let below = self.below(&key);
            match members.entry(key) {
                Entry::Vacant(free) => {
                    free.insert(access.next_value_seed(below)?);
                    if below.place == Place::Properties {
                        order = self.state.order.take();
                    }
                }
                Entry::Occupied(taken) => {
                    let shown: String = taken.key().chars().take(64).collect();
                    return Err(de::Error::custom(format!("duplicate key `{shown}`")));
                }
            }
        }
        if !order.is_empty() {
            self.weigh(1 + order.len())?;
            let order = Value::Array(order.into_iter().map(Value::String).collect());
            members.entry(ORDER).or_insert(order);
        }
        // Taken where they belong as soon as this is read.
        self.state.order.set(if names.is_sorted() { Vec::new() } else { names });
        Ok(Value::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Result<Value, String> {
        let location = Location::parse("bundle:/api.yaml").unwrap();
        parse(&location, text.as_bytes(), &mut Room::new()).map_err(|error| error.to_string())
    }

    #[test]
    fn yaml_scalars_are_what_they_look_like() {
        let text = "a: no\nb: 12:30:45\nc: 2024-01-01\nd: 2024-01-01T10:00:00Z\ne: 1\nf: 1.5\n\
                    g: ~\nh: true\ni: '1'\nj: on\n200: x\nnull: y\n";
        let expected = json!({
            "a": "no", "b": "12:30:45", "c": "2024-01-01", "d": "2024-01-01T10:00:00Z", "e": 1,
            "f": 1.5, "g": null, "h": true, "i": "1", "j": "on", "200": "x", "null": "y",
        });
        assert_eq!(read(text).unwrap(), expected);
        let merged = read("a: &a {x: 1, y: 2}\nb:\n  <<: *a\n  y: 3\n").unwrap();
        assert_eq!(merged["b"], json!({"x": 1, "y": 3}));
        assert_eq!(read("\u{feff}{\"a\": 18446744073709551615}").unwrap()["a"], u64::MAX);
        assert_eq!(
            read("a: 123456789012345678901234567890").unwrap()["a"],
            1.234_567_890_123_456_8e29
        );
    }

    #[test]
    fn the_order_of_members_is_kept_where_xml_needs_it() {
        let schemas = "{\"xml\": {}, \"properties\": {\"b\": {\"properties\": {\"y\": 1, \"x\": 2}}, \
                       \"properties\": {\"properties\": {\"a\": 1, \"b\": 1}}, \"a\": {}}, \
                       \"default\": {\"properties\": {\"d\": 1, \"c\": 2}}}";
        let plain: Value = serde_json::from_str(schemas).unwrap();
        for text in [schemas.to_owned(), format!("# YAML\n{schemas}")] {
            let tree = read(&text).unwrap();
            let mut expected = plain.clone();
            expected[ORDER] = json!(["b", "properties", "a"]);
            expected["properties"]["b"][ORDER] = json!(["y", "x"]);
            assert_eq!(tree, expected);
            let tree = read(&text.replace("xml", "other")).unwrap();
            assert_eq!(tree.get(ORDER), None);
        }
    }

    #[test]
    fn faults_are_told_with_their_line() {
        for (text, expected) in [
            ("{\"a\": 1,\n\"a\": 2}", "api.yaml: it is no JSON: duplicate key `a` at line 2"),
            ("{\"a\": 1,}", "api.yaml: it is no JSON: trailing comma at line 1"),
            ("{} {}", "api.yaml: it is no JSON: trailing characters"),
            ("a: 1\na: 2\n", "api.yaml: it is no YAML: line 2: duplicate mapping key: a"),
            ("a: [1\n", "api.yaml: it is no YAML: line"),
            ("a: 1\n---\nb: 2\n", "api.yaml: it has a second YAML document"),
            ("a: .inf\n", "api.yaml: it is no YAML: line 1: non-finite"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with(expected), "{text:?}: {error}");
        }
        let location = Location::parse("bundle:/api.yaml").unwrap();
        assert!(parse(&location, b"\xff\xfe{", &mut Room::new()).is_err());
    }

    #[test]
    fn bombs_are_defused() {
        let mut aliases = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..12 {
            let list = vec![format!("*a{}", level - 1); 10].join(", ");
            let _ = writeln!(aliases, "a{level}: &a{level} [{list}]");
        }
        let error = read(&aliases).unwrap_err();
        assert!(error.contains("with its aliases unfolded"), "{error}");
        for text in ["[".repeat(100_000), format!("a: {}", "[".repeat(100_000))] {
            let error = read(&text).unwrap_err();
            assert!(error.contains("nested deeper than 127 levels"), "{error}");
        }
        let deep = format!("{}1{}", "{\"a\":".repeat(DEPTH_MAX), "}".repeat(DEPTH_MAX));
        assert!(read(&deep).is_ok());
        let location = Location::parse("bundle:/api.yaml").unwrap();
        let heavy = format!("[{}1]", "{},".repeat(WEIGHT_MAX / 9 + 1));
        let error = parse(&location, heavy.as_bytes(), &mut Room::new()).unwrap_err();
        assert!(matches!(error, ImportError::Limit { .. }), "{error}");
    }

    #[test]
    fn a_byte_order_mark_tells_the_encoding() {
        let location = Location::parse("bundle:/api.yaml").unwrap();
        let wide = |text: &str, bytes: fn(u16) -> [u8; 2]| -> Vec<u8> {
            format!("\u{feff}{text}").encode_utf16().flat_map(bytes).collect()
        };
        for text in ["{\"a\": \"é𝄞\"}", "a: é𝄞\n"] {
            let utf8 = format!("\u{feff}{text}").into_bytes();
            for bytes in [utf8, wide(text, u16::to_le_bytes), wide(text, u16::to_be_bytes)] {
                let tree = parse(&location, &bytes, &mut Room::new()).unwrap();
                assert_eq!(tree, serde_json::json!({"a": "é𝄞"}), "{bytes:?}");
            }
        }
        let mut half = wide("a: 1", u16::to_le_bytes);
        half.pop();
        for (bytes, encoding) in [(&*half, "UTF-16LE"), (&b"a: \xff"[..], "UTF-8")] {
            let error = parse(&location, bytes, &mut Room::new()).unwrap_err().to_string();
            assert!(error.contains(&format!("no text in {encoding}")), "{error}");
        }
    }
}
