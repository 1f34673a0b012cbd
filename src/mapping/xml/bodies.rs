//! Bodies that are XML without an envelope.

use std::sync::Arc;

use super::super::{InvalidArguments, OutgoingRequest, XmlBodies, XmlElement};
use super::builder::Builder;
use super::read::Reader;
use super::types::{ElementPlan, TypePlan};
use super::write::{Problem, Writer};
use super::{Attachments, INSTANCE_NAMESPACE, Message, PlanError, TypePlans, Unreadable};
use crate::json::{Raw, guard};
use crate::xml::{Document, Limits};

const PROLOG: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>";
/// What an API is told that answers with XML.
const ACCEPT: &str = "application/xml, text/xml, application/json;q=0.8, */*;q=0.5";

/// The bodies of an operation compiled: how the one that is sent is written, and the one that comes
/// back is read.
#[derive(Debug)]
pub struct BodiesPlan {
    types: Arc<TypePlans>,
    /// With the namespaces of everything within in its tag.
    request: Option<ElementPlan>,
    response: Option<ElementPlan>,
}

impl BodiesPlan {
    /// Compiles bodies that are of these types.
    ///
    /// # Errors
    ///
    /// Names every part that is wrong and what to change.
    pub fn compile(types: &Arc<TypePlans>, bodies: &XmlBodies) -> Result<Self, Vec<PlanError>> {
        let mut errors = Vec::new();
        let mut namespaces = types.namespaces.clone();
        let names: Vec<_> = types.types.iter().filter_map(|plan| plan.name.as_ref()).collect();
        let mut root = |place: &str, root: &XmlElement| {
            let mut builder = Builder::new(place, &names, &mut namespaces, &mut errors);
            let mut element = builder.unnamed(root, 0);
            let plan: TypePlan = builder.finish();
            let mut open = String::from(element.open);
            for number in types.reachable(std::iter::once(&plan), None) {
                namespaces.declare(number, &mut open);
            }
            element.open = open.into();
            element
        };
        let request = bodies.request.as_ref().map(|request| root("request", request));
        let response = bodies.response.as_ref().map(|response| root("response", response));
        let types = Arc::clone(types);
        if errors.is_empty() { Ok(Self { types, request, response }) } else { Err(errors) }
    }

    /// The types they were compiled with.
    pub const fn types(&self) -> &Arc<TypePlans> {
        &self.types
    }

    /// Makes the request of a call one of the API: its JSON body becomes XML.
    ///
    /// # Errors
    ///
    /// Names the field that cannot be written.
    pub fn wrap(&self, mut request: OutgoingRequest) -> Result<OutgoingRequest, InvalidArguments> {
        if let (Some(_), Some(body)) = (&self.request, request.body.as_deref()) {
            let body = guard(body).map_err(|error| Problem::new(error.to_string()))?;
            request.body = Some(self.write(body.root())?);
        }
        let is_accept = |(name, _): &(String, String)| name.eq_ignore_ascii_case("Accept");
        if self.response.is_some() && !request.headers.iter().any(is_accept) {
            request.headers.insert(0, ("Accept".to_owned(), ACCEPT.to_owned()));
        }
        Ok(request)
    }

    /// Writes the body of a call. Without a described one there is nothing.
    ///
    /// # Errors
    ///
    /// Names the field that cannot be written.
    pub fn write(&self, value: Raw<'_>) -> Result<Vec<u8>, InvalidArguments> {
        let Some(root) = &self.request else { return Ok(Vec::new()) };
        let mut out = String::with_capacity(root.open.len() + value.text().len() * 2 + 128);
        out.push_str(PROLOG);
        let mut writer = Writer::new(&self.types, out);
        writer.element(root, value, 1)?;
        if writer.says_instance {
            let declared = [" xmlns:xsi=\"", INSTANCE_NAMESPACE, "\""].concat();
            writer.out.insert_str(PROLOG.len() + root.open.len(), &declared);
        }
        Ok(writer.out.into_bytes())
    }

    /// Whether answers are described.
    pub const fn answers(&self) -> bool {
        self.response.is_some()
    }

    /// Reads the body of an answer. The name of its root element may be another one, as long as what
    /// is within is known.
    ///
    /// # Errors
    ///
    /// Why the text is not the body that is described. What is odd within it is no error.
    pub fn read(&self, text: &str) -> Result<Message, Unreadable> {
        let plan = self.response.as_ref().ok_or(Unreadable::Other)?;
        let document = Document::read(text, Limits::MESSAGE)?;
        let root = document.root();
        let attachments = Attachments::default();
        let mut reader = Reader::new(&self.types, &attachments, text.len());
        let mut json = Vec::with_capacity(text.len() / 2 + 64);
        reader.value(plan, root, &mut json, 1)?;
        let children = root.children().count() as u64;
        let is_other = root.local() != &*plan.name.local;
        if is_other && children > 0 && reader.dropped >= children {
            return Err(Unreadable::Other);
        }
        Ok(Message { json, dropped: reader.dropped })
    }
}
