//! The tools about the appliance itself.
//!
//! What the process knows is asked through [`Appliance`], which the server implements, so this room
//! needs nothing from above. A caller learns of its own client application only: every question
//! carries it. Session ids are shortened here, whoever answers, because a whole one is half a
//! credential.

use serde::Serialize;

use crate::catalog::{
    BuiltinTool, ClientApplicationId, RuntimeStatus, SessionList, TenantId, ToolSummary,
    ToolSummaryList, View,
};
use crate::mcp::ToolOutcome;

use super::answer::structured;
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
    /// The state of the process, with the number of sessions of this tenant.
    fn status(&self, scope: Scope<'_>) -> RuntimeStatus;
    /// Sessions of this client application, the newest first, at most `count_max` of them.
    fn sessions(&self, scope: Scope<'_>, count_max: usize) -> SessionList;
}

/// Answers a call of `tool` by the client application of `view`.
pub fn run_builtin(tool: BuiltinTool, appliance: &dyn Appliance, view: &View) -> ToolOutcome {
    let scope = Scope { tenant: &view.tenant, client_application: &view.client_application };
    match tool {
        BuiltinTool::RuntimeStatus => json(&appliance.status(scope)),
        BuiltinTool::ListSessions => json(&shortened(appliance.sessions(scope, LISTED_MAX))),
        BuiltinTool::ListTools => json(&tools_of(view)),
    }
}

fn json(result: &impl Serialize) -> ToolOutcome {
    match serde_json::to_vec(result) {
        Ok(json) => structured(json),
        // Cannot happen with these types; an answer all the same.
        Err(error) => {
            ToolOutcome::Failure { text: format!("The result could not be written: {error}") }
        }
    }
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

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::sync::Arc;

    use super::*;
    use crate::catalog::{SessionSummary, fixture};

    #[derive(Default)]
    struct Sample {
        asked: RefCell<Vec<String>>,
    }

    impl Sample {
        fn note(&self, scope: Scope<'_>) {
            let asked = format!("{}/{}", scope.tenant.as_str(), scope.client_application.as_str());
            self.asked.borrow_mut().push(asked);
        }
    }

    impl Appliance for Sample {
        fn status(&self, scope: Scope<'_>) -> RuntimeStatus {
            self.note(scope);
            RuntimeStatus {
                version: "1.2.3".to_owned(),
                uptime_seconds: 61,
                cores: 2,
                driver: "epoll".to_owned(),
                catalog_version: 5,
                sessions: 3,
            }
        }

        fn sessions(&self, scope: Scope<'_>, count_max: usize) -> SessionList {
            self.note(scope);
            let session = SessionSummary {
                session: "1-abcdefghijklmnopqrstuv-12345678901".to_owned(),
                client: "a \"client\" 1".to_owned(),
                revision: "2025-11-25".to_owned(),
                created_ms: 1,
                last_seen_ms: 2,
            };
            SessionList { sessions: vec![session; count_max + 1], total: 200 }
        }
    }

    fn view() -> Arc<View> {
        fixture::view(fixture::APPLIANCE)
    }

    fn answer(tool: BuiltinTool, appliance: &Sample) -> serde_json::Value {
        match run_builtin(tool, appliance, &view()) {
            ToolOutcome::Success { structured_json: Some(json), .. } => {
                serde_json::from_slice(&json).unwrap()
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn results_keep_to_their_published_schemas() {
        for tool in BuiltinTool::ALL {
            let validator = jsonschema::validator_for(&tool.output_schema()).unwrap();
            let answer = answer(tool, &Sample::default());
            assert!(validator.is_valid(&answer), "{tool:?}: {answer}");
        }
    }

    #[test]
    fn every_question_carries_the_callers_scope() {
        let appliance = Sample::default();
        answer(BuiltinTool::RuntimeStatus, &appliance);
        answer(BuiltinTool::ListSessions, &appliance);
        assert_eq!(*appliance.asked.borrow(), ["acme/desk", "acme/desk"]);
    }

    #[test]
    fn session_ids_are_cut_and_lists_bounded_whoever_answers() {
        let listed = answer(BuiltinTool::ListSessions, &Sample::default());
        let sessions = listed["sessions"].as_array().unwrap();
        assert_eq!((sessions.len(), &listed["total"]), (LISTED_MAX, &200.into()));
        assert_eq!(sessions[7]["session"], "1-abcdef");
    }

    #[test]
    fn the_tools_are_those_of_the_view() {
        let listed = answer(BuiltinTool::ListTools, &Sample::default());
        assert_eq!(listed["total"], 3);
        assert_eq!(listed["tools"][2]["name"], "runtime_status");
        assert_eq!(listed["tools"][0]["toolset"], "appliance");
    }
}
