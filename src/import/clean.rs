//! Texts of a description as people and models may be shown them: bounded, and without characters
//! that nobody sees but a model reads.

/// Longest description of a tool, in characters.
pub(super) const TOOL_TEXT_MAX: usize = 2_000;
/// Longest description of one field, in characters.
pub(super) const FIELD_TEXT_MAX: usize = 600;
/// Longest title, in characters.
pub(super) const TITLE_MAX: usize = 120;
/// Longest piece of a description that a message quotes, in characters.
const QUOTED_MAX: usize = 80;

/// Control characters, marks of direction, and what has no width.
fn is_hidden(character: char) -> bool {
    match character {
        '\n' => false,
        '\u{ad}'
        | '\u{61c}'
        | '\u{180e}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e0fff}' => true,
        other => other.is_control(),
    }
}

/// A text of several lines.
pub(super) fn lines(text: &str, characters_max: usize) -> String {
    let text = beginning(text, characters_max).replace("\r\n", "\n").replace('\t', " ");
    let kept: String = text.chars().filter(|character| !is_hidden(*character)).collect();
    bounded(kept.trim(), characters_max)
}

/// A text of one line.
pub(super) fn line(text: &str, characters_max: usize) -> String {
    let words: Vec<&str> = beginning(text, characters_max).split_whitespace().collect();
    let kept: String = words.join(" ").chars().filter(|character| !is_hidden(*character)).collect();
    bounded(kept.trim(), characters_max)
}

/// A piece of the description inside a message.
pub(super) fn quoted(text: &str) -> String {
    format!("`{}`", line(text, QUOTED_MAX))
}

/// As much as is needed of a text that may be megabytes long.
fn beginning(text: &str, characters_max: usize) -> &str {
    let end = text.char_indices().nth(characters_max.saturating_mul(4));
    end.and_then(|(end, _)| text.get(..end)).unwrap_or(text)
}

fn bounded(text: &str, characters_max: usize) -> String {
    match text.char_indices().nth(characters_max) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_sees_is_gone() {
        assert_eq!(lines(" a\r\nb\tc\u{0}\u{200b}\u{202e}d\u{e0041} ", 100), "a\nb cd");
        assert_eq!(line(" a\n\tb  c\u{7f} ", 100), "a b c");
        assert_eq!(line("ääää", 2), "ää…");
        assert_eq!(line(&"x".repeat(100_000), 10).chars().count(), 11);
        assert_eq!(lines("Größe 日本", 7), "Größe 日…");
        assert_eq!(quoted(&"x".repeat(100)).chars().count(), QUOTED_MAX + 3);
    }
}
