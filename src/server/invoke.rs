//! A tool call, whatever it came over: JSON-RPC on either transport, or the REST facade.
//!
//! ```text
//! find the tool -> decide -> limits -> arguments: strip, repair, validate
//!               -> run -> cut to the budget -> ending
//! ```
//!
//! The transports differ in how an [`Ending`] is written, and in nothing else. Arguments are judged
//! and the outgoing request is built before anything runs, so a running call owns all it needs and
//! outlives the connection it came on. Large arguments are judged by a worker, and their call is not
//! begun before that: what a limit or a policy answers does not depend on how large they are.

use std::{rc::Rc, sync::Arc};

use super::{
    along::Along,
    conversation::Conversation,
    ending::{Ended, Ending, Refused},
    execute::Asking,
    input_required::Continued,
    judge::{self, Intent, Judged, Sent},
    offload,
    parts::{self, Asked, Readable},
    refusal::Refusal,
    tool_call::{ToolCall, Work},
    trail::Trail,
};
use crate::{
    audit::CallType,
    catalog::{BuiltinTool, Deprecated, DiscoveryMode, MetaTool, SideEffect, ViewTool},
    downstream,
    http::RequestView,
    json::{OwnedRaw, Raw},
    mapping::{self, Discovery, SCHEMA_DISCOVERY},
    mcp::{self, MetaToolCall, Supplement, ToolOutcome},
    rpc::Message,
};

/// What a client asks for.
#[derive(Clone, Copy)]
pub(crate) struct ToolRequest<'a> {
    pub(crate) name: &'a str,
    /// An object; `None` stands for an empty one.
    pub(crate) arguments: Option<Raw<'a>>,
    /// The HTTP request it came in: its trace, and what a connection forwards of it.
    pub(crate) http: RequestView<'a>,
    /// Whom the call may talk to while it runs: nobody, over the REST facade.
    pub(crate) partner: Option<Partner<'a>>,
}

/// The client of a request that may be asked things while it is answered.
#[derive(Clone, Copy)]
pub(crate) struct Partner<'a> {
    pub(crate) asking: &'a Asking<'a>,
    /// The request.
    pub(crate) message: &'a Message<'a>,
}

impl Partner<'_> {
    /// What is said to it and what it answers, from now on.
    pub(super) fn converse(self) -> Rc<Conversation> {
        Conversation::of(self.asking, self.message)
    }

    /// What it answers to what its request's upstream asked before.
    pub(super) fn continued(self) -> Option<Continued> {
        Continued::of(self.asking, self.message)
    }
}

/// How far a call gets at once.
#[expect(clippy::large_enum_variant, reason = "nearly all are begun, and none is kept")]
pub(crate) enum Beginning {
    Begun(Begun),
    /// Its arguments are too large to be judged on a core.
    Judging(Box<Judging>),
}

/// What a call whose arguments are judged leads to.
pub(crate) enum Begun {
    Ended(Ended),
    /// Something outside this core has to be waited for.
    Running(ToolCall),
}

impl From<Ended> for Beginning {
    fn from(ended: Ended) -> Self {
        Self::Begun(Begun::Ended(ended))
    }
}

/// A call whose arguments are still to be judged, by a worker.
pub(crate) struct Judging {
    trail: Trail,
    supplement: Supplement,
    tool: Arc<ViewTool>,
    arguments: OwnedRaw,
    along: Along,
}

/// Takes a call as far as it goes at once.
pub(crate) fn begin(trail: Trail, request: &ToolRequest<'_>) -> Beginning {
    match trail.view.meta_tool(request.name) {
        None => begin_tool(trail, request),
        Some(meta_tool) => begin_meta_tool(trail, meta_tool, request),
    }
}

/// A call of one of the runtime's own tools about tools. To be told of tools is allowed to whoever
/// sees them; a call of one goes the way of every call.
fn begin_meta_tool(mut trail: Trail, meta_tool: MetaTool, request: &ToolRequest<'_>) -> Beginning {
    let ended = |ending, trail| Beginning::from(Ended::plainly(ending, trail));
    let asked = match MetaToolCall::read(meta_tool, request.arguments) {
        Ok(asked) => asked,
        Err(outcome) => return ended(Ending::Ran(outcome), trail),
    };
    let (name, tell): (_, fn(&ViewTool) -> Vec<u8>) = match &asked {
        MetaToolCall::Call { name, arguments } => {
            let arguments = arguments.as_ref().map(OwnedRaw::as_raw);
            return begin_tool(trail, &ToolRequest { name, arguments, ..*request });
        }
        MetaToolCall::Search { query, limit } => {
            trail.call_type = CallType::ToolDiscovery;
            let work = Work::Search { query: (&**query).into(), limit: *limit };
            let supplement = Supplement::NONE;
            let call = ToolCall::here(trail, supplement, work);
            return Beginning::Begun(Begun::Running(call));
        }
        MetaToolCall::Schema(name) => (name, mcp::schemas),
        MetaToolCall::Description(name) => (name, mcp::described),
    };
    trail.call_type = CallType::SchemaDiscovery;
    let Some(tool) = trail.view.tool(name).cloned() else {
        trail.asked = Some(shortened(name));
        trail.denied(Refused::Unknown.reason().as_str());
        return ended(Ending::Refused(Refused::Unknown), trail);
    };
    let structured_json = Some(tell(&tool));
    trail.tool = Some(tool);
    ended(Ending::Ran(ToolOutcome::Success { structured_json, text: None }), trail)
}

fn begin_tool(mut trail: Trail, request: &ToolRequest<'_>) -> Beginning {
    let Found { tool, supplement } = match find(&mut trail, request.name) {
        Ok(found) => found,
        Err(refused) => {
            trail.denied(refused.reason().as_str());
            return Ended::plainly(Ending::Refused(refused), trail).into();
        }
    };
    trail.tool = Some(tool.clone());
    let placeholder = match tool.discovery {
        DiscoveryMode::Lazy => mapping::discovery(request.arguments),
        DiscoveryMode::Full | DiscoveryMode::DataStructureOnly => Discovery::Absent,
    };
    let stripped = match placeholder {
        Discovery::Absent => None,
        Discovery::Removed(arguments) => Some(arguments),
        Discovery::Alone => {
            let outcome = ToolOutcome::InvalidArguments { text: discover_first(&tool) };
            return Ended::plainly(Ending::Ran(outcome), trail).into();
        }
    };
    let arguments = stripped.as_ref().map_or(request.arguments, |stripped| Some(stripped.as_raw()));
    let asked = parts::asked_for(&tool, arguments);
    let arguments = match &asked {
        Asked::NothingSaid(arguments) => Some(arguments.as_raw()),
        Asked::Part(_) | Asked::Nothing => arguments,
    };
    let along = Along::of_tool(&tool, &request.http, request.partner);
    if let Some(arguments) = arguments.filter(|all| judge::is_for_a_worker(&tool, *all)) {
        let arguments = arguments.to_owned();
        let judging = Judging { trail, supplement, tool, arguments, along };
        return Beginning::Judging(Box::new(judging));
    }
    let call = Found { tool, supplement };
    Beginning::Begun(begin_judged(trail, call, arguments, &asked, along))
}

/// Begins a call whose arguments are small enough to be judged here.
fn begin_judged(
    mut trail: Trail,
    call: Found,
    arguments: Option<Raw<'_>>,
    asked: &Asked,
    along: Along,
) -> Begun {
    let Found { tool, supplement } = call;
    let (intent, side_effect) = match asked {
        // It is there already.
        Asked::Part(handle) => (Intent::Part(handle), SideEffect::Read),
        Asked::NothingSaid(_) | Asked::Nothing => judge::intend(&mut trail, &tool, arguments),
    };
    let is_valid = !matches!(intent, Intent::Invalid(_));
    if let Err(ending) = judge::allow(&mut trail, &tool, is_valid, side_effect) {
        return Begun::Ended(Ended::plainly(ending, trail));
    }
    let outcome = match intent {
        Intent::Request(request) => {
            let work = Work::Rest { tool: Arc::clone(&tool), request };
            return Begun::Running(ToolCall { trail, supplement, work, along });
        }
        // Whoever has many sessions: they are not looked through on a core.
        Intent::Builtin(builtin @ BuiltinTool::ListSessions) => {
            let work = Work::Worker(builtin);
            return Begun::Running(ToolCall::here(trail, supplement, work));
        }
        Intent::Upstream(arguments) => {
            let work = Work::Upstream { tool: Arc::clone(&tool), arguments };
            return Begun::Running(ToolCall { trail, supplement, work, along });
        }
        Intent::Builtin(builtin) => {
            downstream::run_builtin(builtin, &*trail.core.shared, &trail.view)
        }
        Intent::Part(handle) => {
            let work = Work::Part { tool: Arc::clone(&tool), handle: handle.into() };
            return Begun::Running(ToolCall::here(trail, supplement, work));
        }
        Intent::Invalid(invalid) => ToolOutcome::InvalidArguments { text: invalid.to_string() },
    };
    Begun::Ended(Ended {
        ending: Ending::Ran(outcome),
        supplement,
        is_part: false,
        trail,
        conversation: None,
    })
}

/// Most of a name nobody has that is worth keeping.
const ASKED_BYTES_MAX: usize = 256;

struct Found {
    tool: Arc<ViewTool>,
    supplement: Supplement,
}

/// The tool a client means by a name: one that is listed, or one that was not long ago.
fn find(trail: &mut Trail, name: &str) -> Result<Found, Refused> {
    if let Some(tool) = trail.view.tool(name) {
        return Ok(Found { tool: tool.clone(), supplement: Supplement::NONE });
    }
    match trail.view.deprecated(name, trail.at_ms) {
        Some(Deprecated::Callable { tool, now_called, .. }) => {
            let note = match now_called {
                Some(now) => {
                    format!("Note: this tool is called `{now}` now. List the tools again.")
                }
                None => "Note: this tool is being removed. List the tools again.".to_owned(),
            };
            let supplement = Supplement { notes: vec![note.into()], meta: None };
            Ok(Found { tool, supplement })
        }
        Some(Deprecated::Gone) => {
            trail.asked = Some(shortened(name));
            Err(Refused::Gone)
        }
        None => {
            // Whether it is hidden is for the record only.
            trail.tool = trail.view.hidden(name).cloned();
            trail.asked = Some(shortened(name));
            Err(Refused::Unknown)
        }
    }
}

/// A client's own text, as much of it as is worth keeping.
pub(crate) fn shortened(name: &str) -> Box<str> {
    name[..name.floor_char_boundary(ASKED_BYTES_MAX)].into()
}

/// For a model that has yet to look at the schema.
#[cold]
fn discover_first(tool: &ViewTool) -> String {
    let (meta_tool, name) = (MetaTool::DiscoverToolSchema.name(), &tool.name);
    format!(
        "`{SCHEMA_DISCOVERY}` is no argument of this tool: it stands for a schema the list does \
         not show. Call `{meta_tool}` with {{\"tool_id\":\"{name}\"}} first, then call this tool \
         with the arguments its schema has."
    )
}

impl Judging {
    /// The call is not begun after all.
    pub(crate) fn refuse(self, reason: &'static str) {
        self.trail.refuse(reason);
    }

    /// Has the arguments judged; from then on the call is one like any other.
    ///
    /// # Errors
    /// The workers have no room for it: nothing was done.
    pub(crate) async fn judged(self) -> Result<Begun, Refusal> {
        let Self { mut trail, supplement, tool, arguments, along } = self;
        let work = {
            let (tool, readable) = (Arc::clone(&tool), Readable::of(&trail));
            move || judge::judge(&tool, &arguments, &readable)
        };
        let judged = offload::run(&trail.core, &trail.view, work).await;
        let Judged { kept, shown, repairs, side_effect, sent } = match judged {
            Ok(Some(judged)) => judged,
            Ok(None) => {
                let ending = Ending::Refused(Refused::Unknown);
                return Ok(Begun::Ended(Ended::plainly(ending, trail)));
            }
            Err(error) => {
                let refusal = Refusal::from(error);
                trail.refuse(refusal.reason());
                return Err(refusal);
            }
        };
        trail.keep_arguments(|| kept);
        trail.shown_arguments = shown;
        trail.repairs = repairs;
        if let Err(ending) = judge::allow(&mut trail, &tool, sent.is_ok(), side_effect) {
            return Ok(Begun::Ended(Ended::plainly(ending, trail)));
        }
        Ok(match sent {
            Ok(sent) => {
                let work = match sent {
                    Sent::Request(request) => Work::Rest { tool, request },
                    Sent::Upstream(arguments) => Work::Upstream { tool, arguments },
                };
                Begun::Running(ToolCall { trail, supplement, work, along })
            }
            Err(text) => {
                let ending = Ending::Ran(ToolOutcome::InvalidArguments { text });
                let ended = Ended { ending, supplement, is_part: false, trail, conversation: None };
                Begun::Ended(ended)
            }
        })
    }
}
