//! From the parts of a WSDL message to what stands in header and body.

use super::definitions::{named, parts};
use super::model::{ElementUse, Held, Holds, Model};
use super::names::{Members, QName, WSDL};
use super::operations::Reading;
use super::policy::{Asked, SECURITY};
use super::ports::Binding;
use super::told::{Member, members};
use crate::mapping::{RULES_MAX, SoapBody, SoapMessage, XmlName};
use crate::xml::Element;

/// Most parts and headers of one message.
const PARTS_MAX: usize = 200;

/// A message before all types are known.
#[derive(Debug)]
pub(super) struct Draft {
    body: DraftBody,
    headers: Vec<ElementUse>,
    /// Its element is only there to hold the arguments.
    can_be_wrapped: bool,
}

#[derive(Debug)]
enum DraftBody {
    Empty,
    Element(Box<ElementUse>),
    Rpc { wrapper: XmlName, parts: Vec<ElementUse> },
}

impl Draft {
    /// Everything in it.
    pub(super) fn holds(&self) -> impl Iterator<Item = &Holds> {
        let body: &[ElementUse] = match &self.body {
            DraftBody::Empty => &[],
            DraftBody::Element(element) => std::slice::from_ref(element),
            DraftBody::Rpc { parts, .. } => parts,
        };
        body.iter().chain(&self.headers).map(|element| &element.holds)
    }

    /// Whether its element is taken for a wrapper.
    pub(super) fn is_wrapped(&self, model: &Model) -> bool {
        let DraftBody::Element(element) = &self.body else { return false };
        match model.held(&element.holds) {
            Held::Object(_, held) => {
                self.can_be_wrapped && held.text.is_none() && !held.is_abstract
            }
            _ => false,
        }
    }

    /// Gives all members of the message different names: the body's come first.
    pub(super) fn settle(&mut self, model: &Model) {
        let is_wrapped = self.is_wrapped(model);
        let mut names = Members::default();
        match &mut self.body {
            DraftBody::Empty => {}
            DraftBody::Element(element) if is_wrapped => {
                if let Held::Object(_, held) = model.held(&element.holds) {
                    let inside = members(held, RULES_MAX + 1).list;
                    for member in &inside {
                        names.keep_other(member.name);
                    }
                    // Those that clients do not see are written too.
                    for attribute in &held.attributes {
                        names.keep_other(&attribute.member);
                    }
                }
            }
            DraftBody::Element(element) => {
                element.member = names.of_other(&element.name.local, "body");
            }
            DraftBody::Rpc { parts, .. } => {
                for part in parts {
                    part.member = names.of_other(&part.name.local, "part");
                }
            }
        }
        for header in &mut self.headers {
            header.member = names.of_other(&header.name.local, "header");
        }
    }

    /// What clients see of it.
    pub(super) fn members<'m>(&'m self, model: &'m Model) -> Vec<Member<'m>> {
        let mut found = match &self.body {
            DraftBody::Empty => Vec::new(),
            DraftBody::Element(element) => match model.held(&element.holds) {
                Held::Object(_, held) if self.is_wrapped(model) => {
                    members(held, RULES_MAX + 1).list
                }
                _ => vec![Member::of_element(element)],
            },
            DraftBody::Rpc { parts, .. } => parts.iter().map(Member::of_element).collect(),
        };
        found.extend(self.headers.iter().map(Member::of_element));
        found
    }

    /// What the catalog keeps of it.
    pub(super) fn soap(&self, model: &Model) -> SoapMessage {
        let all = |elements: &[ElementUse]| {
            elements.iter().map(|element| model.xml_element(element, true)).collect()
        };
        let body = match &self.body {
            DraftBody::Empty => SoapBody::Empty,
            DraftBody::Element(element) if self.is_wrapped(model) => {
                SoapBody::Wrapped(model.xml_element(element, true))
            }
            DraftBody::Element(element) => SoapBody::Bare(model.xml_element(element, true)),
            DraftBody::Rpc { wrapper, parts } => {
                SoapBody::Rpc { wrapper: wrapper.clone(), parts: all(parts) }
            }
        };
        SoapMessage { body, headers: all(&self.headers) }
    }
}

/// One direction of an operation, as its binding has it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Direction<'t> {
    pub(super) binding: Binding<'t>,
    pub(super) is_rpc: bool,
    /// `input` or `output` of the binding; some leave out what says nothing.
    pub(super) bound: Option<Element<'t>>,
    /// The same of the port type.
    pub(super) described: Element<'t>,
    /// The name of the element around the parts of RPC, and of a wrapper.
    pub(super) wrapper: &'t str,
    /// The suffix it has there.
    pub(super) is_answer: bool,
}

impl<'t> Reading<'_, 't> {
    /// Reads one direction of an operation, or says why it cannot be.
    pub(super) fn draft(&mut self, direction: Direction<'t>) -> Result<Draft, String> {
        let value = direction.described.attribute("message").unwrap_or_default();
        let message = self
            .definitions
            .message(direction.described, value)
            .ok_or_else(|| format!("the message {value:?} is not described"))?;
        let extensions = self.extensions(direction)?;
        let soap = |local: &str| {
            let namespace = direction.binding.namespace;
            extensions
                .iter()
                .copied()
                .filter(move |child| child.is(namespace, local))
                .collect::<Vec<_>>()
        };
        let body = soap("body").first().copied();
        if body.and_then(|body| body.attribute("use")) == Some("encoded") {
            return Err("its messages are SOAP-encoded (rpc/encoded); only literal ones are \
                        written"
                .to_owned());
        }
        let mut headers = Vec::new();
        let mut header_parts = Vec::new();
        for header in soap("header").into_iter().take(PARTS_MAX) {
            if let Some(element) = self.header(header)? {
                headers.push(element);
            }
            let value = header.attribute("message").unwrap_or_default();
            if self.definitions.message(header, value) == Some(message) {
                header_parts.extend(header.attribute("part"));
            }
        }
        let listed = body.and_then(|body| body.attribute("parts"));
        let listed: Option<Vec<&str>> =
            listed.map(|listed| listed.split_ascii_whitespace().collect());
        let in_body = |part: &Element<'t>| {
            let name = part.attribute("name").unwrap_or_default();
            match &listed {
                Some(listed) => listed.contains(&name),
                None => !header_parts.contains(&name),
            }
        };
        let body_parts: Vec<Element<'t>> = parts(message, "part").filter(in_body).collect();
        if body_parts.len() > PARTS_MAX {
            return Err(format!("its message has more than {PARTS_MAX} parts"));
        }
        if direction.is_rpc {
            let namespace = body.and_then(|body| body.attribute("namespace"));
            let namespace = namespace.unwrap_or_else(|| target_namespace(direction.described));
            let suffix = if direction.is_answer { "Response" } else { "" };
            let wrapper = XmlName::new(namespace, &format!("{}{suffix}", direction.wrapper));
            let parts = self.rpc_parts(&body_parts)?;
            let body = DraftBody::Rpc { wrapper, parts };
            return Ok(Draft { body, headers, can_be_wrapped: false });
        }
        let (body, can_be_wrapped) = self.document_body(&body_parts, direction)?;
        Ok(Draft { body, headers, can_be_wrapped })
    }

    /// What stands in the binding; of a message with attachments, in its first part.
    fn extensions(&mut self, direction: Direction<'t>) -> Result<Vec<Element<'t>>, String> {
        let Some(bound) = direction.bound else { return Ok(Vec::new()) };
        let related = bound.children().find(|child| child.local() == "multipartRelated");
        let Some(related) = related else { return Ok(bound.children().collect()) };
        if !direction.is_answer {
            return Err("its message has attachments, which are not sent".to_owned());
        }
        self.builder.notes.add("attachments of its answer are read where they are MTOM only");
        Ok(related.children().flat_map(Element::children).collect())
    }

    fn document_body(
        &mut self,
        parts: &[Element<'t>],
        direction: Direction<'t>,
    ) -> Result<(DraftBody, bool), String> {
        let part = match parts {
            [] => return Ok((DraftBody::Empty, false)),
            [part] => *part,
            _ => return Err("the body of its message has several parts".to_owned()),
        };
        let Some(value) = part.attribute("element") else {
            return Err(
                "its message has a part with a type in place of an element, which document \
                 style does not say how to write"
                    .to_owned(),
            );
        };
        let element = self.element(part, value)?;
        // The rule of WSDL for wrappers; of an answer, any name is taken.
        let is_wrapper = direction.is_answer || *element.name.local == *direction.wrapper;
        Ok((DraftBody::Element(Box::new(element)), is_wrapper))
    }

    fn rpc_parts(&mut self, parts: &[Element<'t>]) -> Result<Vec<ElementUse>, String> {
        let mut read = Vec::new();
        for part in parts {
            let name = part.attribute("name").unwrap_or_default();
            let Some(value) = part.attribute("type") else {
                return Err(format!(
                    "its part {name:?} has an element in place of a type, which RPC style does not \
                     say how to write"
                ));
            };
            let of = named(*part, value)
                .ok_or_else(|| format!("the type {value:?} of a part has no namespace"))?;
            let holds = self.builder.holds_of_part(of, *part);
            read.push(ElementUse {
                name: XmlName::new("", name),
                member: name.into(),
                holds,
                least: 1,
                most: 1,
                is_required: true,
                is_nillable: false,
                fixed: None,
                default: None,
                documentation: super::definitions::documentation(*part),
            });
        }
        Ok(read)
    }

    /// A header block. What WS-Security has to say comes from a credential.
    fn header(&mut self, header: Element<'t>) -> Result<Option<ElementUse>, String> {
        let value = header.attribute("message").unwrap_or_default();
        let name = header.attribute("part").unwrap_or_default();
        let message = self.definitions.message(header, value);
        let part = message.and_then(|message| {
            parts(message, "part").find(|part| part.attribute("name") == Some(name))
        });
        let Some(part) = part else {
            self.builder.notes.add(format!("the header {name:?} is not described; it is left out"));
            return Ok(None);
        };
        if header.attribute("use") == Some("encoded") {
            self.builder.notes.add(format!("the header {name:?} is SOAP-encoded; it is left out"));
            return Ok(None);
        }
        let Some(value) = part.attribute("element") else {
            self.builder.notes.add(format!("the header {name:?} is no element; it is left out"));
            return Ok(None);
        };
        if named(part, value).is_some_and(|name| name.namespace == SECURITY) {
            self.asked.push(Asked::UsernameToken { is_digest: false });
            return Ok(None);
        }
        let mut element = self.element(part, value)?;
        let is_required =
            header.attribute_in(WSDL, "required").is_some_and(|value| value.trim() == "true");
        element.is_required = is_required;
        element.least = u32::from(is_required);
        element.documentation =
            super::notes::sentences(["In the SOAP header", element.documentation.as_str()]);
        Ok(Some(element))
    }

    /// The element that a part names.
    pub(super) fn element(
        &mut self,
        part: Element<'t>,
        value: &'t str,
    ) -> Result<ElementUse, String> {
        let name: QName<'t> = named(part, value)
            .ok_or_else(|| format!("the element {value:?} of a part has no namespace"))?;
        self.builder
            .global(name, &mut Members::default())
            .ok_or_else(|| format!("the element {name} of its message is not described"))
    }
}

/// That of the document an element stands in.
fn target_namespace(element: Element<'_>) -> &str {
    let mut root = element;
    while let Some(around) = root.parent() {
        root = around;
    }
    root.attribute("targetNamespace").unwrap_or_default()
}
