//! Directories for tests that write hundreds of files.

use std::path::Path;

use tempfile::TempDir;

/// In memory, where the system has a place for that: what is written is brought to no disk, which
/// else takes most of the time of such a test, and stands in the way of others.
pub(crate) fn in_memory() -> TempDir {
    let memory = Path::new("/dev/shm");
    tempfile::tempdir_in(memory).or_else(|_| tempfile::tempdir()).unwrap()
}
