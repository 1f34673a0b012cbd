//! Results that are larger than their tool's budget, given in parts: the first one, and how those that
//! follow are asked for. What is left of a result waits in the table of `kept`.
//!
//! The rest is a resource, `runtime://results/{handle}`, and an argument of the same tool, `next`
//! where no field of its own has that name: some clients give a model only one of the two. The
//! argument is in the tool's schema, and those it stands beside do not matter: clients that hold a
//! model to the schema make it write all that are required. It is advised only where the tool has
//! it: to an API, a handle would be one more call.

mod kept;

use std::{borrow::Cow, sync::Arc};

use serde_json::json;

pub(crate) use kept::KeptResults;
use kept::{NextPart, ResultOwner};

use super::{
    core::Core,
    offload::{self, INLINE_BYTES_MAX},
    shared::Shared,
    trail::{Origin, Trail},
};
use crate::{
    catalog::{SideEffect, ToolName, Trust, View, ViewTool},
    governance,
    identity::Caller,
    json::{self, Kind, OwnedRaw, Raw, write_string},
    mapping::{
        Resource,
        budget::{Cut, Missing, cut},
    },
    mcp::{self, File, KEPT_RESULTS, Relayed, Supplement, ToolOutcome},
    rpc::{ResultBody, RpcError},
    rt::WorkError,
};

/// The member of `_meta` that says the same to programs.
const META: &str = "io.ringway/rest";

/// A result within the budget of its tool; what does not fit is kept.
pub(crate) async fn within_budget(
    trail: &mut Trail,
    tool: &ViewTool,
    outcome: ToolOutcome,
    supplement: &mut Supplement,
) -> ToolOutcome {
    let ToolOutcome::Success { structured_json, text } = outcome else { return outcome };
    // A text is cut as the JSON string it could be.
    let is_text = structured_json.is_none();
    let whole = match (structured_json, &text) {
        (Some(json), _) => json,
        (None, Some(text)) => {
            let mut json = Vec::with_capacity(text.len() + 16);
            write_string(&mut json, text);
            json
        }
        (None, None) => return ToolOutcome::Success { structured_json: None, text: None },
    };
    let budget = tool.budget;
    let (whole, cut) = if whole.len() <= INLINE_BYTES_MAX {
        let cut = cut(&whole, &budget);
        (whole, cut)
    } else {
        let work = move || {
            let cut = cut(&whole, &budget);
            (whole, cut)
        };
        match offload::run(&trail.core, &trail.view, work).await {
            Ok(done) => done,
            Err(error) => {
                let text = format!(
                    "The call was made, but its result could not be cut to its budget: the server \
                     is busy ({error}). Repeat the call only where that does no harm."
                );
                return ToolOutcome::Failure { text };
            }
        }
    };
    let Some(Cut { json, missing, rest }) = cut else {
        let structured_json = (!is_text).then_some(whole);
        return ToolOutcome::Success { structured_json, text };
    };
    if rest.is_empty() {
        return ToolOutcome::Success { structured_json: Some(json), text: None };
    }
    trail.cut = true;
    let now_ms = trail.core.clock.now_ms();
    let kept = &trail.core.shared.kept;
    let owner = owner(&trail.view, trail.caller);
    let handle = kept.keep(owner, tool.name.clone(), budget, rest, now_ms);
    tell(supplement, &missing, handle.as_deref(), tool.next_argument, true);
    if is_text {
        let text =
            json::guard(&json).ok().and_then(|json| json.root().as_str().map(Cow::into_owned));
        ToolOutcome::Success { structured_json: None, text }
    } else {
        // A text beside the JSON would say it whole.
        ToolOutcome::Success { structured_json: Some(json), text: None }
    }
}

/// What an upstream's tool gave, within the budget of the tool: as it came where it fits, else what
/// is left of its structured content, or of its text.
pub(crate) async fn relayed_within_budget(
    trail: &mut Trail,
    tool: &ViewTool,
    relayed: Relayed,
    supplement: &mut Supplement,
) -> ToolOutcome {
    let is_whole = tool.budget.is_unlimited() || relayed.is_error;
    let whole = if is_whole { None } else { cuttable(&relayed) };
    let Some(whole) = whole else { return ToolOutcome::Relayed(Arc::new(relayed)) };
    let outcome = within_budget(trail, tool, whole, supplement).await;
    match outcome {
        ToolOutcome::Success { .. } if !trail.cut => ToolOutcome::Relayed(Arc::new(relayed)),
        outcome => outcome,
    }
}

/// What of a result can be cut: of files and of what is mixed nothing is.
fn cuttable(relayed: &Relayed) -> Option<ToolOutcome> {
    if let Some(structured) = relayed.structured() {
        let structured_json = Some(structured.text().as_bytes().to_vec());
        return Some(ToolOutcome::Success { structured_json, text: None });
    }
    Some(ToolOutcome::Success { structured_json: None, text: Some(relayed.text()?) })
}

pub(crate) fn owner(view: &View, caller: Caller) -> ResultOwner {
    let (tenant, client_application) = (view.tenant.clone(), view.client_application.clone());
    ResultOwner { tenant, client_application, caller }
}

/// Says what is missing and how to get it, in an `argument` too where the tool has one for that.
fn tell(
    supplement: &mut Supplement,
    missing: &Missing,
    handle: Option<&str>,
    argument: Option<&str>,
    is_first: bool,
) {
    let what = match (is_first, *missing == Missing::default()) {
        (true, _) => format!("This result was cut: {missing}"),
        (false, false) => format!("This is not all of the rest: {missing}"),
        (false, true) => "This is not all of the rest".to_owned(),
    };
    let note = match handle {
        Some(handle) => {
            let by_call = argument.map(|argument| {
                format!(
                    ", or call this tool with {{\"{argument}\":\"{handle}\"}}; its other arguments do \
                     not matter then"
                )
            });
            let by_call = by_call.unwrap_or_default();
            format!("{what}. For more, read the resource {KEPT_RESULTS}{handle}{by_call}.")
        }
        None if is_first => {
            format!("{what}. The rest is too large to be kept: ask for less at a time.")
        }
        None => return,
    };
    supplement.notes.push(note.into());
    let uri = handle.map(|handle| format!("{KEPT_RESULTS}{handle}"));
    let next = handle.filter(|_| argument.is_some());
    let argument = argument.filter(|_| handle.is_some());
    let rest = json!({ "uri": uri, "next": next, "argument": argument, "missing": missing });
    let meta = json!({ META: rest });
    supplement.meta = serde_json::to_vec(&meta).ok();
}

/// What a call says about the rest of an earlier result.
#[derive(Debug)]
pub(crate) enum Asked {
    /// Nothing; the arguments are to be used as they came.
    Nothing,
    /// Nothing, in so many words. These are the arguments without them.
    NothingSaid(OwnedRaw),
    /// It wants the part with this handle.
    Part(String),
}

/// Looks for the argument that asks for a part. Clients that must name every argument send `null`,
/// and models an empty text.
pub(crate) fn asked_for(tool: &ViewTool, arguments: Option<Raw<'_>>) -> Asked {
    let (Some(arguments), Some(name)) = (arguments, tool.next_argument) else {
        return Asked::Nothing;
    };
    let Some(next) = arguments.get(name) else { return Asked::Nothing };
    match next.as_str() {
        Some(handle) if !handle.is_empty() => Asked::Part(handle.into_owned()),
        None if next.kind() != Kind::Null => Asked::Nothing,
        _ => Asked::NothingSaid(arguments.without(&[name])),
    }
}

/// The part of a result that a call asks for.
///
/// # Errors
/// The workers have no room for it.
pub(crate) async fn next(
    trail: &Trail,
    tool: &ViewTool,
    handle: &str,
    supplement: &mut Supplement,
) -> Result<ToolOutcome, WorkError> {
    let (core, view) = (&trail.core, &trail.view);
    let next = part(core, view, trail.caller, handle, Some(tool.name.clone())).await?;
    let Some(NextPart { part, handle, .. }) = next else {
        let text = "The rest of this result is not kept any more. Call the tool again, with its own \
                    arguments.";
        return Ok(ToolOutcome::Failure { text: text.to_owned() });
    };
    tell(supplement, &part.missing, handle.as_deref(), tool.next_argument, false);
    Ok(ToolOutcome::Success { structured_json: Some(part.json), text: None })
}

/// What of earlier results a caller may read: where it asks for one, and where it sends one on as a
/// file.
pub(crate) struct Readable {
    shared: Arc<Shared>,
    view: Arc<View>,
    caller: Caller,
    trust: Trust,
    now_ms: u64,
}

impl Readable {
    /// By the caller of a call.
    pub(crate) fn of(trail: &Trail) -> Self {
        Self {
            shared: Arc::clone(&trail.core.shared),
            view: Arc::clone(&trail.view),
            caller: trail.caller,
            trust: trail.trust,
            now_ms: trail.core.clock.now_ms(),
        }
    }

    fn part(&self, uri: &str) -> Option<NextPart> {
        let owner = owner(&self.view, self.caller);
        let handle = uri.strip_prefix(KEPT_RESULTS)?;
        let next = self.shared.kept.next(handle, &owner, None, self.now_ms)?;
        self.may_read(&next.tool).then_some(next)
    }

    fn file(&self, uri: &str) -> Option<Arc<File>> {
        let owner = owner(&self.view, self.caller);
        let handle = uri.strip_prefix(KEPT_RESULTS)?;
        let (file, tool) = self.shared.kept.file(handle, &owner, self.now_ms)?;
        self.may_read(&tool).then_some(file)
    }

    /// What the caller may not call now, it may not read now.
    fn may_read(&self, tool: &ToolName) -> bool {
        self.view.tool(tool.as_str()).is_some_and(|tool| {
            let (trust, now_ms) = (self.trust, self.now_ms);
            governance::decide(&tool.permission, trust, SideEffect::Read, now_ms).is_allowed
        })
    }

    /// What a file is that a client named by its URI. Kept results are the only resources that are
    /// held here.
    pub(crate) fn resource(&self, uri: &str) -> Option<Resource> {
        if let Some(file) = self.file(uri) {
            let (bytes, content_type) =
                (file.bytes.to_vec(), Some(file.media_type.as_str().into()));
            return Some(Resource { bytes, content_type, filename: None });
        }
        let NextPart { part, .. } = self.part(uri)?;
        let content_type = Some("application/json".into());
        Some(Resource { bytes: part.json, content_type, filename: Some("result.json".into()) })
    }
}

/// A resource, and its `_meta` where that does not stand in it.
pub(crate) type ReadResource = (ResultBody, Option<Vec<u8>>);

/// The answer to `resources/read`: a kept result is the only resource that is read from here.
///
/// # Errors
/// The workers have no room for it.
pub(crate) async fn read(
    origin: &Origin<'_>,
    uri: &str,
) -> Result<Result<ReadResource, RpcError>, WorkError> {
    let readable = Readable {
        shared: Arc::clone(&origin.core.shared),
        view: Arc::clone(origin.view),
        caller: origin.caller,
        trust: origin.trust,
        now_ms: origin.core.clock.now_ms(),
    };
    if let Some(file) = readable.file(uri) {
        return Ok(Ok((mcp::blob_resource(uri, &file), None)));
    }
    // What is left may be in a very long list of pieces, of which each part takes a copy.
    let wanted = uri.to_owned();
    let next = offload::run(origin.core, origin.view, move || readable.part(&wanted)).await?;
    let Some(NextPart { part, handle, tool }) = next else {
        return Ok(Err(mcp::unknown_resource(uri)));
    };
    let mut supplement = Supplement::NONE;
    let argument = origin.view.tool(tool.as_str()).and_then(|tool| tool.next_argument);
    tell(&mut supplement, &part.missing, handle.as_deref(), argument, false);
    let is_modern = origin.revision.is_some_and(mcp::Revision::is_modern);
    let meta = if is_modern { supplement.meta.take() } else { None };
    Ok(Ok((mcp::json_resource(uri, &part.json, &supplement), meta)))
}

/// The part with this handle. What is left may be in a very long list of pieces, of which each part
/// takes a copy: not on a core.
async fn part(
    core: &Core,
    view: &View,
    caller: Caller,
    handle: &str,
    tool: Option<ToolName>,
) -> Result<Option<NextPart>, WorkError> {
    let (owner, now_ms) = (owner(view, caller), core.clock.now_ms());
    let (shared, handle): (_, Box<str>) = (core.shared.clone(), handle.into());
    offload::run(core, view, move || shared.kept.next(&handle, &owner, tool.as_ref(), now_ms)).await
}
