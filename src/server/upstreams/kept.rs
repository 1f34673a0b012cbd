//! The books of all servers in the store. Blocks; not for a core.
//!
//! The key of a row is the tenant, the toolset and the key the book gives it, with `/` between them;
//! neither id contains one.

use std::collections::BTreeMap;

use crate::{
    catalog::{TenantId, ToolsetId},
    governance::definitions::{Book, BookRow, BookRowError},
    server::scan::for_each_row,
    store::{Batch, Store, StoreError, Tree},
};

/// What is kept of upstream servers cannot be used. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum KeptError {
    /// The store cannot be read.
    #[error("what is known of upstream servers cannot be read: {0}")]
    Store(#[from] StoreError),
    /// A row is not what this release writes.
    #[error("what is known of the upstream server {name} cannot be read: {reason}")]
    Row {
        /// The beginning of the row's key.
        name: String,
        /// What is wrong with it.
        reason: BookRowError,
    },
}

/// Whose book it is.
pub(super) type Key = (TenantId, ToolsetId);

/// Every book there is.
pub(super) fn read(store: &Store) -> Result<BTreeMap<Key, Book>, KeptError> {
    let mut books: BTreeMap<Key, Book> = BTreeMap::new();
    for_each_row(store, Tree::Upstreams, |key, value| {
        let unusable = |reason| {
            let name = String::from_utf8_lossy(&key).chars().take(200).collect();
            KeptError::Row { name, reason }
        };
        let Some((whose, rest)) = split(&key) else {
            return Err(unusable(BookRowError::Damaged("its key names no toolset".to_owned())));
        };
        books.entry(whose).or_default().add_row(rest, &value).map_err(unusable)
    })?;
    Ok(books)
}

/// Keeps rows of a book.
pub(super) fn write(store: &Store, whose: &Key, rows: Vec<BookRow>) -> Result<(), StoreError> {
    if rows.is_empty() {
        return Ok(());
    }
    let mut batch = Batch::new();
    for (key, value) in rows {
        let key = [prefix(whose).as_bytes(), &key].concat();
        match value {
            Some(value) => batch.put(Tree::Upstreams, &key, &value),
            None => batch.remove(Tree::Upstreams, &key),
        }
    }
    store.write_blocking(batch)
}

fn prefix((tenant, toolset): &Key) -> String {
    format!("{tenant}/{toolset}/")
}

fn split(key: &[u8]) -> Option<(Key, &[u8])> {
    let mut parts = key.splitn(3, |byte| *byte == b'/');
    let mut text = || std::str::from_utf8(parts.next()?).ok();
    let (tenant, toolset) = (TenantId::new(text()?).ok()?, ToolsetId::new(text()?).ok()?);
    Some(((tenant, toolset), parts.next()?))
}
