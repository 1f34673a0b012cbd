//! What turned with the definitions of a server, for the audit log and the log.

use std::rc::Rc;

use crate::{
    audit::{Asker, CallType, Decision, Outcome, Record, Transport},
    catalog::{TenantId, ToolsetId},
    governance::definitions::{Event, Flaw, Turn, hash_text},
    server::core::Core,
};

/// Who turned it, where nobody asked for it.
pub(super) const OWN: &str = "ringway";

/// Digits of a hash that name a definition.
const HASH_DIGITS: usize = 16;

/// Puts on record what turned with definitions, and who turned it. The first list of a server is
/// but a line in the log: nothing of it waits, and nobody decided anything.
pub(crate) fn recorded(
    core: &Rc<Core>,
    tenant: &TenantId,
    toolset: &ToolsetId,
    by: &str,
    events: &[Event],
) {
    let first = events.iter().filter(|event| event.turn == Turn::First).count();
    if first > 0 {
        tracing::info!(%tenant, %toolset, definitions = first, "an upstream server was taken in");
    }
    let asker = Asker::new(tenant.as_str(), "", by, None);
    for event in events.iter().filter(|event| event.turn != Turn::First) {
        let hash = hash_text(&event.hash);
        let hash = hash.get(..HASH_DIGITS).unwrap_or_default();
        let Event { subject, turn, flaws, .. } = event;
        let asked = format!("{toolset} {hash} {subject}");
        let at_ms = core.clock.now_ms();
        let transport = if by == OWN { Transport::Upstream } else { Transport::Admin };
        let id = core.next_execution_id(at_ms);
        let call_type = CallType::DefinitionChange;
        let record = Record {
            asked: Some(&asked),
            ..Record::new(at_ms, id, &asker, transport, call_type, method_of(*turn))
        };
        let record = match turn {
            Turn::New | Turn::Changed | Turn::Refused => Record {
                decision: Decision::Denied,
                reason: reason_of(*turn, flaws),
                outcome: Outcome::Error,
                ..record
            },
            _ => record,
        };
        let _ = core.audit.append(&record);
        let flaws = flaws.iter().map(|flaw| flaw.as_str()).collect::<Vec<_>>().join(" ");
        let turn = turn.as_str();
        if event.turn.is_quarantine() {
            tracing::warn!(%tenant, %toolset, %subject, turn, hash, flaws,
                "a definition of an upstream server is withheld until it is approved");
        } else {
            tracing::info!(%tenant, %toolset, %subject, turn, hash, flaws, by,
                "a definition of an upstream server turned");
        }
    }
}

/// What stands in the place of a method.
fn method_of(turn: Turn) -> &'static str {
    match turn {
        Turn::New | Turn::Changed => "definition/quarantine",
        Turn::First | Turn::Trusted => "definition/accept",
        Turn::Approved => "definition/approve",
        Turn::Refused => "definition/refuse",
        Turn::Gone => "definition/gone",
        Turn::Back => "definition/back",
        Turn::Forgotten => "definition/forget",
    }
}

/// Why a definition is withheld: what it hides says more than that it is new.
fn reason_of(turn: Turn, flaws: &[Flaw]) -> &'static str {
    match flaws.iter().find(|flaw| flaw.withholds()) {
        Some(flaw) => flaw.as_str(),
        None => turn.as_str(),
    }
}
