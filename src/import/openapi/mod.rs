//! `OpenAPI` 3.0 and 3.1, and Swagger 2.0.

use super::{Description, Documents, ImportError, Location, Options, Step};

/// Reads the description at `root` and what it leads to.
///
/// # Errors
/// When the document as a whole cannot be used.
pub fn read(
    _documents: &Documents,
    root: &Location,
    _options: &Options,
) -> Result<Step<Description>, ImportError> {
    Err(ImportError::unusable(root, "not read yet"))
}
