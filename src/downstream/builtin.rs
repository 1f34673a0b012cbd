//! The tools about the appliance itself.
//!
//! What the process knows is asked through [`Appliance`], which the server implements, so this room needs
//! nothing from above. A caller learns of its own client application only: every question carries it. Session
//! ids are shortened here, whoever answers, because a whole one is half a credential.

use serde::Serialize;

use crate::catalog::{
    BuiltinTool, ClientApplicationId, RuntimeStatus, SessionList, TenantId, ToolSummary,
    ToolSummaryList, View,
};

use super::failure::cut;

/// How many sessions or tools one answer lists.
pub const LISTED_MAX: usize = 100;
/// How much of a session id is shown.
const SESSION_ID_BYTES_SHOWN: usize = 8;

/// Whose view of the appliance is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Scope<'a> {
    /// The tenant.
    pub tenant: &'a TenantId,
    /// Its client application.
    pub client_application: &'a ClientApplicationId,
}

/// What the server knows about itself.
pub trait Appliance {
    /// The state of the process, with the sessions of this client application.
    fn status(&self, scope: Scope<'_>) -> RuntimeStatus;
    /// Sessions of this client application, the newest first, at most `count_max` of them.
    fn sessions(&self, scope: Scope<'_>, count_max: usize) -> SessionList;
}

/// The structured result of `tool` for the client application of `view`: a JSON object.
pub(crate) fn answer(
    tool: BuiltinTool,
    appliance: &dyn Appliance,
    view: &View,
) -> Result<Vec<u8>, serde_json::Error> {
    let scope = Scope { tenant: &view.tenant, client_application: &view.client_application };
    match tool {
        BuiltinTool::RuntimeStatus => json(&appliance.status(scope)),
        BuiltinTool::ListSessions => json(&shortened(appliance.sessions(scope, LISTED_MAX))),
        BuiltinTool::ListTools => json(&tools_of(view)),
    }
}

fn json(result: &impl Serialize) -> Result<Vec<u8>, serde_json::Error> {
    serde_json::to_vec(result)
}

fn shortened(mut list: SessionList) -> SessionList {
    list.sessions.truncate(LISTED_MAX);
    for session in &mut list.sessions {
        let shown = cut(&session.session, SESSION_ID_BYTES_SHOWN).len();
        session.session.truncate(shown);
    }
    list
}

fn tools_of(view: &View) -> ToolSummaryList {
    let tools = view.tools();
    let listed = tools.iter().take(LISTED_MAX).map(|tool| ToolSummary {
        name: tool.name.as_str().to_owned(),
        toolset: tool.toolset.as_str().to_owned(),
        title: tool.title.as_deref().unwrap_or_else(|| tool.name.as_str()).to_owned(),
        description: tool.description.to_string(),
    });
    ToolSummaryList { tools: listed.collect(), total: tools.len() as u64 }
}
