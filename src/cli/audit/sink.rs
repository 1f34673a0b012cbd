//! Where entries go: standard output or a file.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use super::super::CommandError;
use super::super::output::{Columns, tame};
use super::told::HEADER;

/// Where entries go. A reader that has seen enough closes it; a file that cannot be written is an
/// error.
pub(super) struct Sink {
    out: BufWriter<Box<dyn Write>>,
    pub(super) is_open: bool,
    error: Option<io::Error>,
    /// A terminal obeys control characters.
    is_terminal: bool,
}

impl Sink {
    pub(super) fn standard() -> Self {
        let out = io::stdout();
        let is_terminal = out.is_terminal();
        Self { out: BufWriter::new(Box::new(out)), is_open: true, error: None, is_terminal }
    }

    pub(super) fn file(path: &Path) -> Result<Self, CommandError> {
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::AlreadyExists => CommandError::Usage(format!(
                "{} exists already: name another file, or remove that one first",
                path.display()
            )),
            _ => CommandError::File { path: path.to_owned(), source },
        };
        let mut options = OpenOptions::new();
        let file: File =
            options.write(true).create_new(true).mode(0o600).open(path).map_err(failed)?;
        let out = BufWriter::new(Box::new(file) as Box<dyn Write>);
        Ok(Self { out, is_open: true, error: None, is_terminal: false })
    }

    pub(super) fn line(&mut self, line: &[u8]) {
        let written = if self.is_terminal {
            writeln!(self.out, "{}", tame(&String::from_utf8_lossy(line)))
        } else {
            self.out.write_all(line).and_then(|()| self.out.write_all(b"\n"))
        };
        self.note(written);
    }

    /// Rows of the table, below its header where they are its first. Wider ones that come later widen
    /// the columns from there on.
    pub(super) fn rows(&mut self, columns: &mut Option<Columns>, rows: &mut Vec<Vec<String>>) {
        if rows.is_empty() {
            return;
        }
        let is_first = columns.is_none();
        let columns = columns.get_or_insert_with(|| Columns::new(&HEADER));
        columns.widen(rows);
        if is_first {
            self.line(columns.aligned(&HEADER).as_bytes());
        }
        for row in rows.drain(..) {
            self.line(columns.aligned(&row).as_bytes());
        }
    }

    pub(super) fn flush(&mut self) {
        let flushed = self.out.flush();
        self.note(flushed);
    }

    fn note(&mut self, done: io::Result<()>) {
        if let Err(error) = done {
            self.is_open = false;
            self.error.get_or_insert(error);
        }
    }

    pub(super) fn finish(mut self, path: Option<&Path>) -> Result<(), CommandError> {
        self.flush();
        match (self.error, path) {
            (Some(source), Some(path)) => Err(CommandError::File { path: path.to_owned(), source }),
            _ => Ok(()),
        }
    }
}
