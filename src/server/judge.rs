//! Whether a call may be made and what it would send: arguments judged by the tool's schema, then
//! policy, then limits.

use super::{
    confirm,
    ending::{Ending, Refused},
    parts::Readable,
    trail::{self, Trail},
};
use crate::{
    catalog::{BuiltinTool, SideEffect, ToolKind, UpstreamTool, ViewTool},
    governance::{self, Reason},
    json::{OwnedRaw, Raw},
    mapping::{
        Arguments, Dialect, FILE_BYTES_MAX, InvalidArguments, Messages, OutgoingRequest, Repairs,
        RequestPlan, Resources,
    },
};

/// What a call wants of its tool, its arguments judged.
pub(super) enum Intent<'a> {
    /// A request to the API.
    Request(OutgoingRequest),
    /// Arguments as the tool's upstream server takes them.
    Upstream(OwnedRaw),
    /// One of the appliance's own tools.
    Builtin(BuiltinTool),
    /// The rest of an earlier result.
    Part(&'a str),
    /// Nothing that can be done.
    Invalid(InvalidArguments),
}

/// Arguments up to this size are judged on the core: a schema may have hundreds of alternatives for
/// each of a million items.
const JUDGED_INLINE_BYTES_MAX: usize = 32 * 1024;

/// Those of files always are for one: a short text may stand for a large resource.
pub(super) fn is_for_a_worker(tool: &ViewTool, arguments: Raw<'_>) -> bool {
    let has_files = match &tool.kind {
        ToolKind::Rest { request, .. } => request.has_files(),
        ToolKind::Upstream(_) => false,
        ToolKind::Builtin(_) => return false,
    };
    has_files || arguments.text().len() > JUDGED_INLINE_BYTES_MAX
}

/// Arguments that were judged, and what is kept of them.
pub(super) struct Judged {
    pub(super) kept: Option<Vec<u8>>,
    /// What the client's user is shown of them, where the tool wants the user asked.
    pub(super) shown: Option<Box<str>>,
    pub(super) repairs: u32,
    pub(super) side_effect: SideEffect,
    /// What is sent, or what is wrong with them.
    pub(super) sent: Result<Sent, String>,
}

/// What arguments lead to.
pub(super) enum Sent {
    /// A request to the API.
    Request(OutgoingRequest),
    /// Arguments as the tool's upstream server takes them.
    Upstream(OwnedRaw),
}

/// Judges arguments as [`intend`] does, away from the core.
pub(super) fn judge(tool: &ViewTool, arguments: &OwnedRaw, readable: &Readable) -> Option<Judged> {
    let arguments = arguments.as_raw();
    let validated = match &tool.kind {
        ToolKind::Rest { request: plan, .. } => plan.validate_in(Some(arguments), tool.dialect),
        ToolKind::Upstream(upstream) => upstream.arguments(Some(arguments), tool.dialect),
        ToolKind::Builtin(_) => return None,
    };
    Some(match validated {
        Ok(arguments) => {
            log_repairs(tool, arguments.repairs());
            Judged {
                kept: arguments.raw().and_then(|raw| trail::kept_arguments(tool, raw)),
                shown: arguments.raw().and_then(|raw| confirm::shown(tool, raw)),
                repairs: arguments.repairs().count,
                side_effect: tool.side_effect_of(&arguments),
                sent: sent(tool, &arguments, readable),
            }
        }
        Err(invalid) => Judged {
            kept: trail::kept_invalid_arguments(tool, arguments),
            shown: None,
            repairs: 0,
            side_effect: tool.side_effect,
            sent: Err(invalid.to_string()),
        },
    })
}

fn sent(tool: &ViewTool, arguments: &Arguments<'_>, readable: &Readable) -> Result<Sent, String> {
    match &tool.kind {
        ToolKind::Rest { request: plan, messages, .. } => {
            let request = built(plan, arguments, readable)?;
            let request = wrapped(messages.as_ref(), request);
            request.map(Sent::Request).map_err(|invalid| invalid.to_string())
        }
        ToolKind::Upstream(upstream) => Ok(Sent::Upstream(passed_on(upstream, arguments))),
        ToolKind::Builtin(_) => Err("this tool takes no arguments".to_owned()),
    }
}

/// Arguments as the tool's upstream server takes them.
fn passed_on(upstream: &UpstreamTool, arguments: &Arguments<'_>) -> OwnedRaw {
    // Of values that were checked.
    OwnedRaw::parse(upstream.sent(arguments).as_bytes())
        .unwrap_or_else(|_| OwnedRaw::empty_object())
}

/// The request, with the resources that are sent as files.
fn built(
    plan: &RequestPlan,
    arguments: &Arguments<'_>,
    readable: &Readable,
) -> Result<OutgoingRequest, String> {
    let mut resources = Resources::default();
    let mut bytes = 0;
    for file in plan.resources(arguments) {
        let Some(resource) = readable.resource(&file.uri) else {
            let field = file.field;
            return Err(format!(
                "invalid arguments: {field}: there is no such resource, or it is not kept any more; \
                 give the file by its bytes, as {{\"base64\": …}}"
            ));
        };
        bytes += resource.bytes.len();
        if bytes > FILE_BYTES_MAX {
            let field = file.field;
            return Err(format!("invalid arguments: {field}: is too large to be sent as a file"));
        }
        resources.add(file.uri, resource);
    }
    Ok(plan.build_with(arguments, &resources))
}

/// Judges the arguments. What a call does to the world may depend on them.
pub(super) fn intend<'a>(
    trail: &mut Trail,
    tool: &'a ViewTool,
    arguments: Option<Raw<'a>>,
) -> (Intent<'a>, SideEffect) {
    let judged = match &tool.kind {
        ToolKind::Builtin(builtin) => return (Intent::Builtin(*builtin), tool.side_effect),
        ToolKind::Upstream(upstream) => {
            upstream.arguments(arguments, tool.dialect).map(|arguments| {
                let sent = Intent::Upstream(passed_on(upstream, &arguments));
                (arguments, sent)
            })
        }
        ToolKind::Rest { request: plan, messages, .. } => {
            read(plan, messages.as_ref(), arguments, tool.dialect)
                .map(|(arguments, request)| (arguments, Intent::Request(request)))
        }
    };
    match judged {
        Ok((arguments, intent)) => {
            trail.keep_arguments(|| trail::kept_arguments(tool, arguments.raw()?));
            log_repairs(tool, arguments.repairs());
            trail.shown_arguments = arguments.raw().and_then(|raw| confirm::shown(tool, raw));
            trail.repairs = arguments.repairs().count;
            (intent, tool.side_effect_of(&arguments))
        }
        Err(invalid) => {
            trail.keep_arguments(|| trail::kept_invalid_arguments(tool, arguments?));
            (Intent::Invalid(invalid), tool.side_effect)
        }
    }
}

/// Tells which arguments a model writes in another form, by the names it is shown. How many there are
/// is in the record of the call.
fn log_repairs(tool: &ViewTool, repairs: &Repairs) {
    for repair in &repairs.named {
        let (tool, field, kind) = (tool.name.as_str(), &*repair.field, repair.kind.as_str());
        tracing::debug!(tool, field, kind, "argument repaired");
    }
}

/// Arguments that fit, and the request that they make.
fn read<'a>(
    plan: &RequestPlan,
    messages: Option<&Messages>,
    arguments: Option<Raw<'a>>,
    dialect: Dialect,
) -> Result<(Arguments<'a>, OutgoingRequest), InvalidArguments> {
    let arguments = plan.validate_in(arguments, dialect)?;
    let request = wrapped(messages, plan.build(&arguments))?;
    Ok((arguments, request))
}

/// The request as its API takes it.
fn wrapped(
    messages: Option<&Messages>,
    request: OutgoingRequest,
) -> Result<OutgoingRequest, InvalidArguments> {
    match messages {
        Some(messages) => messages.wrap(request),
        None => Ok(request),
    }
}

/// Policy, then limits. What is not run for its own faults costs nothing but its message.
pub(super) fn allow(
    trail: &mut Trail,
    tool: &ViewTool,
    is_valid: bool,
    side_effect: SideEffect,
) -> Result<(), Ending> {
    trail.side_effect = Some(side_effect);
    let decision = governance::decide(&tool.permission, trail.trust, side_effect, trail.at_ms);
    trail.observed = decision.observed.map(Reason::observed_str);
    if !decision.is_allowed {
        trail.denied(decision.code());
        return Err(Ending::Refused(Refused::Denied(Box::new(decision))));
    }
    if !is_valid {
        return Ok(());
    }
    let now_ns = trail.core.shared.ns_at(trail.started);
    trail.limits.take_call(tool, side_effect, now_ns).map_err(|limited| {
        trail.denied(limited.reason().as_str());
        Ending::Limited(limited)
    })
}
