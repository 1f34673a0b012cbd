//! Where a string of JSON may be cut.

/// The last place at or before `start + bytes_max` where the inside of a checked string can be cut:
/// not in a character, an escape or a pair of surrogates.
pub(super) fn prefix_end(text: &str, start: usize, end: usize, bytes_max: usize) -> usize {
    let mut limit = start.saturating_add(bytes_max).min(end);
    while !text.is_char_boundary(limit) {
        limit -= 1;
    }
    let bytes = text.as_bytes();
    let mut at = start;
    while let Some(found) = bytes.get(at..limit).and_then(|rest| memchr::memchr(b'\\', rest)) {
        let escape = at + found;
        at = escape + escape_bytes(bytes, escape);
        if at > limit {
            return escape;
        }
    }
    limit
}

/// The end of the first character or escape.
pub(super) fn first_end(text: &str, start: usize) -> usize {
    match text.get(start..).and_then(|rest| rest.chars().next()) {
        Some('\\') => start + escape_bytes(text.as_bytes(), start),
        Some(character) => start + character.len_utf8(),
        None => start,
    }
}

/// How long the escape is that starts at the backslash; a pair of surrogates is one.
fn escape_bytes(bytes: &[u8], at: usize) -> usize {
    if bytes.get(at + 1) != Some(&b'u') {
        return 2;
    }
    let unit = bytes.get(at + 2..at + 4).unwrap_or_default();
    let is_leading = matches!(unit, [b'd' | b'D', b'8' | b'9' | b'a' | b'b' | b'A' | b'B']);
    if is_leading { 12 } else { 6 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_cut_in_two() {
        let text = r"a\né\u00e9\\\uD83D\ude00z";
        let ends: Vec<usize> =
            (0..=text.len()).map(|limit| prefix_end(text, 0, text.len(), limit)).collect();
        let mut distinct = ends.clone();
        distinct.dedup();
        assert_eq!(distinct, [0, 1, 3, 5, 11, 13, 25, 26]);
        assert!(ends.iter().enumerate().all(|(limit, end)| *end <= limit));
        let mut at = 0;
        let mut steps = vec![0];
        while at < text.len() {
            at = first_end(text, at);
            steps.push(at);
        }
        assert_eq!(steps, distinct);
    }
}
