//! `[telemetry]`: logs.

use serde::{Deserialize, Serialize};
use tracing_subscriber::EnvFilter;

use super::Findings;

/// Logs, written to standard error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Telemetry {
    /// Which events are logged: a level, or directives such as `info,ringway::downstream=debug`.
    pub filter: String,
    /// How a line looks.
    pub format: LogFormat,
    /// Lines that may wait to be written; more are dropped and counted.
    pub log_queue_lines: usize,
}

/// How a log line looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

impl Default for Telemetry {
    fn default() -> Self {
        Self { filter: "info".to_owned(), format: LogFormat::Text, log_queue_lines: 65_536 }
    }
}

impl Telemetry {
    /// The directives of the filter that are one word.
    fn lone_words(&self) -> impl Iterator<Item = &str> {
        let directives = self.filter.split(',').map(str::trim);
        directives.filter(|directive| {
            !directive.is_empty() && directive.chars().all(|char| char.is_ascii_alphanumeric())
        })
    }

    /// Checks this section.
    pub fn validate(&self, findings: &mut Findings) {
        if let Err(error) = EnvFilter::try_new(&self.filter) {
            findings.add(
                "telemetry.filter",
                format!("`{}` is not a log filter such as `info`: {error}", self.filter),
            );
        }
        if let Some(word) = self.lone_words().find(|word| !is_level(word)) {
            findings.add(
                "telemetry.filter",
                format!(
                    "`{word}` is no level (off, error, warn, info, debug, trace) and would turn \
                     nearly all lines off; a part of the program is written like `{word}=debug`"
                ),
            );
        }
        findings.within("telemetry.log_queue_lines", self.log_queue_lines, 16..=10_000_000);
    }
}

fn is_level(word: &str) -> bool {
    ["off", "error", "warn", "info", "debug", "trace"]
        .iter()
        .any(|level| level.eq_ignore_ascii_case(word))
}
