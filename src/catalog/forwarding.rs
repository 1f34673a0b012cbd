//! Which of the client's headers go on to an API: none but those a connection names.

use super::Connection;
use super::connection::{CREDENTIAL_HEADERS, HEADER_NAME_BYTES_MAX, is_reserved};
use super::names::shortened;
use crate::http::{is_field_name, is_framing};

const FORWARDED_MAX: usize = 20;

/// What says who the client is, where it is, or that it is in a session: for this server alone.
const PERSONAL: [&str; 19] = [
    "cookie2",
    "set-cookie",
    "proxy-authenticate",
    "proxy-authentication-info",
    "www-authenticate",
    "authentication-info",
    "forwarded",
    "via",
    "x-real-ip",
    "x-client-ip",
    "x-cluster-client-ip",
    "client-ip",
    "true-client-ip",
    "cf-connecting-ip",
    "fastly-client-ip",
    "remote-user",
    "x-remote-user",
    "mcp-session-id",
    "last-event-id",
];

/// Families of such headers.
const PERSONAL_BEGINNINGS: [&str; 6] =
    ["x-forwarded-", "x-auth-", "x-authenticated-", "x-user", "x-ssl-", "x-client-cert"];

/// The headers a connection forwards: the client's names and those of the API.
pub(super) fn compile(
    connection: &Connection,
    is_set: &dyn Fn(&str) -> bool,
    faults: &mut Vec<String>,
) -> Vec<(Box<str>, Box<str>)> {
    let mut good: Vec<(Box<str>, Box<str>)> = Vec::new();
    if connection.forward_headers.len() > FORWARDED_MAX {
        faults.push(format!("forward_headers: more than {FORWARDED_MAX}"));
        return good;
    }
    for (from, to) in &connection.forward_headers {
        let fault = refusal(from).map(|why| (from, why)).or_else(|| {
            let why = refusal(to)?;
            Some((to, why))
        });
        if let Some((name, why)) = fault {
            faults.push(format!("forward_headers: {:?} {why}", shortened(name)));
        } else if is_set(to) {
            let to = shortened(to);
            faults.push(format!("forward_headers: `{to}` is set by the connection already"));
        } else if good.iter().any(|(other, _)| other.eq_ignore_ascii_case(from)) {
            faults.push(format!("forward_headers: `{}` stands there twice", shortened(from)));
        } else if good.iter().any(|(_, other)| other.eq_ignore_ascii_case(to)) {
            faults.push(format!("forward_headers: two headers become `{}`", shortened(to)));
        } else {
            good.push((from.as_str().into(), to.as_str().into()));
        }
    }
    good
}

/// Why a header of this name is not forwarded.
fn refusal(name: &str) -> Option<&'static str> {
    let lower = name.to_ascii_lowercase();
    let lower = lower.as_str();
    if name.len() > HEADER_NAME_BYTES_MAX || !is_field_name(name) {
        Some("is not a header name")
    } else if is_framing(name) {
        Some("belongs to one connection and is not forwarded")
    } else if is_reserved(name) || lower == "content-length" {
        Some("is written by the runtime itself")
    } else if CREDENTIAL_HEADERS.contains(&lower) {
        Some("carries credentials and is not forwarded: use `credentials`")
    } else if PERSONAL.contains(&lower)
        || PERSONAL_BEGINNINGS.iter().any(|beginning| lower.starts_with(beginning))
    {
        Some("says who the client is and is not forwarded")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_personal_or_of_one_hop_is_refused_under_either_name() {
        for name in [
            "Authorization",
            "Proxy-Authorization",
            "Cookie",
            "Set-Cookie",
            "X-Api-Key",
            "Host",
            "Connection",
            "Keep-Alive",
            "TE",
            "Trailer",
            "Transfer-Encoding",
            "Upgrade",
            "Proxy-Authenticate",
            "Proxy-Connection",
            "Content-Length",
            "Content-Type",
            "Accept-Encoding",
            "Forwarded",
            "X-Forwarded-For",
            "x-forwarded-user",
            "X-Real-IP",
            "Remote-User",
            "X-Auth-Request-Email",
            "Mcp-Session-Id",
            "a b",
            "",
        ] {
            assert!(refusal(name).is_some(), "{name}");
        }
        for name in ["X-Request-Id", "Accept-Language", "X-Tenant", "If-Match", "Prefer"] {
            assert!(refusal(name).is_none(), "{name}");
        }
    }
}
