//! The admin plane: what operators ask and change, as JSON over the admin socket, and `/metrics`.
//!
//! The socket's file mode is the authority: who may open it is an operator. Changes run on a
//! worker, because they compile and write to disk; so does reading the catalog.
//!
//! ```text
//! routes      the one table of what there is; openapi describes it, operation by operation
//! ask         a request taken apart: names, query, body, author, condition
//! entities    list, read, create, replace, patch, delete, publish, unpublish
//! changes     apply, export, reload, history, rollback
//! upstreams   how MCP servers behind toolsets stand; approve and refuse what they offer
//! keys sessions status explain
//! ```
//!
//! Invariants worth naming:
//! - What is not in the description is not answered: unknown parameters are refused, and an answer
//!   with a status that the operation does not declare is a defect that debug builds trip over.
//! - Secrets leave only through `/export`, and there not with `mask=true`.
//! - Every change of the catalog names its author.

mod ask;
mod changes;
mod condition;
mod entities;
mod explain;
mod keys;
mod merge_patch;
mod openapi;
mod routes;
mod schema;
mod sessions;
mod status;
mod upstream_schema;
mod upstreams;

use std::rc::Rc;

use serde_json::{Value, json};

use self::ask::Ask;
use self::routes::{Found, Operation};
use super::{
    change_error::ChangeError,
    change_log::ChangeLogError,
    connection::{Answer, Plane},
    core::Core,
    respond::{self, Echo},
    shared::Shared,
};
use crate::{
    governance::definitions::Act, http::RequestView, rt::WorkError, telemetry::METRICS_CONTENT_TYPE,
};

pub use keys::key_record;

/// What an operator is told instead of an answer.
#[derive(Debug)]
struct Trouble {
    status: u16,
    message: String,
    /// The methods a path has, where the one used is none of them.
    allow: Option<String>,
}

impl Trouble {
    fn new(status: u16, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), allow: None }
    }
}

impl From<ChangeError> for Trouble {
    fn from(error: ChangeError) -> Self {
        let status = match &error {
            ChangeError::NoSuchKey(_)
            | ChangeError::NoSuchClientApplication { .. }
            | ChangeError::NoSuchEntity(_) => 404,
            ChangeError::Exists(_) => 409,
            ChangeError::Conflict(_) => 412,
            ChangeError::Problems(_)
            | ChangeError::Needed { .. }
            | ChangeError::Rows(_)
            | ChangeError::Invalid(_)
            | ChangeError::Refused(_) => 422,
            ChangeError::Unconditional(_) => 428,
            ChangeError::Key(_) => 500,
            ChangeError::Log(error) => return error.into(),
            ChangeError::Store(_) => 503,
        };
        Self::new(status, error.to_string())
    }
}

impl From<&ChangeLogError> for Trouble {
    fn from(error: &ChangeLogError) -> Self {
        let status = match error {
            ChangeLogError::NoSuchVersion { .. } => 404,
            ChangeLogError::Record(_) | ChangeLogError::Seal(_) => 500,
            ChangeLogError::Store(_) => 503,
        };
        Self::new(status, error.to_string())
    }
}

impl From<ChangeLogError> for Trouble {
    fn from(error: ChangeLogError) -> Self {
        Self::from(&error)
    }
}

impl From<WorkError> for Trouble {
    fn from(error: WorkError) -> Self {
        Self::new(503, format!("nothing was done: {error}; try again"))
    }
}

/// An answer.
#[derive(Debug)]
struct Done {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

impl Done {
    fn json(status: u16, body: &Value) -> Self {
        let headers = vec![("Content-Type", "application/json".to_owned())];
        Self { status, headers, body: format!("{body}\n").into_bytes() }
    }

    fn ok(body: &Value) -> Self {
        Self::json(200, body)
    }

    fn with(mut self, name: &'static str, value: String) -> Self {
        self.headers.push((name, value));
        self
    }
}

impl From<Trouble> for Done {
    fn from(trouble: Trouble) -> Self {
        let done = Self::json(trouble.status, &json!({ "error": trouble.message }));
        match trouble.allow {
            Some(allow) => done.with("Allow", allow),
            None => done,
        }
    }
}

/// Answers a request of the admin plane.
pub(crate) async fn answer(
    core: &Rc<Core>,
    plane: Plane,
    request: &RequestView<'_>,
    out: &mut Vec<u8>,
) -> Answer {
    let echo = Echo::of(request);
    let done = match routes::find(request.method(), request.path()) {
        Found::Route { operation, names } => {
            let done = match Ask::of(plane, operation, names, request) {
                Ok(ask) => Box::pin(obey(core, operation, ask)).await.unwrap_or_else(Done::from),
                Err(trouble) => trouble.into(),
            };
            debug_assert!(
                openapi::is_declared(operation, done.status),
                "{operation:?} does not declare {}",
                done.status
            );
            done
        }
        Found::OtherMethods(allow) => {
            let message = format!("{} is not possible here, but {allow}", request.method_text());
            Trouble { status: 405, message, allow: Some(allow) }.into()
        }
        Found::Nothing => {
            Trouble::new(404, format!("no such resource; there are {}", routes::overview())).into()
        }
    };
    respond::body_with(core, out, &echo, done.status, &done.headers, &done.body);
    Answer::Written { keep_alive: echo.keep_alive }
}

async fn obey(core: &Rc<Core>, operation: Operation, ask: Ask) -> Result<Done, Trouble> {
    match operation {
        Operation::Metrics => {
            let body = core.shared.metrics.render().into_bytes();
            let headers = vec![("Content-Type", METRICS_CONTENT_TYPE.to_owned())];
            Ok(Done { status: 200, headers, body })
        }
        Operation::OpenApi => Ok(Done::ok(&openapi::description())),
        Operation::Status => Ok(Done::ok(&status::status(core))),
        Operation::Sessions => sessions::list(core, &ask).await,
        Operation::Keys => Ok(Done::ok(&keys::list(core))),
        Operation::CreateKey => keys::create(core, &ask).await,
        Operation::RevokeKey => keys::revoke(core, &ask).await,
        Operation::Explain => on_worker(core, move |shared| explain::explain(shared, &ask)).await,
        Operation::Notify => {
            core.shared.tell_everyone();
            Ok(Done::ok(&json!({ "notified": true })))
        }
        Operation::Apply => on_worker(core, move |shared| changes::apply(shared, &ask)).await,
        Operation::Export => on_worker(core, move |shared| changes::export(shared, &ask)).await,
        Operation::Reload => on_worker(core, changes::reload).await,
        Operation::Changes => on_worker(core, move |shared| changes::list(shared, &ask)).await,
        Operation::Change => on_worker(core, move |shared| changes::show(shared, &ask)).await,
        Operation::Rollback => on_worker(core, move |shared| changes::rollback(shared, &ask)).await,
        Operation::Upstreams => on_worker(core, move |shared| upstreams::list(shared, &ask)).await,
        Operation::Upstream => on_worker(core, move |shared| upstreams::show(shared, &ask)).await,
        Operation::ApproveDefinitions => upstreams::decide(core, ask, Act::Approve).await,
        Operation::RefuseDefinitions => upstreams::decide(core, ask, Act::Refuse).await,
        Operation::RefreshUpstream => upstreams::refresh(core, &ask).await,
        Operation::List(kind) => {
            on_worker(core, move |shared| entities::list(shared, kind, &ask)).await
        }
        Operation::Read(kind) => {
            on_worker(core, move |shared| entities::read(shared, kind, &ask)).await
        }
        Operation::Create(kind) => {
            on_worker(core, move |shared| entities::create(shared, kind, &ask)).await
        }
        Operation::Replace(kind) => {
            on_worker(core, move |shared| entities::replace(shared, kind, &ask)).await
        }
        Operation::Patch(kind) => {
            on_worker(core, move |shared| entities::patch(shared, kind, &ask)).await
        }
        Operation::Delete(kind) => {
            on_worker(core, move |shared| entities::delete(shared, kind, &ask)).await
        }
        Operation::Publish => {
            on_worker(core, move |shared| entities::set_enabled(shared, &ask, true)).await
        }
        Operation::Unpublish => {
            on_worker(core, move |shared| entities::set_enabled(shared, &ask, false)).await
        }
    }
}

async fn on_worker<T: Send + 'static>(
    core: &Core,
    work: impl FnOnce(&Shared) -> Result<T, Trouble> + Send + 'static,
) -> Result<T, Trouble> {
    let shared = core.shared.clone();
    core.shared.workers.run(move || work(&shared)).await?
}
