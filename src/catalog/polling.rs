//! How the result of accepted work is come by, made ready.

use std::time::Duration;

use super::Polling;
use crate::mapping::{FieldPath, Segment};

/// Bounds of the interval, in milliseconds.
const INTERVAL_MS: std::ops::RangeInclusive<u64> = 100..=600_000;
const STATES_MAX: usize = 100;

/// How the result of accepted work is come by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompiledPolling {
    /// Between two looks, where the API does not say.
    pub interval: Duration,
    /// Where an answer tells how the work is, and with which words; `None` where the status does.
    pub state: Option<StateField>,
    /// Where the last look's answer has the URL of the result.
    pub result_url: Option<FieldPath>,
}

/// The field of an answer that tells how the work is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateField {
    /// Names of members from the root down.
    pub field: FieldPath,
    /// What it holds when the work is done.
    pub done: Vec<String>,
    /// What it holds when it failed.
    pub failed: Vec<String>,
}

impl CompiledPolling {
    /// Reads the rule; what is wrong with it goes to `faults`.
    pub(super) fn compile(polling: &Polling, faults: &mut Vec<String>) -> Option<Self> {
        let Polling { interval_ms, state_field, done, failed, result_url_field } = polling;
        let before = faults.len();
        let mut fault = |text: String| faults.push(format!("polling.{text}"));
        if !INTERVAL_MS.contains(interval_ms) {
            let (least, most) = (INTERVAL_MS.start(), INTERVAL_MS.end());
            fault(format!("interval_ms: expected {least} to {most}"));
        }
        let mut path = |key: &str, text: &Option<String>| {
            let path = FieldPath::parse(text.as_deref()?).map_err(|error| error.to_string());
            let path = path.and_then(|path| match path.segments() {
                names if names.iter().all(|segment| matches!(segment, Segment::Name(_))) => {
                    Ok(path)
                }
                _ => Err("it has to lead through objects, without [*]".to_owned()),
            });
            path.map_err(|problem| fault(format!("{key}: {problem}"))).ok()
        };
        let field = path("state_field", state_field);
        let result_url = path("result_url_field", result_url_field);
        match state_field {
            Some(_) if done.is_empty() => {
                fault("done: it has to say what state_field holds when the work is done".into());
            }
            None if !done.is_empty() || !failed.is_empty() => {
                fault("state_field: it is missing, so done and failed mean nothing".into());
            }
            _ => {}
        }
        if done.len() + failed.len() > STATES_MAX {
            fault(format!("done, failed: more than {STATES_MAX} together"));
        }
        if let Some(both) = done.iter().find(|state| failed.contains(state)) {
            fault(format!("done, failed: both have {both:?}"));
        }
        let state =
            field.map(|field| StateField { field, done: done.clone(), failed: failed.clone() });
        let interval = Duration::from_millis(*interval_ms);
        (faults.len() == before).then_some(Self { interval, state, result_url })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compiled(toml: &str) -> Result<CompiledPolling, Vec<String>> {
        let mut faults = Vec::new();
        let polling = toml::from_str(toml).unwrap();
        CompiledPolling::compile(&polling, &mut faults).ok_or(faults)
    }

    #[test]
    fn rules_are_read_or_told_to_be_wrong() {
        let plain = compiled("interval_ms = 500").unwrap();
        assert_eq!((plain.interval.as_millis(), plain.state), (500, None));
        let named = compiled(
            "interval_ms = 500\nstate_field = \"job.state\"\ndone = [\"ok\"]\nfailed = [\"bad\"]\n\
             result_url_field = \"job.url\"",
        );
        assert_eq!(named.unwrap().result_url.unwrap().to_string(), "job.url");
        for (toml, expected) in [
            ("interval_ms = 1", "interval_ms: expected 100"),
            ("interval_ms = 500\ndone = [\"a\"]", "state_field: it is missing"),
            ("interval_ms = 500\nstate_field = \"a\"", "done: it has to say"),
            ("interval_ms = 500\nstate_field = \"a[*]\"\ndone = [\"a\"]", "without [*]"),
            ("interval_ms = 500\nresult_url_field = \".\"", "result_url_field: a name is missing"),
            (
                "interval_ms = 500\nstate_field = \"a\"\ndone = [\"a\"]\nfailed = [\"a\"]",
                "both have \"a\"",
            ),
        ] {
            let faults = compiled(toml).unwrap_err();
            assert!(faults.len() == 1 && faults[0].contains(expected), "{toml}: {faults:?}");
        }
    }
}
