//! The forms of JSON Schema that models' interfaces take.

use serde::{Deserialize, Serialize};

/// Which form of a schema a client application is shown. Arguments are always judged by the full
/// schema.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// JSON Schema 2020-12 as it was written.
    #[default]
    Full,
    /// What every client reads.
    Portable,
    /// What Gemini's function declarations take.
    Gemini,
    /// What OpenAI's strict function schemas take.
    OpenaiStrict,
}
