//! The ceiling: the least a server on `ringway::rt` can do for each kind of request, on one core.
//!
//! `POST /mcp` parses the JSON-RPC envelope and answers at once; `POST /hop` forwards a call's
//! arguments to one HTTP upstream and wraps what it says as a tool's result; `POST /soap` does the same
//! with an envelope around them; `POST /relay` hands a message on to an MCP server as it is; `GET` opens an event stream; `POST /notify` sends one message to all streams. No sessions, keys, limits, deadlines
//! or checks: what Ringway does beyond this is what its ratio shows.
//!
//! Started by the load tool: `bare LISTEN UPSTREAM LIST_FILE`.

use ringway::rt::{self, BoundListener, Connection, CoreOptions, Deadline, ListenAddress};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::cell::RefCell;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// The allocator of the `ringway` binary: the comparison is of servers, not of allocators.
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const WITHIN: Duration = Duration::from_secs(30);
const BUFFER_BYTES: usize = 4096;
const STREAM_HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\
    Cache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n";
const EVENT: &[u8] = b"4b\r\nid: 1\ndata: {\"jsonrpc\":\"2.0\",\
    \"method\":\"notifications/tools/list_changed\"}\n\n\r\n";
const INITIALIZED: &[u8] = br#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"bare","version":"0.1.0"}}"#;
const STATUS: &[u8] = br#"{"version":"0.1.0","uptime_seconds":1,"sessions":64,"streams":0}"#;

struct Shared {
    upstream: SocketAddr,
    tool_list: Vec<u8>,
    resolver: rt::Resolver,
    streams: RefCell<Vec<Option<rt::Writer>>>,
}

fn main() -> io::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let [listen, upstream, list_file] = words.as_slice() else {
        eprintln!("bare LISTEN UPSTREAM LIST_FILE (started by benches/run)");
        return Ok(());
    };
    let address = |text: &str| text.parse::<SocketAddr>().map_err(io::Error::other);
    let listen = address(listen)?;
    if !listen.ip().is_loopback() {
        return Err(io::Error::other("only a loopback address can be served"));
    }
    let shared = Shared {
        upstream: address(upstream)?,
        tool_list: std::fs::read(list_file)?,
        resolver: rt::Resolver::new(rt::WorkerPool::start(1, 16)?),
        streams: RefCell::default(),
    };
    rt::run_once(CoreOptions::default(), serve(listen, shared))?
}

async fn serve(listen: SocketAddr, shared: Shared) -> io::Result<()> {
    let shared = Rc::new(shared);
    let listener = BoundListener::bind(&ListenAddress::Tcp(listen), 8192)?;
    let handler = move |connection| {
        let shared = Rc::clone(&shared);
        async move {
            // The load tool tells of a connection that broke; nothing is left to say here.
            let _ = answer_all(connection, &shared).await;
        }
    };
    listener.serve(None, rt::Stop::new(), handler).await
}

/// One side of a connection being read: bytes received and not yet dealt with.
struct Inbox {
    bytes: Vec<u8>,
    deadline: Deadline,
}

/// Lengths of a message's head and body, once both are there.
type Lengths = fn(&[u8]) -> io::Result<Option<(usize, usize)>>;

impl Inbox {
    fn new() -> Self {
        Self { bytes: Vec::with_capacity(BUFFER_BYTES), deadline: Deadline::new() }
    }

    async fn message(
        &mut self,
        reader: &mut rt::Reader,
        lengths: Lengths,
    ) -> io::Result<Option<(usize, usize)>> {
        loop {
            if let Some(found) = lengths(&self.bytes)? {
                return Ok(Some(found));
            }
            if reader.read(&mut self.bytes, &self.deadline).await? == 0 {
                return Ok(None);
            }
        }
    }

    fn consume(&mut self, bytes: usize) {
        if bytes == self.bytes.len() {
            self.bytes.clear();
        } else {
            self.bytes.drain(..bytes);
        }
    }
}

async fn answer_all(connection: Connection, shared: &Rc<Shared>) -> io::Result<()> {
    let Connection { mut reader, mut writer, .. } = connection;
    let mut inbox = Inbox::new();
    let mut answer = Vec::with_capacity(BUFFER_BYTES);
    let mut upstream: Option<(Connection, Inbox)> = None;
    while let Some((head, body)) = inbox.message(&mut reader, request_lengths).await? {
        if inbox.bytes.starts_with(b"GET") {
            drop((answer, upstream));
            return event_stream(reader, writer, inbox, shared).await;
        }
        if inbox.bytes.starts_with(b"POST /notify") {
            fan_out(shared);
            respond(&mut answer, &[]);
        } else {
            let forwarding = inbox.bytes.starts_with(b"POST /hop");
            let enveloping = inbox.bytes.starts_with(b"POST /soap");
            let relaying = inbox.bytes.starts_with(b"POST /relay");
            match envelope(&inbox.bytes[head..head + body]) {
                Some(call) if forwarding && call.method == "tools/call" => {
                    answer = hop(answer, &call, &mut upstream, shared).await?;
                }
                Some(call) if enveloping && call.method == "tools/call" => {
                    answer = soap_hop(answer, &call, &mut upstream, shared).await?;
                }
                Some(call) if relaying && call.method == "tools/call" => {
                    let message = &inbox.bytes[head..head + body];
                    answer = relay(answer, message, &mut upstream, shared).await?;
                }
                call => reply(&mut answer, call.as_ref(), shared),
            }
        }
        inbox.consume(head + body);
        let (sent, buffer) = writer.write_all(answer, &inbox.deadline, WITHIN).await;
        sent?;
        answer = buffer;
    }
    Ok(())
}

/// Sends the arguments to the upstream and makes a tool's result of its answer.
async fn hop(
    mut answer: Vec<u8>,
    call: &Call<'_>,
    upstream: &mut Option<(Connection, Inbox)>,
    shared: &Shared,
) -> io::Result<Vec<u8>> {
    post(&mut answer, "/echo", "application/json", call.arguments().as_bytes());
    let (mut answer, inbox, head, body) = exchange(answer, upstream, shared).await?;
    tool_result(&mut answer, call.id.get(), &inbox.bytes[head..head + body]);
    inbox.consume(head + body);
    Ok(answer)
}

/// Hands the message on, and what is answered back.
async fn relay(
    mut answer: Vec<u8>,
    message: &[u8],
    upstream: &mut Option<(Connection, Inbox)>,
    shared: &Shared,
) -> io::Result<Vec<u8>> {
    post(&mut answer, "/mcp/json", "application/json", message);
    let (mut answer, inbox, head, body) = exchange(answer, upstream, shared).await?;
    respond(&mut answer, &[&inbox.bytes[head..head + body]]);
    inbox.consume(head + body);
    Ok(answer)
}

fn post(out: &mut Vec<u8>, path: &str, content_type: &str, body: &[u8]) {
    let first = ["POST ", path, " HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: ", content_type];
    out.extend_from_slice(first.concat().as_bytes());
    out.extend_from_slice(b"\r\nContent-Length: ");
    out.extend_from_slice(itoa::Buffer::new().format(body.len()).as_bytes());
    out.extend_from_slice(b"\r\n\r\n");
    out.extend_from_slice(body);
}

/// Sends a request to the upstream; gives the emptied buffer, and where the answer is.
async fn exchange<'u>(
    request: Vec<u8>,
    upstream: &'u mut Option<(Connection, Inbox)>,
    shared: &Shared,
) -> io::Result<(Vec<u8>, &'u mut Inbox, usize, usize)> {
    let (connection, inbox) = match upstream {
        Some(open) => open,
        none => none.insert((connect(shared).await?, Inbox::new())),
    };
    let (sent, mut buffer) = connection.writer.write_all(request, &inbox.deadline, WITHIN).await;
    sent?;
    buffer.clear();
    let found = inbox.message(&mut connection.reader, response_lengths).await?;
    let Some((head, body)) = found else { return Err(io::ErrorKind::UnexpectedEof.into()) };
    Ok((buffer, inbox, head, body))
}

/// The message of the SOAP case.
#[derive(Default, Deserialize, Serialize)]
struct Said {
    message: String,
    count: Option<u64>,
    #[serde(default)]
    tags: Vec<String>,
}

/// As `hop`, with an envelope written and one read: by one who knows the one message there is.
async fn soap_hop(
    mut answer: Vec<u8>,
    call: &Call<'_>,
    upstream: &mut Option<(Connection, Inbox)>,
    shared: &Shared,
) -> io::Result<Vec<u8>> {
    let said: Said = serde_json::from_str(call.arguments()).map_err(io::Error::other)?;
    let mut envelope = String::with_capacity(512);
    envelope.push_str(ENVELOPE_BEGIN);
    element(&mut envelope, "message", &said.message);
    if let Some(count) = said.count {
        element(&mut envelope, "count", itoa::Buffer::new().format(count));
    }
    said.tags.iter().for_each(|tag| element(&mut envelope, "tags", tag));
    envelope.push_str(ENVELOPE_END);
    post(&mut answer, "/", "text/xml; charset=utf-8", envelope.as_bytes());
    let (mut answer, inbox, head, body) = exchange(answer, upstream, shared).await?;
    let text = std::str::from_utf8(&inbox.bytes[head..head + body]).map_err(io::Error::other)?;
    let mut said = Said::default();
    let mut rest = text.strip_prefix(ENVELOPE_BEGIN).unwrap_or_default();
    while let Some((name, behind)) = rest.strip_prefix("<s:").and_then(|r| r.split_once('>')) {
        let Some((held, behind)) = behind.split_once("</s:") else { break };
        let held = held.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
        match name {
            "message" => said.message = held,
            "count" => said.count = held.parse().ok(),
            _ => said.tags.push(held),
        }
        rest = behind.split_once('>').map_or("", |(_, behind)| behind);
    }
    let said = serde_json::to_vec(&said).map_err(io::Error::other)?;
    tool_result(&mut answer, call.id.get(), &said);
    inbox.consume(head + body);
    Ok(answer)
}

const ENVELOPE_BEGIN: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\
    <e:Envelope xmlns:e=\"http://schemas.xmlsoap.org/soap/envelope/\" xmlns:s=\"urn:say\">\
    <e:Body><s:say>";
const ENVELOPE_END: &str = "</s:say></e:Body></e:Envelope>";

fn element(out: &mut String, name: &str, text: &str) {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    out.push_str(&["<s:", name, ">", &text, "</s:", name, ">"].concat());
}

async fn connect(shared: &Shared) -> io::Result<Connection> {
    let host = shared.upstream.ip().to_string();
    let target = rt::ConnectTarget { host: &host, port: shared.upstream.port(), tls: None };
    let loopback = |address: IpAddr| address.is_loopback();
    rt::connect(&shared.resolver, target, &loopback, WITHIN).await.map_err(io::Error::other)
}

async fn event_stream(
    mut reader: rt::Reader,
    mut writer: rt::Writer,
    mut inbox: Inbox,
    shared: &Rc<Shared>,
) -> io::Result<()> {
    writer.write_all(STREAM_HEAD.to_vec(), &inbox.deadline, WITHIN).await.0?;
    let index = {
        let mut streams = shared.streams.borrow_mut();
        streams.push(Some(writer));
        streams.len() - 1
    };
    inbox.bytes = Vec::new();
    reader.set_read_size(64);
    let ended = reader.read(&mut inbox.bytes, &inbox.deadline).await;
    shared.streams.borrow_mut()[index] = None;
    ended.map(drop)
}

fn fan_out(shared: &Rc<Shared>) {
    let event = Arc::new(EVENT.to_vec());
    let count = shared.streams.borrow().len();
    for index in 0..count {
        let Some(mut writer) = shared.streams.borrow_mut()[index].take() else { continue };
        let (shared, event) = (Rc::clone(shared), Arc::clone(&event));
        rt::spawn(async move {
            if writer.write_shared(event, &Deadline::new(), WITHIN).await.is_ok() {
                shared.streams.borrow_mut()[index] = Some(writer);
            }
        });
    }
}

fn body_length(headers: &[httparse::Header<'_>]) -> io::Result<usize> {
    let found = headers.iter().find(|header| header.name.eq_ignore_ascii_case("content-length"));
    let Some(header) = found else { return Ok(0) };
    let text = std::str::from_utf8(header.value).map_err(io::Error::other)?;
    text.trim().parse().map_err(io::Error::other)
}

fn whole(bytes: &[u8], head: usize, body: usize) -> Option<(usize, usize)> {
    (bytes.len() >= head + body).then_some((head, body))
}

fn request_lengths(bytes: &[u8]) -> io::Result<Option<(usize, usize)>> {
    let mut headers = [httparse::EMPTY_HEADER; 32];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(bytes).map_err(io::Error::other)? {
        httparse::Status::Partial => Ok(None),
        httparse::Status::Complete(head) => Ok(whole(bytes, head, body_length(request.headers)?)),
    }
}

fn response_lengths(bytes: &[u8]) -> io::Result<Option<(usize, usize)>> {
    let mut headers = [httparse::EMPTY_HEADER; 32];
    let mut response = httparse::Response::new(&mut headers);
    match response.parse(bytes).map_err(io::Error::other)? {
        httparse::Status::Partial => Ok(None),
        httparse::Status::Complete(head) => Ok(whole(bytes, head, body_length(response.headers)?)),
    }
}

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow)]
    id: &'a RawValue,
    method: &'a str,
    #[serde(borrow, default)]
    params: Parameters<'a>,
}

#[derive(Default, Deserialize)]
struct Parameters<'a> {
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
}

impl Call<'_> {
    fn arguments(&self) -> &str {
        self.params.arguments.map_or("{}", RawValue::get)
    }
}

fn envelope(body: &[u8]) -> Option<Call<'_>> {
    serde_json::from_slice(body).ok()
}

fn reply(out: &mut Vec<u8>, call: Option<&Call<'_>>, shared: &Shared) {
    let Some(call) = call else {
        return out.extend_from_slice(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n");
    };
    let id = call.id.get();
    match call.method {
        "tools/call" => tool_result(out, id, STATUS),
        "tools/list" => result(out, id, &shared.tool_list),
        "initialize" => result(out, id, INITIALIZED),
        _ => result(out, id, b"{}"),
    }
}

fn respond(out: &mut Vec<u8>, parts: &[&[u8]]) {
    out.extend_from_slice(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ");
    let length: usize = parts.iter().map(|part| part.len()).sum();
    out.extend_from_slice(itoa::Buffer::new().format(length).as_bytes());
    out.extend_from_slice(b"\r\n\r\n");
    for part in parts {
        out.extend_from_slice(part);
    }
}

fn result(out: &mut Vec<u8>, id: &str, result: &[u8]) {
    let (before, between) = (br#"{"jsonrpc":"2.0","id":"#, br#","result":"#);
    respond(out, &[before, id.as_bytes(), between, result, b"}"]);
}

/// A tool's result whose one text block is what was said.
fn tool_result(out: &mut Vec<u8>, id: &str, said: &[u8]) {
    let text = serde_json::to_string(&*String::from_utf8_lossy(said)).unwrap_or_default();
    let (before, between) =
        (br#"{"jsonrpc":"2.0","id":"#, br#","result":{"content":[{"type":"text","text":"#);
    let after = br#"}],"isError":false}}"#;
    respond(out, &[before, id.as_bytes(), between, text.as_bytes(), after]);
}
