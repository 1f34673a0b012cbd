//! From the bytes of a document to its text.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};
use memchr::memmem;

use super::{XmlError, shortened};

/// How far the end of an XML declaration is looked for.
const DECLARATION_BYTES_MAX: usize = 512;

/// The text of a document, without byte order mark. UTF-8 is not copied.
///
/// The encoding is that of the byte order mark, else `charset` (of the content type it came with),
/// else what the XML declaration says, else UTF-8 (RFC 7303 section 3). Labels are read as the
/// Encoding Standard does: ISO-8859-1 is its superset windows-1252. A declaration that says UTF-16
/// although it is itself written in single bytes is not believed: programs write it into strings
/// that they then send as UTF-8.
///
/// # Errors
///
/// [`XmlError::UnknownEncoding`], [`XmlError::NotInEncoding`].
pub fn decode<'a>(bytes: &'a [u8], charset: Option<&str>) -> Result<Cow<'a, str>, XmlError> {
    let (encoding, bytes) = match Encoding::for_bom(bytes) {
        Some((encoding, length)) => (encoding, bytes.get(length..).unwrap_or_default()),
        None => (of_content(bytes, charset)?, bytes),
    };
    if encoding == UTF_8 {
        let text = std::str::from_utf8(bytes);
        return text.map(Cow::Borrowed).map_err(|_| XmlError::NotInEncoding { name: "UTF-8" });
    }
    encoding
        .decode_without_bom_handling_and_without_replacement(bytes)
        .ok_or(XmlError::NotInEncoding { name: encoding.name() })
}

fn of_content(bytes: &[u8], charset: Option<&str>) -> Result<&'static Encoding, XmlError> {
    // Without a byte order mark the first character tells the width (XML 1.0, appendix F).
    let width = match bytes {
        [b'<', 0, ..] => Some(UTF_16LE),
        [0, b'<', ..] => Some(UTF_16BE),
        _ => None,
    };
    if let Some(label) = charset {
        let said = of_label(label)?;
        return Ok(if is_wide(said) { width.unwrap_or(said) } else { said });
    }
    if let Some(encoding) = width {
        return Ok(encoding);
    }
    let Some(label) = declared(bytes) else { return Ok(UTF_8) };
    let said = of_label(&label)?;
    Ok(if is_wide(said) { UTF_8 } else { said })
}

fn is_wide(encoding: &'static Encoding) -> bool {
    encoding == UTF_16LE || encoding == UTF_16BE
}

fn of_label(label: &str) -> Result<&'static Encoding, XmlError> {
    let label = label.trim().trim_matches(['"', '\'']);
    Encoding::for_label_no_replacement(label.as_bytes())
        .ok_or_else(|| XmlError::UnknownEncoding { name: shortened(label) })
}

/// What `<?xml version="1.0" encoding="…"?>` says.
fn declared(bytes: &[u8]) -> Option<Cow<'_, str>> {
    let head = bytes.strip_prefix(b"<?xml")?;
    let head = head.get(..DECLARATION_BYTES_MAX).unwrap_or(head);
    let head = head.get(..memmem::find(head, b"?>")?)?;
    let rest = head.get(memmem::find(head, b"encoding")? + b"encoding".len()..)?;
    let rest = rest.trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let (quote, rest) = rest.split_first()?;
    let end = memchr::memchr(*quote, rest)?;
    matches!(quote, b'"' | b'\'').then(|| String::from_utf8_lossy(rest.get(..end).unwrap_or(rest)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utf16(text: &str, is_big: bool) -> Vec<u8> {
        let units = text.encode_utf16();
        units
            .flat_map(|unit| if is_big { unit.to_be_bytes() } else { unit.to_le_bytes() })
            .collect()
    }

    #[test]
    fn encodings_are_told_by_mark_charset_and_declaration() {
        let latin = b"<?xml version='1.0' encoding='ISO-8859-1'?><a>\xe9</a>";
        let plain = b"<a>\xe9</a>";
        assert!(decode(latin, None).unwrap().ends_with("<a>é</a>"));
        assert_eq!(decode(plain, Some("iso-8859-1")).unwrap(), "<a>é</a>");
        assert_eq!(decode(plain, None), Err(XmlError::NotInEncoding { name: "UTF-8" }));
        // The content type stands above the declaration.
        assert!(decode(latin, Some("utf-8")).is_err());
        let declared = "<?xml version=\"1.0\" encoding = \"utf-16\" ?><a>é</a>";
        for is_big in [true, false] {
            let wide = utf16(declared, is_big);
            assert_eq!(decode(&wide, None).unwrap(), declared);
            assert_eq!(decode(&wide, Some("utf-16")).unwrap(), declared);
            let mark = utf16("\u{feff}", is_big);
            assert_eq!(decode(&[mark, wide].concat(), Some("latin1")).unwrap(), declared);
        }
        assert_eq!(decode(declared.as_bytes(), None).unwrap(), declared);
        assert_eq!(decode("\u{feff}<é/>".as_bytes(), None).unwrap(), "<é/>");
        assert!(matches!(decode("<é/>".as_bytes(), None), Ok(Cow::Borrowed("<é/>"))));
        let japanese = b"<?xml version='1.0' encoding='Shift_JIS'?><a>\x93\xfa</a>";
        assert!(decode(japanese, None).unwrap().ends_with("<a>日</a>"));
    }

    #[test]
    fn unknown_and_broken_encodings_are_errors() {
        let unknown = b"<?xml version='1.0' encoding='klingon'?><a/>";
        let error = decode(unknown, None).unwrap_err();
        assert_eq!(error, XmlError::UnknownEncoding { name: "klingon".into() });
        // Readers must not be made to take one encoding for another.
        assert!(decode(b"<a/>", Some("iso-2022-kr")).is_err());
        assert!(decode(&[b'<', 0, b'a', 0, b'/', 0, b'>'], None).is_err());
        assert_eq!(decode(b"", None).unwrap(), "");
        assert_eq!(decode(b"<?xml encoding='utf-8", None).unwrap(), "<?xml encoding='utf-8");
    }
}
