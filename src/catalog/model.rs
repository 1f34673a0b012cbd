//! What can be written down: one model for files, the store and the admin interface.
//!
//! These types say what an entity consists of, not whether it makes sense: `check` and
//! `Snapshot::compile` judge that. Keys that do not exist are refused everywhere.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{
    CircuitBreaker, ClientApplicationId, ClientCertificate, ConnectionId, Credential, Limits,
    OperationName, Policy, Rate, Retries, Secret, SideEffect, TenantId, ToolName, ToolPattern,
    ToolsetId, Upstream,
};
use crate::mapping::{
    BodyFormat, Dialect, FieldRule, Requirement, ResultBudget, SoapOperation, XmlBodies, XmlTypes,
};
use crate::settings::Network;

/// Somebody whose client applications, toolsets and sessions are apart from everybody else's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tenant {
    /// Names it.
    pub id: TenantId,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Origins whose pages may call, such as `https://app.example.com`, besides those in settings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed_origins: Vec<String>,
    /// Most sessions at a time; the setting's number where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sessions_max: Option<u32>,
    /// Whether a call that no rule of a policy matches is denied.
    #[serde(default, skip_serializing_if = "is_default")]
    pub default_deny: bool,
    /// What all its client applications together may use.
    #[serde(default, skip_serializing_if = "is_default")]
    pub limits: Limits,
    /// Networks its calls may reach although they are this host, private or link-local.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub egress_allowances: Vec<Network>,
}

/// How a client application is shown its tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolListing {
    /// All of them are in the list.
    #[default]
    List,
    /// Tools to search for tools are in the list, and favourites.
    Search,
}

/// One consumer of a tenant's tools: it has an endpoint and keys of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientApplication {
    /// Whose it is.
    pub tenant: TenantId,
    /// Names it within the tenant.
    pub id: ClientApplicationId,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Whether it may be used without a key.
    #[serde(default)]
    pub open: bool,
    /// Whether requests need a session; the setting where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub require_session: Option<bool>,
    /// What `initialize` tells the model about this server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Its part of the prompts of the toolsets whose assignment says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// The form its schemas have.
    #[serde(default, skip_serializing_if = "is_default")]
    pub schema_dialect: Dialect,
    /// Longest name of a tool, 16 to 64; 48 where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name_budget: Option<u8>,
    /// How it is shown its tools.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tool_listing: ToolListing,
    /// Tools shown beside those to search with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub favourites: Vec<ToolPattern>,
    /// What it may call.
    #[serde(default, skip_serializing_if = "is_default")]
    pub policy: Policy,
    /// What all its callers together may use.
    #[serde(default, skip_serializing_if = "is_default")]
    pub limits: Limits,
    /// What each of its callers may use.
    #[serde(default, skip_serializing_if = "is_default")]
    pub caller_limits: Limits,
}

/// Where an API is and how it is reached.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Connection {
    /// Whose it is.
    pub tenant: TenantId,
    /// Names it within the tenant.
    pub id: ConnectionId,
    /// Scheme, host, port and the path all tools' paths are appended to. Of an MCP server its whole
    /// URL, which may have a query.
    pub base_url: String,
    /// Sent with every request. Their values are kept like secrets.
    #[serde(
        default,
        deserialize_with = "super::secrets::headers",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub headers: BTreeMap<String, Secret>,
    /// What it proves itself with.
    #[serde(
        default,
        deserialize_with = "super::secrets::credentials",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub credentials: Vec<Credential>,
    /// The certificate shown to the API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_certificate: Option<ClientCertificate>,
    /// Headers of the client's request that go on to the API, by their names there; the values are
    /// their names at the API.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub forward_headers: BTreeMap<String, String>,
    /// How calls that may be repeated are tried again; once where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<Retries>,
    /// When it is given a rest; never where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub circuit_breaker: Option<CircuitBreaker>,
    /// Longest time until the connection stands; the setting where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect_timeout_ms: Option<u64>,
    /// Longest time until the response's headers are there; the setting where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headers_timeout_ms: Option<u64>,
    /// Longest time for a whole call; the setting where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_timeout_ms: Option<u64>,
    /// Whether redirects of the API are followed.
    #[serde(default)]
    pub follow_redirects: bool,
    /// PEM files (absolute paths) of certificate authorities trusted besides the system's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tls_roots: Vec<PathBuf>,
    /// What requests say of the call they belong to.
    #[serde(default, skip_serializing_if = "is_default")]
    pub correlation: Correlation,
}

/// What requests say of the call they belong to.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Correlation {
    /// Which id is sent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub strategy: CorrelationStrategy,
    /// The header it is sent in; `X-Correlation-Id` where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
    /// Whether a `traceparent` is sent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub traceparent: bool,
}

/// Which id of a call is sent on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CorrelationStrategy {
    /// None.
    #[default]
    None,
    /// The one the client sent, where it sent one.
    ExternalId,
    /// The one the runtime gave the call.
    ExecutionId,
}

/// Where a toolset's tools come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolsetKind {
    /// Each tool is a request to an HTTP API.
    Rest,
    /// Each tool is an operation of a SOAP service.
    Soap,
    /// The tools, prompts and resources of an MCP server.
    Mcp,
    /// The appliance's own tools.
    Builtin,
}

/// How much of its tools' schemas a list shows.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum DiscoveryMode {
    /// All of them.
    #[default]
    Full,
    /// Names and nesting, without text for people.
    DataStructureOnly,
    /// A placeholder; the schema is asked for.
    Lazy,
}

/// Tools that belong together and are assigned together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Toolset {
    /// Whose it is.
    pub tenant: TenantId,
    /// Names it within the tenant.
    pub id: ToolsetId,
    /// Where its tools come from.
    pub kind: ToolsetKind,
    /// The API or server behind it; `builtin` has none, the others need one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<ConnectionId>,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What a model should know that uses its tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// How much of its tools' schemas a list shows.
    #[serde(default, skip_serializing_if = "is_default")]
    pub discovery_mode: DiscoveryMode,
    /// The types of its tools' messages, where they are XML.
    #[serde(default, skip_serializing_if = "is_default")]
    pub xml_types: XmlTypes,
    /// How the MCP server behind it is spoken to, and how far what it offers is trusted.
    #[serde(default, skip_serializing_if = "is_default")]
    pub upstream: Upstream,
}

/// The method of a tool's request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[expect(missing_docs, reason = "the methods of RFC 9110 and RFC 5789")]
pub enum ToolMethod {
    Get,
    Head,
    Post,
    Put,
    Patch,
    Delete,
}

impl ToolMethod {
    /// The method as it is sent.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

/// Hints about what a tool does. What is absent is taken from the method where HTTP says it: `GET`
/// and `HEAD` only read, `PUT` and `DELETE` are idempotent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Annotations {
    /// It changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// It may destroy or overwrite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// Twice does what once does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// It reaches beyond one closed system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
}

/// One operation of an API as a tool; of an MCP server, what is otherwise than it says of one of its
/// tools.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    /// Whose it is.
    pub tenant: TenantId,
    /// The toolset it belongs to.
    pub toolset: ToolsetId,
    /// What it is called where it comes from. Clients call it by a name made from this one.
    pub name: OperationName,
    /// What clients call it by, as far as that fits; made from `name` where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exposed_name: Option<ToolName>,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What the model reads to decide whether to use it. A tool of an MCP server has its own where
    /// this is absent; the others need one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The request's method. Tools of MCP servers have none; the others need one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<ToolMethod>,
    /// The request's path below the connection's, with `{placeholders}`. Tools of MCP servers have
    /// none; the others need one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// The API behind it, where it is another than that of its toolset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<ConnectionId>,
    /// How the body fields are written.
    #[serde(default, skip_serializing_if = "is_default")]
    pub body_format: BodyFormat,
    /// The content type of the body; what `body_format` says where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_content_type: Option<String>,
    /// What fields of the body have to keep to together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requires: Vec<Requirement>,
    /// The operation of a SOAP service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub soap: Option<SoapOperation>,
    /// The bodies of an operation of another API that are XML.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub xml: Option<XmlBodies>,
    /// How the result of a call is come by that the API only accepts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub polling: Option<Polling>,
    /// The header that carries a key of the call's own, so that trying again does nothing twice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key_header: Option<String>,
    /// What the import that made it remembers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<Imported>,
    /// What arguments there are and where each goes. Of a tool of an MCP server: what is otherwise
    /// with an argument than the server says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<FieldRule>,
    /// What of the response is given back and under which names; everything, where empty. An object
    /// or array without rules for its members is given whole, members that no rule names stay where
    /// the rule of their object has `additional_properties`, and arrays keep every row.
    ///
    /// Fields that no rule names reach nobody, whatever the API answers: an array instead of an
    /// object is picked from item by item, and what cannot be picked from is `null`, or `{}` where it
    /// is the whole answer. A text is not shown. The result says so where it holds nothing, and the
    /// log in every case. Answers with an HTTP error are told as they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub response_fields: Vec<FieldRule>,
    /// Lets pass, under its own name, what of the response no rule names.
    #[serde(default, skip_serializing_if = "is_default")]
    pub pass_unmapped: bool,
    /// Hints about what it does.
    #[serde(default, skip_serializing_if = "is_default")]
    pub annotations: Annotations,
    /// Longest time for a whole call; the connection's where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_timeout_ms: Option<u64>,
    /// What a call does to the world. Where absent the annotations say it, else the method: `GET`
    /// and `HEAD` read, `DELETE` destroys, the others write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub side_effect: Option<SideEffect>,
    /// The argument that decides what a call does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub side_effect_by: Option<SideEffectBy>,
    /// Whether a person should confirm a call; where absent, one that destroys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmation_recommended: Option<bool>,
    /// Which calls its user is asked about before they are made; none where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm: Option<Confirm>,
    /// The most its result may hold.
    #[serde(default, skip_serializing_if = "is_default")]
    pub budget: ResultBudget,
    /// Whether arguments and results are kept in the audit.
    #[serde(default, skip_serializing_if = "is_default")]
    pub log_payloads: bool,
    /// Exposed fields, as paths, that are never kept in the audit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redact: Vec<String>,
    /// How often it may be called, by all callers of a client application together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Rate>,
    /// Units a call counts in limits; 1 where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
    /// Whether it is published.
    #[serde(default = "enabled")]
    pub enabled: bool,
}

/// Which calls of a tool its user is asked about before they are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confirm {
    /// Those that destroy.
    Destructive,
    /// Those that change something.
    Writes,
    /// All.
    Always,
}

impl Confirm {
    /// Whether a call that does this is asked about.
    pub fn concerns(self, effect: SideEffect) -> bool {
        match self {
            Self::Destructive => effect == SideEffect::Destructive,
            Self::Writes => effect != SideEffect::Read,
            Self::Always => true,
        }
    }
}

/// How the result of a call is come by that the API answers with 202 and a `Location`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Polling {
    /// Between two looks, where the API does not say it with `Retry-After`.
    pub interval_ms: u64,
    /// The field of a look's answer that tells how the work is; where absent, its status does: 202
    /// while it runs, and what comes then is the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_field: Option<String>,
    /// What the field holds when the work is done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub done: Vec<String>,
    /// What the field holds when the work has failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<String>,
    /// The field with the URL of the result; where absent, the last look's answer is the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_url_field: Option<String>,
}

/// What an import remembers of a tool, so that the next one knows what the operator changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Imported {
    /// The operation, as the description of the API tells it from others: `GET /pets/{id}`.
    pub operation: String,
    /// A digest of each part as the import made it, by the part's path: `description`,
    /// `fields/query/limit/required`.
    pub digests: BTreeMap<String, String>,
}

/// An argument that decides what a call does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SideEffectBy {
    /// The exposed name of a field; a path where it stands in an object.
    pub argument: String,
    /// What a call does by the argument's text; any other value does what the tool says.
    pub values: BTreeMap<String, SideEffect>,
}

/// What an assignment's own prompt does to the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptMode {
    /// It follows them.
    #[default]
    Append,
    /// It stands instead of them.
    Override,
}

/// Gives a client application a toolset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Assignment {
    /// Whose both are.
    pub tenant: TenantId,
    /// Who gets it.
    pub client_application: ClientApplicationId,
    /// What it gets.
    pub toolset: ToolsetId,
    /// Whether it counts.
    #[serde(default = "enabled")]
    pub enabled: bool,
    /// Whether the client application's prompt follows the toolset's.
    #[serde(default, skip_serializing_if = "is_default")]
    pub include_client_prompt: bool,
    /// A prompt of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// What the own prompt does to the others.
    #[serde(default, skip_serializing_if = "is_default")]
    pub prompt_mode: PromptMode,
    /// How much of the tools' schemas a list shows; what the toolset says where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discovery_mode: Option<DiscoveryMode>,
    /// What of the toolset may be called.
    #[serde(default, skip_serializing_if = "is_default")]
    pub policy: Policy,
}

fn enabled() -> bool {
    true
}

pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
