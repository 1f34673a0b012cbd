//! What a command prints: results to standard output, complaints to standard error.

use std::{
    fmt::Display,
    io::{self, Write},
};

/// One line of a result. A closed pipe is not an error: the reader has seen enough.
pub(super) fn line(text: impl Display) {
    let text = text.to_string();
    let mut out = io::stdout().lock();
    for line in text.split('\n') {
        let _ = writeln!(out, "{}", tame(line));
    }
}

/// A text that nothing can hide in: control characters of both kinds are shown as `·`.
pub(super) fn tame(text: &str) -> String {
    text.chars()
        .map(|letter| if letter.is_control() && letter != '\t' { '·' } else { letter })
        .collect()
}

/// The beginning of a text that is longer than so many characters.
pub(super) fn shortened(text: &str, characters_max: usize) -> String {
    match text.char_indices().nth(characters_max) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}...", &text[..end]),
    }
}

/// So many of something: `1 entry`, `2 entries`.
pub(super) fn count<N: Display + PartialEq + From<u8>>(
    count: N,
    one: &str,
    several: &str,
) -> String {
    format!("{count} {}", if count == N::from(1) { one } else { several })
}

/// A result that is a text of its own, with line ends where it has them.
pub(super) fn text(text: &str) {
    let _ = io::stdout().lock().write_all(text.as_bytes());
}

/// An error, on standard error.
pub(super) fn complain(error: impl Display) {
    let _ = writeln!(io::stderr().lock(), "error: {error}");
}

/// A remark that is no result, on standard error.
pub(super) fn remark(text: impl Display) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// What has no effect and is no error, on standard error, each on a line.
pub(super) fn remarks(remarks: &[impl ToString]) {
    for text in remarks {
        remark(format_args!("warning: {}", tame(&text.to_string())));
    }
}

/// Columns aligned by their widest cell, each row a line.
pub(super) fn table(header: &[&str], rows: &[Vec<String>]) {
    let mut columns = Columns::new(header);
    columns.widen(rows);
    line(columns.aligned(header));
    for row in rows {
        line(columns.aligned(row));
    }
}

/// How wide the columns of a table are.
#[derive(Debug)]
pub(super) struct Columns(Vec<usize>);

impl Columns {
    /// As wide as their names.
    pub(super) fn new(header: &[&str]) -> Self {
        Self(header.iter().map(|cell| cell.chars().count()).collect())
    }

    /// Makes room for these rows.
    pub(super) fn widen(&mut self, rows: &[Vec<String>]) {
        for row in rows {
            for (width, cell) in self.0.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
    }

    /// A row as a line.
    pub(super) fn aligned(&self, cells: &[impl AsRef<str>]) -> String {
        let mut text = String::new();
        for (cell, width) in cells.iter().map(AsRef::as_ref).zip(&self.0) {
            text.push_str(cell);
            text.extend(std::iter::repeat_n(' ', (width.saturating_sub(cell.chars().count())) + 2));
        }
        text.truncate(text.trim_end().len());
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [vec!["ä".to_owned(), "b".to_owned()], vec!["accc".to_owned(), String::new()]];
        let mut columns = Columns::new(&["A", "BB"]);
        assert_eq!(columns.aligned(&["A", "BB"]), "A  BB");
        columns.widen(&rows);
        assert_eq!(columns.aligned(&["A", "BB"]), "A     BB");
        assert_eq!(columns.aligned(&rows[0]), "ä     b");
        assert_eq!(columns.aligned(&rows[1]), "accc");
        // What comes later and is wider moves only its own line.
        assert_eq!(columns.aligned(&["abcdef", "g"]), "abcdef  g");
    }

    #[test]
    fn one_is_not_several() {
        let told = [0_u64, 1, 2].map(|number| count(number, "entry", "entries"));
        assert_eq!(told, ["0 entries", "1 entry", "2 entries"]);
    }
}
