//! An answer that is no success, told in words a model can act on.
//!
//! Status and reason always; the problem's title and detail (RFC 9457) where the API sends them,
//! else the start of a text body; when to come back; which connection's credential was refused.
//! Never the credential: wherever the API repeats one, it is struck out. Never a page of markup,
//! never more than [`EXCERPT_BYTES_MAX`] of what the API wrote.

use std::fmt::Write;

use crate::catalog::{Proof, Secret, is_credential};
use crate::http::reason;
use crate::json::{self, Kind, Raw};

use super::credentials::Credentials;
use super::media::{Charset, Media, json_of, text_of};
use super::whereabouts;

/// How much of a body is quoted.
pub(crate) const EXCERPT_BYTES_MAX: usize = 2048;
/// How much of a single header value or page title is quoted.
const HEADER_CHARACTERS_MAX: usize = 128;
/// Where the title of a page is looked for.
const TITLE_SEARCH_BYTES: usize = 4096;

/// What of the answer's head a failure speaks of.
#[derive(Debug, Clone, Default)]
pub(crate) struct FailureHead {
    pub(crate) status: u16,
    pub(crate) retry_after: Option<String>,
    pub(crate) location: Option<String>,
    pub(crate) correlation_id: Option<String>,
}

/// Who was asked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) tool: &'a str,
    pub(crate) connection: &'a str,
    /// Where it is: for nobody to be told.
    pub(crate) host: &'a str,
    /// What the connection proved itself with.
    pub(crate) proof: &'a Proof,
    /// The credentials the tool always sends.
    pub(crate) constants: &'a [(Box<str>, Secret)],
}

impl<'a> Asked<'a> {
    /// What must not be shown of what was sent.
    pub(crate) fn credentials(&self) -> Credentials<'a> {
        Credentials::of(self.proof, self.constants)
    }

    /// What the API says of itself, without the credentials and without where it is.
    pub(crate) fn struck(&self, text: String) -> String {
        whereabouts::strike(self.credentials().strike_text(text), self.host)
    }
}

/// The text of a failure with this head and (decoded) body.
pub(crate) fn describe(
    head: &FailureHead,
    media: &Media<'_>,
    body: &[u8],
    asked: Asked<'_>,
) -> String {
    let mut text = String::with_capacity(256);
    let _ = write!(text, "HTTP {}", head.status);
    push_word(&mut text, reason(head.status));
    let _ = write!(text, " from the API behind connection \"{}\".", asked.connection);
    match head.status {
        300..=399 => {
            log_redirect(head.location.as_deref(), asked);
            push_redirect(&mut text, head.location.as_deref(), asked.host);
        }
        401 | 403 => push_credential(&mut text, head.status, asked),
        _ => {}
    }
    push_body(&mut text, media, body);
    if let Some(when) = head.retry_after.as_deref().map(one_line).filter(|when| !when.is_empty()) {
        let unit = if when.bytes().all(|byte| byte.is_ascii_digit()) { " seconds" } else { "" };
        let _ = write!(text, "\nRetry after: {when}{unit}");
    }
    if let Some(id) = head.correlation_id.as_deref().map(one_line).filter(|id| !id.is_empty()) {
        let _ = write!(text, "\nCorrelation id: {id}");
    }
    asked.struck(text)
}

fn push_word(text: &mut String, word: &str) {
    if !word.is_empty() {
        text.push(' ');
        text.push_str(word);
    }
}

fn push_redirect(text: &mut String, location: Option<&str>, own_host: &str) {
    // Where it leads is for the log: hosts are often inside ones, and paths and queries of a login
    // page carry state that is nobody's business.
    text.push_str(match location.map(url::Url::parse) {
        None => " It is not an answer a tool can use.",
        Some(Ok(url)) => match url.host_str() {
            Some(host) if host.eq_ignore_ascii_case(own_host) => {
                " It redirects within the same host, which is not followed."
            }
            Some(_) => " It redirects to another host, which is not followed.",
            None => " It redirects to what no API is at, which is not followed.",
        },
        Some(Err(_)) => " It redirects within the same host, which is not followed.",
    });
}

/// The operator's log says where a redirect leads: its origin alone.
#[cold]
fn log_redirect(location: Option<&str>, asked: Asked<'_>) {
    let Asked { tool, connection, .. } = asked;
    if let Some(url) = location.and_then(|location| url::Url::parse(location).ok()) {
        let origin = one_line(&url.origin().ascii_serialization());
        tracing::info!(tool, connection, origin, "the API redirects, which is not followed");
    }
}

fn push_credential(text: &mut String, status: u16, asked: Asked<'_>) {
    let sends_one = !asked.proof.hidden.is_empty()
        || asked.proof.headers.iter().any(|(name, _)| is_credential(name));
    let connection = asked.connection;
    let _ = match (status, sends_one) {
        (401, true) => write!(text, " The credential of connection \"{connection}\" was refused."),
        (_, true) => {
            write!(text, " The credential of connection \"{connection}\" does not permit this.")
        }
        (_, false) => write!(text, " Connection \"{connection}\" has no credential configured."),
    };
}

fn push_body(text: &mut String, media: &Media<'_>, body: &[u8]) {
    if body.is_empty() {
        return;
    }
    match media {
        Media::Json(charset) => {
            if let Ok(checked) = json::guard(&json_of(*charset, body))
                && push_problem(text, checked.root())
            {
                return;
            }
            push_excerpt(text, &text_of(*charset, body));
        }
        Media::Html(charset) => push_page(text, *charset, body),
        Media::Text(charset) => push_excerpt(text, &text_of(*charset, body)),
        Media::Binary { name } => {
            let _ = write!(text, "\nIts body is {} bytes of {name}.", body.len());
        }
    }
}

/// Members that say no more than title, detail and status do.
const PROBLEM_MEMBERS: [&str; 12] = [
    "type",
    "title",
    "detail",
    "status",
    "instance",
    "error",
    "message",
    "code",
    "error_description",
    "description",
    "timestamp",
    "path",
];

/// RFC 9457 `title` and `detail`, or the names other APIs give to the same thing.
fn push_problem(text: &mut String, root: Raw<'_>) -> bool {
    let string = |object: Raw<'_>, names: &[&str]| {
        names.iter().find_map(|name| {
            let found = object.get(name)?.as_str()?;
            let found = cut(found.trim(), EXCERPT_BYTES_MAX / 2);
            (!found.is_empty()).then(|| found.to_owned())
        })
    };
    if root.kind() != Kind::Object {
        return false;
    }
    // {"error": {"message": ...}} is as common as the flat form.
    let inner = root.get("error").filter(|error| error.kind() == Kind::Object).unwrap_or(root);
    let title = string(inner, &["title", "error", "code", "status"]);
    let detail = string(inner, &["detail", "message", "error_description", "description"]);
    // Field errors and extension members say what to change: then the whole object is worth
    // reading.
    let says_more = inner.entries().any(|(name, _)| !PROBLEM_MEMBERS.contains(&&*name));
    // A code is what others look an error up by: it is told beside any title.
    let code = inner.get("code").filter(|code| matches!(code.kind(), Kind::String | Kind::Number));
    let code = code.map(|code| code.as_str().unwrap_or(code.text().into()).into_owned());
    let from = text.len();
    match (&title, &detail) {
        (None, None) => return false,
        (Some(title), Some(detail)) => push_lines(text, &format!("{title}: {detail}")),
        (Some(only), None) | (None, Some(only)) => push_lines(text, only),
    }
    if let Some(code) = code.map(|code| one_line(&code)).filter(|code| !code.is_empty()) {
        // The status is often the code.
        let is_status = text[..from].starts_with(&format!("HTTP {code} "));
        if !is_status && !text[from..].contains(&*code) {
            let _ = write!(text, " (code {code})");
        }
    }
    if says_more {
        push_excerpt(text, root.text());
    }
    true
}

fn push_page(text: &mut String, charset: Charset, body: &[u8]) {
    let start = text_of(charset, &body[..body.len().min(TITLE_SEARCH_BYTES)]);
    let _ = write!(text, "\nIts body is an HTML page");
    if let Some(title) = title_of(&start).map(one_line).filter(|title| !title.is_empty()) {
        let _ = write!(text, " titled \"{title}\"");
    }
    text.push('.');
}

fn title_of(page: &str) -> Option<&str> {
    // Same length as the page, so its offsets are the page's.
    let lower = page.to_ascii_lowercase();
    let open = lower.find("<title")?;
    let start = open + lower[open..].find('>')? + 1;
    let end = start + lower[start..].find("</title")?;
    Some(&page[start..end])
}

fn push_excerpt(text: &mut String, body: &str) {
    let excerpt = cut(body.trim(), EXCERPT_BYTES_MAX);
    push_lines(text, excerpt);
    if excerpt.len() < body.trim().len() {
        let _ = write!(text, "... ({} bytes in all)", body.len());
    }
}

fn push_lines(text: &mut String, lines: &str) {
    text.push('\n');
    text.extend(lines.chars().filter(|&c| c == '\n' || c == '\t' || !c.is_control()));
}

/// At most `bytes_max` of `text`, cut between characters.
pub(crate) fn cut(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}

/// A header value fit to be quoted: one line, no control characters, not long.
fn one_line(value: &str) -> String {
    let words = value.split_whitespace().collect::<Vec<_>>().join(" ");
    words.chars().filter(|c| !c.is_control()).take(HEADER_CHARACTERS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::catalog::Secret;

    fn told(status: u16, content_type: &str, body: &[u8]) -> String {
        told_of(&FailureHead { status, ..FailureHead::default() }, content_type, body, &[])
    }

    fn told_of(
        head: &FailureHead,
        content_type: &str,
        body: &[u8],
        headers: &[(Box<str>, Secret)],
    ) -> String {
        let content_type = Some(content_type).filter(|text| !text.is_empty());
        let media = Media::of(content_type, body);
        let proof = &Proof { headers: headers.to_vec(), ..Proof::default() };
        let asked = Asked {
            tool: "show",
            connection: "orders",
            host: "orders.internal",
            proof,
            constants: &[],
        };
        describe(head, &media, body, asked)
    }

    fn secret() -> Vec<(Box<str>, Secret)> {
        vec![("Authorization".into(), Secret::new("Bearer s3cr3t-value"))]
    }

    #[test]
    fn a_problem_is_told_by_title_and_detail() {
        let body = br#"{"type":"/stock","title":"Out of stock","detail":"Item 7 is gone"}"#;
        let text = told(422, "application/problem+json; charset=utf-8", body);
        assert_eq!(
            text,
            "HTTP 422 Unprocessable Content from the API behind connection \"orders\".\n\
             Out of stock: Item 7 is gone"
        );
    }

    #[test]
    fn other_shapes_of_error_objects_are_understood() {
        let table: [(&[u8], &str); 8] = [
            (br#"{"error":{"code":"E7","message":"no"}}"#, "\nE7: no"),
            (br#"{"error":{"code":1042,"message":"no"}}"#, "\nno (code 1042)"),
            (br#"{"title":"Gone","detail":"no","code":"E7"}"#, "\nGone: no (code E7)"),
            (br#"{"error":{"code":400,"message":"no"}}"#, "\nno"),
            (br#"{"error":"invalid_grant","error_description":"old"}"#, "\ninvalid_grant: old"),
            (br#"{"message":"only this"}"#, "\nonly this"),
            (br#"{"reason":7}"#, "\n{\"reason\":7}"),
            (br#"["a"]"#, "\n[\"a\"]"),
        ];
        for (body, expected) in table {
            let text = told(400, "application/json", body);
            assert!(text.ends_with(expected), "{text}");
        }
        let body = br#"{"title":"Bad","errors":{"age":["too low"]}}"#;
        assert!(told(400, "application/json", body).contains("too low"));
        // Deep or broken JSON is quoted, not walked.
        let deep = b"[".repeat(100_000);
        assert!(told(400, "application/json", &deep).len() < EXCERPT_BYTES_MAX + 300);
    }

    #[test]
    fn where_the_api_is_stays_untold() {
        for (location, expected) in [
            ("http://Orders.internal:8080/login?next=1", "within the same host"),
            ("http://10.1.2.3:8080/", "to another host"),
            ("http://[fd00::7]/", "to another host"),
            ("/elsewhere", "within the same host"),
            ("https://login.example.com/x?state=1", "to another host"),
            ("http://db.corp.internal:8080", "to another host"),
            ("file:///etc/passwd", "to what no API is at"),
        ] {
            let location = Some(location.to_owned());
            let head = FailureHead { status: 302, location, ..FailureHead::default() };
            let text = told_of(&head, "text/plain", b"", &[]);
            assert!(text.contains(expected), "{text}");
            let addresses = ["10.1.2.3", "internal", "example", "passwd"];
            assert!(!addresses.iter().any(|address| text.contains(address)), "{text}");
        }
        let head = FailureHead { status: 302, ..FailureHead::default() };
        assert!(told_of(&head, "text/plain", b"", &[]).contains("not an answer"));
        let body = br#"{"detail":"http://Orders.internal:8080/secret failed"}"#;
        let text = told(500, "application/problem+json", body);
        assert!(text.ends_with("\nhttp://[removed]/secret failed"), "{text}");
    }

    #[test]
    fn a_page_is_only_named() {
        let page = b"<!DOCTYPE html><html><head><TITLE>\n502 Bad\n Gateway</TITLE><body><h1>nginx";
        let text = told(502, "text/html", page);
        assert!(text.ends_with("Its body is an HTML page titled \"502 Bad Gateway\"."), "{text}");
        assert!(!text.contains("nginx"));
        assert!(told(502, "", page).contains("HTML page"), "undeclared");
    }

    #[test]
    fn long_text_is_cut_between_characters() {
        let text = told(500, "text/plain", "é".repeat(5000).as_bytes());
        assert!(text.len() < EXCERPT_BYTES_MAX + 300 && text.contains("10000 bytes in all"));
        assert!(!told(500, "text/plain", b"a\x1b[31mb\x00c").contains('\x1b'));
        assert!(told(500, "image/png", &[0; 9]).contains("9 bytes of image/png"));
    }

    #[test]
    fn a_refused_credential_is_named_and_never_shown() {
        let head = FailureHead { status: 401, ..FailureHead::default() };
        let body = br#"{"message":"token s3cr3t-value is no longer valid"}"#;
        let text = told_of(&head, "application/json", body, &secret());
        assert!(text.contains("credential of connection \"orders\" was refused"), "{text}");
        assert!(text.contains("token [removed] is") && !text.contains("s3cr3t"), "{text}");
        assert!(told(401, "", b"").contains("has no credential configured"));
        let head = FailureHead { status: 403, ..head };
        assert!(told_of(&head, "", b"", &secret()).contains("does not permit"));
    }

    #[test]
    fn when_to_come_back_and_the_correlation_id_are_told() {
        let head = FailureHead {
            status: 429,
            retry_after: Some("30".to_owned()),
            correlation_id: Some("abc\r\nX: y".to_owned()),
            location: None,
        };
        let text = told_of(&head, "text/plain", b"slow down", &[]);
        assert!(
            text.ends_with("\nslow down\nRetry after: 30 seconds\nCorrelation id: abc X: y"),
            "{text}"
        );
    }

    proptest! {
        #[test]
        fn any_failure_is_told_within_bounds(
            status in any::<u16>(), kind in "[a-z/+;=-]{0,30}",
            body in prop::collection::vec(any::<u8>(), 0..6000)
        ) {
            prop_assert!(told(status, &kind, &body).len() < 3 * EXCERPT_BYTES_MAX);
        }
    }
}
