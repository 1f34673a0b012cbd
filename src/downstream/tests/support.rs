//! What the tests of this room share.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use super::api::Api;
use crate::catalog::{CompiledTool, fixture};
use crate::downstream::error::CallError;
use crate::downstream::{AcrossCores, CallEnvironment, Carried, Reach, RestCaller};
use crate::mapping::OutgoingRequest;
use crate::mcp::ToolOutcome;
use crate::rt::{self, CoreOptions, Resolver, WorkerPool};
use crate::settings;
use crate::telemetry::CoreMetrics;
use crate::telemetry::ExecutionId;

pub(super) const SECOND: Duration = Duration::from_secs(1);
pub(super) const ENVIRONMENT: CallEnvironment<'_> = CallEnvironment {
    execution_id: ExecutionId::NIL,
    external_id: None,
    trace: None,
    carried: &Carried::NONE,
};

/// A tool of kind `rest` behind a connection with these extra lines in its declaration.
pub(super) fn tool_at(base_url: &str, connection: &str) -> Arc<CompiledTool> {
    let anything = "method = \"GET\"\npath = \"/anything\"";
    declared(base_url, connection, anything)
}

/// A tool with this method, path and these fields.
pub(in crate::downstream) fn declared(
    base_url: &str,
    connection: &str,
    tool: &str,
) -> Arc<CompiledTool> {
    let text = format!(
        r#"
        [[tenant]]
        id = "acme"
        egress_allowances = ["127.0.0.0/8", "::1/128"]
        [[client_application]]
        tenant = "acme"
        id = "desk"
        [[connection]]
        tenant = "acme"
        id = "orders"
        base_url = "{base_url}"
        {connection}
        [[toolset]]
        tenant = "acme"
        id = "shop"
        kind = "rest"
        connection = "orders"
        [[tool]]
        tenant = "acme"
        toolset = "shop"
        name = "anything"
        description = "Asks anything"
        {tool}
        [[assignment]]
        tenant = "acme"
        client_application = "desk"
        toolset = "shop"
        "#
    );
    Arc::clone(&fixture::view(&text).tool("anything").unwrap().tool)
}

pub(super) fn tool(api: &Api, connection: &str) -> Arc<CompiledTool> {
    tool_at(&format!("http://{}/v1/", api.address), connection)
}

pub(super) fn request(method: &str, target: &str) -> OutgoingRequest {
    OutgoingRequest {
        method: method.into(),
        target: target.into(),
        headers: Vec::new(),
        body: None,
        content_type: None,
    }
}

pub(super) fn posting(body: &[u8]) -> OutgoingRequest {
    OutgoingRequest {
        body: Some(body.to_vec()),
        content_type: Some("application/json".into()),
        ..request("POST", "/orders")
    }
}

pub(super) fn caller_with(change: impl FnOnce(&mut settings::Downstream)) -> RestCaller {
    caller_counted_by(&Arc::default(), change)
}

pub(super) fn caller_counted_by(
    metrics: &Arc<CoreMetrics>,
    change: impl FnOnce(&mut settings::Downstream),
) -> RestCaller {
    let mut settings = settings::Downstream::default();
    change(&mut settings);
    let workers = WorkerPool::start(1, 64).unwrap();
    let resolver = Resolver::new(workers.clone());
    let http = settings::Http::default();
    let (across, metrics) = (AcrossCores::default(), Arc::clone(metrics));
    RestCaller::new(Reach::new(&settings, &http, resolver, workers, None, across, metrics))
}

pub(super) fn caller() -> RestCaller {
    caller_with(|_| {})
}

pub(super) fn on_a_core<T>(future: impl Future<Output = T>) -> T {
    rt::run_once(CoreOptions::default(), future).unwrap()
}

/// One call with an own caller.
pub(super) fn call(
    tool: &Arc<CompiledTool>,
    request: &OutgoingRequest,
) -> Result<ToolOutcome, CallError> {
    on_a_core(async { caller().run(tool, request, &ENVIRONMENT).await.result })
}

pub(super) fn get(api: &Api) -> Result<ToolOutcome, CallError> {
    call(&tool(api, ""), &request("GET", "/x"))
}

#[expect(clippy::unnecessary_wraps, reason = "compared with what a call returns")]
pub(super) fn json(text: &str) -> Result<ToolOutcome, CallError> {
    Ok(ToolOutcome::Success { structured_json: Some(text.as_bytes().to_vec()), text: None })
}

pub(super) fn failure(outcome: Result<ToolOutcome, CallError>) -> String {
    match outcome {
        Ok(ToolOutcome::Failure { text }) => text,
        other => panic!("{other:?}"),
    }
}

pub(super) fn text(outcome: Result<ToolOutcome, CallError>) -> String {
    match outcome {
        Ok(ToolOutcome::Success { structured_json: None, text: Some(text) }) => text,
        other => panic!("{other:?}"),
    }
}

pub(super) fn gzipped(plain: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}
