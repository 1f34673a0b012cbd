//! What the reading of a description comes to, whatever format it has.
//!
//! It is kept apart from tenants, toolsets and what is published: those are filled in when it is
//! made into entities.

use crate::catalog::{Annotations, Credential, SideEffect, ToolMethod, ToolsetKind};
use crate::mapping::{
    BodyFormat, FieldRule, Requirement, SoapOperation, SoapVersion, XmlBodies, XmlTypes,
};

use super::Location;

/// How far the reading has come.
#[derive(Debug, Clone, PartialEq)]
pub enum Step<T> {
    /// These documents are wanted: each without another one of [`Documents`](super::Documents), at
    /// least one. Read again when each was added or refused.
    Need(Vec<Location>),
    /// That is it.
    Done(T),
}

/// What the operator says about the reading.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// Where the API is, whatever the description says: `https://api.example.com/v2`. The
    /// description's own is used where absent.
    pub base_url: Option<String>,
    /// Which version of SOAP is spoken where a service speaks both; 1.1 where absent.
    pub soap_version: Option<SoapVersion>,
    /// Which of several described servers is taken: by its place from 0, its URL or its description;
    /// the first where absent or unknown.
    pub server: Option<String>,
}

/// What a description comes to.
#[derive(Debug, Clone, PartialEq)]
pub struct Description {
    /// What the API is called.
    pub title: Option<String>,
    /// What it is.
    pub description: Option<String>,
    /// Whether its operations are requests of their own or messages of a SOAP service.
    pub kind: ToolsetKind,
    /// Where it is reached; operations name them by their place here. The first is that of the
    /// toolset.
    pub connections: Vec<DescribedConnection>,
    /// The types of messages that are XML.
    pub xml_types: XmlTypes,
    /// All of them, in the order of the description.
    pub operations: Vec<Operation>,
    /// What the operator should know that belongs to no operation.
    pub notes: Vec<String>,
}

/// A place where the API is reached.
#[derive(Debug, Clone, PartialEq)]
pub struct DescribedConnection {
    /// A wish for its id: the word for what it is, in any alphabet; empty where there is none.
    pub name: String,
    /// Scheme, host, port and base path; `None` where the description does not say it, and then the
    /// operator has to.
    pub base_url: Option<String>,
    /// What the API asks for. Secrets are `SecretReference::Environment` with a name made of the
    /// connection's and the scheme's.
    pub credentials: Vec<Credential>,
    /// What the operator should know or do about it. Where there is no base URL, the first says why.
    pub notes: Vec<String>,
}

/// An operation and what became of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Operation {
    /// Tells it from all others of the description, and stays the same while the operation does:
    /// `GET /pets/{id}`, `Shop.Order`.
    pub key: String,
    /// What it would like to be called; the final name is made from it. Never empty.
    pub wished_name: String,
    /// What the description sorts it under.
    pub tags: Vec<String>,
    /// What became of it.
    pub verdict: Verdict,
}

/// What became of an operation.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// It is a tool.
    Imported(Box<OperationTool>),
    /// It is a tool, and these things about it are other than described.
    Noted(Box<OperationTool>, Vec<String>),
    /// It is none, for this reason.
    Skipped(String),
}

impl Verdict {
    /// The tool, where there is one.
    pub fn tool(&self) -> Option<&OperationTool> {
        match self {
            Self::Imported(tool) | Self::Noted(tool, _) => Some(tool),
            Self::Skipped(_) => None,
        }
    }

    /// `Imported`, or `Noted` where there are notes.
    pub fn of(tool: OperationTool, notes: Vec<String>) -> Self {
        let tool = Box::new(tool);
        if notes.is_empty() { Self::Imported(tool) } else { Self::Noted(tool, notes) }
    }
}

/// A [`Tool`](crate::catalog::Tool) without its tenant, its toolset and its final name.
#[derive(Debug, Clone, PartialEq)]
pub struct OperationTool {
    /// For people.
    pub title: Option<String>,
    /// What the model reads; never empty.
    pub description: String,
    /// The request's method.
    pub method: ToolMethod,
    /// The request's path below the connection's, with `{placeholders}`.
    pub path: String,
    /// Its place in [`Description::connections`].
    pub connection: usize,
    /// How the body fields are written.
    pub body_format: BodyFormat,
    /// The content type of the body; what `body_format` says where absent.
    pub body_content_type: Option<String>,
    /// What fields of the body have to keep to together.
    pub requires: Vec<Requirement>,
    /// The operation of a SOAP service.
    pub soap: Option<SoapOperation>,
    /// The bodies of an operation of another API that are XML.
    pub xml: Option<XmlBodies>,
    /// What arguments there are.
    pub fields: Vec<FieldRule>,
    /// What of the response is given back; everything, where empty.
    pub response_fields: Vec<FieldRule>,
    /// Lets pass what of the response no rule names.
    pub pass_unmapped: bool,
    /// Hints about what it does.
    pub annotations: Annotations,
    /// What a call does to the world, where method and annotations do not say it.
    pub side_effect: Option<SideEffect>,
    /// The header that carries a key of the call's own, where the description has one.
    pub idempotency_key_header: Option<String>,
    /// Whether the description advises against it.
    pub deprecated: bool,
}

impl OperationTool {
    /// A request without arguments, of the first connection.
    pub fn new(
        method: ToolMethod,
        path: impl Into<String>,
        description: impl Into<String>,
    ) -> Self {
        Self {
            title: None,
            description: description.into(),
            method,
            path: path.into(),
            connection: 0,
            body_format: BodyFormat::default(),
            body_content_type: None,
            requires: Vec::new(),
            soap: None,
            xml: None,
            fields: Vec::new(),
            response_fields: Vec::new(),
            pass_unmapped: false,
            annotations: Annotations::default(),
            side_effect: None,
            idempotency_key_header: None,
            deprecated: false,
        }
    }
}
