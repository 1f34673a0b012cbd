//! The load tool: starts Ringway and a bare server of the same runtime on one core, asks both the
//! same from another, checks every answer, and prints one line a case. Started by `benches/run`,
//! which builds what it needs and says what the columns mean.
//!
//! It speaks to loopback addresses only, and every run is bounded in time and count.
#![expect(clippy::print_stdout, reason = "the figures are this program's output")]
#![expect(clippy::format_push_string, reason = "texts are made before anything is measured")]

mod api;
mod cases;
mod catalog;
mod histogram;
mod load;
mod process;
mod request;
mod response;
mod ring;
mod setup;
mod streams;
mod translation;
mod upstream;

use api::Api;
use cases::{CASES, FANOUT, GOVERNANCE, IDLE, LIST_5000, Options, RELAYS};
use clap::Parser;
use ring::Ring;
use setup::{Offer, Ringway, Setup};
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

/// For what is asked of the API before anything is measured.
const RECEIVE_BYTES: usize = 16 << 10;
const SET_UP_CONNECTIONS: usize = 16;

/// The allocator of the `ringway` binary, for what is measured in process.
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// One line a case: Ringway under load, compared with a bare server on the same runtime.
#[derive(Parser)]
#[command(name = "benches/run")]
struct Arguments {
    /// The release binary of Ringway.
    #[arg(long, hide = true)]
    binary: Option<PathBuf>,
    /// The bare server.
    #[arg(long, hide = true)]
    bare: Option<PathBuf>,
    /// The core the servers are pinned to.
    #[arg(long, default_value_t = 0)]
    server_cpu: usize,
    /// How long a measurement takes; each case takes two in a round.
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Rounds of a case; figures are their medians.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Connections, each with one request in flight.
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// Streams of the cases about streams.
    #[arg(long, default_value_t = 10_000)]
    streams: usize,
    /// Sends requests without a session.
    #[arg(long)]
    sessionless: bool,
    /// Given by cargo.
    #[arg(long, hide = true)]
    bench: bool,
    /// The cases to run; all when none is named.
    cases: Vec<String>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let (Some(binary), Some(bare)) = (arguments.binary, arguments.bare) else {
        eprintln!("start this with benches/run");
        return ExitCode::SUCCESS;
    };
    let options = Options {
        seconds: arguments.seconds.clamp(0.1, 60.0),
        rounds: arguments.rounds.clamp(1, 50),
        connections: arguments.connections.clamp(1, 1024),
        streams: arguments.streams.clamp(1, 50_000),
        sessions: !arguments.sessionless,
    };
    let known: Vec<&str> = CASES
        .iter()
        .chain(RELAYS)
        .map(|case| case.name)
        .chain([LIST_5000.name, GOVERNANCE, IDLE, FANOUT, catalog::COMPILE, catalog::CHANGE])
        .chain([translation::TRANSLATE, translation::IMPORT])
        .collect();
    if let Some(unknown) = arguments.cases.iter().find(|name| !known.contains(&name.as_str())) {
        eprintln!("there is no case `{unknown}`; there are: {}", known.join(" "));
        return ExitCode::from(2);
    }
    let wanted =
        |name: &str| arguments.cases.is_empty() || arguments.cases.iter().any(|c| c == name);
    match run(&binary, &bare, arguments.server_cpu, &options, wanted) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// A Ringway that has asked its upstream MCP servers for their tools. They are served here meanwhile,
/// by a ring that ends with it: two would take each other's connections.
fn start_relays(setup: &Setup, api: &mut Api) -> io::Result<Ringway> {
    let mut ring = Ring::new(SET_UP_CONNECTIONS, RECEIVE_BYTES)?;
    api.attach(&mut ring)?;
    api.while_serving(&mut ring, || {
        let ringway = setup.start_ringway("relays", Offer { relays: true, ..Offer::FIFTY })?;
        ringway.wait_for_relays()?;
        Ok(ringway)
    })
}

/// A case that fails does not end the others, but the run ends with an error.
fn run(
    binary: &std::path::Path,
    bare: &std::path::Path,
    server_cpu: usize,
    options: &Options,
    wanted: impl Fn(&str) -> bool,
) -> io::Result<()> {
    let mut api = Api::new()?;
    let setup = Setup {
        binary: binary.to_owned(),
        bare: bare.to_owned(),
        server_cpu,
        api: api.address()?,
        folder: tempfile::tempdir()?,
    };
    let mut failed = 0_usize;
    let mut report = |name: &str, outcome: io::Result<String>| match outcome {
        Ok(line) => println!("{line}"),
        Err(error) => {
            failed += 1;
            eprintln!("{name}: {error}");
        }
    };
    if CASES.iter().any(|case| wanted(case.name)) {
        let ringway = setup.start_ringway("requests", Offer::FIFTY)?;
        let bare = setup.start_bare("bare-requests", &ringway.tool_list()?)?;
        println!("{}", cases::REQUEST_HEADER);
        for case in CASES.iter().filter(|case| wanted(case.name)) {
            let line = cases::requests(case, options, (&ringway, &bare), &mut api);
            report(case.name, line);
        }
    }
    if RELAYS.iter().any(|case| wanted(case.name)) {
        let ringway = start_relays(&setup, &mut api)?;
        let bare = setup.start_bare("bare-relays", b"{}")?;
        println!("{}", cases::REQUEST_HEADER);
        for case in RELAYS.iter().filter(|case| wanted(case.name)) {
            let line = cases::requests(case, options, (&ringway, &bare), &mut api);
            report(case.name, line);
        }
    }
    if wanted(LIST_5000.name) {
        let offer = Offer { listed: 5000, ..Offer::FIFTY };
        let ringway = setup.start_ringway(LIST_5000.name, offer)?;
        let bare = setup.start_bare("bare-list", &ringway.tool_list()?)?;
        println!("{}", cases::REQUEST_HEADER);
        report(LIST_5000.name, cases::requests(&LIST_5000, options, (&ringway, &bare), &mut api));
    }
    if wanted(GOVERNANCE) {
        println!("{}", cases::GOVERNANCE_HEADER);
        report(GOVERNANCE, cases::governance(&setup, options, &mut api));
    }
    if wanted(catalog::COMPILE) || wanted(catalog::CHANGE) {
        println!("{}", catalog::HEADER);
        for name in [catalog::COMPILE, catalog::CHANGE].into_iter().filter(|name| wanted(name)) {
            report(name, catalog::measure(name, options.rounds));
        }
    }
    if wanted(translation::TRANSLATE) {
        println!("{}", translation::TRANSLATE_HEADER);
        report(translation::TRANSLATE, translation::translate(options));
    }
    if wanted(translation::IMPORT) {
        println!("{}", translation::IMPORT_HEADER);
        report(translation::IMPORT, translation::import(options.rounds));
    }
    if wanted(IDLE) {
        println!("{}", cases::IDLE_HEADER);
        report(IDLE, cases::idle(&setup, options));
    }
    if wanted(FANOUT) {
        println!("{}", cases::FANOUT_HEADER);
        report(FANOUT, cases::fanout(&setup, options));
    }
    if failed > 0 {
        return Err(io::Error::other(format!("{failed} cases failed")));
    }
    Ok(())
}
