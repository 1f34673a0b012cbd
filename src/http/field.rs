//! Names of header fields: which are well-formed, and which are nobody's but the writer's of the
//! message.

/// Whether `byte` may stand in a token: a method or a field name (RFC 9110 section 5.6.2).
#[inline]
pub const fn is_token_byte(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z'
        | b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.' | b'^' | b'_'
        | b'`' | b'|' | b'~')
}

/// Whether `name` may name a field.
pub fn is_field_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(is_token_byte)
}

/// Whether the field says where messages and connections end, or whom they are for: RFC 9110
/// sections 7.2 and 7.6.1, RFC 9112 section 6. Whoever writes the message sets it, nobody else may.
pub fn is_framing(name: &str) -> bool {
    const FRAMING: [&str; 11] = [
        "host",
        "content-length",
        "transfer-encoding",
        "connection",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "upgrade",
        "expect",
        "http2-settings",
    ];
    FRAMING.iter().any(|other| other.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_tokens() {
        for name in ["a", "X-Api-Key", "!#$%&'*+-.^_`|~09"] {
            assert!(is_field_name(name), "{name}");
        }
        for name in ["", "a b", "a:", "é", "a\r", "(a)", "a/b"] {
            assert!(!is_field_name(name), "{name}");
        }
    }

    #[test]
    fn framing_is_known_in_any_case() {
        assert!(is_framing("Host") && is_framing("TRANSFER-encoding") && is_framing("te"));
        assert!(!is_framing("hos") && !is_framing("authorization") && !is_framing(""));
    }
}
