//! Tools whose messages are XML: a request of HTTP whose JSON body becomes an envelope of a SOAP
//! service, or a body without one.

use std::sync::Arc;

use super::{CompiledConnection, Tool, ToolMethod, Toolset, ToolsetKind};
use crate::mapping::soap::SoapPlan;
use crate::mapping::xml::{BodiesPlan, TypePlans};
use crate::mapping::{BodyFormat, Location, Messages, SoapOperation, XmlBodies};

/// What a call writes into the head of its request itself.
const OWN_HEADERS: [&str; 3] = ["soapaction", "accept", "content-type"];

/// What a toolset gives its tools.
#[derive(Debug, Clone, Copy)]
pub(super) struct Backing<'a> {
    pub(super) kind: ToolsetKind,
    /// The API behind it; `None` where its own problem is known.
    pub(super) connection: Option<&'a Arc<CompiledConnection>>,
    /// Of messages in XML; `None` where their own problems are known.
    pub(super) types: Option<&'a Arc<TypePlans>>,
}

impl Backing<'_> {
    /// Of a tool whose toolset is not there.
    pub(super) const fn nothing(tool: &Tool) -> Self {
        let kind = if tool.soap.is_some() { ToolsetKind::Soap } else { ToolsetKind::Rest };
        Self { kind, connection: None, types: None }
    }

    /// Whether a tool with these messages would have the same ones again.
    pub(super) fn is_of(&self, messages: Option<&Messages>) -> bool {
        match (self.types, messages) {
            (Some(types), Some(messages)) => Arc::ptr_eq(types, messages.types()),
            (_, None) => self.kind != ToolsetKind::Soap,
            (None, Some(_)) => false,
        }
    }

    /// The messages of a tool. What is wrong with them is noted; `None` without a fault where they
    /// are no XML, or their types have problems of their own.
    pub(super) fn messages(&self, tool: &Tool, faults: &mut Vec<String>) -> Option<Messages> {
        let is_soap = self.kind == ToolsetKind::Soap;
        match (is_soap, &tool.soap) {
            (true, None) => faults.push(
                "soap: is missing; a tool of a toolset of kind `soap` has its operation there"
                    .to_owned(),
            ),
            (false, Some(_)) => {
                faults.push("soap: only tools of a toolset of kind `soap` have it".to_owned());
            }
            (true, Some(operation)) => return self.soap(tool, operation, faults),
            (false, None) => {}
        }
        let has_request = tool.xml.as_ref().is_some_and(|bodies| bodies.request.is_some());
        match (tool.body_format == BodyFormat::Xml, has_request) {
            (true, false) if !is_soap => faults.push(
                "body_format \"xml\": the root element is missing; name it in xml.request"
                    .to_owned(),
            ),
            (false, true) if !is_soap => faults.push(
                "xml.request: the body is no XML; set body_format to \"xml\", or remove it"
                    .to_owned(),
            ),
            _ => {}
        }
        self.bodies(tool.xml.as_ref().filter(|_| !is_soap)?, faults)
    }

    fn bodies(&self, bodies: &XmlBodies, faults: &mut Vec<String>) -> Option<Messages> {
        BodiesPlan::compile(self.types?, bodies)
            .map_err(|errors| faults.extend(errors.iter().map(|error| format!("xml: {error}"))))
            .ok()
            .map(|plan| Messages::Xml(Box::new(plan)))
    }

    fn soap(
        &self,
        tool: &Tool,
        operation: &SoapOperation,
        faults: &mut Vec<String>,
    ) -> Option<Messages> {
        if tool.method.is_some_and(|method| method != ToolMethod::Post) {
            faults.push("method: operations of a SOAP service are called with POST".to_owned());
        }
        if tool.xml.is_some() {
            faults.push("xml: the messages of a SOAP tool are in soap; remove it".to_owned());
        }
        if tool.body_format != BodyFormat::Json || tool.body_content_type.is_some() {
            faults.push(
                "body_format: the body of a SOAP tool is its message; remove body_format and \
                 body_content_type"
                    .to_owned(),
            );
        }
        for rule in tool.fields.iter().filter(|rule| rule.location == Location::Header) {
            let name = &rule.source_field_name;
            if OWN_HEADERS.iter().any(|own| own.eq_ignore_ascii_case(name)) {
                faults.push(format!(
                    "field {name} (header): calls of SOAP services set this header; remove it"
                ));
            }
        }
        SoapPlan::compile(self.types?, operation)
            .map_err(|errors| faults.extend(errors.iter().map(|error| format!("soap: {error}"))))
            .ok()
            .map(|plan| Messages::Soap(Box::new(plan)))
    }
}

/// The types of a toolset's messages; those of `before` where they are the same. What is wrong with
/// them is noted.
pub(super) fn types(
    entity: &Toolset,
    before: Option<(&Toolset, Option<&Arc<TypePlans>>)>,
    faults: &mut Vec<String>,
) -> Option<Arc<TypePlans>> {
    if let ToolsetKind::Builtin | ToolsetKind::Mcp = entity.kind {
        if !entity.xml_types.0.is_empty() {
            let kind = if entity.kind == ToolsetKind::Mcp { "mcp" } else { "builtin" };
            faults.push(format!("xml_types: a toolset of kind `{kind}` has none"));
        }
        return None;
    }
    if let Some((before, Some(types))) = before
        && (std::ptr::eq(before, entity) || before.xml_types == entity.xml_types)
    {
        return Some(Arc::clone(types));
    }
    TypePlans::compile(&entity.xml_types)
        .map_err(|errors| faults.extend(errors.iter().map(|error| format!("xml_types: {error}"))))
        .ok()
        .map(Arc::new)
}

#[cfg(test)]
#[path = "messages_tests.rs"]
mod tests;
