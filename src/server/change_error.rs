//! Why a change of catalog or keys was not made.

use thiserror::Error;

use super::change_log::ChangeLogError;
use crate::{
    catalog::{EntityName, InvalidEntity, Problem, RowError},
    identity::KeyRecordError,
    store::StoreError,
};

/// Why a change was not made.
#[derive(Debug, Error)]
pub enum ChangeError {
    /// The declarations are wrong; each problem names its file and line.
    #[error("{}", list(.0))]
    Problems(Vec<Problem>),
    /// Stored or sent rows cannot be read.
    #[error("{}", list(.0))]
    Rows(Vec<RowError>),
    /// A stored key cannot be read.
    #[error("a stored API key cannot be read: {0}")]
    Key(#[from] KeyRecordError),
    /// No key has this id.
    #[error("no key {0}; `ringway key list` shows those there are")]
    NoSuchKey(String),
    /// The key's client application is not in the catalog.
    #[error(
        "the catalog has no client application {tenant}/{client_application}; `ringway status` \
         lists those it has"
    )]
    NoSuchClientApplication {
        /// The tenant asked for.
        tenant: String,
        /// The client application asked for.
        client_application: String,
    },
    /// What was sent is no entity.
    #[error("{0}")]
    Invalid(#[from] InvalidEntity),
    /// Nothing has this name.
    #[error("there is no {0}")]
    NoSuchEntity(EntityName),
    /// Something has this name.
    #[error("{0} exists already: replace or patch it, or choose another name")]
    Exists(EntityName),
    /// Others refer to it.
    #[error("{name} is still needed, so it was not deleted: delete or change first what names it\n{}", list(.needs))]
    Needed {
        /// What was to be deleted.
        name: EntityName,
        /// What would be wrong without it.
        needs: Vec<Problem>,
    },
    /// Somebody else changed it meanwhile.
    #[error("{0}")]
    Conflict(String),
    /// It is not known whether somebody else changed it meanwhile.
    #[error(
        "{0} exists: send If-Match with the ETag you read it with, so that nobody's change is lost \
         (or If-Match: * to change it whatever it is)"
    )]
    Unconditional(EntityName),
    /// What was asked for makes no sense.
    #[error("{0}")]
    Refused(String),
    /// The change log cannot tell.
    #[error("{0}")]
    Log(#[from] ChangeLogError),
    /// The store could not keep the change.
    #[error("the change could not be kept, so it was not made: {0}")]
    Store(#[from] StoreError),
}

fn list(problems: &[impl ToString]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}
