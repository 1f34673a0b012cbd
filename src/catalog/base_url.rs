//! The URL of a connection, taken apart.

use url::{Host, Url};

/// Longest URL.
const BASE_URL_BYTES_MAX: usize = 2_048;

/// Where a connection leads.
pub(super) struct Base {
    pub(super) is_https: bool,
    pub(super) host: Box<str>,
    pub(super) port: u16,
    pub(super) authority: Box<str>,
    pub(super) path: Box<str>,
    /// With the query, as it is written.
    pub(super) target: Box<str>,
}

impl Base {
    /// Takes a URL apart.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text.len() > BASE_URL_BYTES_MAX {
            return Err(format!("longer than {BASE_URL_BYTES_MAX} bytes"));
        }
        // The parser would drop white space and control characters silently.
        if text.chars().any(|character| character.is_control() || character.is_whitespace()) {
            return Err("has white space or control characters".to_owned());
        }
        let url = Url::parse(text).map_err(|error| error.to_string())?;
        let is_https = match url.scheme() {
            "https" => true,
            "http" => false,
            _ => return Err("expected http:// or https://".to_owned()),
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err("must not carry a user or password: use `credentials`".to_owned());
        }
        if url.fragment().is_some() {
            return Err("must not have a fragment: remove `#` and what follows".to_owned());
        }
        let host = match url.host() {
            Some(Host::Domain(name)) => name.to_owned(),
            Some(Host::Ipv4(address)) => address.to_string(),
            Some(Host::Ipv6(address)) => address.to_string(),
            None => return Err("has no host".to_owned()),
        };
        let port = url.port_or_known_default().ok_or("has no port")?;
        if port == 0 {
            return Err("port 0 cannot be connected to".to_owned());
        }
        let name = url.host_str().unwrap_or_default();
        let authority = url.port().map_or_else(|| name.to_owned(), |port| format!("{name}:{port}"));
        Ok(Self {
            is_https,
            host: host.into(),
            port,
            authority: authority.into(),
            path: url.path().trim_end_matches('/').into(),
            target: target(text, &url).into(),
        })
    }
}

/// What follows the authority, as it is written. Servers may tell `/mcp` from `/mcp/`, and what
/// was escaped from what was not. Where that could not be sent, as the URL has it.
fn target(text: &str, url: &Url) -> String {
    let is_sendable = |byte: u8| byte.is_ascii_graphic() && !br#""<>\^`{|}"#.contains(&byte);
    let written = text.split_once("://").map(|(_, rest)| rest);
    let written = written.and_then(|rest| {
        let end = rest.find(['/', '?', '\\']).unwrap_or(rest.len());
        if end == 0 { None } else { rest.get(end..) }
    });
    match written {
        Some("") => "/".to_owned(),
        Some(written) if written.bytes().all(is_sendable) && written.starts_with('/') => {
            written.to_owned()
        }
        _ => url
            .query()
            .map_or_else(|| url.path().to_owned(), |query| format!("{}?{query}", url.path())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_urls_are_taken_apart() {
        let table = [
            ("http://api.example.com", (false, "api.example.com", 80, "api.example.com", "")),
            ("https://API.example.com/", (true, "api.example.com", 443, "api.example.com", "")),
            ("https://h:443/v1", (true, "h", 443, "h", "/v1")),
            ("http://h:8080/v1//", (false, "h", 8080, "h:8080", "/v1")),
            ("http://[::1]:81/a/../b", (false, "::1", 81, "[::1]:81", "/b")),
            ("http://127.1/", (false, "127.0.0.1", 80, "127.0.0.1", "")),
            (
                "http://bücher.example",
                (false, "xn--bcher-kva.example", 80, "xn--bcher-kva.example", ""),
            ),
        ];
        for (url, expected) in table {
            let Base { is_https, host, port, authority, path, .. } = Base::parse(url).unwrap();
            assert_eq!((is_https, &*host, port, &*authority, &*path), expected, "{url}");
        }
    }

    #[test]
    fn the_target_is_as_it_is_written() {
        for (url, expected) in [
            ("https://h", "/"),
            ("https://h/", "/"),
            ("https://h/mcp", "/mcp"),
            ("https://h/mcp/", "/mcp/"),
            ("https://h:8443/a/../%7Emcp//?k=a%2Fb&x", "/a/../%7Emcp//?k=a%2Fb&x"),
            ("https://h?key=1", "/?key=1"),
            ("https://[::1]:8443/mcp?", "/mcp?"),
            ("https://h/größe{x}", "/gr%C3%B6%C3%9Fe%7Bx%7D"),
            (r"https://h\mcp", "/mcp"),
            ("https:h/mcp", "/mcp"),
            ("https:///h/mcp", "/mcp"),
        ] {
            assert_eq!(&*Base::parse(url).unwrap().target, expected, "{url}");
        }
    }

    #[test]
    fn bad_urls_are_refused() {
        for (url, expected) in [
            ("", "relative URL without a base"),
            ("api.example.com", "relative URL without a base"),
            ("ftp://h/", "expected http:// or https://"),
            ("http://", "empty host"),
            ("http://user:pw@h/", "must not carry a user"),
            ("http://h/#a", "must not have a fragment"),
            ("http://h:0/", "port 0"),
            ("http://h:99999/", "invalid port"),
            ("http://h/a\r\nb", "white space or control"),
            (&format!("http://h/{}", "x".repeat(3000)), "longer than"),
        ] {
            let fault = Base::parse(url).err().unwrap();
            assert!(fault.contains(expected), "{url}: {fault}");
        }
    }
}
