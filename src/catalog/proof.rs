//! What the requests of a connection prove themselves with, made ready to be sent.
//!
//! Made once where all of it is written in the catalog; else for a call, from secrets that somebody
//! fetched: nothing here reads a place where a secret is kept. No message names a secret's value.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::{ApiKeyPlace, Credential, Secret, SecretSource, is_credential};
use crate::xml::escape_text;

/// All but what RFC 3986 section 2.3 leaves unreserved.
pub(super) const ENCODED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A secret as URLs and forms have it, where that is other than the secret itself: in capitals and
/// without, with `+` for a blank. APIs repeat the URL of a request, or a form of it.
pub(super) fn encoded_forms(secret: &str) -> Vec<Secret> {
    let mut forms = vec![utf8_percent_encode(secret, ENCODED).to_string()];
    if forms.iter().all(|form| form == secret) {
        return Vec::new();
    }
    for (from, to) in [("%20", "+"), ("%2F", "/")] {
        let others = forms.iter().map(|form| form.replace(from, to));
        forms.extend(others.collect::<Vec<String>>());
    }
    let in_small = forms.iter().map(|form| small_digits(form));
    forms.extend(in_small.collect::<Vec<String>>());
    forms.sort_unstable();
    forms.dedup();
    forms.iter().filter(|form| *form != secret).map(|form| Secret::new(form)).collect()
}

/// `%2f` for `%2F`.
fn small_digits(encoded: &str) -> String {
    let mut digits = 0;
    let small = encoded.chars().map(|letter| {
        digits = if letter == '%' { 3_u8 } else { digits.saturating_sub(1) };
        if digits > 0 { letter.to_ascii_lowercase() } else { letter }
    });
    small.collect()
}

/// What goes with every request of a connection, and what of it must never be shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Proof {
    /// The connection's headers and those of its credentials.
    pub headers: Vec<(Box<str>, Secret)>,
    /// Goes to the end of the query: names and values, encoded, with `&` between them.
    pub query: Option<Secret>,
    /// The names in that query, encoded.
    pub query_names: Vec<Box<str>>,
    /// What is struck out of whatever is shown, besides what headers of credentials hold.
    pub hidden: Vec<Secret>,
    /// The user of WS-Security.
    pub user: Option<ResolvedCredential>,
}

/// User and password of WS-Security, ready to be written into a SOAP header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedCredential {
    /// The user.
    pub username: Box<str>,
    /// The password.
    pub password: Secret,
    /// Whether the password goes as a digest with nonce and time.
    pub digest: bool,
}

impl Proof {
    /// The proof of a connection with these headers and credentials; `find` knows the value of each
    /// secret. What has no secret of the connection's own (a token that is asked for, or the
    /// client's) is added by [`Proof::add_bearer`].
    ///
    /// # Errors
    /// What `find` says, or that a value cannot be sent; both after the path of the field.
    pub fn new(
        headers: &[(Box<str>, Secret)],
        credentials: &[Credential],
        mut find: impl FnMut(&SecretSource) -> Result<Secret, String>,
    ) -> Result<Self, String> {
        let mut proof = Self { headers: headers.to_vec(), ..Self::default() };
        for (_, value) in headers.iter().filter(|(name, _)| is_credential(name)) {
            let value = value.expose();
            let bare = value.rsplit_once(' ').map_or(value, |(_, bare)| bare);
            proof.hidden.extend(encoded_forms(bare));
        }
        for (place, credential) in credentials.iter().enumerate() {
            let Some((field, source)) = credential.secret() else { continue };
            let at = |fault: String| format!("credentials[{place}].{field}: {fault}");
            let secret = find(source).map_err(at)?;
            proof.add(credential, secret).map_err(|fault| at(fault.to_owned()))?;
        }
        Ok(proof)
    }

    fn add(&mut self, credential: &Credential, secret: Secret) -> Result<(), &'static str> {
        let text = secret.expose();
        if text.is_empty() {
            return Err("is empty");
        }
        match credential {
            Credential::Basic { username, .. } => {
                if text.chars().any(char::is_control) {
                    return Err("has control characters");
                }
                let pair = STANDARD.encode(format!("{username}:{text}"));
                self.authorize(&format!("Basic {pair}"));
            }
            Credential::Bearer { .. } => {
                is_header_value(text)?;
                self.authorize(&format!("Bearer {text}"));
            }
            Credential::ApiKey { place: ApiKeyPlace::Header, name, .. } => {
                is_header_value(text)?;
                self.headers.push((name.as_str().into(), secret.clone()));
            }
            Credential::ApiKey { place: ApiKeyPlace::Query, name, .. } => {
                let encoded = |text: &str| utf8_percent_encode(text, ENCODED).to_string();
                let (name, value) = (encoded(name), encoded(text));
                let before = self.query.take();
                let before = before.as_ref().map_or("", Secret::expose);
                let and = if before.is_empty() { "" } else { "&" };
                self.query = Some(Secret::new(&[before, and, &name, "=", &value].concat()));
                self.query_names.push(name.into());
            }
            Credential::ApiKey { place: ApiKeyPlace::Cookie, name, .. } => {
                if !text.bytes().all(is_cookie_byte) {
                    return Err("has characters no cookie may have");
                }
                self.add_cookie(&format!("{name}={text}"));
            }
            // Only proves the client where tokens are; what it gets there is added later.
            Credential::OauthClientCredentials { .. } => {}
            Credential::WsSecurity { username, digest, .. } => {
                if [text, username].into_iter().any(|text| !is_xml_text(text)) {
                    return Err("or its username has characters that XML cannot hold");
                }
                self.user = Some(ResolvedCredential {
                    username: username.as_str().into(),
                    password: secret.clone(),
                    digest: *digest,
                });
            }
            Credential::PassThrough { .. } => return Ok(()),
        }
        self.hide(secret);
        Ok(())
    }

    fn hide(&mut self, secret: Secret) {
        self.hidden.extend(encoded_forms(secret.expose()));
        self.hidden.push(secret);
    }

    /// Adds a token that was come by just now.
    ///
    /// # Errors
    /// It has characters that no header may have.
    pub fn add_bearer(&mut self, token: &Secret) -> Result<(), &'static str> {
        is_header_value(token.expose())?;
        self.authorize(&format!("Bearer {}", token.expose()));
        self.hide(token.clone());
        Ok(())
    }

    fn authorize(&mut self, value: &str) {
        self.headers.push(("Authorization".into(), Secret::new(value)));
    }

    /// Cookies are one header (RFC 6265 section 5.4).
    fn add_cookie(&mut self, pair: &str) {
        let is_cookie = |(name, _): &&mut (Box<str>, Secret)| name.eq_ignore_ascii_case("cookie");
        match self.headers.iter_mut().find(is_cookie) {
            Some((_, value)) => *value = Secret::new(&[value.expose(), "; ", pair].concat()),
            None => self.headers.push(("Cookie".into(), Secret::new(pair))),
        }
    }
}

fn is_header_value(text: &str) -> Result<(), &'static str> {
    // Spaces around it would be lost.
    let is_good = text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) && text.trim() == text;
    if is_good { Ok(()) } else { Err("has characters no header may have") }
}

fn is_xml_text(text: &str) -> bool {
    escape_text(text, &mut String::new()).is_ok()
}

/// `cookie-octet` of RFC 6265 section 4.1.1.
fn is_cookie_byte(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'"' | b',' | b';' | b'\\')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: &str) -> SecretSource {
        SecretSource::Text(Secret::new(value))
    }

    fn key(place: ApiKeyPlace, name: &str, value: &str) -> Credential {
        Credential::ApiKey { place, name: name.to_owned(), value: text(value) }
    }

    fn proof(credentials: &[Credential]) -> Result<Proof, String> {
        Proof::new(&[("X-Team".into(), Secret::new("a"))], credentials, |source| match source {
            SecretSource::Text(secret) => Ok(secret.clone()),
            SecretSource::Elsewhere(_) => Err("is not there".to_owned()),
        })
    }

    fn headers(proof: &Proof) -> Vec<String> {
        proof.headers.iter().map(|(name, value)| format!("{name}: {}", value.expose())).collect()
    }

    #[test]
    fn each_kind_goes_to_its_place() {
        let basic = Credential::Basic { username: "ada".to_owned(), password: text("pass:word") };
        let made = proof(&[basic]).unwrap();
        assert_eq!(headers(&made), ["X-Team: a", "Authorization: Basic YWRhOnBhc3M6d29yZA=="]);
        let made = proof(&[Credential::Bearer { token: text("t-1") }]).unwrap();
        assert_eq!(headers(&made)[1], "Authorization: Bearer t-1");
        let made = proof(&[
            key(ApiKeyPlace::Header, "X-Api-Key", "k 1"),
            key(ApiKeyPlace::Query, "api key", "a&b=ü"),
            key(ApiKeyPlace::Query, "z", "1"),
            key(ApiKeyPlace::Cookie, "sid", "abc"),
            key(ApiKeyPlace::Cookie, "two", "def"),
        ])
        .unwrap();
        assert_eq!(headers(&made)[1..], ["X-Api-Key: k 1", "Cookie: sid=abc; two=def"]);
        assert_eq!(made.query.as_ref().unwrap().expose(), "api%20key=a%26b%3D%C3%BC&z=1");
        assert_eq!(made.query_names, ["api%20key".into(), "z".into()] as [Box<str>; 2]);
        let hidden: Vec<&str> = made.hidden.iter().map(Secret::expose).collect();
        let forms = ["k%201", "k+1", "k 1", "a%26b%3D%C3%BC", "a%26b%3d%c3%bc", "a&b=ü"];
        assert_eq!(hidden[..6], forms);
        assert_eq!(hidden[6..], ["1", "abc", "def"]);
        let made = proof(&[Credential::WsSecurity {
            username: "u".to_owned(),
            password: text("p"),
            digest: true,
        }])
        .unwrap();
        let expected =
            ResolvedCredential { username: "u".into(), password: Secret::new("p"), digest: true };
        assert_eq!(made.user, Some(expected));
    }

    #[test]
    fn a_secret_has_the_forms_that_urls_give_it() {
        let forms = |secret: &str| -> Vec<String> {
            encoded_forms(secret).iter().map(|form| form.expose().to_owned()).collect()
        };
        assert_eq!(forms("plain-TOKEN_1.~"), [""; 0]);
        assert_eq!(
            forms("A/b+ c="),
            [
                "A%2Fb%2B%20c%3D",
                "A%2Fb%2B+c%3D",
                "A%2fb%2b%20c%3d",
                "A%2fb%2b+c%3d",
                "A/b%2B%20c%3D",
                "A/b%2B+c%3D",
                "A/b%2b%20c%3d",
                "A/b%2b+c%3d",
            ]
        );
        let headers = [("Authorization".into(), Secret::new("Token ab/cd==efgh"))];
        let made = Proof::new(&headers, &[], |_| Err(String::new())).unwrap();
        assert!(made.hidden.contains(&Secret::new("ab%2Fcd%3D%3Defgh")));
    }

    #[test]
    fn what_cannot_be_sent_is_told_without_it() {
        for (credential, expected) in [
            (Credential::Bearer { token: text("s3cr3t\r\nX: y") }, "credentials[0].token: has"),
            (Credential::Bearer { token: text("") }, "credentials[0].token: is empty"),
            (Credential::Bearer { token: text(" s3cr3t") }, "no header may have"),
            (key(ApiKeyPlace::Header, "X-Key", "s3cr3tü"), "no header may have"),
            (key(ApiKeyPlace::Cookie, "c", "s3cr3t;b=c"), "no cookie may have"),
            (
                Credential::WsSecurity {
                    username: "ada".to_owned(),
                    password: text("s3cr3t\u{1}"),
                    digest: false,
                },
                "that XML cannot hold",
            ),
        ] {
            let fault = proof(&[credential]).unwrap_err();
            assert!(fault.contains(expected) && !fault.contains("s3cr3t"), "{fault}");
        }
        let mut made = proof(&[]).unwrap();
        assert!(made.add_bearer(&Secret::new("a\nb")).is_err());
        made.add_bearer(&Secret::new("token-1")).unwrap();
        assert!(!format!("{made:?}").contains("token-1"));
    }
}
