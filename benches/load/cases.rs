//! The cases: what each asks of Ringway, and of the bare server it is compared with.

use crate::api::Api;
use crate::load::{self, Measured, Plan};
use crate::process::Server;
use crate::request::{BOTH, EVENT_STREAM, Target, initialize, modern_headers, modern_rpc, rpc};
use crate::setup::{Bare, CLASSES, Governance, Offer, Ringway, Setup};
use crate::streams::{Delivery, Streams};
use crate::upstream::{EVENTS, JSON};
use std::io;
use std::time::Duration;

pub(crate) const REQUEST_HEADER: &str = "# case\treq_per_s\tp50_us\tp99_us\tratio\tcpu_us\t\
    bare_per_s\tbare_cpu_us\tcpu_ratio\tload_share";
pub(crate) const IDLE_HEADER: &str =
    "# case\tstreams\tbytes_per_stream_with_session\tbytes_per_session\tbytes_per_stream\tidle_cpu";
pub(crate) const FANOUT_HEADER: &str =
    "# case\tstreams\tp50_us\tp99_us\tratio\tcpu_us\tall_us\tbare_p50_us\tbare_p99_us";

/// A session is on disk soon after its answer, so this case is bounded in count as well.
const INITIALIZE_REQUESTS_MAX: u64 = 40_000;
const FANOUT_ROUNDS: usize = 5;
const IDLE_SECONDS: u64 = 3;

pub(crate) struct Options {
    pub(crate) seconds: f64,
    pub(crate) rounds: usize,
    pub(crate) connections: usize,
    pub(crate) streams: usize,
    pub(crate) sessions: bool,
}

/// One kind of request under load.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    body: fn() -> String,
    shape: Shape,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// Answered without going anywhere.
    Answer,
    /// As `Answer`, from the client application that sees the tool list.
    List,
    /// One downstream request; the answer is JSON.
    Hop,
    /// One downstream request; the client takes an event stream and nothing else. The bare server
    /// answers JSON all the same: what framing costs counts against Ringway.
    HopAsStream,
    /// One downstream request to a SOAP service.
    SoapHop,
    /// As `Hop`, asked by a modern client, which has no session.
    ModernHop,
    /// One call of an upstream MCP server that answers with JSON, as the client gets it.
    Relay,
    /// One call of an upstream MCP server that answers with an event stream; the client takes nothing
    /// else either. The bare server relays JSON all the same.
    RelayAsStream,
    /// Opens a session.
    Open,
}

pub(crate) const CASES: &[Case] = &[
    Case { name: "ping", body: || rpc("ping", "{}"), shape: Shape::Answer },
    Case { name: "tools_list_50", body: || rpc("tools/list", "{}"), shape: Shape::List },
    Case { name: "tools_call_builtin", body: status, shape: Shape::Answer },
    Case { name: "tools_call_rest_json", body: echo, shape: Shape::Hop },
    Case { name: "tools_call_rest_sse", body: echo, shape: Shape::HopAsStream },
    Case { name: "tools_call_soap", body: soap, shape: Shape::SoapHop },
    Case { name: "initialize", body: initialize, shape: Shape::Open },
    Case { name: "modern_call_rest_json", body: modern_echo, shape: Shape::ModernHop },
];
/// Calls that a Ringway with upstream MCP servers relays; compared with the bare server handing the
/// message on as it is.
pub(crate) const RELAYS: &[Case] = &[
    Case { name: "mcp_upstream_call_json", body: || relay(JSON.tool), shape: Shape::Relay },
    Case {
        name: "mcp_upstream_call_sse",
        body: || relay(EVENTS.tool),
        shape: Shape::RelayAsStream,
    },
];
/// A list of as many tools as one application may see; compared with the bare server sending the
/// same bytes, as `tools_list_50` is.
pub(crate) const LIST_5000: Case =
    Case { name: "tools_list_5000", body: || rpc("tools/list", "{}"), shape: Shape::List };
/// A call under policies, limits and audit, compared with one under none of them.
pub(crate) const GOVERNANCE: &str = "governance_cost";
pub(crate) const GOVERNANCE_HEADER: &str = "# case\treq_per_s\tp50_us\tp99_us\tratio\tcpu_us\t\
    ungoverned_per_s\tungoverned_cpu_us\tcpu_ratio\tload_share";
pub(crate) const IDLE: &str = "idle_stream_bytes";
pub(crate) const FANOUT: &str = "fanout_10000";

fn status() -> String {
    rpc("tools/call", r#"{"name":"runtime_status","arguments":{}}"#)
}

const ECHO: &str = r#"{"name":"echo","arguments":{"message":"hello from the load tool"}}"#;

fn echo() -> String {
    rpc("tools/call", ECHO)
}

fn modern_echo() -> String {
    modern_rpc("tools/call", ECHO)
}

fn relay(tool: &str) -> String {
    rpc("tools/call", &ECHO.replace("\"echo\"", &format!("\"{tool}\"")))
}

fn soap() -> String {
    let arguments = r#"{"message":"hello from the load tool","count":3,"tags":["a","b & c"]}"#;
    rpc("tools/call", &format!(r#"{{"name":"say","arguments":{arguments}}}"#))
}

/// Rounds of Ringway and the bare server in turn, so that a slow minute meets both.
pub(crate) fn requests(
    case: &Case,
    options: &Options,
    (ringway, bare): (&Ringway, &Bare),
    api: &mut Api,
) -> io::Result<String> {
    let body = (case.body)();
    let modern = modern_headers("echo");
    let headers = if case.shape == Shape::ModernHop { modern.as_str() } else { "" };
    let mut measure = |target: &Target, server: &Server, sessions: bool, event_stream: bool| {
        let plan = Plan {
            target,
            body: &body,
            headers,
            accept: if event_stream { EVENT_STREAM } else { BOTH },
            sessions,
            event_stream,
            connections: options.connections,
            warm_up: Duration::from_millis(300),
            duration: Duration::from_secs_f64(options.seconds),
            requests_max: if case.shape == Shape::Open {
                INITIALIZE_REQUESTS_MAX
            } else {
                u64::MAX
            },
        };
        load::run(&plan, server, api)
    };
    let target = if case.shape == Shape::List { &ringway.lists } else { &ringway.calls };
    let event_stream = matches!(case.shape, Shape::HopAsStream | Shape::RelayAsStream);
    let bare_target = match case.shape {
        Shape::Hop | Shape::HopAsStream | Shape::ModernHop => &bare.hops,
        Shape::SoapHop => &bare.soap_hops,
        Shape::Relay | Shape::RelayAsStream => &bare.relays,
        Shape::Answer | Shape::List | Shape::Open => &bare.answers,
    };
    let sessions = options.sessions && !matches!(case.shape, Shape::Open | Shape::ModernHop);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..options.rounds {
        ours.push(measure(target, &ringway.server, sessions, event_stream)?);
        theirs.push(measure(bare_target, &bare.server, false, false)?);
    }
    Ok(line(case.name, &ours, &theirs))
}

/// What policies, limits and audit cost a call of an HTTP API: two Ringways on the same core, with
/// and without them, in turn.
pub(crate) fn governance(setup: &Setup, options: &Options, api: &mut Api) -> io::Result<String> {
    let offer = |governance| Offer { listed: 1, governance, relays: false };
    let start = |name: &str, governance| setup.start_ringway(name, offer(governance));
    let (governed, free) = (start("governed", Governance::Full)?, start("free", Governance::Off)?);
    let body = echo();
    let mut measure = |ringway: &Ringway| {
        let plan = Plan {
            target: &ringway.calls,
            body: &body,
            headers: "",
            accept: BOTH,
            sessions: options.sessions,
            event_stream: false,
            connections: options.connections,
            warm_up: Duration::from_millis(300),
            duration: Duration::from_secs_f64(options.seconds),
            requests_max: u64::MAX,
        };
        load::run(&plan, &ringway.server, api)
    };
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..options.rounds {
        ours.push(measure(&governed)?);
        theirs.push(measure(&free)?);
    }
    check_governance(&governed, &free, &ours)?;
    Ok(line(GOVERNANCE, &ours, &theirs))
}

/// Every call that was measured is on record, and counted by the limits of every level.
fn check_governance(governed: &Ringway, free: &Ringway, ours: &[Measured]) -> io::Result<()> {
    let answers: u64 = ours.iter().map(|round| round.answers).sum();
    let (records, none) = (governed.audit_records()?, free.audit_records()?);
    if records < answers || none > 0 {
        let text = format!("{answers} calls, {records} records; ungoverned {none} records");
        return Err(io::Error::other(text));
    }
    let used = governed.used_limits()?;
    let levels = ["tenant", "client_application", "caller"];
    let all = levels.iter().flat_map(|level| CLASSES.iter().map(move |of| format!("{level} {of}")));
    match all.chain(["tool tool_calls".to_owned()]).find(|limit| !used.contains(limit)) {
        None => Ok(()),
        Some(limit) => Err(io::Error::other(format!("the limit {limit} counted nothing"))),
    }
}

fn line(name: &str, ours: &[Measured], theirs: &[Measured]) -> String {
    let of = |rounds: &[Measured], what: fn(&Measured) -> f64| median(rounds.iter().map(what));
    let pairs = || ours.iter().zip(theirs);
    let ratio = median(pairs().map(|(our, their)| our.per_second / their.per_second));
    let cpu_ratio = median(pairs().map(|(our, their)| their.cpu_us / our.cpu_us));
    format!(
        "{name}\t{:.0}\t{:.0}\t{:.0}\t{ratio:.2}\t{:.2}\t{:.0}\t{:.2}\t{cpu_ratio:.2}\t{:.2}",
        of(ours, |round| round.per_second),
        of(ours, |round| round.p50_us),
        of(ours, |round| round.p99_us),
        of(ours, |round| round.cpu_us),
        of(theirs, |round| round.per_second),
        of(theirs, |round| round.cpu_us),
        of(ours, |round| round.load_share),
    )
}

/// What a standing stream and its session cost while nothing happens, in a fresh process.
pub(crate) fn idle(setup: &Setup, options: &Options) -> io::Result<String> {
    let ringway = setup.start_ringway(IDLE, Offer::FIFTY)?;
    let count = options.streams;
    let mut streams = Streams::open(&ringway.calls, &ringway.server, count, true)?;
    let used = streams.idle(&ringway.server, IDLE_SECONDS)?;
    let [before, with_sessions, with_streams] = streams.resident;
    let each = |from: u64, to: u64| to.saturating_sub(from) / count.max(1) as u64;
    Ok(format!(
        "{IDLE}\t{count}\t{}\t{}\t{}\t{:.3}",
        each(before, with_streams),
        each(before, with_sessions),
        each(with_sessions, with_streams),
        used.as_secs_f64() / Duration::from_secs(IDLE_SECONDS).as_secs_f64(),
    ))
}

/// One message to every stream, for Ringway and then for the bare server.
pub(crate) fn fanout(setup: &Setup, options: &Options) -> io::Result<String> {
    let count = options.streams;
    let rounds = |streams: &mut Streams, server: &Server, notify: &dyn Fn() -> io::Result<()>| {
        (0..FANOUT_ROUNDS).map(|_| streams.deliver(server, notify)).collect::<io::Result<Vec<_>>>()
    };
    let ours = {
        let ringway = setup.start_ringway(FANOUT, Offer::FIFTY)?;
        let mut streams = Streams::open(&ringway.calls, &ringway.server, count, true)?;
        rounds(&mut streams, &ringway.server, &|| ringway.notify())?
    };
    let theirs = {
        let bare = setup.start_bare("bare-fanout", b"{}")?;
        let mut streams = Streams::open(&bare.answers, &bare.server, count, false)?;
        rounds(&mut streams, &bare.server, &|| bare.notify())?
    };
    let of = |rounds: &[Delivery], what: fn(&Delivery) -> f64| median(rounds.iter().map(what));
    let (our_p50, bare_p50) = (of(&ours, |r| r.p50_us), of(&theirs, |r| r.p50_us));
    let streams = f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    Ok(format!(
        "{FANOUT}\t{count}\t{our_p50:.0}\t{:.0}\t{:.2}\t{:.2}\t{:.0}\t{bare_p50:.0}\t{:.0}",
        of(&ours, |round| round.p99_us),
        bare_p50 / our_p50,
        of(&ours, |round| round.cpu.as_secs_f64()) * 1e6 / streams,
        of(&ours, |round| round.all.as_secs_f64()) * 1e6,
        of(&theirs, |round| round.p99_us),
    ))
}

pub(crate) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        count if count % 2 == 1 => values[count / 2],
        count => f64::midpoint(values[count / 2 - 1], values[count / 2]),
    }
}
