//! Which URIs a template may stand for (RFC 6570).
//!
//! Only the server can tell whether a URI is one of its own. A template says where a request for it
//! may go, so an expression stands for any text that its operator can expand to, and variables are
//! not told apart. The time is bounded by the product of both lengths, whatever they hold.

/// Literals and expressions of one template.
const PIECES_MAX: usize = 64;
/// Longest URI that is looked at, in bytes.
const URI_BYTES_MAX: usize = 8_192;

/// A URI template.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct UriTemplate {
    pieces: Box<[Piece]>,
    /// Bytes of its literals.
    pub(super) literal_bytes: usize,
}

#[derive(Debug, PartialEq, Eq)]
enum Piece {
    Literal(Box<str>),
    /// Any text without these bytes.
    Expression(&'static [u8]),
}

impl UriTemplate {
    /// # Errors
    /// What is wrong with it.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut literal_bytes = 0;
        let mut rest = text;
        while !rest.is_empty() {
            let literal = rest.get(..rest.find(['{', '}']).unwrap_or(rest.len())).unwrap_or("");
            if !literal.is_empty() {
                literal_bytes += literal.len();
                pieces.push(Piece::Literal(literal.into()));
            }
            rest = rest.get(literal.len()..).unwrap_or("");
            if rest.is_empty() {
                break;
            }
            let inner = rest.strip_prefix('{').and_then(|rest| rest.split_once('}'));
            let (expression, after) = inner
                .filter(|(expression, _)| !expression.is_empty() && !expression.contains('{'))
                .ok_or("a brace of its URI template stands alone")?;
            pieces.push(Piece::Expression(excluded(expression)));
            rest = after;
        }
        if pieces.len() > PIECES_MAX {
            return Err(format!("its URI template has more than {PIECES_MAX} parts"));
        }
        Ok(Self { pieces: pieces.into(), literal_bytes })
    }

    /// Whether the template may expand to this URI.
    pub(super) fn may_be(&self, uri: &str) -> bool {
        let uri = uri.as_bytes();
        if uri.len() > URI_BYTES_MAX {
            return false;
        }
        // Where what was read of the template may end.
        let mut reached = vec![false; uri.len() + 1];
        reached[0] = true;
        let mut next = vec![false; uri.len() + 1];
        for piece in &self.pieces {
            next.fill(false);
            let mut is_any = false;
            match piece {
                Piece::Literal(literal) => {
                    let literal = literal.as_bytes();
                    for place in (0..uri.len()).filter(|place| reached[*place]) {
                        if uri.get(place..).is_some_and(|rest| rest.starts_with(literal)) {
                            next[place + literal.len()] = true;
                            is_any = true;
                        }
                    }
                }
                Piece::Expression(excluded) => {
                    let mut is_open = false;
                    for (place, was) in reached.iter().enumerate() {
                        let before = place.checked_sub(1).and_then(|before| uri.get(before));
                        is_open &= before.is_none_or(|byte| !excluded.contains(byte));
                        is_open |= was;
                        next[place] = is_open;
                        is_any |= is_open;
                    }
                }
            }
            if !is_any {
                return false;
            }
            std::mem::swap(&mut reached, &mut next);
        }
        reached.last() == Some(&true)
    }
}

/// What an expression never expands to: section 3.2. What is not reserved is encoded, so a simple
/// one stays within its segment.
fn excluded(expression: &str) -> &'static [u8] {
    match expression.as_bytes().first() {
        // Reserved and fragment expansion.
        Some(b'+' | b'#') => b"",
        // Path segments; each variable may be one.
        Some(b'/') => b"?#",
        // Query and its continuation.
        Some(b'?' | b'&') => b"#",
        // Simple ones, labels and path parameters.
        _ => b"/?#",
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use proptest::prelude::*;

    use super::*;

    fn may_be(template: &str, uri: &str) -> bool {
        UriTemplate::parse(template).unwrap().may_be(uri)
    }

    #[test]
    fn expressions_stand_for_what_they_can_expand_to() {
        for (template, uri, expected) in [
            ("file:///{name}", "file:///a.txt", true),
            ("file:///{name}", "file:///", true),
            ("file:///{name}", "file:///a/b", false),
            ("file:///{name}", "file:///a%2Fb", true),
            ("file:///{+path}", "file:///a/b?c#d", true),
            ("file://{/path*}", "file:///a/b", true),
            ("file://{/path*}", "file:///a?b", false),
            ("db://{table}/rows/{id}", "db://pets/rows/7", true),
            ("db://{table}/rows/{id}", "db://pets/rows/7/x", false),
            ("db://{table}/rows/{id}", "db://rows/7", false),
            ("db://{t}/a{b}a", "db://x/aaa", true),
            ("s:{a}{b}x", "s:yx", true),
            ("https://h/find{?q,lang}", "https://h/find?q=a/b&lang=c", true),
            ("https://h/find{?q}{#part}", "https://h/find?q=a#b", true),
            ("https://h/find{?q}", "https://h/find", true),
            ("https://h/find{?q}", "https://h/finds", true),
            ("https://h/a{;x}", "https://h/a;x=1", true),
            ("plain:uri", "plain:uri", true),
            ("plain:uri", "plain:uris", false),
            ("plain:uri", "plain:ur", false),
            ("größe:{x}", "größe:ä", true),
            ("{+all}", "", true),
        ] {
            assert_eq!(may_be(template, uri), expected, "{template} {uri}");
        }
        for bad in ["a{", "a}", "{}", "a{b{c}}", &"{a}".repeat(65)] {
            assert!(UriTemplate::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn no_template_takes_long() {
        let template = UriTemplate::parse(&"{a}a".repeat(32)).unwrap();
        let started = Instant::now();
        assert!(!template.may_be(&format!("{}b", "a".repeat(8_000))));
        assert!(started.elapsed().as_millis() < 2_000);
        assert!(!template.may_be(&"a".repeat(9_000)));
    }

    proptest! {
        #[test]
        fn what_is_expanded_is_found(
            parts in prop::collection::vec(("[a-z/:]{0,6}", "[a-zA-Z0-9%._~-]{0,6}"), 1..6),
        ) {
            let template: String =
                parts.iter().flat_map(|(literal, _)| [literal.as_str(), "{v}"]).collect();
            let uri: String = parts
                .iter()
                .flat_map(|(literal, value)| [literal.as_str(), value.as_str()])
                .collect();
            prop_assert!(may_be(&template, &uri));
        }
    }
}
