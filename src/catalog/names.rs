//! The names of things: checked once, where they enter, and types of their own ever after.
//!
//! A name is an `Arc<str>`: cloning one is an increment, so sessions, views and records share it.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

/// Longest id or tool name, in bytes.
pub const NAME_BYTES_MAX: usize = 64;

const ID_RULE: &str = "1 to 64 characters a-z 0-9 . _ -, the first one a letter or digit";
/// Longest name of an operation, in bytes.
pub const OPERATION_NAME_BYTES_MAX: usize = 256;

const PATTERN_BYTES_MAX: usize = OPERATION_NAME_BYTES_MAX + 1 + NAME_BYTES_MAX;

const OPERATION_NAME_RULE: &str = "1 to 256 bytes without control characters";
const PATTERN_RULE: &str =
    "`tool` or `toolset/tool`, where `*` stands for any text, at most 321 bytes";
const TOOL_NAME_RULE: &str =
    "1 to 64 characters A-Z a-z 0-9 _ -, the first one a letter or underscore";

/// Text that breaks the rule of the name it should have become.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{shown:?} is not a {what}: {rule}")]
pub struct InvalidName {
    /// What the text was meant to be, such as `tenant id`.
    pub what: &'static str,
    /// The text, shortened where it is long.
    pub shown: String,
    /// What is allowed.
    pub rule: &'static str,
}

impl InvalidName {
    fn new(what: &'static str, text: &str, rule: &'static str) -> Self {
        Self { what, shown: shortened(text), rule }
    }
}

/// `text`, cut to what is reasonable in a message.
pub(crate) fn shortened(text: &str) -> String {
    const SHOWN_CHARACTERS_MAX: usize = 80;
    match text.char_indices().nth(SHOWN_CHARACTERS_MAX) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}...", &text[..end]),
    }
}

fn is_id(text: &str) -> bool {
    let bytes = text.as_bytes();
    let plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    bytes.len() <= NAME_BYTES_MAX
        && bytes.first().is_some_and(plain)
        && bytes.iter().all(|byte| plain(byte) || matches!(byte, b'.' | b'_' | b'-'))
}

fn is_tool_name(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() <= NAME_BYTES_MAX
        && bytes.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_')
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

fn is_operation_name(text: &str) -> bool {
    (1..=OPERATION_NAME_BYTES_MAX).contains(&text.len()) && !text.chars().any(char::is_control)
}

fn is_tool_pattern(text: &str) -> bool {
    let plain = |part: &str| !part.is_empty() && !part.chars().any(char::is_control);
    let is_good = match text.split_once('/') {
        None => plain(text),
        Some((toolset, tool)) => plain(toolset) && plain(tool),
    };
    text.len() <= PATTERN_BYTES_MAX && is_good
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $what:literal, $check:ident, $rule:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The only way in.
            ///
            /// # Errors
            /// When `text` breaks the rule of this kind of name; the error states the rule.
            pub fn new(text: &str) -> Result<Self, InvalidName> {
                if $check(text) {
                    Ok(Self(Arc::from(text)))
                } else {
                    Err(InvalidName::new($what, text, $rule))
                }
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, formatter)
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                Self::new(&text).map_err(serde::de::Error::custom)
            }
        }
    };
}

name!(
    /// Names a tenant.
    TenantId, "tenant id", is_id, ID_RULE
);
name!(
    /// Names a client application within its tenant.
    ClientApplicationId, "client application id", is_id, ID_RULE
);
name!(
    /// Names a connection within its tenant.
    ConnectionId, "connection id", is_id, ID_RULE
);
name!(
    /// Names a toolset within its tenant.
    ToolsetId, "toolset id", is_id, ID_RULE
);
name!(
    /// The name a client calls a tool by.
    ///
    /// Narrower than MCP's own rule, because model interfaces refuse a whole request for one name
    /// outside of it.
    ToolName, "tool name", is_tool_name, TOOL_NAME_RULE
);

name!(
    /// What an operation is called where it comes from; the name clients call its tool by is made
    /// from it.
    OperationName, "tool name", is_operation_name, OPERATION_NAME_RULE
);
name!(
    /// Stands for tools by their operations' names: `list_*`, or `pets/list_*` for those of one
    /// toolset. A `*` stands for any text, none included. What is before the first `/` is always a
    /// toolset: an operation `docs/search` is `*/docs/search`, so that no server can name a tool to
    /// fit what is allowed of another toolset.
    ToolPattern, "tool pattern", is_tool_pattern, PATTERN_RULE
);

impl ToolName {
    /// A name that was made to keep to the rule.
    pub(super) fn made(text: String) -> Self {
        debug_assert!(is_tool_name(&text), "{text:?}");
        Self(Arc::from(text))
    }
}

impl ToolPattern {
    /// Whether it stands for this tool.
    pub fn matches(&self, toolset: &str, operation: &str) -> bool {
        match self.0.split_once('/') {
            None => is_match(&self.0, operation),
            Some((of_toolset, of_tool)) => {
                is_match(of_toolset, toolset) && is_match(of_tool, operation)
            }
        }
    }
}

/// Whether all of `text` is what `pattern` says. Goes back to the last `*` only, so the time is
/// bounded by the product of both lengths.
pub(crate) fn is_match(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut at, mut read) = (0, 0);
    // Where to go on when what follows the last `*` does not fit: one more byte belongs to it.
    let mut last_star: Option<(usize, usize)> = None;
    while let Some(byte) = text.get(read) {
        match pattern.get(at) {
            Some(b'*') => {
                last_star = Some((at + 1, read));
                at += 1;
            }
            Some(wanted) if wanted == byte => {
                at += 1;
                read += 1;
            }
            _ => {
                let Some((after, taken)) = last_star else { return false };
                last_star = Some((after, taken + 1));
                at = after;
                read = taken + 1;
            }
        }
    }
    pattern.get(at..).is_none_or(|rest| rest.iter().all(|byte| *byte == b'*'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_keep_to_their_alphabet() {
        for good in ["a", "0", "acme", "acme-eu.2", "a_b", &"x".repeat(64)] {
            assert_eq!(TenantId::new(good).unwrap().as_str(), good);
        }
        for bad in ["", "A", "-a", ".a", "_a", "a b", "a/b", "größe", "a\n", &"x".repeat(65)] {
            let error = TenantId::new(bad).unwrap_err();
            assert_eq!(error.what, "tenant id", "{bad:?}");
        }
    }

    #[test]
    fn tool_names_keep_to_their_alphabet() {
        for good in ["a", "_x", "List-Pets_2", &"x".repeat(64)] {
            assert_eq!(ToolName::new(good).unwrap().as_str(), good);
        }
        for bad in ["", "1a", "-a", "pets.list", "a b", "Größe", "get /x", &"x".repeat(65)] {
            assert!(ToolName::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn operations_are_called_what_they_are_called() {
        for good in ["a", "pets.list", "a/b", "/", "Größe ändern", "1", " x", &"x".repeat(256)] {
            assert_eq!(OperationName::new(good).unwrap().as_str(), good);
        }
        for bad in ["", "a\n", "a\u{7f}", &"x".repeat(257)] {
            assert!(OperationName::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn patterns_stand_for_tools() {
        let matches = |pattern: &str, toolset: &str, tool: &str| {
            ToolPattern::new(pattern).unwrap().matches(toolset, tool)
        };
        for (pattern, expected) in [
            ("*", true),
            ("list_pets", true),
            ("list_*", true),
            ("*pets", true),
            ("l*_*s", true),
            ("list_pets*", true),
            ("**", true),
            ("zoo/*", true),
            ("z*/list_pets", true),
            ("*/*pet*", true),
            ("list", false),
            ("pets", false),
            ("list_pets_", false),
            ("*pet", false),
            ("other/*", false),
            ("zoo/pets", false),
            ("List_pets", false),
        ] {
            assert_eq!(matches(pattern, "zoo", "list_pets"), expected, "{pattern}");
        }
        assert!(matches("*a*a*b", "zoo", "aaaaaaaaab"));
        assert!(!matches(&"*a".repeat(100), "zoo", &"a".repeat(99)));
        for (pattern, expected) in [
            ("zoo/docs/search", true),
            ("*/docs/search", true),
            ("zoo/docs/*", true),
            ("zoo/*", true),
            ("*search", true),
            ("docs/search", false),
            ("docs/*", false),
        ] {
            let pattern = ToolPattern::new(pattern).unwrap();
            assert_eq!(pattern.matches("zoo", "docs/search"), expected, "{pattern}");
        }
        for bad in ["", "/", "a/", "/a", "a\n", &"x".repeat(322)] {
            assert!(ToolPattern::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn errors_show_the_text_shortened_and_the_rule() {
        let error = ToolName::new(&"ä".repeat(500)).unwrap_err().to_string();
        assert!(error.len() < 400, "{error}");
        assert!(error.contains("is not a tool name: 1 to 64 characters"), "{error}");
    }

    #[test]
    fn serde_goes_through_the_check() {
        assert_eq!(
            serde_json::from_str::<ToolsetId>("\"pets\"").unwrap(),
            ToolsetId::new("pets").unwrap()
        );
        assert!(serde_json::from_str::<ToolsetId>("\"Pets\"").is_err());
        assert_eq!(serde_json::to_string(&ToolsetId::new("pets").unwrap()).unwrap(), "\"pets\"");
    }
}
