//! The book of one upstream server: each definition it ever offered that still matters, and how it
//! stands.

use std::collections::BTreeMap;
use std::sync::Arc;

use aws_lc_rs::digest::{self, Context, SHA256};

use super::Subject;
use super::entry::{Accepted, Entry, Verdict, Withheld};
use super::findings::{Findings, mark_lookalikes};
use super::hash::hash_text;
use super::judge::Judge;
use super::rows::{Reach, ServerRecord};
use super::turn::{Event, Turn, event};
use crate::catalog::{Definition, DefinitionKind, DefinitionTrust, Definitions, UpstreamEra};
use crate::json::{self, OwnedRaw};

/// Definitions of which something is kept; of those that went the oldest are forgotten first.
const ENTRIES_MAX: usize = 50_000;
/// Longest name or URI of a definition, in bytes.
const NAME_BYTES_MAX: usize = 4096;
/// Bytes of the tag that names what waits.
const TAG_BYTES: usize = 16;

/// Everything a server offers at one time.
#[derive(Debug, Clone, Default)]
pub struct Offer {
    /// All it lists, in whatever order.
    pub definitions: Vec<Definition>,
    /// What it tells models about itself.
    pub instructions: Option<Box<str>>,
    /// Its era.
    pub era: UpstreamEra,
    /// It completes arguments.
    pub completes: bool,
    /// Its resources can be subscribed to.
    pub subscribes: bool,
    /// The revision spoken with it.
    pub revision: Option<Box<str>>,
    /// What it calls itself.
    pub server_name: Option<Box<str>>,
    /// The version it says it has.
    pub server_version: Option<Box<str>>,
}

/// What an operator does with a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Accept what is offered.
    Approve,
    /// Refuse it: it is not served, and nobody is reminded of it.
    Refuse,
}

/// Why nothing was decided.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BookError {
    /// It is offered otherwise by now, or not at all.
    #[error(
        "{subject} is not what it was when you looked: with this hash it does not wait; look again"
    )]
    Moved {
        /// What was named.
        subject: Subject,
    },
    /// Nobody can tell which of several is meant.
    #[error(
        "{subject} cannot be approved: the server lists several under this name, and nobody can \
         tell which one a call would reach"
    )]
    Ambiguous {
        /// What was named.
        subject: Subject,
    },
    /// What waits is not what was seen.
    #[error("what waits is not what it was when you looked; look again")]
    OtherTag,
}

/// A definition that is withheld.
#[derive(Debug)]
pub struct Pending<'a> {
    /// Which.
    pub subject: &'a Subject,
    /// As it is offered.
    pub offered: &'a Definition,
    /// As it was accepted, if it was.
    pub accepted: Option<&'a Definition>,
    /// Since when it is offered, Unix time in milliseconds.
    pub since_ms: u64,
    /// Who refused it.
    pub refused: Option<&'a Verdict>,
    /// What is remarkable about it.
    pub findings: Findings,
}

/// A definition that was accepted and is not offered any more.
#[derive(Debug)]
pub struct Gone<'a> {
    /// Which.
    pub subject: &'a Subject,
    /// As it was accepted.
    pub accepted: &'a Definition,
    /// Since when, Unix time in milliseconds.
    pub since_ms: u64,
}

/// How many definitions stand how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is how they stand")]
pub struct Counts {
    pub served: usize,
    pub pending: usize,
    pub refused: usize,
    pub gone: usize,
}

/// What is known of one server's definitions. Clones share them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Book {
    pub(super) server: ServerRecord,
    pub(super) entries: BTreeMap<Subject, Entry>,
}

impl Book {
    /// What is known of the server itself.
    pub fn server(&self) -> &ServerRecord {
        &self.server
    }

    /// The server did not answer.
    pub fn failed(&mut self, now_ms: u64, grace_ms: u64) {
        self.server.reach = self.server.reach.failed(now_ms, grace_ms);
    }

    /// What is to be shown of it: what is served, unless it has been gone for too long, or was
    /// never heard of.
    pub fn shown(&self) -> Option<Definitions> {
        let is_dropped = matches!(self.server.reach, Reach::Dropped { .. });
        (self.server.has_list && !is_dropped).then(|| self.served())
    }

    /// Takes in what the server offers now.
    pub fn learn(&mut self, offer: Offer, trust: DefinitionTrust, now_ms: u64) -> Vec<Event> {
        let is_first = !self.server.has_list;
        let mut events = Vec::new();
        let mut offered = sorted(&offer);
        for (subject, several) in std::mem::take(&mut offered) {
            let judge = Judge { trust, is_first, now_ms };
            let before = self.entries.remove(&subject);
            let (entry, turn) = judge.meets(before, &subject, several);
            if let Some(turn) = turn {
                events.push(event(&subject, turn, entry.offered()));
            }
            self.entries.insert(subject.clone(), entry);
            offered.insert(subject, Vec::new());
        }
        let went: Vec<Subject> = self
            .entries
            .keys()
            .filter(|subject| !offered.contains_key(*subject))
            .cloned()
            .collect();
        for subject in went {
            let Some(entry) = self.entries.remove(&subject) else { continue };
            let is_kept = trust != DefinitionTrust::Trust;
            match entry {
                Entry::Served(accepted) => {
                    events.push(event(&subject, Turn::Gone, &accepted.definition));
                    if is_kept {
                        self.entries.insert(subject, Entry::Gone(accepted, now_ms));
                    }
                }
                Entry::Withheld(Some(accepted), _) if is_kept => {
                    self.entries.insert(subject, Entry::Gone(accepted, now_ms));
                }
                // What nobody accepted leaves no trace: else a server could fill the book.
                Entry::Withheld(..) => {}
                Entry::Gone(accepted, since_ms) => {
                    self.entries.insert(subject, Entry::Gone(accepted, since_ms));
                }
            }
        }
        self.forget_oldest();
        self.server.take(offer, now_ms, !events.is_empty());
        events
    }

    /// Does what an operator decided about the definition with this hash.
    ///
    /// # Errors
    /// It is not offered any more, or otherwise; nothing was done.
    pub fn decide(
        &mut self,
        act: Act,
        subject: &Subject,
        hash: &[u8; 32],
        by: &str,
        now_ms: u64,
    ) -> Result<Event, BookError> {
        let moved = || BookError::Moved { subject: subject.clone() };
        let entry = self.entries.get(subject).ok_or_else(moved)?;
        if entry.offered().hash != *hash {
            return Err(moved());
        }
        let verdict = Verdict { by: by.into(), at_ms: now_ms };
        let definition = entry.offered().clone();
        let (after, turn) = match (act, entry.clone()) {
            (Act::Approve, Entry::Withheld(_, withheld)) if withheld.is_ambiguous => {
                return Err(BookError::Ambiguous { subject: subject.clone() });
            }
            (Act::Approve, Entry::Withheld(_, withheld)) => {
                let accepted = Accepted { definition: withheld.definition, verdict: Some(verdict) };
                (Some(Entry::Served(accepted)), Turn::Approved)
            }
            (Act::Approve, Entry::Gone(..)) => (None, Turn::Forgotten),
            (Act::Refuse, Entry::Withheld(accepted, withheld)) => {
                let withheld = Withheld { refused: Some(verdict), ..withheld };
                (Some(Entry::Withheld(accepted, withheld)), Turn::Refused)
            }
            (Act::Refuse, Entry::Served(accepted)) => {
                let withheld = Withheld {
                    definition: accepted.definition,
                    since_ms: now_ms,
                    refused: Some(verdict),
                    is_ambiguous: false,
                };
                (Some(Entry::Withheld(None, withheld)), Turn::Refused)
            }
            (Act::Approve, Entry::Served(_)) | (Act::Refuse, Entry::Gone(..)) => {
                return Err(moved());
            }
        };
        match after {
            Some(after) => self.entries.insert(subject.clone(), after),
            None => self.entries.remove(subject),
        };
        Ok(event(subject, turn, &definition))
    }

    /// Does the same with everything that waits and nobody has decided about, where that is what
    /// [`Self::tag`] named. What nobody could approve goes on waiting.
    ///
    /// # Errors
    /// It is not; nothing was done.
    pub fn decide_all(
        &mut self,
        act: Act,
        tag: &str,
        by: &str,
        now_ms: u64,
    ) -> Result<Vec<Event>, BookError> {
        if tag != self.tag() {
            return Err(BookError::OtherTag);
        }
        let waiting: Vec<(Subject, [u8; 32])> = self
            .waiting()
            .filter(|(_, withheld)| act == Act::Refuse || !withheld.is_ambiguous)
            .map(|(subject, withheld)| (subject.clone(), withheld.definition.hash))
            .collect();
        waiting
            .into_iter()
            .map(|(subject, hash)| self.decide(act, &subject, &hash, by, now_ms))
            .collect()
    }

    /// Names what waits and nobody has decided about: another tag, other definitions.
    pub fn tag(&self) -> String {
        let mut context = Context::new(&SHA256);
        for (subject, withheld) in self.waiting() {
            context.update(subject.kind().as_bytes());
            context.update(&(subject.name().len() as u64).to_le_bytes());
            context.update(subject.name().as_bytes());
            context.update(&withheld.definition.hash);
        }
        hash_text(&context.finish().as_ref()[..TAG_BYTES])
    }

    /// What is served.
    pub fn served(&self) -> Definitions {
        let served = |entry: &Entry| match entry {
            Entry::Served(accepted) => Some(accepted.definition.clone()),
            _ => None,
        };
        let listed = self.entries.iter().filter(|(subject, _)| **subject != Subject::Instructions);
        let instructions = self.entries.get(&Subject::Instructions).and_then(served);
        let text = |definition: Arc<Definition>| {
            definition.json.as_raw().as_str().map(|text| text.into_owned().into_boxed_str())
        };
        Definitions {
            all: listed.filter_map(|(_, entry)| served(entry)).collect(),
            era: self.server.era,
            completes: self.server.completes,
            subscribes: self.server.subscribes,
            instructions: instructions.and_then(text),
        }
    }

    /// What is withheld, with what is remarkable about it; those somebody refused last.
    pub fn pending(&self) -> Vec<Pending<'_>> {
        let mut pending: Vec<Pending<'_>> = self
            .entries
            .iter()
            .filter_map(|(subject, entry)| match entry {
                Entry::Withheld(accepted, withheld) => Some(Pending {
                    subject,
                    offered: &withheld.definition,
                    accepted: accepted.as_ref().map(|accepted| &*accepted.definition),
                    since_ms: withheld.since_ms,
                    refused: withheld.refused.as_ref(),
                    findings: withheld.findings(subject),
                }),
                _ => None,
            })
            .collect();
        mark_lookalikes(
            pending.iter_mut().map(|pending| (pending.subject, &mut pending.findings)),
            self.entries.keys(),
        );
        pending.sort_by_key(|pending| pending.refused.is_some());
        pending
    }

    /// Each definition that is served.
    pub fn entries_served(&self) -> impl Iterator<Item = (&Subject, &Definition)> {
        self.entries.iter().filter_map(|(subject, entry)| match entry {
            Entry::Served(accepted) => Some((subject, &*accepted.definition)),
            _ => None,
        })
    }

    /// What was accepted and is not offered any more.
    pub fn gone(&self) -> impl Iterator<Item = Gone<'_>> {
        self.entries.iter().filter_map(|(subject, entry)| match entry {
            Entry::Gone(accepted, since_ms) => {
                Some(Gone { subject, accepted: &accepted.definition, since_ms: *since_ms })
            }
            _ => None,
        })
    }

    /// How many definitions stand how.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for entry in self.entries.values() {
            match entry {
                Entry::Served(_) => counts.served += 1,
                Entry::Withheld(_, withheld) if withheld.refused.is_none() => counts.pending += 1,
                Entry::Withheld(..) => counts.refused += 1,
                Entry::Gone(..) => counts.gone += 1,
            }
        }
        counts
    }

    /// What waits and nobody has decided about.
    fn waiting(&self) -> impl Iterator<Item = (&Subject, &Withheld)> {
        self.entries.iter().filter_map(|(subject, entry)| match entry {
            Entry::Withheld(_, withheld) if withheld.refused.is_none() => Some((subject, withheld)),
            _ => None,
        })
    }

    fn forget_oldest(&mut self) {
        let excess = self.entries.len().saturating_sub(ENTRIES_MAX);
        if excess == 0 {
            return;
        }
        let mut gone: Vec<(u64, Subject)> =
            self.gone().map(|Gone { subject, since_ms, .. }| (since_ms, subject.clone())).collect();
        gone.sort_unstable();
        for (_, subject) in gone.into_iter().take(excess) {
            self.entries.remove(&subject);
        }
    }
}

/// What is offered, each with its different forms in the order of their hashes.
fn sorted(offer: &Offer) -> BTreeMap<Subject, Vec<Arc<Definition>>> {
    let mut offered: BTreeMap<Subject, Vec<Arc<Definition>>> = BTreeMap::new();
    let fitting = |definition: &&Definition| definition.name.len() <= NAME_BYTES_MAX;
    for definition in offer.definitions.iter().filter(fitting) {
        let several = offered.entry(Subject::of(definition)).or_default();
        if several.iter().all(|one| one.hash != definition.hash) {
            several.push(Arc::new(definition.clone()));
        }
    }
    for several in offered.values_mut() {
        several.sort_unstable_by_key(|one| one.hash);
    }
    if let Some(definition) = offer.instructions.as_deref().and_then(instructions) {
        offered.insert(Subject::Instructions, vec![Arc::new(definition)]);
    }
    offered
}

/// Instructions, kept as if they were listed: a JSON string. The kind says nothing here.
fn instructions(text: &str) -> Option<Definition> {
    let mut quoted = Vec::with_capacity(text.len() + 2);
    json::write_string(&mut quoted, text);
    let mut hash = [0; 32];
    hash.copy_from_slice(digest::digest(&SHA256, text.as_bytes()).as_ref());
    let json = OwnedRaw::parse(&quoted).ok()?;
    Some(Definition { kind: DefinitionKind::Prompt, name: "instructions".into(), json, hash })
}

#[cfg(test)]
#[path = "book_tests.rs"]
pub(super) mod tests;
