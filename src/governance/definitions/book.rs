//! The book of one upstream server: each definition it ever offered that still matters, and how it
//! stands.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use aws_lc_rs::digest::{self, Context, SHA256};
use serde_json::Value;

use super::findings::{Findings, Flaw, mark_lookalikes};
use super::hash::hash_text;
use super::rows::{Reach, ServerRecord};
use crate::catalog::{Definition, DefinitionKind, DefinitionTrust, Definitions, UpstreamEra};
use crate::json::{self, OwnedRaw};

/// Definitions of which something is kept; of those that went the oldest are forgotten first.
const ENTRIES_MAX: usize = 50_000;
/// Longest name or URI of a definition, in bytes.
const NAME_BYTES_MAX: usize = 4096;
/// Bytes of the tag that names what waits.
const TAG_BYTES: usize = 16;

/// What an entry of the book is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// What the server tells models about itself.
    Instructions,
    /// Something it lists, by its kind and its name or URI.
    Listed(DefinitionKind, Box<str>),
}

impl Subject {
    /// Of something that is listed.
    pub fn of(definition: &Definition) -> Self {
        Self::Listed(definition.kind, definition.name.clone())
    }

    /// The word for its kind.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Instructions => "instructions",
            Self::Listed(DefinitionKind::Tool, _) => "tool",
            Self::Listed(DefinitionKind::Prompt, _) => "prompt",
            Self::Listed(DefinitionKind::Resource, _) => "resource",
            Self::Listed(DefinitionKind::ResourceTemplate, _) => "resource_template",
        }
    }

    /// Its name or URI; empty for what has none.
    pub fn name(&self) -> &str {
        match self {
            Self::Instructions => "",
            Self::Listed(_, name) => name,
        }
    }

    /// That which [`Self::kind`] and [`Self::name`] tell.
    pub fn parse(kind: &str, name: &str) -> Option<Self> {
        let kind = match kind {
            "instructions" => return name.is_empty().then_some(Self::Instructions),
            "tool" => DefinitionKind::Tool,
            "prompt" => DefinitionKind::Prompt,
            "resource" => DefinitionKind::Resource,
            "resource_template" => DefinitionKind::ResourceTemplate,
            _ => return None,
        };
        Some(Self::Listed(kind, name.into()))
    }

    /// What people call it by, where it is called by name.
    pub(super) fn called(&self) -> Option<(DefinitionKind, &str)> {
        match self {
            Self::Listed(kind @ (DefinitionKind::Tool | DefinitionKind::Prompt), name) => {
                Some((*kind, name))
            }
            _ => None,
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind())?;
        match self {
            Self::Instructions => Ok(()),
            Self::Listed(_, name) => write!(f, " {}", super::visible(name)),
        }
    }
}

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
        let withheld = |(subject, entry)| match entry {
            &Entry::Withheld(ref accepted, ref withheld) => Some((subject, accepted, withheld)),
            _ => None,
        };
        let mut pending: Vec<Pending<'_>> = self
            .entries
            .iter()
            .filter_map(withheld)
            .map(|(subject, accepted, withheld)| Pending {
                subject,
                offered: &withheld.definition,
                accepted: accepted.as_ref().map(|accepted| &*accepted.definition),
                since_ms: withheld.since_ms,
                refused: withheld.refused.as_ref(),
                findings: withheld.findings(subject),
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

impl Entry {
    /// What is offered, or was.
    fn offered(&self) -> &Arc<Definition> {
        match self {
            Self::Served(accepted) | Self::Gone(accepted, _) => &accepted.definition,
            Self::Withheld(_, withheld) => &withheld.definition,
        }
    }
}

impl Withheld {
    fn findings(&self, subject: &Subject) -> Findings {
        let mut findings = Findings::of(&self.definition, subject);
        if self.is_ambiguous {
            findings.add(Flaw::Ambiguous, "name", "the server lists several of it".to_owned());
        }
        findings
    }
}

/// How a toolset takes what its server offers.
#[derive(Clone, Copy)]
struct Judge {
    trust: DefinitionTrust,
    is_first: bool,
    now_ms: u64,
}

impl Judge {
    /// How a definition stands that is offered now, in one or several forms, and what that is to
    /// what was before.
    fn meets(
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

fn event(subject: &Subject, turn: Turn, definition: &Arc<Definition>) -> Event {
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

#[cfg(test)]
#[path = "book_tests.rs"]
pub(super) mod tests;
