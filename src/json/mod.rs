//! JSON from outside: checked once in one linear scan, then read lazily as exact text.
//!
//! Everything that comes from a client, an API or a file of somebody else goes through [`guard`]
//! before any other code looks at it. What passes is a [`Checked`]: UTF-8, well-formed by the
//! grammar of RFC 8259, at most [`DEPTH_MAX`] levels deep and without a repeated key in any object.
//!
//! Invariants worth naming:
//!
//! - A [`Raw`] is one value inside a checked text and nothing else; walking it cannot fail.
//! - Numbers are never parsed on the way through: `1.50`, `1e400` and
//!   `123456789012345678901234567890` leave as they came.
//! - No parser sees text that could make it recurse without bound, and no two parsers can see
//!   different members of one object: some keep the first of two equal keys, some the last.
//! - Work is linear in the bytes, whatever the bytes are.
//!
//! This room does no I/O and keeps no state. Only this room names `sonic_rs`.

mod canonical;
mod guard;
mod raw;
mod text;
mod value;

pub use canonical::{write_canonical, write_canonical_object};
#[cfg(test)]
pub(crate) use guard::tests::any_json;
pub use guard::{Checked, guard};
pub use raw::{Entries, Items, Kind, OwnedRaw, Raw, RawEntries};
pub use text::write_string;
pub use value::{to_value, write_raw, write_value};

/// How deep arrays and objects may nest. A scalar alone has depth 0, `[]` has depth 1.
pub const DEPTH_MAX: usize = 128;

/// Why a text was refused. Always the sender's fault; a retry of the same bytes fails again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    /// Arrays and objects nest deeper than [`DEPTH_MAX`].
    #[error("the JSON text is nested deeper than {DEPTH_MAX} levels")]
    TooDeep,
    /// The bytes are not JSON.
    #[error("malformed JSON at byte {offset}: expected {expected}")]
    Malformed {
        /// Where the first byte stands that does not fit, counted from 0.
        offset: usize,
        /// What would have fitted there.
        expected: &'static str,
    },
    /// One object has the same key twice, which readers understand differently.
    #[error("duplicate key {key:?} at byte {offset}: each key of a JSON object may appear once")]
    DuplicateKey {
        /// The decoded key, shortened when long.
        key: Box<str>,
        /// Where its second appearance starts, counted from 0.
        offset: usize,
    },
    /// The bytes are not UTF-8.
    #[error("the JSON text is not valid UTF-8")]
    NotUtf8,
}
