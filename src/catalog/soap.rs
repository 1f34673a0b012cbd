//! Tools of SOAP services: a request of HTTP whose JSON body becomes an envelope.

use std::sync::Arc;

use super::{CompiledConnection, Tool, ToolMethod, Toolset, ToolsetKind};
use crate::mapping::soap::SoapPlan;
use crate::mapping::xml::TypePlans;
use crate::mapping::{BodyFormat, Location};

/// What a call writes into the head of its request itself.
const OWN_HEADERS: [&str; 3] = ["soapaction", "accept", "content-type"];

/// What a toolset gives its tools.
#[derive(Debug, Clone, Copy)]
pub(super) struct Backing<'a> {
    pub(super) kind: ToolsetKind,
    /// The API behind it; `None` where its own problem is known.
    pub(super) connection: Option<&'a Arc<CompiledConnection>>,
    /// Of a SOAP service; `None` where their own problems are known.
    pub(super) types: Option<&'a Arc<TypePlans>>,
}

impl Backing<'_> {
    /// Of a tool whose toolset is not there.
    pub(super) const fn nothing(tool: &Tool) -> Self {
        let kind = if tool.soap.is_some() { ToolsetKind::Soap } else { ToolsetKind::Rest };
        Self { kind, connection: None, types: None }
    }

    /// Whether a tool with this plan would have the same one again.
    pub(super) fn is_of(&self, plan: Option<&SoapPlan>) -> bool {
        match (self.types, plan) {
            (Some(types), Some(plan)) => Arc::ptr_eq(types, plan.types()),
            (None, None) => self.kind != ToolsetKind::Soap,
            _ => false,
        }
    }

    /// The messages of a tool. What is wrong with them is noted; `None` without a fault where the
    /// tool has none, or its types have problems of their own.
    pub(super) fn plan(&self, tool: &Tool, faults: &mut Vec<String>) -> Option<SoapPlan> {
        let operation = match (self.kind, &tool.soap) {
            (ToolsetKind::Soap, Some(operation)) => operation,
            (ToolsetKind::Soap, None) => {
                faults.push(
                    "soap: is missing; a tool of a toolset of kind `soap` has its operation there"
                        .to_owned(),
                );
                return None;
            }
            (ToolsetKind::Rest | ToolsetKind::Builtin, Some(_)) => {
                faults.push("soap: only tools of a toolset of kind `soap` have it".to_owned());
                return None;
            }
            (ToolsetKind::Rest | ToolsetKind::Builtin, None) => return None,
        };
        if tool.method != ToolMethod::Post {
            faults.push("method: operations of a SOAP service are called with POST".to_owned());
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
    }
}

/// The types of a toolset's messages; those of `before` where they are the same. What is wrong with
/// them is noted.
pub(super) fn types(
    entity: &Toolset,
    before: Option<(&Toolset, Option<&Arc<TypePlans>>)>,
    faults: &mut Vec<String>,
) -> Option<Arc<TypePlans>> {
    if entity.kind != ToolsetKind::Soap {
        if !entity.xml_types.0.is_empty() {
            faults.push("xml_types: only a toolset of kind `soap` has them".to_owned());
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
#[path = "soap_tests.rs"]
mod tests;
