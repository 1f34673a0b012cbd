//! From a request target to what it names. Pure; the table of the runtime plane's routes.

use std::borrow::Cow;

use crate::http;

/// What a path of the runtime plane names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route<'a> {
    /// `/runtime/{tenant}/{client}/…`, or `/mcp` where the credential names both.
    Endpoint(Endpoint<'a>),
    /// `/`: what this server is and where its endpoints are.
    Root,
    /// `/healthz`: the process is alive.
    Health,
    /// `/readyz`: the process can do its work.
    Readiness,
    /// Anything else.
    Unknown,
}

/// An endpoint of one client application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Endpoint<'a> {
    /// The tenant and client application named by the path; `None` for `/mcp`.
    pub(crate) named: Option<(Cow<'a, str>, Cow<'a, str>)>,
    /// The part of the path that says whose it is.
    pub(crate) scope: &'a str,
    pub(crate) transport: Transport<'a>,
}

/// The transports of one endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Transport<'a> {
    /// Streamable HTTP, `…/mcp`.
    Streamable,
    /// The event stream of HTTP+SSE (2024-11-05), `…/sse`.
    LegacyStream,
    /// Where clients of HTTP+SSE post, `…/messages`.
    LegacyMessages,
    /// Plain HTTP.
    Rest(Resource<'a>),
}

/// The resources of the REST facade.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Resource<'a> {
    /// All tools, `…/tools`.
    Tools,
    /// One of them, `…/tools/{tool}`.
    Tool(Cow<'a, str>),
    /// The facade itself, `…/openapi.json`.
    Description,
}

/// Finds the route of `path`. A trailing slash names the same resource.
pub(crate) fn find(path: &str) -> Route<'_> {
    let trimmed = path.strip_suffix('/').unwrap_or(path);
    match trimmed {
        "" => return Route::Root,
        "/healthz" => return Route::Health,
        "/readyz" => return Route::Readiness,
        "/mcp" => {
            let transport = Transport::Streamable;
            return Route::Endpoint(Endpoint { named: None, scope: trimmed, transport });
        }
        _ => {}
    }
    let Some(rest) = trimmed.strip_prefix("/runtime/") else { return Route::Unknown };
    let mut segments = rest.splitn(3, '/');
    let (Some(tenant), Some(client), Some(leaf)) =
        (segments.next(), segments.next(), segments.next())
    else {
        return Route::Unknown;
    };
    let scope = trimmed.strip_suffix(leaf).unwrap_or(trimmed);
    let transport = match leaf {
        "mcp" => Transport::Streamable,
        "sse" => Transport::LegacyStream,
        "messages" => Transport::LegacyMessages,
        "tools" => Transport::Rest(Resource::Tools),
        "openapi.json" => Transport::Rest(Resource::Description),
        _ => match leaf.strip_prefix("tools/").and_then(http::decode_segment) {
            Some(tool) if !leaf["tools/".len()..].contains('/') => {
                Transport::Rest(Resource::Tool(tool))
            }
            _ => return Route::Unknown,
        },
    };
    match (http::decode_segment(tenant), http::decode_segment(client)) {
        (Some(tenant), Some(client)) => {
            Route::Endpoint(Endpoint { named: Some((tenant, client)), scope, transport })
        }
        _ => Route::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(
        tenant: &'static str,
        client: &'static str,
        transport: Transport<'static>,
    ) -> Route<'static> {
        let named = Some((tenant.into(), client.into()));
        Route::Endpoint(Endpoint { named, scope: "/runtime/demo/desk/", transport })
    }

    #[test]
    fn every_route_is_found() {
        let table = [
            ("/", Route::Root),
            ("/healthz", Route::Health),
            ("/readyz", Route::Readiness),
            ("/readyz/", Route::Readiness),
            (
                "/mcp",
                Route::Endpoint(Endpoint {
                    named: None,
                    scope: "/mcp",
                    transport: Transport::Streamable,
                }),
            ),
            ("/runtime/demo/desk/mcp", endpoint("demo", "desk", Transport::Streamable)),
            ("/runtime/demo/desk/mcp/", endpoint("demo", "desk", Transport::Streamable)),
            ("/runtime/demo/desk/sse", endpoint("demo", "desk", Transport::LegacyStream)),
            ("/runtime/demo/desk/messages", endpoint("demo", "desk", Transport::LegacyMessages)),
            (
                "/runtime/demo/desk/tools",
                endpoint("demo", "desk", Transport::Rest(Resource::Tools)),
            ),
            (
                "/runtime/demo/desk/tools/a%20b",
                endpoint("demo", "desk", Transport::Rest(Resource::Tool("a b".into()))),
            ),
            (
                "/runtime/demo/desk/openapi.json",
                endpoint("demo", "desk", Transport::Rest(Resource::Description)),
            ),
        ];
        for (path, route) in table {
            assert_eq!(find(path), route, "{path}");
        }
    }

    #[test]
    fn names_are_decoded_and_the_scope_is_as_it_was_sent() {
        let Route::Endpoint(endpoint) = find("/runtime/d%65mo/desk/mcp") else { panic!() };
        assert_eq!(endpoint.named, Some(("demo".into(), "desk".into())));
        assert_eq!(endpoint.scope, "/runtime/d%65mo/desk/");
    }

    #[test]
    fn everything_else_is_unknown() {
        for path in [
            "/runtime",
            "/runtime/demo",
            "/runtime/demo/desk",
            "/runtime/demo/desk/other",
            "/runtime/demo/desk/mcp/more",
            "/runtime/demo/desk/tools/a/b",
            "/runtime/demo/desk/tools/%zz",
            "/runtime/demo/%zz/mcp",
            "/mcps",
            "//mcp",
            "/healthz/x",
        ] {
            assert_eq!(find(path), Route::Unknown, "{path}");
        }
    }
}
