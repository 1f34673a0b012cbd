//! Work that a client causes and that would hold a core too long: the workers do it, each tenant's
//! within its share of them.

use std::sync::Arc;

use super::{core::Core, refusal::Refusal};
use crate::{
    catalog::{ToolShape, View},
    json::{self, Checked, JsonError, OwnedRaw, Raw},
    rt::WorkError,
};

/// What is larger is not checked, parsed, cut or put together on a core.
pub(crate) const INLINE_BYTES_MAX: usize = 128 * 1024;

/// Has work done that a client of `view` causes.
///
/// # Errors
/// The workers have no room for it, or the work panicked.
pub(crate) async fn run<T: Send + 'static>(
    core: &Core,
    view: &View,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, WorkError> {
    core.shared.workers.run_for(view.tenant.as_str(), work).await
}

/// A body that passed the guard.
pub(crate) enum Body<'a> {
    /// Where it came in.
    Here(Checked<'a>),
    /// A copy of one that was too large to be checked there.
    Copied(OwnedRaw),
}

impl Body<'_> {
    /// Its one value.
    pub(crate) fn root(&self) -> Raw<'_> {
        match self {
            Self::Here(checked) => checked.root(),
            Self::Copied(owned) => owned.as_raw(),
        }
    }
}

/// Checks a body, whatever transport it came over: the only way from bytes to JSON.
///
/// # Errors
/// The workers have no room for it. What is wrong with the body itself is for its transport to tell.
pub(crate) async fn check<'a>(
    core: &Core,
    view: &View,
    body: &'a [u8],
) -> Result<Result<Body<'a>, JsonError>, Refusal> {
    if body.len() <= INLINE_BYTES_MAX {
        return Ok(json::guard(body).map(Body::Here));
    }
    let copy = body.to_vec();
    let checked = Box::pin(run(core, view, move || OwnedRaw::parse(&copy))).await?;
    Ok(checked.map(Body::Copied))
}

/// Has the whole list of tools put together where that is not done yet and is too much for a core;
/// then [`View::tools_list`] has it.
///
/// # Errors
/// The workers have no room for it.
pub(crate) async fn make_list(
    core: &Core,
    view: &Arc<View>,
    shape: ToolShape,
) -> Result<(), Refusal> {
    if view.is_tools_list_at_hand(shape) {
        return Ok(());
    }
    let of = view.clone();
    Box::pin(run(core, view, move || drop(of.tools_list(shape).clone()))).await?;
    Ok(())
}
