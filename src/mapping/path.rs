//! Where a field is on the side of the API: `order.lines[*].sku`.

use std::fmt;

/// How many segments a path may have. It bounds every recursion of this room.
pub const SEGMENTS_MAX: usize = 32;

/// One step of a [`FieldPath`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Segment {
    /// Into the member of an object that has this name.
    Name(Box<str>),
    /// Into every item of an array: `[*]`.
    Each,
}

/// A parsed path into a JSON document.
///
/// Names are separated by dots, `[*]` stands for every item of an array and may stand first; `$`
/// alone is the whole document. A backslash takes the meaning from the character after it, so the
/// member `a.b` is written `a\.b`. A bracket that is not `[*]` has to be escaped.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FieldPath(Vec<Segment>);

/// Why a text is not a path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// Nothing stands where a name belongs.
    #[error("a name is missing at character {position}")]
    MissingName {
        /// Counted from 1.
        position: usize,
    },
    /// A bracket that does not belong to `[*]`.
    #[error(
        "'[' or ']' at character {position} is not part of '[*]'; write '\\[' for a bracket in a \
         name"
    )]
    Bracket {
        /// Counted from 1.
        position: usize,
    },
    /// Something else than a dot or a bracket follows `[*]`.
    #[error("after '[*]' a '.' or another '[*]' has to follow at character {position}")]
    AfterEach {
        /// Counted from 1.
        position: usize,
    },
    /// The text ends with a backslash.
    #[error("the path ends with a backslash that escapes nothing")]
    LoneBackslash,
    /// More segments than [`SEGMENTS_MAX`].
    #[error("the path has more than {SEGMENTS_MAX} segments")]
    TooLong,
}

impl FieldPath {
    /// `$`: the whole document.
    pub const ROOT: Self = Self(Vec::new());

    /// Reads a path.
    ///
    /// # Errors
    ///
    /// Says where the text stops being a path.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        if text == "$" {
            return Ok(Self(Vec::new()));
        }
        Parser { text, at: 0, segments: Vec::new() }.run()
    }

    /// The steps from the root of the document.
    pub fn segments(&self) -> &[Segment] {
        &self.0
    }

    /// The last name in the path; `None` for `$`, `[*]` and the like.
    pub fn leaf(&self) -> Option<&str> {
        self.0.iter().rev().find_map(|segment| match segment {
            Segment::Name(name) => Some(&**name),
            Segment::Each => None,
        })
    }
}

/// What is left of a path in the member `key`; `None` where it does not lead there. Arrays are passed
/// through, and a name with dots in it may be several of the path's.
pub fn in_member<'p>(path: &'p [Segment], key: &str) -> Option<&'p [Segment]> {
    let (mut path, mut key) = (path, key);
    loop {
        let Some((Segment::Name(name), rest)) = path.split_first() else { return None };
        key = key.strip_prefix(&**name)?;
        path = below_arrays(rest);
        if key.is_empty() {
            return Some(path);
        }
        key = key.strip_prefix('.')?;
    }
}

/// The path without the arrays it begins with.
pub fn below_arrays(path: &[Segment]) -> &[Segment] {
    let arrays = path.iter().take_while(|segment| **segment == Segment::Each).count();
    &path[arrays..]
}

impl fmt::Display for FieldPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return formatter.write_str("$");
        }
        for (index, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Each => formatter.write_str("[*]")?,
                Segment::Name(name) => {
                    if index > 0 {
                        formatter.write_str(".")?;
                    }
                    let lone_dollar = self.0.len() == 1 && &**name == "$";
                    for character in name.chars() {
                        if matches!(character, '.' | '[' | ']' | '\\') || lone_dollar {
                            formatter.write_str("\\")?;
                        }
                        write!(formatter, "{character}")?;
                    }
                }
            }
        }
        Ok(())
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    segments: Vec<Segment>,
}

impl Parser<'_> {
    fn run(mut self) -> Result<FieldPath, PathError> {
        let mut expects_name = !self.rest().starts_with("[*]");
        loop {
            if expects_name {
                let name = self.name()?;
                self.push(Segment::Name(name))?;
            }
            while self.take("[*]") {
                self.push(Segment::Each)?;
            }
            if self.rest().is_empty() {
                return Ok(FieldPath(self.segments));
            }
            if !self.take(".") {
                return Err(PathError::AfterEach { position: self.position() });
            }
            expects_name = true;
        }
    }

    fn name(&mut self) -> Result<Box<str>, PathError> {
        let start = self.position();
        let mut name = String::new();
        while let Some(character) = self.rest().chars().next() {
            match character {
                '.' => break,
                '[' if self.rest().starts_with("[*]") => break,
                '[' | ']' => return Err(PathError::Bracket { position: self.position() }),
                '\\' => {
                    self.at += 1;
                    let escaped = self.rest().chars().next().ok_or(PathError::LoneBackslash)?;
                    name.push(escaped);
                    self.at += escaped.len_utf8();
                }
                _ => {
                    name.push(character);
                    self.at += character.len_utf8();
                }
            }
        }
        if name.is_empty() {
            return Err(PathError::MissingName { position: start });
        }
        Ok(name.into_boxed_str())
    }

    fn push(&mut self, segment: Segment) -> Result<(), PathError> {
        if self.segments.len() == SEGMENTS_MAX {
            return Err(PathError::TooLong);
        }
        self.segments.push(segment);
        Ok(())
    }

    fn take(&mut self, expected: &str) -> bool {
        let found = self.rest().starts_with(expected);
        self.at += if found { expected.len() } else { 0 };
        found
    }

    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn position(&self) -> usize {
        self.text.get(..self.at).unwrap_or_default().chars().count() + 1
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(text: &str) -> Vec<String> {
        let path = FieldPath::parse(text).unwrap();
        assert_eq!(FieldPath::parse(&path.to_string()).unwrap(), path, "{text}");
        path.segments()
            .iter()
            .map(|segment| match segment {
                Segment::Name(name) => name.to_string(),
                Segment::Each => "*".to_owned(),
            })
            .collect()
    }

    #[test]
    fn paths_are_names_and_items() {
        assert_eq!(shown("id"), ["id"]);
        assert_eq!(shown("order.lines[*].sku"), ["order", "lines", "*", "sku"]);
        assert_eq!(shown("[*].id"), ["*", "id"]);
        assert_eq!(shown("[*]"), ["*"]);
        assert_eq!(shown("matrix[*][*]"), ["matrix", "*", "*"]);
        assert_eq!(shown(r"a\.b.c\[*\].d\\e"), ["a.b", "c[*]", r"d\e"]);
        assert_eq!(shown("Größe.x y"), ["Größe", "x y"]);
        assert_eq!(shown("$"), [""; 0]);
        assert_eq!(shown(r"\$"), ["$"]);
        assert_eq!(shown("$ref"), ["$ref"]);
    }

    #[test]
    fn errors_say_where() {
        let error = |text: &str| FieldPath::parse(text).unwrap_err();
        assert_eq!(error(""), PathError::MissingName { position: 1 });
        assert_eq!(error("a."), PathError::MissingName { position: 3 });
        assert_eq!(error("ä..b"), PathError::MissingName { position: 3 });
        assert_eq!(error(".a"), PathError::MissingName { position: 1 });
        assert_eq!(error("a.[*]"), PathError::MissingName { position: 3 });
        assert_eq!(error("[*]."), PathError::MissingName { position: 5 });
        assert_eq!(error("a[0]"), PathError::Bracket { position: 2 });
        assert_eq!(error("a]"), PathError::Bracket { position: 2 });
        assert_eq!(error("a[*"), PathError::Bracket { position: 2 });
        assert_eq!(error("a[*]b"), PathError::AfterEach { position: 5 });
        assert_eq!(error("a\\"), PathError::LoneBackslash);
        assert_eq!(error(&"a.".repeat(SEGMENTS_MAX + 1)), PathError::TooLong);
        assert_eq!(error(&"[*]".repeat(100_000)), PathError::TooLong);
        assert!(FieldPath::parse(&["a"; SEGMENTS_MAX].join(".")).is_ok());
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[a\\.\\[\\]*$\\\\é]{0,12}") {
            if let Ok(path) = FieldPath::parse(&text) {
                prop_assert_eq!(FieldPath::parse(&path.to_string()), Ok(path));
            }
        }
    }
}
