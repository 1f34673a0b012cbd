//! Guards against web pages that call this server without its operator's leave: `Origin` and
//! `Host` (MCP Streamable HTTP, security warning; DNS rebinding).

use std::net::IpAddr;

use super::refusal::Refusal;
use crate::{
    http::{
        Known, Method, RequestView,
        origin::{self, HostPort, Origin},
    },
    settings::Settings,
};

/// What the operator says about names and origins, read once at start.
#[derive(Debug)]
pub(crate) struct Guard {
    /// Only loopback names may be asked for: nobody else can reach a loopback listener, so another
    /// name in `Host` is a page that had its own name resolve to this machine.
    loopback_only: bool,
    public_authority: Option<String>,
    allowed_origins: Vec<String>,
}

impl Guard {
    pub(crate) fn new(settings: &Settings) -> Self {
        let public_authority = settings
            .listen
            .public_url
            .as_deref()
            .and_then(|url| url::Url::parse(url).ok())
            .and_then(|url| {
                let host = url.host_str()?.to_owned();
                Some(url.port().map_or(host.clone(), |port| format!("{host}:{port}")))
            });
        Self {
            loopback_only: settings.listen.runtime.ip().is_loopback(),
            public_authority,
            allowed_origins: settings.runtime.allowed_origins.clone(),
        }
    }

    /// Refuses a name that is not this server's, on loopback listeners.
    pub(crate) fn check_host(&self, request: &RequestView<'_>) -> Result<(), Refusal> {
        if !self.loopback_only {
            return Ok(());
        }
        // HTTP/1.0 may come without Host; no browser speaks it.
        let Some(value) = request.header(Known::Host) else { return Ok(()) };
        let named = origin::host_and_port(value);
        let own = named.is_some_and(|host| host.is_loopback() || self.is_public(&host));
        if own { Ok(()) } else { Err(Refusal::ForeignHost) }
    }

    /// Whether the request comes from a page that may call: true with an allowed origin, false
    /// without any origin.
    pub(crate) fn check_origin<'a>(
        &self,
        request: &RequestView<'_>,
        mut tenant_origins: impl Iterator<Item = &'a Box<str>>,
    ) -> Result<bool, Refusal> {
        let Some(value) = request.header(Known::Origin) else { return Ok(false) };
        if request.repeated(Known::Origin) {
            return Err(Refusal::ForeignOrigin);
        }
        let allowed = Origin::parse(value).is_some_and(|origin| {
            self.allowed_origins.iter().any(|entry| origin.is_allowed_by(entry))
                || tenant_origins.any(|entry| origin.is_allowed_by(entry))
                || self.is_own(&origin, request)
        });
        if allowed { Ok(true) } else { Err(Refusal::ForeignOrigin) }
    }

    /// The server's own pages. A name counts only if it cannot be a rebound one: an address, a
    /// loopback name, or the configured public name.
    fn is_own(&self, origin: &Origin<'_>, request: &RequestView<'_>) -> bool {
        let host = request.header(Known::Host).and_then(origin::host_and_port);
        host.is_some_and(|host| {
            let bare = host.host.trim_start_matches('[').trim_end_matches(']');
            let unmistakable =
                host.is_loopback() || self.is_public(&host) || bare.parse::<IpAddr>().is_ok();
            unmistakable && origin.is_own(&host)
        })
    }

    fn is_public(&self, host: &HostPort<'_>) -> bool {
        let public = self.public_authority.as_deref();
        public
            .and_then(|public| origin::host_and_port(public.as_bytes()))
            .is_some_and(|public| public.is_same_host(host))
    }
}

/// Refuses what a web page could send to the admin address: another name than a loopback one,
/// any origin, a body that is not declared as JSON.
pub(crate) fn check_operator(request: &RequestView<'_>) -> Result<(), Refusal> {
    let host = request.header(Known::Host).and_then(origin::host_and_port);
    if !host.is_some_and(|host| host.is_loopback()) {
        return Err(Refusal::ForeignHost);
    }
    if request.header(Known::Origin).is_some() {
        return Err(Refusal::ForeignOrigin);
    }
    let declares_json = request.header(Known::ContentType).is_some_and(is_json);
    if request.method() == Method::Post && !declares_json {
        return Err(Refusal::UnsupportedMediaType);
    }
    Ok(())
}

/// A body that is declared as something else than JSON is refused; one that is not declared is
/// read.
pub(crate) fn check_content_type(request: &RequestView<'_>) -> Result<(), Refusal> {
    match request.header(Known::ContentType) {
        Some(value) if !is_json(value) => Err(Refusal::UnsupportedMediaType),
        _ => Ok(()),
    }
}

fn is_json(content_type: &[u8]) -> bool {
    let essence = content_type.split(|byte| *byte == b';').next().unwrap_or_default();
    essence.trim_ascii().eq_ignore_ascii_case(b"application/json")
}

/// HTTP/1.0 has no chunks to carry a stream with an end.
pub(crate) fn check_streams(request: &RequestView<'_>) -> Result<(), Refusal> {
    if request.is_http_10() { Err(Refusal::StreamsNeedHttp11) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::{Limits, RequestReader};

    fn judged(guard: &Guard, host: &str, origin: Option<&str>) -> Result<bool, &'static str> {
        let mut reader = RequestReader::new(Limits::default());
        let origin = origin.map(|o| format!("Origin: {o}\r\n")).unwrap_or_default();
        let head = format!("GET / HTTP/1.1\r\nHost: {host}\r\n{origin}\r\n");
        reader.buffer().extend_from_slice(head.as_bytes());
        reader.poll().unwrap();
        let request = reader.request();
        guard.check_host(&request).map_err(|refusal| refusal.reason())?;
        let tenant = ["https://tenant.example".into()];
        guard.check_origin(&request, tenant.iter()).map_err(|refusal| refusal.reason())
    }

    fn guard(listen: &str, public_url: Option<&str>) -> Guard {
        let mut settings = Settings::default();
        settings.listen.runtime = listen.parse().unwrap();
        settings.listen.public_url = public_url.map(str::to_owned);
        settings.runtime.allowed_origins = vec!["https://app.example".to_owned()];
        Guard::new(&settings)
    }

    #[test]
    fn loopback_listeners_answer_to_loopback_names_and_the_public_one() {
        let guard = guard("127.0.0.1:8420", Some("https://ringway.example/base"));
        for host in ["localhost", "127.0.0.1:8420", "[::1]:1", "ringway.example", "LOCALHOST:9"] {
            assert_eq!(judged(&guard, host, None), Ok(false), "{host}");
        }
        for host in ["evil.example", "localhost.evil.example", "10.0.0.7"] {
            assert_eq!(judged(&guard, host, None), Err("foreign_host"), "{host}");
        }
    }

    #[test]
    fn origins_are_own_listed_or_refused() {
        let guard = guard("0.0.0.0:8420", Some("https://ringway.example"));
        let table = [
            ("10.0.0.7:8420", "http://10.0.0.7:8420", Ok(true)),
            ("ringway.example", "https://ringway.example", Ok(true)),
            ("anything.example", "https://app.example", Ok(true)),
            ("anything.example", "https://tenant.example", Ok(true)),
            ("rebound.example:8420", "http://rebound.example:8420", Err("foreign_origin")),
            ("10.0.0.7:8420", "http://10.0.0.7:9999", Err("foreign_origin")),
            ("10.0.0.7:8420", "null", Err("foreign_origin")),
            ("10.0.0.7:8420", "https://app.example/path", Err("foreign_origin")),
        ];
        for (host, origin, expected) in table {
            assert_eq!(judged(&guard, host, Some(origin)), expected, "{host} {origin}");
        }
    }
}
