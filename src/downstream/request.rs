//! Writing the request of a call.
//!
//! What goes out is what the connection and the mapping say, and nothing else: no header of the
//! client gets here but those the connection forwards. Of two headers with one name the
//! connection's wins, so no argument can replace a credential or the id of a call; only cookies of
//! both go together, under different names. Headers that frame messages belong to `http` and are
//! dropped from both. A key in the query is added here and nowhere before: no log, redirect or
//! error knows it.

use std::borrow::Cow;

use crate::catalog::Proof;
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
    /// Path and query, the connection's base path included, without keys.
    pub(crate) target: &'a str,
    pub(crate) proof: &'a Proof,
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
        let target = self.whole_target();
        let cookies = self.joined_cookies();
        let headers = self.headers(cookies.as_deref());
        write_request_head(out, self.method, &target, self.host, headers, length)?;
        out.extend_from_slice(body);
        Ok(())
    }

    fn whole_target(&self) -> Cow<'_, str> {
        let Some(keys) = &self.proof.query else { return Cow::Borrowed(self.target) };
        let mark = match self.target.split_once('?') {
            None => "?",
            Some((_, "")) => "",
            Some(_) => "&",
        };
        Cow::Owned([self.target, mark, keys.expose()].concat())
    }

    /// The one `Cookie` header where both the connection and the mapping have some.
    fn joined_cookies(&self) -> Option<String> {
        let is_cookie = |name: &str| name.eq_ignore_ascii_case("cookie");
        let (_, own) = self.proof.headers.iter().find(|(name, _)| is_cookie(name))?;
        let (_, mapped) = self.mapped_headers.iter().find(|(name, _)| is_cookie(name))?;
        Some([own.expose(), "; ", mapped].concat())
    }

    fn headers<'b>(&'b self, cookies: Option<&'b str>) -> impl Iterator<Item = (&'b str, &'b str)> {
        let configured = self.proof.headers.iter().map(move |(name, value)| match cookies {
            Some(cookies) if name.eq_ignore_ascii_case("cookie") => (&**name, cookies),
            _ => (&**name, value.expose()),
        });
        let mapped = self.mapped_headers.iter().map(|(name, value)| (&**name, &**value));
        let mapped = mapped.filter(|(name, _)| !self.is_configured(name));
        let defaults = [
            ("Accept", Some("application/json")),
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
        self.proof.headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name))
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
    use crate::catalog::Secret;

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    fn written(
        method: &str,
        connection: &[(&str, &str)],
        mapped: &[(String, String)],
        body: Option<&[u8]>,
    ) -> String {
        let headers =
            connection.iter().map(|(name, value)| ((*name).into(), Secret::new(value))).collect();
        let proof = Proof { headers, ..Proof::default() };
        let outgoing = Outgoing {
            method,
            host: "api.example.com",
            target: "/v1/pets?limit=1",
            proof: &proof,
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
            "accept: application/json\r\n",
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
    fn keys_and_cookies_of_the_connection_join_those_of_the_mapping() {
        let proof = Proof {
            headers: vec![("Cookie".into(), Secret::new("sid=real"))],
            query: Some(Secret::new("key=k1")),
            ..Proof::default()
        };
        let written = |target: &str, mapped: &[(String, String)]| {
            let outgoing = Outgoing {
                method: "GET",
                host: "h",
                target,
                proof: &proof,
                mapped_headers: mapped,
                forwarded: &Forwarded::default(),
                content_type: None,
                body: None,
            };
            let mut out = Vec::new();
            outgoing.write(&mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        let text = written("/a", &[pair("Cookie", "lang=en")]);
        assert!(text.starts_with("GET /a?key=k1 HTTP/1.1\r\n"), "{text}");
        assert!(text.contains("Cookie: sid=real; lang=en\r\n"), "{text}");
        assert_eq!(text.matches("Cookie").count(), 1);
        assert!(written("/a?b=c", &[]).starts_with("GET /a?b=c&key=k1 HTTP"));
        assert!(written("/a?", &[]).starts_with("GET /a?key=k1 HTTP"));
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
