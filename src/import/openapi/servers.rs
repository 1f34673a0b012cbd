//! Where the operations of a description are: servers of the operation, of its path, of the
//! document, relative to the document's own URL.

use serde_json::Value;
use url::Url;

use super::clean;
use super::library::Spot;
use super::{Reader, Version, items, members, texts};

/// Most servers of one list that are looked at.
const SERVERS_MAX: usize = 50;
/// Most values of a variable that are looked at, and that are told.
const VALUES_MAX: usize = 1_000;
const VALUES_TOLD_MAX: usize = 20;

/// Where an operation is reached.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Server {
    /// `None` where the description does not say it.
    pub(super) base_url: Option<String>,
    pub(super) notes: Vec<String>,
}

impl<'a> Reader<'a> {
    /// The server of an operation; `holders` are what may have servers of its own, the nearest first.
    pub(super) fn server(&self, holders: &[Spot<'a>]) -> Server {
        if let Some(url) = &self.options.base_url {
            let base_url = Some(url.trim_end_matches('/').to_owned());
            return Server { base_url, notes: Vec::new() };
        }
        if self.version == Version::V20 {
            return self.swagger_server(holders);
        }
        let listed = holders.iter().chain([&self.root]).find_map(|holder| {
            let list = self.index.member(*holder, "servers")?;
            list.value.as_array().is_some_and(|list| !list.is_empty()).then_some(list)
        });
        let mut server = Server::default();
        let Some(listed) = listed else {
            server.base_url = self.absolute(self.root, "/", &mut server.notes);
            return server;
        };
        let mut servers = Vec::new();
        let mut unknown = Vec::new();
        for item in items(Some(listed.value)).take(SERVERS_MAX) {
            let spot = self.index.below(listed, item);
            let mut notes = Vec::new();
            match substituted(spot, &mut notes) {
                Some(url) => servers.push((spot, url, notes)),
                None => unknown.extend(notes),
            }
        }
        let is_reached = |url: &str| !url.starts_with("ws:") && !url.starts_with("wss:");
        servers.retain(|(_, url, _)| is_reached(url));
        let wished = self.options.server.as_deref();
        let position = wished.and_then(|wished| picked(&servers, wished));
        if let (None, Some(wished)) = (position, wished) {
            let all = items(Some(listed.value)).take(SERVERS_MAX);
            let mut spots = all.map(|item| self.index.below(listed, item));
            if let Some(spot) = spots.find(|spot| can_be(*spot, wished)) {
                server.base_url = self.absolute(spot, wished, &mut server.notes);
                return server;
            }
        }
        let Some((spot, url, notes)) = servers.get(position.unwrap_or(0)) else {
            server.notes = unknown;
            if !server.notes.is_empty() {
                return server;
            }
            let listed = items(Some(listed.value)).filter_map(|item| item.get("url")?.as_str());
            for url in listed.take(VALUES_TOLD_MAX) {
                let url = clean::quoted(url);
                server.notes.push(format!("the server {url} is no URL of HTTP; say where it is"));
            }
            return server;
        };
        server.notes.clone_from(notes);
        server.base_url = self.absolute(*spot, url, &mut server.notes);
        let others = servers.iter().enumerate();
        let others = others.filter(|(index, _)| *index != position.unwrap_or(0));
        let others: Vec<String> =
            others.map(|(_, (_, url, _))| clean::quoted(url)).take(8).collect();
        if !others.is_empty() {
            server.notes.push(format!("other servers are described: {}", others.join(", ")));
        }
        server
    }

    /// An absolute URL that a connection takes; relative ones belong to the document's own URL.
    fn absolute(&self, spot: Spot<'a>, url: &str, notes: &mut Vec<String>) -> Option<String> {
        let joined = self.index.base(spot).and_then(|base| base.join(url).ok());
        let Some(mut joined) = joined else {
            notes
                .insert(0, format!("the server {} is no URL; say where it is", clean::quoted(url)));
            return None;
        };
        if !matches!(joined.scheme(), "http" | "https") {
            let is_whole = Url::parse(url).is_ok();
            let url = clean::quoted(url);
            if is_whole {
                notes.insert(0, format!("the server {url} is no URL of HTTP; say where it is"));
                return None;
            }
            notes.insert(0, format!("the server {url} is relative to where the description came from, which is no URL; say where it is"));
            return None;
        }
        if joined.query().is_some() || joined.fragment().is_some() {
            notes.push("the server's URL has a query, which is left out".to_owned());
            joined.set_query(None);
            joined.set_fragment(None);
        }
        if !joined.username().is_empty() || joined.password().is_some() {
            notes.push("the server's URL has a user, who is left out".to_owned());
            // Only URLs without a host refuse it.
            let _ = (joined.set_username(""), joined.set_password(None));
        }
        Some(joined.as_str().trim_end_matches('/').to_owned())
    }

    /// `schemes`, `host` and `basePath`; what is absent is that of the document's URL.
    fn swagger_server(&self, holders: &[Spot<'a>]) -> Server {
        let mut server = Server::default();
        let own = self.index.base(self.root).filter(|base| base.scheme() != "bundle");
        let schemes = holders.first().and_then(|operation| operation.get("schemes"));
        let schemes: Vec<&str> = texts(schemes.or_else(|| self.root.get("schemes")))
            .filter(|scheme| matches!(*scheme, "http" | "https"))
            .collect();
        let scheme = match (schemes.contains(&"https"), schemes.first()) {
            (false, Some(only)) => only,
            (false, None) => own.map_or("https", Url::scheme),
            (true, _) => "https",
        };
        let host = self
            .root
            .text("host")
            .map(|host| host.trim().trim_start_matches("https://").trim_start_matches("http://"));
        let host = host.filter(|host| !host.is_empty()).map(ToOwned::to_owned).or_else(|| {
            let own = own?;
            let port = own.port().map(|port| format!(":{port}")).unwrap_or_default();
            Some(format!("{}{port}", own.host_str()?))
        });
        let Some(host) = host else {
            let note = "the description says no `host` and came from no URL; say where it is";
            server.notes.push(note.to_owned());
            return server;
        };
        let path = self.root.text("basePath").unwrap_or_default().trim();
        let url =
            format!("{scheme}://{}/{}", host.trim_end_matches('/'), path.trim_start_matches('/'));
        server.base_url = self.absolute(self.root, &url, &mut server.notes);
        server
    }
}

/// A server's URL with its variables replaced by what they are by default.
fn substituted(server: Spot<'_>, notes: &mut Vec<String>) -> Option<String> {
    let mut rest = server.text("url")?.trim();
    let mut url = String::with_capacity(rest.len());
    let variables = server.get("variables");
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}')?;
        url.push_str(before);
        let variable = members(variables).find(|(known, _)| *known == name);
        let variable = variable.map(|(_, variable)| variable);
        let known = values(variable);
        let default = variable.and_then(|variable| variable.get("default")).and_then(plain);
        let Some(value) = default.or_else(|| known.first().cloned()) else {
            let name = clean::quoted(name);
            let shown = clean::quoted(server.text("url").unwrap_or_default());
            notes.push(format!(
                "the variable {name} of the server {shown} has no value; say where it is"
            ));
            return None;
        };
        let others = known.iter().filter(|other| **other != value);
        let mut others: Vec<String> = others.map(|other| clean::quoted(other)).collect();
        let more = others.len().saturating_sub(VALUES_TOLD_MAX);
        others.truncate(VALUES_TOLD_MAX);
        if more > 0 {
            others.push(format!("{more} more"));
        }
        let others = if others.is_empty() {
            String::new()
        } else {
            format!("; it may be {}", others.join(", "))
        };
        let (name, shown) = (clean::quoted(name), clean::quoted(&value));
        notes.push(format!("the variable {name} of the server is taken as {shown}{others}"));
        url.push_str(&value);
        rest = after;
    }
    url.push_str(rest);
    Some(url)
}

/// The values that a variable may have: those listed, else the one it has by default.
fn values(variable: Option<&Value>) -> Vec<String> {
    let listed = variable.and_then(|variable| variable.get("enum"));
    let listed: Vec<String> = items(listed).filter_map(plain).take(VALUES_MAX).collect();
    if !listed.is_empty() {
        return listed;
    }
    let default = variable.and_then(|variable| variable.get("default"));
    default.and_then(plain).into_iter().collect()
}

/// A value as it stands in a URL.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    }
}

/// Whether a server's URL is this one with values that its variables may have.
fn can_be(server: Spot<'_>, wished: &str) -> bool {
    let wished = wished.trim_end_matches('/');
    let mut rest = server.text("url").unwrap_or_default().trim().trim_end_matches('/');
    let variables = server.get("variables");
    // How much of it has been found, in every way that is still possible.
    let mut found: Vec<usize> = vec![0];
    while !rest.is_empty() && !found.is_empty() {
        let (plain, after) = rest.split_once('{').unwrap_or((rest, ""));
        let is_last = plain.len() == rest.len();
        found.retain(|at| wished[*at..].starts_with(plain));
        for at in &mut found {
            *at += plain.len();
        }
        if is_last {
            break;
        }
        let Some((name, after)) = after.split_once('}') else { return false };
        rest = after;
        let variable = members(variables).find(|(known, _)| *known == name);
        let values = values(variable.map(|(_, variable)| variable));
        let ways = found.iter().flat_map(|at| {
            let fitting = values.iter().filter(|value| wished[*at..].starts_with(value.as_str()));
            fitting.map(move |value| at + value.len())
        });
        found = ways.collect();
        found.sort_unstable();
        found.dedup();
    }
    found.contains(&wished.len())
}

/// By place, URL or description.
fn picked(servers: &[(Spot<'_>, String, Vec<String>)], wished: &str) -> Option<usize> {
    if let Ok(place) = wished.parse::<usize>() {
        return (place < servers.len()).then_some(place);
    }
    let is_wished = |(spot, url, _): &(Spot<'_>, String, Vec<String>)| {
        let description = spot.text("description").unwrap_or_default();
        url == wished
            || spot.text("url") == Some(wished)
            || url.trim_end_matches('/') == wished.trim_end_matches('/')
            || description.eq_ignore_ascii_case(wished)
            || spot.text("name").is_some_and(|name| name.eq_ignore_ascii_case(wished))
    };
    servers.iter().position(is_wished)
}
