//! Work that an API has only accepted: what each of its answers says of it.
//!
//! Pure: an answer comes in, what to do next comes out.

use std::borrow::Cow;
use std::time::Duration;

use crate::catalog::{CompiledPolling, StateField};
use crate::json::{self, Kind, Raw};
use crate::mapping::{FieldPath, Segment};

const ACCEPTED: u16 = 202;
/// Shortest and longest wait between two looks, whatever the API asks for.
const WAIT: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(100)..=Duration::from_mins(10);

/// An answer, as far as it matters here.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look<'a> {
    pub(crate) status: u16,
    /// `Location`.
    pub(crate) location: Option<&'a str>,
    /// `Retry-After`, in seconds.
    pub(crate) retry_after: Option<Duration>,
    /// Decoded.
    pub(crate) body: &'a [u8],
}

/// What to do next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// This answer is the result.
    Done,
    /// The result is there.
    Fetch(String),
    /// Look again, there where a URL is given.
    Wait(Option<String>, Duration),
    /// The work failed; this is its state.
    Failed(String),
}

/// What an answer says of accepted work. `is_first` is the answer to the call itself.
pub(crate) fn next(rule: &CompiledPolling, look: &Look<'_>, is_first: bool) -> Next {
    if is_first && look.status != ACCEPTED {
        return Next::Done;
    }
    let wait = look.retry_after.unwrap_or(rule.interval).clamp(*WAIT.start(), *WAIT.end());
    let location = look.location.map(str::to_owned);
    if is_first {
        // Without a place to look there is nothing but this answer.
        return match location {
            Some(location) => Next::Wait(Some(location), wait),
            None => Next::Done,
        };
    }
    let document = json::guard(look.body).ok();
    let root = document.map(json::Checked::root);
    let text = |path: &FieldPath| root.and_then(|root| text_at(root, path));
    let done = || match rule.result_url.as_ref().and_then(&text) {
        Some(url) => Next::Fetch(url.into_owned()),
        None => Next::Done,
    };
    match (&rule.state, look.status) {
        // A refusal of the look is an answer of the API like any other.
        (_, 400..) => Next::Done,
        // It says where the result is (RFC 9110 section 15.4.4).
        (_, 300..400) => location.map_or(Next::Done, Next::Fetch),
        (None, ACCEPTED) => Next::Wait(location, wait),
        (None, _) => done(),
        (Some(StateField { field, done: is_done, failed }), _) => match text(field) {
            Some(state) if is_done.iter().any(|word| *word == state) => done(),
            Some(state) if failed.iter().any(|word| *word == state) => {
                Next::Failed(state.into_owned())
            }
            _ => Next::Wait(location, wait),
        },
    }
}

/// The single value at a path of members, as text.
fn text_at<'a>(root: Raw<'a>, path: &FieldPath) -> Option<Cow<'a, str>> {
    let found = path.segments().iter().try_fold(root, |value, segment| match segment {
        Segment::Name(name) if value.kind() == Kind::Object => value.get(name),
        _ => None,
    })?;
    match found.kind() {
        Kind::String => found.as_str(),
        Kind::Number | Kind::Bool => Some(Cow::Borrowed(found.text())),
        Kind::Null | Kind::Array | Kind::Object => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(state: bool, result_url: bool) -> CompiledPolling {
        let path = |text| FieldPath::parse(text).unwrap();
        CompiledPolling {
            interval: Duration::from_secs(2),
            state: state.then(|| StateField {
                field: path("job.state"),
                done: vec!["done".to_owned(), "3".to_owned()],
                failed: vec!["failed".to_owned()],
            }),
            result_url: result_url.then(|| path("url")),
        }
    }

    fn look(status: u16, location: Option<&'static str>, body: &'static str) -> Look<'static> {
        Look { status, location, retry_after: None, body: body.as_bytes() }
    }

    fn wait(location: Option<&str>) -> Next {
        Next::Wait(location.map(str::to_owned), Duration::from_secs(2))
    }

    #[test]
    fn the_first_answer_says_whether_work_was_accepted() {
        for rule in [rule(false, false), rule(true, true)] {
            let first = |look: &Look<'_>| next(&rule, look, true);
            assert_eq!(first(&look(200, Some("/x"), "{}")), Next::Done);
            assert_eq!(first(&look(500, None, "")), Next::Done);
            assert_eq!(first(&look(202, None, "{}")), Next::Done);
            assert_eq!(first(&look(202, Some("/jobs/1"), "")), wait(Some("/jobs/1")));
            let mut patient = look(202, Some("/jobs/1"), "");
            patient.retry_after = Some(Duration::ZERO);
            let least = Duration::from_millis(100);
            assert_eq!(first(&patient), Next::Wait(Some("/jobs/1".to_owned()), least));
        }
    }

    #[test]
    fn looks_go_by_their_status_where_no_field_tells() {
        let of = |look: &Look<'_>| next(&rule(false, true), look, false);
        assert_eq!(of(&look(202, None, "{}")), wait(None));
        assert_eq!(of(&look(202, Some("/other"), "{}")), wait(Some("/other")));
        assert_eq!(of(&look(200, None, "{\"url\":\"/r\"}")), Next::Fetch("/r".to_owned()));
        assert_eq!(of(&look(200, None, "{}")), Next::Done);
        assert_eq!(of(&look(303, Some("/r"), "")), Next::Fetch("/r".to_owned()));
        assert_eq!(of(&look(404, None, "gone")), Next::Done);
    }

    #[test]
    fn looks_go_by_the_field_where_one_tells() {
        let of = |look: &Look<'_>| next(&rule(true, false), look, false);
        for (body, expected) in [
            ("{\"job\":{\"state\":\"running\"}}", wait(None)),
            ("{\"job\":{\"state\":\"done\"}}", Next::Done),
            ("{\"job\":{\"state\":3}}", Next::Done),
            ("{\"job\":{\"state\":\"failed\"}}", Next::Failed("failed".to_owned())),
            ("{\"job\":[]}", wait(None)),
            ("not json", wait(None)),
        ] {
            assert_eq!(of(&look(200, None, body)), expected, "{body}");
            assert_eq!(of(&look(202, None, body)), expected, "{body}");
        }
        assert_eq!(of(&look(500, None, "{\"job\":{\"state\":\"done\"}}")), Next::Done);
    }
}
