//! The segment that is being written.

use std::fs::File;
use std::io::{self, IoSlice, Write as _};
use std::os::unix::fs::MetadataExt as _;

use super::chain::Span;
use super::directory::SegmentFile;
use super::shared::Shared;
use crate::rt::files::{private, sync_names};

/// An open segment. What a failed write left behind its good bytes is cut off by the next one.
#[derive(Debug)]
pub(super) struct Segment {
    file: File,
    name: SegmentFile,
    /// Bytes that were written whole.
    length: u64,
    /// Bytes behind them may be there.
    is_torn: bool,
    pub(super) begun_ms: u64,
    pub(super) span: Span,
}

impl Segment {
    /// Makes the file of a new one. What stands in its way is put aside.
    pub(super) fn create(name: SegmentFile, now_ms: u64) -> io::Result<Self> {
        let options = || {
            let mut options = private();
            options.append(true).create_new(true);
            options
        };
        let file = match options().open(&name.path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                name.put_aside()?;
                options().open(&name.path)?
            }
            file => file?,
        };
        if let Some(directory) = name.path.parent() {
            sync_names(directory)?;
        }
        Ok(Self { file, name, length: 0, is_torn: false, begun_ms: now_ms, span: Span::EMPTY })
    }

    /// Goes on behind the first `length` bytes of one; the others are cut off.
    pub(super) fn resume(
        name: SegmentFile,
        length: u64,
        begun_ms: u64,
        span: Span,
    ) -> io::Result<Self> {
        let file = private().append(true).open(&name.path)?;
        if file.metadata()?.len() != length {
            file.set_len(length)?;
            file.sync_all()?;
        }
        Ok(Self { file, name, length, is_torn: false, begun_ms, span })
    }

    pub(super) fn length(&self) -> u64 {
        self.length
    }

    pub(super) fn name(&self) -> &SegmentFile {
        &self.name
    }

    /// Whether the file still has its name; somebody may have removed it.
    pub(super) fn is_there(&self) -> bool {
        self.file.metadata().is_ok_and(|found| found.nlink() > 0)
    }

    /// Appends `pieces`, all or, after an error, none.
    pub(super) fn append(&mut self, pieces: &mut [IoSlice<'_>], shared: &Shared) -> io::Result<()> {
        if self.is_torn {
            self.file.set_len(self.length)?;
        }
        self.is_torn = true;
        #[cfg(test)]
        shared.disk.write(&mut self.file, pieces)?;
        let _ = shared;
        let bytes: u64 = pieces.iter().map(|piece| piece.len() as u64).sum();
        write_all(&self.file, pieces)?;
        self.is_torn = false;
        self.length += bytes;
        Ok(())
    }

    /// Brings what was appended to the disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

fn write_all(mut file: &File, mut pieces: &mut [IoSlice<'_>]) -> io::Result<()> {
    // Empty ones at the begin are nothing to write, and no sign of a full disk.
    IoSlice::advance_slices(&mut pieces, 0);
    while !pieces.is_empty() {
        match file.write_vectored(pieces) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut pieces, written),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
