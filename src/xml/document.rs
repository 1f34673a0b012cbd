//! A document and its elements.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use memchr::memchr_iter;
use roxmltree::{Error, Node, NodeType, ParsingOptions};

use super::{Limits, XML_NAMESPACE, XmlError, escape_attribute, escape_text, guard, shortened};

/// The tree of a text. It borrows from the text; see [`decode`](super::decode) for that of bytes.
pub struct Document<'a> {
    tree: roxmltree::Document<'a>,
}

impl<'a> Document<'a> {
    /// Reads a text.
    ///
    /// # Errors
    ///
    /// What is larger than `limits`, has a `DOCTYPE` or is malformed.
    pub fn read(text: &'a str, limits: Limits) -> Result<Self, XmlError> {
        guard::check(text, limits)?;
        let options = ParsingOptions { nodes_limit: limits.nodes, ..ParsingOptions::default() };
        let tree = roxmltree::Document::parse_with_options(text, options);
        tree.map(|tree| Self { tree }).map_err(|error| refusal(&error, limits))
    }

    /// The one element that holds all others.
    pub fn root(&self) -> Element<'_> {
        Element { node: self.tree.root_element() }
    }
}

impl fmt::Debug for Document<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Document").field("root", &self.root()).finish_non_exhaustive()
    }
}

fn refusal(error: &Error, limits: Limits) -> XmlError {
    let at = error.pos();
    match error {
        Error::DtdDetected => XmlError::Doctype,
        Error::NodesLimitReached => XmlError::TooManyNodes { nodes_max: limits.nodes },
        Error::AttributesLimitReached => XmlError::TooManyAttributes,
        Error::NamespacesLimitReached => XmlError::TooManyNamespaces,
        error => {
            let problem = error.to_string().replace(&format!(" at {at}"), "");
            XmlError::Malformed { line: at.row, column: at.col, problem: shortened(&problem) }
        }
    }
}

/// A place in a document, for messages. Finding it reads the document up to there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// From 1.
    pub line: u32,
    /// From 1, in characters.
    pub column: u32,
}

impl fmt::Display for Position {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "line {}, column {}", self.line, self.column)
    }
}

/// An attribute that is no namespace declaration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attribute<'a> {
    /// Empty where there is none, as for every name without prefix.
    pub namespace: &'a str,
    /// Without prefix.
    pub local: &'a str,
    /// With references replaced.
    pub value: &'a str,
}

/// An element of a document. Two are equal when they are the same one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Element<'a> {
    node: Node<'a, 'a>,
}

impl fmt::Debug for Element<'_> {
    /// The name alone: messages hold what is nobody else's business.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "<{{{}}}{}>", self.namespace(), self.local())
    }
}

impl<'a> Element<'a> {
    /// Empty where there is none.
    pub fn namespace(self) -> &'a str {
        self.node.tag_name().namespace().unwrap_or_default()
    }

    /// The name without prefix.
    pub fn local(self) -> &'a str {
        self.node.tag_name().name()
    }

    /// Whether this is its name.
    pub fn is(self, namespace: &str, local: &str) -> bool {
        self.local() == local && self.namespace() == namespace
    }

    /// Its attributes, in the order of the text.
    pub fn attributes(self) -> impl Iterator<Item = Attribute<'a>> {
        self.node.attributes().map(|attribute| Attribute {
            namespace: attribute.namespace().unwrap_or_default(),
            local: attribute.name(),
            value: attribute.value(),
        })
    }

    /// The value of an attribute without namespace.
    pub fn attribute(self, local: &str) -> Option<&'a str> {
        self.attribute_in("", local)
    }

    /// The value of an attribute.
    pub fn attribute_in(self, namespace: &str, local: &str) -> Option<&'a str> {
        self.attributes()
            .find(|attribute| attribute.local == local && attribute.namespace == namespace)
            .map(|attribute| attribute.value)
    }

    /// The elements directly in it.
    pub fn children(self) -> impl Iterator<Item = Self> {
        self.node.children().filter(Node::is_element).map(|node| Self { node })
    }

    /// The first element of this name directly in it.
    pub fn child(self, namespace: &str, local: &str) -> Option<Self> {
        self.children().find(|child| child.is(namespace, local))
    }

    /// What it stands in; nothing for the root.
    pub fn parent(self) -> Option<Self> {
        self.node.parent_element().map(|node| Self { node })
    }

    /// The texts directly in it, one behind the other. Copied only where there are several.
    pub fn text(self) -> Cow<'a, str> {
        let mut texts = self.node.children().filter(Node::is_text).filter_map(|node| node.text());
        let first = texts.next().unwrap_or_default();
        let Some(second) = texts.next() else { return Cow::Borrowed(first) };
        let mut text = format!("{first}{second}");
        texts.for_each(|more| text.push_str(more));
        Cow::Owned(text)
    }

    /// All texts in it, those of the elements in it too, in the order of the document; not much more
    /// than `bytes_max` of them.
    pub fn text_within(self, bytes_max: usize) -> String {
        let mut text = String::new();
        for node in self.node.descendants().filter(Node::is_text) {
            text.push_str(node.text().unwrap_or_default());
            if text.len() >= bytes_max {
                break;
            }
        }
        text
    }

    /// Whether it has text beside elements.
    pub fn is_mixed(self) -> bool {
        let is_written = |text: &str| text.contains(|character| !is_blank(character));
        self.children().next().is_some()
            && self.node.children().any(|node| {
                node.node_type() == NodeType::Text && node.text().is_some_and(is_written)
            })
    }

    /// What a prefix stands for here; of none, the namespace of elements without prefix, which may
    /// be empty.
    pub fn namespace_of(self, prefix: &str) -> Option<&'a str> {
        match prefix {
            "" => Some(self.node.lookup_namespace_uri(None).unwrap_or_default()),
            "xml" => Some(XML_NAMESPACE),
            prefix => self.node.lookup_namespace_uri(Some(prefix)),
        }
    }

    /// Namespace and local name of a value that is a qualified name, as that of `xsi:type`. Nothing
    /// where its prefix is declared nowhere.
    pub fn qualified<'v>(self, value: &'v str) -> Option<(&'a str, &'v str)> {
        let value = value.trim_matches(is_blank);
        let (prefix, local) = value.split_once(':').unwrap_or(("", value));
        Some((self.namespace_of(prefix)?, local))
    }

    /// The element as a document of its own: as it stands in the text, with the namespaces that it
    /// has from outside. With those many small elements come to much more than the text they stand
    /// in; see [`Self::to_xml_within`].
    pub fn to_xml(self) -> Cow<'a, str> {
        self.to_xml_within(usize::MAX).unwrap_or_default()
    }

    /// The same; nothing where that is longer than `bytes_max`.
    pub fn to_xml_within(self, bytes_max: usize) -> Option<Cow<'a, str>> {
        let source = self.source();
        let left = bytes_max.checked_sub(source.len())?;
        let Some(name_end) = source.find(|next| is_blank(next) || matches!(next, '/' | '>')) else {
            return Some(Cow::Borrowed(source));
        };
        let declared = declared_prefixes(source);
        let used = used_prefixes(source);
        let mut declarations = String::new();
        for namespace in self.node.namespaces() {
            let prefix = namespace.name().unwrap_or_default();
            let uri = namespace.uri();
            let is_used = if prefix.is_empty() { !uri.is_empty() } else { used.contains(prefix) };
            if !is_used || declared.contains(prefix) {
                continue;
            }
            let colon = if prefix.is_empty() { "" } else { ":" };
            declarations.push_str(" xmlns");
            declarations.push_str(colon);
            declarations.push_str(prefix);
            declarations.push_str("=\"");
            // It was read from XML, so it can be written.
            escape_attribute(uri, &mut declarations).unwrap_or_default();
            declarations.push('"');
            if declarations.len() > left {
                return None;
            }
        }
        if declarations.is_empty() {
            return Some(Cow::Borrowed(source));
        }
        let (name, rest) = source.split_at(name_end);
        Some(Cow::Owned(format!("{name}{declarations}{rest}")))
    }

    /// What stands between its tags: texts escaped, elements as [`Self::to_xml`] has them. Nothing
    /// where that is longer than `bytes_max`.
    pub fn content_xml(self, bytes_max: usize) -> Option<String> {
        let mut content = String::new();
        for node in self.node.children() {
            match node.node_type() {
                NodeType::Element => {
                    let left = bytes_max.checked_sub(content.len())?;
                    content.push_str(&Self { node }.to_xml_within(left)?);
                }
                // It was read from XML, so it can be written.
                NodeType::Text => {
                    escape_text(node.text().unwrap_or_default(), &mut content).unwrap_or_default();
                }
                NodeType::Root | NodeType::Comment | NodeType::PI => {}
            }
        }
        (content.len() <= bytes_max).then_some(content)
    }

    /// Where it begins.
    pub fn position(self) -> Position {
        let at = self.node.document().text_pos_at(self.node.range().start);
        Position { line: at.row, column: at.col }
    }

    /// From its first tag to its last, as it stands in the text.
    fn source(self) -> &'a str {
        self.node.document().input_text().get(self.node.range()).unwrap_or_default()
    }
}

/// White space of XML 1.0, section 2.3.
fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\r' | '\n')
}

/// The prefixes that the first tag of a text declares; the empty one is that of none.
fn declared_prefixes(source: &str) -> HashSet<&str> {
    let mut prefixes = HashSet::new();
    let mut rest = source;
    // Up to the end of the tag, the parts outside of quotes.
    while let Some(end) = rest.find(['"', '\'', '>']) {
        let (outside, quoted) = rest.split_at(end);
        let names = outside.split(|next| is_blank(next) || next == '=');
        let declared = names.filter_map(|name| name.strip_prefix("xmlns"));
        prefixes.extend(declared.filter_map(|name| match name {
            "" => Some(""),
            name => name.strip_prefix(':'),
        }));
        let mut letters = quoted.chars();
        let quote = letters.next().unwrap_or('>');
        let Some((_, behind)) = letters.as_str().split_once(quote).filter(|_| quote != '>') else {
            break;
        };
        rest = behind;
    }
    prefixes
}

/// What stands before a colon anywhere in a text: every prefix of names and of values, and more.
fn used_prefixes(source: &str) -> HashSet<&str> {
    /// Longer prefixes are looked for no further, and are no prefixes of anybody.
    const PREFIX_CHARS_MAX: usize = 256;
    let mut prefixes = HashSet::new();
    for at in memchr_iter(b':', source.as_bytes()) {
        let before = source.get(..at).unwrap_or_default();
        let is_of_name = |next: &char| !is_blank(*next) && !"</>\"'=:&;".contains(*next);
        let length: usize = before
            .chars()
            .rev()
            .take(PREFIX_CHARS_MAX)
            .take_while(is_of_name)
            .map(char::len_utf8)
            .sum();
        prefixes.insert(before.get(at - length..).unwrap_or_default());
    }
    prefixes
}
