//! Disks that are full or cannot be written.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use super::*;

/// A small file system of its own, unmounted at the end.
struct Mounted(tempfile::TempDir);

impl Mounted {
    /// None, and a loud line, where this user may not mount.
    fn tmpfs(option: &str) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let status = Command::new("mount")
            .args(["-t", "tmpfs", "-o", option, "ringway-test"])
            .arg(directory.path())
            .status();
        if status.is_ok_and(|status| status.success()) {
            return Some(Self(directory));
        }
        eprintln!("SKIPPED: cannot mount a tmpfs ({option}) here; run this test as root");
        None
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("store")
    }

    /// Takes room away until it is deleted.
    fn ballast(&self, bytes: usize) -> PathBuf {
        let path = self.0.path().join("ballast");
        fs::write(&path, vec![0; bytes]).unwrap();
        path
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").args(["-l"]).arg(self.0.path()).status();
    }
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(20), "not {what}");
        thread::park_timeout(Duration::from_millis(20));
    }
}

fn is_healthy(store: &Store) -> bool {
    store.state() == StoreState::Healthy
}

#[test]
fn a_full_disk_makes_the_store_read_only_until_there_is_room() {
    let Some(mounted) = Mounted::tmpfs("size=40m") else { return };
    let ballast = mounted.ballast(12 << 20);
    let store = open(&mounted.path());
    let key = |number: u32| hashed_key(&[&number.to_le_bytes()]);
    let mut written = Vec::new();
    let mut behind = Vec::new();
    let reason = (0..100_000u32)
        .find_map(|number| {
            let batch = put(Tree::Sessions, &key(number), &[number as u8; 4000]);
            let result = if number % 2 == 0 {
                store
                    .write_behind(batch)
                    .map(|()| behind.push(number))
                    .map_err(|refused| refused.error)
            } else {
                store.write_blocking(batch).map(|()| written.push(number))
            };
            match result {
                Ok(()) => None,
                Err(StoreError::ReadOnly { reason }) => Some(reason),
                Err(other) => panic!("{other}"),
            }
        })
        .expect("the disk becomes full");
    assert!(reason.contains(&mounted.path().display().to_string()), "{reason}");
    assert!(written.len() > 100, "{}", written.len());
    assert!(matches!(store.state(), StoreState::ReadOnly { .. }));
    // Reads go on, and so does the process.
    let found = store.get_blocking(Tree::Sessions, &key(written[0])).unwrap();
    assert_eq!(found, Some(vec![written[0] as u8; 4000]));

    fs::remove_file(ballast).unwrap();
    wait_until("healthy", || is_healthy(&store));
    for number in written.iter().chain(&behind) {
        let found = store.get_blocking(Tree::Sessions, &key(*number)).unwrap();
        assert_eq!(found, Some(vec![*number as u8; 4000]), "{number}");
    }
    store.write_blocking(put(Tree::Sessions, b"again", b"v")).unwrap();
    store.stop().unwrap();
    let store = open(&mounted.path());
    assert_eq!(store.get_blocking(Tree::Sessions, b"again").unwrap().unwrap(), b"v");
    // Of the write that failed it is not known.
    let found = rows(&store, Tree::Sessions).len() - written.len() - behind.len();
    assert!((1..=2).contains(&found), "{found}");
    store.stop().unwrap();
}

#[test]
fn the_store_stops_writing_before_the_disk_is_full() {
    let Some(mounted) = Mounted::tmpfs("size=64m") else { return };
    let ballast = mounted.ballast(20 << 20);
    let free_bytes_min = 16 << 20;
    let watching = StoreOptions { free_bytes_min, ..options() };
    let store = Store::open(&mounted.path(), watching.clone()).unwrap();
    assert!(mounted.path().join("reserve").exists());
    let error = (0..100_000u32)
        .find_map(|number| {
            let key = hashed_key(&[&number.to_le_bytes()]);
            store.write_blocking(put(Tree::Sessions, &key, &[1; 4000])).err()
        })
        .expect("room runs out");
    assert!(matches!(error, StoreError::ReadOnly { .. }), "{error}");
    assert!(error.to_string().contains("make room there"), "{error}");
    let file_system = rustix::fs::statvfs(mounted.0.path()).unwrap();
    let free = file_system.f_bavail * file_system.f_frsize;
    assert!(free > free_bytes_min / 2, "{free} left");
    let refused = store.write_behind(put(Tree::Sessions, b"k", b"v"));
    let refused = refused.expect_err("the store is read-only");
    assert!(matches!(refused.error, StoreError::ReadOnly { .. }), "{refused:?}");
    assert_eq!(refused.batch.len(), 1, "what was refused comes back");
    assert!(!rows(&store, Tree::Sessions).is_empty());

    // A restart finds the same shortage, reads, and still does not write.
    store.stop().unwrap();
    let store = Store::open(&mounted.path(), watching).unwrap();
    assert!(matches!(store.state(), StoreState::ReadOnly { .. }));
    assert!(!rows(&store, Tree::Sessions).is_empty());
    fs::remove_file(ballast).unwrap();
    wait_until("healthy", || is_healthy(&store));
    store.write_blocking(put(Tree::Sessions, b"k", b"v")).unwrap();
    store.stop().unwrap();
}

#[test]
fn a_read_only_file_system_is_named() {
    let Some(mounted) = Mounted::tmpfs("size=16m,ro") else { return };
    for directory in [mounted.path(), mounted.0.path().to_owned()] {
        let error = Store::open(&directory, options()).unwrap_err();
        assert!(matches!(error, StoreError::Directory { .. }), "{error}");
        assert!(error.to_string().contains(&directory.display().to_string()), "{error}");
        assert!(error.to_string().contains("writable"), "{error}");
    }
}

#[test]
fn a_file_in_the_place_of_the_directory_is_named() {
    let file = tempfile::NamedTempFile::new().unwrap();
    for directory in [file.path().to_owned(), file.path().join("below")] {
        let error = Store::open(&directory, options()).unwrap_err();
        assert!(matches!(error, StoreError::Directory { .. }), "{error}");
        assert!(error.to_string().contains(&file.path().display().to_string()), "{error}");
    }
}

#[test]
fn a_store_on_a_full_disk_opens_read_only_with_the_room_of_its_reserve() {
    let Some(mounted) = Mounted::tmpfs("size=40m") else { return };
    let store = open(&mounted.path());
    store.write_blocking(put(Tree::Keys, b"k", b"v")).unwrap();
    for number in 0..500u32 {
        let key = hashed_key(&[&number.to_le_bytes()]);
        store.write_blocking(put(Tree::Sessions, &key, &[1; 1000])).unwrap();
    }
    store.stop().unwrap();
    // As a crash leaves it.
    fs::remove_file(mounted.path().join("closed")).unwrap();
    let ballast = mounted.0.path().join("ballast");
    let fill = || {
        let mut file = fs::OpenOptions::new().append(true).create(true).open(&ballast).unwrap();
        while std::io::Write::write_all(&mut file, &[0; 4096]).is_ok() {}
    };
    fill();
    let store = open(&mounted.path());
    assert!(!mounted.path().join("reserve").exists());
    assert!(matches!(store.state(), StoreState::ReadOnly { .. }), "{store:?}");
    assert_eq!(store.get_blocking(Tree::Keys, b"k").unwrap().unwrap(), b"v");
    assert_eq!(rows(&store, Tree::Sessions).len(), 500);
    store.stop().unwrap();

    // Without a reserve there is nothing to give up.
    fs::remove_file(mounted.path().join("closed")).unwrap();
    fill();
    match Store::open(&mounted.path(), options()) {
        Ok(store) => {
            assert!(matches!(store.state(), StoreState::ReadOnly { .. }), "{store:?}");
            store.stop().unwrap();
        }
        Err(error) => {
            assert!(matches!(error, StoreError::NoRoom { .. }), "{error}");
            let text = error.to_string();
            assert!(text.contains("the disk is full") && text.contains("4096 KiB"), "{text}");
            assert!(text.contains(&mounted.path().display().to_string()), "{text}");
        }
    }
    fs::remove_file(&ballast).unwrap();
    let store = open(&mounted.path());
    assert_eq!(store.state(), StoreState::Healthy);
    assert_eq!(rows(&store, Tree::Sessions).len(), 500);
    store.stop().unwrap();
}

#[test]
fn an_engine_that_does_not_close_holds_nobody() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    store.write_blocking(put(Tree::Keys, b"before", b"v")).unwrap();
    let [failing, held] = [FAILING_NAME, HELD_NAME].map(|name| directory.path().join(name));
    let fail = || {
        fs::write(&failing, "").unwrap();
        fs::write(&held, "").unwrap();
        let error = store.write_blocking(put(Tree::Keys, b"failed", b"v")).unwrap_err();
        assert!(matches!(error, StoreError::ReadOnly { .. }), "{error}");
        let says_why = |state| match state {
            StoreState::ReadOnly { reason } => reason.contains("does not let go"),
            StoreState::Healthy => false,
        };
        wait_until("told", || says_why(store.state()));
        assert!(store.get_blocking(Tree::Keys, b"before").is_err());
        fs::remove_file(&failing).unwrap();
    };
    fail();
    // It is reopened as soon as it has let go.
    fs::remove_file(&held).unwrap();
    wait_until("healthy", || is_healthy(&store));
    assert_eq!(store.get_blocking(Tree::Keys, b"before").unwrap().unwrap(), b"v");
    store.write_blocking(put(Tree::Keys, b"after", b"v")).unwrap();
    // And the end does not wait for it.
    fail();
    let begin = Instant::now();
    store.stop().unwrap();
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    fs::remove_file(&held).unwrap();
}
