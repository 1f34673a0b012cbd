//! Comparing where a request says it comes from with where it is allowed to come from.
//!
//! Origins are compared as scheme, host and port (RFC 6454 section 4), with case and default ports
//! out of the way. Nothing here decides; `server` holds the allowed list.

use std::net::{Ipv4Addr, Ipv6Addr};

/// A host and an optional port, as in a Host field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostPort<'a> {
    /// Name or address as it was sent; an IPv6 address keeps its brackets.
    pub host: &'a str,
    /// The port, where one was given.
    pub port: Option<u16>,
}

impl HostPort<'_> {
    /// Whether the host is this machine: `localhost` or a loopback address. A Host guard against
    /// DNS rebinding asks this on loopback listeners.
    pub fn is_loopback(&self) -> bool {
        let host = self.host;
        host.eq_ignore_ascii_case("localhost")
            || host.parse().is_ok_and(|address: Ipv4Addr| address.is_loopback())
            || ipv6(host).is_some_and(|address| address.is_loopback())
    }

    /// Whether two hosts are the same, ports aside.
    pub fn is_same_host(&self, other: &HostPort<'_>) -> bool {
        same_host(self.host, other.host)
    }
}

/// The value of an Origin field.
#[derive(Debug, Clone, Copy)]
pub enum Origin<'a> {
    /// `null`: a sandboxed page, a file, a redirect across origins.
    Null,
    /// Scheme, host and port.
    Tuple {
        /// Scheme as it was sent.
        scheme: &'a str,
        /// Host as it was sent.
        host: &'a str,
        /// Port; the scheme's own where none was given, 0 where the scheme has none.
        port: u16,
    },
}

impl<'a> Origin<'a> {
    /// Reads an Origin field, or an entry of an allowed list. `None` for anything that is not
    /// exactly one origin: paths, user names, lists.
    pub fn parse(value: &'a [u8]) -> Option<Self> {
        if value == b"null" {
            return Some(Self::Null);
        }
        let (scheme, authority) = std::str::from_utf8(value).ok()?.split_once("://")?;
        let is_scheme_byte = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.');
        if !scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            || !scheme.bytes().all(is_scheme_byte)
        {
            return None;
        }
        let HostPort { host, port } = host_and_port(authority.as_bytes())?;
        let port = port.unwrap_or_else(|| default_port(scheme));
        Some(Self::Tuple { scheme, host, port })
    }

    /// Whether `text` names an origin a page can have: not `null`, and nothing more than an origin.
    pub fn is_one(text: &str) -> bool {
        matches!(Origin::parse(text.as_bytes()), Some(Origin::Tuple { .. }))
    }

    /// Whether both are the same origin. `null` equals nothing, itself included.
    pub fn is_same(&self, other: &Origin<'_>) -> bool {
        match (self, other) {
            (
                Self::Tuple { scheme, host, port },
                Origin::Tuple { scheme: other_scheme, host: other_host, port: other_port },
            ) => {
                port == other_port
                    && scheme.eq_ignore_ascii_case(other_scheme)
                    && same_host(host, other_host)
            }
            _ => false,
        }
    }

    /// Whether the origin is the server itself, as far as a Host field can tell: same host and
    /// port. The scheme is not compared, for a proxy in front may have ended TLS; a Host without
    /// port stands for the default port of the origin's scheme.
    pub fn is_own(&self, host: &HostPort<'_>) -> bool {
        match self {
            Self::Null => false,
            Self::Tuple { scheme, host: own, port } => {
                same_host(own, host.host)
                    && *port == host.port.unwrap_or_else(|| default_port(scheme))
            }
        }
    }

    /// Whether an entry of an allowed list lets this origin in: the same origin, `*`, or `null`
    /// for `null`.
    pub fn is_allowed_by(&self, entry: &str) -> bool {
        if entry == "*" {
            return true;
        }
        match self {
            Self::Null => entry == "null",
            Self::Tuple { .. } => {
                Origin::parse(entry.as_bytes()).is_some_and(|allowed| self.is_same(&allowed))
            }
        }
    }
}

/// Reads `name[:port]`, the value of a Host field. Names are letters, digits and `-._~`: no user,
/// no list, no percent-encoding, which different readers would read differently.
pub fn host_and_port(value: &[u8]) -> Option<HostPort<'_>> {
    let (host, port) = split_host(value)?;
    Some(HostPort { host: std::str::from_utf8(host).ok()?, port })
}

/// Whether [`host_and_port`] reads `value`. Every request asks; only some need the parts.
pub(super) fn is_host_and_port(value: &[u8]) -> bool {
    split_host(value).is_some()
}

fn split_host(value: &[u8]) -> Option<(&[u8], Option<u16>)> {
    let end = if value.first() == Some(&b'[') {
        let end = value.iter().position(|byte| *byte == b']')? + 1;
        ipv6(std::str::from_utf8(&value[..end]).ok()?)?;
        end
    } else {
        let is_name_byte =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
        value.iter().position(|byte| !is_name_byte(*byte)).unwrap_or(value.len())
    };
    let (host, rest) = value.split_at(end);
    match rest {
        _ if host.is_empty() => None,
        [] => Some((host, None)),
        [b':', digits @ ..] => Some((host, Some(port(digits)?))),
        _ => None,
    }
}

/// A port: digits only, at least one.
fn port(digits: &[u8]) -> Option<u16> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u16, |port, byte| {
        let digit = byte.checked_sub(b'0').filter(|digit| *digit <= 9)?;
        port.checked_mul(10)?.checked_add(u16::from(digit))
    })
}

fn default_port(scheme: &str) -> u16 {
    if scheme.eq_ignore_ascii_case("https") || scheme.eq_ignore_ascii_case("wss") {
        443
    } else if scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("ws") {
        80
    } else {
        0
    }
}

fn same_host(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other) || ipv6(one).is_some_and(|one| ipv6(other) == Some(one))
}

/// A bracketed IPv6 address.
fn ipv6(host: &str) -> Option<Ipv6Addr> {
    host.strip_prefix('[')?.strip_suffix(']')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn origin(text: &str) -> Origin<'_> {
        Origin::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn reads_host_fields() {
        let good = [
            ("a", "a", None),
            ("Example.COM:8080", "Example.COM", Some(8080)),
            ("my_service:80", "my_service", Some(80)),
            ("127.0.0.1", "127.0.0.1", None),
            ("[::1]", "[::1]", None),
            ("[::1]:443", "[::1]", Some(443)),
        ];
        for (text, host, port) in good {
            assert_eq!(host_and_port(text.as_bytes()), Some(HostPort { host, port }), "{text:?}");
        }
        let bad = [
            "", ":80", "a:", "a:+1", "a:65536", "a:80:80", "a,b", "a b", "user@a", "a/b", "a%2e",
            "[::1", "[::1]a", "[zz]", "::1", "é",
        ];
        for text in bad {
            assert_eq!(host_and_port(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn compares_origins() {
        let same = [
            ("https://a.test", "HTTPS://A.test:443"),
            ("http://a.test:80", "http://a.test"),
            ("http://[::1]:80", "http://[0:0:0:0:0:0:0:1]"),
            ("vscode-webview://abc", "vscode-webview://ABC"),
        ];
        for (one, other) in same {
            assert!(origin(one).is_same(&origin(other)), "{one} {other}");
            assert!(origin(one).is_allowed_by(other), "{one} {other}");
        }
        let different = [
            ("https://a.test", "http://a.test"),
            ("https://a.test", "https://a.test:8443"),
            ("https://a.test", "https://a.test.evil"),
            ("https://a.test", "https://evil-a.test"),
            ("null", "null"),
        ];
        for (one, other) in different {
            assert!(!origin(one).is_same(&origin(other)), "{one} {other}");
        }
        assert!(origin("null").is_allowed_by("null"));
        assert!(origin("null").is_allowed_by("*"));
        assert!(!origin("null").is_allowed_by("https://a.test"));
        assert!(!origin("https://a.test").is_allowed_by("https://a.test/"));
    }

    #[test]
    fn refuses_what_is_no_origin() {
        for text in [
            "",
            "a.test",
            "https://",
            "https://a.test/",
            "https://u@a.test",
            "https://a https://b",
            "NULL",
            "https://a,https://b",
            "://a",
            "1x://a",
            "https:a",
            "file:///",
        ] {
            assert!(Origin::parse(text.as_bytes()).is_none(), "{text:?}");
        }
    }

    #[test]
    fn knows_itself_and_loopback() {
        let host = |text: &'static str| host_and_port(text.as_bytes()).unwrap();
        assert!(origin("http://localhost:8420").is_own(&host("LOCALHOST:8420")));
        assert!(origin("https://a.test").is_own(&host("a.test")));
        assert!(origin("https://a.test").is_own(&host("a.test:443")));
        assert!(!origin("https://a.test").is_own(&host("a.test:8420")));
        assert!(!origin("http://evil.test:8420").is_own(&host("localhost:8420")));
        assert!(!origin("null").is_own(&host("null")));
        for text in ["localhost", "LocalHost:1", "127.0.0.1", "127.9.9.9:80", "[::1]:80"] {
            assert!(host(text).is_loopback(), "{text}");
        }
        for text in ["localhost.evil.test", "128.0.0.1", "[::2]", "127.0.0.1.evil.test"] {
            assert!(!host(text).is_loopback(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn garbage_is_read_without_harm(value in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = Origin::parse(&value);
            let _ = host_and_port(&value);
        }
    }
}
