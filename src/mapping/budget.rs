//! How much of an answer a call may give back.

use serde::{Deserialize, Serialize};

/// The most a tool's result may hold; what is absent has no limit of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResultBudget {
    /// Most items of an array.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
    /// Most bytes of one text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub string_bytes: Option<u64>,
    /// Most bytes of the whole result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}
