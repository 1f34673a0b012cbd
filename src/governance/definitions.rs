//! What of an upstream server's definitions is accepted, and what waits for an operator.
//!
//! ```text
//! a list ──▶ Book::learn ──▶ what is served, what waits, what went ──▶ Event for each turn
//! an operator ──▶ Book::approve / Book::refuse, by hash: what was seen is what is meant
//! findings: what a definition hides or resembles       difference: field by field
//! ```
//!
//! Invariants worth naming:
//! - A definition is served only as it was accepted, to the last byte that means something. One that
//!   changed is not served at all: the old text would lie about what is called, and nobody has
//!   judged the new one.
//! - What comes of a list does not depend on its order.
//! - A definition with hidden characters is never accepted unseen, unless its server is trusted
//!   whatever it says.
//! - The book stays bounded whatever a server lists.
//!
//! Rules only: this room knows no clock and no store; rows go in and out as bytes.

mod book;
mod difference;
mod findings;
mod hash;
mod hidden;
mod lookalike;
mod rows;

pub use book::{Act, Book, BookError, Counts, Event, Gone, Offer, Pending, Subject, Turn, Verdict};
pub use difference::differences;
pub use findings::{Finding, Findings, Flaw};
pub use hash::{hash_text, parse_hash};
pub use hidden::{Hidden, visible};
pub use rows::{BookRow, BookRowError, Reach, ServerRecord};
