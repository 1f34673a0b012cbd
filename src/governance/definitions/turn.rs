//! What becomes of definitions.

use super::Subject;
use super::findings::{Findings, Flaw};
use crate::catalog::Definition;

/// What became of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// Accepted with the first list.
    First,
    /// Accepted because its server is trusted: it is new, or other than before.
    Trusted,
    /// Withheld: nobody has seen it yet.
    New,
    /// Withheld: it is other than what was accepted.
    Changed,
    /// Offered again as it was accepted.
    Back,
    /// Not offered any more.
    Gone,
    /// An operator accepted it.
    Approved,
    /// An operator refused it.
    Refused,
    /// An operator had what is not offered any more forgotten.
    Forgotten,
}

impl Turn {
    /// As it is named in records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Trusted => "trusted",
            Self::New => "new",
            Self::Changed => "changed",
            Self::Back => "back",
            Self::Gone => "gone",
            Self::Approved => "approved",
            Self::Refused => "refused",
            Self::Forgotten => "forgotten",
        }
    }

    /// Whether it keeps a definition from being served until an operator decides.
    pub const fn is_quarantine(self) -> bool {
        matches!(self, Self::New | Self::Changed)
    }
}

/// One turn of one definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Of what.
    pub subject: Subject,
    /// What became of it.
    pub turn: Turn,
    /// The hash of what is offered, or was.
    pub hash: [u8; 32],
    /// What is remarkable about it, of one that is withheld or trusted: the names of the flaws.
    pub flaws: Vec<Flaw>,
}

/// One turn, with what is remarkable about what is withheld or trusted.
pub(super) fn event(subject: &Subject, turn: Turn, definition: &Definition) -> Event {
    let flaws = match turn {
        Turn::New | Turn::Changed | Turn::Trusted => {
            let findings = Findings::of(definition, subject);
            let mut flaws: Vec<Flaw> = findings.iter().map(|finding| finding.flaw).collect();
            flaws.dedup();
            flaws
        }
        _ => Vec::new(),
    };
    Event { subject: subject.clone(), turn, hash: definition.hash, flaws }
}
