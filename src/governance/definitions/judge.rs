//! What becomes of a definition that is offered, given what was before.

use std::sync::Arc;

use serde_json::Value;

use super::entry::{Accepted, Entry, Withheld};
use super::findings::Findings;
use super::{Subject, Turn};
use crate::catalog::{Definition, DefinitionKind, DefinitionTrust};
use crate::json;

/// How a toolset takes what its server offers.
#[derive(Clone, Copy)]
pub(super) struct Judge {
    pub(super) trust: DefinitionTrust,
    pub(super) is_first: bool,
    pub(super) now_ms: u64,
}

impl Judge {
    /// How a definition stands that is offered now, in one or several forms, and what that is to
    /// what was before.
    pub(super) fn meets(
        self,
        before: Option<Entry>,
        subject: &Subject,
        mut several: Vec<Arc<Definition>>,
    ) -> (Entry, Option<Turn>) {
        let is_ambiguous = several.len() > 1 && self.trust != DefinitionTrust::Trust;
        let accepted_hash = match &before {
            Some(Entry::Served(accepted) | Entry::Gone(accepted, _)) => {
                Some(accepted.definition.hash)
            }
            Some(Entry::Withheld(Some(accepted), _)) => Some(accepted.definition.hash),
            Some(Entry::Withheld(None, _)) | None => None,
        };
        // The one that is known already is not the one to look at.
        if is_ambiguous {
            several.retain(|one| Some(one.hash) != accepted_hash);
        }
        let offered = several.swap_remove(0);
        match before {
            None => self.meets_unknown(subject, offered, is_ambiguous),
            Some(Entry::Served(accepted)) => {
                self.meets_accepted(accepted, offered, is_ambiguous, None)
            }
            Some(Entry::Gone(accepted, _)) => {
                self.meets_accepted(accepted, offered, is_ambiguous, Some(Turn::Back))
            }
            Some(Entry::Withheld(accepted, withheld)) => {
                let is_same = withheld.definition.hash == offered.hash
                    && withheld.is_ambiguous == is_ambiguous;
                let is_trusted = self.trust == DefinitionTrust::Trust;
                match accepted {
                    _ if is_same && (withheld.refused.is_some() || !is_trusted) => {
                        (Entry::Withheld(accepted, withheld), None)
                    }
                    Some(accepted) => {
                        self.meets_accepted(accepted, offered, is_ambiguous, Some(Turn::Back))
                    }
                    None => Self { is_first: false, ..self }.meets_unknown(
                        subject,
                        offered,
                        is_ambiguous,
                    ),
                }
            }
        }
    }

    fn meets_unknown(
        self,
        subject: &Subject,
        definition: Arc<Definition>,
        is_ambiguous: bool,
    ) -> (Entry, Option<Turn>) {
        let turn = match self.trust {
            DefinitionTrust::Trust if self.is_first => Some(Turn::First),
            DefinitionTrust::Trust => Some(Turn::Trusted),
            DefinitionTrust::Pin if self.is_first && !is_ambiguous => {
                (!Findings::of(&definition, subject).withhold()).then_some(Turn::First)
            }
            DefinitionTrust::Pin | DefinitionTrust::ApproveNew => None,
        };
        match turn {
            Some(turn) => (Entry::Served(Accepted { definition, verdict: None }), Some(turn)),
            None => (self.withheld(None, definition, is_ambiguous), Some(Turn::New)),
        }
    }

    fn meets_accepted(
        self,
        accepted: Accepted,
        offered: Arc<Definition>,
        is_ambiguous: bool,
        turn_if_same: Option<Turn>,
    ) -> (Entry, Option<Turn>) {
        if !is_ambiguous && accepted.definition.hash == offered.hash {
            return (Entry::Served(accepted), turn_if_same);
        }
        if !is_ambiguous && differ_in_passing(&accepted.definition, &offered) {
            return (Entry::Served(Accepted { definition: offered, ..accepted }), turn_if_same);
        }
        if self.trust == DefinitionTrust::Trust {
            let accepted = Accepted { definition: offered, verdict: None };
            return (Entry::Served(accepted), Some(Turn::Trusted));
        }
        (self.withheld(Some(accepted), offered, is_ambiguous), Some(Turn::Changed))
    }

    fn withheld(
        self,
        accepted: Option<Accepted>,
        definition: Arc<Definition>,
        is_ambiguous: bool,
    ) -> Entry {
        let withheld = Withheld { definition, since_ms: self.now_ms, refused: None, is_ambiguous };
        Entry::Withheld(accepted, withheld)
    }
}

/// Whether two forms of a resource differ only in how much there is of it now and since when: that
/// changes with its content, and says nothing that anybody would have to judge.
fn differ_in_passing(one: &Definition, other: &Definition) -> bool {
    if one.kind != DefinitionKind::Resource {
        return false;
    }
    let lasting = |definition: &Definition| {
        let mut value = json::to_value(definition.json.as_raw());
        if let Some(members) = value.as_object_mut() {
            members.remove("size");
            if let Some(Value::Object(annotations)) = members.get_mut("annotations") {
                annotations.remove("lastModified");
                if annotations.is_empty() {
                    members.remove("annotations");
                }
            }
        }
        value
    };
    lasting(one) == lasting(other)
}
