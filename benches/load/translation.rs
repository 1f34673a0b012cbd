//! What is measured in process, without a socket: how fast JSON is translated, and what an import of
//! a large description takes.

use crate::cases::{Options, median};
use crate::setup::TENANT;
use ringway::catalog::{Entities, TenantId, ToolsetId, files};
use ringway::import::{
    Consent, Documents, Location, Options as ImportOptions, Selection, Step, Target, openapi, plan,
};
use ringway::json::guard;
use ringway::mapping::{FieldRule, RequestBody, RequestPlan, ResponsePlan, Unmapped};
use std::hint::black_box;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub(crate) const TRANSLATE: &str = "translate_json_100k";
pub(crate) const TRANSLATE_HEADER: &str =
    "# case\tbytes\tmb_per_s\trequest_mb_per_s\tresponse_mb_per_s";
pub(crate) const IMPORT: &str = "import_octokit";
pub(crate) const IMPORT_HEADER: &str = "# case\tmb\toperations\ttools\tseconds\tpeak_mb";

const BODY_BYTES: usize = 100_000;
/// Names the description to import.
const VARIABLE: &str = "RINGWAY_BENCH_OPENAPI";
/// Where it is looked for without that.
const UNPACKED: &str = "tests/.environment/octokit/package/generated/api.github.com.json";

/// An order as a client sees it; the API has other names for half of it.
const RULES: &str = r#"[
    {"source_field_name": "ord.lns[*].sku", "exposed_field_name": "article", "required": true},
    {"source_field_name": "ord", "type": "object", "exposed_field_name": "order"},
    {"source_field_name": "ord.lns", "type": "array", "exposed_field_name": "lines"},
    {"source_field_name": "ord.lns[*].quantity", "type": "integer"},
    {"source_field_name": "ord.lns[*].price", "type": "number"},
    {"source_field_name": "ord.lns[*].txt", "exposed_field_name": "text"},
    {"source_field_name": "ord.lns[*].gift", "type": "boolean"}
]"#;

/// Arguments checked and written as a request, and the echo of it written as a result.
pub(crate) fn translate(options: &Options) -> io::Result<String> {
    let mut lines = Vec::new();
    let mut bytes = 0;
    while bytes < BODY_BYTES {
        let number = lines.len();
        let line = format!(
            "{{\"article\":\"A-{number}\",\"quantity\":{number},\"price\":{number}.50,\
             \"text\":\"Größe {number}, \\\"rot\\\", und noch etwas mehr Text\",\"gift\":true}}"
        );
        bytes += line.len() + 1;
        lines.push(line);
    }
    let arguments = format!("{{\"order\":{{\"lines\":[{}]}}}}", lines.join(","));
    let rules: Vec<FieldRule> = serde_json::from_str(RULES)?;
    let request = RequestPlan::compile("POST", "/orders", &rules, RequestBody::default());
    let request = request.map_err(io::Error::other)?;
    let response = ResponsePlan::compile(&rules, Unmapped::Drop).map_err(io::Error::other)?;
    let sent = |text: &str| -> io::Result<Vec<u8>> {
        let checked = guard(text.as_bytes()).map_err(io::Error::other)?;
        let valid = request.validate(Some(checked.root())).map_err(io::Error::other)?;
        let built = request.build(&valid);
        built.body.ok_or_else(|| io::Error::other("a request without a body"))
    };
    let shown = |body: &[u8]| -> io::Result<Vec<u8>> {
        let checked = guard(body).map_err(io::Error::other)?;
        Ok(response.translate(checked.root()).json)
    };
    let body = sent(&arguments)?;
    if shown(&body)? != arguments.as_bytes() {
        return Err(io::Error::other("what came back is not what was sent"));
    }
    let time = Duration::from_secs_f64(options.seconds / 2.0);
    let (mut there, mut back, mut both) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..options.rounds {
        let one = rate(time, arguments.len(), || sent(black_box(&arguments)))?;
        let other = rate(time, body.len(), || shown(black_box(&body)))?;
        both.push(1.0 / (1.0 / one + 1.0 / other));
        there.push(one);
        back.push(other);
    }
    let of = |rates: Vec<f64>| median(rates.into_iter());
    let (both, there, back) = (of(both), of(there), of(back));
    Ok(format!("{TRANSLATE}\t{}\t{both:.0}\t{there:.0}\t{back:.0}", arguments.len()))
}

/// MB a second.
fn rate<T>(time: Duration, bytes: usize, work: impl Fn() -> io::Result<T>) -> io::Result<f64> {
    let started = Instant::now();
    let mut rounds = 0_u32;
    while started.elapsed() < time || rounds < 3 {
        black_box(work()?);
        rounds += 1;
    }
    let megabytes = f64::from(u32::try_from(bytes).unwrap_or(u32::MAX)) / 1e6;
    Ok(f64::from(rounds) * megabytes / started.elapsed().as_secs_f64())
}

/// Reads the description and plans its tools for a catalog without any.
pub(crate) fn import(rounds: usize) -> io::Result<String> {
    let path = std::env::var_os(VARIABLE).map_or_else(|| PathBuf::from(UNPACKED), PathBuf::from);
    let bytes = std::fs::read(&path).map_err(|error| {
        let path = path.display();
        io::Error::other(format!(
            "not measured, because its document is not there ({path}: {error}); get it with \
             `mkdir -p tests/.environment/octokit && cd tests/.environment/octokit && npm pack \
             @octokit/openapi && tar xzf *.tgz`, or name one with {VARIABLE}"
        ))
    })?;
    let megabytes = f64::from(u32::try_from(bytes.len()).unwrap_or(u32::MAX)) / 1e6;
    let (published, problems) =
        files::read_text(Path::new("catalog.toml"), &format!("[[tenant]]\nid = \"{TENANT}\"\n"));
    if !problems.is_empty() {
        return Err(io::Error::other(format!("{problems:?}")));
    }
    let (mut times, mut peaks) = (Vec::new(), Vec::new());
    let mut counts = (0, 0);
    for _ in 0..rounds {
        // As if the highest so far were what is used now.
        std::fs::write("/proc/self/clear_refs", "5")?;
        let before = memory_kb("VmRSS:")?;
        let started = Instant::now();
        counts = imported(bytes.clone(), &published)?;
        times.push(started.elapsed().as_secs_f64());
        peaks.push(f64::from(memory_kb("VmHWM:")?.saturating_sub(before)) / 1e3);
    }
    let (operations, tools) = counts;
    // Later rounds find memory that the first one left.
    let peak = peaks.into_iter().fold(0.0, f64::max);
    let seconds = median(times.into_iter());
    Ok(format!("{IMPORT}\t{megabytes:.1}\t{operations}\t{tools}\t{seconds:.2}\t{peak:.0}"))
}

/// How many operations there are, and how many tools they come to.
fn imported(bytes: Vec<u8>, published: &Entities) -> io::Result<(usize, usize)> {
    let mut documents = Documents::new();
    let root = Location::bundle("api.json").map_err(io::Error::other)?;
    documents.add(&root, bytes).map_err(io::Error::other)?;
    let step = openapi::read(&documents, &root, &ImportOptions::default());
    let Step::Done(description) = step.map_err(io::Error::other)? else {
        return Err(io::Error::other("the description refers to other documents"));
    };

    let target = Target {
        tenant: TenantId::new(TENANT).map_err(io::Error::other)?,
        toolset: ToolsetId::new("octokit").map_err(io::Error::other)?,
        connection: None,
        base_url: None,
        origin: "api.json".to_owned(),
    };
    let consent = Consent { publish: true, accept_breaking: false };
    let planned = plan(published, &description, &target, &Selection::default(), consent);
    let planned = planned.map_err(io::Error::other)?;
    Ok((description.operations.len(), planned.entities.tools.len()))
}

/// A line of what the kernel says of this process, in kB.
fn memory_kb(name: &str) -> io::Result<u32> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
    number.ok_or_else(|| io::Error::other(format!("{name} is not told")))
}
