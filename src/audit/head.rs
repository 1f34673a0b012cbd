//! The head: a signed statement beside the segments about the last block under a checkpoint. Without
//! it an end that was cut off would not be noticed. It is no copy of the checkpoint, of which every
//! segment has some to be put in its place.
//!
//! It is written before the key of the log is in its place, and so before everything else. Where
//! there is a key and no head, somebody has removed it.

use std::io;
use std::path::Path;

use super::chain::{Link, read_head, write_head};
use super::directory::{HEAD_NAME, read_small};
use super::key::SigningKey;
use crate::rt::files::replace;

/// What the head says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Head {
    /// The log has this block.
    At(Link),
    Missing,
    /// It is none that was signed with the key of this log.
    Changed,
}

impl Head {
    pub(super) fn read(directory: &Path, key: &SigningKey) -> io::Result<Self> {
        let Some(line) = read_small(directory, HEAD_NAME)? else { return Ok(Self::Missing) };
        Ok(read_head(&line, &key.public()).map_or(Self::Changed, Self::At))
    }

    /// Replaces it by one that says that the log has this block.
    pub(super) fn write(
        directory: &Path,
        link: Link,
        time_ms: u64,
        key: &SigningKey,
    ) -> io::Result<()> {
        let mut line = Vec::new();
        write_head(&mut line, link, time_ms, key);
        replace(directory, HEAD_NAME, &line)
    }
}
