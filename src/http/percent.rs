//! Taking percent-encoding off path segments and query pairs.

use std::borrow::Cow;

/// Decodes one segment of a path. `None` where an escape is malformed, or where the bytes are no
/// text or hold NUL: such a segment names nothing here.
pub fn decode_segment(segment: &str) -> Option<Cow<'_, str>> {
    let decoded = if segment.contains('%') {
        Cow::Owned(String::from_utf8(decode(segment, false)?).ok()?)
    } else {
        Cow::Borrowed(segment)
    };
    (!decoded.contains('\0')).then_some(decoded)
}

/// The pairs of a query, decoded as a form is: `+` stands for a space, a name without `=` has an
/// empty value. Malformed escapes stay as they are and broken text is replaced: a query is never
/// refused.
pub fn query_pairs(query: &str) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> {
    query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decode_form(name), decode_form(value))
    })
}

fn decode_form(text: &str) -> Cow<'_, str> {
    if !text.contains(['%', '+']) {
        return Cow::Borrowed(text);
    }
    let bytes = decode(text, true).unwrap_or_else(|| text.as_bytes().to_vec());
    Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())
}

/// Decodes escapes. In a form, `+` is a space and a malformed escape is itself; elsewhere it is
/// `None`.
fn decode(text: &str, is_form: bool) -> Option<Vec<u8>> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        match (byte, behind) {
            (b'%', [high, low, ..]) if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                decoded.push(nibble(*high) << 4 | nibble(*low));
                rest = &behind[2..];
            }
            (b'%', _) if !is_form => return None,
            (b'+', _) if is_form => decoded.push(b' '),
            _ => decoded.push(byte),
        }
    }
    Some(decoded)
}

/// The value of a hexadecimal digit.
fn nibble(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn decodes_segments() {
        let cases = [
            ("", Some("")),
            ("acme", Some("acme")),
            ("a%20b", Some("a b")),
            ("%2Fetc%2fpasswd", Some("/etc/passwd")),
            ("a+b", Some("a+b")),
            ("%C3%BC", Some("ü")),
            ("%", None),
            ("a%2", None),
            ("%zz", None),
            ("%+1", None),
            ("%ff", None),
            ("a%00", None),
        ];
        for (text, expected) in cases {
            assert_eq!(decode_segment(text).as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn decodes_queries() {
        let pairs: Vec<(String, String)> =
            query_pairs("sessionId=a%2Db&&x=1+2&flag&=v&bad=%zz%4&same=a=b&u=%ff")
                .map(|(name, value)| (name.into_owned(), value.into_owned()))
                .collect();
        let expected = [
            ("sessionId", "a-b"),
            ("x", "1 2"),
            ("flag", ""),
            ("", "v"),
            ("bad", "%zz%4"),
            ("same", "a=b"),
            ("u", "\u{fffd}"),
        ];
        let expected: Vec<(String, String)> =
            expected.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        assert_eq!(pairs, expected);
    }

    proptest! {
        #[test]
        fn any_text_is_read_and_encoded_text_comes_back(text in any::<String>()) {
            let pairs = text.split('&').filter(|pair| !pair.is_empty()).count();
            prop_assert_eq!(query_pairs(&text).count(), pairs);
            let escapes: Vec<String> = text.bytes().map(|byte| format!("%{byte:02x}")).collect();
            let encoded = escapes.concat();
            let decoded = decode_segment(&encoded);
            prop_assert_eq!(decoded.as_deref(), (!text.contains('\0')).then_some(text.as_str()));
        }
    }
}
