//! Processes that die, files that are damaged, processes that compete.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use super::*;

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
        other => panic!("unknown role {other}"),
    }
}

/// A child process, its lines after "open".
struct Running {
    process: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Running {
    fn start(role: &str, directory: &Path) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "store::tests::crash::child", "--nocapture", "--test-threads=1"])
            .env(CHILD_VARIABLE, format!("{role}:{}", directory.display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        while lines.next().expect("the child opens the store").unwrap() != "open" {}
        Self { process, lines }
    }

    /// SIGKILL, and what it had still said.
    fn kill(mut self) -> Vec<u64> {
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
