//! From a message to what is to be done about it.

use std::borrow::Cow;

use super::call::{Invocation, cancelled};
use super::completion;
use super::discover::discovered;
use super::initialize::{Initialization, Offers, ServerInfo, initialize};
use super::method::Method;
use super::paging::{self, Prompts, Resources, Templates, Tools};
use super::pass_on::PassOn;
use super::refusal::{method_not_found, unknown_prompt, unknown_resource};
use super::resources;
use super::{LogLevel, Revision};
use crate::catalog::{ToolShape, View};
use crate::json::{Kind, Raw};
use crate::rpc::{Id, Message, ResultBody, RpcError};

/// What is known about the sender of a message.
#[derive(Clone, Copy, Debug)]
pub struct DispatchContext<'a> {
    /// What it sees.
    pub view: &'a View,
    /// The revision it speaks: its session's, else the declared or the assumed one.
    pub revision: Revision,
    /// Whether the message came with a session.
    pub in_session: bool,
    /// Entries in a page of a list; 0: all.
    pub page_size: usize,
    /// What this server calls itself.
    pub server: &'a ServerInfo,
}

/// What is to be done about a message.
#[derive(Clone, Debug)]
pub enum Step<'a> {
    /// Answer with this result.
    Reply(ResultBody),
    /// Answer with this error.
    Error(RpcError),
    /// Open a session where sessions are on, and answer with its result.
    Initialize(Initialization<'a>),
    /// Run a tool, and answer with [`tool_result`](super::tool_result) of its outcome.
    Invoke(Invocation<'a>),
    /// Answer with the rest of a result that is kept under this URI, or with
    /// [`unknown_resource`](super::unknown_resource).
    ReadKept(Cow<'a, str>),
    /// Have an upstream server answer.
    PassOn(PassOn),
    /// Have [`View::tools_list`] put together, which is too much for a core, and dispatch again.
    MakeToolsList(ToolShape),
    /// Keep how grave what the session hears of must be, and answer with an empty result.
    SetLevel(LogLevel),
    /// Tell the session when the upstream resource with this URI changes, or, where `false`, no more.
    Subscribe(Cow<'a, str>, bool),
    /// It is the answer to the question with this id. Nothing to answer.
    Answer(Id<'a>, Result<Raw<'a>, Raw<'a>>),
    /// The client works elsewhere now. Nothing to answer.
    RootsChanged,
    /// Nothing to answer: accepted.
    Accepted,
    /// Stop the request with this id, if it runs. Nothing to answer.
    Cancel(Id<'a>),
}

/// Decides about a message. See the room.
pub fn dispatch<'a>(context: &DispatchContext<'_>, message: &Message<'a>) -> Step<'a> {
    match message {
        Message::Request { method, params, .. } => {
            request(context, method, *params).unwrap_or_else(Step::Error)
        }
        Message::Notification { method, params } => match Method::of(method) {
            // One without a usable id names no request: there is nothing to stop.
            Method::Cancelled => cancelled(*params).map_or(Step::Accepted, Step::Cancel),
            Method::RootsChanged => Step::RootsChanged,
            // `initialized`, and what this revision of ours does not know.
            _ => Step::Accepted,
        },
        Message::Response { id: Some(id), outcome } => Step::Answer(*id, *outcome),
        // An error about something that the client could not read.
        Message::Response { id: None, .. } => Step::Accepted,
    }
}

fn request<'a>(
    context: &DispatchContext<'_>,
    name: &str,
    params: Option<Raw<'a>>,
) -> Result<Step<'a>, RpcError> {
    let params = object(params)?;
    let (view, shape) = (context.view, shape(context.revision));
    let method = Method::of(name);
    if !method.is_in(context.revision) {
        return Err(method_not_found(name));
    }
    let body = match method {
        Method::Discover => discovered(view, context.server),
        Method::Complete if completion::is_offered(view, context.revision) => {
            match PassOn::complete(view, params) {
                Some(passed_on) => return Ok(Step::PassOn(passed_on)),
                None => completion::complete(view, params)?,
            }
        }
        Method::Ping => ResultBody::EMPTY,
        Method::ToolsCall => return Invocation::read(params).map(Step::Invoke),
        Method::ToolsList
            if !view.is_tools_list_at_hand(shape)
                && (context.page_size == 0 || view.list_len() <= context.page_size) =>
        {
            return Ok(Step::MakeToolsList(shape));
        }
        Method::ToolsList => paging::page(&Tools(view, shape), context.page_size, params)?,
        Method::Initialize if context.in_session => {
            return Err(RpcError::invalid_request(
                "this session is initialized already; initialize without a session id",
            ));
        }
        Method::Initialize => {
            return initialize(view, context.server, params).map(Step::Initialize);
        }
        Method::ResourcesList => paging::page(&Resources(view, shape), context.page_size, params)?,
        Method::ResourceTemplatesList => {
            paging::page(&Templates(view, shape), context.page_size, params)?
        }
        Method::PromptsList => paging::page(&Prompts(view, shape), context.page_size, params)?,
        Method::ResourcesRead => return resource(view, params),
        Method::PromptsGet => return prompt(view, params),
        // What sessions hold, where a server of the view makes use of it.
        Method::SetLevel if Offers::of(view, context.revision).logging => return level(params),
        Method::Subscribe | Method::Unsubscribe
            if Offers::of(view, context.revision).subscriptions =>
        {
            return subscription(view, method == Method::Subscribe, params);
        }
        // Its answer is a stream, which is for the transport to open where there are streams.
        Method::Listen => return Err(method_not_found(name)),
        // What is not offered, and a notification's name with an id, is no method.
        Method::SetLevel
        | Method::Subscribe
        | Method::Unsubscribe
        | Method::Initialized
        | Method::Cancelled
        | Method::RootsChanged
        | Method::Complete
        | Method::Other => {
            return Err(method_not_found(name));
        }
    };
    Ok(Step::Reply(body))
}

fn resource<'a>(view: &View, params: Option<Raw<'a>>) -> Result<Step<'a>, RpcError> {
    let uri = params.and_then(|params| params.get("uri")).and_then(Raw::as_str);
    let uri =
        uri.ok_or_else(|| RpcError::invalid_params("resources/read needs `uri`, a string"))?;
    match resources::read(view, &uri) {
        Some(resources::Found::Text(body)) => Ok(Step::Reply(body)),
        Some(resources::Found::Kept) => Ok(Step::ReadKept(uri)),
        None => match PassOn::read(view, &uri) {
            Some(passed_on) => Ok(Step::PassOn(passed_on)),
            None => Err(unknown_resource(&uri)),
        },
    }
}

fn prompt<'a>(view: &View, params: Option<Raw<'a>>) -> Result<Step<'a>, RpcError> {
    let name = params.and_then(|params| params.get("name")).and_then(Raw::as_str);
    let name =
        name.ok_or_else(|| RpcError::invalid_params("prompts/get needs `name`, a string"))?;
    match (view.prompt(&name), PassOn::prompt(view, &name, params)) {
        (Some(prompt), _) => Ok(Step::Reply(resources::messages(prompt))),
        (None, Some(passed_on)) => Ok(Step::PassOn(passed_on)),
        (None, None) => Err(unknown_prompt(&name)),
    }
}

fn subscription<'a>(
    view: &View,
    is_wanted: bool,
    params: Option<Raw<'a>>,
) -> Result<Step<'a>, RpcError> {
    let uri = params.and_then(|params| params.get("uri")).and_then(Raw::as_str);
    let text = "resources/subscribe and resources/unsubscribe need `uri`, a string";
    let uri = uri.ok_or_else(|| RpcError::invalid_params(text))?;
    if view.upstream_of_resource(&uri).is_some() {
        return Ok(Step::Subscribe(uri, is_wanted));
    }
    // What the catalog itself has does not change while it is listed.
    resources::read(view, &uri).ok_or_else(|| unknown_resource(&uri))?;
    Ok(Step::Reply(ResultBody::EMPTY))
}

fn level(params: Option<Raw<'_>>) -> Result<Step<'_>, RpcError> {
    let level = params.and_then(|params| params.get("level")).and_then(Raw::as_str);
    let level = level.and_then(|level| LogLevel::of(&level));
    level.map(Step::SetLevel).ok_or_else(|| {
        let names = LogLevel::ALL.map(LogLevel::name).join(", ");
        RpcError::invalid_params(format!("logging/setLevel needs `level`, one of: {names}"))
    })
}

/// Parameters of all methods go by name.
fn object(params: Option<Raw<'_>>) -> Result<Option<Raw<'_>>, RpcError> {
    match params.map(Raw::kind) {
        None | Some(Kind::Object) => Ok(params),
        Some(_) => Err(RpcError::invalid_params("`params` must be an object")),
    }
}

fn shape(revision: Revision) -> ToolShape {
    match revision {
        Revision::V20241105 => ToolShape::V20241105,
        Revision::V20250326 => ToolShape::V20250326,
        Revision::V20250618 => ToolShape::V20250618,
        Revision::V20251125 => ToolShape::V20251125,
        Revision::V20260728 => ToolShape::V20260728,
    }
}
