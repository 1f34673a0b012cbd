//! Processes that die, files that are damaged, processes that compete.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use super::*;
use crate::scratch;

/// Makes [`child`] act: what to do, a colon, the directory.
const CHILD_VARIABLE: &str = "RINGWAY_STORE_TEST_CHILD";

/// Not a test of its own: the process that the tests below start and kill.
#[test]
fn child() {
    let Ok(role) = std::env::var(CHILD_VARIABLE) else { return };
    let (role, directory) = role.split_once(':').unwrap();
    let store = open(Path::new(directory));
    println!("\nopen");
    match role {
        "holds" => drop(std::io::stdin().read(&mut [0])),
        "writes" => {
            for number in 0u64.. {
                // A pair in one tree: both or none may be found.
                let mut batch = Batch::new();
                let value = vec![number as u8; 300];
                batch.put(Tree::Sessions, &hashed_key(&[b"left", &number.to_le_bytes()]), &value);
                batch.put(Tree::Sessions, &hashed_key(&[b"right", &number.to_le_bytes()]), &value);
                store.write_blocking(batch).unwrap();
                println!("{number}");
            }
        }
        "writes behind" => {
            for number in 0u64.. {
                let key = hashed_key(&[&number.to_le_bytes()]);
                store.write_behind(put(Tree::Sessions, &key, &[0; 300])).unwrap();
                println!("{number}");
                thread::park_timeout(Duration::from_millis(1));
            }
        }
        "floods behind" => {
            for number in 0u64.. {
                let key = hashed_key(&[&number.to_le_bytes()]);
                store.write_behind(put(Tree::Sessions, &key, &[0; 300])).unwrap();
                println!("{}", number << 32 | now_ms());
                if number % 10 == 9 {
                    thread::park_timeout(Duration::from_micros(400));
                }
            }
        }
        "churns" => {
            for number in 0u64.. {
                let mut batch = Batch::new();
                // More and fewer rows in turn, in the trees that are counted.
                for key in 0..number % 40 {
                    let tree = if key % 2 == 0 { Tree::Catalog } else { Tree::Keys };
                    if number / 40 % 2 == 0 {
                        batch.put(tree, &key.to_be_bytes(), &number.to_le_bytes());
                    } else {
                        batch.remove(tree, &key.to_be_bytes());
                    }
                }
                batch.put(Tree::Sessions, &hashed_key(&[&[number as u8]]), &[1; 300]);
                if number % 3 == 0 {
                    store.write_blocking(batch).unwrap();
                } else {
                    store.write_behind(batch).unwrap();
                }
                if number % 7 == 0 {
                    store.get_blocking(Tree::Keys, b"k").unwrap();
                }
                println!("{number}");
            }
        }
        other => panic!("unknown role {other}"),
    }
}

/// Milliseconds of the clock both processes read; 32 bits of them.
fn now_ms() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    now.as_millis() as u64 & u64::from(u32::MAX)
}

/// A child process, its lines after "open".
pub(super) struct Running {
    process: Child,
    pub(super) lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Running {
    pub(super) fn start(role: &str, directory: &Path) -> Self {
        let mut process = Self::spawn(role, directory);
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        while lines.next().expect("the child opens the store").unwrap() != "open" {}
        Self { process, lines }
    }

    fn spawn(role: &str, directory: &Path) -> Child {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "store::tests::crash::child", "--nocapture", "--test-threads=1"])
            .env(CHILD_VARIABLE, format!("{role}:{}", directory.display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// SIGKILL, and what it had still said.
    pub(super) fn kill(mut self) -> Vec<u64> {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        self.lines.map_while(Result::ok).filter_map(|line| line.parse().ok()).collect()
    }
}

#[test]
fn no_acknowledged_write_is_lost_by_kill_9() {
    let directory = tempfile::tempdir().unwrap();
    for round in 0..6u64 {
        let mut child = Running::start("writes", directory.path());
        let wanted = 20 + 37 * round;
        let mut last = None;
        while last.is_none_or(|last| last < wanted) {
            last = child.lines.next().unwrap().unwrap().parse().ok().or(last);
        }
        let last = child.kill().last().copied().or(last).unwrap();
        let store = open(directory.path());
        let find = |side: &[u8], number: u64| {
            let key = hashed_key(&[side, &number.to_le_bytes()]);
            store.get_blocking(Tree::Sessions, &key).unwrap()
        };
        for number in 0..=last {
            assert_eq!(find(b"left", number), Some(vec![number as u8; 300]), "{round} {number}");
            assert_eq!(find(b"right", number), Some(vec![number as u8; 300]), "{round} {number}");
        }
        for number in last..last + 10 {
            assert_eq!(find(b"left", number), find(b"right", number), "torn batch {number}");
        }
        let mut batch = Batch::new();
        for (key, _) in rows(&store, Tree::Sessions) {
            batch.remove(Tree::Sessions, &key);
        }
        store.write_blocking(batch).unwrap();
        store.stop().unwrap();
    }
}

#[test]
fn kill_9_costs_at_most_the_flush_interval() {
    // What a busy machine may add to the store's own promise.
    const SLACK: Duration = Duration::from_millis(500);
    let promise = Duration::from_millis(options().flush_ms) + SLACK;
    let directory = tempfile::tempdir().unwrap();
    let mut child = Running::start("writes behind", directory.path());
    let mut accepted = Vec::new();
    let start = Instant::now();
    while start.elapsed() < promise * 2 {
        if let Ok(number) = child.lines.next().unwrap().unwrap().parse::<u64>() {
            accepted.push((number, Instant::now()));
        }
    }
    let killed = Instant::now();
    child.kill();
    let store = open(directory.path());
    let promised = accepted.iter().filter(|(_, at)| *at + promise <= killed).count();
    assert!(promised > 10, "{promised} of {}", accepted.len());
    for (number, _) in &accepted[..promised] {
        let key = hashed_key(&[&number.to_le_bytes()]);
        assert!(store.get_blocking(Tree::Sessions, &key).unwrap().is_some(), "{number}");
    }
    store.stop().unwrap();
}

/// The longest that an accepted write was not on disk under a load of many thousands a second.
#[test]
fn a_flood_is_on_disk_when_it_was_promised_to_be() {
    const SLACK_MS: u64 = 500;
    let mut oldest_ms = 0;
    for _ in 0..3 {
        let directory = tempfile::tempdir().unwrap();
        let child = Running::start("floods behind", directory.path());
        let reader = thread::spawn({
            let Running { mut process, lines } = child;
            move || {
                let start = Instant::now();
                let mut accepted = Vec::new();
                let mut killed_ms = None;
                for line in lines.map_while(Result::ok) {
                    accepted.extend(line.parse::<u64>());
                    if killed_ms.is_none() && start.elapsed() > Duration::from_millis(700) {
                        killed_ms = Some(now_ms());
                        process.kill().unwrap();
                    }
                }
                process.wait().unwrap();
                (accepted, killed_ms.unwrap())
            }
        });
        let (accepted, killed_ms) = reader.join().unwrap();
        let store = open(directory.path());
        for line in &accepted {
            let (number, at_ms) = (line >> 32, line & u64::from(u32::MAX));
            let key = hashed_key(&[&number.to_le_bytes()]);
            if store.get_blocking(Tree::Sessions, &key).unwrap().is_none() {
                oldest_ms = oldest_ms.max(killed_ms.saturating_sub(at_ms));
                break;
            }
        }
        eprintln!("{} accepted, oldest lost {oldest_ms} ms", accepted.len());
        store.stop().unwrap();
    }
    assert!(oldest_ms <= options().flush_ms + SLACK_MS, "{oldest_ms} ms");
}

/// Every moment of writing, removing and reading: what a kill leaves is never called damaged.
#[test]
fn a_store_that_was_killed_is_never_refused() {
    let directory = tempfile::tempdir().unwrap();
    for round in 0..15u64 {
        let mut child = Running::start("churns", directory.path());
        for _ in 0..round * 11 % 83 {
            child.lines.next().unwrap().unwrap();
        }
        thread::park_timeout(Duration::from_micros(round * 3701 % 9000));
        child.kill();
        let store = open(directory.path());
        if round % 3 == 0 {
            store.stop().unwrap();
        }
    }
}

/// From the first start on: neither what it leaves, nor what the next one does about it.
#[test]
fn a_start_that_was_killed_does_not_hinder_the_next() {
    let directory = tempfile::tempdir().unwrap();
    for round in 0..60u64 {
        let mut child = Running::spawn("churns", directory.path());
        thread::park_timeout(Duration::from_micros(2000 + round * 7919 % 20_000));
        child.kill().unwrap();
        child.wait().unwrap();
        if round % 10 == 9 {
            let store = open(directory.path());
            if round % 20 == 9 {
                store.stop().unwrap();
            } else {
                drop(store);
            }
            let fresh = tempfile::tempdir().unwrap();
            for wait_us in (2000..20_000).step_by(1500) {
                let mut child = Running::spawn("churns", fresh.path());
                thread::park_timeout(Duration::from_micros(wait_us));
                child.kill().unwrap();
                child.wait().unwrap();
            }
            open(fresh.path()).stop().unwrap();
        }
    }
}

#[test]
fn a_first_start_that_was_killed_while_it_wrote_its_parameters_can_be_repeated() {
    let made = tempfile::tempdir().unwrap();
    open(made.path()).stop().unwrap();
    let whole = fs::read(made.path().join("conf")).unwrap();
    for length in 0..whole.len() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("conf"), &whole[..length]).unwrap();
        if length % 7 == 0 || length + 8 > whole.len() {
            open(directory.path()).stop().unwrap();
        }
    }
    // Of a finished store they are left alone: their damage is told.
    fs::write(made.path().join("conf"), &whole[..whole.len() - 4]).unwrap();
    assert!(Store::open(made.path(), options()).is_err());
    assert_eq!(fs::read(made.path().join("conf")).unwrap(), &whole[..whole.len() - 4]);
}

/// A directory whose store was written and not closed, and how many of its rows were promised.
fn killed(directory: &Path) -> u64 {
    let mut child = Running::start("writes", directory);
    let mut last = 0;
    while last < 300 {
        last = child.lines.next().unwrap().unwrap().parse().unwrap_or(last);
    }
    child.kill().last().copied().unwrap_or(last)
}

fn engine_content(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut content = content(directory);
    content.retain(|path, _| {
        let name = path.rsplit('/').next().unwrap();
        !path.contains("/opened") && (name == "db" || name == "conf" || name.starts_with("snap."))
    });
    content
}

#[test]
fn a_damaged_byte_is_never_a_silent_loss() {
    for is_closed in [false, true] {
        let origin = scratch::in_memory();
        let last = killed(origin.path());
        if is_closed {
            open(origin.path()).stop().unwrap();
        }
        let log = fs::read(origin.path().join("db")).unwrap();
        let end = log.iter().rposition(|byte| *byte != 0).unwrap();
        let mut refused = 0;
        for step in 0..24 {
            let copy = scratch::in_memory();
            for (path, bytes) in content(origin.path()) {
                if !path.contains("/opened") {
                    let name = Path::new(&path).file_name().unwrap();
                    fs::write(copy.path().join(name), bytes).unwrap();
                }
            }
            let mut damaged = log.clone();
            damaged[end * step / 24 + 1] ^= 0xff;
            fs::write(copy.path().join("db"), damaged).unwrap();
            let before = engine_content(copy.path());
            match Store::open(copy.path(), options()) {
                // Where nothing of the store was.
                Ok(store) => {
                    for number in 0..=last {
                        let key = hashed_key(&[b"left", &number.to_le_bytes()]);
                        let found = store.get_blocking(Tree::Sessions, &key).unwrap();
                        assert_eq!(found, Some(vec![number as u8; 300]), "{step} {number}");
                    }
                    store.stop().unwrap();
                }
                Err(error) => {
                    refused += 1;
                    assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
                    assert!(error.to_string().contains(&copy.path().display().to_string()));
                    assert!(engine_content(copy.path()) == before, "{step} {error}");
                    let again = Store::open(copy.path(), options()).unwrap_err();
                    assert_eq!(again.to_string(), error.to_string());
                    assert!(engine_content(copy.path()) == before, "{step} {again}");
                }
            }
        }
        eprintln!("closed: {is_closed}: {refused} of 24 refused");
        assert!(refused > if is_closed { 23 } else { 12 }, "{refused}");
    }
}

#[test]
fn a_copy_is_kept_of_what_a_crash_left() {
    let directory = tempfile::tempdir().unwrap();
    killed(directory.path());
    let left = fs::read(directory.path().join("db")).unwrap();
    open(directory.path()).stop().unwrap();
    assert!(fs::read(directory.path().join("opened/db")).unwrap() == left);
    // An orderly stop leaves nothing to copy.
    open(directory.path()).stop().unwrap();
    assert!(fs::read(directory.path().join("opened/db")).unwrap() == left);
}

#[test]
fn others_cannot_read_what_is_in_it() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().unwrap();
    let open_to_all = fs::Permissions::from_mode(0o755);
    fs::set_permissions(directory.path(), open_to_all.clone()).unwrap();
    for _ in 0..2 {
        let store = open(directory.path());
        store.write_blocking(put(Tree::Keys, b"k", &vec![1; 2 << 20])).unwrap();
        for path in content(directory.path()).into_keys() {
            let mode = fs::metadata(&path).unwrap().permissions().mode();
            let is_closed = mode.trailing_zeros() >= 6;
            // A directory nobody else may enter is around these.
            assert!(is_closed || path.contains("/blobs/"), "{path} {mode:o}");
        }
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(directory.path()), 0o700);
        assert_eq!(mode(&directory.path().join("blobs")), 0o700);
        store.stop().unwrap();
        // As an earlier version, or a copy, leaves it.
        fs::set_permissions(directory.path(), open_to_all.clone()).unwrap();
        fs::set_permissions(directory.path().join("db"), open_to_all.clone()).unwrap();
    }
}

#[test]
fn another_process_is_named_as_the_reason() {
    let directory = tempfile::tempdir().unwrap();
    let child = Running::start("holds", directory.path());
    // Belongs to the other process: it may be writing this very file.
    let leftover = directory.path().join("snap.0000000000000001.generating");
    fs::write(&leftover, "half").unwrap();
    let error = Store::open(directory.path(), options()).unwrap_err();
    assert!(matches!(error, StoreError::InUse { .. }), "{error}");
    assert!(error.to_string().contains(&directory.path().display().to_string()), "{error}");
    assert!(leftover.exists());
    child.kill();
    open(directory.path()).stop().unwrap();
    assert!(!leftover.exists());
}

/// A store with rows and a snapshot; the snapshot's path.
fn with_snapshot(directory: &Path) -> std::path::PathBuf {
    for _ in 0..2 {
        let store = open(directory);
        for number in 0..200u32 {
            let key = hashed_key(&[&number.to_le_bytes()]);
            store.write_behind(put(Tree::Sessions, &key, &number.to_le_bytes())).unwrap();
        }
        store.stop().unwrap();
    }
    snapshots(directory).pop().expect("sled writes a snapshot when it opens")
}

fn snapshots(directory: &Path) -> Vec<std::path::PathBuf> {
    let paths = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    paths.filter(|path| path.to_string_lossy().contains("/snap.")).collect()
}

#[test]
fn an_interrupted_snapshot_is_cleared_away() {
    let directory = tempfile::tempdir().unwrap();
    let snapshot = with_snapshot(directory.path());
    let bytes = fs::read(&snapshot).unwrap();
    // Named like the newest one, and cut in the middle: what a kill during its writing leaves.
    let leftover = directory.path().join("snap.FFFFFFFFFFFFFFFF.generating");
    fs::write(&leftover, &bytes[..bytes.len() / 2]).unwrap();
    let store = open(directory.path());
    assert!(!leftover.exists());
    assert_eq!(rows(&store, Tree::Sessions).len(), 200);
    store.stop().unwrap();
}

#[test]
fn a_damaged_snapshot_is_moved_aside_and_rebuilt_from_the_log() {
    let directory = tempfile::tempdir().unwrap();
    let snapshot = with_snapshot(directory.path());
    let bytes = fs::read(&snapshot).unwrap();
    fs::write(&snapshot, &bytes[..bytes.len() / 2]).unwrap();
    let store = open(directory.path());
    let mut found: Vec<_> = rows(&store, Tree::Sessions).into_iter().map(|(_, v)| v).collect();
    found.sort_by_key(|value| u32::from_le_bytes(value.as_slice().try_into().unwrap()));
    let expected: Vec<_> = (0..200u32).map(|number| number.to_le_bytes().to_vec()).collect();
    assert_eq!(found, expected);
    store.stop().unwrap();
    let names: Vec<_> = content(directory.path()).into_keys().collect();
    assert!(names.iter().any(|name| name.contains("/aside.snap.")), "{names:?}");
    open(directory.path()).stop().unwrap();
}

#[test]
fn a_log_cut_short_is_an_error_that_says_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    for number in 0..3000u32 {
        let key = hashed_key(&[&number.to_le_bytes()]);
        store.write_behind(put(Tree::Sessions, &key, &[1; 1000])).unwrap();
    }
    store.stop().unwrap();
    // First with a snapshot from before the records, then with one that knows them.
    for round in 0..2 {
        for part in [2, 3, 5, 100, 100_000_000] {
            refuses_log_cut_to(directory.path(), part, round);
        }
        open(directory.path()).stop().unwrap();
    }
}

fn refuses_log_cut_to(directory: &Path, part: u64, round: u32) {
    let copy = tempfile::tempdir().unwrap();
    for (path, bytes) in content(directory) {
        let name = Path::new(&path).file_name().unwrap();
        fs::write(copy.path().join(name), bytes).unwrap();
    }
    let log = fs::OpenOptions::new().write(true).open(copy.path().join("db")).unwrap();
    log.set_len(log.metadata().unwrap().len() / part).unwrap();
    // Also at the second try: nothing was made anew in its place.
    for _ in 0..2 {
        let error = match Store::open(copy.path(), options()) {
            Err(error) => error,
            Ok(store) => panic!("{round} {part} {}", rows(&store, Tree::Sessions).len()),
        };
        assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains(&copy.path().display().to_string()), "{text}");
        assert!(text.contains("backup"), "{text}");
    }
}
