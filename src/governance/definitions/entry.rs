//! How one definition stands.

use std::sync::Arc;

use super::Subject;
use super::findings::{Findings, Flaw};
use crate::catalog::Definition;

/// Who decided, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The operator.
    pub by: Box<str>,
    /// Unix time in milliseconds.
    pub at_ms: u64,
}

/// A definition that was accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Accepted {
    pub(super) definition: Arc<Definition>,
    /// The operator who did; `None`: the toolset's own rule.
    pub(super) verdict: Option<Verdict>,
}

/// A definition that is offered and not served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Withheld {
    pub(super) definition: Arc<Definition>,
    /// Since when it is offered.
    pub(super) since_ms: u64,
    /// An operator refused it; `None`: nobody has decided yet.
    pub(super) refused: Option<Verdict>,
    /// The server lists several under its name, and they are not the same.
    pub(super) is_ambiguous: bool,
}

/// How one definition stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Entry {
    /// It is offered as it was accepted.
    Served(Accepted),
    /// Something else is offered than was accepted, if anything was.
    Withheld(Option<Accepted>, Withheld),
    /// It was accepted, and is not offered any more. Back as it was, it is served again.
    Gone(Accepted, u64),
}

impl Entry {
    /// What is offered, or was.
    pub(super) fn offered(&self) -> &Arc<Definition> {
        match self {
            Self::Served(accepted) | Self::Gone(accepted, _) => &accepted.definition,
            Self::Withheld(_, withheld) => &withheld.definition,
        }
    }
}

impl Withheld {
    pub(super) fn findings(&self, subject: &Subject) -> Findings {
        let mut findings = Findings::of(&self.definition, subject);
        if self.is_ambiguous {
            findings.add(Flaw::Ambiguous, "name", "the server lists several of it".to_owned());
        }
        findings
    }
}
