//! From an envelope to the JSON of an answer.

use super::fault::{Fault, is_envelope};
use super::plan::{BodyPlan, MessagePlan, SoapPlan};
use crate::mapping::xml::read::{Reader, write_key, write_type};
use crate::mapping::xml::types::Part;
use crate::mapping::xml::{Attachments, Message, Unreadable};
use crate::xml::{Document, Element, Limits};

/// What a service answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// What was asked for.
    Message(Message),
    /// That it cannot be done.
    Fault(Fault),
}

impl SoapPlan {
    /// Reads the envelope of an answer, in whichever version of SOAP it is.
    ///
    /// # Errors
    ///
    /// Why the text is no envelope. What is odd within one is no error.
    pub fn read(&self, text: &str, attachments: &Attachments<'_>) -> Result<Answer, Unreadable> {
        let document = Document::read(text, Limits::MESSAGE)?;
        let envelope = document.root();
        if envelope.local() != "Envelope" || !is_envelope(envelope.namespace()) {
            return Err(Unreadable::Other);
        }
        let of_envelope = |local: &str| envelope.child(envelope.namespace(), local);
        let body = of_envelope("Body").ok_or(Unreadable::Other)?;
        let mut reader = Reader::new(&self.types, attachments, text.len());
        if let Some(fault) = body.child(envelope.namespace(), "Fault") {
            return Ok(Answer::Fault(Fault::read(fault, &self.faults, &mut reader)?));
        }
        let mut json = Vec::with_capacity(text.len() / 2 + 64);
        json.push(b'{');
        if let Some(output) = &self.output {
            reader.message(output, of_envelope("Header"), body, &mut json)?;
        }
        json.push(b'}');
        Ok(Answer::Message(Message { json, dropped: reader.dropped }))
    }
}

impl Reader<'_> {
    /// The members of a message.
    fn message(
        &mut self,
        plan: &MessagePlan,
        header: Option<Element<'_>>,
        body: Element<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Unreadable> {
        let mut is_first = true;
        if let Some(header) = header.filter(|_| !plan.headers.members.is_empty()) {
            // Blocks that nobody asked for are for others on the way.
            let dropped = self.dropped;
            self.members(&plan.headers, header, out, &mut is_first, 1)?;
            self.dropped = dropped;
        }
        match &plan.body {
            BodyPlan::Wrapped { element, holds } => {
                let mut children = body.children();
                let first = children.next();
                let named = body.children().find(|child| child.local() == &*element.name.local);
                let (Some(wrapper), Some(declared)) = (named.or(first), self.types.get(*holds))
                else {
                    return Ok(());
                };
                let actual = self.actual(declared, *holds, wrapper);
                if !std::ptr::eq(actual, declared) {
                    write_type(actual, out, &mut is_first);
                }
                self.members(actual, wrapper, out, &mut is_first, 1)
            }
            BodyPlan::Bare(parts) => {
                let known =
                    body.children().any(|child| parts.named(child.local()).next().is_some());
                match (body.children().next(), parts.members.first()) {
                    // Under another name it is still the only one there can be.
                    (Some(only), Some(member)) if !known => {
                        let Part::Element(element) = &member.part else { return Ok(()) };
                        write_key(member, out, &mut is_first);
                        self.value(element, only, out, 1)
                    }
                    _ => self.members(parts, body, out, &mut is_first, 1),
                }
            }
            // WS-I Basic Profile 1.1, R2729: by its name it adds `Response`; not all do.
            BodyPlan::Rpc { parts, .. } => match body.children().next() {
                Some(wrapper) => self.members(parts, wrapper, out, &mut is_first, 1),
                None => Ok(()),
            },
            BodyPlan::Empty => Ok(()),
        }
    }
}
