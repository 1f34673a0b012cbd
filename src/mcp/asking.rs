//! Questions to a client in the form of its revision, and its answers.

use super::{Ask, AskMethod, AskOutcome, Revision};
use crate::json::{self, Kind, Raw};
use crate::rpc::{ResultBody, RpcError, code, write_notification};

/// A question as a request, as revisions up to 2025-11-25 have it. `id` is the text of ours, which
/// also stands in for the id of an elicitation by URL where the server that asks has none.
pub fn question(id: &str, ask: &Ask, revision: Revision) -> Vec<u8> {
    let mut out = Vec::with_capacity(128 + ask.params.as_raw().text().len());
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    json::write_string(&mut out, id);
    out.extend_from_slice(b",\"method\":\"");
    out.extend_from_slice(ask.method.name().as_bytes());
    out.extend_from_slice(b"\",\"params\":");
    write_params(&mut out, ask, revision, Some(id));
    out.push(b'}');
    out
}

/// The result of a request that is to be sent again with answers (MCP 2026-07-28,
/// multi-round-trip requests).
pub fn input_required<'a>(
    asks: impl Iterator<Item = (&'a str, &'a Ask)>,
    state: Option<&str>,
) -> ResultBody {
    let mut out = b"{\"resultType\":\"input_required\"".to_vec();
    for (place, (key, ask)) in asks.enumerate() {
        out.extend_from_slice(if place == 0 { b",\"inputRequests\":{" } else { b"," });
        json::write_string(&mut out, key);
        out.extend_from_slice(b":{\"method\":\"");
        out.extend_from_slice(ask.method.name().as_bytes());
        out.extend_from_slice(b"\",\"params\":");
        write_params(&mut out, ask, Revision::V20260728, None);
        out.push(b'}');
    }
    if out.last() == Some(&b'}') {
        out.push(b'}');
    }
    if let Some(state) = state {
        out.extend_from_slice(b",\"requestState\":");
        json::write_string(&mut out, state);
    }
    out.push(b'}');
    ResultBody::Owned(out)
}

/// The parameters of a question, with what the revision knows of them. A task is never asked for:
/// no client is told that it may answer with one.
fn write_params(out: &mut Vec<u8>, ask: &Ask, revision: Revision, id: Option<&str>) {
    let is_elicitation = ask.method == AskMethod::Elicitation;
    let knows_modes = revision >= Revision::V20251125;
    let mut needs_id = false;
    out.push(b'{');
    let start = out.len();
    for (key, value) in ask.params.as_raw().entries() {
        match &*key {
            "_meta" | "task" => continue,
            "mode" if is_elicitation && !knows_modes => continue,
            "mode" if is_elicitation && value.as_str().as_deref() == Some("url") => {
                needs_id = !revision.is_modern();
            }
            "elicitationId" if is_elicitation => {
                if !revision.is_modern() {
                    needs_id = false;
                    write_member(out, start, "elicitationId", value.text());
                }
                continue;
            }
            _ => {}
        }
        write_member(out, start, &key, value.text());
    }
    let has_id = ask.params.as_raw().get("elicitationId").is_some();
    if let Some(id) = id.filter(|_| needs_id && !has_id) {
        let mut text = Vec::with_capacity(id.len() + 2);
        json::write_string(&mut text, id);
        write_member(out, start, "elicitationId", &String::from_utf8_lossy(&text));
    }
    out.push(b'}');
}

/// One member of an object that began at `start`.
pub(super) fn write_member(out: &mut Vec<u8>, start: usize, key: &str, value: &str) {
    if out.len() > start {
        out.push(b',');
    }
    json::write_string(out, key);
    out.push(b':');
    out.extend_from_slice(value.as_bytes());
}

/// Says that the answer to a question is not wanted any more.
pub fn cancel_question(id: &str, reason: &str) -> Vec<u8> {
    let mut params = b"{\"requestId\":".to_vec();
    json::write_string(&mut params, id);
    params.extend_from_slice(b",\"reason\":");
    json::write_string(&mut params, reason);
    params.push(b'}');
    let mut out = Vec::new();
    write_notification(&mut out, "notifications/cancelled", Some(&params));
    out
}

/// What a client's response to a question says.
pub fn answer(response: Result<Raw<'_>, Raw<'_>>) -> AskOutcome {
    match response {
        Ok(result) if result.kind() == Kind::Object => AskOutcome::Answer(result.to_owned()),
        Ok(_) => AskOutcome::Refused(RpcError::new(
            code::INTERNAL_ERROR,
            "the client answered with something that is no object",
        )),
        Err(error) => AskOutcome::Refused(refusal(error)),
    }
}

/// Longest message of a client's error that is passed on.
const MESSAGE_BYTES_MAX: usize = 4096;

fn refusal(error: Raw<'_>) -> RpcError {
    let (mut code, mut message, mut data) = (None, None, None);
    for (key, value) in error.entries() {
        match &*key {
            "code" => code = value.as_i64().and_then(|code| i32::try_from(code).ok()),
            "message" => message = value.as_str(),
            "data" => data = Some(value),
            _ => {}
        }
    }
    let mut message = message.map_or_else(String::new, std::borrow::Cow::into_owned);
    message.truncate(message.floor_char_boundary(MESSAGE_BYTES_MAX));
    let error = RpcError::new(code.unwrap_or(code::INTERNAL_ERROR), message);
    match data {
        Some(data) => error.with_data(data.text()),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::OwnedRaw;

    fn ask(method: AskMethod, params: &str) -> Ask {
        Ask { method, params: OwnedRaw::parse(params.as_bytes()).unwrap() }
    }

    fn asked(params: &str, revision: Revision) -> String {
        let payload = question("q-1", &ask(AskMethod::Elicitation, params), revision);
        let message = OwnedRaw::parse(&payload).unwrap();
        message.as_raw().get("params").unwrap().text().to_owned()
    }

    #[test]
    fn a_question_has_what_the_revision_knows() {
        let form = r#"{"mode":"form","message":"Sure?","_meta":{"a":1},"task":{}}"#;
        assert_eq!(asked(form, Revision::V20250618), r#"{"message":"Sure?"}"#);
        assert_eq!(asked(form, Revision::V20251125), r#"{"mode":"form","message":"Sure?"}"#);
        let url = r#"{"mode":"url","url":"https://a.example","elicitationId":"e"}"#;
        assert_eq!(asked(url, Revision::V20251125), url);
        let nameless = r#"{"mode":"url","url":"https://a.example"}"#;
        assert_eq!(asked(nameless, Revision::V20251125), url.replace("\"e\"", "\"q-1\""));
        let url = ask(AskMethod::Elicitation, url);
        let body = input_required([("k", &url)].into_iter(), Some("s\"t"));
        let expected = concat!(
            r#"{"resultType":"input_required","inputRequests":{"k":{"method":"elicitation/create","#,
            r#""params":{"mode":"url","url":"https://a.example"}}},"requestState":"s\"t"}"#
        );
        assert_eq!(String::from_utf8_lossy(&body.as_bytes()), expected);
        let both = [("a", &url), ("b", &url)];
        OwnedRaw::parse(&input_required(both.into_iter(), None).as_bytes()).unwrap();
        let none = input_required([].into_iter(), Some("s"));
        let expected = r#"{"resultType":"input_required","requestState":"s"}"#;
        assert_eq!(String::from_utf8_lossy(&none.as_bytes()), expected);
    }

    #[test]
    fn answers_are_objects_or_refusals() {
        let raw = |text: &str| OwnedRaw::parse(text.as_bytes()).unwrap();
        let result = raw(r#"{"action":"accept"}"#);
        assert!(matches!(answer(Ok(result.as_raw())), AskOutcome::Answer(got) if got == result));
        assert!(matches!(answer(Ok(raw("[1]").as_raw())), AskOutcome::Refused(_)));
        let error = raw(r#"{"code":-1,"message":"no","data":[2]}"#);
        let expected = RpcError::new(-1, "no").with_data("[2]");
        assert!(matches!(answer(Err(error.as_raw())), AskOutcome::Refused(got) if got == expected));
        let AskOutcome::Refused(odd) = answer(Err(raw(r#"{"code":1e99}"#).as_raw())) else {
            panic!()
        };
        assert_eq!((odd.code, &*odd.message), (code::INTERNAL_ERROR, ""));
    }
}
