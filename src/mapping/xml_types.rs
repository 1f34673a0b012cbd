//! Messages in XML, those of SOAP services and the bodies of other APIs: what of their descriptions
//! is needed to write and read them. Written by the import or by hand, kept in the catalog, hidden
//! from clients.
//!
//! A message is JSON on the side of the tool. An element is a member under
//! [`member`](XmlElement::member): a single value where its type has text alone, an object of its
//! attributes and elements otherwise, with the text of an element that has attributes too under
//! [`TEXT_MEMBER`]. Where an element may stand more than once its member is an array, however many
//! arrived. `xsi:nil` is `null`; the type of an element that is a derived one stands under
//! [`TYPE_MEMBER`]; what an `any` takes is XML text.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The member that holds the text of an element which has attributes besides.
pub const TEXT_MEMBER: &str = "text";
/// The member that names the type of an element where it is derived from the declared one.
pub const TYPE_MEMBER: &str = "xsi_type";

/// A name and its namespace, written `{urn:shop}order`; without a namespace `order`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct XmlName {
    /// Empty where there is none.
    pub namespace: Box<str>,
    /// Without prefix.
    pub local: Box<str>,
}

impl XmlName {
    /// A name in a namespace; the empty one is none.
    pub fn new(namespace: &str, local: &str) -> Self {
        Self { namespace: namespace.into(), local: local.into() }
    }

    /// Reads what [`Display`](fmt::Display) writes.
    pub fn parse(text: &str) -> Option<Self> {
        let (namespace, local) = match text.strip_prefix('{') {
            Some(rest) => rest.split_once('}')?,
            None => ("", text),
        };
        (!local.is_empty()).then(|| Self::new(namespace, local))
    }
}

impl fmt::Display for XmlName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.namespace.is_empty() {
            write!(formatter, "{{{}}}", self.namespace)?;
        }
        formatter.write_str(&self.local)
    }
}

impl Serialize for XmlName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for XmlName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| {
            serde::de::Error::custom("expected a name such as `order` or `{urn:shop}order`")
        })
    }
}

/// The types of a toolset's messages, by name. Those that the schemas leave unnamed are called after
/// the element that holds them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct XmlTypes(pub BTreeMap<XmlName, XmlType>);

/// A complex type, with everything it has from the types it is derived from.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct XmlType {
    /// What it is derived from, so that it may stand in its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<XmlName>,
    /// Whether only derived types may stand in a message.
    #[serde(default, rename = "abstract", skip_serializing_if = "is_false")]
    pub is_abstract: bool,
    /// In the order of the schema.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attributes: Vec<XmlAttribute>,
    /// Its text, where it has simple content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<XmlValue>,
    /// Its elements, in the order they are written in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub content: Vec<XmlParticle>,
}

/// An attribute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct XmlAttribute {
    /// On the wire.
    pub name: XmlName,
    /// Which prefix its namespace is to have; where others of the toolset say another one, that of
    /// the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<Box<str>>,
    /// In JSON.
    pub member: Box<str>,
    /// What it holds.
    pub value: XmlValue,
    /// Always written, whatever the call has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fixed: Option<String>,
}

/// A part of an element's content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum XmlParticle {
    /// An element.
    Element(XmlElement),
    /// Its parts in this order. Only where it may repeat: else its parts stand in its place.
    Sequence(XmlGroup),
    /// One of its parts. Of `xsd:all`, whose parts may come in any order, a sequence is made.
    Choice(XmlGroup),
    /// Any element; its member holds XML text.
    Any {
        /// In JSON.
        member: Box<str>,
        /// Whether several may stand there: then the member is an array.
        #[serde(default, skip_serializing_if = "is_false")]
        repeats: bool,
    },
}

/// Particles together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct XmlGroup {
    /// Whether the group may stand more than once: then its elements' members are arrays, and the
    /// first of each belong together.
    #[serde(default, skip_serializing_if = "is_false")]
    pub repeats: bool,
    /// Of a choice, whether one of its parts must stand there: a call without any is refused.
    #[serde(default, skip_serializing_if = "is_false")]
    pub required: bool,
    /// Its parts.
    pub content: Vec<XmlParticle>,
}

/// An element.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct XmlElement {
    /// On the wire; with an empty namespace where the schema has it unqualified.
    pub name: XmlName,
    /// Which prefix its namespace is to have; where others of the toolset say another one, that of
    /// the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<Box<str>>,
    /// In JSON; nothing where it is the root of a body or stands in a [list](XmlContent::List) or a
    /// [map](XmlContent::Map).
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub member: Box<str>,
    /// What it holds.
    pub holds: XmlContent,
    /// Whether it may stand more than once: then its member is an array.
    #[serde(default, skip_serializing_if = "is_false")]
    pub repeats: bool,
    /// Whether it must stand in a message: where a call has nothing for it, it is written as nil
    /// where it may be, else left out.
    #[serde(default, skip_serializing_if = "is_false")]
    pub required: bool,
    /// Whether it may be nil.
    #[serde(default, skip_serializing_if = "is_false")]
    pub nillable: bool,
    /// Always written, whatever the call has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fixed: Option<String>,
}

/// What an element holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum XmlContent {
    /// Text.
    Value(XmlValue),
    /// What a type of [`XmlTypes`] says.
    Type(XmlName),
    /// This element, as often as there is something for it: an array in JSON.
    List(Box<XmlElement>),
    /// Elements of any names: an object in JSON, by their names. Each is as this one but for its
    /// name, of which only the namespace counts.
    Map(Box<XmlElement>),
    /// Anything, as XML text: `xsd:anyType`, mixed content.
    Any,
}

/// The text of an element or an attribute, as far as JSON tells it apart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum XmlValue {
    /// As it is.
    String,
    /// Text in which blanks mean nothing but an end of a word: also dates, times and durations. It is
    /// read without those around it, and with one where there are several.
    Token,
    /// `true`, `false`, `1`, `0`.
    Boolean,
    /// Digits, kept as they are.
    Integer,
    /// Digits, kept as they are; `INF` and `NaN` are texts in JSON.
    Decimal,
    /// Base64, in JSON as in XML; MTOM's parts are read into it.
    Base64,
    /// A qualified name: in JSON as [`XmlName`] is written.
    Name,
    /// Values with blanks between them: an array in JSON.
    List(Box<Self>),
}

/// The bodies of an operation that are XML without an envelope.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct XmlBodies {
    /// The root element of what is sent, where `body_format` is `xml`. What it holds is the body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<XmlElement>,
    /// The root element of what comes back; an answer that is no XML is treated as that of any other
    /// tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<XmlElement>,
}

/// The version of SOAP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum SoapVersion {
    /// SOAP 1.1.
    #[serde(rename = "1.1")]
    V1_1,
    /// SOAP 1.2.
    #[serde(rename = "1.2")]
    V1_2,
}

/// An operation of a SOAP service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SoapOperation {
    /// Which envelope it takes.
    pub version: SoapVersion,
    /// `SOAPAction`, or the `action` of the content type.
    #[serde(default)]
    pub action: String,
    /// What is sent.
    pub input: SoapMessage,
    /// What comes back; nothing where it is a one-way operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<SoapMessage>,
    /// What may stand in the detail of a fault.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<XmlElement>,
}

/// A message. All members of its JSON object have different names, headers included.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SoapMessage {
    /// The body.
    pub body: SoapBody,
    /// Header blocks, each a member of the JSON object.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<XmlElement>,
}

/// The body of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SoapBody {
    /// Document/literal, wrapped: the JSON object is what this element holds.
    Wrapped(XmlElement),
    /// Document/literal, bare: the element is a member of the JSON object.
    Bare(XmlElement),
    /// RPC/literal: each part is a member of the JSON object.
    Rpc {
        /// The element around the parts.
        wrapper: XmlName,
        /// In the order of the message.
        parts: Vec<XmlElement>,
    },
    /// Nothing.
    Empty,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is that of serde")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for text in ["order", "{urn:shop}order"] {
            assert_eq!(XmlName::parse(text).unwrap().to_string(), text);
        }
        for text in ["", "{urn:shop", "{urn:shop}"] {
            assert_eq!(XmlName::parse(text), None);
        }
    }
}
