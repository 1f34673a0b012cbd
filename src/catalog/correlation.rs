//! Which id of a call goes with its requests, and in which header.

use super::connection::{CREDENTIAL_HEADERS, HEADER_NAME_BYTES_MAX, is_reserved};
use super::credentials::CompiledCredentials;
use super::names::shortened;
use super::{Connection, Correlation, CorrelationStrategy};
use crate::http::is_field_name;

/// Where the id goes when nothing else is said.
const CORRELATION_HEADER: &str = "X-Correlation-Id";

/// The id of a call that goes with its requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CorrelationHeader {
    /// The header's name.
    pub name: Box<str>,
    /// The id is the runtime's own; else the client's, where it sent one.
    pub is_execution_id: bool,
}

/// The header of the correlation id, and its own faults. Nobody else may send what it sends.
pub(super) fn compile(
    connection: &Connection,
    credentials: &CompiledCredentials,
    faults: &mut Vec<String>,
) -> Option<CorrelationHeader> {
    let Correlation { strategy, header, traceparent } = &connection.correlation;
    let is_set = |name: &str| {
        credentials.sets_header(name)
            || connection.headers.keys().any(|other| other.eq_ignore_ascii_case(name))
    };
    if *traceparent && is_set("traceparent") {
        faults.push("correlation: `traceparent` is among the headers too".to_owned());
    }
    let name = header.as_deref().unwrap_or(CORRELATION_HEADER);
    let lower = name.to_ascii_lowercase();
    let shown = shortened(name);
    if name.len() > HEADER_NAME_BYTES_MAX || !is_field_name(name) {
        faults.push(format!("correlation.header: {shown:?} is not a header name"));
    } else if is_reserved(name) || lower == "traceparent" {
        faults.push(format!("correlation.header: `{shown}` is written by the runtime itself"));
    } else if CREDENTIAL_HEADERS.contains(&lower.as_str()) {
        faults.push(format!("correlation.header: `{shown}` is for credentials"));
    }
    let is_execution_id = match strategy {
        CorrelationStrategy::None => return None,
        CorrelationStrategy::ExternalId => false,
        CorrelationStrategy::ExecutionId => true,
    };
    if is_set(name) {
        faults.push(format!("correlation.header: `{shown}` is among the headers too"));
    }
    Some(CorrelationHeader { name: name.into(), is_execution_id })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn correlation_has_a_header_of_its_own() {
        let correlated = |strategy, header: Option<&str>, traceparent| {
            let lines = "tenant = \"acme\"\nid = \"api\"\nbase_url = \"https://h\"\n\
                         headers = { X-Team = \"a\", TraceParent = \"b\" }";
            let mut connection: Connection = toml::from_str(lines).unwrap();
            connection.correlation =
                Correlation { strategy, header: header.map(str::to_owned), traceparent };
            let mut faults = Vec::new();
            let made = compile(&connection, &CompiledCredentials::default(), &mut faults);
            if faults.is_empty() { Ok(made) } else { Err(faults) }
        };
        let none = correlated(CorrelationStrategy::None, None, false).unwrap();
        assert_eq!(none, None);
        let external = correlated(CorrelationStrategy::ExternalId, None, false).unwrap();
        let expected =
            CorrelationHeader { name: CORRELATION_HEADER.into(), is_execution_id: false };
        assert_eq!(external, Some(expected));
        let own = correlated(CorrelationStrategy::ExecutionId, Some("X-Call"), false).unwrap();
        assert!(own.is_some_and(|header| header.is_execution_id));
        for (header, traceparent, expected) in [
            (Some("x-team"), false, "is among the headers too"),
            (Some("a b"), false, "is not a header name"),
            (Some("host"), false, "is written by the runtime"),
            (Some("Traceparent"), false, "is written by the runtime"),
            (Some("Authorization"), false, "is for credentials"),
            (None, true, "`traceparent` is among the headers"),
        ] {
            let faults =
                correlated(CorrelationStrategy::ExecutionId, header, traceparent).unwrap_err();
            assert!(faults[0].contains(expected), "{faults:?}");
        }
    }
}
