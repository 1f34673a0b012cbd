//! How deep a TOML text nests, found before it is parsed.
//!
//! The parser bounds brackets and the names of one dotted key at 80 each, but not their product: 80
//! nested tables under keys of 80 names make a tree whose recursive drop overflows the stack. So
//! the text is scanned first: linear, without recursion, and knowing just enough of TOML to tell
//! strings and comments from structure.

/// Deepest nesting of brackets and dotted names together.
pub const TOML_DEPTH_MAX: usize = 128;

/// The place of the first byte that is nested too deeply.
///
/// Text that is no TOML may count as deeper than it is, never as less deep: a closing bracket of
/// the wrong kind closes nothing.
pub fn too_deep_at(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    // The dots of the key in front of each open bracket, and what will close it.
    let mut outside: Vec<(usize, u8)> = Vec::new();
    let mut dots = 0;
    let mut depth = 0;
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let mut next = at + 1;
        match byte {
            b'"' | b'\'' => next = string_end(bytes, at),
            b'#' => {
                let rest = &bytes[at..];
                next = at + memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            }
            b'.' => {
                dots += 1;
                depth += 1;
            }
            b'[' | b'{' => {
                // The closing ones stand two places after them in ASCII.
                outside.push((std::mem::take(&mut dots), byte + 2));
                depth += 1;
            }
            b']' | b'}' => {
                if let Some((before, _)) = outside.pop_if(|(_, closing)| *closing == byte) {
                    depth -= 1 + std::mem::replace(&mut dots, before);
                }
            }
            b',' => depth -= std::mem::take(&mut dots),
            // Between brackets a line's end means nothing.
            b'\n' if outside.is_empty() => depth -= std::mem::take(&mut dots),
            _ => {}
        }
        if depth > TOML_DEPTH_MAX {
            return Some(at);
        }
        at = next;
    }
    None
}

/// The place after the string that begins at `start`. A string of one line ends with its line.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let quote = bytes[start];
    let rest = &bytes[start..];
    let is_long = rest.len() >= 3 && rest[..3].iter().all(|byte| *byte == quote);
    let mut at = start + if is_long { 3 } else { 1 };
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\\' if quote == b'"' && bytes.get(at + 1) != Some(&b'\n') => at += 1,
            b'\n' if !is_long => return at,
            _ if byte == quote && !is_long => return at + 1,
            _ if byte == quote && bytes[at..].starts_with(&[quote; 3]) => {
                // Up to two quotes may stand before the closing three.
                let extra = bytes[at + 3..].iter().take(2).take_while(|byte| **byte == quote);
                return at + 3 + extra.count();
            }
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn depth_is_that_of_brackets_and_names_together() {
        let nested = |count: usize| format!("a = {}1{}", "[".repeat(count), "]".repeat(count));
        assert_eq!(too_deep_at(&nested(TOML_DEPTH_MAX)), None);
        assert_eq!(too_deep_at(&nested(TOML_DEPTH_MAX + 1)), Some(4 + TOML_DEPTH_MAX));
        let key = ["a"; 20].join(".");
        let tables = |count: usize| format!("{key} = {{").repeat(count) + "}";
        assert_eq!(too_deep_at(&tables(6)), None);
        assert!(too_deep_at(&tables(7)).is_some());
    }

    #[test]
    fn what_is_closed_or_next_does_not_count() {
        for part in [
            "a.b.c = 1.5\n",
            "[[a.b]]\nc = {d.e = 1, f.g = [1.5, 2.5]}\n",
            "x = [{a.b = 1},\n{a.b = 2}]\n",
            "] } ]\n",
        ] {
            assert_eq!(too_deep_at(&part.repeat(1_000)), None, "{part}");
        }
    }

    #[test]
    fn strings_and_comments_do_not_count() {
        let noise = "[{.".repeat(200);
        for text in [
            format!("a = \"{noise}\""),
            format!("a = '{noise}'"),
            format!("a = \"\\\"{noise}\""),
            format!("a = \"\"\"\n{noise}\n\"\"{noise}\"\"\"\"\""),
            format!("a = '''\n{noise}\n'{noise}'''''"),
            format!("a = '\\' # {noise}"),
            format!("# {noise}"),
            format!("a = \"\" # {noise}"),
        ] {
            assert_eq!(too_deep_at(&text), None, "{text}");
        }
        for text in [
            format!("a = \"x\" {noise}"),
            format!("a = \"unclosed\n{noise}"),
            format!("a = \"unclosed\\\n{noise}"),
            "a = [}".repeat(200),
            format!("a = ''''''{noise}"),
            format!("a = '\\'{noise}"),
            format!("a = \"\"\"\"\"\" {noise}"),
        ] {
            assert!(too_deep_at(&text).is_some(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_scanned(text in "[\\[\\]{}.,\"'\\\\#\na]{0,300}") {
            too_deep_at(&text);
        }
    }
}
