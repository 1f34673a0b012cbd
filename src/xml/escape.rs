//! Characters and names of XML 1.0.

use super::{XmlError, shortened};

/// What a byte may need.
const PLAIN: u8 = 0;
/// A reference in texts and attributes.
const REFERENCE: u8 = 1;
/// A reference in attributes only.
const IN_ATTRIBUTE: u8 = 2;
/// It is no character of XML, or the first byte of what may be none.
const SUSPECT: u8 = 3;

const CLASSES: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut classes = [PLAIN; 256];
    let mut byte = 0;
    while byte < 0x20 {
        classes[byte] = SUSPECT;
        byte += 1;
    }
    classes[b'\t' as usize] = IN_ATTRIBUTE;
    classes[b'\n' as usize] = IN_ATTRIBUTE;
    classes[b'"' as usize] = IN_ATTRIBUTE;
    // Readers make a line feed of a carriage return that is written as it is.
    classes[b'\r' as usize] = REFERENCE;
    classes[b'&' as usize] = REFERENCE;
    classes[b'<' as usize] = REFERENCE;
    // `]]>` must not stand in a text.
    classes[b'>' as usize] = REFERENCE;
    // U+FFFE and U+FFFF are the only others that XML does not have.
    classes[0xef] = SUSPECT;
    classes
}

/// Writes a text between tags.
///
/// # Errors
///
/// [`XmlError::Character`]; what was written before it stays.
pub fn escape_text(text: &str, out: &mut String) -> Result<(), XmlError> {
    escape(text, out, false)
}

/// Writes the value of an attribute, for double quotes around it.
///
/// # Errors
///
/// [`XmlError::Character`]; what was written before it stays.
pub fn escape_attribute(value: &str, out: &mut String) -> Result<(), XmlError> {
    escape(value, out, true)
}

fn escape(text: &str, out: &mut String, in_attribute: bool) -> Result<(), XmlError> {
    out.reserve(text.len());
    let mut written = 0;
    for (at, byte) in text.bytes().enumerate() {
        let class = CLASSES.get(usize::from(byte)).copied().unwrap_or(PLAIN);
        if class == PLAIN || (class == IN_ATTRIBUTE && !in_attribute) {
            continue;
        }
        if class == SUSPECT {
            let character = text.get(at..).and_then(|rest| rest.chars().next());
            match character {
                Some(character) if !is_character(character) => {
                    return Err(XmlError::Character { code: character.into() });
                }
                _ => continue,
            }
        }
        out.push_str(text.get(written..at).unwrap_or_default());
        out.push_str(match byte {
            b'&' => "&amp;",
            b'<' => "&lt;",
            b'>' => "&gt;",
            b'"' => "&quot;",
            b'\t' => "&#9;",
            b'\n' => "&#10;",
            _ => "&#13;",
        });
        written = at + 1;
    }
    out.push_str(text.get(written..).unwrap_or_default());
    Ok(())
}

/// `Char` of XML 1.0, section 2.2.
fn is_character(character: char) -> bool {
    match character {
        '\t' | '\n' | '\r' => true,
        '\u{fffe}' | '\u{ffff}' => false,
        other => other >= ' ',
    }
}

/// Whether a text is a name without prefix: `NCName` of Namespaces in XML 1.0.
pub fn is_name(text: &str) -> bool {
    let mut characters = text.chars();
    characters.next().is_some_and(starts_name) && characters.all(continues_name)
}

fn starts_name(character: char) -> bool {
    matches!(character,
        'A'..='Z' | 'a'..='z' | '_' | '\u{c0}'..='\u{d6}' | '\u{d8}'..='\u{f6}'
        | '\u{f8}'..='\u{2ff}' | '\u{370}'..='\u{37d}' | '\u{37f}'..='\u{1fff}'
        | '\u{200c}'..='\u{200d}' | '\u{2070}'..='\u{218f}' | '\u{2c00}'..='\u{2fef}'
        | '\u{3001}'..='\u{d7ff}' | '\u{f900}'..='\u{fdcf}' | '\u{fdf0}'..='\u{fffd}'
        | '\u{10000}'..='\u{effff}')
}

fn continues_name(character: char) -> bool {
    starts_name(character)
        || matches!(character,
            '-' | '.' | '0'..='9' | '\u{b7}' | '\u{300}'..='\u{36f}' | '\u{203f}'..='\u{2040}')
}

pub(super) fn check_name(name: &str) -> Result<(), XmlError> {
    if is_name(name) { Ok(()) } else { Err(XmlError::Name { name: shortened(name) }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_attributes_are_escaped() {
        let written = |in_attribute: bool, text: &str| {
            let mut out = String::new();
            escape(text, &mut out, in_attribute).map(|()| out)
        };
        let hostile = "a<b>&\"'\r\n\t]]>é\u{ffed}\u{1f600}\u{7f}";
        assert_eq!(
            written(false, hostile).unwrap(),
            "a&lt;b&gt;&amp;\"'&#13;\n\t]]&gt;é\u{ffed}\u{1f600}\u{7f}"
        );
        assert_eq!(
            written(true, hostile).unwrap(),
            "a&lt;b&gt;&amp;&quot;'&#13;&#10;&#9;]]&gt;é\u{ffed}\u{1f600}\u{7f}"
        );
        for (text, code) in [("a\0", 0), ("\u{b}", 11), ("é\u{fffe}", 0xfffe), ("\u{ffff}", 0xffff)]
        {
            assert_eq!(written(false, text), Err(XmlError::Character { code }));
        }
    }

    #[test]
    fn names_are_told_from_texts() {
        for name in ["a", "_1", "Größe", "a-b.c", "日本"] {
            assert!(is_name(name), "{name}");
        }
        for text in ["", "1a", "-a", "a:b", "a b", "a>", "\u{d7}"] {
            assert!(!is_name(text), "{text}");
        }
    }
}
