//! Which connection that is there a place of a description has.
//!
//! A place is a server with what it asks for. A connection of the toolset is a place's
//! - where it has the place's server and was made for the place's credentials, or
//! - where tools of the place go to it as an import left them: the operator may have changed it
//!   since, or the description the place.
//!
//! Whatever fits none gets a connection of its own, so nothing new is sent to a server, or with
//! credentials, that the description does not say.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::connections::Present;
use super::parts::digest;
use super::{DescribedConnection, Description, Target};
use crate::catalog::{Connection, ConnectionId, Credential, SecretReference, SecretSource, Tool};

/// How much a connection's credentials are those of a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Likeness {
    /// Others.
    Other,
    /// They go to the same place in the same way; their secrets are where the operator put them.
    Alike,
    /// Those that an import would make.
    Same,
}

/// The place that what the operator says is about: the first that the description knows the server
/// of, or the very first.
pub(super) fn first_place(description: &Description) -> usize {
    let known = description.connections.iter().position(|place| place.base_url.is_some());
    known.unwrap_or_default()
}

/// The connections that are there, by the places they belong to. No two places have one.
pub(super) fn bindings(
    description: &Description,
    target: &Target,
    present: &Present<'_>,
) -> Vec<Option<ConnectionId>> {
    let own = present.toolset.and_then(|toolset| toolset.connection.clone());
    let users = users(description, own.as_ref(), present);
    let is_imported = present.tools.iter().any(|tool| tool.imported.is_some());
    let of_tools = present.tools.iter().filter_map(|tool| tool.connection.clone());
    let said = target.connection.clone();
    let ids: BTreeSet<ConnectionId> = own.iter().cloned().chain(of_tools).chain(said).collect();
    let mut fitting = Vec::new();
    for id in ids {
        let Some(there) = present.connection(target, id.as_str()) else { continue };
        let is_own = own.as_ref() == Some(&id);
        for (place, described) in description.connections.iter().enumerate() {
            let users = users.get(&(id.clone(), place)).copied().unwrap_or_default();
            let is_there = is_server_of(there, place, description, target);
            let mut likeness = likeness(&there.credentials, &described.credentials);
            // Prepared for the import: a description that asks for nothing knows less than he does.
            if is_own && !is_imported && described.credentials.is_empty() {
                likeness = likeness.max(Likeness::Alike);
            }
            let is_same = is_there && likeness == Likeness::Same;
            if users > 0 || (is_there && likeness > Likeness::Other) {
                fitting.push((is_same, users, is_own, Reverse(place), id.clone()));
            }
        }
    }
    fitting.sort_by(|one, other| other.cmp(one));
    let mut bound: Vec<Option<ConnectionId>> = vec![None; description.connections.len()];
    for (.., Reverse(place), id) in fitting {
        let is_given = bound.iter().flatten().any(|given| *given == id);
        if let Some(free) = bound.get_mut(place).filter(|free| free.is_none() && !is_given) {
            *free = Some(id);
        }
    }
    if let Some(said) =
        target.connection.as_ref().filter(|said| !bound.contains(&Some((*said).clone())))
        && let Some(first) = bound.get_mut(first_place(description))
    {
        *first = Some(said.clone());
    }
    bound
}

/// How many tools of each place go to each connection. Those that the operator sent elsewhere say
/// nothing of the others.
fn users(
    description: &Description,
    own: Option<&ConnectionId>,
    present: &Present<'_>,
) -> BTreeMap<(ConnectionId, usize), usize> {
    let places = description.operations.iter();
    let places: BTreeMap<&str, usize> =
        places.filter_map(|one| Some((one.key.as_str(), one.verdict.tool()?.connection))).collect();
    let mut users = BTreeMap::new();
    for tool in &present.tools {
        if let Some(operation) = operation_where_it_was_sent(tool)
            && let Some(place) = places.get(operation)
            && let Some(id) = tool.connection.as_ref().or(own)
        {
            *users.entry((id.clone(), *place)).or_default() += 1;
        }
    }
    users
}

/// The operation of a tool whose connection is the one that an import gave it.
fn operation_where_it_was_sent(tool: &Tool) -> Option<&str> {
    let imported = tool.imported.as_ref()?;
    let said = tool.connection.as_ref().map(|id| digest(&Value::from(id.as_str())));
    (said.as_ref() == imported.digests.get("connection")).then_some(imported.operation.as_str())
}

/// Whether a connection leads where a place is. Where no place is known, the operator's is all of
/// them.
fn is_server_of(
    there: &Connection,
    place: usize,
    description: &Description,
    target: &Target,
) -> bool {
    if target.base_url.is_some() && place == first_place(description) {
        return true;
    }
    let url = |place: &DescribedConnection| place.base_url.clone();
    match description.connections.get(place).and_then(url) {
        Some(url) => is_same_server(&url, &there.base_url),
        None => description.connections.iter().all(|place| place.base_url.is_none()),
    }
}

/// Whether two base URLs are one.
pub(super) fn is_same_server(one: &str, other: &str) -> bool {
    one.trim_end_matches('/') == other.trim_end_matches('/')
}

/// Whether a connection's credentials are those of a place. User names, scopes and parameters are
/// the operator's to fill in.
pub(super) fn likeness(there: &[Credential], described: &[Credential]) -> Likeness {
    if there.len() != described.len() {
        return Likeness::Other;
    }
    let pairs = there.iter().zip(described);
    pairs.map(|(there, described)| likeness_of(there, described)).min().unwrap_or(Likeness::Same)
}

fn likeness_of(there: &Credential, described: &Credential) -> Likeness {
    use Credential::{ApiKey, OauthClientCredentials, PassThrough};
    let is_alike = match (there, described) {
        (
            ApiKey { place, name, .. },
            ApiKey { place: described_place, name: described_name, .. },
        ) => place == described_place && name.eq_ignore_ascii_case(described_name),
        (
            OauthClientCredentials { token_url, .. },
            OauthClientCredentials { token_url: described_url, .. },
        ) => token_url == described_url,
        (PassThrough { audience }, PassThrough { audience: described_audience }) => {
            audience == described_audience
        }
        _ => there.kind() == described.kind(),
    };
    if !is_alike {
        return Likeness::Other;
    }
    match (variable_of(there), variable_of(described)) {
        // The variable is named after the scheme: another one is another scheme's secret.
        (Some(there), Some(described)) if there != described => Likeness::Other,
        (None, Some(_)) => Likeness::Alike,
        _ => Likeness::Same,
    }
}

/// The variable of the environment that a credential's secret is in.
fn variable_of(credential: &Credential) -> Option<&str> {
    match credential.secret()?.1 {
        SecretSource::Elsewhere(SecretReference::Environment(name)) => Some(name),
        _ => None,
    }
}

#[cfg(test)]
#[path = "bindings_tests.rs"]
mod tests;
