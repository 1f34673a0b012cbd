//! What a token endpoint is sent and what it says: RFC 6749 sections 2.3.1, 4.4 and 5.
//!
//! Pure. Of what the server writes only its error code is told on: a description may repeat what it
//! was sent.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::Value;
use url::form_urlencoded::{self, Serializer};

use crate::catalog::{OauthClient, Secret, TokenEndpointAuthentication};

use super::error::CredentialProblem;
use super::tokens::{Issued, NoToken};

/// Longest token.
const TOKEN_BYTES_MAX: usize = 32 * 1024;
/// Longest error code.
const CODE_BYTES_MAX: usize = 64;
/// Longer times are as good as for ever.
const EXPIRES_SECONDS_MAX: u64 = 10 * 365 * 86_400;

/// The request for a token.
#[derive(Debug)]
pub(crate) struct TokenRequest {
    /// Its `Authorization`, where the client proves itself there.
    pub(crate) authorization: Option<Secret>,
    /// The form.
    pub(crate) body: Vec<u8>,
}

impl TokenRequest {
    pub(crate) fn new(client: &OauthClient, secret: &Secret) -> Self {
        let mut form = Serializer::new(String::new());
        form.append_pair("grant_type", "client_credentials");
        if !client.scope.is_empty() {
            form.append_pair("scope", &client.scope);
        }
        for (name, value) in &client.parameters {
            form.append_pair(name, value);
        }
        let authorization = match client.authentication {
            TokenEndpointAuthentication::Basic => {
                // Both are encoded as in a form before they are joined.
                let encoded = |text: &str| {
                    form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>()
                };
                let pair = [&encoded(&client.client_id), ":", &encoded(secret.expose())].concat();
                Some(Secret::new(&["Basic ", &STANDARD.encode(pair)].concat()))
            }
            TokenEndpointAuthentication::Post => {
                form.append_pair("client_id", &client.client_id);
                form.append_pair("client_secret", secret.expose());
                None
            }
        };
        Self { authorization, body: form.finish().into_bytes() }
    }
}

#[derive(Deserialize)]
struct Given {
    access_token: String,
    #[serde(default)]
    token_type: Option<String>,
    #[serde(default)]
    expires_in: Option<Value>,
}

#[derive(Deserialize)]
struct Refusal {
    error: String,
}

/// What an answer of this status and body means.
pub(crate) fn read(status: u16, body: &[u8]) -> Result<Issued, NoToken> {
    let unusable = |detail: String| {
        Err(NoToken { problem: CredentialProblem::TokenUnusable, detail: detail.into() })
    };
    match status {
        200..=299 => {}
        300..=399 => return unusable(format!("HTTP {status}: redirects are not followed")),
        _ => {
            let detail = format!("HTTP {status}").into();
            let problem = match code(body) {
                Some(code) => CredentialProblem::TokenRefused(code),
                None => CredentialProblem::TokenStatus(status),
            };
            return Err(NoToken { problem, detail });
        }
    }
    // The error of the parser may quote what it read.
    let Ok(given) = serde_json::from_slice::<Given>(body) else {
        return match code(body) {
            Some(code) => {
                let detail = format!("HTTP {status}").into();
                Err(NoToken { problem: CredentialProblem::TokenRefused(code), detail })
            }
            None => {
                unusable(format!("HTTP {status}: its body is not that of RFC 6749 section 5.1"))
            }
        };
    };
    let Given { access_token, token_type, expires_in } = given;
    if token_type.is_some_and(|kind| !kind.eq_ignore_ascii_case("bearer")) {
        return unusable("its token is not of the type `Bearer`".to_owned());
    }
    if access_token.is_empty() || access_token.len() > TOKEN_BYTES_MAX {
        return unusable(format!("its token is empty or longer than {TOKEN_BYTES_MAX} bytes"));
    }
    if !access_token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return unusable("its token has characters no token may have".to_owned());
    }
    let expires_in = expires_in.as_ref().and_then(seconds).map(Duration::from_secs);
    Ok(Issued { token: Secret::new(&access_token), expires_in })
}

/// A number; some servers write it as text, or with a fraction.
fn seconds(value: &Value) -> Option<u64> {
    let seconds = match value {
        Value::Number(number) => number.as_u64().or_else(|| {
            let fraction = number.as_f64().filter(|seconds| *seconds >= 0.0)?;
            #[expect(clippy::cast_sign_loss, reason = "it is not negative, and the cast saturates")]
            Some(fraction as u64)
        }),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    seconds.map(|seconds| seconds.min(EXPIRES_SECONDS_MAX))
}

/// The error code of a refusal, where it is one: a word of RFC 6749 section 5.2.
fn code(body: &[u8]) -> Option<Box<str>> {
    let Refusal { error } = serde_json::from_slice(body).ok()?;
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let is_code = !error.is_empty() && error.len() <= CODE_BYTES_MAX && error.bytes().all(is_word);
    is_code.then(|| error.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{Endpoint, SecretSource};

    fn client(authentication: TokenEndpointAuthentication) -> OauthClient {
        OauthClient {
            key: [0; 32],
            endpoint: Endpoint::parse("https://login.example.com/token?v=2").unwrap(),
            client_id: "id:1".into(),
            client_secret: SecretSource::Text(Secret::new("x")),
            scope: "read write".into(),
            parameters: vec![("audience".into(), "https://api/".into())],
            authentication,
        }
    }

    #[test]
    fn the_client_proves_itself_in_the_header_or_the_form() {
        let form = "grant_type=client_credentials&scope=read+write&audience=https%3A%2F%2Fapi%2F";
        let secret = Secret::new("s p/1");
        let basic = TokenRequest::new(&client(TokenEndpointAuthentication::Basic), &secret);
        assert_eq!(basic.body, form.as_bytes());
        let header = basic.authorization.unwrap();
        let pair = STANDARD.decode(header.expose().strip_prefix("Basic ").unwrap()).unwrap();
        assert_eq!(pair, b"id%3A1:s+p%2F1");
        let post = TokenRequest::new(&client(TokenEndpointAuthentication::Post), &secret);
        let expected = format!("{form}&client_id=id%3A1&client_secret=s+p%2F1");
        assert!(post.authorization.is_none() && post.body == expected.as_bytes());
        assert_eq!(&*client(TokenEndpointAuthentication::Post).endpoint.target, "/token?v=2");
    }

    #[test]
    fn answers_are_read() {
        let table: [(&str, Option<u64>); 7] = [
            (r#"{"access_token":"t","token_type":"Bearer","expires_in":3600}"#, Some(3600)),
            (r#"{"access_token":"t","token_type":"bearer","expires_in":"60"}"#, Some(60)),
            (r#"{"access_token":"t","expires_in":59.9}"#, Some(59)),
            (r#"{"access_token":"t","expires_in":0}"#, Some(0)),
            (r#"{"access_token":"t","expires_in":null,"scope":"x"}"#, None),
            (r#"{"access_token":"t","expires_in":-5}"#, None),
            (r#"{"access_token":"t"}"#, None),
        ];
        for (body, expected) in table {
            let issued = read(200, body.as_bytes()).unwrap();
            assert_eq!(issued.token.expose(), "t");
            assert_eq!(issued.expires_in, expected.map(Duration::from_secs), "{body}");
        }
        let long = read(200, br#"{"access_token":"t","expires_in":18446744073709551615}"#).unwrap();
        assert!(long.expires_in.unwrap() < Duration::from_secs(1 << 40));
    }

    #[test]
    fn refusals_tell_their_code_and_nothing_else() {
        let code = |status, body: &str| read(status, body.as_bytes()).unwrap_err();
        let refused = code(401, r#"{"error":"invalid_client","error_description":"bad s3cr3t"}"#);
        assert_eq!(refused.problem, CredentialProblem::TokenRefused("invalid_client".into()));
        for (status, body) in [
            (400, r#"{"error":"the secret s3cr3t is wrong"}"#),
            (500, "s3cr3t"),
            (302, ""),
            (200, "{}"),
            (200, r#"{"access_token":7,"x":"s3cr3t"}"#),
            (200, r#"{"access_token":"s3cr3t\n"}"#),
            (200, r#"{"access_token":"s3cr3t","token_type":"mac"}"#),
            (200, "not json s3cr3t"),
        ] {
            let told = code(status, body);
            let text = format!("{told:?} {}", told.problem);
            assert!(!text.contains("s3cr3t"), "{text}");
        }
        let refused = code(200, r#"{"error":"bad_verification_code"}"#);
        assert!(matches!(refused.problem, CredentialProblem::TokenRefused(_)));
    }
}
