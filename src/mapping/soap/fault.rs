//! Faults of both versions of SOAP.

use super::super::xml::read::Reader;
use super::super::xml::types::TypePlan;
use super::super::xml::{INSTANCE_NAMESPACE, Unreadable};
use super::super::{SoapVersion, XmlName};
use crate::json::write_string;
use crate::xml::Element;

const ENVELOPE_1_1: &str = "http://schemas.xmlsoap.org/soap/envelope/";
const ENVELOPE_1_2: &str = "http://www.w3.org/2003/05/soap-envelope";

/// The longest code, reason or actor that is kept whole.
const TEXT_BYTES_MAX: usize = 2048;
/// How many subcodes are read.
const SUBCODES_MAX: usize = 16;
/// The member of the detail that holds, as XML, what is not declared.
const OTHERS_MEMBER: &str = "xml";

/// The namespace of a version's envelope.
pub(super) const fn namespace_of(version: SoapVersion) -> &'static str {
    match version {
        SoapVersion::V1_1 => ENVELOPE_1_1,
        SoapVersion::V1_2 => ENVELOPE_1_2,
    }
}

/// Whether a namespace is that of an envelope.
pub(super) fn is_envelope(namespace: &str) -> bool {
    namespace == ENVELOPE_1_1 || namespace == ENVELOPE_1_2
}

/// What a service says instead of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fault {
    /// The code: a name of SOAP's own (`Client`, `Sender`) without namespace, others as
    /// [`XmlName`] is written.
    pub code: String,
    /// What the service says beyond the code, the outermost first.
    pub subcodes: Vec<String>,
    /// For people.
    pub reason: String,
    /// Who is at fault, where that is said.
    pub actor: Option<String>,
    /// More of it, as JSON: an object of declared elements, else XML text.
    pub detail: Option<Vec<u8>>,
}

impl Fault {
    /// Whether the service says that the call is to blame, rather than itself.
    pub fn is_the_callers(&self) -> bool {
        let word = self.code.split('.').next().unwrap_or_default();
        word == "Client" || word == "Sender"
    }

    /// The fault as a JSON object. A detail longer than `detail_bytes_max` is told by its beginning.
    pub fn to_json(&self, detail_bytes_max: usize) -> Vec<u8> {
        let mut out = b"{\"code\":".to_vec();
        write_string(&mut out, &self.code);
        if !self.subcodes.is_empty() {
            out.extend_from_slice(b",\"subcodes\":[");
            for (index, code) in self.subcodes.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write_string(&mut out, code);
            }
            out.push(b']');
        }
        out.extend_from_slice(b",\"reason\":");
        write_string(&mut out, &self.reason);
        if let Some(actor) = &self.actor {
            out.extend_from_slice(b",\"actor\":");
            write_string(&mut out, actor);
        }
        if let Some(detail) = &self.detail {
            out.extend_from_slice(b",\"detail\":");
            if detail.len() <= detail_bytes_max {
                out.extend_from_slice(detail);
            } else {
                let text = String::from_utf8_lossy(detail);
                let end = text.floor_char_boundary(detail_bytes_max);
                let text = text.get(..end).unwrap_or_default();
                write_string(&mut out, &format!("{text}... ({} bytes in all)", detail.len()));
            }
        }
        out.push(b'}');
        out
    }

    /// Reads the element `Fault`; what may stand in its detail is in `declared`.
    pub(super) fn read(
        fault: Element<'_>,
        declared: &TypePlan,
        reader: &mut Reader<'_>,
    ) -> Result<Self, Unreadable> {
        // Servers disagree about the namespaces of the parts, never about their names.
        let part = |name: &str| fault.children().find(|child| child.local() == name);
        let text = |name: &str| {
            let text = cut(part(name)?.text().trim());
            (!text.is_empty()).then_some(text)
        };
        let mut read = Self::default();
        if let Some(code) = part("Code") {
            read.code = code
                .children()
                .find(|child| child.local() == "Value")
                .map(named)
                .unwrap_or_default();
            let mut inner = code;
            while let Some(subcode) = inner.children().find(|child| child.local() == "Subcode")
                && read.subcodes.len() < SUBCODES_MAX
            {
                let value = subcode.children().find(|child| child.local() == "Value");
                read.subcodes.extend(value.map(named));
                inner = subcode;
            }
            read.reason = part("Reason").map(reason).unwrap_or_default();
            read.actor = text("Role").or_else(|| text("Node"));
        } else {
            read.code = part("faultcode").map(named).unwrap_or_default();
            read.reason = text("faultstring").unwrap_or_default();
            read.actor = text("faultactor");
        }
        let detail = part("detail").or_else(|| part("Detail"));
        read.detail = match detail.map(|detail| detail_of(detail, declared, reader)).transpose() {
            // It is a fault all the same.
            Err(Unreadable::TooLarge) => None,
            detail => detail?.flatten(),
        };
        Ok(read)
    }
}

/// The code that an element holds.
fn named(element: Element<'_>) -> String {
    let text = element.text();
    match element.qualified(&text) {
        // Version 1.1 has codes of SOAP's own that are refined with dots.
        Some((namespace, local)) if is_envelope(namespace) => cut(local),
        Some((namespace, local)) => cut(&XmlName::new(namespace, local).to_string()),
        None => cut(text.trim()),
    }
}

/// The reason in English where it is there in several languages.
fn reason(element: Element<'_>) -> String {
    let mut texts = element.children().filter(|child| child.local() == "Text");
    let first = texts.next();
    let is_english = |text: &Element<'_>| {
        text.attribute_in(crate::xml::XML_NAMESPACE, "lang")
            .is_some_and(|lang| lang.get(..2).is_some_and(|start| start.eq_ignore_ascii_case("en")))
    };
    let english = first.filter(is_english).or_else(|| texts.find(is_english)).or(first);
    english.map(|text| cut(text.text().trim())).unwrap_or_default()
}

/// The beginning of a text of the service.
fn cut(text: &str) -> String {
    text.get(..text.floor_char_boundary(TEXT_BYTES_MAX)).unwrap_or_default().to_owned()
}

fn detail_of(
    detail: Element<'_>,
    declared: &TypePlan,
    reader: &mut Reader<'_>,
) -> Result<Option<Vec<u8>>, Unreadable> {
    let mut out = Vec::new();
    let is_declared = |child: &Element<'_>| {
        declared
            .named(child.local())
            .any(|(_, element)| *element.name.namespace == *child.namespace())
    };
    let mut others = String::new();
    for child in detail.children().filter(|child| !is_declared(child)) {
        others.push_str(&reader.xml(child)?);
    }
    if detail.children().any(|child| is_declared(&child)) {
        out.push(b'{');
        let mut is_first = true;
        reader.members(declared, detail, &mut out, &mut is_first, 2)?;
        if !others.is_empty() && declared.member(OTHERS_MEMBER).is_none() {
            out.extend_from_slice(b",\"");
            out.extend_from_slice(OTHERS_MEMBER.as_bytes());
            out.extend_from_slice(b"\":");
            write_string(&mut out, &others);
        }
        out.push(b'}');
        return Ok(Some(out));
    }
    let text = detail.text();
    let text = if others.is_empty() { text.trim() } else { &others };
    let is_nil = detail.attribute_in(INSTANCE_NAMESPACE, "nil").is_some();
    if text.is_empty() || is_nil {
        return Ok(None);
    }
    write_string(&mut out, text);
    Ok(Some(out))
}
