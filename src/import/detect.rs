//! What kind of file it is, from its first bytes.

/// What a document seems to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detected {
    /// `OpenAPI` or Swagger, as JSON or YAML.
    OpenApi,
    /// WSDL.
    Wsdl,
    /// An archive of documents.
    Zip,
}

/// How much of a document is looked at.
const LOOKED_AT_BYTES: usize = 64 << 10;

/// What a document seems to be; `None` where it is none of these. Only reading it tells for sure.
pub fn detect(bytes: &[u8]) -> Option<Detected> {
    if bytes.starts_with(b"PK\x03\x04") {
        return Some(Detected::Zip);
    }
    let bytes = &bytes[..bytes.len().min(LOOKED_AT_BYTES)];
    // Zero bytes out of the way, UTF-16 reads as what it says.
    let text: Vec<u8> = bytes.iter().copied().filter(|byte| *byte != 0).collect();
    let text = String::from_utf8_lossy(&text);
    let text = text.trim_start_matches(['\u{feff}', '\u{fffd}']).trim_start();
    if text.starts_with('<') {
        return is_wsdl(text).then_some(Detected::Wsdl);
    }
    let says = |word: &str| text.lines().any(|line| is_key(line, word));
    let is_json = text.starts_with('{');
    let found = |word: &str| says(word) || (is_json && json_has(text, word));
    (found("openapi") || found("swagger")).then_some(Detected::OpenApi)
}

/// Whether the first element is `definitions`, whatever its prefix.
fn is_wsdl(text: &str) -> bool {
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        if let Some(comment) = rest.strip_prefix("!--") {
            let Some(end) = comment.find("-->") else { return false };
            rest = &comment[end + 3..];
            continue;
        }
        if rest.starts_with(['?', '!']) {
            continue;
        }
        let name: &str =
            rest.split(|c: char| c.is_whitespace() || c == '>' || c == '/').next().unwrap_or("");
        let local = name.rsplit(':').next().unwrap_or(name);
        return matches!(local, "definitions" | "description");
    }
    false
}

/// Whether a line of YAML at the outermost level is this key.
fn is_key(line: &str, word: &str) -> bool {
    let line = line.trim_start_matches('\u{feff}');
    ["", "\"", "'"].iter().any(|quote| {
        line.strip_prefix(quote)
            .and_then(|rest| rest.strip_prefix(word))
            .and_then(|rest| rest.strip_prefix(quote))
            .is_some_and(|rest| rest.trim_start().starts_with(':'))
    })
}

/// Whether the outermost object has this key, as far as its beginning is there.
fn json_has(text: &str, word: &str) -> bool {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    let mut string_from = 0;
    for (at, byte) in text.bytes().enumerate() {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => {
                    in_string = false;
                    let is_word = text.get(string_from..at) == Some(word);
                    let rest = text.get(at + 1..).unwrap_or("").trim_start();
                    if depth == 1 && is_word && rest.starts_with(':') {
                        return true;
                    }
                }
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => (in_string, string_from) = (true, at + 1),
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_told_apart() {
        for (text, expected) in [
            ("openapi: 3.1.0\n", Some(Detected::OpenApi)),
            ("\u{feff}# c\n---\n\"openapi\" : '3.0.0'\n", Some(Detected::OpenApi)),
            ("info:\n  title: x\nswagger: '2.0'\n", Some(Detected::OpenApi)),
            ("{ \"info\": {\"x\": \"\\\"\"}, \"swagger\":\"2.0\" }", Some(Detected::OpenApi)),
            ("{\"a\":{\"openapi\":\"3\"}}", None),
            ("{\"tenant\": [{\"id\": \"openapi\"}]}", None),
            ("[[tenant]]\nid = \"demo\"\n", None),
            ("tenant:\n  - id: openapi\n", None),
            ("<?xml version='1.0'?><!-- <a> --><wsdl:definitions x='1'>", Some(Detected::Wsdl)),
            ("<definitions>", Some(Detected::Wsdl)),
            ("<xs:schema>", None),
            ("<", None),
            ("", None),
        ] {
            assert_eq!(detect(text.as_bytes()), expected, "{text}");
        }
        assert_eq!(detect(b"PK\x03\x04..."), Some(Detected::Zip));
        let wide: Vec<u8> =
            "\u{feff}<definitions>".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(detect(&wide), Some(Detected::Wsdl));
        assert_eq!(detect(&[0xff; 100]), None);
    }
}
