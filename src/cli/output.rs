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
    let mut widths: Vec<usize> = header.iter().map(|cell| cell.chars().count()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let print = |cells: &mut dyn Iterator<Item = &str>| {
        let mut text = String::new();
        for (cell, width) in cells.zip(&widths) {
            text.push_str(cell);
            text.extend(std::iter::repeat_n(' ', width + 2 - cell.chars().count()));
        }
        line(text.trim_end());
    };
    print(&mut header.iter().copied());
    for row in rows {
        print(&mut row.iter().map(String::as_str));
    }
}
