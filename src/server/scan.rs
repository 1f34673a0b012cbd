//! Reading whole trees of the store. Blocks; not for a core.

use crate::store::{Row, Store, StoreError, Tree};

/// Rows read from the store at a time.
const SCAN_ROWS: usize = 1024;

/// Every row of a tree.
pub(crate) fn all_rows(store: &Store, tree: Tree) -> Result<Vec<Row>, StoreError> {
    let mut rows = Vec::new();
    for_each_row(store, tree, |key, value| {
        rows.push((key, value));
        Ok::<_, StoreError>(())
    })?;
    Ok(rows)
}

/// Visits every row of a tree, a bounded number of them in memory at a time.
pub(crate) fn for_each_row<E: From<StoreError>>(
    store: &Store,
    tree: Tree,
    mut visit: impl FnMut(Vec<u8>, Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    let mut after: Option<Vec<u8>> = None;
    loop {
        let rows = store.scan_blocking(tree, after.as_deref(), SCAN_ROWS)?;
        if rows.len() < SCAN_ROWS {
            return rows.into_iter().try_for_each(|(key, value)| visit(key, value));
        }
        after = rows.last().map(|(key, _)| key.clone());
        rows.into_iter().try_for_each(|(key, value)| visit(key, value))?;
    }
}
