//! A connection made ready: its URL taken apart, its headers judged.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::base_url::Base;
use super::correlation::CorrelationHeader;
use super::credentials::{CompiledCredentials, not_absolute};
use super::{
    CircuitBreaker, ClientCertificate, Connection, ConnectionId, Retries, Secret, TenantId,
    correlation, forwarding,
};
use crate::http::{is_field_name, is_framing};
use crate::settings::Network;

/// Longest time a timeout may be set to: a day.
pub const TIMEOUT_MS_MAX: u64 = 86_400_000;

const HEADERS_MAX: usize = 50;
const HEADER_VALUE_BYTES_MAX: usize = 8_192;

pub(super) const HEADER_NAME_BYTES_MAX: usize = 256;

/// What the runtime writes itself, besides the headers that frame a message: it says which bodies
/// it reads and which it sends.
const RESERVED_HEADERS: [&str; 3] = ["accept-encoding", "content-encoding", "content-type"];

/// Where requests go and what goes with each of them.
#[derive(Debug)]
pub struct CompiledConnection {
    /// Whose it is.
    pub tenant: TenantId,
    /// Names it within the tenant.
    pub id: ConnectionId,
    /// Whether the scheme is `https`.
    pub is_https: bool,
    /// Name or address to connect to; an IPv6 address without brackets.
    pub host: Box<str>,
    /// Port to connect to.
    pub port: u16,
    /// The value of `Host`: with the port where it is not the scheme's own.
    pub authority: Box<str>,
    /// What stands before every tool's path: empty, or `/` and more without a `/` at its end.
    pub base_path: Box<str>,
    /// Path and query of the URL exactly as they are written, for what is asked for at the URL
    /// itself and not below it: an MCP server.
    pub target: Box<str>,
    /// Sent with every request, besides the headers of credentials.
    pub headers: Vec<(Box<str>, Secret)>,
    /// What it proves itself with.
    pub credentials: CompiledCredentials,
    /// The certificate shown to the API.
    pub client_certificate: Option<ClientCertificate>,
    /// Headers of the client that go on: their names there, and at the API.
    pub forward_headers: Vec<(Box<str>, Box<str>)>,
    /// Networks it may reach although they are not public: the tenant's.
    pub egress_allowances: Arc<[Network]>,
    /// Tells whose sockets are interchangeable with its own: the same host and port, roots,
    /// certificate and allowances.
    pub socket_key: Box<str>,
    /// Longest time until the connection stands; the setting where `None`.
    pub connect_timeout: Option<Duration>,
    /// Longest time until the response's headers are there; the setting where `None`.
    pub headers_timeout: Option<Duration>,
    /// Longest time for a whole call; the setting where `None`.
    pub total_timeout: Option<Duration>,
    /// Whether redirects are followed.
    pub follow_redirects: bool,
    /// How calls that may be repeated are tried again.
    pub retries: Option<Retries>,
    /// When it is given a rest.
    pub circuit_breaker: Option<CircuitBreaker>,
    /// PEM files of authorities trusted besides the system's.
    pub tls_roots: Vec<PathBuf>,
    /// Which id of a call is sent, and in which header; `None` where none is.
    pub correlation: Option<CorrelationHeader>,
    /// Whether a `traceparent` is sent.
    pub traceparent: bool,
}

impl CompiledConnection {
    /// Takes a connection apart. All that is wrong with it comes back, not only the first.
    pub(super) fn compile(
        connection: &Connection,
        egress_allowances: Arc<[Network]>,
    ) -> Result<Self, Vec<String>> {
        let mut faults = Vec::new();
        let mut note = |fault: Result<Option<Duration>, String>| {
            fault.unwrap_or_else(|fault| {
                faults.push(fault);
                None
            })
        };
        let connect_timeout = note(timeout("connect_timeout_ms", connection.connect_timeout_ms));
        let headers_timeout = note(timeout("headers_timeout_ms", connection.headers_timeout_ms));
        let total_timeout = note(timeout("total_timeout_ms", connection.total_timeout_ms));
        let headers = headers(connection, &mut faults);
        for file in connection.tls_roots.iter().filter(|file| !file.is_absolute()) {
            faults.push(format!("tls_roots: {}", not_absolute(file)));
        }
        resilience(connection, &mut faults);
        let credentials = CompiledCredentials::compile(connection, &headers, &mut faults);
        let correlation = correlation::compile(connection, &credentials, &mut faults);
        let is_set = |name: &str| {
            credentials.sets_header(name)
                || correlation.as_ref().is_some_and(|own| own.name.eq_ignore_ascii_case(name))
                || (connection.correlation.traceparent && name.eq_ignore_ascii_case("traceparent"))
        };
        let forward_headers = forwarding::compile(connection, &is_set, &mut faults);
        certificate(connection, &mut faults);
        let base = match Base::parse(&connection.base_url) {
            Ok(base) if faults.is_empty() => base,
            Ok(_) => return Err(faults),
            Err(fault) => {
                faults.push(format!("base_url: {fault}"));
                return Err(faults);
            }
        };
        Ok(Self {
            tenant: connection.tenant.clone(),
            id: connection.id.clone(),
            socket_key: socket_key(connection, &base.authority, &egress_allowances),
            is_https: base.is_https,
            host: base.host,
            port: base.port,
            authority: base.authority,
            base_path: base.path,
            target: base.target,
            headers,
            credentials,
            client_certificate: connection.client_certificate.clone(),
            forward_headers,
            egress_allowances,
            connect_timeout,
            headers_timeout,
            total_timeout,
            follow_redirects: connection.follow_redirects,
            retries: connection.retries,
            circuit_breaker: connection.circuit_breaker,
            tls_roots: connection.tls_roots.clone(),
            correlation,
            traceparent: connection.correlation.traceparent,
        })
    }
}

impl CompiledConnection {
    /// Whether its URL has a query, which nothing can be appended to.
    pub(super) fn has_query(&self) -> bool {
        self.target.contains('?')
    }

    /// Whether requests have a header of this name whatever a tool says.
    pub(super) fn sets_header(&self, name: &str) -> bool {
        let is_it = |other: &str| other.eq_ignore_ascii_case(name);
        self.credentials.sets_header(name)
            || self.correlation.as_ref().is_some_and(|own| is_it(&own.name))
            || (self.traceparent && is_it("traceparent"))
            || self.forward_headers.iter().any(|(_, to)| is_it(to))
    }
}

/// A timeout of a file; zero and more than a day are mistakes.
pub(super) fn timeout(key: &str, value_ms: Option<u64>) -> Result<Option<Duration>, String> {
    match value_ms {
        Some(value) if value == 0 || value > TIMEOUT_MS_MAX => {
            Err(format!("{key}: expected 1 to {TIMEOUT_MS_MAX}"))
        }
        other => Ok(other.map(Duration::from_millis)),
    }
}

/// Whether the runtime writes a header of this name itself.
pub(super) fn is_reserved(name: &str) -> bool {
    is_framing(name) || RESERVED_HEADERS.iter().any(|other| other.eq_ignore_ascii_case(name))
}

/// A socket that was opened for somebody else is of no use to whoever trusts or shows another, or
/// may not reach what that one may.
fn socket_key(connection: &Connection, authority: &str, allowances: &[Network]) -> Box<str> {
    let mut key = authority.to_owned();
    let certificate = connection.client_certificate.iter();
    let files = certificate.flat_map(|own| [&own.certificate, &own.key]);
    for (mark, path) in connection
        .tls_roots
        .iter()
        .map(|root| ("\nroot ", root))
        .chain(files.map(|file| ("\nown ", file)))
    {
        key.push_str(mark);
        key.push_str(&path.to_string_lossy());
    }
    for network in allowances {
        let _ = write!(key, "\nto {network}");
    }
    key.into()
}

const ATTEMPTS_MAX: u8 = 5;
const FIRST_WAIT_MS_MAX: u64 = 10_000;
const FAILURES_MAX: u32 = 1_000_000;

fn resilience(connection: &Connection, faults: &mut Vec<String>) {
    if let Some(Retries { attempts, first_wait_ms }) = connection.retries {
        if !(1..=ATTEMPTS_MAX).contains(&attempts) {
            faults.push(format!("retries.attempts: expected 1 to {ATTEMPTS_MAX}"));
        }
        if first_wait_ms > FIRST_WAIT_MS_MAX {
            faults.push(format!("retries.first_wait_ms: expected at most {FIRST_WAIT_MS_MAX}"));
        }
    }
    if let Some(CircuitBreaker { failures, rest_ms }) = connection.circuit_breaker {
        if !(1..=FAILURES_MAX).contains(&failures) {
            faults.push(format!("circuit_breaker.failures: expected 1 to {FAILURES_MAX}"));
        }
        if !(1..=TIMEOUT_MS_MAX).contains(&rest_ms) {
            faults.push(format!("circuit_breaker.rest_ms: expected 1 to {TIMEOUT_MS_MAX}"));
        }
    }
}

fn certificate(connection: &Connection, faults: &mut Vec<String>) {
    let Some(ClientCertificate { certificate, key }) = &connection.client_certificate else {
        return;
    };
    for (field, path) in [("certificate", certificate), ("key", key)] {
        if !path.is_absolute() {
            faults.push(format!("client_certificate.{field}: {}", not_absolute(path)));
        }
    }
    if !connection.base_url.get(..6).is_some_and(|start| start.eq_ignore_ascii_case("https:")) {
        faults.push("client_certificate: is shown over https only".to_owned());
    }
}

fn headers(connection: &Connection, faults: &mut Vec<String>) -> Vec<(Box<str>, Secret)> {
    let mut good: Vec<(Box<str>, Secret)> = Vec::new();
    if connection.headers.len() > HEADERS_MAX {
        faults.push(format!("headers: more than {HEADERS_MAX}"));
        return good;
    }
    for (name, value) in &connection.headers {
        let value = value.expose();
        let shown = super::names::shortened(name);
        if name.len() > HEADER_NAME_BYTES_MAX || !is_field_name(name) {
            faults.push(format!("headers: {shown:?} is not a header name"));
        } else if is_reserved(name) {
            faults.push(format!("headers: `{shown}` is written by the runtime itself"));
        } else if good.iter().any(|(other, _)| other.eq_ignore_ascii_case(name)) {
            faults.push(format!("headers: `{shown}` stands there twice"));
        } else if value.len() > HEADER_VALUE_BYTES_MAX {
            faults
                .push(format!("headers: `{shown}` is longer than {HEADER_VALUE_BYTES_MAX} bytes"));
        } else if !value.bytes().all(|byte| byte == b'\t' || (b' '..=b'~').contains(&byte)) {
            // Never the value: it may be a credential.
            faults.push(format!("headers: `{shown}` has characters no header may have"));
        } else {
            good.push((name.as_str().into(), Secret::new(value.trim())));
        }
    }
    good
}

/// What a client may choose must not pass for a credential.
pub(super) const CREDENTIAL_HEADERS: [&str; 4] =
    ["authorization", "proxy-authorization", "cookie", "x-api-key"];

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::Correlation;
    use super::*;

    fn compile(connection: &Connection) -> Result<CompiledConnection, Vec<String>> {
        CompiledConnection::compile(connection, Arc::default())
    }

    fn connection(base_url: &str, headers: &[(&str, &str)]) -> Connection {
        Connection {
            tenant: TenantId::new("acme").unwrap(),
            id: ConnectionId::new("api").unwrap(),
            base_url: base_url.to_owned(),
            credentials: Vec::new(),
            client_certificate: None,
            forward_headers: BTreeMap::new(),
            retries: None,
            circuit_breaker: None,
            headers: headers
                .iter()
                .map(|(name, value)| ((*name).to_owned(), Secret::new(value)))
                .collect::<BTreeMap<_, _>>(),
            connect_timeout_ms: None,
            headers_timeout_ms: None,
            total_timeout_ms: None,
            follow_redirects: false,
            tls_roots: Vec::new(),
            correlation: Correlation::default(),
        }
    }

    #[test]
    fn headers_are_judged_and_masked() {
        let good = connection("http://h", &[("Authorization", " Bearer s3cr3t ")]);
        let compiled = compile(&good).unwrap();
        assert_eq!(compiled.headers[0].1.expose(), "Bearer s3cr3t");
        assert!(!format!("{compiled:?} {good:?}").contains("s3cr3t"));

        let bad = connection(
            "http://h",
            &[("Host", "x"), ("a b", "x"), ("X-A", "s3cr3t\r\nX-B: y"), ("x-c", "1"), ("X-C", "2")],
        );
        let faults = compile(&bad).unwrap_err();
        assert_eq!(faults.len(), 4, "{faults:?}");
        assert!(!faults.concat().contains("s3cr3t"));
    }

    #[test]
    fn all_faults_come_at_once() {
        let mut bad = connection("ftp://h", &[("Host", "x")]);
        bad.connect_timeout_ms = Some(0);
        bad.total_timeout_ms = Some(TIMEOUT_MS_MAX + 1);
        bad.tls_roots = vec![PathBuf::from("roots.pem")];
        assert_eq!(compile(&bad).unwrap_err().len(), 5);
    }

    #[test]
    fn nothing_is_set_twice() {
        let judged = |text: &str| {
            let lines =
                format!("tenant = \"acme\"\nid = \"api\"\nbase_url = \"https://h\"\n{text}");
            compile(&toml::from_str(&lines).unwrap()).map_err(|faults| faults.join(" | "))
        };
        let (basic, bearer) = (
            r#"{ kind = "basic", username = "u", password = "s3cr3t" }"#,
            r#"{ kind = "bearer", token = "s3cr3t" }"#,
        );
        let key = |place: &str, name: &str| {
            format!(
                r#"{{ kind = "api_key", place = "{place}", name = "{name}", value = "s3cr3t" }}"#
            )
        };
        let pass = r#"{ kind = "pass_through", audience = "orders" }"#;
        let table = [
            (format!("credentials = [{basic}, {bearer}]"), "credentials[1]: the header `Author"),
            (format!("credentials = [{bearer}, {pass}]"), "credentials[1]: the header"),
            (format!("headers = {{ authorization = \"x\" }}\ncredentials = [{basic}]"), "[0]: the h"),
            (
                format!("credentials = [{}, {}]", key("header", "X-K"), key("header", "x-k")),
                "`x-k` is set",
            ),
            (
                format!("credentials = [{}, {}]", key("query", "k"), key("query", "k")),
                "the parameter `k` is set",
            ),
            (
                format!("headers = {{ Cookie = \"a=b\" }}\ncredentials = [{}]", key("cookie", "a")),
                "the cookie `a` is set",
            ),
            (format!("credentials = [{}]", key("header", "Host")), "written by the runtime"),
            (format!("credentials = [{}]", key("header", "Cookie")), "place = \"cookie\""),
            (format!("credentials = [{}]", key("header", "a b")), "is not a header name"),
            (
                format!(
                    "credentials = [{}]\ncorrelation = {{ strategy = \"execution_id\", header = \
                     \"X-Call\" }}",
                    key("header", "x-call")
                ),
                "is among the headers too",
            ),
            (
                format!("credentials = [{}]\nforward_headers = {{ A = \"X-K\" }}", key("header", "X-K")),
                "is set by the connection already",
            ),
            ("forward_headers = { Cookie = \"X-C\" }".to_owned(), "carries credentials"),
            ("forward_headers = { A = \"X\", B = \"x\" }".to_owned(), "two headers become `x`"),
            (
                r#"credentials = [{ kind = "bearer", token = { file = "a/b" } }]"#.to_owned(),
                "token: `a/b` is not an absolute path",
            ),
            (
                r#"credentials = [{ kind = "bearer", token = { systemd_credential = "../a" } }]"#
                    .to_owned(),
                "cannot be the name of a credential",
            ),
            (
                r#"credentials = [{ kind = "basic", username = "a:b", password = "x" }]"#.to_owned(),
                "has no colon",
            ),
            (
                r#"client_certificate = { certificate = "c.pem", key = "/k.pem" }"#.to_owned(),
                "client_certificate.certificate: `c.pem`",
            ),
            (
                r#"credentials = [{ kind = "oauth_client_credentials", token_url = "ftp://x", client_id = "",
                client_secret = "s3cr3t", parameters = { scope = "x" } }]"#
                    .replace('\n', " "),
                "token_url: expected http",
            ),
        ];
        for (text, expected) in table {
            let faults = judged(&text).unwrap_err();
            assert!(faults.contains(expected) && !faults.contains("s3cr3t"), "{text}: {faults}");
        }
        let good = format!(
            "headers = {{ Cookie = \"a=b\" }}\ncredentials = [{basic}, {}, {}]\n\
             forward_headers = {{ Accept-Language = \"accept-language\" }}",
            key("cookie", "c"),
            key("query", "k")
        );
        let made = judged(&good).unwrap();
        let proof = made.credentials.ready.as_ref().unwrap();
        assert_eq!(proof.headers[0].1.expose(), "a=b; c=s3cr3t");
        assert!(!format!("{made:?}").contains("s3cr3t"));
    }

    #[test]
    fn sockets_are_shared_by_who_shows_and_trusts_the_same() {
        let mut one = connection("https://h", &[]);
        let key = |connection: &Connection| compile(connection).unwrap().socket_key;
        let plain = key(&one);
        one.tls_roots = vec![PathBuf::from("/a")];
        let rooted = key(&one);
        let files = ClientCertificate { certificate: "/a".into(), key: "/b".into() };
        one.client_certificate = Some(files);
        let shown = key(&one);
        assert!(plain != rooted && rooted != shown && plain != shown);
        one.base_url = "http://h".to_owned();
        assert!(compile(&one).unwrap_err()[0].contains("over https only"));
    }
}
