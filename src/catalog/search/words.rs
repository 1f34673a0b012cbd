//! From text to the words that are compared: names come apart at their seams, case and accents
//! go, and a plural is its singular.

/// Longest word, in bytes; what is longer is cut.
const WORD_BYTES_MAX: usize = 48;

/// Which words are given of one that came apart, such as `getOrder`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compounds {
    /// Its parts.
    Parts,
    /// Its parts, and after them the whole: for what is found by either.
    PartsAndWhole,
}

/// Gives every word of `text`, in order.
///
/// `get_invoiceLines`, `get-invoice-lines` and `GETInvoiceLines` are all `get`, `invoice`, `line`.
/// Scripts without spaces between words give each letter.
pub(super) fn for_each_word(text: &str, compounds: Compounds, mut each: impl FnMut(&str)) {
    let mut word = Word::default();
    let mut whole = Word::default();
    let mut parts = 0;
    let mut before = Seam::Start;
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        if is_mark(letter) {
            continue;
        }
        if !letter.is_alphanumeric() || is_spaceless(letter) {
            finish(&mut word, &mut whole, &mut parts, compounds, &mut each);
            before = Seam::Start;
            if is_spaceless(letter) {
                word.push(letter);
                finish(&mut word, &mut whole, &mut parts, Compounds::Parts, &mut each);
            }
            continue;
        }
        let kind = if letter.is_uppercase() { Seam::Upper } else { Seam::Other };
        let is_seam = match (before, kind) {
            (Seam::Other, Seam::Upper) => true,
            // The last capital of several begins the next word: `HTTPServer`, not `URLs`.
            (Seam::Upper, Seam::Upper) => {
                let mut ahead = letters.clone();
                let (next, after) = (ahead.next(), ahead.next());
                let is_plural = next == Some('s') && !after.is_some_and(char::is_alphanumeric);
                next.is_some_and(char::is_lowercase) && !is_plural
            }
            _ => false,
        };
        if is_seam {
            parts += 1;
            word.give(&mut each);
        }
        word.push(letter);
        if compounds == Compounds::PartsAndWhole {
            whole.push(letter);
        }
        before = kind;
    }
    finish(&mut word, &mut whole, &mut parts, compounds, &mut each);
}

/// The end of a run of letters: its last part, and the whole if it came apart.
fn finish(
    word: &mut Word,
    whole: &mut Word,
    parts: &mut u32,
    compounds: Compounds,
    each: &mut impl FnMut(&str),
) {
    word.give(each);
    if *parts > 0 && compounds == Compounds::PartsAndWhole {
        whole.give(each);
    }
    whole.0.clear();
    *parts = 0;
}

/// What stood before a letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seam {
    Start,
    Upper,
    Other,
}

/// A word as it grows.
#[derive(Default)]
struct Word(String);

impl Word {
    fn push(&mut self, letter: char) {
        if self.0.len() >= WORD_BYTES_MAX {
            return;
        }
        if letter.is_ascii() {
            self.0.push(letter.to_ascii_lowercase());
            return;
        }
        match plain(letter) {
            Some(text) => self.0.push_str(text),
            None => self.0.extend(letter.to_lowercase().filter(|letter| !is_mark(*letter))),
        }
    }

    fn give(&mut self, each: &mut impl FnMut(&str)) {
        if !self.0.is_empty() {
            singular(&mut self.0);
            each(&self.0);
            self.0.clear();
        }
    }
}

/// English plurals of the regular kinds. A word that only looks like one loses its `s` in the
/// tools and in the query alike, so it is found all the same.
fn singular(word: &mut String) {
    const ENDINGS: [(&str, &str); 9] = [
        ("ies", "y"),
        ("sses", "ss"),
        ("tuses", "tus"),
        ("shes", "sh"),
        ("ches", "ch"),
        ("xes", "x"),
        ("ss", "ss"),
        ("us", "us"),
        ("is", "is"),
    ];
    // Nearly all words end otherwise.
    if word.len() <= 3 || !word.ends_with('s') {
        return;
    }
    let ending = ENDINGS.iter().find(|(plural, _)| word.ends_with(plural));
    match ending {
        Some((plural, _)) if word.len() < plural.len() + 2 => {}
        Some((plural, singular)) => {
            word.truncate(word.len() - plural.len());
            word.push_str(singular);
        }
        None => {
            word.pop();
        }
    }
}

/// Accents written as characters of their own.
fn is_mark(letter: char) -> bool {
    matches!(letter, '\u{300}'..='\u{36f}')
}

/// Letters of scripts that put no spaces between words.
fn is_spaceless(letter: char) -> bool {
    matches!(
        letter,
        '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
            | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}'
    )
}

/// The letters of western Europe without their accents, as people type them.
fn plain(letter: char) -> Option<&'static str> {
    Some(match letter {
        'à'..='å' | 'À'..='Å' | 'ā' | 'ą' => "a",
        'ç' | 'Ç' | 'ć' | 'č' => "c",
        'è'..='ë' | 'È'..='Ë' | 'ę' | 'ě' => "e",
        'ì'..='ï' | 'Ì'..='Ï' => "i",
        'ñ' | 'Ñ' | 'ń' => "n",
        'ò'..='ö' | 'Ò'..='Ö' | 'ø' | 'Ø' => "o",
        'ù'..='ü' | 'Ù'..='Ü' | 'ů' => "u",
        'ý' | 'ÿ' | 'Ý' => "y",
        'š' | 'Š' | 'ś' => "s",
        'ž' | 'Ž' | 'ż' => "z",
        'ł' | 'Ł' => "l",
        'æ' | 'Æ' => "ae",
        'œ' | 'Œ' => "oe",
        'ß' | 'ẞ' => "ss",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words(text: &str) -> Vec<String> {
        let mut words = Vec::new();
        for_each_word(text, Compounds::Parts, |word| words.push(word.to_owned()));
        words
    }

    #[test]
    fn names_come_apart_at_their_seams() {
        let table: &[(&str, &[&str])] = &[
            ("get_invoiceLines", &["get", "invoice", "line"]),
            ("GET-invoice.lines", &["get", "invoice", "line"]),
            ("getHTTPServerByURLs", &["get", "http", "server", "by", "url"]),
            ("v2Orders ipv4", &["v2", "order", "ipv4"]),
            ("order[*].sku/{id}", &["order", "sku", "id"]),
            ("ALLCAPS", &["allcap"]),
            ("  ", &[]),
            ("", &[]),
        ];
        for (text, expected) in table {
            assert_eq!(words(text), *expected, "{text}");
        }
    }

    #[test]
    fn plurals_are_singulars() {
        for (plural, singular) in [
            ("categories", "category"),
            ("addresses", "address"),
            ("address", "address"),
            ("boxes", "box"),
            ("branches", "branch"),
            ("statuses", "status"),
            ("status", "status"),
            ("analysis", "analysis"),
            ("invoices", "invoice"),
            ("bus", "bus"),
            ("ties", "ties"),
        ] {
            assert_eq!(words(plural), [singular]);
        }
    }

    #[test]
    fn case_accents_and_scripts() {
        assert_eq!(words("Größe STRASSE Straße"), ["grosse", "strasse", "strasse"]);
        assert_eq!(words("Crème cre\u{300}me"), ["creme", "creme"]);
        assert_eq!(words("請求書list"), ["請", "求", "書", "list"]);
        assert_eq!(words("Счёт İstanbul"), ["счёт", "istanbul"]);
    }

    #[test]
    fn compounds_are_found_whole_as_well() {
        let mut words = Vec::new();
        let take = |word: &str| words.push(word.to_owned());
        for_each_word("OAuth2 plain getOrders", Compounds::PartsAndWhole, take);
        assert_eq!(words, ["o", "auth2", "oauth2", "plain", "get", "order", "getorder"]);
    }

    #[test]
    fn endless_words_are_cut() {
        let word = words(&"é".repeat(10_000)).remove(0);
        assert!(word.len() <= WORD_BYTES_MAX + 3, "{}", word.len());
    }

    proptest! {
        #[test]
        fn any_text_gives_words_that_stay_as_they_are(text in any::<String>()) {
            for word in words(&text) {
                prop_assert!(!word.is_empty() && word.len() <= WORD_BYTES_MAX + 12);
                prop_assert!(!word.chars().any(char::is_whitespace));
            }
        }
    }
}
