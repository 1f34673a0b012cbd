//! What a connection proves itself with, and where its secrets come from.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::{Secret, model::is_default};

/// Where a secret comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum SecretSource {
    /// It stands here; the store keeps it sealed, and whatever is shown has a mask in its place.
    Text(Secret),
    /// It is somewhere else.
    Elsewhere(SecretReference),
}

/// A place where a secret is kept. The place is no secret.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum SecretReference {
    /// A variable of the process's environment.
    Environment(String),
    /// A file, by its absolute path; the end of its last line does not count.
    File(PathBuf),
    /// A credential that systemd gave to the service, by its name.
    SystemdCredential(String),
}

impl<'de> Deserialize<'de> for SecretSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SourceVisitor)
    }
}

/// Says what is expected without a word of what was found: it may be the secret.
struct SourceVisitor;

impl SourceVisitor {
    fn refuse<E: de::Error>() -> E {
        E::custom(
            "expected the secret as text, or where it is: { environment = \"NAME\" }, \
             { file = \"/path\" } or { systemd_credential = \"name\" }",
        )
    }
}

impl<'de> Visitor<'de> for SourceVisitor {
    type Value = SecretSource;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a secret, or where it is")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<SecretSource, E> {
        Ok(SecretSource::Text(Secret::new(text)))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<SecretSource, A::Error> {
        let read = SecretReference::deserialize(MapAccessDeserializer::new(map));
        read.map(SecretSource::Elsewhere).map_err(|_| Self::refuse())
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<SecretSource, E> {
        Err(Self::refuse())
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<SecretSource, E> {
        Err(Self::refuse())
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<SecretSource, E> {
        Err(Self::refuse())
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<SecretSource, E> {
        Err(Self::refuse())
    }

    fn visit_unit<E: de::Error>(self) -> Result<SecretSource, E> {
        Err(Self::refuse())
    }
}

impl fmt::Display for SecretReference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Environment(name) => write!(formatter, "the environment variable `{name}`"),
            Self::File(path) => write!(formatter, "the file {}", path.display()),
            Self::SystemdCredential(name) => write!(formatter, "the systemd credential `{name}`"),
        }
    }
}

/// Where an API key goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApiKeyPlace {
    /// Into a header.
    Header,
    /// Into the query string.
    Query,
    /// Into the `Cookie` header.
    Cookie,
}

/// How an OAuth client proves itself to the token endpoint (RFC 6749 section 2.3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenEndpointAuthentication {
    /// With HTTP Basic.
    #[default]
    Basic,
    /// With fields of the form.
    Post,
}

/// What a connection proves itself with. A connection may have several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Credential {
    /// User and password (RFC 7617).
    Basic {
        /// Without a colon.
        username: String,
        /// Any text.
        password: SecretSource,
    },
    /// A token that does not change (RFC 6750).
    Bearer {
        /// Without the word `Bearer`.
        token: SecretSource,
    },
    /// A key under a name of the API's own.
    ApiKey {
        /// Where it goes.
        place: ApiKeyPlace,
        /// Of the header, the parameter or the cookie.
        name: String,
        /// The key.
        value: SecretSource,
    },
    /// Tokens of an authorization server, asked for ahead of their expiry (RFC 6749 section 4.4).
    OauthClientCredentials {
        /// The token endpoint.
        token_url: String,
        /// Names this client there.
        client_id: String,
        /// Proves it.
        client_secret: SecretSource,
        /// What is asked for.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        scopes: Vec<String>,
        /// Further fields of the request: `audience`, `resource`.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        parameters: BTreeMap<String, String>,
        /// How this client proves itself.
        #[serde(default, skip_serializing_if = "is_default")]
        authentication: TokenEndpointAuthentication,
    },
    /// `UsernameToken` of WS-Security 1.1 in the SOAP header.
    WsSecurity {
        /// The user.
        username: String,
        /// The password.
        password: SecretSource,
        /// Whether the password goes as a digest with nonce and time instead of as text.
        #[serde(default, skip_serializing_if = "is_default")]
        digest: bool,
    },
    /// The token that the client itself came with, where that token is for this audience.
    PassThrough {
        /// The audience that the client's token must name.
        audience: String,
    },
}

/// The field of a credential that is its secret; as a macro, for a reference of either kind.
macro_rules! secret_of {
    ($credential:expr) => {
        match $credential {
            Credential::Basic { password, .. } | Credential::WsSecurity { password, .. } => {
                Some(("password", password))
            }
            Credential::Bearer { token } => Some(("token", token)),
            Credential::ApiKey { value, .. } => Some(("value", value)),
            Credential::OauthClientCredentials { client_secret, .. } => {
                Some(("client_secret", client_secret))
            }
            Credential::PassThrough { .. } => None,
        }
    };
}

impl Credential {
    /// The word of its `kind`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Basic { .. } => "basic",
            Self::Bearer { .. } => "bearer",
            Self::ApiKey { .. } => "api_key",
            Self::OauthClientCredentials { .. } => "oauth_client_credentials",
            Self::WsSecurity { .. } => "ws_security",
            Self::PassThrough { .. } => "pass_through",
        }
    }

    /// Its secret, and the field it stands in.
    pub fn secret(&self) -> Option<(&'static str, &SecretSource)> {
        secret_of!(self)
    }

    pub(super) fn secret_mut(&mut self) -> Option<(&'static str, &mut SecretSource)> {
        secret_of!(self)
    }
}

/// The certificate a connection shows to the API, as PEM files by their absolute paths.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientCertificate {
    /// The certificate, and those between it and its authority.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// How calls are tried again that may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retries {
    /// How often a call is tried, the first time included; 1 to 5.
    pub attempts: u8,
    /// The wait before the second attempt; it doubles, and varies by half.
    #[serde(default = "first_wait_ms")]
    pub first_wait_ms: u64,
}

const fn first_wait_ms() -> u64 {
    100
}

/// When a connection is given a rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CircuitBreaker {
    /// After this many failures in a row: no connection, no answer in time, 502, 503 or 504.
    pub failures: u32,
    /// How long calls are then refused before one may try again.
    pub rest_ms: u64,
}
