//! Answers that are larger than a model should read: cut, with the rest kept for later.
//!
//! A part of an answer is valid JSON of the same shape with rows, members and ends of strings
//! missing. What is missing is a list of pieces, each a place in the whole document; the parts that
//! follow are made from it until nothing is left. Together the parts are the document: each row
//! and each byte of a string is in exactly one of them.
//!
//! - A *row* is an item of an array that stands in no other array. [`ResultBudget::rows`] holds for
//!   each such array; inside a row only strings are cut, unless the row alone is too large.
//! - Of the members of an object, the largest are cut: all smaller ones stay whole.
//! - Numbers, literals and keys are never cut, so a part may be larger than
//!   [`ResultBudget::bytes`] by one of them; so it may by the brackets and names around a value.
//! - The work is linear in the bytes of the document for the first part, and in what is written and
//!   in the number of pieces for those that follow; memory is the document, eight bytes for each
//!   array and object in it, and a few for each piece.
//!
//! Documents are checked JSON, so recursion ends at [`DEPTH_MAX`](crate::json::DEPTH_MAX).

mod cutter;
mod document;
mod text;

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::json::guard;
use cutter::Cutter;
use document::{Document, Paths, Piece};

/// The smallest [`ResultBudget::bytes`].
pub const BUDGET_BYTES_MIN: u64 = 1024;
/// The smallest [`ResultBudget::string_bytes`].
pub const BUDGET_STRING_BYTES_MIN: u64 = 16;
/// How many arrays, objects and strings [`Missing`] names; all are counted.
pub const MISSING_NAMED_MAX: usize = 16;

/// How much of an answer a client gets at once. Without a number there is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResultBudget {
    /// Rows of each array that stands in no other array; at least 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
    /// Bytes of each string, as it is written in JSON; at least [`BUDGET_STRING_BYTES_MIN`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub string_bytes: Option<u64>,
    /// Bytes of the whole JSON; at least [`BUDGET_BYTES_MIN`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

impl ResultBudget {
    /// Whether nothing is limited.
    pub const fn is_unlimited(&self) -> bool {
        self.rows.is_none() && self.string_bytes.is_none() && self.bytes.is_none()
    }

    /// What an operator has to change; `None` where nothing. [`cut`] takes smaller numbers for the
    /// smallest ones.
    pub fn problem(&self) -> Option<String> {
        let limits = [
            ("rows", self.rows, 1),
            ("string_bytes", self.string_bytes, BUDGET_STRING_BYTES_MIN),
            ("bytes", self.bytes, BUDGET_BYTES_MIN),
        ];
        limits
            .into_iter()
            .find(|(_, given, least)| given.is_some_and(|given| given < *least))
            .map(|(key, _, least)| format!("{key}: expected {least} or more"))
    }

    fn sizes(&self) -> Sizes {
        let size = |limit: Option<u64>, least: u64| {
            limit
                .map_or(usize::MAX, |limit| usize::try_from(limit.max(least)).unwrap_or(usize::MAX))
        };
        Sizes {
            rows: size(self.rows, 1),
            string_bytes: size(self.string_bytes, BUDGET_STRING_BYTES_MIN),
            bytes: size(self.bytes, BUDGET_BYTES_MIN),
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Sizes {
    rows: usize,
    string_bytes: usize,
    bytes: usize,
}

/// An answer that was too large.
#[derive(Debug)]
pub struct Cut {
    /// The first part: JSON of the shape of the whole.
    pub json: Vec<u8>,
    /// What it lacks.
    pub missing: Missing,
    /// The parts that follow.
    pub rest: Rest,
}

/// What a part lacks, with places as JSON pointers (RFC 6901).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Missing {
    /// Rows of arrays that are in later parts; all of them.
    pub rows: u64,
    /// Members of objects that are in later parts; all of them.
    pub members: u64,
    /// Bytes of strings, as they are written in JSON, that are in later parts; all of them.
    pub string_bytes: u64,
    /// The first [`MISSING_NAMED_MAX`] places.
    pub places: Vec<MissingPlace>,
}

/// One place that lacks something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MissingPlace {
    /// A JSON pointer; long ones are shortened.
    pub at: Box<str>,
    /// What is missing there.
    pub what: MissingKind,
    /// How many rows, members or bytes.
    pub count: u64,
}

/// What can be missing at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MissingKind {
    /// Items of an array.
    Rows,
    /// Members of an object.
    Members,
    /// The end of a string.
    StringBytes,
}

impl fmt::Display for MissingKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Rows => "rows",
            Self::Members => "members",
            Self::StringBytes => "bytes of text",
        })
    }
}

/// For the model: `250 more rows at /orders, 1000 more bytes of text at /note`.
impl fmt::Display for Missing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut named = 0;
        for (index, place) in self.places.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            let at = if place.at.is_empty() { "the root" } else { &place.at };
            write!(formatter, "{comma}{} more {} at {at}", place.count, place.what)?;
            named += place.count;
        }
        let all = self.rows + self.members + self.string_bytes;
        if named < all { formatter.write_str(", and more elsewhere") } else { Ok(()) }
    }
}

/// The parts of an answer that a client has not got yet. A copy is cheap but for the list of pieces,
/// so the state before a part can be kept until the client is known to have it.
#[derive(Debug, Clone)]
pub struct Rest {
    document: Arc<Document>,
    pieces: VecDeque<Piece>,
    paths: Paths,
}

/// One of the parts that follow the first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// `{"continues":[{"at":"/orders","from":50,"rows":[…]},{"at":"/a","members":{…}},
    /// {"at":"/note","from":1000,"text":"…"}]}`. `at` is a JSON pointer into the whole, `from` the
    /// index of the first row, or how many bytes of the string came before.
    pub json: Vec<u8>,
    /// What is still missing at the places of this part. Others may wait: see [`Rest::is_empty`].
    pub missing: Missing,
}

/// Cuts JSON to a budget; `None` where it fits, and for what is not JSON. Where it fits once blanks
/// between its parts are left out, nothing is missing and the rest is empty.
pub fn cut(json: &[u8], budget: &ResultBudget) -> Option<Cut> {
    // Nothing in it can be larger than all of it.
    let fits = |limit: Option<u64>| limit.is_none_or(|limit| json.len() as u64 <= limit);
    if budget.rows.is_none() && fits(budget.string_bytes) && fits(budget.bytes) {
        return None;
    }
    let sizes = budget.sizes();
    let document = Document::new(guard(json).ok()?.root(), sizes.string_bytes)?;
    let mut cutter = Cutter::new(&document, sizes, Paths::default());
    cutter.whole();
    let done = cutter.finish();
    if done.pieces.is_empty() && fits(budget.bytes) {
        return None;
    }
    let mut rest =
        Rest { pieces: VecDeque::new(), paths: done.paths, document: Arc::new(document) };
    rest.add(done.pieces);
    Some(Cut { json: done.json, missing: done.missing, rest })
}

impl Rest {
    /// Whether the client has everything.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// How much memory this holds, for whoever counts it.
    pub fn memory_bytes(&self) -> usize {
        let pieces = self.pieces.capacity() * size_of::<Piece>();
        self.document.memory_bytes() + self.paths.memory_bytes() + pieces
    }

    /// Takes the next part; `None` when nothing is left. Each part has something, so this ends.
    ///
    /// The budget may be another one than that of the first part, but strings in rows are cut where
    /// the first one said.
    pub fn next(&mut self, budget: &ResultBudget) -> Option<Part> {
        let mut piece = Some(self.pieces.pop_front()?);
        let mut json = b"{\"continues\":[".to_vec();
        let mut cutter =
            Cutter::new(&self.document, budget.sizes(), std::mem::take(&mut self.paths));
        while let Some(next) = piece.take() {
            let is_done = cutter.piece(next, &mut json);
            // What is left of this piece comes before the others, so rows stay in order.
            if is_done && self.pieces.front().is_some_and(|next| cutter.has_room(*next, json.len()))
            {
                json.push(b',');
                piece = self.pieces.pop_front();
            }
        }
        json.extend_from_slice(b"]}");
        let done = cutter.finish();
        self.paths = done.paths;
        self.add(done.pieces);
        Some(Part { json, missing: done.missing })
    }

    /// Rows and members come first, in their order; ends of strings wait.
    fn add(&mut self, pieces: Vec<Piece>) {
        self.pieces.extend(pieces.iter().filter(|piece| piece.waits()));
        for piece in pieces.into_iter().rev().filter(|piece| !piece.waits()) {
            self.pieces.push_front(piece);
        }
    }
}

#[cfg(test)]
#[path = "budget/budget_tests.rs"]
mod tests;
