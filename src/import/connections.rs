//! Which connections a description's tools use: those that are there, and new ones.
//!
//! A connection that is there is the operator's: nothing of it is changed, but for its base URL
//! where he says a new one himself.

use std::collections::{BTreeMap, BTreeSet};

use super::bindings::{Likeness, bindings, first_place, is_same_server, likeness};
use super::names::hexadecimal;
use super::report::ReportedConnection;
use super::{DescribedConnection, Description, PlanError, Selection, Target};
use crate::catalog::{
    Connection, ConnectionId, Correlation, Credential, Entities, NAME_BYTES_MAX, OperationName,
    Tool, Toolset, ToolsetKind,
};

/// Digits of a hash at the end of an id that another connection has.
const TAIL_DIGITS: usize = 6;

/// A connection of the description, found or made.
#[derive(Debug)]
pub(super) struct Resolved {
    pub(super) id: ConnectionId,
    /// What has to be written; `None` where it is there as it should be.
    pub(super) written: Option<Connection>,
    /// What is there, where it is written over.
    pub(super) moves: bool,
    pub(super) report: ReportedConnection,
}

/// What is there already.
pub(super) struct Present<'a> {
    pub(super) published: &'a Entities,
    pub(super) toolset: Option<&'a Toolset>,
    pub(super) tools: Vec<&'a Tool>,
}

impl Present<'_> {
    pub(super) fn connection(&self, target: &Target, id: &str) -> Option<&Connection> {
        let all = self.published.connections.iter().map(|entry| &*entry.value);
        all.into_iter().find(|one| one.tenant == target.tenant && one.id.as_str() == id)
    }
}

/// Those that tools of the selected operations use, by their places.
pub(super) fn used(
    description: &Description,
    selection: &Selection,
    names: &BTreeMap<String, OperationName>,
) -> BTreeSet<usize> {
    let wanted = description.operations.iter().filter(|operation| {
        let name = names.get(&operation.key).map(OperationName::as_str);
        selection.wants(operation, name)
    });
    wanted.filter_map(|operation| Some(operation.verdict.tool()?.connection)).collect()
}

/// The connections of the description by their places; `None` for those that no tool uses.
pub(super) fn resolve(
    description: &Description,
    used: &BTreeSet<usize>,
    target: &Target,
    present: &Present<'_>,
) -> Result<Vec<Option<Resolved>>, PlanError> {
    if description.connections.is_empty() {
        // Where nothing is called, no place is missed: the report says why.
        let is_called = description.operations.iter().any(|one| one.verdict.tool().is_some());
        return if is_called { Err(PlanError::NoConnection) } else { Ok(Vec::new()) };
    }
    let bound = bindings(description, target, present);
    let first = first_place(description);
    let news = news(description, present);
    let is_anywhere = description.connections.iter().any(|place| place.base_url.is_some());
    let mut nowhere: Option<&DescribedConnection> = None;
    let mut given: BTreeSet<String> = bound.iter().flatten().map(ToString::to_string).collect();
    let mut resolved = Vec::with_capacity(description.connections.len());
    for (place, described) in description.connections.iter().enumerate() {
        let there = bound.get(place).cloned().flatten();
        let is_needless = place != first || (present.toolset.is_some() && there.is_none());
        if is_needless && !used.contains(&place) {
            resolved.push(None);
            continue;
        }
        // Of a SOAP service the reader has taken the operator's URL apart: its path is that of the
        // tools.
        let said =
            target.base_url.as_ref().filter(|_| place == first).map(|url| match description.kind {
                ToolsetKind::Soap => described.base_url.as_ref().unwrap_or(url),
                _ => url,
            });
        let base_url = said.or(described.base_url.as_ref());
        if there.is_none() && base_url.is_none() && is_anywhere {
            // Its operations are skipped; those of the other places are not.
            resolved.push(None);
            continue;
        }
        let id = there.unwrap_or_else(|| {
            let wish = if place == first && present.toolset.is_none() {
                id_of(target.toolset.as_str())
            } else {
                id_of(&format!("{}-{}", target.toolset, described.name))
            };
            free_id(&wish, base_url, &described.credentials, &given, target, present)
        });
        given.insert(id.as_str().to_owned());
        let mut report = ReportedConnection { id: id.to_string(), ..Default::default() };
        let there = present.connection(target, id.as_str());
        let written = match (there, base_url) {
            (Some(there), base_url) => {
                let written = known(there, base_url, said.is_some(), &mut report);
                if news.contains(&place) && asks_for_others(there, described) {
                    let note = "its credentials stay as they are; the description asks for others";
                    report.notes.push(note.to_owned());
                }
                written
            }
            (None, None) => {
                nowhere = nowhere.or(Some(described));
                resolved.push(None);
                continue;
            }
            (None, Some(base_url)) => {
                report.is_new = true;
                report.base_url.clone_from(base_url);
                report.notes.clone_from(&described.notes);
                let mut made = empty(target, id.clone(), base_url.clone());
                made.credentials.clone_from(&described.credentials);
                Some(made)
            }
        };
        let moves = there.is_some() && written.is_some();
        resolved.push(Some(Resolved { id, written, moves, report }));
    }
    match nowhere.filter(|_| resolved.iter().all(Option::is_none)) {
        Some(place) => Err(PlanError::NoBaseUrl { name: place.name.clone() }),
        None => Ok(resolved),
    }
}

/// Why a place of a description has no connection.
pub(super) fn why_nowhere(place: Option<&DescribedConnection>) -> String {
    match place.and_then(|place| place.notes.first()) {
        Some(why) => format!("it has no connection: {why}"),
        None => "it belongs to no connection of the description".to_owned(),
    }
}

/// The places of operations that no tool is of.
fn news(description: &Description, present: &Present<'_>) -> BTreeSet<usize> {
    let imported = present.tools.iter().filter_map(|tool| tool.imported.as_ref());
    let known: BTreeSet<&str> = imported.map(|imported| imported.operation.as_str()).collect();
    let new = description.operations.iter().filter(|one| !known.contains(one.key.as_str()));
    new.filter_map(|operation| Some(operation.verdict.tool()?.connection)).collect()
}

/// Whether an operator should look at the credentials of a connection that is there.
fn asks_for_others(there: &Connection, described: &DescribedConnection) -> bool {
    !described.credentials.is_empty()
        && likeness(&there.credentials, &described.credentials) == Likeness::Other
}

/// What becomes of a connection that is there.
fn known(
    there: &Connection,
    base_url: Option<&String>,
    is_said: bool,
    report: &mut ReportedConnection,
) -> Option<Connection> {
    report.base_url.clone_from(&there.base_url);
    let other = base_url.filter(|other| !is_same_server(other, &there.base_url))?;
    if is_said {
        report.base_url.clone_from(other);
        report.notes.push(format!("it led to {} before", there.base_url));
        return Some(Connection { base_url: other.clone(), ..there.clone() });
    }
    report.notes.push(format!("it stays as it is; the description says {other}"));
    None
}

/// The wished id, or one like it where another connection has that.
fn free_id(
    wish: &str,
    base_url: Option<&String>,
    credentials: &[Credential],
    given: &BTreeSet<String>,
    target: &Target,
    present: &Present<'_>,
) -> ConnectionId {
    let is_usable = |id: &str| {
        let is_right = |there: &Connection| {
            // Of a new toolset's name: prepared for it.
            let is_prepared = present.toolset.is_none() && credentials.is_empty();
            base_url.is_none_or(|url| is_same_server(url, &there.base_url))
                && (is_prepared || likeness(&there.credentials, credentials) > Likeness::Other)
        };
        !given.contains(id) && present.connection(target, id).is_none_or(is_right)
    };
    let hash = hexadecimal(&format!("{wish} {}", base_url.map_or("", String::as_str)));
    let tries = std::iter::once(wish.to_owned()).chain((TAIL_DIGITS..=hash.len()).map(|digits| {
        let room = NAME_BYTES_MAX.saturating_sub(digits + 1).max(1);
        let stem = &wish[..wish.floor_char_boundary(room)];
        let mut id = format!("{stem}-{}", &hash[..digits]);
        id.truncate(NAME_BYTES_MAX);
        id
    }));
    let ids = tries.filter(|id| is_usable(id)).filter_map(|id| ConnectionId::new(&id).ok());
    // Of dozens of hashes one is free; were none, the toolset's own id is one too.
    ids.into_iter().next().unwrap_or_else(|| target.fallback_connection())
}

/// Any text within the rule of ids.
pub fn id_of(text: &str) -> String {
    let plain = |letter: char| match letter.to_ascii_lowercase() {
        letter @ ('a'..='z' | '0'..='9' | '.' | '_') => letter,
        _ => '-',
    };
    let mut id = String::new();
    for letter in text.chars().map(plain) {
        if !(letter == '-' && id.ends_with('-')) {
            id.push(letter);
        }
    }
    let id = id.trim_matches(['-', '.', '_']);
    let id = &id[..id.floor_char_boundary(NAME_BYTES_MAX)];
    let id = id.trim_end_matches(['-', '.', '_']);
    if id.is_empty() { format!("api-{}", &hexadecimal(text)[..TAIL_DIGITS]) } else { id.to_owned() }
}

fn empty(target: &Target, id: ConnectionId, base_url: String) -> Connection {
    Connection {
        tenant: target.tenant.clone(),
        id,
        base_url,
        headers: BTreeMap::new(),
        credentials: Vec::new(),
        client_certificate: None,
        forward_headers: BTreeMap::new(),
        retries: None,
        circuit_breaker: None,
        connect_timeout_ms: None,
        headers_timeout_ms: None,
        total_timeout_ms: None,
        follow_redirects: false,
        tls_roots: Vec::new(),
        correlation: Correlation::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_made_of_any_text() {
        for (text, expected) in [
            ("pets", "pets"),
            ("Pet Store: v2!", "pet-store-v2"),
            ("--a--", "a"),
            (&"x".repeat(100), &"x".repeat(64)),
        ] {
            assert_eq!(id_of(text), expected);
        }
        for text in ["", "größe", "世界", "._-"] {
            assert!(ConnectionId::new(&id_of(text)).is_ok(), "{text}");
        }
        assert!(id_of("世界").starts_with("api-"));
    }
}
