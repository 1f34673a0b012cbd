//! `OpenAPI` 3.0 and 3.1 and Swagger 2.0, in JSON or YAML, as operations that can be called.
//!
//! Descriptions are read as plain trees, not as typed models: what one operation gets wrong must not
//! cost another, and much of what is uploaded is wrong somewhere. Each operation ends in a verdict.
//!
//! ```text
//! text       bytes to a tree, bounded
//! library    documents, `$id`s, anchors, references, cycles
//! schema     one schema, alone, as JSON Schema 2020-12 (references, words, demands, merge, unions)
//! rules      a schema as a field rule          verify   rules that the mapping takes
//! templates, parameters, body, response        what an operation consists of
//! encoding   the fields of forms and parts     media    what a media type says
//! xml        bodies of XML                         xml_words  what a schema says of it
//! servers, security, connections               where it goes and with what
//! operation  all of it together
//! ```
//!
//! Invariants worth naming:
//!
//! - What comes of an operation depends on the operation and what it refers to, never on the order
//!   of the document.
//! - What cannot be said as a field rule is told in a note or is the reason why an operation is
//!   skipped. A request is never made of less than the description demands.
//! - Every rule given out is one that `mapping` compiles.
//! - Time and memory are bounded by the size of the documents and fixed allowances, whatever
//!   references multiply.

mod body;
mod connections;
mod demands;
mod encoding;
mod library;
mod media;
mod members;
mod merge;
mod notes;
mod operation;
mod parameters;
mod references;
mod response;
mod rules;
mod schema;
mod security;
mod servers;
mod templates;
mod text;
mod unions;
mod verify;
mod words;
mod xml;
mod xml_words;

use std::cell::{Cell, RefCell};

use serde_json::{Map, Value};

use self::clean::{TITLE_MAX, TOOL_TEXT_MAX};
use self::connections::Connections;
use self::demands::Patterns;
use self::library::{Index, Library, Spot};
use self::notes::Notes;
use self::schema::TooMuch;
use self::xml::XmlModel;
use super::clean;
use super::{Description, Documents, ImportError, Location, Operation, Options, Step, Verdict};
use crate::catalog::ToolsetKind;

/// Most operations of one description.
pub const OPERATIONS_MAX: usize = 50_000;
/// Most fields of all operations together.
const FIELDS_MAX: usize = 1_000_000;
/// How many values the schemas of all operations together may keep, and how many may be looked at
/// on the way.
const VALUES_MAX: usize = 4_000_000;
const WORK_MAX: usize = 60_000_000;

/// Members of a path item that are operations.
const METHODS: [&str; 9] =
    ["get", "put", "post", "delete", "options", "head", "patch", "trace", "query"];

/// Which specification a description keeps to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    /// Swagger 2.0.
    V20,
    V30,
    /// And what came after: schemas are JSON Schema 2020-12.
    V31,
}

impl Version {
    /// By the root document.
    fn of(tree: &Value) -> Result<Self, String> {
        let said = |word| match tree.get(word) {
            Some(Value::String(text)) => Some(text.trim().to_owned()),
            Some(Value::Number(number)) => Some(number.to_string()),
            _ => None,
        };
        if let Some(version) = said("openapi") {
            return match version.split('.').take(2).collect::<Vec<_>>().as_slice() {
                ["3", "0"] | ["3"] => Ok(Self::V30),
                ["3", _] => Ok(Self::V31),
                _ => Err(format!("OpenAPI {version:?} is not read; 3.0 and 3.1 are")),
            };
        }
        match said("swagger").or_else(|| said("swaggerVersion")) {
            Some(version) if version.starts_with('2') => Ok(Self::V20),
            Some(version) => Err(format!("Swagger {version:?} is not read; convert it to 2.0")),
            None if tree.get("asyncapi").is_some() => {
                Err("it is an AsyncAPI description, which describes no requests".to_owned())
            }
            None => {
                Err("it is no OpenAPI description: it has neither `openapi` nor `swagger`"
                    .to_owned())
            }
        }
    }
}

/// What all operations of a description share.
#[derive(Debug)]
struct Reader<'a> {
    index: Index<'a>,
    version: Version,
    root: Spot<'a>,
    options: &'a Options,
    patterns: Patterns,
    too_much: TooMuch,
    /// How many values schemas may still keep.
    values_left: Cell<usize>,
    /// How many values may still be looked at.
    work_left: Cell<usize>,
    /// What bodies of XML need.
    xml: RefCell<XmlModel>,
}

/// Reads the description at `root` and what it leads to.
///
/// # Errors
/// When the document as a whole cannot be used. What is wrong with one operation is its verdict.
pub fn read(
    documents: &Documents,
    root: &Location,
    options: &Options,
) -> Result<Step<Description>, ImportError> {
    let has_ids = |tree: &Value| Version::of(tree) == Ok(Version::V31);
    let library = match Library::load(documents, root, has_ids)? {
        Step::Need(needed) => return Ok(Step::Need(needed)),
        Step::Done(library) => library,
    };
    let index = Index::new(&library);
    let spot = index.root().filter(|spot| spot.value.is_object());
    let spot = spot.ok_or_else(|| ImportError::unusable(root, "it is no OpenAPI description"))?;
    let version = Version::of(spot.value).map_err(|reason| ImportError::unusable(root, reason))?;
    let reader = Reader {
        index,
        version,
        root: spot,
        options,
        patterns: Patterns::default(),
        too_much: TooMuch::default(),
        values_left: Cell::new(VALUES_MAX),
        work_left: Cell::new(WORK_MAX),
        xml: RefCell::default(),
    };
    reader.description(root).map(Step::Done)
}

impl<'a> Reader<'a> {
    fn description(&self, location: &Location) -> Result<Description, ImportError> {
        let Some(paths) = self.root.get("paths").and_then(Value::as_object) else {
            return Err(ImportError::unusable(location, "it describes no `paths`"));
        };
        let mut notes = Notes::default();
        let mut connections = Connections::default();
        let mut operations = Vec::new();
        let mut fields = 0;
        for (path, item) in paths {
            if path.starts_with("x-") {
                continue;
            }
            let item = self.index.below(self.root, item);
            let known = operations.len();
            self.path_item(path, item, &mut connections, &mut operations);
            let tools = operations.iter().skip(known).filter_map(|one| one.verdict.tool());
            fields +=
                tools.map(|tool| tool.fields.len() + tool.response_fields.len()).sum::<usize>();
            if fields > FIELDS_MAX {
                let limit = format!("its operations have more than {FIELDS_MAX} fields");
                return Err(ImportError::limit(location, limit));
            }
            if operations.len() > OPERATIONS_MAX {
                let limit = format!("it describes more than {OPERATIONS_MAX} operations");
                return Err(ImportError::limit(location, limit));
            }
        }
        self.unread(&mut notes);
        let info = |word| self.root.get("info").and_then(|info| info.get(word)?.as_str());
        let title = info("title").map(|text| clean::line(text, TITLE_MAX));
        let title = title.filter(|title| !title.is_empty());
        let text = info("description").or_else(|| info("summary"));
        let text = text.map(|text| clean::lines(text, TOOL_TEXT_MAX));
        Ok(Description {
            connections: connections.finish(title.as_deref(), &mut operations),
            title,
            description: text.filter(|text| !text.is_empty()),
            kind: ToolsetKind::Rest,
            xml_types: self.xml_types(),
            operations,
            notes: notes.into_vec(),
        })
    }

    /// What the description has that are no operations to call.
    fn unread(&self, notes: &mut Notes) {
        if let Some(webhooks) = self.root.get("webhooks").and_then(Value::as_object) {
            let count = webhooks.len();
            notes.add(format!("{count} webhooks are requests of the API, not to it; left out"));
        }
        if self.version == Version::V31
            && let Some(version) = self.root.text("openapi").filter(|text| !text.starts_with("3.1"))
        {
            notes.add(format!("OpenAPI {version} is read as 3.1"));
        }
        if self.options.base_url.is_some() {
            notes.add("all requests go to the URL that was given, none to those described");
        }
    }

    fn path_item(
        &self,
        path: &str,
        item: Spot<'a>,
        connections: &mut Connections,
        operations: &mut Vec<Operation>,
    ) {
        let found = self.index.follow(item);
        let target = match &found {
            Ok(target) => *target,
            Err(error) => {
                // Which operations there are cannot be told; that there are some must be.
                operations.push(skipped(format!("* {}", clean::line(path, 200)), path, error));
                return;
            }
        };
        let Value::Object(words) = target.value else {
            let reason = "something else stands where its operations belong";
            operations.push(skipped(format!("* {}", clean::line(path, 200)), path, reason));
            return;
        };
        // Beside a `$ref` others may stand; they come first.
        let own = item.value.as_object().filter(|_| item.reference().is_some());
        for method in METHODS {
            let beside = own.and_then(|own| own.get(method)).map(|value| (item, value));
            let there = words.get(method).map(|value| (target, value));
            let Some((holder, value)) = beside.or(there) else { continue };
            let operation = self.index.below(holder, value);
            operations.push(self.operation(path, method, &[item, target], operation, connections));
        }
    }
}

/// An operation that is none, for a reason.
fn skipped(key: String, wished_name: &str, reason: &str) -> Operation {
    let wished_name = clean::line(wished_name, 200);
    Operation {
        key,
        wished_name: if wished_name.is_empty() { "operation".to_owned() } else { wished_name },
        tags: Vec::new(),
        verdict: Verdict::Skipped(reason.to_owned()),
    }
}

/// The members of an object; none where it is something else.
fn members(value: Option<&Value>) -> impl Iterator<Item = (&String, &Value)> {
    value.and_then(Value::as_object).into_iter().flat_map(Map::iter)
}

/// The items of an array; none where it is something else.
fn items(value: Option<&Value>) -> impl Iterator<Item = &Value> {
    value.and_then(Value::as_array).into_iter().flatten()
}

/// The texts of an array.
fn texts(value: Option<&Value>) -> impl Iterator<Item = &str> {
    items(value).filter_map(Value::as_str)
}
