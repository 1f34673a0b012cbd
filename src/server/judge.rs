//! Whether a call may be made and what it would send: arguments judged by the tool's schema, then
//! policy, then limits.

use super::{
    invoke::{Ending, Refused},
    trail::{self, Trail},
};
use crate::{
    catalog::{BuiltinTool, SideEffect, ToolKind, ViewTool},
    governance::{self, Reason},
    json::{OwnedRaw, Raw},
    mapping::{Arguments, InvalidArguments, OutgoingRequest, RequestPlan, soap::SoapPlan},
};

/// What a call wants of its tool, its arguments judged.
pub(super) enum Intent<'a> {
    /// A request to the API.
    Request(OutgoingRequest),
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

pub(super) fn is_for_a_worker(tool: &ViewTool, arguments: Raw<'_>) -> bool {
    matches!(tool.kind, ToolKind::Rest { .. }) && arguments.text().len() > JUDGED_INLINE_BYTES_MAX
}

/// Arguments that were judged, and what is kept of them.
pub(super) struct Judged {
    pub(super) kept: Option<Vec<u8>>,
    pub(super) repairs: u32,
    pub(super) side_effect: SideEffect,
    /// What is sent, or what is wrong with them.
    pub(super) request: Result<OutgoingRequest, String>,
}

/// Judges arguments as [`intend`] does, away from the core.
pub(super) fn judge(tool: &ViewTool, arguments: &OwnedRaw) -> Option<Judged> {
    let ToolKind::Rest { request: plan, soap, .. } = &tool.kind else { return None };
    let arguments = arguments.as_raw();
    Some(match read(plan, soap.as_deref(), Some(arguments)) {
        Ok((arguments, request)) => Judged {
            kept: arguments.raw().and_then(|raw| trail::kept_arguments(tool, raw)),
            repairs: arguments.repairs().count,
            side_effect: tool.side_effect_of(&arguments),
            request: Ok(request),
        },
        Err(invalid) => Judged {
            kept: trail::kept_invalid_arguments(tool, arguments),
            repairs: 0,
            side_effect: tool.side_effect,
            request: Err(invalid.to_string()),
        },
    })
}

/// Judges the arguments. What a call does to the world may depend on them.
pub(super) fn intend<'a>(
    trail: &mut Trail,
    tool: &'a ViewTool,
    arguments: Option<Raw<'a>>,
) -> (Intent<'a>, SideEffect) {
    match &tool.kind {
        ToolKind::Builtin(builtin) => (Intent::Builtin(*builtin), tool.side_effect),
        ToolKind::Rest { request: plan, soap, .. } => {
            match read(plan, soap.as_deref(), arguments) {
                Ok((arguments, request)) => {
                    trail.keep_arguments(|| trail::kept_arguments(tool, arguments.raw()?));
                    trail.repairs = arguments.repairs().count;
                    let side_effect = tool.side_effect_of(&arguments);
                    (Intent::Request(request), side_effect)
                }
                Err(invalid) => {
                    trail.keep_arguments(|| trail::kept_invalid_arguments(tool, arguments?));
                    (Intent::Invalid(invalid), tool.side_effect)
                }
            }
        }
    }
}

/// Arguments that fit, and the request that they make.
fn read<'a>(
    plan: &RequestPlan,
    soap: Option<&SoapPlan>,
    arguments: Option<Raw<'a>>,
) -> Result<(Arguments<'a>, OutgoingRequest), InvalidArguments> {
    let arguments = plan.validate(arguments)?;
    let request = plan.build(&arguments);
    let request = match soap {
        Some(soap) => soap.wrap(request)?,
        None => request,
    };
    Ok((arguments, request))
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
