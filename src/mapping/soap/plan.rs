//! One operation of a SOAP service.

use std::sync::{Arc, LazyLock};

use super::super::xml::builder::Builder;
use super::super::xml::types::{ElementPlan, Holds, Namespaces, TypePlan};
use super::super::xml::write::{Problem, Writer, given};
use super::super::xml::{INSTANCE_NAMESPACE, PlanError, TypePlans};
use super::super::{
    InvalidArguments, OutgoingRequest, SoapBody, SoapMessage, SoapOperation, SoapVersion, XmlName,
};
use super::fault;
use crate::json::{Raw, guard};

/// What a service is told that is asked: the answer may have attachments.
const ACCEPT: &str = "application/soap+xml, text/xml, multipart/related";

/// An operation compiled: how its call is written and its answer read.
#[derive(Debug)]
pub struct SoapPlan {
    pub(super) types: Arc<TypePlans>,
    pub(super) version: SoapVersion,
    content_type: Arc<str>,
    /// The value of `SOAPAction`, where the version has it.
    action_header: Option<Box<str>>,
    /// Everything before the header or the body.
    opening: Box<str>,
    input: MessagePlan,
    /// Nothing where the operation is a one-way one.
    pub(super) output: Option<MessagePlan>,
    /// What may stand in the detail of a fault.
    pub(super) faults: TypePlan,
}

/// A message.
#[derive(Debug)]
pub(super) struct MessagePlan {
    pub(super) headers: TypePlan,
    pub(super) body: BodyPlan,
}

#[derive(Debug)]
pub(super) enum BodyPlan {
    /// The object of the message is what this element holds.
    Wrapped {
        element: ElementPlan,
        holds: usize,
    },
    /// The element is a member of the object.
    Bare(TypePlan),
    /// The parts are members of the object.
    Rpc {
        name: XmlName,
        open: Box<str>,
        close: Box<str>,
        parts: TypePlan,
    },
    Empty,
}

impl SoapPlan {
    /// Compiles an operation whose messages are of these types.
    ///
    /// # Errors
    ///
    /// Names every part that is wrong and what to change.
    pub fn compile(
        types: &Arc<TypePlans>,
        operation: &SoapOperation,
    ) -> Result<Self, Vec<PlanError>> {
        let mut errors = Vec::new();
        let mut namespaces = types.namespaces.clone();
        let names: Vec<&XmlName> =
            types.types.iter().filter_map(|plan| plan.name.as_ref()).collect();
        let mut compiler =
            Compiler { types, names: &names, namespaces: &mut namespaces, errors: &mut errors };
        let input = compiler.message("input", &operation.input);
        let output = operation.output.as_ref().map(|output| compiler.message("output", output));
        let faults = compiler.parts("faults", operation.faults.iter());
        let action = &*operation.action;
        let is_printable =
            |byte: u8| (b' '..=b'~').contains(&byte) && byte != b'"' && byte != b'\\';
        if !action.bytes().all(is_printable) {
            errors.push(PlanError::Action);
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let (content_type, action_header) = match operation.version {
            SoapVersion::V1_1 => {
                ("text/xml; charset=utf-8".into(), Some(format!("\"{action}\"").into()))
            }
            SoapVersion::V1_2 if action.is_empty() => {
                ("application/soap+xml; charset=utf-8".into(), None)
            }
            SoapVersion::V1_2 => {
                let content_type =
                    format!("application/soap+xml; charset=utf-8; action=\"{action}\"");
                (content_type.into(), None)
            }
        };
        Ok(Self {
            opening: opening(operation.version, types, &namespaces, &input).into(),
            types: Arc::clone(types),
            version: operation.version,
            content_type,
            action_header,
            input,
            output,
            faults,
        })
    }

    /// The types it was compiled with.
    pub const fn types(&self) -> &Arc<TypePlans> {
        &self.types
    }

    /// Whether the service answers with a message.
    pub const fn answers(&self) -> bool {
        self.output.is_some()
    }

    /// Which envelope it sends.
    pub const fn version(&self) -> SoapVersion {
        self.version
    }

    /// Makes the request of a call one of the service: its JSON body becomes an envelope.
    ///
    /// # Errors
    ///
    /// Names the field that cannot be written.
    pub fn wrap(&self, mut request: OutgoingRequest) -> Result<OutgoingRequest, InvalidArguments> {
        let envelope = match request.body.as_deref().map(guard) {
            None => self.write(Raw::EMPTY_OBJECT)?,
            Some(Ok(message)) => self.write(message.root())?,
            Some(Err(error)) => return Err(Problem::new(error.to_string()).into()),
        };
        request.body = Some(envelope);
        request.content_type = Some(Arc::clone(&self.content_type));
        let is_ours = |name: &str| {
            name.eq_ignore_ascii_case("SOAPAction") || name.eq_ignore_ascii_case("Accept")
        };
        request.headers.retain(|(name, _)| !is_ours(name));
        request.headers.insert(0, ("Accept".to_owned(), ACCEPT.to_owned()));
        if let Some(action) = &self.action_header {
            request.headers.insert(0, ("SOAPAction".to_owned(), action.to_string()));
        }
        Ok(request)
    }

    /// Writes the envelope of a call from the object of its message.
    ///
    /// # Errors
    ///
    /// Names the field that cannot be written.
    pub fn write(&self, object: Raw<'_>) -> Result<Vec<u8>, InvalidArguments> {
        let mut out = String::with_capacity(self.opening.len() + object.text().len() * 2 + 128);
        out.push_str(&self.opening);
        let mut writer = Writer::new(&self.types, out);
        let MessagePlan { headers, body } = &self.input;
        if !headers.members.is_empty() {
            let blocks = given(headers, Some(body.members(&self.types)), object)?;
            writer.out.push_str(HEADER_OPEN);
            let before = writer.out.len();
            writer.content(headers, &blocks)?;
            if writer.out.len() == before {
                writer.out.truncate(before - HEADER_OPEN.len());
            } else {
                writer.out.push_str(HEADER_CLOSE);
            }
        }
        writer.out.push_str(BODY_OPEN);
        match body {
            BodyPlan::Wrapped { element, holds } => {
                if let Some(plan) = self.types.get(*holds) {
                    writer.complex(element.tags(), plan, object, Some(headers), 1)?;
                }
            }
            BodyPlan::Bare(parts) => {
                let given = given(parts, Some(headers), object)?;
                writer.bare(parts, &given)?;
            }
            BodyPlan::Rpc { open, close, parts, .. } => {
                let given = given(parts, Some(headers), object)?;
                writer.out.push_str(open);
                writer.out.push('>');
                writer.content(parts, &given)?;
                writer.out.push_str(close);
            }
            BodyPlan::Empty => {
                given(&TypePlan::default(), Some(headers), object)?;
            }
        }
        writer.out.push_str("</soap:Body></soap:Envelope>");
        Ok(writer.out.into_bytes())
    }
}

impl BodyPlan {
    /// What of the message's object belongs to the body.
    fn members<'a>(&'a self, types: &'a TypePlans) -> &'a TypePlan {
        static NOTHING: LazyLock<TypePlan> = LazyLock::new(TypePlan::default);
        match self {
            Self::Wrapped { holds, .. } => types.get(*holds).unwrap_or(&NOTHING),
            Self::Bare(parts) | Self::Rpc { parts, .. } => parts,
            Self::Empty => &NOTHING,
        }
    }
}

const HEADER_OPEN: &str = "<soap:Header>";
const HEADER_CLOSE: &str = "</soap:Header>";
const BODY_OPEN: &str = "<soap:Body>";

/// An envelope that [`SoapPlan::write`] wrote, with another block in its header.
pub fn insert_header_block(envelope: &[u8], block: &[u8]) -> Vec<u8> {
    // Neither can stand within the tag of the envelope, where `<` is never written.
    let header = memchr::memmem::find(envelope, HEADER_OPEN.as_bytes());
    let body = memchr::memmem::find(envelope, BODY_OPEN.as_bytes()).unwrap_or(envelope.len());
    if let Some(header) = header.filter(|header| *header < body) {
        let (before, after) = envelope.split_at(header + HEADER_OPEN.len());
        return [before, block, after].concat();
    }
    let (before, after) = envelope.split_at(body);
    [before, HEADER_OPEN.as_bytes(), block, HEADER_CLOSE.as_bytes(), after].concat()
}

fn opening(
    version: SoapVersion,
    types: &TypePlans,
    namespaces: &Namespaces,
    input: &MessagePlan,
) -> String {
    let envelope = fault::namespace_of(version);
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><soap:Envelope xmlns:soap=\"{envelope}\" \
         xmlns:xsi=\"{INSTANCE_NAMESPACE}\""
    );
    let body = match &input.body {
        BodyPlan::Bare(parts) | BodyPlan::Rpc { parts, .. } => Some(parts),
        BodyPlan::Wrapped { .. } | BodyPlan::Empty => None,
    };
    let (name, holds) = match &input.body {
        BodyPlan::Wrapped { element, holds } => (Some(&element.name), Some(*holds)),
        BodyPlan::Rpc { name, .. } => (Some(name), None),
        BodyPlan::Bare(_) | BodyPlan::Empty => (None, None),
    };
    let mut used = types.reachable(std::iter::once(&input.headers).chain(body), holds);
    used.extend(name.and_then(|name| namespaces.known(&name.namespace)));
    for number in used {
        namespaces.declare(number, &mut out);
    }
    out.push('>');
    out
}

struct Compiler<'a> {
    types: &'a TypePlans,
    names: &'a [&'a XmlName],
    namespaces: &'a mut Namespaces,
    errors: &'a mut Vec<PlanError>,
}

impl Compiler<'_> {
    fn builder<'b>(&'b mut self, place: &'b str) -> Builder<'b> {
        Builder::new(place, self.names, self.namespaces, self.errors)
    }

    /// Elements as if they were the content of a type.
    fn parts<'e>(
        &mut self,
        place: &str,
        elements: impl Iterator<Item = &'e super::super::XmlElement>,
    ) -> TypePlan {
        let mut builder = self.builder(place);
        builder.elements(elements);
        builder.finish()
    }

    fn message(&mut self, place: &str, message: &SoapMessage) -> MessagePlan {
        let headers = self.parts(&format!("{place}.headers"), message.headers.iter());
        let body = match &message.body {
            SoapBody::Wrapped(element) => {
                let before = self.errors.len();
                let element = self.builder(place).lone(element);
                match element.holds {
                    Holds::Type(holds) if !element.repeats => BodyPlan::Wrapped { element, holds },
                    // A type that is not there is told once.
                    _ if self.errors.len() > before => BodyPlan::Empty,
                    _ => {
                        self.errors.push(PlanError::Wrapper { place: place.to_owned() });
                        BodyPlan::Empty
                    }
                }
            }
            SoapBody::Bare(element) => BodyPlan::Bare(self.parts(place, std::iter::once(element))),
            SoapBody::Rpc { wrapper, parts } => {
                let parts = self.parts(place, parts.iter());
                let (open, close) = self.builder(place).tags(wrapper);
                BodyPlan::Rpc { name: wrapper.clone(), open, close, parts }
            }
            SoapBody::Empty => BodyPlan::Empty,
        };
        self.refuse_shared(place, &headers, &body);
        MessagePlan { headers, body }
    }

    /// Header blocks and parts of the body are members of one object.
    fn refuse_shared(&mut self, place: &str, headers: &TypePlan, body: &BodyPlan) {
        let body = body.members(self.types);
        for header in &headers.members {
            if body.member(&header.name).is_some() {
                let (place, member) = (place.to_owned(), header.name.to_string());
                self.errors.push(PlanError::Duplicate { place, member });
            }
        }
    }
}
