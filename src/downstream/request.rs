//! Writing the request of a call.
//!
//! What goes out is what the connection and the mapping say, and nothing else: no header of the
//! client ever gets here. Of two headers with one name the connection's wins, so no argument can
//! replace a credential or the id of a call; headers that frame messages belong to `http` and are dropped from both.

use std::borrow::Cow;

use crate::catalog::Secret;
use crate::http::{BodyLength, HeadRefused, is_framing, write_request_head};

use super::content::ACCEPT_ENCODING;
use super::correlation::Forwarded;

/// What this product calls itself.
const USER_AGENT: &str = concat!("ringway/", env!("CARGO_PKG_VERSION"));

/// One request, ready to be written.
#[derive(Debug)]
pub(crate) struct Outgoing<'a> {
    pub(crate) method: &'a str,
    pub(crate) host: &'a str,
    /// Path and query, the connection's base path included.
    pub(crate) target: &'a str,
    pub(crate) connection_headers: &'a [(Box<str>, Secret)],
    pub(crate) mapped_headers: &'a [(String, String)],
    pub(crate) forwarded: &'a Forwarded<'a>,
    pub(crate) content_type: Option<&'a str>,
    pub(crate) body: Option<&'a [u8]>,
}

impl Outgoing<'_> {
    /// Appends head and body to `out`.
    pub(crate) fn write(&self, out: &mut Vec<u8>) -> Result<(), HeadRefused> {
        let length = match self.body {
            Some(body) => BodyLength::Known(body.len()),
            // RFC 9110 8.6: a method that anticipates content says that there is none.
            None if matches!(self.method, "POST" | "PUT" | "PATCH") => BodyLength::Known(0),
            None => BodyLength::None,
        };
        let body = self.body.unwrap_or_default();
        out.reserve(512 + body.len());
        write_request_head(out, self.method, self.target, self.host, self.headers(), length)?;
        out.extend_from_slice(body);
        Ok(())
    }

    fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        let configured = self.connection_headers.iter();
        let configured = configured.map(|(name, value)| (&**name, value.expose()));
        let mapped = self.mapped_headers.iter().map(|(name, value)| (&**name, &**value));
        let mapped = mapped.filter(|(name, _)| !self.is_configured(name));
        let defaults = [
            ("Accept", Some("application/json, */*;q=0.5")),
            ("Accept-Encoding", Some(ACCEPT_ENCODING)),
            ("User-Agent", Some(USER_AGENT)),
            ("Content-Type", self.content_type.filter(|_| self.body.is_some())),
        ];
        let defaults = defaults.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let defaults =
            defaults.filter(|(name, _)| !self.is_configured(name) && !self.is_mapped(name));
        let mapped = mapped.filter(|(name, _)| !self.is_forwarded(name));
        let headers = defaults.chain(configured).chain(self.forwarded.headers()).chain(mapped);
        headers.filter(|(name, _)| !is_framing(name))
    }

    fn is_configured(&self, name: &str) -> bool {
        self.connection_headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name))
    }

    fn is_forwarded(&self, name: &str) -> bool {
        self.forwarded.headers().any(|(other, _)| other.eq_ignore_ascii_case(name))
    }

    fn is_mapped(&self, name: &str) -> bool {
        self.mapped_headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name))
    }
}

/// The connection's path in front of the tool's: one slash between them, never two, never none.
pub(crate) fn join<'a>(base_path: &str, target: &'a str) -> Cow<'a, str> {
    let base = base_path.trim_end_matches('/');
    let (path, query) = match target.find('?') {
        Some(place) => target.split_at(place),
        None => (target, ""),
    };
    let path = path.trim_start_matches('/');
    if base.is_empty() && target.len() == 1 + path.len() + query.len() {
        // It is "/path" already.
        return Cow::Borrowed(target);
    }
    let slash =
        if path.is_empty() && !base.is_empty() && !target.starts_with('/') { "" } else { "/" };
    Cow::Owned([base, slash, path, query].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    fn written(
        method: &str,
        connection: &[(&str, &str)],
        mapped: &[(String, String)],
        body: Option<&[u8]>,
    ) -> String {
        let connection: Vec<(Box<str>, Secret)> =
            connection.iter().map(|(name, value)| ((*name).into(), Secret::new(value))).collect();
        let outgoing = Outgoing {
            method,
            host: "api.example.com",
            target: "/v1/pets?limit=1",
            connection_headers: &connection,
            mapped_headers: mapped,
            forwarded: &Forwarded::default(),
            content_type: Some("application/json"),
            body,
        };
        let mut out = Vec::new();
        outgoing.write(&mut out).unwrap();
        String::from_utf8(out).unwrap().to_ascii_lowercase()
    }

    #[test]
    fn both_paths_are_kept_with_one_slash_between() {
        let table = [
            ("", "/pets", "/pets"),
            ("/", "/pets", "/pets"),
            ("/v1", "/pets", "/v1/pets"),
            ("/v1/", "/pets", "/v1/pets"),
            ("/v1//", "//pets", "/v1/pets"),
            ("/v1", "pets", "/v1/pets"),
            ("/a/b/", "/c/d/?x=/e", "/a/b/c/d/?x=/e"),
            ("/v1", "", "/v1"),
            ("/v1", "/", "/v1/"),
            ("/v1", "?a=b", "/v1?a=b"),
            ("", "", "/"),
            ("", "?a=b", "/?a=b"),
            ("", "pets", "/pets"),
            ("", "//evil.example/x", "/evil.example/x"),
            ("/v1", "/x?u=http://a//b", "/v1/x?u=http://a//b"),
        ];
        for (base, target, expected) in table {
            assert_eq!(join(base, target), expected, "{base:?} + {target:?}");
        }
    }

    #[test]
    fn a_plain_get_carries_its_defaults_and_no_body() {
        let text = written("GET", &[], &[], None);
        assert!(text.starts_with("get /v1/pets?limit=1 http/1.1\r\n"), "{text}");
        for line in [
            "host: api.example.com\r\n",
            "accept: application/json, */*;q=0.5\r\n",
            "accept-encoding: gzip, br, zstd, deflate\r\n",
            "user-agent: ringway/",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
        assert!(!text.contains("content-"), "{text}");
        assert!(written("POST", &[], &[], None).contains("content-length: 0\r\n"));
    }

    #[test]
    fn a_body_has_its_type_and_length() {
        let text = written("POST", &[], &[], Some(b"{\"a\":1}"));
        assert!(text.contains("content-type: application/json\r\n"), "{text}");
        assert!(text.contains("content-length: 7\r\n") && text.ends_with("\r\n\r\n{\"a\":1}"));
    }

    #[test]
    fn the_connections_headers_win_over_arguments() {
        let connection = [("Authorization", "Bearer real"), ("Accept", "text/csv")];
        let mapped = [pair("authorization", "Bearer forged"), pair("X-Trace", "7")];
        let text = written("GET", &connection, &mapped, None);
        assert!(text.contains("bearer real") && !text.contains("forged"), "{text}");
        assert!(text.contains("x-trace: 7") && !text.contains("application/json"), "{text}");
    }

    #[test]
    fn headers_that_frame_messages_are_not_the_mappings_business() {
        let framing = [
            ("Host", "evil.example"),
            ("Content-Length", "99"),
            ("Transfer-Encoding", "chunked"),
            ("Connection", "X-A"),
        ];
        let mapped = framing.map(|(name, value)| pair(name, value));
        for text in [written("GET", &framing, &[], None), written("GET", &[], &mapped, None)] {
            assert!(!text.contains("evil") && !text.contains("99"), "{text}");
            assert!(!text.contains("chunked") && !text.contains("x-a"), "{text}");
        }
    }
}
