//! Why a description as a whole cannot be imported.

use thiserror::Error;

use super::{DOCUMENT_BYTES_MAX, DOCUMENTS_BYTES_MAX, DOCUMENTS_MAX, Location};

/// Longest text of a document that an error shows, in characters.
const SHOWN_CHARACTERS_MAX: usize = 120;

/// What is wrong with a description as a whole. What is wrong with one operation is its verdict.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[expect(missing_docs, reason = "each field is named by the error's text")]
pub enum ImportError {
    /// A reference that is no location, or one that its document must not lead to.
    #[error("{location:?} is no location of a document: {reason}")]
    Location { location: String, reason: String },
    /// One document more than allowed.
    #[error("the description consists of more than {DOCUMENTS_MAX} documents")]
    TooManyDocuments,
    /// A document that is larger than allowed.
    #[error("{location} is larger than {DOCUMENT_BYTES_MAX} bytes")]
    DocumentTooLarge { location: String },
    /// The documents are larger together than allowed.
    #[error("the documents are larger together than {DOCUMENTS_BYTES_MAX} bytes")]
    DocumentsTooLarge,
    /// A document that is needed cannot be had.
    #[error("{location} cannot be read: {reason}")]
    Missing { location: String, reason: String },
    /// A document that is not what it should be, or cannot be used.
    #[error("{location}: {reason}")]
    Unusable { location: String, reason: String },
    /// A bound that only a hostile or broken document goes beyond.
    #[error("{location}: {limit}; a document that goes beyond this is not read")]
    Limit { location: String, limit: String },
}

impl ImportError {
    /// A document that is not what it should be.
    pub fn unusable(location: &Location, reason: impl Into<String>) -> Self {
        Self::Unusable { location: location.to_string(), reason: reason.into() }
    }

    /// A document that goes beyond a bound, such as `deeper than 128 levels`.
    pub fn limit(location: &Location, limit: impl Into<String>) -> Self {
        Self::Limit { location: location.to_string(), limit: limit.into() }
    }

    /// A document that cannot be had.
    pub fn missing(location: &Location, reason: impl Into<String>) -> Self {
        Self::Missing { location: location.to_string(), reason: reason.into() }
    }

    pub(super) fn location(text: &str, reason: impl Into<String>) -> Self {
        let location = match text.char_indices().nth(SHOWN_CHARACTERS_MAX) {
            None => text.to_owned(),
            Some((end, _)) => format!("{}...", &text[..end]),
        };
        Self::Location { location, reason: reason.into() }
    }
}

/// Why a description cannot become part of a catalog. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[expect(missing_docs, reason = "each field is named by the error's text")]
pub enum PlanError {
    /// The tenant is not there.
    #[error("there is no tenant {tenant}: declare it first")]
    NoTenant { tenant: String },
    /// The toolset is there, and of another kind.
    #[error(
        "toolset {toolset} is of kind `{kind}`, and the description makes tools of kind \
         `{described}`: import it into another toolset"
    )]
    OtherKind { toolset: String, kind: &'static str, described: &'static str },
    /// Nobody says where the API is.
    #[error(
        "the description does not say where the API is{}: say it with --base-url",
        if .name.is_empty() { String::new() } else { format!(" that it calls {name:?}") }
    )]
    NoBaseUrl { name: String },
    /// A description that says nothing of connections.
    #[error("the description has no place where the API is reached: say it with --base-url")]
    NoConnection,
    /// What would be made is wrong; each problem is a line.
    #[error("{}", .0.join("\n"))]
    Problems(Vec<String>),
}
