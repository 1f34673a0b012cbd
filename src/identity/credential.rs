//! Finding the credential in a request's headers.

use std::fmt;

use super::Refusal;

/// The headers that may carry a credential, as they came.
#[derive(Clone, Copy, Default)]
pub struct CredentialHeaders<'a> {
    /// The value of `Authorization`.
    pub authorization: Option<&'a [u8]>,
    /// The value of `X-Api-Key`.
    pub api_key: Option<&'a [u8]>,
    /// Whether one of the two came more than once.
    pub repeated: bool,
}

impl fmt::Debug for CredentialHeaders<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("CredentialHeaders")
            .field("authorization", &self.authorization.map(|_| "***"))
            .field("api_key", &self.api_key.map(|_| "***"))
            .field("repeated", &self.repeated)
            .finish()
    }
}

/// A credential as it was presented: not yet believed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Presented<'a>(&'a str);

impl<'a> Presented<'a> {
    /// A credential from elsewhere than a header.
    pub fn new(text: &'a str) -> Self {
        Self(text)
    }

    /// The secret text; for verification only.
    pub fn secret(&self) -> &'a str {
        self.0
    }
}

impl fmt::Debug for Presented<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Presented(***)")
    }
}

/// The credential of a request: `Authorization: Bearer …` or `X-Api-Key: …`.
///
/// An `Authorization` of another scheme is no credential of ours (a proxy in front may use it), so
/// it counts as none. So does a JWT beside a key: no key of ours is one, so it is the token of the
/// client's user, for the API behind a connection that passes such tokens on. It proves nothing here.
///
/// # Errors
/// When a header is repeated, empty or not ASCII text, or the two headers differ.
pub fn credential(headers: CredentialHeaders<'_>) -> Result<Option<Presented<'_>>, Refusal> {
    if headers.repeated {
        return Err(Refusal::Ambiguous);
    }
    let bearer = match headers.authorization {
        Some(value) => bearer_token(value)?,
        None => None,
    };
    let api_key = headers.api_key.map(token).transpose()?;
    match (bearer, api_key) {
        (Some(bearer), Some(api_key)) if is_jwt(bearer) => Ok(Some(Presented(api_key))),
        (Some(bearer), Some(api_key)) if bearer != api_key => Err(Refusal::Ambiguous),
        (Some(found), _) | (None, Some(found)) => Ok(Some(Presented(found))),
        (None, None) => Ok(None),
    }
}

/// The token of a `Bearer` value; `None` for other schemes (RFC 9110 section 11.1: the scheme is
/// case-insensitive).
fn bearer_token(value: &[u8]) -> Result<Option<&str>, Refusal> {
    let value = value.trim_ascii();
    let end = value.iter().position(|byte| matches!(byte, b' ' | b'\t')).unwrap_or(value.len());
    let (scheme, rest) = value.split_at(end);
    if scheme.eq_ignore_ascii_case(b"bearer") { token(rest).map(Some) } else { Ok(None) }
}

/// Whether a token has the form of a signed JWT (RFC 7515 section 3.1).
fn is_jwt(token: &str) -> bool {
    let is_part = |part: &str| {
        let mut bytes = part.bytes();
        !part.is_empty() && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    token.split('.').count() == 3 && token.split('.').all(is_part)
}

fn token(value: &[u8]) -> Result<&str, Refusal> {
    let value = value.trim_ascii();
    if value.is_empty() || !value.iter().all(u8::is_ascii_graphic) {
        return Err(Refusal::Malformed);
    }
    std::str::from_utf8(value).map_err(|_| Refusal::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Found = Result<Option<&'static str>, Refusal>;

    fn find(authorization: Option<&'static str>, api_key: Option<&'static str>) -> Found {
        let headers = CredentialHeaders {
            authorization: authorization.map(str::as_bytes),
            api_key: api_key.map(str::as_bytes),
            repeated: false,
        };
        credential(headers).map(|found| found.map(|presented| presented.secret()))
    }

    #[test]
    fn where_a_credential_is_found() {
        let table: &[(Option<&'static str>, Option<&'static str>, Found)] = &[
            (None, None, Ok(None)),
            (Some("Bearer k"), None, Ok(Some("k"))),
            (Some("bearer k"), None, Ok(Some("k"))),
            (Some("BEARER   k \t"), None, Ok(Some("k"))),
            (Some("bearer\tk"), None, Ok(Some("k"))),
            (None, Some(" k "), Ok(Some("k"))),
            (Some("Bearer k"), Some("k"), Ok(Some("k"))),
            (Some("Bearer k"), Some("l"), Err(Refusal::Ambiguous)),
            (Some("Bearer a.b-_.c"), Some("l"), Ok(Some("l"))),
            (Some("Bearer a.b-_.c"), None, Ok(Some("a.b-_.c"))),
            (Some("Bearer a.b"), Some("l"), Err(Refusal::Ambiguous)),
            (Some("Bearer a..c"), Some("l"), Err(Refusal::Ambiguous)),
            (Some("Bearer a.b.c.d"), Some("l"), Err(Refusal::Ambiguous)),
            (Some("Bearer a.b.+"), Some("l"), Err(Refusal::Ambiguous)),
            (Some("Basic eDp5"), None, Ok(None)),
            (Some("Basic eDp5"), Some("k"), Ok(Some("k"))),
            (Some("Bearerk"), None, Ok(None)),
            (Some(""), None, Ok(None)),
            (Some("Bearer"), None, Err(Refusal::Malformed)),
            (Some("Bearer "), None, Err(Refusal::Malformed)),
            (Some("Bearer a b"), None, Err(Refusal::Malformed)),
            (Some("Bearer é"), None, Err(Refusal::Malformed)),
            (None, Some(""), Err(Refusal::Malformed)),
        ];
        for (authorization, api_key, expected) in table {
            assert_eq!(find(*authorization, *api_key), *expected, "{authorization:?} {api_key:?}");
        }
    }

    #[test]
    fn repeated_headers_are_refused_and_debug_is_masked() {
        let headers = CredentialHeaders {
            authorization: Some(b"Bearer s3cr3t"),
            api_key: None,
            repeated: true,
        };
        assert_eq!(credential(headers), Err(Refusal::Ambiguous));
        assert!(!format!("{headers:?} {:?}", Presented::new("s3cr3t")).contains("s3cr3t"));
    }
}
