//! Results that are larger than their tool's budget: the first part, and how the rest is asked for.
//!
//! The rest is a resource, `runtime://results/{handle}`, and an argument, `next`, of the same tool:
//! some clients give a model only one of the two.

use std::borrow::Cow;

use serde_json::json;

use super::{
    kept::{self, NextPart, ResultOwner},
    trail::{Origin, Trail},
};
use crate::{
    catalog::{View, ViewTool},
    identity::Caller,
    json::{self, Raw, write_string},
    mapping::budget::{Cut, Missing, cut},
    mcp::{self, KEPT_RESULTS, Supplement, ToolOutcome},
    rpc::{ResultBody, RpcError},
};

/// The argument that asks for the next part.
const NEXT: &str = "next";
/// The member of `_meta` that says the same to programs.
const META: &str = "io.ringway/rest";
/// A result up to this size is cut on the core.
const INLINE_BYTES_MAX: usize = 128 * 1024;

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
        match trail.core.shared.workers.run(work).await {
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
    trail.cut = true;
    let now_ms = trail.core.clock.now_ms();
    let kept = &trail.core.shared.kept;
    let owner = owner(&trail.view, trail.caller);
    let handle = kept.keep(owner, tool.name.clone(), budget, rest, now_ms);
    tell(supplement, &missing, handle.as_deref(), true);
    if is_text {
        let text =
            json::guard(&json).ok().and_then(|json| json.root().as_str().map(Cow::into_owned));
        ToolOutcome::Success { structured_json: None, text }
    } else {
        // A text beside the JSON would say it whole.
        ToolOutcome::Success { structured_json: Some(json), text: None }
    }
}

fn owner(view: &View, caller: Caller) -> ResultOwner {
    let (tenant, client_application) = (view.tenant.clone(), view.client_application.clone());
    ResultOwner { tenant, client_application, caller }
}

/// Says what is missing and how to get it.
fn tell(supplement: &mut Supplement, missing: &Missing, handle: Option<&str>, is_first: bool) {
    let what = match (is_first, *missing == Missing::default()) {
        (true, _) => format!("This result was cut: {missing}"),
        (false, false) => format!("This is not all of the rest: {missing}"),
        (false, true) => "This is not all of the rest".to_owned(),
    };
    let note = match handle {
        Some(handle) => format!(
            "{what}. For more, read the resource {KEPT_RESULTS}{handle}, or call this tool with \
             {{\"{NEXT}\":\"{handle}\"}} as its only argument."
        ),
        None if is_first => {
            format!("{what}. The rest is too large to be kept: ask for less at a time.")
        }
        None => return,
    };
    supplement.notes.push(note.into());
    let uri = handle.map(|handle| format!("{KEPT_RESULTS}{handle}"));
    let meta = json!({ META: { "uri": uri, NEXT: handle, "missing": missing } });
    supplement.meta = serde_json::to_vec(&meta).ok();
}

/// The handle of the part a call asks for, where its only argument is one and the tool has no
/// argument of that name itself.
pub(crate) fn asked_for(tool: &ViewTool, arguments: Option<Raw<'_>>) -> Option<String> {
    if tool.budget.is_unlimited() {
        return None;
    }
    let mut entries = arguments?.entries();
    let (key, value) = entries.next().filter(|(key, _)| **key == *NEXT)?;
    if entries.next().is_some() {
        return None;
    }
    drop(key);
    let handle = value.as_str().filter(|text| kept::is_handle(text))?;
    let properties = tool.input_schema().get("properties");
    let is_own = properties.is_some_and(|properties| properties.get(NEXT).is_some());
    (!is_own).then(|| handle.into_owned())
}

/// The part of a result that a call asks for.
pub(crate) fn next(
    trail: &Trail,
    tool: &ViewTool,
    handle: &str,
    supplement: &mut Supplement,
) -> ToolOutcome {
    let now_ms = trail.core.clock.now_ms();
    let kept = &trail.core.shared.kept;
    let owner = owner(&trail.view, trail.caller);
    let Some(next) = kept.next(handle, &owner, Some(&tool.name), now_ms) else {
        let text = "The rest of this result is not kept any more. Call the tool again, with its own \
                    arguments.";
        return ToolOutcome::Failure { text: text.to_owned() };
    };
    let NextPart { part, handle, .. } = next;
    tell(supplement, &part.missing, handle.as_deref(), false);
    ToolOutcome::Success { structured_json: Some(part.json), text: None }
}

/// The answer to `resources/read`: a kept result is the only resource that is read from here.
pub(crate) fn read(origin: &Origin<'_>, uri: &str) -> Result<ResultBody, RpcError> {
    let owner = owner(origin.view, origin.caller);
    let kept = &origin.core.shared.kept;
    let next = uri
        .strip_prefix(KEPT_RESULTS)
        .and_then(|handle| kept.next(handle, &owner, None, origin.core.clock.now_ms()))
        // What it may no longer call, it may no longer read.
        .filter(|next| origin.view.tool(next.tool.as_str()).is_some());
    let Some(NextPart { part, handle, .. }) = next else { return Err(mcp::unknown_resource(uri)) };
    let mut supplement = Supplement::NONE;
    tell(&mut supplement, &part.missing, handle.as_deref(), false);
    Ok(mcp::json_resource(uri, &part.json, &supplement))
}
