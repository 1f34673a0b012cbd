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

    /// `text` without them, also where they stand as a JSON string would hold them, or XML.
    pub(crate) fn strike_text(&self, mut text: String) -> String {
        for secret in &self.0 {
            if text.contains(&**secret) {
                text = text.replace(&**secret, MARK);
            }
        }
        for form in [Form::Json, Form::Markup] {
            if !self.0.is_empty() && memchr(form.mark(), text.as_bytes()).is_some() {
                let mut out = Vec::with_capacity(text.len());
                self.strike_form(text.as_bytes(), form, &mut out);
                // Whole characters only were taken out.
                text = String::from_utf8(out).unwrap_or(text);
            }
        }
        text
    }

    /// The same for a JSON text, which stays one: only the insides of its strings change, however
    /// their characters are escaped.
    pub(crate) fn strike_json(&self, json: Vec<u8>) -> Vec<u8> {
        let is_escaped = memchr2(Form::Json.mark(), Form::Markup.mark(), &json).is_some();
        if self.0.is_empty() || (!is_escaped && !self.occur_in(&json)) {
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

    /// The inside of a JSON string, which may hold markup.
    fn strike_string(&self, inside: &[u8], out: &mut Vec<u8>) {
        let is_escaped = memchr(Form::Json.mark(), inside).is_some();
        if memchr(Form::Markup.mark(), inside).is_none() {
            if is_escaped || self.occur_in(inside) {
                self.strike_form(inside, Form::Json, out);
            } else {
                out.extend_from_slice(inside);
            }
            return;
        }
        let mut once = Vec::with_capacity(inside.len());
        self.strike_form(inside, Form::Json, &mut once);
        self.strike_form(&once, Form::Markup, out);
    }

    /// What is written in a form, by what its escape sequences stand for. In one pass for each
    /// secret, however often its beginning stands there: both may be of somebody who wants it to
    /// take long.
    fn strike_form(&self, inside: &[u8], form: Form, out: &mut Vec<u8>) {
        let plain = Unescaped::of(inside, form);
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
    fn of(inside: &'a [u8], form: Form) -> Self {
        /// Stands in no text.
        const NOTHING: u8 = 0xff;
        let mut bytes = Vec::with_capacity(inside.len());
        let mut ends = Vec::with_capacity(inside.len());
        let mut at = 0;
        while let Some(rest) = inside.get(at..).filter(|rest| !rest.is_empty()) {
            let (piece, length) = form.piece(rest);
            at = inside.len().min(at + length);
            let mut utf8 = [0; 4];
            let piece: &[u8] = match piece {
                Piece::Byte(byte) => &[byte],
                Piece::Char(char) => char.encode_utf8(&mut utf8).as_bytes(),
                Piece::Nothing => &[NOTHING],
            };
            // Nothing is found but whole characters, so only the last of the ends is ever used.
            bytes.extend_from_slice(piece);
            ends.resize(bytes.len(), at);
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

/// How a text writes what it cannot hold as it is.
#[derive(Debug, Clone, Copy)]
enum Form {
    /// `\"`, `\u00f6`: the inside of a JSON string.
    Json,
    /// `&amp;`, `&#246;`: XML and HTML.
    Markup,
}

/// What an escape sequence or a byte stands for.
#[derive(Debug, Clone, Copy)]
enum Piece {
    Byte(u8),
    Char(char),
    /// A broken sequence.
    Nothing,
}

impl Form {
    /// What each of its sequences begins with.
    const fn mark(self) -> u8 {
        match self {
            Self::Json => b'\\',
            Self::Markup => b'&',
        }
    }

    /// What stands first in a text that is not empty, and how many bytes it takes.
    fn piece(self, text: &[u8]) -> (Piece, usize) {
        match (self, text) {
            (Self::Json, [b'\\', b'u', ..]) => unicode_escape(text),
            (Self::Json, [b'\\', escaped, ..]) => {
                let byte = match escaped {
                    b'b' => 0x08,
                    b'f' => 0x0c,
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    other => *other,
                };
                (Piece::Byte(byte), 2)
            }
            (Self::Markup, [b'&', after @ ..]) => match entity(after) {
                Some((char, length)) => (Piece::Char(char), 1 + length),
                None => (Piece::Byte(b'&'), 1),
            },
            (_, [first, ..]) => (Piece::Byte(*first), 1),
            (_, []) => (Piece::Nothing, 1),
        }
    }
}

/// `\uXXXX`; two of them where they are the halves of one character.
fn unicode_escape(text: &[u8]) -> (Piece, usize) {
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    let Some(first) = unit(0) else { return (Piece::Nothing, 6) };
    if let Some(char) = char::from_u32(first.into()) {
        return (Piece::Char(char), 6);
    }
    match unit(6).and_then(|second| char::decode_utf16([first, second]).next()?.ok()) {
        Some(char) => (Piece::Char(char), 12),
        None => (Piece::Nothing, 6),
    }
}

/// The entity or character reference whose `&` stands before `text`, and its length.
fn entity(text: &[u8]) -> Option<(char, usize)> {
    /// As long as any reference to a character has to be, with some zeros in front.
    const BYTES_MAX: usize = 12;
    let end = memchr(b';', text.get(..BYTES_MAX.min(text.len()))?)?;
    let char = match text.get(..end)? {
        b"amp" => '&',
        b"lt" => '<',
        b"gt" => '>',
        b"quot" => '"',
        b"apos" => '\'',
        [b'#', b'x' | b'X', digits @ ..] => of_digits(digits, 16)?,
        [b'#', digits @ ..] => of_digits(digits, 10)?,
        _ => return None,
    };
    Some((char, end + 1))
}

fn of_digits(digits: &[u8], radix: u32) -> Option<char> {
    char::from_u32(u32::from_str_radix(std::str::from_utf8(digits).ok()?, radix).ok()?)
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
    fn no_way_to_write_a_character_hides_them() {
        let list = [("X-Api-Key", "pä<s>&\"w😀rd'")];
        for json in [
            r#"["p\u00e4<s>&\"w\ud83d\ude00rd'"]"#,
            r#"["p\u00E4\u003cs\u003e\u0026\"w😀rd'"]"#,
            r#"["pä&lt;s&gt;&amp;&quot;w&#128512;rd&apos;"]"#,
            r#"["p&#xE4;&#60;s&#62;&#38;&#x22;w&#x1F600;rd&#039;"]"#,
        ] {
            assert_eq!(struck(&list, json), r#"["[removed]"]"#, "{json}");
            let headers = headers(&list);
            let text = Credentials::of(&headers, &[]).strike_text(json.to_owned());
            assert_eq!(text, r#"["[removed]"]"#, "{json}");
        }
        // What is broken stays as it is.
        let headers = headers(&list);
        let broken = r"\ud83d \ud83dx &;&#;&#x;&#xd83d;&amp & \ude00\ud83d \u";
        assert_eq!(Credentials::of(&headers, &[]).strike_text(broken.to_owned()), broken);
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
