//! A document that is read in parts: where its arrays and objects end, which strings are too long.

use crate::json::{Raw, write_string};

use super::text;

/// How many bytes of a place are told to people.
pub(super) const SHOWN_PLACE_BYTES_MAX: usize = 200;

/// Checked JSON with an index, so that every walk is linear in what it looks at.
#[derive(Debug)]
pub(super) struct Document {
    text: Box<str>,
    /// In the order of their opening brackets.
    containers: Vec<Container>,
    /// Strings longer than the budget, in their order.
    long: Vec<Long>,
    pub(super) string_bytes: usize,
}

#[derive(Debug, Clone, Copy)]
struct Container {
    /// Behind the closing bracket.
    end: u32,
    /// The number of the first container behind it.
    next: u32,
}

#[derive(Debug, Clone, Copy)]
struct Long {
    /// The opening quote.
    start: u32,
    /// How many bytes all long strings up to and with this one lose.
    lost: u32,
}

/// One value of the document.
#[derive(Debug, Clone, Copy)]
pub(super) struct Value {
    pub(super) start: usize,
    pub(super) end: usize,
    /// Of the value where it is a container, else of the next one.
    number: usize,
}

/// A place in a container.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor {
    pub(super) at: usize,
    pub(super) number: usize,
}

/// What is left at one place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece {
    pub(super) kind: PieceKind,
    /// Of [`Paths`].
    pub(super) node: u32,
    /// The index of the first row, or the bytes of a string that came before.
    pub(super) from: u32,
    pub(super) at: u32,
    /// Of the next container; the closing quote of a string.
    pub(super) number: u32,
    /// How many rows, members or bytes, so that they need not be counted for every part.
    pub(super) left: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PieceKind {
    Rows,
    Members,
    /// The end of a string.
    Text,
    /// The same, where the part before it was the beginning of this end.
    NextText,
}

impl Piece {
    /// Whether rows and members go before.
    pub(super) fn waits(self) -> bool {
        self.kind == PieceKind::Text
    }
}

impl Document {
    /// `None` for more than 4 GiB.
    pub(super) fn new(root: Raw<'_>, string_bytes: usize) -> Option<Self> {
        u32::try_from(root.text().len()).ok()?;
        let (text, containers, long) = (root.text().into(), Vec::new(), Vec::new());
        let mut document = Self { text, containers, long, string_bytes };
        document.index();
        Some(document)
    }

    fn index(&mut self) {
        let bytes = self.text.as_bytes();
        let mut open: Vec<usize> = Vec::new();
        let mut lost = 0;
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            match byte {
                b'{' | b'[' => {
                    open.push(self.containers.len());
                    self.containers.push(Container { end: 0, next: 0 });
                }
                b'}' | b']' => {
                    let next = self.containers.len() as u32;
                    let container = open.pop().and_then(|number| self.containers.get_mut(number));
                    if let Some(container) = container {
                        *container = Container { end: at as u32 + 1, next };
                    }
                }
                b'"' => {
                    let end = string_end(bytes, at);
                    if end - at - 2 > self.string_bytes && !is_key(bytes, end) {
                        let kept = text::prefix_end(&self.text, at + 1, end - 1, self.string_bytes);
                        lost += (end - 1 - kept) as u32;
                        self.long.push(Long { start: at as u32, lost });
                    }
                    at = end - 1;
                }
                _ => {}
            }
            at += 1;
        }
        self.containers.shrink_to_fit();
        self.long.shrink_to_fit();
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let (container, long) = (size_of::<Container>(), size_of::<Long>());
        self.text.len() + self.containers.len() * container + self.long.len() * long
    }

    pub(super) fn root(&self) -> Value {
        Value { start: 0, end: self.text.len(), number: 0 }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn slice(&self, start: usize, end: usize) -> &[u8] {
        self.text.as_bytes().get(start..end).unwrap_or_default()
    }

    /// The first byte of a value.
    pub(super) fn kind(&self, value: Value) -> u8 {
        self.text.as_bytes().get(value.start).copied().unwrap_or_default()
    }

    /// How many bytes a value has when its long strings are cut.
    pub(super) fn cost(&self, value: Value) -> usize {
        let before = |offset: usize| {
            let index = self.long.partition_point(|long| (long.start as usize) < offset);
            index.checked_sub(1).and_then(|last| self.long.get(last)).map_or(0, |long| long.lost)
        };
        let lost = before(value.end) - before(value.start);
        value.end - value.start - lost as usize
    }

    /// Whether strings in the value are cut.
    pub(super) fn has_long(&self, value: Value) -> bool {
        let index = self.long.partition_point(|long| (long.start as usize) < value.start);
        self.long.get(index).is_some_and(|long| (long.start as usize) < value.end)
    }

    /// Where the inside of a container begins.
    pub(super) fn inside(value: Value) -> Cursor {
        Cursor { at: value.start + 1, number: value.number + 1 }
    }

    /// The next item, and where it goes on; `None` at the closing bracket.
    pub(super) fn item(&self, cursor: Cursor) -> Option<(Value, Cursor)> {
        let bytes = self.text.as_bytes();
        let mut start = cursor.at;
        while let b' ' | b'\n' | b'\r' | b'\t' | b',' | b':' = bytes.get(start)? {
            start += 1;
        }
        let (end, number) = match bytes.get(start)? {
            b']' | b'}' => return None,
            b'[' | b'{' => {
                let container = self.containers.get(cursor.number)?;
                (container.end as usize, container.next as usize)
            }
            b'"' => (string_end(bytes, start), cursor.number),
            _ => {
                let rest = bytes.get(start..)?;
                let ends =
                    |byte: &u8| matches!(byte, b',' | b']' | b'}' | b' ' | b'\n' | b'\r' | b'\t');
                (start + rest.iter().position(ends).unwrap_or(rest.len()), cursor.number)
            }
        };
        Some((Value { start, end, number: cursor.number }, Cursor { at: end, number }))
    }

    /// The next member: its key with quotes, its value, and where it goes on.
    pub(super) fn member(&self, cursor: Cursor) -> Option<(Value, Value, Cursor)> {
        let (key, cursor) = self.item(cursor)?;
        let (value, cursor) = self.item(cursor)?;
        Some((key, value, cursor))
    }
}

/// Behind the closing quote of the string that starts at `start`.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += found;
        if bytes.get(at) == Some(&b'"') {
            return at + 1;
        }
        at += 2;
    }
    bytes.len()
}

/// In checked JSON only keys are followed by a colon.
fn is_key(bytes: &[u8], end: usize) -> bool {
    let rest = bytes.get(end..).unwrap_or_default();
    rest.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b':')
}

/// Places of pieces, each said by its last step and the place above it: as many as there are pieces
/// and containers around them, however long their names are.
#[derive(Debug, Clone, Default)]
pub(super) struct Paths(Vec<(u32, PathStep)>);

#[derive(Debug, Clone, Copy)]
pub(super) enum PathStep {
    /// Where the key stands, with its quotes.
    Key(u32, u32),
    Index(u32),
}

/// The root of the document.
pub(super) const ROOT: u32 = u32::MAX;

impl Paths {
    pub(super) fn add(&mut self, parent: u32, step: PathStep) -> u32 {
        self.0.push((parent, step));
        self.0.len() as u32 - 1
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.0.capacity() * size_of::<(u32, PathStep)>()
    }

    /// The place as a JSON pointer.
    pub(super) fn pointer(&self, document: &Document, node: u32) -> String {
        let mut steps = Vec::new();
        let mut at = node;
        while let Some((parent, step)) = self.0.get(at as usize) {
            steps.push(*step);
            at = *parent;
        }
        let mut pointer = String::new();
        for step in steps.into_iter().rev() {
            pointer.push('/');
            match step {
                PathStep::Index(index) => pointer.push_str(&index.to_string()),
                PathStep::Key(start, end) => {
                    let key = document.slice(start as usize, end as usize);
                    let key = crate::json::guard(key).ok().and_then(|key| key.root().as_str());
                    // RFC 6901 section 3.
                    let key = key.unwrap_or_default().replace('~', "~0").replace('/', "~1");
                    pointer.push_str(&key);
                }
            }
        }
        pointer
    }

    /// The same, shortened.
    pub(super) fn shown(&self, document: &Document, node: u32) -> Box<str> {
        let pointer = self.pointer(document, node);
        if pointer.len() <= SHOWN_PLACE_BYTES_MAX {
            return pointer.into_boxed_str();
        }
        let end = (0..=SHOWN_PLACE_BYTES_MAX).rev().find(|end| pointer.is_char_boundary(*end));
        format!("{}…", pointer.get(..end.unwrap_or_default()).unwrap_or_default()).into_boxed_str()
    }

    pub(super) fn write(&self, document: &Document, node: u32, out: &mut Vec<u8>) {
        write_string(out, &self.pointer(document, node));
    }
}
