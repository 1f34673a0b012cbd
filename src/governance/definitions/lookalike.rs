//! Names that people take for one another.

/// What a name looks like: names with the same look differ by case or by letters of other alphabets
/// only.
pub(super) fn look(name: &str) -> String {
    name.chars().filter_map(letter).flat_map(char::to_lowercase).filter_map(letter).collect()
}

/// The Latin letter or the digit that a character looks like.
fn letter(character: char) -> Option<char> {
    Some(match character {
        // Fullwidth forms.
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(character as u32 - 0xfee0).unwrap_or(character),
        '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}' | '\u{ad}' => return None,
        'а' | 'α' => 'a',
        'ь' => 'b',
        'с' | 'ϲ' => 'c',
        'ԁ' => 'd',
        'е' | 'ё' => 'e',
        'ɡ' => 'g',
        'һ' => 'h',
        'і' | 'ι' | 'ı' => 'i',
        'ј' => 'j',
        'к' | 'κ' => 'k',
        'ӏ' => 'l',
        'м' => 'm',
        'ո' => 'n',
        'о' | 'ο' | 'օ' | '0' => 'o',
        'р' | 'ρ' => 'p',
        'ԛ' => 'q',
        'г' => 'r',
        'ѕ' => 's',
        'т' | 'τ' => 't',
        'υ' | 'ս' => 'u',
        'ν' | 'ѵ' => 'v',
        'ѡ' | 'ԝ' => 'w',
        'х' | 'χ' => 'x',
        'у' | 'γ' => 'y',
        'ᴢ' => 'z',
        '1' | 'I' => 'l',
        '-' | '‐' | '‑' | '–' | '.' | '˗' => '_',
        other => other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_look_alike_across_case_and_alphabets() {
        for (one, other) in [
            ("read_file", "Read_File"),
            ("read_file", "read-file"),
            ("search", "sеarсh"),
            ("search", "ѕearch"),
            ("search", "ｓｅａｒｃｈ"),
            ("search", "sea\u{200b}rch"),
            ("list_all", "1ist_all"),
            ("copy", "СОРУ"),
        ] {
            assert_eq!(look(one), look(other), "{one} {other}");
        }
        assert_ne!(look("search"), look("searches"));
        assert_ne!(look("read_file"), look("read_files"));
    }
}
