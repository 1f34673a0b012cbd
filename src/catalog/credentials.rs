//! The credentials of a connection judged and made ready.
//!
//! What is wrong by itself is found here: the same header set twice, names that are none, places
//! that cannot be. Whether a secret is where it should be is seen by whoever reads it.

use std::path::Path;
use std::sync::Arc;

use aws_lc_rs::digest::{Context, SHA256};
use url::Url;

use super::base_url::Base;
use super::connection::{HEADER_NAME_BYTES_MAX, is_reserved};
use super::names::shortened;
use super::{
    ApiKeyPlace, Connection, Credential, Proof, SecretReference, SecretSource,
    TokenEndpointAuthentication,
};
use crate::http::is_field_name;

const CREDENTIALS_MAX: usize = 8;
const NAME_BYTES_MAX: usize = 256;
const TEXT_BYTES_MAX: usize = 2_048;
const SCOPES_MAX: usize = 100;
const PARAMETERS_MAX: usize = 50;
/// What the request for a token says by itself.
const TOKEN_FIELDS: [&str; 4] = ["grant_type", "scope", "client_id", "client_secret"];

/// The credentials of a connection.
#[derive(Debug, Default)]
pub struct CompiledCredentials {
    /// All that goes with a request, where nothing has to be fetched for it.
    pub ready: Option<Arc<Proof>>,
    /// What it is made from otherwise.
    pub list: Vec<Credential>,
    /// Where a token is asked for.
    pub oauth: Option<OauthClient>,
    /// What the client's own token must be for, where that one is passed on.
    pub audience: Option<Box<str>>,
    /// The names of the headers they set, in lower case.
    headers: Vec<String>,
    /// The names of the parameters they set.
    query: Vec<String>,
    /// The names of the cookies they set.
    cookies: Vec<String>,
}

/// A client of an authorization server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OauthClient {
    /// Tells it from every other: tokens are kept under it. Another secret makes another client.
    pub key: [u8; 32],
    /// The token endpoint.
    pub endpoint: Endpoint,
    /// Its name there.
    pub client_id: Box<str>,
    /// Proves it.
    pub client_secret: SecretSource,
    /// What is asked for, with spaces between; empty where nothing is said.
    pub scope: Box<str>,
    /// Further fields of the request.
    pub parameters: Vec<(Box<str>, Box<str>)>,
    /// How it proves itself.
    pub authentication: TokenEndpointAuthentication,
}

/// An address that is asked for something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Whether the scheme is `https`.
    pub is_https: bool,
    /// Name or address to connect to; an IPv6 address without brackets.
    pub host: Box<str>,
    /// Port to connect to.
    pub port: u16,
    /// The value of `Host`.
    pub authority: Box<str>,
    /// Path and query.
    pub target: Box<str>,
}

impl Endpoint {
    /// Takes a URL apart.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (base, query) = match text.split_once('?') {
            Some((base, query)) if !query.contains('#') => (base, Some(query)),
            Some(_) => return Err("must not have a `#`".to_owned()),
            None => (text, None),
        };
        let Base { is_https, host, port, authority, .. } = Base::parse(base)?;
        // Read again whole: the parser encodes what has to be.
        let url = Url::parse(text).map_err(|error| error.to_string())?;
        if query.is_some_and(|query| query.chars().any(|c| c.is_control() || c.is_whitespace())) {
            return Err("has white space or control characters".to_owned());
        }
        let target = url[url::Position::BeforePath..url::Position::AfterQuery].into();
        Ok(Self { is_https, host, port, authority, target })
    }
}

impl CompiledCredentials {
    /// Judges the credentials of a connection, whose own headers are good.
    pub(super) fn compile(
        connection: &Connection,
        headers: &[(Box<str>, super::Secret)],
        faults: &mut Vec<String>,
    ) -> Self {
        let mut made = Self::default();
        let before = faults.len();
        if connection.credentials.len() > CREDENTIALS_MAX {
            faults.push(format!("credentials: more than {CREDENTIALS_MAX}"));
            return made;
        }
        for (name, value) in headers {
            if name.eq_ignore_ascii_case("cookie") {
                let pairs = value.expose().split(';').filter_map(|pair| pair.split_once('='));
                made.cookies.extend(pairs.map(|(name, _)| name.trim().to_owned()));
            } else {
                made.headers.push(name.to_ascii_lowercase());
            }
        }
        for (place, credential) in connection.credentials.iter().enumerate() {
            let mut report = |fault: String| faults.push(format!("credentials[{place}]{fault}"));
            made.enter(credential, &mut report);
            if let Some((field, SecretSource::Elsewhere(reference))) = credential.secret()
                && let Err(fault) = judge_reference(reference)
            {
                report(format!(".{field}: {fault}"));
            }
            if let Credential::OauthClientCredentials { .. } = credential {
                made.oauth = oauth(connection, credential, &mut report);
            }
        }
        if faults.len() > before {
            return made;
        }
        let is_ready = made.oauth.is_none()
            && made.audience.is_none()
            && connection
                .credentials
                .iter()
                .all(|credential| matches!(credential.secret(), Some((_, SecretSource::Text(_)))));
        let known = |source: &SecretSource| match source {
            SecretSource::Text(secret) => Ok(secret.clone()),
            SecretSource::Elsewhere(_) => Ok(super::Secret::new("elsewhere")),
        };
        match Proof::new(headers, &connection.credentials, known) {
            Ok(proof) if is_ready => made.ready = Some(Arc::new(proof)),
            // Only what is written here could be judged.
            Ok(_) => made.list.clone_from(&connection.credentials),
            Err(fault) => faults.push(fault),
        }
        made
    }

    /// Takes the places that a credential fills, or tells that they are taken.
    fn enter(&mut self, credential: &Credential, report: &mut impl FnMut(String)) {
        match credential {
            Credential::ApiKey { place, name, .. } => {
                let shown = shortened(name);
                match place {
                    _ if name.is_empty() || name.len() > NAME_BYTES_MAX => {
                        report(format!(".name: expected 1 to {NAME_BYTES_MAX} bytes"));
                    }
                    ApiKeyPlace::Header if name.eq_ignore_ascii_case("cookie") => {
                        report(".name: write place = \"cookie\" and the cookie's name".to_owned());
                    }
                    ApiKeyPlace::Header if !is_field_name(name) => {
                        report(format!(".name: {shown:?} is not a header name"));
                    }
                    ApiKeyPlace::Header if is_reserved(name) => {
                        report(format!(".name: `{shown}` is written by the runtime itself"));
                    }
                    ApiKeyPlace::Header => self.take_header(name, report),
                    ApiKeyPlace::Query if name.chars().any(char::is_control) => {
                        report(".name: has control characters".to_owned());
                    }
                    ApiKeyPlace::Query => take(&mut self.query, name, "the parameter", report),
                    ApiKeyPlace::Cookie if !is_field_name(name) => {
                        report(format!(".name: {shown:?} is not the name of a cookie"));
                    }
                    ApiKeyPlace::Cookie => take(&mut self.cookies, name, "the cookie", report),
                }
            }
            Credential::Basic { username, .. } => {
                if username.contains(':') {
                    report(".username: a user of `basic` has no colon".to_owned());
                }
                check_text(".username", username, report);
                self.take_header("Authorization", report);
            }
            Credential::Bearer { .. } | Credential::OauthClientCredentials { .. } => {
                self.take_header("Authorization", report);
            }
            Credential::PassThrough { audience } => {
                if audience.is_empty() {
                    report(".audience: names nobody".to_owned());
                }
                check_text(".audience", audience, report);
                self.audience = Some(audience.as_str().into());
                self.take_header("Authorization", report);
            }
            Credential::WsSecurity { username, .. } => {
                check_text(".username", username, report);
                // No header of HTTP has this name.
                take(&mut self.headers, "ws-security:", "the user of WS-Security", report);
            }
        }
    }

    fn take_header(&mut self, name: &str, report: &mut impl FnMut(String)) {
        let lower = name.to_ascii_lowercase();
        if self.headers.contains(&lower) {
            report(format!(": the header `{}` is set already", shortened(name)));
        } else {
            self.headers.push(lower);
        }
    }

    /// Whether the connection sets a header of this name.
    pub(super) fn sets_header(&self, name: &str) -> bool {
        let is_cookie = name.eq_ignore_ascii_case("cookie") && !self.cookies.is_empty();
        is_cookie || self.headers.iter().any(|other| other.eq_ignore_ascii_case(name))
    }

    /// Whether the connection sets a parameter of this name.
    pub(super) fn sets_query(&self, name: &str) -> bool {
        self.query.iter().any(|other| other == name)
    }

    /// Whether the connection sets a cookie of this name.
    pub(super) fn sets_cookie(&self, name: &str) -> bool {
        self.cookies.iter().any(|other| other == name)
    }
}

fn take(list: &mut Vec<String>, name: &str, what: &str, report: &mut impl FnMut(String)) {
    if list.iter().any(|other| other == name) {
        let name = if name.ends_with(':') { "" } else { &*format!(" `{}`", shortened(name)) };
        report(format!(": {what}{name} is set already"));
    } else {
        list.push(name.to_owned());
    }
}

fn check_text(field: &str, text: &str, report: &mut impl FnMut(String)) {
    if text.len() > TEXT_BYTES_MAX || text.chars().any(char::is_control) {
        report(format!("{field}: longer than {TEXT_BYTES_MAX} bytes, or with control characters"));
    }
}

/// Whether there can be a secret at a place.
fn judge_reference(reference: &SecretReference) -> Result<(), String> {
    match reference {
        SecretReference::Environment(name) if name.is_empty() || name.contains(['=', '\0']) => {
            Err(format!("{:?} cannot be the name of a variable", shortened(name)))
        }
        SecretReference::File(path) if !path.is_absolute() => Err(not_absolute(path)),
        SecretReference::SystemdCredential(name)
            if name.is_empty()
                || name.len() > HEADER_NAME_BYTES_MAX
                || name.starts_with('.')
                || name.contains(['/', '\0']) =>
        {
            Err(format!("{:?} cannot be the name of a credential", shortened(name)))
        }
        _ => Ok(()),
    }
}

pub(super) fn not_absolute(path: &Path) -> String {
    format!("`{}` is not an absolute path", path.display())
}

fn oauth(
    connection: &Connection,
    credential: &Credential,
    report: &mut impl FnMut(String),
) -> Option<OauthClient> {
    let Credential::OauthClientCredentials {
        token_url,
        client_id,
        client_secret,
        scopes,
        parameters,
        authentication,
    } = credential
    else {
        return None;
    };
    if client_id.is_empty() {
        report(".client_id: is empty".to_owned());
    }
    check_text(".client_id", client_id, report);
    // RFC 6749 section 3.3.
    let is_scope_byte = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\');
    let is_scope = |scope: &String| !scope.is_empty() && scope.bytes().all(is_scope_byte);
    let scope = scopes.join(" ");
    if scopes.len() > SCOPES_MAX || scope.len() > TEXT_BYTES_MAX || !scopes.iter().all(is_scope) {
        report(format!(
            ".scopes: expected up to {SCOPES_MAX} words, each without spaces, quotes and backslashes"
        ));
    }
    if parameters.len() > PARAMETERS_MAX {
        report(format!(".parameters: more than {PARAMETERS_MAX}"));
    }
    for (name, value) in parameters {
        if TOKEN_FIELDS.contains(&name.as_str()) {
            report(format!(".parameters: `{name}` is written by the runtime itself"));
        }
        check_text(".parameters", name, report);
        check_text(".parameters", value, report);
    }
    let endpoint =
        Endpoint::parse(token_url).map_err(|fault| report(format!(".token_url: {fault}")));
    let mut digest = Context::new(&SHA256);
    for part in [connection.tenant.as_str(), connection.id.as_str()] {
        digest.update(part.as_bytes());
        digest.update(b"\0");
    }
    digest.update(&serde_json::to_vec(credential).unwrap_or_default());
    let mut key = [0; 32];
    key.copy_from_slice(digest.finish().as_ref());
    let boxed = |(name, value): (&String, &String)| (name.as_str().into(), value.as_str().into());
    Some(OauthClient {
        key,
        endpoint: endpoint.ok()?,
        client_id: client_id.as_str().into(),
        client_secret: client_secret.clone(),
        scope: scope.into(),
        parameters: parameters.iter().map(boxed).collect(),
        authentication: *authentication,
    })
}
