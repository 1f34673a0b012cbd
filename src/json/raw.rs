//! One value of a checked text, read where it stands.

use std::borrow::Cow;

use super::text::{checked_string_end, decode};
use super::{JsonError, guard};

/// What a JSON value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `null`
    Null,
    /// `true` or `false`
    Bool,
    /// A number of any size and precision.
    Number,
    /// A string.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
}

impl Kind {
    /// The name with its article, as error texts use it: `a string`, `null`.
    pub const fn described(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool => "a boolean",
            Self::Number => "a number",
            Self::String => "a string",
            Self::Array => "an array",
            Self::Object => "an object",
        }
    }
}

/// The exact text of one JSON value inside a [`Checked`](super::Checked) text, without blanks
/// around it. Two of them are equal when their texts are: `1.0` is not `1.00`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Raw<'a>(&'a str);

impl<'a> Raw<'a> {
    /// `{}`, for what is absent and means an empty object.
    pub const EMPTY_OBJECT: Self = Self("{}");

    /// `text` must be exactly one checked value.
    pub(super) const fn new(text: &'a str) -> Self {
        Self(text)
    }

    /// The value as it was written.
    pub const fn text(self) -> &'a str {
        self.0
    }

    /// What the value is, told by its first byte.
    #[inline]
    pub fn kind(self) -> Kind {
        match self.0.as_bytes().first() {
            Some(b'{') => Kind::Object,
            Some(b'[') => Kind::Array,
            Some(b'"') => Kind::String,
            Some(b't' | b'f') => Kind::Bool,
            Some(b'n') | None => Kind::Null,
            Some(_) => Kind::Number,
        }
    }

    /// Whether the value is `null`.
    pub fn is_null(self) -> bool {
        self.kind() == Kind::Null
    }

    /// The decoded string; `None` for another kind. Borrowed when nothing was escaped.
    pub fn as_str(self) -> Option<Cow<'a, str>> {
        let inside = self.0.strip_prefix('"')?.strip_suffix('"')?;
        Some(decode(inside))
    }

    /// The boolean; `None` for another kind.
    pub fn as_bool(self) -> Option<bool> {
        match self.0 {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }

    /// The number when it is written as an integer that fits; `None` otherwise (`1.0`, `1e3`).
    pub fn as_i64(self) -> Option<i64> {
        self.0.parse().ok()
    }

    /// The number when it is written as an integer that fits; `None` otherwise (`1.0`, `1e3`).
    pub fn as_u64(self) -> Option<u64> {
        self.0.parse().ok()
    }

    /// The members of an object, in their order; nothing for another kind.
    #[inline]
    pub fn entries(self) -> Entries<'a> {
        Entries(Walk::new(self.0, b'{'))
    }

    /// The members of an object with their keys as they were written, quotes and escapes included.
    #[inline]
    pub fn raw_entries(self) -> RawEntries<'a> {
        RawEntries(Walk::new(self.0, b'{'))
    }

    /// The items of an array, in their order; nothing for another kind.
    #[inline]
    pub fn items(self) -> Items<'a> {
        Items(Walk::new(self.0, b'['))
    }

    /// The member of an object; `None` without it and for another kind.
    pub fn get(self, key: &str) -> Option<Self> {
        self.entries().find_map(|(name, value)| (name == key).then_some(value))
    }
}

/// One checked JSON value with its own memory, for what outlives the bytes it came in.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OwnedRaw(Box<str>);

impl OwnedRaw {
    /// Checks `text` as [`guard`](super::guard) does and keeps its value.
    ///
    /// # Errors
    ///
    /// What the guard finds.
    pub fn parse(text: &[u8]) -> Result<Self, JsonError> {
        guard(text).map(|checked| checked.root().to_owned())
    }

    /// `{}`.
    pub fn empty_object() -> Self {
        Self("{}".into())
    }

    /// The value to read.
    pub const fn as_raw(&self) -> Raw<'_> {
        Raw(&self.0)
    }
}

impl Raw<'_> {
    /// A copy with its own memory.
    pub fn to_owned(self) -> OwnedRaw {
        OwnedRaw(self.0.into())
    }

    /// An object without the members of these names; an empty one in place of anything else.
    pub fn without(self, names: &[&str]) -> OwnedRaw {
        if self.kind() != Kind::Object {
            return OwnedRaw::empty_object();
        }
        let mut out = String::with_capacity(self.0.len());
        out.push('{');
        for (key, value) in self.raw_entries() {
            if key.as_str().is_some_and(|key| names.contains(&&*key)) {
                continue;
            }
            if out.len() > 1 {
                out.push(',');
            }
            out.push_str(key.0);
            out.push(':');
            out.push_str(value.0);
        }
        out.push('}');
        OwnedRaw(out.into())
    }
}

/// Iterates over the members of an object. See [`Raw::entries`].
#[derive(Debug, Clone)]
pub struct Entries<'a>(Walk<'a>);

impl<'a> Iterator for Entries<'a> {
    type Item = (Cow<'a, str>, Raw<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let key = self.0.value(b'}')?;
        let value = self.0.value(b'}')?;
        Some((key.as_str()?, value))
    }
}

/// Iterates over the members of an object. See [`Raw::raw_entries`].
#[derive(Debug, Clone)]
pub struct RawEntries<'a>(Walk<'a>);

impl<'a> Iterator for RawEntries<'a> {
    type Item = (Raw<'a>, Raw<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        Some((self.0.value(b'}')?, self.0.value(b'}')?))
    }
}

/// Iterates over the items of an array. See [`Raw::items`].
#[derive(Debug, Clone)]
pub struct Items<'a>(Walk<'a>);

impl<'a> Iterator for Items<'a> {
    type Item = Raw<'a>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.0.value(b']')
    }
}

/// A place inside a container of checked text. Since the text is well-formed, blanks and
/// separators between two values can be passed over without a look at their order.
#[derive(Debug, Clone)]
struct Walk<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Walk<'a> {
    #[inline]
    fn new(text: &'a str, opening: u8) -> Self {
        let opened = text.as_bytes().first() == Some(&opening);
        Self { text: if opened { text } else { "" }, at: 1 }
    }

    #[inline]
    fn value(&mut self, closing: u8) -> Option<Raw<'a>> {
        let bytes = self.text.as_bytes();
        while let b' ' | b'\n' | b'\r' | b'\t' | b',' | b':' = bytes.get(self.at)? {
            self.at += 1;
        }
        if bytes.get(self.at) == Some(&closing) {
            return None;
        }
        let end = value_end(bytes, self.at);
        let value = self.text.get(self.at..end)?;
        self.at = end;
        Some(Raw(value))
    }
}

/// Where the checked value ends that starts at `at`.
#[inline]
fn value_end(bytes: &[u8], at: usize) -> usize {
    match bytes.get(at) {
        Some(b'"') => checked_string_end(bytes, at + 1) + 1,
        Some(b'{' | b'[') => container_end(bytes, at + 1),
        _ => {
            let rest = bytes.get(at..).unwrap_or_default();
            at + rest.iter().position(|&byte| ends_scalar(byte)).unwrap_or(rest.len())
        }
    }
}

#[inline]
const fn ends_scalar(byte: u8) -> bool {
    matches!(byte, b',' | b']' | b'}' | b' ' | b'\n' | b'\r' | b'\t')
}

fn container_end(bytes: &[u8], mut at: usize) -> usize {
    let mut depth = 1_usize;
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'"' => at = checked_string_end(bytes, at) + 1,
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    break;
                }
            }
            _ => {}
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::super::any_json;
    use super::*;

    fn root(text: &str) -> Raw<'_> {
        guard(text.as_bytes()).unwrap().root()
    }

    #[test]
    fn text_is_kept_to_the_byte() {
        let raw =
            root(r#" {"a" : 1.50 , "b":[ 1e400,123456789012345678901234567890 ], "c":"\u00e9"} "#);
        assert_eq!(raw.kind(), Kind::Object);
        assert_eq!(raw.get("a").unwrap().text(), "1.50");
        let items: Vec<_> = raw.get("b").unwrap().items().map(Raw::text).collect();
        assert_eq!(items, ["1e400", "123456789012345678901234567890"]);
        assert_eq!(raw.get("c").unwrap().as_str().unwrap(), "é");
        assert_eq!(raw.get("d"), None);
    }

    #[test]
    fn other_kinds_have_no_members() {
        for text in ["null", "true", "1", "\"{\"", "\"[1]\""] {
            assert_eq!(root(text).entries().count(), 0, "{text}");
            assert_eq!(root(text).items().count(), 0, "{text}");
        }
        assert_eq!(root("[1]").entries().count(), 0);
        assert_eq!(root("{\"a\":1}").items().count(), 0);
        assert_eq!(root("[ ]").items().count(), 0);
        assert_eq!(root("{ }").entries().count(), 0);
    }

    #[test]
    fn members_are_left_out_by_their_decoded_names() {
        let all = root(r#"{ "a": 1, "\u0062": [ 2 ], "c": {"a": 3} }"#);
        assert_eq!(all.without(&["a", "b"]).as_raw().text(), r#"{"c":{"a": 3}}"#);
        assert_eq!(all.without(&["c"]).as_raw().text(), r#"{"a":1,"\u0062":[ 2 ]}"#);
        assert_eq!(all.without(&["a", "b", "c"]), OwnedRaw::empty_object());
        assert_eq!(root("[1]").without(&[]), OwnedRaw::empty_object());
    }

    #[test]
    fn keys_are_compared_decoded() {
        let raw = root(r#"{"\u0061\"]}":{"x":"}\\"},"b":[]}"#);
        assert_eq!(raw.get("a\"]}").unwrap().text(), r#"{"x":"}\\"}"#);
        assert_eq!(raw.get("b").unwrap().text(), "[]");
    }

    fn rebuilt(raw: Raw<'_>) -> Value {
        match raw.kind() {
            Kind::Object => {
                raw.entries().map(|(key, value)| (key.into_owned(), rebuilt(value))).collect()
            }
            Kind::Array => raw.items().map(rebuilt).collect(),
            Kind::String => Value::String(raw.as_str().unwrap().into_owned()),
            _ => serde_json::from_str(raw.text()).unwrap(),
        }
    }

    proptest! {
        #[test]
        fn walking_sees_what_serde_json_sees(value in any_json(), pretty: bool) {
            let text = if pretty {
                serde_json::to_string_pretty(&value).unwrap()
            } else {
                value.to_string()
            };
            prop_assert_eq!(rebuilt(root(&text)), value);
        }
    }
}
