//! Files that are the owner's alone, and small ones that are replaced whole.
//!
//! All of it blocks: for threads that are no core's.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

/// What only the owner may do with a file.
pub const FILE_MODE: u32 = 0o600;
/// What only the owner may do with a directory.
pub const DIRECTORY_MODE: u32 = 0o700;

/// Options for files of which others see nothing, whatever the umask says.
pub fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(FILE_MODE);
    options
}

/// Makes a directory of which others see nothing, and those it is in.
pub fn make_private_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(path)
}

/// Opens a file for reading, which must be one: a pipe or a device in its place would never end,
/// or never begin.
pub fn open_regular(path: &Path) -> io::Result<File> {
    // A pipe is not waited for; on a file the flag has no meaning.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"))
    }
}

/// All of a file that is opened as [`open_regular`] does, and has at most `bytes_max`.
pub fn read_regular(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(path)?.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        return Err(io::Error::other(format!("it is larger than {bytes_max} bytes")));
    }
    Ok(bytes)
}

/// Writes a small file so that it is there whole or not at all, and survives a power failure.
pub fn replace(directory: &Path, name: &str, content: &[u8]) -> io::Result<()> {
    let unfinished = directory.join(format!("{name}.new"));
    let mut file = private().write(true).create(true).truncate(true).open(&unfinished)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(unfinished, directory.join(name))?;
    sync_names(directory)
}

/// Removes a file, there or not; it will not come back after a power failure.
pub fn remove(directory: &Path, name: &str) -> io::Result<()> {
    match fs::remove_file(directory.join(name)) {
        Ok(()) => sync_names(directory),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Brings what was made, renamed and removed in `directory` to the disk.
pub fn sync_names(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::process::Command;

    use super::*;

    #[test]
    fn a_file_is_replaced_whole() {
        let directory = tempfile::tempdir().unwrap();
        replace(directory.path(), "closed", b"one").unwrap();
        replace(directory.path(), "closed", b"2").unwrap();
        let path = directory.path().join("closed");
        assert_eq!(fs::read(&path).unwrap(), b"2");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, FILE_MODE);
        remove(directory.path(), "closed").unwrap();
        remove(directory.path(), "closed").unwrap();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_is_no_file_is_not_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for path in [&*pipe, directory.path(), Path::new("/dev/zero")] {
            let error = open_regular(path).unwrap_err();
            assert_eq!(error.to_string(), "it is not a regular file", "{}", path.display());
        }
        let missing = open_regular(&directory.path().join("missing")).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        let file = directory.path().join("file");
        fs::write(&file, "text").unwrap();
        // By another name it is the same file.
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        open_regular(&link).unwrap();
    }
}
