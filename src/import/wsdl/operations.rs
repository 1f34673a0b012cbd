//! The operations of the chosen ports, as tools.
//!
//! They are read in two steps. First every operation says which elements its messages have, and the
//! types of these are asked for. When all types are known, what each tool takes and gives is told.

use std::collections::{HashMap, HashSet};

use super::super::clean;
use super::super::{
    Description, ImportError, Location, Operation, OperationTool, Options, Verdict,
};
use super::connections::Connections;
use super::definitions::{Definitions, documentation, parts};
use super::messages::{Direction, Draft};
use super::model::{ElementUse, Model};
use super::names::WSDL;
use super::notes::{Notes, sentences};
use super::policy::{self, Asked};
use super::ports::{self, Binding, Port};
use super::rules::{Purpose, RuleBuilder};
use super::types::Builder;
use crate::catalog::{ToolMethod, ToolsetKind};
use crate::mapping::{
    FieldRule, RULES_MAX, SoapOperation, XmlElement, input_schema, output_schema,
};
use crate::xml::Element;

/// Most operations of a description.
const OPERATIONS_MAX: usize = 10_000;
/// Most operations of one name that are told apart.
const OVERLOADS_MAX: usize = 100;
/// Most faults of an operation.
const FAULTS_MAX: usize = 50;

/// What is being read.
#[derive(Debug)]
pub(super) struct Reading<'s, 't> {
    pub(super) definitions: &'s Definitions<'t>,
    pub(super) builder: Builder<'s, 't>,
    /// What the operation that is being read asks of its caller.
    pub(super) asked: Vec<Asked>,
    connections: Connections,
    drafts: Vec<DraftOperation>,
    keys: HashSet<String>,
}

#[derive(Debug)]
struct DraftOperation {
    key: String,
    name: String,
    service: String,
    draft: Result<Box<DraftTool>, String>,
}

#[derive(Debug)]
struct DraftTool {
    description: String,
    path: String,
    connection: usize,
    binding_version: crate::mapping::SoapVersion,
    action: String,
    input: Draft,
    output: Option<Draft>,
    faults: Vec<ElementUse>,
    notes: Notes,
}

/// Reads all operations.
pub(super) fn read<'t>(
    root: &Location,
    definitions: &Definitions<'t>,
    builder: Builder<'_, 't>,
    options: &Options,
    mut notes: Notes,
) -> Result<Description, ImportError> {
    let mut reading = Reading {
        definitions,
        builder,
        asked: Vec::new(),
        connections: Connections::default(),
        drafts: Vec::new(),
        keys: HashSet::new(),
    };
    for port in ports::chosen(definitions, options, &mut notes) {
        reading.port(&port, options, &mut notes);
        if reading.drafts.len() > OPERATIONS_MAX {
            let limit = format!("it has more than {OPERATIONS_MAX} operations");
            return Err(ImportError::limit(root, limit));
        }
    }
    if reading.drafts.is_empty() {
        return Err(ImportError::unusable(root, "it describes no operation of a SOAP service"));
    }
    let Reading { mut builder, connections, drafts, .. } = reading;
    builder.run();
    notes.extend(&builder.notes);
    let model = builder.model;
    let operations = drafts.into_iter().map(|draft| draft.finish(&model)).collect();
    let service = definitions.services.first();
    let title = service.map(|(name, _)| name.local).or(definitions.name).map(str::to_owned);
    let told = match &definitions.documentation {
        text if text.is_empty() => service.map(|(_, element)| documentation(*element)),
        text => Some(text.clone()),
    };
    Ok(Description {
        title,
        description: told.filter(|text| !text.is_empty()),
        kind: ToolsetKind::Soap,
        connections: connections.into_list(),
        xml_types: model.xml_types(),
        operations,
        notes: notes.into_list(),
    })
}

impl<'t> Reading<'_, 't> {
    fn port(&mut self, port: &Port<'t>, options: &Options, notes: &mut Notes) {
        let Some(port_type) = self.definitions.port_type(port.interface) else {
            notes.add(format!("the port type {} is not described", port.interface));
            return;
        };
        let address = ports::address(port.address, options, notes);
        let name = |element: &Element<'t>| element.attribute("name").unwrap_or_default().trim();
        let left = OPERATIONS_MAX.saturating_sub(self.drafts.len()) + 1;
        let described: Vec<Element<'t>> = parts(port_type, "operation").take(left).collect();
        let bound: Vec<Element<'t>> = parts(port.binding, "operation").take(left).collect();
        let mut by_name: HashMap<&str, Vec<Element<'t>>> = HashMap::new();
        for operation in &described {
            by_name.entry(name(operation)).or_default().push(*operation);
        }
        let mut places: Vec<Asked> = Vec::new();
        let mut refused = None;
        for at in port.around.iter().flatten().chain([&port.binding, &port_type]) {
            let demanded = policy::demands(*at, &self.definitions.policies, &mut places);
            refused = refused.or(demanded.err());
        }
        let mut taken = HashSet::new();
        for operation in &bound {
            let same = by_name.get(name(operation)).map_or(&[][..], Vec::as_slice);
            let Some(found) = counterpart(*operation, same, &taken) else {
                let reason = "its port type does not have it".to_owned();
                self.push(port, name(operation), None, Err(reason));
                continue;
            };
            taken.insert(found);
            let is_overloaded = same.len() > 1;
            let input = found.child(WSDL, "input");
            let tail =
                input.and_then(|input| input.attribute("name").or(input.attribute("message")));
            let tail = tail.filter(|_| is_overloaded);
            self.asked.clone_from(&places);
            let draft = match (port.kind, &refused) {
                (Err(reason), _) => Err(reason.to_owned()),
                (_, Some(reason)) => Err(reason.clone()),
                (Ok(binding), None) => self.operation(binding, *operation, found),
            };
            let draft = draft.map(|mut draft| {
                draft.connection = self.connections.place(port.service, &address, &self.asked);
                draft.path.clone_from(&address.path);
                Box::new(draft)
            });
            self.push(port, name(operation), tail, draft);
        }
        let bound: HashSet<&str> = bound.iter().map(name).collect();
        for other in described.iter().filter(|other| !taken.contains(*other)) {
            if !bound.contains(name(other)) {
                self.push(port, name(other), None, Err("its binding does not have it".to_owned()));
            }
        }
    }

    fn push(
        &mut self,
        port: &Port<'t>,
        name: &str,
        tail: Option<&str>,
        draft: Result<Box<DraftTool>, String>,
    ) {
        let tail = tail.map(|tail| format!("({tail})")).unwrap_or_default();
        let mut key = format!("{}.{name}{tail}", port.service);
        if self.keys.contains(&key) {
            key = format!("{}.{}.{name}{tail}", port.service, port.name);
        }
        let plain = key.clone();
        let mut number = 2_u32;
        while !self.keys.insert(key.clone()) {
            key = format!("{plain}#{number}");
            number += 1;
        }
        let name = if name.is_empty() { "operation" } else { name };
        let service = port.service.to_owned();
        self.drafts.push(DraftOperation { key, name: name.to_owned(), service, draft });
    }

    fn operation(
        &mut self,
        binding: Binding<'t>,
        bound: Element<'t>,
        described: Element<'t>,
    ) -> Result<DraftTool, String> {
        let name = bound.attribute("name").unwrap_or_default().trim();
        let around = std::mem::take(&mut self.builder.notes);
        let drafted = self.draft_operation(binding, bound, described, name);
        let notes = std::mem::replace(&mut self.builder.notes, around);
        drafted.map(|draft| DraftTool { notes, ..draft })
    }

    fn draft_operation(
        &mut self,
        binding: Binding<'t>,
        bound: Element<'t>,
        described: Element<'t>,
        name: &'t str,
    ) -> Result<DraftTool, String> {
        let soap = bound.child(binding.namespace, "operation");
        let said = |key: &str| soap.and_then(|soap| soap.attribute(key));
        let is_rpc = match said("style") {
            Some(style) => style == "rpc",
            None => binding.is_rpc,
        };
        let directions = ["input", "output", "fault"].map(|local| bound.child(WSDL, local));
        for at in [Some(bound), Some(described)].iter().chain(&directions).flatten() {
            policy::demands(*at, &self.definitions.policies, &mut self.asked)?;
        }
        let asks_first = described
            .children()
            .find(|child| child.is(WSDL, "input") || child.is(WSDL, "output"))
            .is_some_and(|first| first.local() == "input");
        let input = described.child(WSDL, "input").filter(|_| asks_first);
        let input = input.ok_or("the service sends it by itself; nobody can call it")?;
        let [bound_input, bound_output, _] = directions;
        let direction = Direction {
            binding,
            is_rpc,
            bound: bound_input,
            described: input,
            wrapper: name,
            is_answer: false,
        };
        let output = described.child(WSDL, "output");
        let draft = self.draft(direction)?;
        let output = match output {
            Some(output) => Some(self.draft(Direction {
                bound: bound_output,
                described: output,
                is_answer: true,
                ..direction
            })?),
            None => None,
        };
        let faults = self.faults(binding, described, bound);
        Ok(DraftTool {
            description: documentation(described),
            path: String::new(),
            connection: 0,
            binding_version: binding.version,
            action: said("soapAction").unwrap_or_default().trim().to_owned(),
            input: draft,
            output,
            faults,
            notes: Notes::default(),
        })
    }

    /// What may stand in the detail of a fault, or in the header beside one. A fault that is not
    /// described is told as it comes.
    fn faults(
        &mut self,
        binding: Binding<'t>,
        described: Element<'t>,
        bound: Element<'t>,
    ) -> Vec<ElementUse> {
        let mut found: Vec<ElementUse> = Vec::new();
        let of_headers = parts(bound, "input")
            .chain(parts(bound, "output"))
            .flat_map(Element::children)
            .filter(|child| child.is(binding.namespace, "header"))
            .flat_map(Element::children)
            .filter(|child| child.is(binding.namespace, "headerfault"));
        for fault in parts(described, "fault").chain(of_headers).take(FAULTS_MAX) {
            let value = fault.attribute("message").unwrap_or_default();
            let Some(message) = self.definitions.message(fault, value) else { continue };
            let wished = fault.attribute("part");
            let part = parts(message, "part")
                .find(|part| wished.is_none() || part.attribute("name") == wished);
            let element = part.and_then(|part| Some((part, part.attribute("element")?)));
            let Some((part, value)) = element else { continue };
            if let Ok(element) = self.element(part, value)
                && !found.iter().any(|known| known.name == element.name)
            {
                found.push(element);
            }
        }
        found
    }
}

/// What a bound operation is in the port type. Of several with one name (WSDL 1.1, section 2.5) the
/// names of input and output tell which; else their order does.
fn counterpart<'t>(
    bound: Element<'t>,
    same: &[Element<'t>],
    taken: &HashSet<Element<'t>>,
) -> Option<Element<'t>> {
    let fits = |other: &&&Element<'t>| {
        ["input", "output"].iter().all(|local| {
            let said = |element: Element<'t>| element.child(WSDL, local)?.attribute("name");
            said(bound).is_none_or(|wished| said(***other).is_none_or(|own| own == wished))
        })
    };
    let free = || same.iter().take(OVERLOADS_MAX).filter(|other| !taken.contains(*other));
    free().find(|other| fits(&other)).or_else(|| free().next()).copied()
}

impl DraftOperation {
    fn finish(self, model: &Model) -> Operation {
        let verdict = match self.draft {
            Err(reason) => Verdict::Skipped(reason),
            Ok(draft) => match draft.finish(&self.name, &self.service, model) {
                Ok((tool, notes)) => Verdict::of(tool, notes.into_list()),
                Err(reason) => Verdict::Skipped(reason),
            },
        };
        let tags = vec![self.service];
        Operation { key: self.key, wished_name: self.name, tags, verdict }
    }
}

impl DraftTool {
    fn finish(
        mut self,
        name: &str,
        service: &str,
        model: &Model,
    ) -> Result<(OperationTool, Notes), String> {
        self.input.settle(model);
        let mut notes = self.notes;
        let holds = self.input.holds().chain(self.output.iter().flat_map(Draft::holds));
        notes.extend(&model.notes(holds.collect::<Vec<_>>()));
        let fields = told(&self.input, model, Purpose::Input, &mut notes)?;
        let response_fields = match &mut self.output {
            Some(output) => {
                output.settle(model);
                told(output, model, Purpose::Output, &mut notes)?
            }
            None => Vec::new(),
        };
        let fault = |fault: &ElementUse| -> XmlElement { model.xml_element(fault, false) };
        let soap = SoapOperation {
            version: self.binding_version,
            action: self.action,
            input: self.input.soap(model),
            output: self.output.as_ref().map(|output| output.soap(model)),
            faults: self.faults.iter().map(fault).collect(),
        };
        let description = if self.description.is_empty() {
            format!("Calls {name} of the service {service}.")
        } else {
            self.description
        };
        let mut tool = OperationTool::new(ToolMethod::Post, self.path, description);
        tool.connection = self.connection;
        tool.soap = Some(soap);
        tool.fields = fields;
        tool.response_fields = response_fields;
        Ok((tool, notes))
    }
}

/// The rules of a message, each of them known to be one that a tool can have.
fn told(
    draft: &Draft,
    model: &Model,
    purpose: Purpose,
    notes: &mut Notes,
) -> Result<Vec<FieldRule>, String> {
    let members = draft.members(model);
    if members.len() > RULES_MAX {
        return Err(format!("its message has more than {RULES_MAX} members"));
    }
    let mut builder = RuleBuilder::new(model, purpose);
    let mut rules = builder.rules(&members);
    notes.extend(&builder.notes);
    for rule in &mut rules {
        if is_sound(rule, purpose) {
            continue;
        }
        if let Some(schema) = &mut rule.schema {
            without_patterns(schema);
        }
        if !is_sound(rule, purpose) {
            let open = FieldRule::new(rule.source_field_name.clone(), rule.location);
            *rule = FieldRule {
                schema: Some(serde_json::json!({})),
                required: rule.required,
                description: rule.description.take(),
                ..open
            };
        }
        notes.add(format!(
            "what {} may hold cannot be told in full",
            clean::line(&sentences([rule.source_field_name.as_str()]), 80)
        ));
    }
    Ok(rules)
}

fn is_sound(rule: &FieldRule, purpose: Purpose) -> bool {
    let alone = std::slice::from_ref(rule);
    match purpose {
        Purpose::Input => input_schema(alone).is_ok(),
        // The same words as in what is sent; only expressions may be more than can be checked.
        Purpose::Output => !has_pattern(rule) || output_schema(alone).is_ok(),
    }
}

fn has_pattern(rule: &FieldRule) -> bool {
    let mut schema = rule.schema.clone().unwrap_or_default();
    without_patterns(&mut schema);
    rule.schema.as_ref().is_some_and(|own| *own != schema)
}

/// Takes the expressions out of a schema. Its depth is bounded where it is written.
fn without_patterns(schema: &mut serde_json::Value) {
    match schema {
        serde_json::Value::Object(words) => {
            if words.get("pattern").is_some_and(serde_json::Value::is_string) {
                words.remove("pattern");
            }
            words.values_mut().for_each(without_patterns);
        }
        serde_json::Value::Array(items) => items.iter_mut().for_each(without_patterns),
        _ => {}
    }
}
