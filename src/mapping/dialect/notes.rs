//! What a dialect has no words for, in the description.

use serde_json::Value;

use super::read::Form;

/// How much of one value a note shows, in characters.
const SHOWN_CHARS_MAX: usize = 120;

/// The description with a note of every word that `says` does not say.
pub(super) fn description(form: &Form, says: impl Fn(&str) -> bool) -> Option<String> {
    let mut notes = Vec::new();
    let mut note = |name: &str, value: &Value| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let shown: String = text.chars().take(SHOWN_CHARS_MAX).collect();
        let cut = if shown.len() < text.len() { "…" } else { "" };
        notes.push(format!("{name}: {shown}{cut}"));
    };
    for (word, value) in form.words.iter().filter(|(word, _)| !says(word)) {
        note(&in_words(word), value);
    }
    if let Some(default) = form.default.as_ref().filter(|_| !says("default")) {
        note("default", default);
    }
    let blank = if form.description.is_empty() || notes.is_empty() { "" } else { " " };
    let notes = if notes.is_empty() { String::new() } else { format!("({})", notes.join("; ")) };
    let text = format!("{}{blank}{notes}", form.description);
    Some(text).filter(|text| !text.is_empty())
}

/// `minItems` as `min items`.
fn in_words(word: &str) -> String {
    let mut out = String::new();
    for character in word.chars() {
        if character.is_ascii_uppercase() {
            out.push(' ');
        }
        out.push(character.to_ascii_lowercase());
    }
    out
}
