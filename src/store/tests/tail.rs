//! Disks that stall: what was accepted meanwhile is found at the next opening.

use std::time::{Duration, Instant};

use super::crash::Running;
use super::*;
use crate::scratch;

/// What a busy machine may add to the store's own promise.
const SLACK: Duration = Duration::from_millis(500);

fn promise() -> Duration {
    Duration::from_millis(options().flush_ms) + SLACK
}

fn set_stalled(directory: &Path, is_stalled: bool) {
    let path = directory.join(STALLED_NAME);
    if is_stalled { fs::write(path, "").unwrap() } else { fs::remove_file(path).unwrap() }
}

fn key(number: u64) -> [u8; 16] {
    hashed_key(&[&number.to_le_bytes()])
}

/// The files of a store that somebody else has open, as they are now.
fn copied(directory: &Path) -> tempfile::TempDir {
    let copy = scratch::in_memory();
    for (path, bytes) in content(directory) {
        let path = Path::new(&path);
        let inner = path.strip_prefix(directory).unwrap();
        fs::create_dir_all(copy.path().join(inner).parent().unwrap()).unwrap();
        fs::write(copy.path().join(inner), bytes).unwrap();
    }
    let _ = fs::remove_file(copy.path().join(STALLED_NAME));
    copy
}

/// Waits until what was accepted is where it survives the process.
fn wait_for_tail() {
    thread::park_timeout(Duration::from_millis(options().flush_ms) * 4);
}

/// Reads what the child accepts for a while.
fn accepted(child: &mut Running, time: Duration) -> Vec<(u64, Instant)> {
    let start = Instant::now();
    let mut accepted = Vec::new();
    while start.elapsed() < time {
        if let Ok(number) = child.lines.next().unwrap().unwrap().parse() {
            accepted.push((number, Instant::now()));
        }
    }
    accepted
}

#[test]
fn kill_9_costs_no_more_while_the_disk_stalls() {
    let directory = tempfile::tempdir().unwrap();
    for round in 0..2 {
        let mut child = Running::start("writes behind", directory.path());
        let before = accepted(&mut child, Duration::from_millis(200));
        set_stalled(directory.path(), true);
        let mut during = accepted(&mut child, promise() * 2);
        let killed = Instant::now();
        child.kill();
        set_stalled(directory.path(), false);
        let promised = during.iter().filter(|(_, at)| *at + promise() <= killed).count();
        assert!(promised > 10, "{promised} of {}", during.len());
        during.truncate(promised);
        // Opening it is interrupted or not: nothing is taken twice, nothing is lost.
        let engine_only = copied(directory.path());
        for name in ["tail.0", "tail.1"] {
            fs::remove_file(engine_only.path().join(name)).unwrap();
        }
        for opening in 0..2 {
            let store = open(directory.path());
            for (number, _) in before.iter().chain(&during) {
                let found = store.get_blocking(Tree::Sessions, &key(*number)).unwrap();
                assert!(found.is_some(), "{round} {opening} {number}");
            }
            if opening == 1 {
                let mut batch = Batch::new();
                for (key, _) in rows(&store, Tree::Sessions) {
                    batch.remove(Tree::Sessions, &key);
                }
                store.write_blocking(batch).unwrap();
            }
            store.stop().unwrap();
        }
        // It was the tail that had them.
        let store = open(engine_only.path());
        let last = key(during.last().unwrap().0);
        assert_eq!(store.get_blocking(Tree::Sessions, &last).unwrap(), None);
        store.stop().unwrap();
    }
}

#[test]
fn what_is_taken_from_the_tail_keeps_its_order() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    store.write_blocking(put(Tree::Keys, b"before", b"1")).unwrap();
    store.write_blocking(Batch::new()).unwrap();
    set_stalled(directory.path(), true);
    // Taken by the engine's thread, which is then held.
    let mut batch = put(Tree::Sessions, b"removed", b"1");
    batch.put(Tree::Sessions, b"changed", b"1");
    batch.put(Tree::Windows, b"kept", b"1");
    store.write_behind(batch).unwrap();
    wait_for_tail();
    let mut batch = Batch::new();
    batch.remove(Tree::Sessions, b"removed");
    batch.put(Tree::Sessions, b"changed", b"2");
    store.write_behind(batch).unwrap();
    store.write_behind(put(Tree::Sessions, b"changed", b"3")).unwrap();
    wait_for_tail();
    let left = copied(directory.path());
    set_stalled(directory.path(), false);
    store.stop().unwrap();
    for directory in [left.path(), directory.path()] {
        for _ in 0..2 {
            let store = open(directory);
            let get = |tree, key: &[u8]| store.get_blocking(tree, key).unwrap();
            assert_eq!(get(Tree::Sessions, b"removed"), None);
            assert_eq!(get(Tree::Sessions, b"changed").unwrap(), b"3");
            assert_eq!(get(Tree::Windows, b"kept").unwrap(), b"1");
            assert_eq!(get(Tree::Keys, b"before").unwrap(), b"1");
            store.stop().unwrap();
        }
    }
}

/// A power failure leaves the engine and the tail at different times.
#[test]
fn only_what_follows_the_engine_is_taken() {
    let directory = scratch::in_memory();
    let store = open(directory.path());
    let mut engines = Vec::new();
    let mut tails = Vec::new();
    for number in 0..6u64 {
        set_stalled(directory.path(), true);
        store.write_behind(put(Tree::Sessions, b"k", &number.to_le_bytes())).unwrap();
        store.write_behind(put(Tree::Sessions, &key(number), b"v")).unwrap();
        wait_for_tail();
        tails.push(copied(directory.path()));
        set_stalled(directory.path(), false);
        // Somebody who waits: the engine has it all.
        store.write_blocking(Batch::new()).unwrap();
        engines.push(copied(directory.path()));
    }
    store.stop().unwrap();
    for (engine_at, engine) in engines.iter().enumerate() {
        for (tail_at, tail) in tails.iter().enumerate() {
            let mixed = copied(engine.path());
            for name in ["tail.0", "tail.1"] {
                fs::copy(tail.path().join(name), mixed.path().join(name)).unwrap();
            }
            let store = open(mixed.path());
            // The tail starts over each time: only the next one follows.
            let last = if tail_at == engine_at + 1 { tail_at } else { engine_at } as u64;
            let found = rows(&store, Tree::Sessions);
            assert_eq!(found.len() as u64, last + 2, "{engine_at} {tail_at}");
            let value = store.get_blocking(Tree::Sessions, b"k").unwrap().unwrap();
            assert_eq!(value, last.to_le_bytes(), "{engine_at} {tail_at}");
            store.stop().unwrap();
        }
    }
    // Of another store.
    let other = tempfile::tempdir().unwrap();
    open(other.path()).stop().unwrap();
    fs::copy(tails[0].path().join("tail.0"), other.path().join("tail.0")).unwrap();
    let store = open(other.path());
    assert_eq!(rows(&store, Tree::Sessions), []);
    store.stop().unwrap();
}

#[test]
fn a_long_stall_under_load_turns_over_and_loses_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    let value = vec![7; 60_000];
    let mut number = 0;
    for stall in 0..3 {
        set_stalled(directory.path(), true);
        for _ in 0..120 {
            store.write_behind(put(Tree::Sessions, &key(number), &value)).unwrap();
            number += 1;
            if number % 40 == 0 {
                wait_for_tail();
            }
        }
        wait_for_tail();
        let left = copied(directory.path());
        set_stalled(directory.path(), false);
        let reopened = open(left.path());
        assert_eq!(rows(&reopened, Tree::Sessions).len() as u64, number, "{stall}");
        reopened.stop().unwrap();
        if stall == 1 {
            store.write_blocking(Batch::new()).unwrap();
        }
    }
    store.stop().unwrap();
    let bytes: u64 = ["tail.0", "tail.1"]
        .map(|name| fs::metadata(directory.path().join(name)).unwrap().len())
        .iter()
        .sum();
    assert!(bytes < options().queue_bytes_max as u64, "{bytes}");
    // An opening gives the room back.
    open(directory.path()).stop().unwrap();
    assert_eq!(fs::metadata(directory.path().join("tail.0")).unwrap().len(), 2 << 20);
}

#[test]
fn a_tail_that_cannot_be_made_does_not_hinder_the_store() {
    let directory = tempfile::tempdir().unwrap();
    open(directory.path()).stop().unwrap();
    for name in ["tail.0", "tail.1"] {
        fs::remove_file(directory.path().join(name)).unwrap();
        fs::create_dir(directory.path().join(name)).unwrap();
    }
    let store = open(directory.path());
    set_stalled(directory.path(), true);
    store.write_behind(put(Tree::Sessions, b"k", b"1")).unwrap();
    wait_for_tail();
    set_stalled(directory.path(), false);
    assert_eq!(rows(&store, Tree::Sessions).len(), 1);
    store.stop().unwrap();
    let store = open(directory.path());
    assert_eq!(rows(&store, Tree::Sessions).len(), 1);
    store.stop().unwrap();
}
