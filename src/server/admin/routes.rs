//! The one table of what the admin plane answers. Pure.

use std::sync::LazyLock;

use crate::{
    catalog::Kind,
    http::{self, Method},
};

/// What can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Metrics,
    OpenApi,
    Status,
    Sessions,
    Keys,
    CreateKey,
    RevokeKey,
    Explain,
    Notify,
    Apply,
    Export,
    Reload,
    Changes,
    Change,
    Rollback,
    Upstreams,
    Upstream,
    ApproveDefinitions,
    RefuseDefinitions,
    RefreshUpstream,
    List(Kind),
    Create(Kind),
    Read(Kind),
    Replace(Kind),
    Patch(Kind),
    Delete(Kind),
    Publish,
    Unpublish,
}

/// A method of a path, and what it does. Segments in braces stand for names.
#[derive(Debug)]
pub(super) struct Route {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) operation: Operation,
}

/// What a path names.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// An operation, with the names in the path, decoded.
    Route {
        operation: Operation,
        names: Vec<String>,
    },
    /// Something that has other methods, listed as for `Allow`.
    OtherMethods(String),
    Nothing,
}

static ROUTES: LazyLock<Vec<Route>> = LazyLock::new(|| {
    use Method::{Delete, Get, Patch, Post, Put};
    let mut routes = Vec::new();
    let mut add = |method, path: &str, operation| {
        routes.push(Route { method, path: path.to_owned(), operation });
    };
    add(Get, "/status", Operation::Status);
    add(Get, "/metrics", Operation::Metrics);
    add(Get, "/openapi.json", Operation::OpenApi);
    add(Get, "/sessions", Operation::Sessions);
    add(Get, "/keys", Operation::Keys);
    add(Post, "/keys", Operation::CreateKey);
    add(Post, "/keys/{id}/revoke", Operation::RevokeKey);
    add(Get, "/explain", Operation::Explain);
    add(Post, "/notify", Operation::Notify);
    add(Post, "/apply", Operation::Apply);
    add(Get, "/export", Operation::Export);
    add(Post, "/reload", Operation::Reload);
    add(Get, "/changes", Operation::Changes);
    add(Get, "/changes/{version}", Operation::Change);
    add(Post, "/changes/{version}/rollback", Operation::Rollback);
    add(Get, "/upstreams", Operation::Upstreams);
    add(Get, "/upstreams/{tenant}/{toolset}", Operation::Upstream);
    add(Post, "/upstreams/{tenant}/{toolset}/approve", Operation::ApproveDefinitions);
    add(Post, "/upstreams/{tenant}/{toolset}/refuse", Operation::RefuseDefinitions);
    add(Post, "/upstreams/{tenant}/{toolset}/refresh", Operation::RefreshUpstream);
    for kind in Kind::ALL {
        let all = format!("/catalog/{}", plural(kind));
        add(Get, &all, Operation::List(kind));
        add(Post, &all, Operation::Create(kind));
        let one = format!("{all}/{}", names_of(kind));
        add(Get, &one, Operation::Read(kind));
        add(Put, &one, Operation::Replace(kind));
        add(Patch, &one, Operation::Patch(kind));
        add(Delete, &one, Operation::Delete(kind));
    }
    let tool = format!("/catalog/{}/{}", plural(Kind::Tool), names_of(Kind::Tool));
    add(Post, &format!("{tool}/publish"), Operation::Publish);
    add(Post, &format!("{tool}/unpublish"), Operation::Unpublish);
    routes
});

/// The segment of all entities of a kind.
pub(super) fn plural(kind: Kind) -> String {
    format!("{}s", kind.as_str())
}

/// The segments that name an entity: its key's fields.
fn names_of(kind: Kind) -> String {
    let names: Vec<String> = kind.key_fields().iter().map(|name| format!("{{{name}}}")).collect();
    names.join("/")
}

/// Every route, in the order in which they are described.
pub(super) fn all() -> &'static [Route] {
    &ROUTES
}

/// The paths there are, for who asked for another one.
pub(super) fn overview() -> String {
    let mut paths: Vec<&str> = Vec::new();
    for route in all() {
        if !route.path.contains('{') && !paths.contains(&&*route.path) {
            paths.push(&route.path);
        }
    }
    paths.join(", ")
}

/// Finds the operation of a path. A trailing slash names the same thing, `HEAD` asks like `GET`.
pub(super) fn find(method: Method, path: &str) -> Found {
    let method = if method == Method::Head { Method::Get } else { method };
    let path = path.strip_suffix('/').unwrap_or(path);
    let mut others: Vec<&str> = Vec::new();
    for route in all() {
        let Some(names) = matched(&route.path, path) else { continue };
        if route.method == method {
            return Found::Route { operation: route.operation, names };
        }
        others.push(name_of(route.method));
    }
    if others.is_empty() { Found::Nothing } else { Found::OtherMethods(others.join(", ")) }
}

/// The names in `path`, decoded, where it is one of the template's. A name is decoded after the path
/// is taken apart, so that an escaped `/` is never a separator; only the name of a tool may have one.
fn matched(template: &str, path: &str) -> Option<Vec<String>> {
    let mut names = Vec::new();
    let (mut wanted, mut given) = (template.split('/'), path.split('/'));
    loop {
        match (wanted.next(), given.next()) {
            (None, None) => return Some(names),
            (Some(wanted), Some(given)) if wanted.starts_with('{') => {
                let name = http::decode_segment(given)?;
                if name.is_empty() || (name.contains('/') && wanted != "{name}") {
                    return None;
                }
                names.push(name.into_owned());
            }
            (Some(wanted), Some(given)) if wanted == given => {}
            _ => return None,
        }
    }
}

/// A method as it is written.
pub(super) fn name_of(method: Method) -> &'static str {
    method.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_decoded_after_the_path_is_taken_apart() {
        let found = |method, path| find(method, path);
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(
            found(Method::Get, "/catalog/tools/acme/pets/list%20all%3F"),
            Found::Route {
                operation: Operation::Read(Kind::Tool),
                names: names(&["acme", "pets", "list all?"])
            }
        );
        assert_eq!(
            found(Method::Post, "/catalog/tools/a/b/c/publish/"),
            Found::Route { operation: Operation::Publish, names: names(&["a", "b", "c"]) }
        );
        assert_eq!(
            found(Method::Post, "/catalog/tools/a/b/c%2Fd/publish"),
            Found::Route { operation: Operation::Publish, names: names(&["a", "b", "c/d"]) }
        );
        for bad in [
            "/catalog/tools/a/b%2Fc/d",
            "/catalog/tools/a%2Fb/c",
            "/catalog/toolsets/a/b%2Fc",
            "/catalog/tools/a//c",
            "/catalog/tools/a/%zz/c",
            "/catalog/tools/a/%00/c",
            "/catalog/tools/a/b/c/d",
            "/catalog",
            "/catalog/things",
            "//status",
            "",
        ] {
            assert_eq!(found(Method::Get, bad), Found::Nothing, "{bad}");
        }
    }

    #[test]
    fn other_methods_are_named() {
        let allow = |allow: &str| Found::OtherMethods(allow.to_owned());
        assert_eq!(find(Method::Delete, "/status"), allow("GET"));
        assert_eq!(find(Method::Delete, "/keys"), allow("GET, POST"));
        assert_eq!(find(Method::Post, "/catalog/tenants/a"), allow("GET, PUT, PATCH, DELETE"));
        assert!(matches!(find(Method::Head, "/status"), Found::Route { .. }));
    }

    #[test]
    fn no_two_routes_are_alike() {
        let mut seen = std::collections::HashSet::new();
        for route in all() {
            assert!(seen.insert((name_of(route.method), &route.path)), "{route:?}");
        }
    }
}
