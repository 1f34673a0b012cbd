//! What can be written down: one model for files, the store and the admin interface.
//!
//! These types say what an entity consists of, not whether it makes sense: `check` and
//! `Snapshot::compile` judge that. Keys that do not exist are refused everywhere.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{ClientApplicationId, ConnectionId, TenantId, ToolName, ToolsetId};
use crate::mapping::FieldRule;

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
}

/// Where an API is and how it is reached.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Connection {
    /// Whose it is.
    pub tenant: TenantId,
    /// Names it within the tenant.
    pub id: ConnectionId,
    /// Scheme, host, port and the path all tools' paths are appended to.
    pub base_url: String,
    /// Sent with every request; this is where an API's credential goes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, Secret>,
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
}

/// Where a toolset's tools come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolsetKind {
    /// Each tool is a request to an HTTP API.
    Rest,
    /// The appliance's own tools.
    Builtin,
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
    /// The API behind it; `rest` needs one, `builtin` has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<ConnectionId>,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
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

/// One operation of an API as a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    /// Whose it is.
    pub tenant: TenantId,
    /// The toolset it belongs to.
    pub toolset: ToolsetId,
    /// What clients call it by.
    pub name: ToolName,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What the model reads to decide whether to use it.
    pub description: String,
    /// The request's method.
    pub method: ToolMethod,
    /// The request's path below the connection's, with `{placeholders}`.
    pub path: String,
    /// What arguments there are and where each goes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<FieldRule>,
    /// What of the response is given back and under which names; everything, where empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub response_fields: Vec<FieldRule>,
    /// Hints about what it does.
    #[serde(default)]
    pub annotations: Annotations,
    /// Longest time for a whole call; the connection's where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_timeout_ms: Option<u64>,
    /// Whether clients see it.
    #[serde(default = "enabled")]
    pub enabled: bool,
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
}

fn enabled() -> bool {
    true
}

/// Text that must not be shown: its `Debug` is masked. Written out only where it is kept or sent.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Box<str>);

impl Secret {
    /// Hides `text`.
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// The text itself: for the wire.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("***")
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The usual message of a wrong type quotes the value.
        let text = String::deserialize(deserializer);
        text.map(|text| Self(text.into())).map_err(|_| D::Error::custom("expected text"))
    }
}
