//! Messages the server sends on its own.

use super::Revision;
use super::asking::write_member;
use crate::json::{self, Raw};
use crate::rpc;

/// A running request still runs. `progress` rises with the seconds; there is no total to tell.
/// `token` is the client's, as JSON text.
pub fn progress(token: &str, seconds: u64) -> Vec<u8> {
    let params = format!(
        r#"{{"progressToken":{token},"progress":{seconds},"message":"running for {seconds} s"}}"#
    );
    let mut payload = Vec::new();
    rpc::write_notification(&mut payload, "notifications/progress", Some(params.as_bytes()));
    payload
}

/// The same of a request that another server works on and may report on: a report of that server
/// must rise above what was said before, so this one rises by millionths.
pub fn progress_until_reported(token: &str, seconds: u64) -> Vec<u8> {
    let params = format!(
        r#"{{"progressToken":{token},"progress":{}.{:06},"message":"running for {seconds} s"}}"#,
        seconds / 1_000_000,
        seconds % 1_000_000
    );
    notification("notifications/progress", params.as_bytes())
}

/// What another server reports of a request, under the client's token (as JSON text), with what the
/// client's revision knows.
pub fn progress_report(token: &str, report: Raw<'_>, revision: Revision) -> Vec<u8> {
    let mut params = b"{\"progressToken\":".to_vec();
    params.extend_from_slice(token.as_bytes());
    for (key, value) in report.entries() {
        match &*key {
            "message" if revision == Revision::V20241105 => {}
            "progress" | "total" | "message" => write_member(&mut params, 0, &key, value.text()),
            _ => {}
        }
    }
    params.push(b'}');
    notification("notifications/progress", &params)
}

/// A log message of another server.
pub fn log_message(message: Raw<'_>) -> Vec<u8> {
    passed_on("notifications/message", message, &["level", "logger", "data"])
}

/// A user did what an elicitation by URL asked for.
pub fn elicitation_complete(told: Raw<'_>) -> Vec<u8> {
    passed_on("notifications/elicitation/complete", told, &["elicitationId"])
}

/// A resource is another one now. `subscription` is the id of the request that listens, as JSON
/// text, where the client's revision has such requests.
pub fn resource_updated(uri: &str, subscription: Option<&str>) -> Vec<u8> {
    let mut params = b"{\"uri\":".to_vec();
    json::write_string(&mut params, uri);
    if let Some(subscription) = subscription {
        params.extend_from_slice(b",\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":");
        params.extend_from_slice(subscription.as_bytes());
        params.push(b'}');
    }
    params.push(b'}');
    notification("notifications/resources/updated", &params)
}

fn passed_on(method: &str, told: Raw<'_>, members: &[&str]) -> Vec<u8> {
    let mut params = vec![b'{'];
    for (key, value) in told.entries().filter(|(key, _)| members.contains(&&**key)) {
        write_member(&mut params, 1, &key, value.text());
    }
    params.push(b'}');
    notification(method, &params)
}

fn notification(method: &str, params: &[u8]) -> Vec<u8> {
    let mut payload = Vec::with_capacity(64 + params.len());
    rpc::write_notification(&mut payload, method, Some(params));
    payload
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::OwnedRaw;

    fn params(payload: &[u8]) -> String {
        let message = OwnedRaw::parse(payload).unwrap();
        message.as_raw().get("params").unwrap().text().to_owned()
    }

    #[test]
    fn a_report_goes_under_the_clients_token_with_what_its_revision_knows() {
        let report = br#"{"progressToken":9,"progress":0.50,"total":1,"message":"m","_meta":{}}"#;
        let report = OwnedRaw::parse(report).unwrap();
        let report = |revision| params(&progress_report("\"t\"", report.as_raw(), revision));
        let old = r#"{"progressToken":"t","progress":0.50,"total":1}"#;
        assert_eq!(report(Revision::V20241105), old);
        let new = r#"{"progressToken":"t","progress":0.50,"total":1,"message":"m"}"#;
        assert_eq!(report(Revision::V20250326), new);
    }

    #[test]
    fn what_only_says_that_it_runs_leaves_room_for_reports() {
        let said = params(&progress_until_reported("1", 65));
        let expected = r#"{"progressToken":1,"progress":0.000065,"message":"running for 65 s"}"#;
        assert_eq!(said, expected);
    }

    #[test]
    fn what_is_passed_on_has_no_more_than_it_should() {
        let told = OwnedRaw::parse(br#"{"level":"info","data":{"a":1},"x":2,"_meta":{}}"#).unwrap();
        assert_eq!(params(&log_message(told.as_raw())), r#"{"level":"info","data":{"a":1}}"#);
        assert_eq!(params(&elicitation_complete(told.as_raw())), "{}");
        assert_eq!(params(&resource_updated("a:\"b", None)), r#"{"uri":"a:\"b"}"#);
        let tagged = r#"{"uri":"a:b","_meta":{"io.modelcontextprotocol/subscriptionId":7}}"#;
        assert_eq!(params(&resource_updated("a:b", Some("7"))), tagged);
    }
}
