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
    pub(crate) transport: Transport,
}

/// The transports of one endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    /// Streamable HTTP, `…/mcp`.
    Streamable,
    /// The event stream of HTTP+SSE (2024-11-05), `…/sse`.
    LegacyStream,
    /// Where clients of HTTP+SSE post, `…/messages`.
    LegacyMessages,
}

/// Finds the route of `path`. A trailing slash names the same resource.
pub(crate) fn find(path: &str) -> Route<'_> {
    let trimmed = path.strip_suffix('/').unwrap_or(path);
    match trimmed {
        "" => return Route::Root,
        "/healthz" => return Route::Health,
        "/readyz" => return Route::Readiness,
        "/mcp" => {
            return Route::Endpoint(Endpoint { named: None, transport: Transport::Streamable });
        }
        _ => {}
    }
    let Some(rest) = trimmed.strip_prefix("/runtime/") else { return Route::Unknown };
    let mut segments = rest.split('/');
    let (Some(tenant), Some(client), Some(leaf), None) =
        (segments.next(), segments.next(), segments.next(), segments.next())
    else {
        return Route::Unknown;
    };
    let transport = match leaf {
        "mcp" => Transport::Streamable,
        "sse" => Transport::LegacyStream,
        "messages" => Transport::LegacyMessages,
        _ => return Route::Unknown,
    };
    match (http::decode_segment(tenant), http::decode_segment(client)) {
        (Some(tenant), Some(client)) => {
            Route::Endpoint(Endpoint { named: Some((tenant, client)), transport })
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
        transport: Transport,
    ) -> Route<'static> {
        Route::Endpoint(Endpoint { named: Some((tenant.into(), client.into())), transport })
    }

    #[test]
    fn every_route_is_found() {
        let table = [
            ("/", Route::Root),
            ("/healthz", Route::Health),
            ("/readyz", Route::Readiness),
            ("/readyz/", Route::Readiness),
            ("/mcp", Route::Endpoint(Endpoint { named: None, transport: Transport::Streamable })),
            ("/runtime/demo/desk/mcp", endpoint("demo", "desk", Transport::Streamable)),
            ("/runtime/demo/desk/mcp/", endpoint("demo", "desk", Transport::Streamable)),
            ("/runtime/demo/desk/sse", endpoint("demo", "desk", Transport::LegacyStream)),
            ("/runtime/demo/desk/messages", endpoint("demo", "desk", Transport::LegacyMessages)),
            ("/runtime/d%65mo/desk/mcp", endpoint("demo", "desk", Transport::Streamable)),
        ];
        for (path, route) in table {
            assert_eq!(find(path), route, "{path}");
        }
    }

    #[test]
    fn everything_else_is_unknown() {
        for path in [
            "/runtime",
            "/runtime/demo",
            "/runtime/demo/desk",
            "/runtime/demo/desk/other",
            "/runtime/demo/desk/mcp/more",
            "/runtime/demo/%zz/mcp",
            "/mcps",
            "//mcp",
            "/healthz/x",
        ] {
            assert_eq!(find(path), Route::Unknown, "{path}");
        }
    }
}
