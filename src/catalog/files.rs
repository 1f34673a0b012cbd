//! Reading declarative files: from paths to entities, with the line of everything that is wrong.
//!
//! The only part of this room that touches the file system; it runs at start and in commands, never
//! on a core.

use std::fs::{self, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::OFlags;

use super::entities::ENTITIES_MAX;
use super::formats::Format;
use super::tree::{self, Node, Value};
use super::{Entities, Entity, EntityName, Entry, Kind, Origin, PROBLEMS_MAX, Problem};

/// Largest declarative file.
pub const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Most files in one directory.
pub const FILES_MAX: usize = 10_000;

/// Reads files, and of directories every `.toml`, `.yaml`, `.yml` and `.json` file in the order of
/// their names. Subdirectories and hidden files are left out.
///
/// What can be read is returned even where something else cannot, so that one run shows everything
/// that is wrong: call [`Entities::check`] on the result for what only shows in the whole.
pub fn read(paths: &[PathBuf]) -> (Entities, Vec<Problem>) {
    let mut reading = Reading::new(ENTITIES_MAX);
    for path in paths {
        if path.is_dir() {
            match files_of(path) {
                Ok(files) => files.iter().for_each(|file| reading.file(file)),
                Err(error) => reading.unreadable(&Origin::new(path, 0), &error.to_string()),
            }
        } else {
            reading.file(path);
        }
    }
    reading.duplicates();
    (reading.entities, reading.problems)
}

/// Reads text as the content of a file of that name, whose ending tells the format.
pub fn read_text(file: &Path, text: &str) -> (Entities, Vec<Problem>) {
    let mut reading = Reading::new(ENTITIES_MAX);
    reading.text(&Origin::new(file, 0), text);
    (reading.entities, reading.problems)
}

/// What files look like from outside: alike where nothing was written meanwhile.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fingerprint(Vec<(PathBuf, Option<Look>)>);

/// Modification time, size, and the file itself: a new one may have the time of the old.
type Look = (i64, i64, u64, u64, u64);

/// Looks at the files that [`read`] would read.
pub fn fingerprint(paths: &[PathBuf]) -> Fingerprint {
    let look = |path: &Path| {
        let data = fs::metadata(path).ok()?;
        Some((data.mtime(), data.mtime_nsec(), data.size(), data.dev(), data.ino()))
    };
    let mut looks = Vec::new();
    for path in paths {
        if path.is_dir() {
            let files = files_of(path).unwrap_or_default();
            looks.extend(files.into_iter().map(|file| {
                let look = look(&file);
                (file, look)
            }));
        } else {
            looks.push((path.clone(), look(path)));
        }
    }
    Fingerprint(looks)
}

fn format_of(path: &Path) -> Option<Format> {
    path.extension().and_then(|extension| extension.to_str()).and_then(Format::of_extension)
}

fn files_of(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let path = entry.path();
        let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        if !is_hidden && format_of(&path).is_some() && path.is_file() {
            files.push(path);
        }
        if files.len() > FILES_MAX {
            return Err(io::Error::other(format!("more than {FILES_MAX} files")));
        }
    }
    files.sort();
    Ok(files)
}

fn bytes_of(path: &Path) -> io::Result<Vec<u8>> {
    // Opening a pipe waits for somebody to write to it, and a device would be read for ever.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("not a file"));
    }
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(io::Error::other(format!("larger than {FILE_BYTES_MAX} bytes")));
    }
    Ok(bytes)
}

struct Reading {
    entities: Entities,
    problems: Vec<Problem>,
    count: usize,
    count_max: usize,
}

impl Reading {
    fn new(count_max: usize) -> Self {
        Self { entities: Entities::default(), problems: Vec::new(), count: 0, count_max }
    }

    /// Reports a problem, up to a number nobody reads on after.
    fn report(&mut self, origin: &Origin, message: impl Into<String>) {
        match self.problems.len() {
            PROBLEMS_MAX.. => {}
            count if count + 1 == PROBLEMS_MAX => {
                self.problems.push(Problem::new(origin, "and more, which are not shown"));
            }
            _ => self.problems.push(Problem::new(origin, message)),
        }
    }

    /// What is laid over something else later no longer knows that it was there twice.
    fn duplicates(&mut self) {
        for problem in super::check::duplicates(&self.entities) {
            self.report(&problem.origin, problem.message);
        }
    }

    fn file(&mut self, path: &Path) {
        let origin = Origin::new(path, 0);
        let bytes = match bytes_of(path) {
            Ok(bytes) => bytes,
            Err(error) => return self.unreadable(&origin, &error.to_string()),
        };
        match std::str::from_utf8(&bytes) {
            Ok(text) => self.text(&origin, text),
            Err(error) => {
                let good = &bytes[..error.valid_up_to()];
                let newlines = memchr::memchr_iter(b'\n', good).count();
                let line = u32::try_from(newlines + 1).unwrap_or(u32::MAX);
                self.unreadable(&Origin { line, ..origin }, "not UTF-8 text");
            }
        }
    }

    /// Reports a file nothing of which is known.
    fn unreadable(&mut self, origin: &Origin, message: &str) {
        self.report(origin, message);
        for kind in Kind::ALL {
            self.entities.gaps.add_kind(kind);
        }
    }

    fn text(&mut self, origin: &Origin, text: &str) {
        let Some(format) = format_of(&origin.file) else {
            return self.unreadable(origin, "expected a .toml, .yaml, .yml or .json file");
        };
        let root = match format.parse(text) {
            Ok(root) => root,
            Err(faults) => {
                for fault in faults {
                    let origin = Origin { line: fault.line, file: Arc::clone(&origin.file) };
                    self.unreadable(&origin, &fault.to_string());
                }
                return;
            }
        };
        match root.value {
            // An empty YAML file, or one with comments only.
            Value::Null => {}
            Value::Table(entries) => {
                for (key, node) in entries {
                    let origin = Origin { line: key.line, file: Arc::clone(&origin.file) };
                    self.table(&origin, &key.text, node);
                }
            }
            _ => {
                let origin = Origin { line: root.line, file: Arc::clone(&origin.file) };
                self.unreadable(&origin, "expected lists named tenant, client_application, ...");
            }
        }
    }

    fn table(&mut self, origin: &Origin, name: &str, node: Node) {
        let Some(kind) = Kind::parse(name) else {
            let known = Kind::ALL.map(Kind::as_str).join(", ");
            let name = super::names::shortened(name);
            let message = format!("unknown table `{name}`: expected one of {known}");
            self.report(origin, message);
            return;
        };
        match node.value {
            Value::List(items) => {
                for item in items {
                    let origin = Origin { line: item.line, file: Arc::clone(&origin.file) };
                    self.entity(&origin, kind, item);
                }
            }
            // `tool:` with nothing below it.
            Value::Null => {}
            _ => {
                self.entities.gaps.add_kind(kind);
                let message = format!("`{name}` must be a list: [[{name}]] in TOML");
                self.report(origin, message);
            }
        }
    }

    fn entity(&mut self, origin: &Origin, kind: Kind, mut node: Node) {
        self.count += 1;
        if self.count > self.count_max {
            if self.count == self.count_max + 1 {
                self.unreadable(origin, &format!("more than {} entities", self.count_max));
            }
            return;
        }
        let key: Option<Vec<&str>> =
            kind.key_fields().iter().map(|field| node.text_at(field)).collect();
        let key = key.map(|key| key.join("/"));
        let node = &mut node;
        let entities = &mut self.entities;
        let faults = match kind {
            Kind::Tenant => add(&mut entities.tenants, origin, node),
            Kind::ClientApplication => add(&mut entities.client_applications, origin, node),
            Kind::Connection => add(&mut entities.connections, origin, node),
            Kind::Toolset => add(&mut entities.toolsets, origin, node),
            Kind::Tool => add(&mut entities.tools, origin, node),
            Kind::Assignment => add(&mut entities.assignments, origin, node),
        };
        let Err(faults) = faults else { return };
        for fault in faults {
            let place = Origin { line: fault.line, file: Arc::clone(&origin.file) };
            self.report(&place, format!("{}: {fault}", kind.as_str()));
        }
        match key {
            Some(key) => self.entities.gaps.add_name(EntityName { kind, key }),
            None => self.entities.gaps.add_kind(kind),
        }
    }
}

fn add<T: Entity>(
    list: &mut Vec<Entry<T>>,
    origin: &Origin,
    node: &mut Node,
) -> Result<(), Vec<tree::Fault>> {
    let value = tree::read(node)?;
    list.push(Entry::new(value, origin.clone()));
    Ok(())
}

#[cfg(test)]
#[path = "files_tests.rs"]
mod tests;
