//! Characters that a person who reads a text does not see, and a model does.
//!
//! Some of them are part of how people write: emoji are joined and styled with them, and so are
//! words of some scripts. Where they are, they are no finding.

use std::fmt::Write as _;

/// What kind of character a text hides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hidden {
    /// Of no width: zero width spaces and joiners, word joiners, soft hyphens, fillers.
    ZeroWidth,
    /// Turns the direction of text, so that it reads otherwise than it is.
    BidiControl,
    /// A tag character: a copy of ASCII that nobody sees (U+E0000 to U+E007F).
    Tag,
    /// A variation selector that selects nothing; rows of them can carry any bytes.
    VariationSelector,
    /// The beginning of a terminal's escape sequence.
    Escape,
    /// Any other control character.
    Control,
}

impl Hidden {
    /// As it is named to operators.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ZeroWidth => "zero_width",
            Self::BidiControl => "bidi_control",
            Self::Tag => "tag_character",
            Self::VariationSelector => "variation_selector",
            Self::Escape => "escape_sequence",
            Self::Control => "control_character",
        }
    }

    /// What `character` is, whatever stands around it.
    fn of(character: char) -> Option<Self> {
        Some(match character {
            '\t' | '\n' | '\r' => return None,
            '\u{1b}' | '\u{9b}' => Self::Escape,
            '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' => Self::Control,
            '\u{ad}'
            | '\u{34f}'
            | '\u{115f}'
            | '\u{1160}'
            | '\u{17b4}'
            | '\u{17b5}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200d}'
            | '\u{2060}'..='\u{2065}'
            | '\u{206a}'..='\u{206f}'
            | '\u{3164}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}' => Self::ZeroWidth,
            '\u{61c}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}' => Self::BidiControl,
            '\u{2028}' | '\u{2029}' => Self::Control,
            '\u{e0000}'..='\u{e007f}' => Self::Tag,
            '\u{180b}'..='\u{180d}'
            | '\u{180f}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{e0100}'..='\u{e01ef}' => Self::VariationSelector,
            _ => return None,
        })
    }
}

/// Every hidden character of a text that is no part of how people write, with its place in
/// characters.
pub(super) fn hidden(text: &str) -> impl Iterator<Item = (usize, char, Hidden)> + '_ {
    let has_right_to_left = text.chars().any(is_right_to_left);
    let mut before = ['\0'; 2];
    let mut flag = Flag::None;
    let mut rest = text.chars().enumerate();
    std::iter::from_fn(move || {
        while let Some((place, character)) = rest.next() {
            let after = rest.clone().next().map_or('\0', |(_, character)| character);
            let is_in_flag = flag.take(character, &rest);
            let found = Hidden::of(character).filter(|hidden| !match hidden {
                Hidden::Tag => is_in_flag,
                Hidden::BidiControl => is_mark(character) && has_right_to_left,
                Hidden::ZeroWidth => joins(character, before[1], after),
                Hidden::VariationSelector => selects(character, before[1]),
                Hidden::Escape | Hidden::Control => false,
            });
            before = [before[1], character];
            if let Some(hidden) = found {
                return Some((place, character, hidden));
            }
        }
        None
    })
}

/// A text as it can be shown: hidden characters, and all others that could take part in a trick with
/// a terminal, are written as escapes.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut hiding = hidden(text).map(|(place, ..)| place).peekable();
    for (place, character) in text.chars().enumerate() {
        if hiding.next_if_eq(&place).is_some() {
            // Writing into a String does not fail.
            let _ = write!(shown, "\\u{{{:x}}}", character as u32);
        } else {
            shown.push(character);
        }
    }
    shown
}

/// Whether the flag of a part of a country is being written: a black flag, the letters of its code as
/// tag characters, and their end.
#[derive(Clone, Copy)]
enum Flag {
    None,
    /// So many tag characters are still part of it.
    Within(usize),
}

impl Flag {
    /// Longest code: two letters of the country and three of the part, and the end.
    const TAGS_MAX: usize = 6;

    fn take(&mut self, character: char, rest: &std::iter::Enumerate<std::str::Chars<'_>>) -> bool {
        if character == '\u{1f3f4}' {
            let tags = rest.clone().map(|(_, next)| next);
            let length = tags.take_while(|next| matches!(next, '\u{e0030}'..='\u{e007a}')).count();
            let end = rest.clone().nth(length).map(|(_, next)| next);
            let is_flag = (4..Self::TAGS_MAX).contains(&length) && end == Some('\u{e007f}');
            *self = if is_flag { Self::Within(length + 1) } else { Self::None };
            return false;
        }
        match *self {
            Self::Within(left) if left > 0 => {
                *self = Self::Within(left - 1);
                true
            }
            _ => false,
        }
    }
}

/// Marks of direction, which right-to-left texts need between words.
fn is_mark(character: char) -> bool {
    matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}')
}

fn is_right_to_left(character: char) -> bool {
    matches!(
        character,
        '\u{590}'..='\u{61b}' | '\u{61d}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefe}'
    )
}

/// Whether a joiner joins: two emoji, or letters of a script whose letters change where they meet.
fn joins(joiner: char, before: char, after: char) -> bool {
    let is_joined = |character: char| {
        matches!(
            character,
            '\u{600}'..='\u{61b}' | '\u{61d}'..='\u{8ff}' | '\u{900}'..='\u{dff}'
            | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17b3}' | '\u{1800}'..='\u{180a}'
            | '\u{1820}'..='\u{18af}' | '\u{fb50}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}'
        )
    };
    match joiner {
        '\u{200d}'
            if is_pictograph(before)
                || matches!(before, '\u{fe0f}' | '\u{1f3fb}'..='\u{1f3ff}') =>
        {
            is_pictograph(after)
        }
        '\u{200c}' | '\u{200d}' => is_joined(before),
        _ => false,
    }
}

/// Whether a selector stands behind something that it can select the look of.
fn selects(selector: char, before: char) -> bool {
    match selector {
        // Text or emoji: of pictographs, and of digits and signs on keys.
        '\u{fe0e}' | '\u{fe0f}' => is_pictograph(before) || matches!(before, '0'..='9' | '#' | '*'),
        '\u{e0100}'..='\u{e01ef}' | '\u{fe00}'..='\u{fe02}' => is_ideograph(before),
        '\u{180b}'..='\u{180d}' | '\u{180f}' => matches!(before, '\u{1820}'..='\u{18aa}'),
        _ => false,
    }
}

/// A sign that is drawn as a picture somewhere.
fn is_pictograph(character: char) -> bool {
    matches!(
        character,
        '\u{a9}' | '\u{ae}' | '\u{203c}' | '\u{2049}' | '\u{2122}' | '\u{2139}'
        | '\u{2190}'..='\u{21ff}' | '\u{2300}'..='\u{23ff}' | '\u{24c2}' | '\u{25a0}'..='\u{27bf}'
        | '\u{2934}' | '\u{2935}' | '\u{2b00}'..='\u{2bff}' | '\u{3030}' | '\u{303d}' | '\u{3297}'
        | '\u{3299}' | '\u{1f000}'..='\u{1faff}'
    )
}

fn is_ideograph(character: char) -> bool {
    matches!(
        character,
        '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{323af}'
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn kinds(text: &str) -> Vec<Hidden> {
        hidden(text).map(|(_, _, hidden)| hidden).collect()
    }

    #[test]
    fn what_nobody_sees_is_found() {
        for (text, expected) in [
            ("a\u{200b}b", Hidden::ZeroWidth),
            ("a\u{200d}b", Hidden::ZeroWidth),
            ("soft\u{ad}hyphen", Hidden::ZeroWidth),
            ("\u{feff}begin", Hidden::ZeroWidth),
            ("\u{3164}", Hidden::ZeroWidth),
            ("read \u{202e}txt.exe", Hidden::BidiControl),
            ("\u{2066}x", Hidden::BidiControl),
            ("plain\u{200e}text", Hidden::BidiControl),
            ("x\u{e0041}", Hidden::Tag),
            ("a\u{fe0f}", Hidden::VariationSelector),
            ("a\u{e0100}", Hidden::VariationSelector),
            ("\u{1b}[8m", Hidden::Escape),
            ("\u{9b}8m", Hidden::Escape),
            ("bell\u{7}", Hidden::Control),
            ("line\u{2028}line", Hidden::Control),
        ] {
            assert_eq!(kinds(text), [expected], "{text:?}");
        }
    }

    #[test]
    fn what_people_write_is_no_finding() {
        for text in [
            "Plain text,\n\twith lines.\r\n",
            "⚠\u{fe0f} Deletes everything",
            "👩\u{200d}💻 writes, 👩🏽\u{200d}🚀 flies, 1\u{fe0f}\u{20e3}",
            "🏳\u{fe0f}\u{200d}🌈",
            "🏴\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f} Scotland",
            "می\u{200c}خواهم",
            "क\u{94d}\u{200d}ष",
            "שלום\u{200f}!",
            "葛\u{e0100}城",
            "naïve — “quotes” … ≤ 5 €",
        ] {
            assert_eq!(kinds(text), [], "{text:?}");
            assert_eq!(visible(text), text);
        }
    }

    #[test]
    fn rows_of_signs_are_no_way_to_hide() {
        // Text behind a flag that is none, selectors behind selectors, joiners behind joiners.
        let tagged: String =
            "ignore".chars().map(|c| char::from_u32(0xe0000 + c as u32).unwrap()).collect();
        assert_eq!(kinds(&format!("🏴{tagged}\u{e007f}")).len(), 7);
        assert_eq!(
            kinds(&format!("🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}{tagged}"))
                .len(),
            6
        );
        assert_eq!(kinds("⚠\u{fe0f}\u{fe0e}\u{fe0f}").len(), 2);
        assert_eq!(kinds("葛\u{e0100}\u{e0101}\u{e0102}").len(), 2);
        assert_eq!(kinds("👩\u{200d}\u{200d}💻").len(), 2);
    }

    #[test]
    fn hidden_characters_are_shown_as_escapes() {
        assert_eq!(visible("a\u{200b}b\u{1b}[8m"), "a\\u{200b}b\\u{1b}[8m");
    }

    proptest! {
        #[test]
        fn what_is_shown_hides_nothing(text: String) {
            // An escape may leave a sign beside another one than before; a second look finds that.
            let shown = visible(&text);
            for (_, character, _) in hidden(&shown) {
                prop_assert!(text.contains(character));
                prop_assert!(!character.is_control());
            }
        }

        #[test]
        fn ascii_hides_nothing_but_controls(text in "[ -~\\n\\t]*") {
            prop_assert_eq!(kinds(&text), []);
        }
    }
}
