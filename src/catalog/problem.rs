//! Where an entity was written, and what is wrong with it.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use thiserror::Error;

/// The place an entity was written at. It stays with the entity, also in the store, so that a
/// problem found much later still names file and line.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    /// The file; what else it came from where it was no file.
    pub file: Arc<Path>,
    /// The line, from 1 on; 0 where there is none.
    pub line: u32,
}

impl Origin {
    /// A place in a file.
    pub fn new(file: impl AsRef<Path>, line: u32) -> Self {
        Self { file: Arc::from(file.as_ref()), line }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.file.display())?;
        if self.line > 0 { write!(formatter, ":{}", self.line) } else { Ok(()) }
    }
}

/// Most problems reported at once.
pub const PROBLEMS_MAX: usize = 1_000;

/// Something the operator must put right, and where. Shown as `file:line: message`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Error)]
#[error("{origin}: {message}")]
pub struct Problem {
    /// Where it is.
    pub origin: Origin,
    /// What it is, and what to do.
    pub message: String,
}

impl Problem {
    pub(crate) fn new(origin: &Origin, message: impl Into<String>) -> Self {
        Self { origin: origin.clone(), message: message.into() }
    }

    /// The file it is in.
    pub fn file(&self) -> &Path {
        &self.origin.file
    }

    /// The line it is on; 0 where there is none.
    pub fn line(&self) -> u32 {
        self.origin.line
    }
}
