//! Where an API is, struck out of what it says: the host of its connection, and its port.
//!
//! A name of one word may be any word: it counts only where it can be nothing but a host, behind
//! the slashes of a URL or before a port.

use std::ops::Range;

/// Stands where an address stood.
const MARK: &str = "[removed]";

/// `text` without `host`, in whatever case it stands there.
pub(super) fn strike(text: String, host: &str) -> String {
    // An IPv6 address is in brackets in URLs, and may stand without them.
    let host = host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
    if host.is_empty() {
        return text;
    }
    // As long as the text: only ASCII changes.
    let lower = text.to_ascii_lowercase();
    let mut out = String::new();
    let mut done = 0;
    for (at, _) in lower.match_indices(&*host) {
        let Some(place) = place(&lower, at..at + host.len()).filter(|place| place.start >= done)
        else {
            continue;
        };
        out.push_str(&text[done..place.start]);
        out.push_str(MARK);
        done = place.end;
    }
    out.push_str(&text[done..]);
    out
}

/// What is to go where a host's name stands, if it stands for the host.
fn place(text: &str, host: Range<usize>) -> Option<Range<usize>> {
    let is_address = text[host.clone()].contains(['.', ':']);
    let (before, after) = (&text[..host.start], &text[host.end..]);
    let goes_on = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let is_part = before.bytes().next_back().is_some_and(|byte| goes_on(byte) || byte == b'.')
        || after.bytes().next().is_some_and(goes_on)
        || (after.starts_with('.') && after[1..].bytes().next().is_some_and(goes_on));
    if is_part {
        return None;
    }
    let (start, after) = match (before.ends_with('['), after.strip_prefix(']')) {
        (true, Some(after)) if text[host.clone()].contains(':') => (host.start - 1, after),
        _ => (host.start, after),
    };
    let digits = after
        .strip_prefix(':')
        .map_or(0, |port| port.bytes().take_while(u8::is_ascii_digit).take(5).count());
    let port = if digits == 0 { 0 } else { digits + 1 };
    let is_host = is_address || port > 0 || before.ends_with(['/', '@']);
    is_host.then(|| start..text.len() - after.len() + port)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_host_goes_wherever_it_can_be_nothing_else() {
        for (host, text, expected) in [
            ("127.0.0.1", "http://127.0.0.1:18190/secret", "http://[removed]/secret"),
            (
                "127.0.0.1",
                "at 127.0.0.1, 127.0.0.10, 1127.0.0.1",
                "at [removed], 127.0.0.10, 1127.0.0.1",
            ),
            (
                "db.corp",
                "DB.Corp:80. x.db.corp db.corp.example db.corp.",
                "[removed]. x.db.corp db.corp.example [removed].",
            ),
            (
                "orders",
                "orders: your orders at orders:80, http:\\/\\/orders\\/1",
                "orders: your orders at [removed], http:\\/\\/[removed]\\/1",
            ),
            ("[fd00::7]", "http://[fd00::7]:80/ or fd00::7", "http://[removed]/ or [removed]"),
            ("api", "", ""),
            ("", "é", "é"),
            ("a.b", "éa.b:é", "é[removed]:é"),
        ] {
            assert_eq!(strike(text.to_owned(), host), expected, "{host}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_taken(text in "[a.:/\\[\\]é0-9 ]{0,40}", host in "[a.:\\[\\]0-9]{0,6}") {
            strike(text, &host);
        }
    }
}
