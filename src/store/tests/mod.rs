//! The store from outside: order, bounds, opening rules, crashes, and a full disk.

mod crash;
mod room;
mod speed;
mod tail;

use std::collections::BTreeMap;
use std::fs;
use std::future::Future;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::*;

/// Runs a future that other threads wake.
fn wait<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}

/// A key for what is found by a counter, a time, or a text of any length: the first 16 bytes of
/// the SHA-256 of the parts, each preceded by its length.
fn hashed_key(parts: &[&[u8]]) -> [u8; 16] {
    let mut context = aws_lc_rs::digest::Context::new(&aws_lc_rs::digest::SHA256);
    for part in parts {
        context.update(&(part.len() as u64).to_le_bytes());
        context.update(part);
    }
    let digest = context.finish();
    let mut key = [0; 16];
    key.copy_from_slice(&digest.as_ref()[..16]);
    key
}

fn options() -> StoreOptions {
    StoreOptions { free_bytes_min: 0, cache_bytes: 8 << 20, ..StoreOptions::default() }
}

fn open(directory: &Path) -> Store {
    Store::open(directory, options()).unwrap()
}

/// Holds the engine's flush like a disk that stalls, as long as there is a file of this name, or
/// lets it fail where there is one of the other.
pub(super) fn stall(directory: &Path) -> Result<(), String> {
    while directory.join(STALLED_NAME).exists() {
        thread::park_timeout(Duration::from_millis(1));
    }
    if directory.join(FAILING_NAME).exists() { Err("it fails".to_owned()) } else { Ok(()) }
}

/// Holds the closing of an engine in the same way.
pub(super) fn stall_closing(directory: &Path) {
    while directory.join(HELD_NAME).exists() {
        thread::park_timeout(Duration::from_millis(1));
    }
}

const STALLED_NAME: &str = "stalled";
const FAILING_NAME: &str = "failing";
const HELD_NAME: &str = "held";

fn put(tree: Tree, key: &[u8], value: &[u8]) -> Batch {
    let mut batch = Batch::new();
    batch.put(tree, key, value);
    batch
}

fn rows(store: &Store, tree: Tree) -> Vec<(Vec<u8>, Vec<u8>)> {
    store.scan_blocking(tree, None, usize::MAX).unwrap()
}

/// Every file below `directory` with its content.
fn content(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(content(&path));
        } else {
            found.insert(path.display().to_string(), fs::read(&path).unwrap());
        }
    }
    found
}

#[test]
fn what_is_written_is_found_again() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    let mut batch = put(Tree::Catalog, b"a", b"1");
    batch.put(Tree::Keys, b"a", b"2");
    batch.put(Tree::Catalog, b"b", b"3");
    batch.put(Tree::Catalog, b"b", b"4");
    store.write_blocking(batch).unwrap();
    store.write_behind(put(Tree::Sessions, b"s", b"5")).unwrap();
    // A read sees what was queued before it, on disk or not.
    assert_eq!(wait(store.get(Tree::Sessions, b"s")).unwrap().unwrap(), b"5");
    let mut batch = Batch::new();
    batch.remove(Tree::Catalog, b"a");
    batch.remove(Tree::Catalog, b"never there");
    store.write_behind(batch).unwrap();
    assert_eq!(wait(store.get(Tree::Catalog, b"a")).unwrap(), None);
    assert_eq!(store.state(), StoreState::Healthy);
    store.stop().unwrap();

    let store = open(directory.path());
    assert_eq!(rows(&store, Tree::Catalog), [(b"b".to_vec(), b"4".to_vec())]);
    assert_eq!(store.get_blocking(Tree::Keys, b"a").unwrap().unwrap(), b"2");
    assert_eq!(store.get_blocking(Tree::Sessions, b"s").unwrap().unwrap(), b"5");
    store.stop().unwrap();
}

#[test]
fn scans_are_pages() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    let mut batch = Batch::new();
    for key in 0u8..10 {
        batch.put(Tree::Windows, &[key], b"v");
    }
    store.write_blocking(batch).unwrap();
    let mut after = None;
    let mut seen = Vec::new();
    loop {
        let page = wait(store.scan(Tree::Windows, after.as_deref(), 4)).unwrap();
        seen.extend(page.iter().map(|(key, _)| key[0]));
        match page.last() {
            Some((key, _)) if page.len() == 4 => after = Some(key.clone()),
            _ => break,
        }
    }
    assert_eq!(seen, (0..10).collect::<Vec<u8>>());
    assert_eq!(store.scan_blocking(Tree::Windows, Some(&[9]), 4).unwrap(), []);
    assert_eq!(store.scan_blocking(Tree::Catalog, None, 4).unwrap(), []);
    store.stop().unwrap();
}

#[test]
fn a_stopped_store_has_written_everything_and_takes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    for key in 0..1000u32 {
        store.write_behind(put(Tree::Sessions, &hashed_key(&[&key.to_le_bytes()]), b"v")).unwrap();
    }
    store.stop().unwrap();
    store.stop().unwrap();
    let batch = || put(Tree::Sessions, b"k", b"v");
    let refused = store.write_behind(batch()).expect_err("the store is stopped");
    assert!(matches!(refused.error, StoreError::Stopped));
    assert!(matches!(store.write_blocking(batch()), Err(StoreError::Stopped)));
    assert!(matches!(store.get_blocking(Tree::Meta, b"k"), Err(StoreError::Stopped)));
    let store = open(directory.path());
    assert_eq!(rows(&store, Tree::Sessions).len(), 1000);
    store.stop().unwrap();
}

#[test]
fn the_last_handle_leaves_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    let clone = store.clone();
    store.write_behind(put(Tree::Sessions, b"k", b"v")).unwrap();
    drop(store);
    drop(clone);
    // The thread is still closing; its lock goes last.
    let store = loop {
        match Store::open(directory.path(), options()) {
            Err(StoreError::InUse { .. }) => thread::yield_now(),
            other => break other.unwrap(),
        }
    };
    assert_eq!(store.get_blocking(Tree::Sessions, b"k").unwrap().unwrap(), b"v");
    store.stop().unwrap();
}

#[test]
fn large_records_and_empty_batches() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    store.write_behind(Batch::new()).unwrap();
    store.write_blocking(Batch::new()).unwrap();
    let large = vec![7; 3 << 20];
    store.write_blocking(put(Tree::Catalog, b"large", &large)).unwrap();
    let too_large = store.write_blocking(put(Tree::Catalog, b"x", &vec![0; 65 << 20]));
    assert!(matches!(too_large, Err(StoreError::TooLarge { .. })), "{too_large:?}");
    store.stop().unwrap();
    let store = open(directory.path());
    assert_eq!(store.get_blocking(Tree::Catalog, b"large").unwrap().unwrap(), large);
    store.stop().unwrap();
}

#[test]
fn writers_on_many_threads_share_a_flush() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    thread::scope(|scope| {
        for writer in 0..8u32 {
            let store = &store;
            scope.spawn(move || {
                for number in 0..50u32 {
                    let key = hashed_key(&[&writer.to_le_bytes(), &number.to_le_bytes()]);
                    store.write_blocking(put(Tree::Keys, &key, b"v")).unwrap();
                    assert!(wait(store.get(Tree::Keys, &key)).unwrap().is_some());
                }
            });
        }
    });
    assert_eq!(rows(&store, Tree::Keys).len(), 400);
    store.stop().unwrap();
}

#[test]
fn a_second_opening_is_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    let error = Store::open(directory.path(), options()).unwrap_err();
    assert!(matches!(error, StoreError::InUse { .. }), "{error}");
    assert!(error.to_string().contains(&directory.path().display().to_string()), "{error}");
    store.stop().unwrap();
    open(directory.path()).stop().unwrap();
}

#[test]
fn an_unknown_format_is_refused_and_nothing_changes() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    store.write_blocking(put(Tree::Catalog, b"k", b"v")).unwrap();
    store.stop().unwrap();
    for text in ["ringway store 2\n", "something else", "ringway store 1x", ""] {
        fs::write(directory.path().join("format"), text).unwrap();
        // What an older version must not clear away either.
        fs::write(directory.path().join("snap.0000000000000000.generating"), "x").unwrap();
        let before = content(directory.path());
        let error = Store::open(directory.path(), options()).unwrap_err();
        assert!(matches!(error, StoreError::UnknownFormat { .. }), "{error}");
        assert!(error.to_string().contains("nothing was changed"), "{error}");
        assert_eq!(content(directory.path()), before);
    }
}

#[test]
fn an_unknown_format_record_is_refused_and_the_records_stay() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    store.write_blocking(put(Tree::Meta, b"format", &[1, 9, 0, 0, 0])).unwrap();
    store.stop().unwrap();
    for name in ["format", "closed", "ledger"] {
        fs::remove_file(directory.path().join(name)).unwrap();
    }
    for record in [&[1, 9, 0, 0, 0][..], &[7][..]] {
        {
            let db = sled::open(directory.path()).unwrap();
            db.open_tree("meta").unwrap().insert("format", record).unwrap();
        }
        let error = Store::open(directory.path(), options()).unwrap_err();
        assert!(matches!(error, StoreError::UnknownFormat { .. }), "{error}");
        assert!(!directory.path().join("format").exists());
        let db = sled::open(directory.path()).unwrap();
        assert_eq!(db.open_tree("meta").unwrap().get("format").unwrap().unwrap(), record);
    }
}

#[test]
fn somebody_elses_database_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    sled::open(directory.path()).unwrap().insert("theirs", "1").unwrap();
    let error = Store::open(directory.path(), options()).unwrap_err();
    assert!(matches!(error, StoreError::UnknownFormat { .. }), "{error}");
    let db = sled::open(directory.path()).unwrap();
    assert_eq!(db.tree_names().len(), 1);
    assert_eq!(db.get("theirs").unwrap().unwrap(), "1");
}

type Made = (u8, Option<Vec<u8>>, bool);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Against a map: any mix of both kinds of write, reads in between, and a restart.
    #[test]
    fn behaves_like_a_map(made in vec((any::<u8>(), option::of(vec(any::<u8>(), 0..300)), any::<bool>()), 1..60)) {
        let made: Vec<Made> = made;
        let directory = crate::scratch::in_memory();
        let mut store = open(directory.path());
        let mut model = BTreeMap::new();
        for (step, (key, value, waits)) in made.into_iter().enumerate() {
            let mut batch = Batch::new();
            match &value {
                Some(value) => batch.put(Tree::Sessions, &[key], value),
                None => batch.remove(Tree::Sessions, &[key]),
            }
            if waits && step % 4 == 0 {
                store.write_blocking(batch).unwrap();
            } else {
                store.write_behind(batch).unwrap();
            }
            match value {
                Some(value) => model.insert(vec![key], value),
                None => model.remove(&vec![key]),
            };
            let found = store.get_blocking(Tree::Sessions, &[key]).unwrap();
            prop_assert_eq!(found.as_ref(), model.get(&vec![key]));
            if step % 25 == 24 {
                store.stop().unwrap();
                store = open(directory.path());
            }
        }
        let expected: Vec<_> = model.into_iter().collect();
        prop_assert_eq!(rows(&store, Tree::Sessions), expected);
        store.stop().unwrap();
    }
}
