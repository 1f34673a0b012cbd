//! TOML, YAML and JSON text as a located tree.
//!
//! Bounded on every side: the size of a file by its reader, nesting (by each parser, and for TOML
//! before it), and for YAML what aliases may unfold to.

use std::cell::Cell;
use std::fmt;
use std::io;
use std::ops::Range;

use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Number;
use toml::de::{DeTable, DeValue};

use super::tree::{Fault, Key, Node, Value};
use super::yaml::yaml_options;
use crate::settings::{TOML_DEPTH_MAX, too_deep_at};

const YAML_DEPTH_MAX: usize = 64;

/// The formats of declarative files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Toml,
    Yaml,
    Json,
}

impl Format {
    /// By the ending of a file's name.
    pub(super) fn of_extension(extension: &str) -> Option<Self> {
        match extension {
            "toml" => Some(Self::Toml),
            "yaml" | "yml" => Some(Self::Yaml),
            "json" => Some(Self::Json),
            _ => None,
        }
    }

    /// Reads a whole file. An error leaves nothing usable; TOML reports several at once.
    pub(super) fn parse(self, text: &str) -> Result<Node, Vec<Fault>> {
        match self {
            Self::Toml => toml_tree(text),
            Self::Yaml => yaml_tree(text).map_err(|fault| vec![fault]),
            Self::Json => json_tree(text).map_err(|fault| vec![fault]),
        }
    }
}

/// Finds the line of an offset.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Self {
        Self(memchr::memchr_iter(b'\n', text.as_bytes()).collect())
    }

    fn at(&self, span: &Range<usize>) -> u32 {
        line_number(self.0.partition_point(|newline| *newline < span.start) as u64 + 1)
    }
}

fn line_number(line: u64) -> u32 {
    u32::try_from(line).unwrap_or(u32::MAX)
}

fn toml_tree(text: &str) -> Result<Node, Vec<Fault>> {
    let lines = Lines::of(text);
    if let Some(at) = too_deep_at(text) {
        let message = format!("nested deeper than {TOML_DEPTH_MAX} levels");
        return Err(vec![Fault::new(lines.at(&(at..at)), message)]);
    }
    let (table, errors) = DeTable::parse_recoverable(text);
    let mut faults: Vec<Fault> = errors
        .iter()
        .map(|error| {
            let line = error.span().map_or(0, |span| lines.at(&span));
            Fault::new(line, error.message().replace('\n', "; "))
        })
        .collect();
    if faults.is_empty() {
        let tree = toml_table(table.get_ref(), 1, &lines);
        return tree.map_err(|fault| vec![fault]);
    }
    faults.sort_by_key(|fault| fault.line);
    Err(faults)
}

fn toml_table(table: &DeTable<'_>, line: u32, lines: &Lines) -> Result<Node, Fault> {
    let entries: Result<Vec<(Key, Node)>, Fault> = table
        .iter()
        .map(|(key, value)| {
            let line = lines.at(&key.span());
            let key = Key { line, text: key.get_ref().as_ref().to_owned() };
            Ok((key, toml_value(value.get_ref(), lines.at(&value.span()), lines)?))
        })
        .collect();
    let mut entries = entries?;
    // The parser's table is sorted by key; a reader expects the order of the file.
    entries.sort_by_key(|(key, _)| key.line);
    Ok(Node { line, value: Value::Table(entries) })
}

fn toml_value(value: &DeValue<'_>, line: u32, lines: &Lines) -> Result<Node, Fault> {
    let unfit = |what: &str| Fault::new(line, format!("a number that is {what}"));
    let value = match value {
        DeValue::String(text) => Value::Text(text.as_ref().to_owned()),
        DeValue::Boolean(value) => Value::Boolean(*value),
        DeValue::Datetime(moment) => Value::Text(moment.to_string()),
        DeValue::Integer(number) => {
            let number = i64::from_str_radix(number.as_str(), number.radix());
            Value::Number(number.map_err(|_| unfit("too large"))?.into())
        }
        DeValue::Float(number) => {
            let number = number.as_str().parse().ok().and_then(Number::from_f64);
            Value::Number(number.ok_or_else(|| unfit("not finite"))?)
        }
        DeValue::Array(items) => {
            let items =
                items.iter().map(|item| toml_value(item.get_ref(), lines.at(&item.span()), lines));
            Value::List(items.collect::<Result<_, _>>()?)
        }
        DeValue::Table(table) => return toml_table(table, line, lines),
    };
    Ok(Node { line, value })
}

fn yaml_tree(text: &str) -> Result<Node, Fault> {
    let options = yaml_options(YAML_DEPTH_MAX);
    let tree: Result<YamlNode, _> = serde_saphyr::from_str_with_options(text, options);
    tree.map(|tree| tree.0).map_err(|error| {
        let line = error.location().map_or(0, |location| line_number(location.line()));
        Fault::new(line, yaml_message(error.without_snippet()))
    })
}

/// The message without what does not concern the writer of the file: names of options, and the
/// place, which is said in our own form.
fn yaml_message(error: &serde_saphyr::Error) -> String {
    use serde_saphyr::budget::BudgetBreach;
    match error {
        serde_saphyr::Error::Budget { breach: BudgetBreach::Documents { .. }, .. } => {
            "a second document: a catalog file has one".to_owned()
        }
        serde_saphyr::Error::Budget { breach: BudgetBreach::Depth { .. }, .. } => {
            format!("nested deeper than {YAML_DEPTH_MAX} levels")
        }
        other => {
            let message = other.to_string();
            // Inside an alias the variant is another one, and the words are the same.
            if message.starts_with("budget breached") {
                return "too large, counted with its aliases unfolded".to_owned();
            }
            let end = [" at line ", ", set DuplicateKeyPolicy"]
                .iter()
                .filter_map(|tail| message.find(tail))
                .min();
            message[..end.unwrap_or(message.len())].replace('\n', "; ")
        }
    }
}

fn json_tree(text: &str) -> Result<Node, Fault> {
    let line = Cell::new(1);
    let reader = LineReader { rest: text.as_bytes(), line: &line, newlines: 0 };
    let mut deserializer = serde_json::Deserializer::from_reader(reader);
    let tree = JsonLines(&line).node(&mut deserializer);
    tree.and_then(|tree| deserializer.end().map(|()| tree)).map_err(|error| {
        let message = error.to_string();
        let end = message.rfind(" at line ").unwrap_or(message.len());
        Fault::new(line_number(error.line() as u64), &message[..end])
    })
}

/// Hands out bytes and keeps the line of the last one that was not white space.
///
/// `serde_json` looks at most one byte ahead, and only past a number; that byte is either part of
/// the same line or white space. So at every visit this is the line the value ends on, or begins on
/// in the case of a list or object.
struct LineReader<'a> {
    rest: &'a [u8],
    line: &'a Cell<u32>,
    newlines: u32,
}

impl io::Read for LineReader<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        // One byte at a time, whatever is asked for: a byte handed out counts as seen.
        let (Some(slot), Some((&byte, rest))) = (out.first_mut(), self.rest.split_first()) else {
            return Ok(0);
        };
        *slot = byte;
        self.rest = rest;
        match byte {
            b'\n' => self.newlines = self.newlines.saturating_add(1),
            b' ' | b'\t' | b'\r' => {}
            _ => self.line.set(self.newlines.saturating_add(1)),
        }
        Ok(1)
    }
}

/// How a format's deserializer tells lines.
trait Located: Copy {
    /// The line of what is being visited; 0 where `node` and `key` know it.
    fn line(self) -> u32;
    fn node<'de, D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error>;
    fn key<'de, D: Deserializer<'de>>(self, deserializer: D) -> Result<Key, D::Error>;
}

#[derive(Clone, Copy)]
struct JsonLines<'a>(&'a Cell<u32>);

impl Located for JsonLines<'_> {
    fn line(self) -> u32 {
        self.0.get()
    }

    fn node<'de, D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(NodeVisitor(self))
    }

    fn key<'de, D: Deserializer<'de>>(self, deserializer: D) -> Result<Key, D::Error> {
        let text = String::deserialize(deserializer)?;
        Ok(Key { line: self.line(), text })
    }
}

#[derive(Clone, Copy)]
struct YamlLines;

impl Located for YamlLines {
    fn line(self) -> u32 {
        0
    }

    fn node<'de, D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        YamlNode::deserialize(deserializer).map(|node| node.0)
    }

    fn key<'de, D: Deserializer<'de>>(self, deserializer: D) -> Result<Key, D::Error> {
        let key = serde_saphyr::Spanned::<String>::deserialize(deserializer)?;
        Ok(Key { line: line_number(key.referenced.line()), text: key.value })
    }
}

struct YamlNode(Node);

impl<'de> Deserialize<'de> for YamlNode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Unlocated(Node);
        impl<'de> Deserialize<'de> for Unlocated {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(NodeVisitor(YamlLines)).map(Self)
            }
        }
        let spanned = serde_saphyr::Spanned::<Unlocated>::deserialize(deserializer)?;
        let line = line_number(spanned.referenced.line());
        Ok(Self(Node { line, value: spanned.value.0.value }))
    }
}

struct NodeVisitor<L>(L);

impl<L: Located> NodeVisitor<L> {
    fn found(&self, value: Value) -> Node {
        Node { line: self.0.line(), value }
    }
}

impl<'de, L: Located> Visitor<'de> for NodeVisitor<L> {
    type Value = Node;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("text, a number, true, false, a list or a table")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(self.found(Value::Null))
    }

    fn visit_none<E>(self) -> Result<Node, E> {
        Ok(self.found(Value::Null))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(self.found(Value::Boolean(value)))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(self.found(Value::Number(value.into())))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(self.found(Value::Number(value.into())))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Node, E> {
        let number = Number::from_f64(value);
        let number = number.ok_or_else(|| E::custom("a number that is not finite"))?;
        Ok(self.found(Value::Number(number)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(self.found(Value::Text(value.to_owned())))
    }

    fn visit_string<E>(self, value: String) -> Result<Node, E> {
        Ok(self.found(Value::Text(value)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Node, A::Error> {
        let mut node = self.found(Value::Null);
        let mut items = Vec::new();
        while let Some(item) = access.next_element_seed(NodeSeed(self.0))? {
            items.push(item);
        }
        node.value = Value::List(items);
        Ok(node)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Node, A::Error> {
        let mut node = self.found(Value::Null);
        let mut entries: Vec<(Key, Node)> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        while let Some(key) = access.next_key_seed(KeySeed(self.0))? {
            if !seen.insert(key.text.clone()) {
                let message = format!("duplicate key `{}`", super::names::shortened(&key.text));
                return Err(de::Error::custom(message));
            }
            let value = access.next_value_seed(NodeSeed(self.0))?;
            entries.push((key, value));
        }
        node.value = Value::Table(entries);
        Ok(node)
    }
}

struct NodeSeed<L>(L);

impl<'de, L: Located> de::DeserializeSeed<'de> for NodeSeed<L> {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        self.0.node(deserializer)
    }
}

struct KeySeed<L>(L);

impl<'de, L: Located> de::DeserializeSeed<'de> for KeySeed<L> {
    type Value = Key;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Key, D::Error> {
        self.0.key(deserializer)
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;

    /// The tree as text: `line:value`, so that one comparison covers shape and lines.
    fn shown(node: &Node) -> String {
        let line = node.line;
        match &node.value {
            Value::Null | Value::Dropped => format!("{line}:null"),
            Value::Boolean(value) => format!("{line}:{value}"),
            Value::Number(number) => format!("{line}:{number}"),
            Value::Text(text) => format!("{line}:{text:?}"),
            Value::List(items) => {
                let items: Vec<String> = items.iter().map(shown).collect();
                format!("{line}:[{}]", items.join(" "))
            }
            Value::Table(entries) => {
                let mut out = format!("{line}:{{");
                for (key, value) in entries {
                    let _ = write!(out, "{}:{}={} ", key.line, key.text, shown(value));
                }
                format!("{}}}", out.trim_end())
            }
        }
    }

    fn tree(format: Format, text: &str) -> String {
        match format.parse(text) {
            Ok(node) => shown(&node),
            Err(faults) => {
                let faults = faults.iter().map(|fault| format!("{}! {fault}", fault.line));
                faults.collect::<Vec<_>>().join(" | ")
            }
        }
    }

    #[test]
    fn every_value_of_json_knows_its_line() {
        let text =
            "{\n \"a\": 1\n,\"b\":\n[true,\n null, {\n\"c\"\n:\n-2.5\n}\n],\"d\":\"x\\ny\"\n}";
        let expected = "1:{2:a=2:1 3:b=4:[4:true 5:null 5:{6:c=8:-2.5}] 10:d=10:\"x\\ny\"}";
        assert_eq!(tree(Format::Json, text), expected);
        assert_eq!(tree(Format::Json, "\n\n 12 \n"), "3:12");
        assert_eq!(tree(Format::Json, "{\"a\":12\n}"), "1:{1:a=1:12}");
    }

    #[test]
    fn every_value_of_yaml_knows_its_line() {
        let text = "# one\na: 1\nb:\n  - true\n  -\n  - c: -2.5\n    d: 'x'\n  - [1,\n     2]\n";
        let expected = "2:{2:a=2:1 3:b=4:[4:true 5:null 6:{6:c=6:-2.5 7:d=7:\"x\"} 8:[8:1 9:2]]}";
        assert_eq!(tree(Format::Yaml, text), expected);
        assert_eq!(tree(Format::Yaml, "a: no\nb: on\n"), "1:{1:a=1:\"no\" 2:b=2:\"on\"}");
    }

    #[test]
    fn every_value_of_toml_knows_its_line() {
        let text = "z = 1\n[[b]]\n# x\ny = true\nx = { c = -2.5,\n d = 'x' }\n\n[[b]]\n[b.k]\ne = [\n1,\n2]\n";
        let expected = "1:{1:z=1:1 2:b=2:[2:{4:y=4:true 5:x=5:{5:c=5:-2.5 6:d=6:\"x\"}} \
                        8:{9:k=9:{10:e=10:[11:1 12:2]}}]}";
        assert_eq!(tree(Format::Toml, text), expected);
    }

    #[test]
    fn errors_know_their_line() {
        let table = [
            (Format::Json, "{\n\"a\": 1,\n}", "3! trailing comma"),
            (Format::Json, "{\n\"a\": 1,\n\"a\": 2}", "3! duplicate key `a`"),
            (Format::Json, "{}\n{}", "2! trailing characters"),
            (Format::Json, "", "1! EOF while parsing a value"),
            (Format::Toml, "a = 1\nb = \n", "2! "),
            (Format::Toml, "a = 1\n\na = 2\n", "3! duplicate key"),
            (Format::Toml, "a = nan\n", "1! a number that is not finite"),
            (Format::Toml, "\na = 99999999999999999999\n", "2! a number that is too large"),
            (Format::Yaml, "a: 1\nb: [1\n", "2! unclosed bracket"),
            (Format::Yaml, "a: 1\n\na: 2\n", "3! duplicate mapping key: a"),
            (Format::Yaml, "a: 1\n--- \nb: 1\n", "2! a second document"),
            (Format::Yaml, "a: *nope\n", "1! "),
            (Format::Yaml, "a: .inf\n", "1! non-finite float"),
        ];
        for (format, text, expected) in table {
            let found = tree(format, text);
            assert!(found.starts_with(expected), "{text:?}: {found}");
            assert!(!found.contains(" at line "), "{found}");
        }
    }

    #[test]
    fn toml_reports_all_errors_at_once() {
        let found = tree(Format::Toml, "a = \nb = 1\nc = [\n\nd = 2\n");
        assert!(found.starts_with("1! ") && found.contains(" | "), "{found}");
    }

    #[test]
    fn bombs_are_defused() {
        let mut aliases = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..12 {
            let before = level - 1;
            let list = vec![format!("*a{before}"); 10].join(", ");
            let _ = writeln!(aliases, "a{level}: &a{level} [{list}]");
        }
        let found = tree(Format::Yaml, &aliases);
        assert!(found.ends_with("! too large, counted with its aliases unfolded"), "{found}");
        for format in [Format::Toml, Format::Yaml, Format::Json] {
            let deep = "[".repeat(100_000);
            let prefix = if format == Format::Toml { "a = " } else { "" };
            assert!(format.parse(&format!("{prefix}{deep}")).is_err(), "{format:?}");
        }
        let path = vec!["a"; 100_000].join(".");
        for text in [format!("{path} = 1\n"), format!("[{path}]\n"), format!("[[{path}]]\n")] {
            assert!(Format::Toml.parse(&text).is_err());
        }
        // Long keys in nested tables: each within its own limit, the product is not.
        let key = vec!["a"; 79].join(".");
        let text = format!("{} b = 1{}", format!("{key} = {{").repeat(78), "}".repeat(78));
        assert!(tree(Format::Toml, &text).contains("nested deeper than"), "{text}");
    }
}
