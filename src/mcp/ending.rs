//! What results of the era without sessions have besides what they are: that they are complete, who
//! made them, and whether they may be kept (MCP 2026-07-28, results and caching).

use std::sync::Arc;

use crate::json;
use crate::rpc::ResultBody;

const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// Whether a result may be kept, and for whom.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Caching {
    /// It is no result that says so.
    Unsaid,
    /// Not at all, as what is read once.
    Never,
    /// By its caller.
    Private,
    /// For all callers.
    Public,
}

/// How results end, written once.
#[derive(Clone, Debug)]
pub(super) struct Endings {
    unsaid: Arc<[u8]>,
    never: Arc<[u8]>,
    private: Arc<[u8]>,
    public: Arc<[u8]>,
    /// `"<key>":{…}`, for the `_meta` of a result that has one.
    server: Box<[u8]>,
}

impl Endings {
    /// Of a server that calls itself by this object, whose lists stay fresh for so long.
    pub(super) fn new(server_info: &[u8], cache_ttl_ms: u64) -> Self {
        let mut server = Vec::new();
        json::write_string(&mut server, SERVER_INFO);
        server.push(b':');
        server.extend_from_slice(server_info);
        let ending = |caching: Option<(u64, &str)>| {
            let mut end = head(caching).into_bytes();
            end.extend_from_slice(b",\"_meta\":{");
            end.extend_from_slice(&server);
            end.extend_from_slice(b"}}");
            Arc::from(end)
        };
        Self {
            unsaid: ending(None),
            never: ending(Some((0, "private"))),
            private: ending(Some((cache_ttl_ms, "private"))),
            public: ending(Some((cache_ttl_ms, "public"))),
            server: server.clone().into(),
        }
    }

    fn ending(&self, caching: Caching) -> &Arc<[u8]> {
        match caching {
            Caching::Unsaid => &self.unsaid,
            Caching::Never => &self.never,
            Caching::Private => &self.private,
            Caching::Public => &self.public,
        }
    }

    /// The result with its ending. It must be an object with at least one member and without the
    /// members that an ending has.
    pub(super) fn end(&self, body: ResultBody, caching: Caching) -> ResultBody {
        let end = self.ending(caching);
        match body {
            ResultBody::Owned(mut bytes) => {
                bytes.pop();
                bytes.extend_from_slice(opened(&bytes, end));
                ResultBody::Owned(bytes)
            }
            ResultBody::Shared(object) if object.len() > 2 => {
                ResultBody::Ended { object, end: Arc::clone(end) }
            }
            ResultBody::Static(_) | ResultBody::Shared(_) => {
                self.end(ResultBody::Owned(body.as_bytes().into_owned()), caching)
            }
            ended @ ResultBody::Ended { .. } => ended,
        }
    }

    /// The same for a result that has a `_meta` of its own: an object with at least one member.
    pub(super) fn end_with_meta(
        &self,
        mut body: Vec<u8>,
        meta: &[u8],
        caching: Caching,
    ) -> ResultBody {
        body.pop();
        let end = self.ending(caching);
        // What stands before `_meta`.
        let head = end.len() - ",\"_meta\":{}}".len() - self.server.len();
        let head = end.get(..head).unwrap_or_default();
        body.extend_from_slice(opened(&body, head));
        body.extend_from_slice(b",\"_meta\":");
        body.extend_from_slice(meta.trim_ascii_end().strip_suffix(b"}").unwrap_or(b"{"));
        if !body.ends_with(b"{") {
            body.push(b',');
        }
        body.extend_from_slice(&self.server);
        body.extend_from_slice(b"}}");
        ResultBody::Owned(body)
    }
}

fn head(caching: Option<(u64, &str)>) -> String {
    let complete = r#","resultType":"complete""#;
    match caching {
        None => complete.to_owned(),
        Some((ttl_ms, scope)) => {
            format!(r#"{complete},"ttlMs":{ttl_ms},"cacheScope":"{scope}""#)
        }
    }
}

/// What goes on after an object that is open: no comma where it has no member yet.
fn opened<'a>(object: &[u8], rest: &'a [u8]) -> &'a [u8] {
    if object.ends_with(b"{") { rest.get(1..).unwrap_or_default() } else { rest }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn parsed(body: &ResultBody) -> Value {
        serde_json::from_slice(&body.as_bytes()).unwrap()
    }

    #[test]
    fn every_kind_of_body_gets_the_same_ending() {
        let endings = Endings::new(br#"{"name":"r"}"#, 60_000);
        let server = json!({SERVER_INFO: {"name": "r"}});
        let bodies = |text: &'static str| {
            [
                ResultBody::Static(text.as_bytes()),
                ResultBody::Owned(text.as_bytes().to_vec()),
                ResultBody::Shared(text.as_bytes().into()),
            ]
        };
        for (caching, said) in [
            (Caching::Unsaid, json!({})),
            (Caching::Never, json!({"ttlMs": 0, "cacheScope": "private"})),
            (Caching::Private, json!({"ttlMs": 60_000, "cacheScope": "private"})),
            (Caching::Public, json!({"ttlMs": 60_000, "cacheScope": "public"})),
        ] {
            let mut expected = json!({"a": [1], "resultType": "complete", "_meta": server});
            expected.as_object_mut().unwrap().extend(said.as_object().unwrap().clone());
            for body in bodies(r#"{"a":[1]}"#) {
                assert_eq!(parsed(&endings.end(body, caching)), expected);
            }
        }
        let [fixed, made, _] = bodies("{}");
        for body in [fixed, made] {
            let expected = json!({"resultType": "complete", "_meta": server});
            assert_eq!(parsed(&endings.end(body, Caching::Unsaid)), expected);
        }
    }

    #[test]
    fn a_meta_of_its_own_is_kept() {
        let endings = Endings::new(br#"{"name":"r"}"#, 0);
        for (meta, more) in [("{}", json!({})), (r#"{"x/y":[1]}"#, json!({"x/y": [1]}))] {
            let body = endings.end_with_meta(
                b"{\"content\":[]}".to_vec(),
                meta.as_bytes(),
                Caching::Never,
            );
            let mut expected = json!({SERVER_INFO: {"name": "r"}});
            expected.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            assert_eq!(parsed(&body)["_meta"], expected);
            assert_eq!(parsed(&body)["resultType"], "complete");
            assert_eq!(parsed(&body)["ttlMs"], 0);
        }
    }
}
