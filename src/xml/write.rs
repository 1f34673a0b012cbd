//! Writing a document.

use std::collections::HashMap;
use std::ops::Range;

use super::escape::check_name;
use super::{DEPTH_MAX, Document, Limits, XML_NAMESPACE, XmlError, escape_attribute, escape_text};

/// Writes one document, from its first tag to its last.
///
/// Names are given with their namespaces; prefixes come by themselves, the same one for a namespace
/// everywhere. There is never a namespace for names without prefix, so an element without namespace
/// is one wherever it stands.
#[derive(Debug, Default)]
pub struct Writer {
    out: String,
    /// Where the qualified name of each open element stands in `out`.
    open: Vec<Range<usize>>,
    /// Whether the last tag written still takes attributes.
    in_tag: bool,
    is_complete: bool,
    /// The namespaces that have a prefix, and the depth of the element that declares it.
    declared: Vec<(String, usize)>,
    /// The prefix of each namespace, once it has one.
    prefixes: HashMap<String, String>,
}

impl Writer {
    /// Nothing written yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// With the declaration of XML at the beginning.
    pub fn with_declaration() -> Self {
        Self { out: r#"<?xml version="1.0" encoding="utf-8"?>"#.to_owned(), ..Self::default() }
    }

    /// Wishes a prefix for a namespace. It counts where the namespace has none yet and no other
    /// namespace has it.
    pub fn prefer(&mut self, prefix: &str, namespace: &str) {
        let is_free = !self.prefixes.values().any(|taken| taken == prefix);
        if is_free && super::is_name(prefix) && !prefix.to_ascii_lowercase().starts_with("xml") {
            self.prefixes.entry(namespace.to_owned()).or_insert_with(|| prefix.to_owned());
        }
    }

    /// Opens an element.
    ///
    /// # Errors
    ///
    /// A name that is none, a second root, more than [`DEPTH_MAX`] open elements.
    pub fn start(&mut self, namespace: &str, local: &str) -> Result<(), XmlError> {
        check_name(local)?;
        if self.is_complete {
            return Err(XmlError::Misplaced { part: "a second root element" });
        }
        if self.open.len() == DEPTH_MAX {
            return Err(XmlError::TooDeep);
        }
        self.close_tag();
        self.out.push('<');
        let start = self.out.len();
        let is_known = self.is_declared(namespace);
        if !namespace.is_empty() {
            let prefix = self.assigned(namespace);
            self.out.push_str(&prefix);
            self.out.push(':');
        }
        self.out.push_str(local);
        self.open.push(start..self.out.len());
        self.in_tag = true;
        if is_known { Ok(()) } else { self.declare(namespace) }
    }

    /// Declares a namespace on the element just opened, for all that stands in it.
    ///
    /// # Errors
    ///
    /// Where no tag is open, or the namespace has characters that XML has not.
    pub fn declare(&mut self, namespace: &str) -> Result<(), XmlError> {
        if !self.in_tag {
            return Err(XmlError::Misplaced { part: "a namespace declaration" });
        }
        if self.is_declared(namespace) {
            return Ok(());
        }
        let prefix = self.assigned(namespace);
        self.out.push_str(" xmlns:");
        self.out.push_str(&prefix);
        self.out.push_str("=\"");
        escape_attribute(namespace, &mut self.out)?;
        self.out.push('"');
        self.declared.push((namespace.to_owned(), self.open.len()));
        Ok(())
    }

    /// Writes an attribute of the element just opened. Giving one twice is not found out.
    ///
    /// # Errors
    ///
    /// Where no tag is open, a name that is none, a character that XML has not.
    pub fn attribute(&mut self, namespace: &str, local: &str, value: &str) -> Result<(), XmlError> {
        check_name(local)?;
        if !self.in_tag {
            return Err(XmlError::Misplaced { part: "an attribute" });
        }
        self.declare(namespace)?;
        self.out.push(' ');
        if !namespace.is_empty() {
            let prefix = self.assigned(namespace);
            self.out.push_str(&prefix);
            self.out.push(':');
        }
        self.out.push_str(local);
        self.out.push_str("=\"");
        escape_attribute(value, &mut self.out)?;
        self.out.push('"');
        Ok(())
    }

    /// A name as it is written in a value here, as that of `xsi:type`.
    ///
    /// # Errors
    ///
    /// Where no tag is open, or the name is none.
    pub fn qualified(&mut self, namespace: &str, local: &str) -> Result<String, XmlError> {
        check_name(local)?;
        self.declare(namespace)?;
        Ok(match namespace {
            "" => local.to_owned(),
            namespace => format!("{}:{local}", self.assigned(namespace)),
        })
    }

    /// Writes text into the open element.
    ///
    /// # Errors
    ///
    /// Outside of elements, and for a character that XML has not.
    pub fn text(&mut self, text: &str) -> Result<(), XmlError> {
        if self.open.is_empty() {
            return Err(XmlError::Misplaced { part: "text" });
        }
        // `<a></a>` and `<a/>` are the same.
        if text.is_empty() {
            return Ok(());
        }
        self.close_tag();
        escape_text(text, &mut self.out)
    }

    /// Writes an element that is there as XML text. It is read first, so that it can be nothing but
    /// one whole element.
    ///
    /// # Errors
    ///
    /// Where it cannot stand, or is no XML document within the limits of a message.
    pub fn fragment(&mut self, xml: &str) -> Result<(), XmlError> {
        if self.open.is_empty() {
            return Err(XmlError::Misplaced { part: "a piece of XML" });
        }
        let document = Document::read(xml, Limits::MESSAGE)?;
        self.close_tag();
        self.out.push_str(&document.root().to_xml());
        Ok(())
    }

    /// Closes the element opened last that is still open.
    ///
    /// # Errors
    ///
    /// Where none is.
    pub fn end(&mut self) -> Result<(), XmlError> {
        let depth = self.open.len();
        let name = self.open.pop().ok_or(XmlError::Misplaced { part: "an end tag" })?;
        if self.in_tag {
            self.out.push_str("/>");
            self.in_tag = false;
        } else {
            self.out.push_str("</");
            self.out.extend_from_within(name);
            self.out.push('>');
        }
        while self.declared.last().is_some_and(|(_, declared_at)| *declared_at == depth) {
            self.declared.pop();
        }
        self.is_complete = self.open.is_empty();
        Ok(())
    }

    /// How many bytes are written so far.
    pub fn len(&self) -> usize {
        self.out.len()
    }

    /// Whether nothing is.
    pub fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// The document.
    ///
    /// # Errors
    ///
    /// Where an element is still open or none was written.
    pub fn finish(self) -> Result<String, XmlError> {
        if !self.is_complete {
            return Err(XmlError::Misplaced { part: "the end" });
        }
        Ok(self.out)
    }

    fn close_tag(&mut self) {
        if self.in_tag {
            self.out.push('>');
            self.in_tag = false;
        }
    }

    fn is_declared(&self, namespace: &str) -> bool {
        namespace.is_empty()
            || namespace == XML_NAMESPACE
            || self.declared.iter().any(|(declared, _)| declared == namespace)
    }

    fn assigned(&mut self, namespace: &str) -> String {
        if namespace == XML_NAMESPACE {
            return "xml".to_owned();
        }
        if let Some(prefix) = self.prefixes.get(namespace) {
            return prefix.clone();
        }
        let mut number = self.prefixes.len() + 1;
        let mut prefix = format!("n{number}");
        while self.prefixes.values().any(|taken| *taken == prefix) {
            number += 1;
            prefix = format!("n{number}");
        }
        self.prefixes.insert(namespace.to_owned(), prefix.clone());
        prefix
    }
}
