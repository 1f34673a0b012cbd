//! House rules that no compiler checks: which room may import which, who may name the crates
//! behind a room's door, what sans-IO rooms must not touch, and how large a file may grow.
//!
//! A rule is changed here and in the map of `src/lib.rs` together, with the reason in the commit.
#![expect(clippy::unwrap_used, reason = "a check that cannot read the source has failed")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The floors of the house, lowest first. A room imports from lower floors only.
const FLOORS: &[&[&str]] = &[
    &["rt", "http", "json", "rpc", "xml"],
    &["store", "audit", "telemetry", "settings"],
    &["catalog", "mapping"],
    &["mcp", "sessions", "streams", "identity", "governance", "import"],
    &["downstream"],
    &["server"],
    &["cli"],
];

/// Imports within one floor that are part of the design.
const SIDEWAYS: &[(&str, &str)] = &[
    ("rpc", "json"),
    ("telemetry", "settings"),
    ("store", "settings"),
    ("audit", "settings"),
    ("audit", "telemetry"),
    ("catalog", "mapping"),
    ("mcp", "sessions"),
    ("sessions", "streams"),
    ("governance", "identity"),
];

/// Crates that only their own rooms may name.
const DOORS: &[(&str, &[&str])] = &[
    ("monoio", &["rt"]),
    ("io_uring", &["rt"]),
    ("sled", &["store"]),
    ("sonic_rs", &["json"]),
    ("rustls", &["rt", "identity"]),
    ("roxmltree", &["xml"]),
];

/// Rooms without sockets, files, clocks, randomness and threads.
const SANS_IO: &[&str] = &[
    "http",
    "json",
    "rpc",
    "xml",
    "catalog",
    "mapping",
    "mcp",
    "sessions",
    "streams",
    "identity",
    "governance",
    "import",
];

/// Reads the operator's catalog files, at start and from the command line, never on a core.
const MAY_READ_FILES: &[&str] = &["src/catalog/files.rs", "src/catalog/files/"];

const IO_WORDS: &[&str] = &[
    "std::fs",
    "std::thread",
    "std::process",
    "std::env",
    "TcpStream",
    "TcpListener",
    "UdpSocket",
    "UnixStream",
    "Instant::now",
    "SystemTime::now",
    "aws_lc_rs::rand",
    "getrandom",
];

/// Names that say nothing about what is inside.
const EMPTY_NAMES: &[&str] = &["util", "utils", "helper", "helpers", "common", "misc", "manager"];

const FILE_LINES_MAX: usize = 700;
const FILE_LINES_AIM: usize = 500;

struct Source {
    /// Relative to the repository, with forward slashes.
    name: String,
    text: String,
}

impl Source {
    /// The room this file belongs to; `None` for `lib.rs`, `main.rs` and what is outside `src`.
    fn room(&self) -> Option<&str> {
        let (room, rest) = self.name.strip_prefix("src/")?.split_once('/')?;
        (!rest.is_empty()).then_some(room)
    }

    /// Line numbers and lines that are code: comments, and so documentation, left out.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text
            .lines()
            .enumerate()
            .map(|(at, line)| (at + 1, line))
            .filter(|(_, line)| !line.trim_start().starts_with("//"))
    }

    fn is_tests(&self) -> bool {
        self.name.ends_with("tests.rs") || self.name.contains("/tests/")
    }

    /// As `code`, up to the unit tests at the end of the file.
    fn product_code(&self) -> impl Iterator<Item = (usize, &str)> {
        let mut inside = !self.is_tests();
        self.code().take_while(move |(_, line)| {
            inside = inside && !line.starts_with("mod tests {");
            inside
        })
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn rust_files(folder: &str) -> Vec<Source> {
    let mut waiting = vec![root().join(folder)];
    let mut found: Vec<PathBuf> = Vec::new();
    while let Some(directory) = waiting.pop() {
        let Ok(entries) = fs::read_dir(&directory) else { continue };
        for path in entries.map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                let hidden = path.file_name().unwrap().to_string_lossy().starts_with('.');
                if !hidden {
                    waiting.push(path);
                }
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
        .into_iter()
        .map(|path| Source {
            name: path.strip_prefix(root()).unwrap().to_string_lossy().replace('\\', "/"),
            text: fs::read_to_string(&path).unwrap(),
        })
        .collect()
}

fn floor(room: &str) -> Option<usize> {
    FLOORS.iter().position(|rooms| rooms.contains(&room))
}

fn is_word(byte: Option<u8>) -> bool {
    byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Whether `line` has `name` as a whole word followed by `::` or `;` or ` as `: a crate's name.
fn names_crate(line: &str, name: &str) -> bool {
    line.match_indices(name).any(|(at, _)| {
        let before = at.checked_sub(1).map(|at| line.as_bytes()[at]);
        let after = &line[at + name.len()..];
        let inside_path = before == Some(b':') && !line[..at].trim_end().ends_with(" ::");
        let ends = after.starts_with("::")
            || (line.trim_start().starts_with("use ")
                && (after.starts_with(';') || after.starts_with(" as ")));
        !is_word(before) && !inside_path && ends
    })
}

/// The rooms a line imports: `crate::room` and each name of `crate::{room, room::thing}`.
fn imports(line: &str) -> Vec<String> {
    let mut rooms = Vec::new();
    for (at, _) in line.match_indices("crate::") {
        if is_word(at.checked_sub(1).map(|at| line.as_bytes()[at])) {
            continue;
        }
        let rest = &line[at + "crate::".len()..];
        match rest.strip_prefix('{') {
            Some(group) => {
                let mut depth = 0_u32;
                let mut name = String::new();
                let mut naming = true;
                for letter in group.chars() {
                    match letter {
                        '{' => depth += 1,
                        '}' if depth == 0 => break,
                        '}' => depth -= 1,
                        ',' if depth == 0 => {
                            rooms.push(std::mem::take(&mut name));
                            naming = true;
                        }
                        ':' if depth == 0 => naming = false,
                        letter if naming && depth == 0 && !letter.is_whitespace() => {
                            name.push(letter);
                        }
                        _ => {}
                    }
                }
                rooms.push(name);
            }
            None => rooms.push(
                rest.chars()
                    .take_while(|letter| letter.is_alphanumeric() || *letter == '_')
                    .collect(),
            ),
        }
    }
    rooms.retain(|room| !room.is_empty());
    rooms
}

/// `use crate::{` may run over several lines; joins them so that `imports` sees one.
fn joined(source: &Source) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    let mut open = false;
    for (at, line) in source.code() {
        if open {
            if let Some((_, last)) = lines.last_mut() {
                last.push_str(line.trim());
            }
        } else {
            lines.push((at, line.to_owned()));
            open = line.contains("crate::{");
        }
        open = open && !line.contains(';');
    }
    lines
}

fn report(broken: &[String]) {
    assert!(broken.is_empty(), "\n{}\n", broken.join("\n"));
}

#[test]
fn imports_point_down() {
    let mut broken = Vec::new();
    for source in rust_files("src") {
        let Some(room) = source.room() else { continue };
        let Some(own) = floor(room) else {
            broken.push(format!("{}: room `{room}` has no floor in tests/layers.rs", source.name));
            continue;
        };
        for (at, line) in joined(&source) {
            for other in imports(&line) {
                let Some(theirs) = floor(&other) else { continue };
                let sideways = SIDEWAYS.contains(&(room, other.as_str()));
                if other != room && theirs >= own && !sideways {
                    broken
                        .push(format!("{}:{at}: `{room}` must not import `{other}`", source.name));
                }
            }
        }
    }
    report(&broken);
}

#[test]
fn crates_stay_behind_their_room() {
    let mut broken = Vec::new();
    for source in rust_files("src") {
        let room = source.room().unwrap_or("the crate root");
        for (at, line) in source.code() {
            for (name, rooms) in DOORS {
                if names_crate(line, name) && !rooms.contains(&room) {
                    broken.push(format!("{}:{at}: `{name}` is named in `{room}`", source.name));
                }
            }
        }
    }
    report(&broken);
}

#[test]
fn sans_io_rooms_do_no_io() {
    let mut broken = Vec::new();
    for source in rust_files("src") {
        let sans_io = source.room().is_some_and(|room| SANS_IO.contains(&room));
        let exempt = MAY_READ_FILES.iter().any(|allowed| source.name.starts_with(allowed));
        if !sans_io || exempt {
            continue;
        }
        for (at, line) in source.product_code() {
            for word in IO_WORDS.iter().filter(|word| line.contains(**word)) {
                broken.push(format!("{}:{at}: `{word}` in a sans-IO room", source.name));
            }
        }
    }
    report(&broken);
}

#[test]
fn unsafe_code_is_in_one_file_of_rt() {
    let allowing: Vec<String> = rust_files("src")
        .into_iter()
        .filter(|source| source.code().any(|(_, line)| line.contains("(unsafe_code")))
        .map(|source| source.name)
        .collect();
    assert!(allowing.len() <= 1, "unsafe code in more than one file: {allowing:?}");
    assert!(allowing.iter().all(|name| name.starts_with("src/rt/")), "outside rt: {allowing:?}");
}

#[test]
fn files_are_named_and_sized_to_be_read() {
    let mut broken = Vec::new();
    for source in ["src", "tests", "benches"].into_iter().flat_map(rust_files) {
        let lines = source.text.lines().count();
        if lines > FILE_LINES_MAX {
            broken.push(format!("{}: {lines} lines, more than {FILE_LINES_MAX}", source.name));
        } else if lines > FILE_LINES_AIM {
            println!("{}: {lines} lines, the aim is {FILE_LINES_AIM}", source.name);
        }
        let named_empty =
            source.name.trim_end_matches(".rs").split('/').any(|part| EMPTY_NAMES.contains(&part));
        let declares_empty = source.code().any(|(_, line)| {
            let declared =
                line.trim_start().trim_start_matches("pub(crate) ").trim_start_matches("pub ");
            declared
                .strip_prefix("mod ")
                .is_some_and(|name| EMPTY_NAMES.contains(&name.trim_end_matches([';', '{', ' '])))
        });
        if named_empty || declares_empty {
            broken.push(format!("{}: a module's name says what is inside it", source.name));
        }
    }
    report(&broken);
}

#[test]
fn every_room_says_what_it_is() {
    let mut broken = Vec::new();
    for source in rust_files("src") {
        if !source.text.starts_with("//! ") && !source.is_tests() {
            broken.push(format!("{}: no doc comment at the top", source.name));
        }
        if source.text.starts_with("//! (to be written)") {
            broken.push(format!("{}: the doc comment is a placeholder", source.name));
        }
    }
    report(&broken);
}

#[test]
fn no_second_runtime_and_no_second_tls_in_the_tree() {
    let tree = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--edges", "normal,build,dev", "--prefix", "none"])
        .args(["--format", "{p}"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let text = String::from_utf8(tree.stdout).unwrap();
    let banned = |name: &str| {
        let family = |root: &str| {
            name == root || name.strip_prefix(root).is_some_and(|rest| rest.starts_with(['-', '_']))
        };
        family("tokio")
            || family("hyper")
            || ["async-std", "smol", "openssl", "openssl-sys", "native-tls", "ring"].contains(&name)
    };
    let found: Vec<&str> =
        text.lines().filter(|line| line.split(' ').next().is_some_and(banned)).collect();
    assert!(found.is_empty(), "{found:?}");
    assert!(text.lines().any(|line| line.starts_with("monoio v0.2.4")), "monoio is pinned");
    assert!(text.lines().any(|line| line.starts_with("sled v0.34.7")), "sled is pinned");
}

#[test]
fn the_rules_see_what_they_are_for() {
    assert_eq!(
        imports("use crate::{rt, http::{Limits, Method}, json::Raw};"),
        ["rt", "http", "json"]
    );
    assert_eq!(imports("    let id = crate::rpc::code::PARSE_ERROR;"), ["rpc"]);
    assert_eq!(imports("use supercrate::rt;"), Vec::<String>::new());
    assert!(names_crate("use monoio::net::TcpStream;", "monoio"));
    assert!(names_crate("    ::sled::open(path)", "sled"));
    assert!(names_crate("use rustls as tls;", "rustls"));
    assert!(!names_crate("let bundled = assembled::open();", "sled"));
    assert!(!names_crate("tracing::info!(target: \"io_uring\")", "io_uring"));
    assert!(!names_crate("use crate::rt::rustls::Stream;", "rustls"));
}
