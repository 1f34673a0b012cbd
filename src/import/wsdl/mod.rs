//! WSDL 1.1 with XML Schema 1.0.
//!
//! ```text
//! sources      documents, found by following imports     -> text and trees
//! definitions  messages, port types, bindings, services
//! schemas      components of all schemas by name
//! ports        which port of a service is taken, where it is
//! operations   what each operation sends and gets        -> asks for types
//! types        complex types with what they inherit      -> model
//! members      what an object of a type has
//! rules        the model as field rules and JSON Schema
//! ```
//!
//! What is taken is described where it is read. In short:
//!
//! - Of the ports of a service that have the same operations one is taken, SOAP 1.1 before 1.2.
//! - Document/literal messages are wrapped where their one part is an element called as the
//!   operation is; bare else. RPC/literal ones have their parts. Encoded ones are refused.
//! - A member is called as its element or attribute is, without namespace; where two in one object
//!   would be called the same, elements keep the name and what comes later is told apart.
//! - `choice` is told in descriptions and never demanded; arrays are where the schema lets an
//!   element repeat. What is mixed, `any`, or not described is XML text.
//! - A type that holds itself is told once and left open where it begins again.
//!
//! What an operation cannot do without, and cannot be honoured, is why it is skipped. What is only
//! told less exactly than it is described is a note.
//!
//! Nothing here recurses over what a document says without a bound; types are read from a list.

mod connections;
mod definitions;
mod members;
mod messages;
mod model;
mod names;
mod notes;
mod operations;
mod particles;
mod pattern;
mod policy;
mod ports;
mod rules;
mod schemas;
mod simple;
mod sources;
#[cfg(test)]
mod tests;
mod types;
mod words;

use self::definitions::Definitions;
use self::notes::Notes;
use self::schemas::Schemas;
use self::types::Builder;
use super::{Description, Documents, ImportError, Location, Options, Step};
use crate::xml::{Document, Limits};

/// Reads the description at `root` and what it leads to.
///
/// # Errors
///
/// When the document as a whole cannot be used.
pub fn read(
    documents: &Documents,
    root: &Location,
    options: &Options,
) -> Result<Step<Description>, ImportError> {
    let mut notes = Notes::default();
    let sources = match sources::gather(documents, root, &mut notes)? {
        Step::Need(missing) => return Ok(Step::Need(missing)),
        Step::Done(sources) => sources,
    };
    let mut trees = Vec::with_capacity(sources.sources.len());
    for source in &sources.sources {
        let tree = Document::read(&source.text, Limits::DESCRIPTION);
        trees.push(tree.map_err(|error| sources::refusal(&source.location, &error))?);
    }
    if let Some(tree) = trees.first() {
        sources::check_root(root, tree.root())?;
    }
    let schemas = Schemas::read(&sources, &trees, &mut notes)?;
    let definitions = Definitions::read(&trees);
    let builder = Builder::new(&schemas);
    operations::read(root, &definitions, builder, options, notes).map(Step::Done)
}
