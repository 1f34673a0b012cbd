//! Documents out of a zip archive.
//!
//! The archive's own word counts for nothing: sizes are counted while unpacking, and a name that
//! leads out of the archive, an entry that is a link or two entries of one name refuse all of it.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{Cursor, Read};

use zip::ZipArchive;

use super::{DOCUMENT_BYTES_MAX, DOCUMENTS_BYTES_MAX, ImportError, Location};

/// Most entries of an archive.
const ENTRIES_MAX: usize = 20_000;
/// Largest archive.
const ARCHIVE_BYTES_MAX: usize = DOCUMENTS_BYTES_MAX;
/// The kind of file in the mode of an entry, and that of a link (POSIX `S_IFMT`, `S_IFLNK`).
const KIND_MASK: u32 = 0o170_000;
const LINK: u32 = 0o120_000;

/// An archive whose documents are unpacked when they are asked for.
pub struct Archive {
    zip: ZipArchive<Cursor<Vec<u8>>>,
    /// Places of the files by their locations.
    files: BTreeMap<Location, usize>,
}

impl Archive {
    /// Opens an archive and reads what is in it; nothing is unpacked yet.
    ///
    /// # Errors
    /// When it is none, or holds what no honest one does. `name` is what it is called there.
    pub fn open(name: &str, bytes: Vec<u8>) -> Result<Self, ImportError> {
        let unusable = |reason: String| ImportError::Unusable { location: name.to_owned(), reason };
        if bytes.len() > ARCHIVE_BYTES_MAX {
            return Err(unusable(format!("larger than {ARCHIVE_BYTES_MAX} bytes")));
        }
        let broken = |error: zip::result::ZipError| unusable(format!("no readable zip: {error}"));
        let mut zip = ZipArchive::new(Cursor::new(bytes)).map_err(broken)?;
        if zip.len() > ENTRIES_MAX {
            return Err(unusable(format!("more than {ENTRIES_MAX} entries")));
        }
        let mut files = BTreeMap::new();
        for place in 0..zip.len() {
            let entry = zip.by_index_raw(place).map_err(broken)?;
            let path = entry.name().map_err(broken)?.into_owned();
            if entry.unix_mode().is_some_and(|mode| mode & KIND_MASK == LINK) {
                return Err(unusable(format!("{path:?} is a link")));
            }
            let is_outside = path.starts_with('/')
                || path.contains(['\\', '\0'])
                || path.split('/').any(|part| matches!(part, ".." | "."));
            if is_outside {
                return Err(unusable(format!("{path:?} leads out of the archive")));
            }
            if entry.is_dir() {
                continue;
            }
            if files.insert(Location::bundle(&path)?, place).is_some() {
                return Err(unusable(format!("{path:?} is there twice")));
            }
        }
        Ok(Self { zip, files })
    }

    /// The locations of all files.
    pub fn locations(&self) -> impl Iterator<Item = &Location> {
        self.files.keys()
    }

    /// Unpacks a document.
    ///
    /// # Errors
    /// Why it cannot be had.
    pub fn read(&mut self, location: &Location) -> Result<Vec<u8>, String> {
        let place = self.files.get(location).ok_or("there is no such file in the archive")?;
        let entry = self.zip.by_index(*place).map_err(|error| error.to_string())?;
        let mut bytes = Vec::new();
        let limit = DOCUMENT_BYTES_MAX as u64 + 1;
        entry.take(limit).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
        if bytes.len() > DOCUMENT_BYTES_MAX {
            return Err(format!("it unpacks to more than {DOCUMENT_BYTES_MAX} bytes"));
        }
        Ok(bytes)
    }
}

impl fmt::Debug for Archive {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Archive").field("files", &self.files.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::*;

    fn zipped(fill: impl FnOnce(&mut ZipWriter<Cursor<Vec<u8>>>)) -> Vec<u8> {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        fill(&mut writer);
        writer.finish().unwrap().into_inner()
    }

    fn file(name: &str, bytes: &[u8]) -> Vec<u8> {
        zipped(|writer| {
            writer.start_file(name, SimpleFileOptions::default()).unwrap();
            writer.write_all(bytes).unwrap();
        })
    }

    #[test]
    fn files_are_found_by_their_locations() {
        let bytes = zipped(|writer| {
            writer.add_directory("a", SimpleFileOptions::default()).unwrap();
            writer.start_file("a/b c.yaml", SimpleFileOptions::default()).unwrap();
            writer.write_all(b"one").unwrap();
        });
        let mut archive = Archive::open("x.zip", bytes).unwrap();
        let found: Vec<String> = archive.locations().map(ToString::to_string).collect();
        assert_eq!(found, ["a/b c.yaml"]);
        let at = Location::bundle("a/other.yaml").unwrap().join("./b%20c.yaml").unwrap();
        assert_eq!(archive.read(&at).unwrap(), b"one");
        assert!(archive.read(&Location::bundle("nothing").unwrap()).is_err());
    }

    #[test]
    fn hostile_archives_are_refused() {
        for name in ["../a", "a/../../b", "/etc/passwd", "a\\..\\b", "./a"] {
            let refused = Archive::open("x.zip", file(name, b"x")).unwrap_err().to_string();
            assert!(refused.starts_with("x.zip: "), "{name}: {refused}");
        }
        let link = zipped(|writer| {
            writer.add_symlink("a", "/etc/passwd", SimpleFileOptions::default()).unwrap();
        });
        assert!(Archive::open("x.zip", link).unwrap_err().to_string().contains("is a link"));
        assert!(Archive::open("x.zip", b"PK\x03\x04 not really".to_vec()).is_err());
        assert!(Archive::open("x.zip", Vec::new()).is_err());
        // A bomb: it unpacks to a little more than a document may have.
        let bomb = file("a", &vec![0; DOCUMENT_BYTES_MAX + 1]);
        assert!(bomb.len() < 1 << 20);
        let mut archive = Archive::open("x.zip", bomb).unwrap();
        let refused = archive.read(&Location::bundle("a").unwrap()).unwrap_err();
        assert!(refused.contains("unpacks to more"), "{refused}");
    }
}
