//! Which operations of a description the operator wants.

use thiserror::Error;

use crate::catalog::is_match;

use super::Operation;

/// Most patterns of one import.
const PATTERNS_MAX: usize = 200;
const PATTERN_BYTES_MAX: usize = 1_024;

/// A pattern that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{shown:?} is no selection: {reason}")]
pub struct InvalidSelection {
    shown: String,
    reason: &'static str,
}

/// Patterns of which one has to fit; without any, everything is wanted. `tag:pets` is a tag,
/// `GET /pets*` (anything with a blank or a `/`) an operation's key, `list*` a name or a key. A `*`
/// stands for any text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection(Vec<Pattern>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Pattern {
    Tag(String),
    Key(String),
    Name(String),
}

impl Selection {
    /// Reads patterns.
    ///
    /// # Errors
    /// The first that makes no sense.
    pub fn parse<T: AsRef<str>>(patterns: &[T]) -> Result<Self, InvalidSelection> {
        let invalid = |text: &str, reason| {
            let shown = text.chars().take(80).collect();
            Err(InvalidSelection { shown, reason })
        };
        if patterns.len() > PATTERNS_MAX {
            return invalid("", "more than 200 patterns");
        }
        let mut read = Vec::with_capacity(patterns.len());
        for text in patterns {
            let text = text.as_ref().trim();
            if text.is_empty() || text.len() > PATTERN_BYTES_MAX {
                return invalid(text, "expected 1 to 1024 bytes");
            }
            read.push(match text.strip_prefix("tag:") {
                Some(tag) => Pattern::Tag(tag.trim().to_owned()),
                None if text.contains([' ', '/']) => Pattern::Key(text.to_owned()),
                None => Pattern::Name(text.to_owned()),
            });
        }
        Ok(Self(read))
    }

    /// Whether everything is wanted.
    pub fn is_everything(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether this operation is wanted; `name` is what its tool is called.
    pub(super) fn wants(&self, operation: &Operation, name: Option<&str>) -> bool {
        self.is_everything()
            || self.0.iter().any(|pattern| match pattern {
                Pattern::Tag(tag) => operation.tags.iter().any(|other| is_match(tag, other)),
                Pattern::Key(key) => is_match(key, &operation.key),
                Pattern::Name(wanted) => {
                    is_match(wanted, &operation.wished_name)
                        || is_match(wanted, &operation.key)
                        || name.is_some_and(|name| is_match(wanted, name))
                }
            })
    }

    /// Whether an operation that the description no longer has was wanted, as far as that is known.
    pub(super) fn wanted(&self, key: &str, name: &str) -> bool {
        let gone = Operation {
            key: key.to_owned(),
            wished_name: name.to_owned(),
            tags: Vec::new(),
            verdict: super::Verdict::Skipped(String::new()),
        };
        self.wants(&gone, Some(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::Verdict;

    #[test]
    fn operations_are_selected_by_tag_key_and_name() {
        let operation = Operation {
            key: "GET /pets/{id}".to_owned(),
            wished_name: "getPet".to_owned(),
            tags: vec!["Pets of all kinds".to_owned()],
            verdict: Verdict::Skipped(String::new()),
        };
        for (patterns, expected) in [
            (vec![], true),
            (vec!["tag:Pets of all kinds"], true),
            (vec!["tag: Pets*"], true),
            (vec!["tag:pets"], false),
            (vec!["GET /pets/{id}"], true),
            (vec!["GET *"], true),
            (vec!["*/pets/*"], true),
            (vec!["POST *"], false),
            (vec!["get*"], true),
            (vec!["mine"], true),
            (vec!["GET*"], true),
            (vec!["nothing", "get?et"], false),
            (vec!["nothing", "getPet"], true),
        ] {
            let selection = Selection::parse(&patterns).unwrap();
            assert_eq!(selection.wants(&operation, Some("mine")), expected, "{patterns:?}");
        }
        assert!(
            Selection::parse(&[" "]).is_err() && Selection::parse(&["x".repeat(2000)]).is_err()
        );
    }
}
