//! What a question is about: a tool of the view, one that went, a meta tool, or one
//! that is only written down.

use std::sync::Arc;

use super::steps::Written;
use super::{ExplainedTool, Question, UpstreamStanding};
use crate::catalog::{CompiledTool, Deprecated, Entities, Entry, Permission, Tool, View, ViewTool};
use crate::governance::{Reason, moment};

/// What was asked about, as far as it is there.
pub(super) struct Subject<'a> {
    /// In the view, shown or not, or callable under the name it had.
    in_view: Option<Arc<ViewTool>>,
    standing: Standing,
    /// As it was written.
    entity: Option<&'a Entry<Tool>>,
}

/// How it stands with a name.
enum Standing {
    /// The client application sees it.
    Visible,
    /// It is assigned, and every call is denied.
    Hidden,
    /// It went, and can be called for some time.
    Former { now_called: Option<String>, until_ms: u64 },
    /// It went, and cannot be called any more.
    Gone,
    /// It is one of the runtime's own meta tools.
    MetaTool,
    /// It is nothing of this view.
    Absent,
}

impl<'a> Subject<'a> {
    pub(super) fn find(asked: &str, entities: &'a Entities, view: &View, now_ms: u64) -> Self {
        let (in_view, standing) = in_view(asked, view, now_ms);
        let is_entity = |entry: &&Entry<Tool>| {
            let tool = &entry.value;
            let (toolset, operation) = (tool.toolset.as_str(), tool.name.as_str());
            let is_same = match &in_view {
                Some(found) => {
                    found.toolset.as_str() == toolset && found.source_name.as_str() == operation
                }
                None => is_meant(asked, toolset, operation),
            };
            tool.tenant == view.tenant && is_same
        };
        let entity = entities.tools.iter().find(is_entity);
        Self { in_view, standing, entity }
    }

    /// The tool and what policies say of it, where it can be called by somebody at some time.
    pub(super) fn compiled(&self) -> Option<(&CompiledTool, &Permission)> {
        self.in_view.as_ref().map(|found| (&*found.tool, &found.permission))
    }

    /// Whether a call would find it.
    pub(super) fn is_callable(&self) -> bool {
        matches!(self.standing, Standing::Visible | Standing::Former { .. })
    }

    pub(super) fn is_meta_tool(&self) -> bool {
        matches!(self.standing, Standing::MetaTool)
    }

    pub(super) fn toolset(&self) -> Option<&str> {
        let of_entity = self.entity.map(|entry| entry.value.toolset.as_str());
        self.in_view.as_ref().map(|found| found.toolset.as_str()).or(of_entity)
    }

    pub(super) fn described(&self) -> Option<ExplainedTool> {
        let origin = self.entity.map(|entry| entry.origin.to_string());
        let (name, operation, weight) = match (&self.in_view, self.entity) {
            (Some(found), _) => {
                let name = self.is_callable().then(|| found.name.to_string());
                (name, found.source_name.to_string(), found.weight)
            }
            (None, Some(entry)) => {
                (None, entry.value.name.to_string(), entry.value.weight.unwrap_or(1))
            }
            (None, None) => return None,
        };
        let toolset = self.toolset().unwrap_or_default().to_owned();
        Some(ExplainedTool { name, toolset, operation, origin, weight })
    }

    /// What there is to say besides what is decided about its calls.
    pub(super) fn remark(&self) -> Option<String> {
        let Standing::Former { now_called, until_ms } = &self.standing else { return None };
        let until = moment::text(*until_ms);
        Some(match now_called {
            Some(name) => format!("It is called `{name}` now; this name goes on until {until}."),
            None => format!("It was removed; it goes on until {until}."),
        })
    }

    /// Where a server of the view offers what was asked about, why it is not shown all the same. What
    /// is written down of another toolset's tool has reasons of its own.
    pub(super) fn why_withheld(&self, question: &Question<'_>, view: &View) -> Option<String> {
        let mut servers = question.upstreams.iter();
        servers.find_map(|UpstreamStanding { toolset, waiting, refused, .. }| {
            if self.toolset().is_some_and(|own| own != toolset) {
                return None;
            }
            let is_among =
                |names: &[String]| names.iter().any(|name| is_meant(question.tool, toolset, name));
            let what = match (is_among(waiting), is_among(refused)) {
                (true, _) => "it waits for approval",
                (_, true) => "an operator refused it",
                _ => return None,
            };
            let tenant = &view.tenant;
            Some(format!(
                "Its server offers it, and {what}: see `ringway upstream show {tenant}/{toolset}`."
            ))
        })
    }

    /// Why there is nothing to decide.
    pub(super) fn why_not_there(&self, written: &Written<'_>) -> String {
        match (&self.standing, self.entity) {
            (Standing::MetaTool, _) => {
                "It is the runtime's own. What it finds and calls is decided \
                                      tool by tool."
                    .to_owned()
            }
            (Standing::Gone, _) => Reason::ToolGone.summary().to_owned(),
            (_, None) => "There is no such tool. `ringway tools` lists those the client \
                          application sees."
                .to_owned(),
            (_, Some(entity)) => {
                let toolset = &entity.value.toolset;
                match written.assignment() {
                    _ if !entity.value.enabled => {
                        "It is not published (`enabled = false`).".to_owned()
                    }
                    None => format!(
                        "Its toolset `{toolset}` is not assigned to this client application."
                    ),
                    Some(assignment) if !assignment.value.enabled => format!(
                        "The assignment of its toolset `{toolset}` is switched off ({}).",
                        assignment.origin
                    ),
                    Some(_) => "The running catalog does not have it yet.".to_owned(),
                }
            }
        }
    }
}

/// Whether an operation is what was asked about: `operation` or `toolset/operation`.
fn is_meant(asked: &str, toolset: &str, operation: &str) -> bool {
    let of_toolset = asked.strip_prefix(toolset).and_then(|rest| rest.strip_prefix('/'));
    asked == operation || of_toolset == Some(operation)
}

/// What clients call it by comes first; an operation of that name may be another tool.
fn in_view(asked: &str, view: &View, now_ms: u64) -> (Option<Arc<ViewTool>>, Standing) {
    if let Some(tool) = view.tool(asked) {
        return (Some(Arc::clone(tool)), Standing::Visible);
    }
    if let Some(tool) = view.hidden(asked) {
        return (Some(Arc::clone(tool)), Standing::Hidden);
    }
    if view.meta_tool(asked).is_some() {
        return (None, Standing::MetaTool);
    }
    match view.deprecated(asked, now_ms) {
        Some(Deprecated::Callable { tool, now_called, until_ms }) => {
            let now_called = now_called.map(|name| name.to_string());
            return (Some(tool), Standing::Former { now_called, until_ms });
        }
        Some(Deprecated::Gone) => return (None, Standing::Gone),
        None => {}
    }
    let is_tool =
        |tool: &&Arc<ViewTool>| is_meant(asked, tool.toolset.as_str(), tool.source_name.as_str());
    match view.assigned().find(is_tool) {
        Some(tool) if tool.permission.is_denied() => (Some(Arc::clone(tool)), Standing::Hidden),
        Some(tool) => (Some(Arc::clone(tool)), Standing::Visible),
        None => (None, Standing::Absent),
    }
}
