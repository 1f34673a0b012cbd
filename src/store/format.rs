//! The version of a store's layout: a file for whoever looks before opening, and a record.

use std::fs;
use std::io;
use std::path::Path;

use super::{FORMAT, StoreError, opening};
use crate::rt::files::replace;

/// States the format for whoever looks before opening.
pub(super) const FORMAT_NAME: &str = "format";
const FORMAT_WORDS: &str = "ringway store ";
/// Where the format record lies in [`super::Tree::Meta`].
pub(super) const FORMAT_KEY: &[u8] = b"format";
/// First byte of the format record.
const FORMAT_RECORD_VERSION: u8 = 1;

/// Whether the format file is there and says the known format.
pub(super) fn check_format_file(directory: &Path) -> Result<bool, StoreError> {
    let text = match fs::read(directory.join(FORMAT_NAME)) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        // An empty directory, or one whose first start died; the record decides.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(opening::directory_error(directory, error)),
    };
    let found = text.trim_end();
    match found.strip_prefix(FORMAT_WORDS).and_then(|number| number.parse().ok()) {
        Some(FORMAT) => Ok(true),
        number => {
            let found = number.map_or_else(
                || format!("`{}`", found.chars().take(40).collect::<String>().escape_debug()),
                |number: u32| number.to_string(),
            );
            let directory = directory.to_owned();
            Err(StoreError::UnknownFormat { directory, found, known: FORMAT })
        }
    }
}

pub(super) fn write_format_file(directory: &Path) -> io::Result<()> {
    let path = directory.join(FORMAT_NAME);
    if path.exists() {
        return Ok(());
    }
    replace(directory, FORMAT_NAME, format!("{FORMAT_WORDS}{FORMAT}\n").as_bytes())
}

pub(super) fn format_record() -> [u8; 5] {
    let [a, b, c, d] = FORMAT.to_le_bytes();
    [FORMAT_RECORD_VERSION, a, b, c, d]
}

pub(super) fn read_format_record(record: &[u8]) -> Option<u32> {
    match record {
        &[FORMAT_RECORD_VERSION, a, b, c, d] => Some(u32::from_le_bytes([a, b, c, d])),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_record_is_read_as_it_is_written() {
        assert_eq!(read_format_record(&format_record()), Some(FORMAT));
        assert_eq!(read_format_record(&[2, 1, 0, 0, 0]), None);
        assert_eq!(read_format_record(&[]), None);
    }
}
