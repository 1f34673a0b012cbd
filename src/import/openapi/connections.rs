//! The connections that the operations of a description need: one for each server and each set of
//! credentials there.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use url::Url;

use super::clean;
use super::security::{Demand, Scheme, Security};
use super::servers::Server;
use crate::catalog::{ApiKeyPlace, Credential, TokenEndpointAuthentication};
use crate::import::placeholders::{CLIENT_ID, USERNAME, from_environment, variable};
use crate::import::{DescribedConnection, Operation, Verdict};
use crate::mapping::{FieldRule, Location};

/// Most connections of one description.
const CONNECTIONS_MAX: usize = 100;
/// Most notes of one connection.
const NOTES_MAX: usize = 24;
/// Most scopes that one token is asked for with.
const SCOPES_MAX: usize = 200;

/// The connections found so far.
#[derive(Debug, Default)]
pub(super) struct Connections(Vec<Found>);

#[derive(Debug)]
struct Found {
    base_url: Option<String>,
    demands: Vec<Demand>,
    notes: Vec<String>,
}

impl Connections {
    /// The connection to a server with what an operation asks for there.
    ///
    /// # Errors
    /// When there would be too many.
    pub(super) fn of(&mut self, server: Server, security: &Security) -> Result<usize, String> {
        let wanted = || security.demands.iter().map(|demand| &demand.name);
        let is_same = |found: &Found| {
            let own = found.demands.iter().map(|demand| &demand.name);
            // Servers that cannot be reached are told apart by why.
            let is_there = server.base_url.is_some() || found.notes == server.notes;
            found.base_url == server.base_url && is_there && own.eq(wanted())
        };
        let position = self.0.iter().position(is_same);
        if position.is_none() && self.0.len() == CONNECTIONS_MAX {
            let reason = "servers and sets of credentials are described";
            return Err(format!("more than {CONNECTIONS_MAX} {reason}"));
        }
        let position = position.unwrap_or_else(|| {
            let demands = security.demands.clone();
            self.0.push(Found { base_url: server.base_url, demands, notes: Vec::new() });
            self.0.len() - 1
        });
        if let Some(found) = self.0.get_mut(position) {
            for (known, demand) in found.demands.iter_mut().zip(&security.demands) {
                for scope in &demand.scopes {
                    if known.scopes.len() < SCOPES_MAX && !known.scopes.contains(scope) {
                        known.scopes.push(scope.clone());
                    }
                }
            }
            for note in server.notes {
                if found.notes.len() < NOTES_MAX && !found.notes.contains(&note) {
                    found.notes.push(note);
                }
            }
        }
        Ok(position)
    }

    /// Names the connections and puts those first that most operations use. What asks for no
    /// credentials goes with those of its server that ask for some: one host, one connection.
    pub(super) fn finish(
        self,
        title: Option<&str>,
        operations: &mut [Operation],
    ) -> Vec<DescribedConnection> {
        self.join_open(operations);
        let mut uses = vec![0_usize; self.0.len()];
        for tool in operations.iter().filter_map(|operation| operation.verdict.tool()) {
            if let Some(count) = uses.get_mut(tool.connection) {
                *count += 1;
            }
        }
        let mut order: Vec<usize> = (0..self.0.len()).collect();
        order.sort_by_key(|index| Reverse(uses.get(*index).copied().unwrap_or_default()));
        order.retain(|index| uses.get(*index).is_some_and(|count| *count > 0));
        for operation in operations {
            if let Verdict::Imported(tool) | Verdict::Noted(tool, _) = &mut operation.verdict {
                let place = order.iter().position(|index| *index == tool.connection);
                tool.connection = place.unwrap_or_default();
            }
        }
        let mut found: Vec<Option<Found>> = self.0.into_iter().map(Some).collect();
        let ordered = order.iter().filter_map(|index| found.get_mut(*index)?.take());
        let ordered: Vec<Found> = ordered.collect();
        let title = title.unwrap_or_default();
        let names = names(&ordered, title);
        let named = ordered.into_iter().zip(names);
        named.map(|(found, name)| found.described(name, title)).collect()
    }

    /// Operations that ask for nothing, on the connection of their server that is used most; but for
    /// those that take as an argument what a credential there would set.
    fn join_open(&self, operations: &mut [Operation]) {
        let mut uses = vec![0_usize; self.0.len()];
        for tool in operations.iter().filter_map(|operation| operation.verdict.tool()) {
            if let Some(count) = uses.get_mut(tool.connection) {
                *count += 1;
            }
        }
        let target = |from: usize| -> Option<usize> {
            let open = self.0.get(from).filter(|found| found.demands.is_empty())?;
            let on_server =
                self.0.iter().enumerate().filter(|(_, other)| {
                    !other.demands.is_empty() && other.base_url == open.base_url
                });
            let used = |index: usize| uses.get(index).copied().unwrap_or_default();
            on_server.map(|(index, _)| index).max_by_key(|index| (used(*index), Reverse(*index)))
        };
        let targets: Vec<Option<usize>> = (0..self.0.len()).map(target).collect();
        for operation in operations {
            if let Verdict::Imported(tool) | Verdict::Noted(tool, _) = &mut operation.verdict
                && let Some(to) = targets.get(tool.connection).copied().flatten()
                && !self.0.get(to).is_some_and(|found| found.sets_one_of(&tool.fields))
            {
                tool.connection = to;
            }
        }
    }
}

impl Found {
    /// Whether a key of its credentials has the place of one of these fields.
    fn sets_one_of(&self, fields: &[FieldRule]) -> bool {
        self.demands.iter().any(|demand| {
            let Scheme::ApiKey { place, name } = &demand.scheme else { return false };
            let location = match place {
                ApiKeyPlace::Header => Location::Header,
                ApiKeyPlace::Query => Location::Query,
                ApiKeyPlace::Cookie => Location::Cookie,
            };
            fields.iter().any(|field| {
                field.location == location && field.source_field_name.eq_ignore_ascii_case(name)
            })
        })
    }
}

/// The title of the API is the first one's; what tells them apart, that of the others.
fn names(ordered: &[Found], title: &str) -> Vec<String> {
    let servers: BTreeSet<&Option<String>> = ordered.iter().map(|found| &found.base_url).collect();
    let mut taken = BTreeSet::new();
    let mut names = Vec::new();
    for (index, found) in ordered.iter().enumerate() {
        let mut parts: Vec<String> = Vec::new();
        if index == 0 && !title.is_empty() {
            parts.push(title.to_owned());
        }
        let url = found.base_url.as_deref().and_then(|url| Url::parse(url).ok());
        let host = url.as_ref().and_then(Url::host_str).unwrap_or_default();
        if (if index == 0 { parts.is_empty() } else { servers.len() > 1 }) && !host.is_empty() {
            parts.push(host.to_owned());
        }
        let is_beside =
            |other: &Found| !std::ptr::eq(other, found) && other.base_url == found.base_url;
        if index > 0 && ordered.iter().any(is_beside) {
            parts.extend(found.demands.iter().map(|demand| demand.name.clone()));
        }
        let mut name = clean::line(&parts.join(" "), 120);
        if !taken.insert(name.clone()) {
            let path = url.map(|url| url.path().trim_matches('/').to_owned()).unwrap_or_default();
            if !path.is_empty() {
                name = format!("{name} {path}");
            }
            if !taken.insert(name.clone()) {
                name = format!("{name} {}", index + 1);
            }
        }
        names.push(name);
    }
    names
}

impl Found {
    fn described(self, name: String, title: &str) -> DescribedConnection {
        let mut notes = self.notes;
        let mut credentials = Vec::new();
        for demand in self.demands {
            credentials.extend(credential(title, demand, &mut notes));
        }
        DescribedConnection { name, base_url: self.base_url, credentials, notes }
    }
}

/// The template of a credential. Its secret is a variable of the environment, named after the API
/// and the scheme: connections with one scheme have one secret.
fn credential(title: &str, demand: Demand, notes: &mut Vec<String>) -> Option<Credential> {
    let variable = variable(&format!("{title} {}", demand.name));
    let shown = clean::quoted(&demand.name);
    let secret = || from_environment(&variable);
    let mut need = |what: &str| notes.push(format!("{shown} needs {what}"));
    Some(match demand.scheme {
        Scheme::ApiKey { place, name } => {
            let place_word = match place {
                ApiKeyPlace::Header => "header",
                ApiKeyPlace::Query => "query parameter",
                ApiKeyPlace::Cookie => "cookie",
            };
            let name_shown = clean::quoted(&name);
            need(&format!(
                "a key in the variable {variable}; it is sent as {place_word} {name_shown}"
            ));
            Credential::ApiKey { place, name, value: secret() }
        }
        Scheme::Basic => {
            need(&format!(
                "`username` of its credential set, and a password in the variable {variable}"
            ));
            Credential::Basic { username: USERNAME.to_owned(), password: secret() }
        }
        Scheme::Bearer => {
            need(&format!("a token in the variable {variable}"));
            Credential::Bearer { token: secret() }
        }
        Scheme::Token(how) => {
            need(&format!("{how} in the variable {variable}; the runtime does not get one itself"));
            Credential::Bearer { token: secret() }
        }
        Scheme::ClientCredentials { token_url } => {
            need(&format!(
                "`client_id` of its credential set, and the client's secret in the variable {variable}"
            ));
            let mut scopes = demand.scopes;
            scopes.sort_unstable();
            Credential::OauthClientCredentials {
                token_url,
                client_id: CLIENT_ID.to_owned(),
                client_secret: secret(),
                scopes,
                parameters: std::collections::BTreeMap::new(),
                authentication: TokenEndpointAuthentication::default(),
            }
        }
        Scheme::Unusable(_) => return None,
    })
}
