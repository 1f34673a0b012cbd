//! Which rows of the catalog are sealed, and how: connections, and the changes of the log.
//!
//! A sealed row is its version byte and what the seal makes of the whole plain row. Rows of releases
//! that sealed nothing are read as they are; they, and those under a key that is not the one in use
//! any more, are sealed at the start.

use super::{
    change_error::ChangeError,
    change_log::{self, ChangeLogError},
};
use crate::store::{Batch, Seal, SealError, Store, Tree};

/// Stands before a sealed row; plain ones begin with 1.
const SEALED_VERSION: u8 = 2;
/// Begins the key of every connection.
const CONNECTIONS: &[u8] = b"connection/";

/// A row as the store gets it.
pub(super) fn sealed(key: &[u8], plain: Vec<u8>, seal: &Seal) -> Result<Vec<u8>, SealError> {
    if !key.starts_with(CONNECTIONS) {
        return Ok(plain);
    }
    let mut row = vec![SEALED_VERSION];
    row.extend(seal.seal(key, &plain)?);
    Ok(row)
}

/// A row as the catalog reads it, and whether it has to be sealed again.
pub(super) fn opened(key: &[u8], row: Vec<u8>, seal: &Seal) -> Result<(Vec<u8>, bool), SealError> {
    match row.split_first() {
        _ if !key.starts_with(CONNECTIONS) => Ok((row, false)),
        Some((&SEALED_VERSION, sealed)) => {
            Ok((seal.unseal(key, sealed)?, !seal.is_current(sealed)))
        }
        _ => Ok((row, true)),
    }
}

/// What was found in the store and is not sealed as it should be.
#[derive(Debug, Default)]
pub(super) struct Stale {
    /// Connections, opened.
    pub(super) rows: Vec<(Vec<u8>, Vec<u8>)>,
    /// The keys of records of the change log, which may be large.
    pub(super) records: Vec<Vec<u8>>,
}

impl Stale {
    /// Seals all of it. A start that is interrupted goes on with the next one.
    pub(super) fn reseal(self, store: &Store, seal: &Seal) -> Result<(), ChangeError> {
        let count = self.rows.len() + self.records.len();
        if count == 0 {
            return Ok(());
        }
        let mut batch = Batch::new();
        for (key, plain) in self.rows {
            batch.put(Tree::Catalog, &key, &sealed(&key, plain, seal)?);
        }
        if !batch.is_empty() {
            store.write_blocking(batch)?;
        }
        for key in self.records {
            let Some(record) = store.get_blocking(Tree::Catalog, &key)? else { continue };
            let record = change_log::opened(&key, &record, seal)?;
            let mut batch = Batch::new();
            batch.put(Tree::Catalog, &key, &change_log::sealed(&key, &record, seal)?);
            store.write_blocking(batch)?;
        }
        tracing::info!(count, "the connections and changes in the store were sealed");
        Ok(())
    }
}

impl From<SealError> for ChangeError {
    fn from(error: SealError) -> Self {
        Self::Log(ChangeLogError::Seal(error))
    }
}
