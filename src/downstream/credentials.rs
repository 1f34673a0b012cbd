//! The credentials of a connection, struck out of whatever its API answers.
//!
//! An API may repeat what it was sent: in an error text, or because echoing is what it does. Its
//! words go to a model, so every place where one holds a credential gets [`MARK`] instead.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use memchr::{memchr, memchr2, memmem};
use smallvec::SmallVec;

use crate::catalog::{Proof, Secret, is_credential};

/// Stands where a credential stood.
const MARK: &str = "[removed]";
/// A value shorter than this is not struck out. `test`, `1234` or `admin` stand in many an answer for
/// something else, and an answer changed without a word is worse than a secret that anybody guesses.
const SECRET_BYTES_MIN: usize = 8;

/// What must not be shown of what a connection sends, and of what a tool always sends.
#[derive(Default)]
pub(crate) struct Credentials<'a>(SmallVec<[Cow<'a, str>; 4]>);

impl<'a> Credentials<'a> {
    /// The credentials in a proof: those among its headers, each whole value and the secrets inside
    /// it, and what it says is hidden; and those that a tool always sends.
    pub(crate) fn of(proof: &'a Proof, constants: &'a [(Box<str>, Secret)]) -> Self {
        let mut found = Self::default();
        proof.hidden.iter().for_each(|secret| found.add(secret.expose()));
        let sent = proof.headers.iter().chain(constants);
        for (name, value) in sent.filter(|(name, _)| is_credential(name)) {
            let value = value.expose();
            found.add(value);
            if name.eq_ignore_ascii_case("cookie") {
                let pairs = value.split(';').filter_map(|pair| pair.split_once('='));
                pairs.for_each(|(_, value)| found.add(value.trim()));
            } else if let Some((scheme, bare)) = value.rsplit_once(' ') {
                found.add(bare);
                if scheme.eq_ignore_ascii_case("basic") {
                    found.add_password(bare);
                }
            }
        }
        // A whole value goes before its parts.
        found.0.sort_unstable_by_key(|secret| std::cmp::Reverse(secret.len()));
        found.0.dedup();
        found
    }

    fn add(&mut self, secret: impl Into<Cow<'a, str>>) {
        let secret = secret.into();
        if secret.len() >= SECRET_BYTES_MIN {
            self.0.push(secret);
        }
    }

    /// RFC 7617: user and password, joined by a colon.
    fn add_password(&mut self, encoded: &str) {
        let Some(plain) = STANDARD.decode(encoded).ok().and_then(|b| String::from_utf8(b).ok())
        else {
            return;
        };
        if let Some((_, password)) = plain.split_once(':') {
            self.add(password.to_owned());
        }
    }

    /// `text` without them, also where they stand as a JSON string would hold them.
    pub(crate) fn strike_text(&self, mut text: String) -> String {
        for secret in &self.0 {
            if text.contains(&**secret) {
                text = text.replace(&**secret, MARK);
            }
        }
        if self.0.is_empty() || !text.contains('\\') {
            return text;
        }
        let mut out = Vec::with_capacity(text.len());
        self.strike_string(text.as_bytes(), &mut out);
        // Whole characters only were taken out.
        String::from_utf8(out).unwrap_or(text)
    }

    /// The same for a JSON text, which stays one: only the insides of its strings change, however
    /// their characters are escaped.
    pub(crate) fn strike_json(&self, json: Vec<u8>) -> Vec<u8> {
        if self.0.is_empty() || (memchr(b'\\', &json).is_none() && !self.occur_in(&json)) {
            return json;
        }
        let mut out = Vec::with_capacity(json.len());
        let mut rest = &*json;
        while let Some(quote) = memchr(b'"', rest) {
            let (before, string) = rest.split_at(quote + 1);
            out.extend_from_slice(before);
            let (inside, after) = string.split_at(string_end(string));
            self.strike_string(inside, &mut out);
            // The closing quote.
            let (closing, after) = after.split_at(after.len().min(1));
            out.extend_from_slice(closing);
            rest = after;
        }
        out.extend_from_slice(rest);
        out
    }

    fn occur_in(&self, bytes: &[u8]) -> bool {
        self.0.iter().any(|secret| memmem::find(bytes, secret.as_bytes()).is_some())
    }

    /// The inside of a string, by what its escape sequences stand for. In one pass for each secret,
    /// however often its beginning stands there: both may be of somebody who wants it to take long.
    fn strike_string(&self, inside: &[u8], out: &mut Vec<u8>) {
        if memchr(b'\\', inside).is_none() && !self.occur_in(inside) {
            out.extend_from_slice(inside);
            return;
        }
        let plain = Unescaped::of(inside);
        let mut next: SmallVec<[Option<usize>; 8]> =
            self.0.iter().map(|secret| plain.find(secret, 0)).collect();
        let mut done = 0;
        loop {
            let mut first: Option<(usize, usize)> = None;
            for (secret, at) in self.0.iter().zip(&mut next) {
                if at.is_some_and(|at| at < done) {
                    *at = plain.find(secret, done);
                }
                if let Some(at) = *at
                    && first.is_none_or(|(before, _)| at < before)
                {
                    first = Some((at, secret.len()));
                }
            }
            let Some((at, length)) = first else { break };
            out.extend_from_slice(plain.source(done, at));
            out.extend_from_slice(MARK.as_bytes());
            done = at + length;
        }
        out.extend_from_slice(plain.source(done, plain.bytes.len()));
    }
}

/// The inside of a string with its escape sequences replaced.
struct Unescaped<'a> {
    inside: &'a [u8],
    bytes: Vec<u8>,
    /// Where each of them ends in the inside.
    ends: Vec<usize>,
}

impl<'a> Unescaped<'a> {
    fn of(inside: &'a [u8]) -> Self {
        /// Stands in no text.
        const NOTHING: u8 = 0xff;
        let mut bytes = Vec::with_capacity(inside.len());
        let mut ends = Vec::with_capacity(inside.len());
        let mut at = 0;
        while let Some(rest) = inside.get(at..).filter(|rest| !rest.is_empty()) {
            let (byte, length) = character(rest);
            at = inside.len().min(at + length);
            bytes.push(byte.unwrap_or(NOTHING));
            ends.push(at);
        }
        Self { inside, bytes, ends }
    }

    fn find(&self, secret: &str, from: usize) -> Option<usize> {
        let rest = self.bytes.get(from..).filter(|rest| rest.len() >= secret.len())?;
        memmem::find(rest, secret.as_bytes()).map(|at| from + at)
    }

    /// As the bytes from one to another stand in the inside.
    fn source(&self, from: usize, to: usize) -> &'a [u8] {
        let end = |count: usize| match count.checked_sub(1) {
            Some(last) => self.ends.get(last).copied().unwrap_or(self.inside.len()),
            None => 0,
        };
        self.inside.get(end(from)..end(to)).unwrap_or_default()
    }
}

/// Where the closing quote of a string stands, whose inside `string` begins with.
fn string_end(string: &[u8]) -> usize {
    let mut at = 0;
    while let Some(found) = string.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
        at += found;
        if string[at] == b'"' {
            return at;
        }
        at += 2;
    }
    string.len()
}

/// The first byte of a string's inside that is not empty, unescaped, and how many bytes stand for
/// it. No byte where the escape sequence is broken or of a character beyond ASCII.
fn character(inside: &[u8]) -> (Option<u8>, usize) {
    match *inside {
        [b'\\', b'u', ref digits @ ..] => {
            let digits = digits.get(..4).and_then(|digits| std::str::from_utf8(digits).ok());
            let code = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
            (code.filter(u8::is_ascii), 6)
        }
        [b'\\', escaped, ..] => {
            let byte = match escaped {
                b'b' => 0x08,
                b'f' => 0x0c,
                b'n' => b'\n',
                b'r' => b'\r',
                b't' => b'\t',
                other => other,
            };
            (Some(byte), 2)
        }
        [first, ..] => (Some(first), 1),
        [] => (None, 0),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::catalog::Secret;
    use crate::json;

    fn headers(list: &[(&str, &str)]) -> Proof {
        let headers = list.iter().map(|(name, value)| ((*name).into(), Secret::new(value)));
        Proof { headers: headers.collect(), ..Proof::default() }
    }

    fn struck(list: &[(&str, &str)], json: &str) -> String {
        let headers = headers(list);
        let out = Credentials::of(&headers, &[]).strike_json(json.as_bytes().to_vec());
        let out = String::from_utf8(out).unwrap();
        assert!(json::guard(out.as_bytes()).is_ok(), "{out}");
        out
    }

    #[test]
    fn credentials_are_struck_out_of_json_strings_and_nothing_else() {
        let bearer = [("Authorization", "Bearer s3cr3t-value")];
        let table = [
            (r#"{"a":"Bearer s3cr3t-value"}"#, r#"{"a":"[removed]"}"#),
            (r#"{"a":"x s3cr3t-value y","b":1.50}"#, r#"{"a":"x [removed] y","b":1.50}"#),
            (r#"{"s3cr3t-value":["s3cr3t-values"]}"#, r#"{"[removed]":["[removed]s"]}"#),
            (r#"["\u00733cr3t\u002dvalue"]"#, r#"["[removed]"]"#),
            (r#"["\\s3cr3t-value","\"s3cr3t-value\""]"#, r#"["\\[removed]","\"[removed]\""]"#),
            (
                r#"["Bearer s3cr3t","\n\\","s3cr3t-valu"]"#,
                r#"["Bearer s3cr3t","\n\\","s3cr3t-valu"]"#,
            ),
            (" { } ", " { } "),
        ];
        for (json, expected) in table {
            assert_eq!(struck(&bearer, json), expected);
        }
    }

    #[test]
    fn escapes_hide_nothing_and_are_never_torn() {
        let odd = [("X-Api-Key", r#"a"b\c/d<e>f"#)];
        let table = [
            (r#"["a\"b\\c/d<e>f"]"#, r#"["[removed]"]"#),
            (r#"["a\"b\\c\/d\u003ce\u003Ef!"]"#, r#"["[removed]!"]"#),
        ];
        for (json, expected) in table {
            assert_eq!(struck(&odd, json), expected);
        }
        // Read from its second byte, the escape sequence would begin the secret.
        let torn = [("X-Api-Key", "n1234567")];
        assert_eq!(struck(&torn, r#"["\n1234567","n1234567"]"#), r#"["\n1234567","[removed]"]"#);
        // The punctuation between strings is nobody's secret.
        let structure = [("X-Api-Key", r#"a":"b","c"#)];
        assert_eq!(struck(&structure, r#"{"a":"b","c":1}"#), r#"{"a":"b","c":1}"#);
    }

    #[test]
    fn parts_of_values_count_and_short_or_open_ones_do_not() {
        let list = [
            ("Cookie", "lang=en; session=abcdefgh"),
            ("Proxy-Authorization", "Basic dXNlcjpwYXNzd29yZDE="),
            ("X-Token", "short"),
            ("Accept", "application/json"),
        ];
        let json =
            r#"["abcdefgh","en","dXNlcjpwYXNzd29yZDE=","password1","short","application/json"]"#;
        let expected = r#"["[removed]","en","[removed]","[removed]","short","application/json"]"#;
        assert_eq!(struck(&list, json), expected);
        assert_eq!(struck(&[], json), json);
    }

    #[test]
    fn what_is_hidden_is_struck_out_wherever_it_was_sent() {
        let proof = Proof { hidden: vec![Secret::new("query-key-1")], ..Proof::default() };
        let struck = Credentials::of(&proof, &[]).strike_json(br#"["?k=query-key-1"]"#.to_vec());
        assert_eq!(struck, br#"["?k=[removed]"]"#);
    }

    /// An API that knows a long credential can repeat all but its end as often as it likes.
    #[test]
    fn what_nearly_is_a_credential_takes_no_longer() {
        let secret = "ICAg".repeat(4_000) + "e";
        let list = [("Authorization", &*format!("Bearer {secret}"))];
        let json = format!("[\"\\n{}{secret}\"]", "ICAg".repeat(200_000));
        let started = std::time::Instant::now();
        let struck = struck(&list, &json);
        assert!(struck.ends_with("ICAg[removed]\"]"));
        let elapsed = started.elapsed();
        assert!(elapsed < std::time::Duration::from_secs(3), "{elapsed:?}");
    }

    #[test]
    fn text_loses_them_too() {
        let headers = headers(&[("X-Api-Key", "abc/defgh")]);
        let strike = |text: &str| Credentials::of(&headers, &[]).strike_text(text.to_owned());
        assert_eq!(strike("key abc/defgh\nabc/defgh é"), "key [removed]\n[removed] é");
        assert_eq!(strike("{\"k\":\"abc\\/defgh\"}\n{\\"), "{\"k\":\"[removed]\"}\n{\\");
        assert_eq!(strike("C:\\é"), "C:\\é");
    }

    proptest! {
        #[test]
        fn any_json_stays_json_and_keeps_no_secret(
            secret in "[ -~]{8,12}", before in ".{0,6}", after in ".{0,6}"
        ) {
            let secret = secret.trim();
            prop_assume!(secret.len() >= SECRET_BYTES_MIN && !MARK.contains(secret));
            let value = format!("{before}{secret}{after}");
            let text = serde_json::to_string(&[&value, "x"]).unwrap();
            let out = struck(&[("X-Api-Key", secret)], &text);
            let read: Vec<String> = serde_json::from_str(&out).unwrap();
            prop_assert_eq!(&read[1], "x");
            prop_assert!(read[0].contains(MARK));
        }

        #[test]
        fn json_without_a_secret_is_left_alone(value in json::any_json()) {
            let text = value.to_string();
            prop_assert_eq!(struck(&[("X-Api-Key", "nobody-has-this")], &text), text);
        }
    }
}
