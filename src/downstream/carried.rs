//! What a request of the client gives to the call it causes: the headers that the connection
//! forwards, and its token where the connection passes that on. Nothing else of it goes out.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

use crate::catalog::{CompiledConnection, CompiledTool, Secret, ToolKind};
use crate::http::{Known, RequestView};

/// Longest token looked into.
const TOKEN_BYTES_MAX: usize = 16 * 1024;

/// Taken while the request is there; a call outlives it. Empty, and then nothing was copied, for
/// connections that want nothing of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Carried {
    /// Names at the API, and values.
    headers: Vec<(Box<str>, Box<str>)>,
    token: Option<Secret>,
}

impl Carried {
    /// Nothing.
    pub const NONE: Self = Self { headers: Vec::new(), token: None };

    /// What the connection behind `tool` wants of `request`.
    pub fn of(tool: &CompiledTool, request: &RequestView<'_>) -> Self {
        match &tool.kind {
            ToolKind::Rest { connection, .. } => Self::of_connection(connection, request),
            ToolKind::Upstream(tool) => Self::of_connection(&tool.server.connection, request),
            ToolKind::Builtin(_) => Self::default(),
        }
    }

    /// What `connection` wants of `request`.
    pub fn of_connection(connection: &CompiledConnection, request: &RequestView<'_>) -> Self {
        let mut carried = Self::default();
        for (from, to) in &connection.forward_headers {
            if let Some(value) = forwarded(request, from) {
                carried.headers.push((to.clone(), value.into()));
            }
        }
        if let Some(audience) = &connection.credentials.audience {
            carried.token =
                bearer(request).filter(|token| is_for(token, audience)).map(Secret::new);
        }
        carried
    }

    /// Names at the API, and values.
    pub(crate) fn headers(&self) -> &[(Box<str>, Box<str>)] {
        &self.headers
    }

    /// The client's token, if it is for whom the connection names.
    pub(crate) fn token(&self) -> Option<&Secret> {
        self.token.as_ref()
    }
}

/// The values of a header, joined (RFC 9110 section 5.3); none where the client says that the header
/// is for its own connection alone (section 7.6.1), or where it is no text.
fn forwarded(request: &RequestView<'_>, name: &str) -> Option<String> {
    let mut joined: Option<String> = None;
    for (other, value) in request.headers() {
        if other.eq_ignore_ascii_case("connection") {
            let mut named = value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
            if named.any(|one| one.eq_ignore_ascii_case(name.as_bytes())) {
                return None;
            }
        }
        if !other.eq_ignore_ascii_case(name) {
            continue;
        }
        let value = std::str::from_utf8(value).ok()?;
        if value.chars().any(|character| character.is_control() && character != '\t') {
            return None;
        }
        joined = Some(match joined {
            None => value.to_owned(),
            Some(before) => before + ", " + value,
        });
    }
    joined
}

fn bearer<'a>(request: &RequestView<'a>) -> Option<&'a str> {
    if request.repeated(Known::Authorization) {
        return None;
    }
    let (scheme, token) = request.header_text(Known::Authorization)?.trim().split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

/// Whether a token is a JWT that names this audience (RFC 7519 section 4.1.3). Whether it is
/// genuine is for the API to see: it is the one who trusts its issuer.
fn is_for(token: &str, audience: &str) -> bool {
    let mut parts = token.split('.');
    let (Some(_), Some(claims), Some(_), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    if token.len() > TOKEN_BYTES_MAX {
        return false;
    }
    let Ok(claims) = URL_SAFE_NO_PAD.decode(claims) else { return false };
    let Ok(claims) = serde_json::from_slice::<Value>(&claims) else { return false };
    match claims.get("aud") {
        Some(Value::String(one)) => one == audience,
        Some(Value::Array(all)) => all.iter().any(|one| one == audience),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::downstream::tests::support::declared;
    use crate::http::{Limits, Progress, RequestReader};

    fn carried(connection: &str, headers: &str) -> Carried {
        let tool = declared("http://h", connection, "method = \"GET\"\npath = \"/\"");
        let mut reader = RequestReader::new(Limits::default());
        let text = format!("GET / HTTP/1.1\r\nHost: h\r\n{headers}\r\n");
        reader.buffer().extend_from_slice(text.as_bytes());
        assert!(matches!(reader.poll(), Ok(Progress::Ready)));
        Carried::of(&tool, &reader.request())
    }

    fn jwt(claims: &str) -> String {
        let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
        format!("{}.{}.{}", part(r#"{"alg":"RS256"}"#), part(claims), part("signature"))
    }

    #[test]
    fn only_what_is_named_goes_on_and_nothing_of_one_hop() {
        let sent = "Authorization: Bearer mine\r\nCookie: a=b\r\nX-Api-Key: k\r\n\
                    X-Forwarded-For: 10.0.0.1\r\nX-A: one\r\nX-B: two\r\nx-b: three\r\n";
        assert_eq!(carried("", sent), Carried::default());
        let wanted = "forward_headers = { X-B = \"X-Team\", X-A = \"X-A\", X-None = \"X-None\" }";
        let pairs = |carried: &Carried| {
            carried.headers().iter().map(|(n, v)| format!("{n}: {v}")).collect::<Vec<_>>()
        };
        let both = carried(wanted, sent);
        assert_eq!(pairs(&both), ["X-A: one", "X-Team: two, three"]);
        assert!(both.token().is_none());
        let hop = carried(wanted, &format!("Connection: keep-alive, x-a\r\n{sent}"));
        assert_eq!(pairs(&hop), ["X-Team: two, three"]);
    }

    #[test]
    fn a_token_is_passed_on_for_its_audience_alone() {
        let connection =
            "credentials = [{ kind = \"pass_through\", audience = \"https://orders\" }]";
        let passed = |token: &str| {
            carried(connection, &format!("Authorization: Bearer {token}\r\n")).token().is_some()
        };
        assert!(passed(&jwt(r#"{"aud":"https://orders"}"#)));
        assert!(passed(&jwt(r#"{"aud":["other","https://orders"]}"#)));
        for token in [
            jwt(r#"{"aud":"https://orders/"}"#),
            jwt(r#"{"aud":["other"]}"#),
            jwt(r#"{"sub":"https://orders"}"#),
            jwt("[]"),
            "rwk_0123456789".to_owned(),
            "a.b".to_owned(),
            format!("{}.x", jwt(r#"{"aud":"https://orders"}"#)),
        ] {
            assert!(!passed(&token), "{token}");
        }
        let plain = carried("", &format!("Authorization: Bearer {}\r\n", jwt(r#"{"aud":"x"}"#)));
        assert!(plain.token().is_none());
    }
}
