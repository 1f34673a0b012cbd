//! XML from outside, read within bounds, and XML written.
//!
//! [`decode`] makes text of bytes in whatever encoding they are. [`Document::read`] checks the text
//! in one linear scan before the parser sees it: a `DOCTYPE` is refused, so there are no entities
//! to expand and nothing outside to fetch, and size, depth, attributes and namespaces are bounded by
//! [`Limits`]. What passes is a tree of [`Element`]s. [`Writer`] writes a document; no text can get
//! out of its place, because there is one escape function for texts and one for attributes.
//!
//! Invariants worth naming:
//!
//! - No input recurses: reading, walking and dropping a document are loops.
//! - Names are always compared with their namespace; a prefix means nothing.
//! - What is written is well-formed XML 1.0 or an error. Characters that XML cannot hold are never
//!   dropped or replaced.
//! - The text of an element never has the text of a comment in it, and a comment inside of a text
//!   does not cut it.
//!
//! This room does no I/O and keeps no state. Only this room names `roxmltree`.

mod decode;
mod document;
mod escape;
mod guard;
#[cfg(test)]
mod tests;
mod write;

pub use decode::decode;
pub use document::{Attribute, Document, Element, Position};
pub use escape::{escape_attribute, escape_text, is_name};
pub use write::Writer;

/// The namespace of the prefix `xml`.
pub const XML_NAMESPACE: &str = "http://www.w3.org/XML/1998/namespace";
/// How deep elements may nest, read or written.
pub const DEPTH_MAX: usize = 256;
/// Most attributes of one element, namespace declarations counted.
pub const ATTRIBUTES_MAX: usize = 256;
/// Most namespace declarations that may be in force at one place.
pub const NAMESPACES_MAX: usize = 256;

/// How much a document may hold. Depth, attributes and namespaces are the same for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Longest text, in bytes of UTF-8.
    pub bytes: usize,
    /// Most elements, texts, comments and processing instructions together.
    pub nodes: u32,
}

impl Limits {
    /// For messages of a service.
    pub const MESSAGE: Self = Self { bytes: 32 << 20, nodes: 1_000_000 };
    /// For documents that describe one.
    pub const DESCRIPTION: Self = Self { bytes: 64 << 20, nodes: 4_000_000 };
}

/// Why a text was refused, or could not be written. A retry with the same one fails again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum XmlError {
    /// More bytes than [`Limits::bytes`].
    #[error("the XML document is larger than {bytes_max} bytes")]
    TooLarge {
        /// The limit.
        bytes_max: usize,
    },
    /// More elements and texts than [`Limits::nodes`].
    #[error("the XML document has more than {nodes_max} elements and texts")]
    TooManyNodes {
        /// The limit.
        nodes_max: u32,
    },
    /// Elements nest deeper than [`DEPTH_MAX`].
    #[error("the XML document is nested deeper than {DEPTH_MAX} elements")]
    TooDeep,
    /// More attributes than [`ATTRIBUTES_MAX`].
    #[error("an XML element has more than {ATTRIBUTES_MAX} attributes")]
    TooManyAttributes,
    /// More namespaces than [`NAMESPACES_MAX`], or so many declarations that they add up.
    #[error("the XML document declares too many namespaces")]
    TooManyNamespaces,
    /// A `DOCTYPE`: with it come entities and files of others.
    #[error("the XML document has a DOCTYPE, which is refused; remove it")]
    Doctype,
    /// An encoding that nobody knows.
    #[error("the XML document is encoded in {name:?}, which is not known; encode it in UTF-8")]
    UnknownEncoding {
        /// As it is declared, shortened.
        name: Box<str>,
    },
    /// Bytes that the encoding does not have.
    #[error("the XML document is not valid {name}")]
    NotInEncoding {
        /// The encoding.
        name: &'static str,
    },
    /// The text is not XML.
    #[error("malformed XML at line {line}, column {column}: {problem}")]
    Malformed {
        /// From 1.
        line: u32,
        /// From 1, in characters.
        column: u32,
        /// What is wrong there.
        problem: Box<str>,
    },
    /// A character that XML 1.0 has no way to write.
    #[error("the character U+{code:04X} cannot be written in XML; remove it")]
    Character {
        /// Its code point.
        code: u32,
    },
    /// A name that is none.
    #[error("{name:?} is no name of XML")]
    Name {
        /// The text, shortened.
        name: Box<str>,
    },
    /// A part was written where it cannot stand: an attribute behind content, a second root.
    #[error("{part} cannot be written at this place of the XML document")]
    Misplaced {
        /// What was written.
        part: &'static str,
    },
}

/// The beginning of a text, for a message.
fn shortened(text: &str) -> Box<str> {
    const CHARS_MAX: usize = 100;
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()).into(),
        None => text.into(),
    }
}
