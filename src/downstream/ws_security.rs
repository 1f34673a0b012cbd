//! `UsernameToken` of WS-Security: user and password in the header of an envelope.
//!
//! What is written holds the password, so it is a [`Secret`]. Time and randomness come in.

use std::time::{SystemTime, UNIX_EPOCH};

use aws_lc_rs::error::Unspecified;
use aws_lc_rs::{digest, rand};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;

use crate::catalog::Secret;
use crate::xml::{XmlError, escape_text};

/// Bytes of a nonce.
pub(crate) const NONCE_BYTES: usize = 16;

const EXTENSION: &str =
    "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-secext-1.0.xsd";
const UTILITY: &str =
    "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-utility-1.0.xsd";
const PROFILE: &str =
    "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-username-token-profile-1.0";
const BASE64: &str = "http://docs.oasis-open.org/wss/2004/01/\
                      oasis-200401-wss-soap-message-security-1.0#Base64Binary";

/// Makes a digest one of this call alone (`UsernameToken` Profile 1.1.1, section 3.1).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Freshness {
    pub(crate) nonce: [u8; NONCE_BYTES],
    pub(crate) created_ms: u64,
}

impl Freshness {
    /// Of this moment.
    ///
    /// # Errors
    ///
    /// The system has no randomness.
    pub(crate) fn now() -> Result<Self, Unspecified> {
        let mut nonce = [0; NONCE_BYTES];
        rand::fill(&mut nonce)?;
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Self { nonce, created_ms: u64::try_from(since.as_millis()).unwrap_or(u64::MAX) })
    }
}

/// The header block that proves `username`: with the password as it is, or as a digest where there
/// is a freshness.
///
/// # Errors
///
/// User or password have a character that XML does not have.
pub(crate) fn header_block(
    username: &str,
    password: &Secret,
    freshness: Option<Freshness>,
) -> Result<Secret, XmlError> {
    let mut out = String::with_capacity(1024);
    // Both versions of SOAP read `1` as true.
    out.push_str("<wsse:Security xmlns:wsse=\"");
    out.push_str(EXTENSION);
    out.push_str("\" xmlns:wsu=\"");
    out.push_str(UTILITY);
    out.push_str("\" soap:mustUnderstand=\"1\"><wsse:UsernameToken><wsse:Username>");
    escape_text(username, &mut out)?;
    out.push_str("</wsse:Username><wsse:Password Type=\"");
    out.push_str(PROFILE);
    match freshness {
        None => {
            out.push_str("#PasswordText\">");
            escape_text(password.expose(), &mut out)?;
            out.push_str("</wsse:Password>");
        }
        Some(Freshness { nonce, created_ms }) => {
            let created = written(created_ms);
            out.push_str("#PasswordDigest\">");
            STANDARD.encode_string(digest_of(&nonce, &created, password), &mut out);
            out.push_str("</wsse:Password><wsse:Nonce EncodingType=\"");
            out.push_str(BASE64);
            out.push_str("\">");
            STANDARD.encode_string(nonce, &mut out);
            out.push_str("</wsse:Nonce><wsu:Created>");
            out.push_str(&created);
            out.push_str("</wsu:Created>");
        }
    }
    out.push_str("</wsse:UsernameToken></wsse:Security>");
    Ok(Secret::new(&out))
}

/// SHA-1 of nonce, time and password. The profile knows no other digest.
fn digest_of(nonce: &[u8], created: &str, password: &Secret) -> impl AsRef<[u8]> {
    let mut context = digest::Context::new(&digest::SHA1_FOR_LEGACY_USE_ONLY);
    context.update(nonce);
    context.update(created.as_bytes());
    context.update(password.expose().as_bytes());
    context.finish()
}

/// `2026-11-30T20:15:00.120Z`
fn written(unix_ms: u64) -> String {
    let unix_ms = i64::try_from(unix_ms).unwrap_or(i64::MAX);
    let moment = Timestamp::from_millisecond(unix_ms).unwrap_or(Timestamp::UNIX_EPOCH);
    format!("{moment:.3}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: &str = "<wsse:Security xmlns:wsse=\"http://docs.oasis-open.org/wss/2004/01/\
        oasis-200401-wss-wssecurity-secext-1.0.xsd\" xmlns:wsu=\"http://docs.oasis-open.org/wss/\
        2004/01/oasis-200401-wss-wssecurity-utility-1.0.xsd\" soap:mustUnderstand=\"1\">\
        <wsse:UsernameToken><wsse:Username>";

    #[test]
    fn a_password_is_written_as_text() {
        let block = header_block("a<b", &Secret::new("p&\"w"), None).unwrap();
        let expected = "a&lt;b</wsse:Username><wsse:Password Type=\"http://docs.oasis-open.org/wss/\
            2004/01/oasis-200401-wss-username-token-profile-1.0#PasswordText\">p&amp;\"w\
            </wsse:Password></wsse:UsernameToken></wsse:Security>";
        assert_eq!(block.expose(), format!("{START}{expected}"));
        assert!(!format!("{block:?}").contains("p&"));
    }

    #[test]
    fn a_digest_is_of_nonce_time_and_password() {
        let freshness = Freshness { nonce: *b"0123456789abcdef", created_ms: 1_764_533_700_120 };
        let block = header_block("ada", &Secret::new("secret"), Some(freshness)).unwrap();
        let block = block.expose();
        let expected = "ada</wsse:Username><wsse:Password Type=\"http://docs.oasis-open.org/wss/\
            2004/01/oasis-200401-wss-username-token-profile-1.0#PasswordDigest\">wXV4mB3cT6VFxOOt1Fo2uFu1moo=\
            </wsse:Password><wsse:Nonce EncodingType=\"http://docs.oasis-open.org/wss/2004/01/\
            oasis-200401-wss-soap-message-security-1.0#Base64Binary\">MDEyMzQ1Njc4OWFiY2RlZg==\
            </wsse:Nonce><wsu:Created>2025-11-30T20:15:00.120Z</wsu:Created>\
            </wsse:UsernameToken></wsse:Security>";
        assert_eq!(block, format!("{START}{expected}"));
        assert!(!block.contains("secret<"));
    }

    #[test]
    fn what_xml_cannot_hold_is_refused_without_being_told() {
        let refused = header_block("ada", &Secret::new("s3cr3t\u{1}"), None).unwrap_err();
        assert!(!refused.to_string().contains("s3cr3t"));
    }
}
