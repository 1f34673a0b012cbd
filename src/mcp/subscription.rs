//! `subscriptions/listen`: what a client wants to hear of, and how it is told (MCP 2026-07-28,
//! subscriptions).

use super::ending::Caching;
use super::{Revision, ServerInfo};
use crate::json::{self, Kind, Raw};
use crate::rpc::{self, Id, OwnedId, Reply, ResultBody, RpcError};

const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

/// Most resources of one subscription.
pub const SUBSCRIBED_MAX: usize = 256;
/// Longest URI of one.
const URI_BYTES_MAX: usize = 2048;

/// Something clients may want to hear of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happening<'a> {
    /// The tools a client sees are others now.
    Tools,
    /// The prompts a client sees are others now.
    Prompts,
    /// The resources a client sees are others now.
    Resources,
    /// The resource with this URI is another now.
    Updated(&'a str),
}

impl Happening<'_> {
    /// The notification's method.
    pub const fn method(self) -> &'static str {
        match self {
            Self::Tools => "notifications/tools/list_changed",
            Self::Prompts => "notifications/prompts/list_changed",
            Self::Resources => "notifications/resources/list_changed",
            Self::Updated(_) => "notifications/resources/updated",
        }
    }

    /// The notification for clients that listen to whatever there is: in sessions.
    pub fn untagged(self) -> Vec<u8> {
        let params = match self {
            Self::Tools | Self::Prompts | Self::Resources => None,
            Self::Updated(uri) => {
                let mut params = b"{\"uri\":".to_vec();
                json::write_string(&mut params, uri);
                params.push(b'}');
                Some(params)
            }
        };
        let mut out = Vec::with_capacity(96);
        rpc::write_notification(&mut out, self.method(), params.as_deref());
        out
    }
}

/// What a client is told of, as long as it listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscription {
    /// The request that asked for it: every message says which one.
    id: OwnedId,
    tools: bool,
    prompts: bool,
    resources: bool,
    /// The URIs of resources.
    updates: Vec<Box<str>>,
}

impl Subscription {
    /// Reads what a request asks for; of resources, those with a URI that `offers` updates.
    ///
    /// # Errors
    /// It does not say what it wants in the way of the protocol, or wants too much.
    pub fn read(
        id: Id<'_>,
        params: Option<Raw<'_>>,
        offers: impl Fn(&str) -> bool,
    ) -> Result<Self, RpcError> {
        let wanted = params.and_then(|params| params.get("notifications"));
        let Some(wanted) = wanted.filter(|wanted| wanted.kind() == Kind::Object) else {
            let text = "subscriptions/listen needs `notifications`, an object";
            return Err(RpcError::invalid_params(text));
        };
        let flag = |value: Raw<'_>| value.as_bool().ok_or_else(not_understood);
        let (tools, prompts, resources, updates) = (false, false, false, Vec::new());
        let mut read = Self { id: id.to_owned_id(), tools, prompts, resources, updates };
        for (key, value) in wanted.entries().filter(|(_, value)| !value.is_null()) {
            match &*key {
                "toolsListChanged" => read.tools = flag(value)?,
                "promptsListChanged" => read.prompts = flag(value)?,
                "resourcesListChanged" => read.resources = flag(value)?,
                "resourceSubscriptions" => read.updates = uris(value, &offers)?,
                // What is not known is not granted.
                _ => {}
            }
        }
        Ok(read)
    }

    /// The URIs of resources it is told updates of.
    pub fn updates(&self) -> &[Box<str>] {
        &self.updates
    }

    /// The first message: what is granted.
    pub fn acknowledged(&self) -> Vec<u8> {
        let mut granted = b",\"notifications\":{".to_vec();
        let flags = [
            ("toolsListChanged", self.tools),
            ("promptsListChanged", self.prompts),
            ("resourcesListChanged", self.resources),
        ];
        for (name, _) in flags.into_iter().filter(|(_, is_granted)| *is_granted) {
            member(&mut granted, name);
            granted.extend_from_slice(b"true");
        }
        if !self.updates.is_empty() {
            member(&mut granted, "resourceSubscriptions");
            for (index, uri) in self.updates.iter().enumerate() {
                granted.push(if index == 0 { b'[' } else { b',' });
                json::write_string(&mut granted, uri);
            }
            granted.push(b']');
        }
        granted.push(b'}');
        self.notification("notifications/subscriptions/acknowledged", &granted)
    }

    /// How it is told of something, where it wants to be.
    pub fn told(&self, happening: Happening<'_>) -> Option<Vec<u8>> {
        let mut more = Vec::new();
        let is_wanted = match happening {
            Happening::Tools => self.tools,
            Happening::Prompts => self.prompts,
            Happening::Resources => self.resources,
            Happening::Updated(uri) => {
                more.extend_from_slice(b",\"uri\":");
                json::write_string(&mut more, uri);
                self.updates.iter().any(|wanted| **wanted == *uri)
            }
        };
        is_wanted.then(|| self.notification(happening.method(), &more))
    }

    /// The answer to the request, when the server ends it.
    pub fn over(&self, server: &ServerInfo) -> Vec<u8> {
        let mut meta = b"{".to_vec();
        self.write_id(&mut meta);
        meta.push(b'}');
        let body = Ok(ResultBody::Owned(b"{}".to_vec()));
        let body = server.answer(body, Some(&meta), Caching::Unsaid, Revision::V20260728);
        let reply = Reply::new(self.id.clone(), body);
        let mut out = Vec::with_capacity(reply.len());
        reply.write(&mut out);
        out
    }

    /// A notification with these members of its parameters, each after a comma.
    fn notification(&self, method: &str, more: &[u8]) -> Vec<u8> {
        let mut params = b"{\"_meta\":{".to_vec();
        self.write_id(&mut params);
        params.push(b'}');
        params.extend_from_slice(more);
        params.push(b'}');
        let mut out = Vec::with_capacity(params.len() + 96);
        rpc::write_notification(&mut out, method, Some(&params));
        out
    }

    fn write_id(&self, out: &mut Vec<u8>) {
        json::write_string(out, SUBSCRIPTION_ID);
        out.push(b':');
        out.extend_from_slice(self.id.as_bytes());
    }
}

/// The name of a member, after a comma where there are others.
fn member(out: &mut Vec<u8>, name: &str) {
    if !out.ends_with(b"{") {
        out.push(b',');
    }
    json::write_string(out, name);
    out.push(b':');
}

fn uris(value: Raw<'_>, offers: impl Fn(&str) -> bool) -> Result<Vec<Box<str>>, RpcError> {
    if value.kind() != Kind::Array {
        return Err(not_understood());
    }
    let mut uris: Vec<Box<str>> = Vec::new();
    for (index, uri) in value.items().enumerate() {
        let uri = uri.as_str().ok_or_else(not_understood)?;
        if index >= SUBSCRIBED_MAX || uri.len() > URI_BYTES_MAX {
            return Err(RpcError::invalid_params(format!(
                "a subscription has up to {SUBSCRIBED_MAX} resources, with URIs of up to \
                 {URI_BYTES_MAX} bytes; subscribe to more in another one"
            )));
        }
        if offers(&uri) && !uris.iter().any(|known| **known == *uri) {
            uris.push(uri.into());
        }
    }
    Ok(uris)
}

fn not_understood() -> RpcError {
    RpcError::invalid_params(
        "`notifications` has `toolsListChanged`, `promptsListChanged` and `resourcesListChanged`, \
         each a boolean, and `resourceSubscriptions`, an array of URIs",
    )
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(id: &str, params: &Value) -> Result<Subscription, RpcError> {
        let (id, params) = (id.to_owned(), params.to_string());
        let id = json::guard(id.as_bytes()).unwrap();
        let params = json::guard(params.as_bytes()).unwrap();
        let id = Id::of(id.root()).unwrap();
        Subscription::read(id, Some(params.root()), |uri| uri.starts_with("a:"))
    }

    fn parsed(bytes: &[u8]) -> Value {
        serde_json::from_slice(bytes).unwrap()
    }

    #[test]
    fn only_what_is_wanted_and_offered_is_told_and_says_for_whom() {
        let wanted = json!({"notifications": {
            "toolsListChanged": true, "promptsListChanged": false, "resourcesListChanged": null,
            "resourceSubscriptions": ["a:1", "b:1", "a:1"], "other": 7,
        }});
        for (id, tag) in [("7", json!(7)), ("\"7\"", json!("7"))] {
            let subscription = read(id, &wanted).unwrap();
            let meta = json!({SUBSCRIPTION_ID: tag});
            let expected = json!({
                "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
                "params": {"_meta": meta, "notifications": {
                    "toolsListChanged": true, "resourceSubscriptions": ["a:1"],
                }},
            });
            assert_eq!(parsed(&subscription.acknowledged()), expected);
            let tools = subscription.told(Happening::Tools).unwrap();
            assert_eq!(parsed(&tools)["params"], json!({"_meta": meta}));
            let updated = subscription.told(Happening::Updated("a:1")).unwrap();
            assert_eq!(parsed(&updated)["params"], json!({"_meta": meta, "uri": "a:1"}));
            for other in [Happening::Prompts, Happening::Resources, Happening::Updated("b:1")] {
                assert_eq!(subscription.told(other), None);
            }
            let server = ServerInfo::new("r", "R", "1", true, 0);
            let over = parsed(&subscription.over(&server));
            assert_eq!((&over["id"], &over["result"]["resultType"]), (&tag, &json!("complete")));
            assert_eq!(over["result"]["_meta"][SUBSCRIPTION_ID], tag);
        }
        let nothing = read("1", &json!({"notifications": {}})).unwrap();
        assert_eq!(parsed(&nothing.acknowledged())["params"]["notifications"], json!({}));
    }

    #[test]
    fn what_cannot_be_understood_or_is_too_much_is_refused() {
        let many: Vec<String> = (0..=SUBSCRIBED_MAX).map(|index| format!("a:{index}")).collect();
        for params in [
            json!({}),
            json!({"notifications": []}),
            json!({"notifications": {"toolsListChanged": 1}}),
            json!({"notifications": {"resourceSubscriptions": "a:1"}}),
            json!({"notifications": {"resourceSubscriptions": [1]}}),
            json!({"notifications": {"resourceSubscriptions": many}}),
            json!({"notifications": {"resourceSubscriptions": ["a:".repeat(2000)]}}),
        ] {
            assert_eq!(read("1", &params).unwrap_err().code, rpc::code::INVALID_PARAMS);
        }
    }
}
