//! The MCP server that calls are relayed to: the least one can be, of revision 2025-11-25, with one tool
//! that gives back its arguments. It answers within [`crate::api::Api`], by path.

use serde::Deserialize;
use serde_json::value::RawValue;

/// Answers calls with JSON.
pub(crate) const JSON: Relay = Relay { path: "/mcp/json", tool: "relay_json", events: false };
/// Answers calls with event streams.
pub(crate) const EVENTS: Relay = Relay { path: "/mcp/events", tool: "relay_events", events: true };
pub(crate) const RELAYS: [Relay; 2] = [JSON, EVENTS];

/// One endpoint and its tool.
pub(crate) struct Relay {
    pub(crate) path: &'static str,
    pub(crate) tool: &'static str,
    events: bool,
}

const INITIALIZED: &str = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"relay","version":"0.1.0"}}"#;

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: Option<&'a str>,
    #[serde(borrow)]
    params: Option<Parameters<'a>>,
}

#[derive(Deserialize)]
struct Parameters<'a> {
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

/// Writes the answer to a request for one of the relays; `false` when it is for none.
pub(crate) fn answer(out: &mut Vec<u8>, head: &[u8], body: &[u8]) -> bool {
    let Some(target) = head.split(|byte| *byte == b' ').nth(1) else { return false };
    let Some(relay) = RELAYS.iter().find(|relay| relay.path.as_bytes() == target) else {
        return false;
    };
    if !head.starts_with(b"POST") {
        // Neither a standing stream nor an end of sessions is offered.
        empty(out, "405 Method Not Allowed\r\nAllow: POST");
        return true;
    }
    let message = serde_json::from_slice::<Message<'_>>(body).ok();
    match message {
        Some(Message { id: Some(id), method: Some(method), params }) => {
            let arguments = params.and_then(|params| params.arguments);
            relay.reply(out, id.get(), method, arguments.map_or("{}", RawValue::get));
        }
        Some(_) => empty(out, "202 Accepted"),
        None => empty(out, "400 Bad Request"),
    }
    true
}

impl Relay {
    fn reply(&self, out: &mut Vec<u8>, id: &str, method: &str, arguments: &str) {
        let result = match method {
            "tools/call" => {
                let text = serde_json::to_string(arguments).unwrap_or_default();
                ["{\"content\":[{\"type\":\"text\",\"text\":", &text, "}]}"].concat()
            }
            "initialize" => INITIALIZED.to_owned(),
            "tools/list" => self.tool_list(),
            "ping" => "{}".to_owned(),
            _ => {
                let error = r#","error":{"code":-32601,"message":"Method not found"}}"#;
                return json(out, "", &["{\"jsonrpc\":\"2.0\",\"id\":", id, error].concat());
            }
        };
        let message = ["{\"jsonrpc\":\"2.0\",\"id\":", id, ",\"result\":", &result, "}"].concat();
        match method {
            "tools/call" if self.events => event(out, &message),
            "initialize" => json(out, "Mcp-Session-Id: relay\r\n", &message),
            _ => json(out, "", &message),
        }
    }

    fn tool_list(&self) -> String {
        let schema = r#"{"type":"object","properties":{"message":{"type":"string"}},"required":["message"]}"#;
        let tool = self.tool;
        format!(
            r#"{{"tools":[{{"name":"{tool}","description":"Says it again.","inputSchema":{schema}}}]}}"#
        )
    }
}

fn empty(out: &mut Vec<u8>, status: &str) {
    for part in ["HTTP/1.1 ", status, "\r\nContent-Length: 0\r\n\r\n"] {
        out.extend_from_slice(part.as_bytes());
    }
}

fn json(out: &mut Vec<u8>, headers: &str, body: &str) {
    for part in [
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n",
        headers,
        "Content-Length: ",
        itoa::Buffer::new().format(body.len()),
        "\r\n\r\n",
        body,
    ] {
        out.extend_from_slice(part.as_bytes());
    }
}

/// One event, chunked, as servers that may have more to say write it.
fn event(out: &mut Vec<u8>, message: &str) {
    let event = ["event: message\ndata: ", message, "\n\n"].concat();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n\
        Transfer-Encoding: chunked\r\n\r\n";
    let size = format!("{:x}\r\n", event.len());
    for part in [head, &size, &event, "\r\n0\r\n\r\n"] {
        out.extend_from_slice(part.as_bytes());
    }
}
