//! Names of the store's files, and closing them to others.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::rt::files::{DIRECTORY_MODE, FILE_MODE};

/// The engine's log.
pub(super) const LOG_NAME: &str = "db";
/// The engine's configuration.
pub(super) const CONFIGURATION_NAME: &str = "conf";
/// Where the engine keeps large records.
pub(super) const BLOBS_NAME: &str = "blobs";
/// The audit log beside the store, a directory as closed as this one.
const AUDIT_NAME: &str = "audit";
/// A snapshot that is being written, or whose writer died.
pub(super) const SNAPSHOT_PREFIX: &str = "snap.";
pub(super) const UNFINISHED_SUFFIX: &str = ".generating";

/// How long sled's own threads may hold its lock after it was closed in this process.
pub(super) const LOCK_WAIT: Duration = Duration::from_secs(2);

/// Anything that others may do.
const OTHERS: u32 = 0o077;

/// Waits until the engine's own threads have let go of a log that was closed in this process.
pub(super) fn wait_until_released(log: &File) -> io::Result<()> {
    let give_up_at = Instant::now() + LOCK_WAIT;
    while log.try_lock().is_err() {
        if Instant::now() >= give_up_at {
            return Err(io::ErrorKind::TimedOut.into());
        }
        std::thread::park_timeout(Duration::from_millis(1));
    }
    Ok(())
}

/// Takes from others what they may do in the store's directory, where that hurts nobody: our
/// user owns it, and nothing but the store and sockets is in it.
pub(super) fn close_directory(directory: &Path) -> io::Result<()> {
    let found = fs::metadata(directory)?;
    let mode = found.permissions().mode();
    if mode & OTHERS == 0 {
        return Ok(());
    }
    let is_own = fs::metadata("/proc/self").is_ok_and(|process| process.uid() == found.uid());
    if is_own && holds_only_a_store(directory)? {
        fs::set_permissions(directory, Permissions::from_mode(DIRECTORY_MODE))?;
        tracing::info!(
            directory = %directory.display(),
            "the data directory was open to other users; closed it (mode 0700)"
        );
    } else {
        tracing::warn!(
            directory = %directory.display(),
            mode = %format_args!("{:04o}", mode & 0o7777),
            "the data directory is open to other users and not the store's alone; give the store \
             a directory of its own with mode 0700"
        );
    }
    Ok(())
}

/// Takes the store's files from others. New ones of the engine's are made as the umask says.
pub(super) fn close_files(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if !is_ours(&entry.file_name()) {
            continue;
        }
        // Not followed where it is a link: what it names is not in here.
        let found = match entry.metadata() {
            // The engine clears old snapshots away meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            found => found?,
        };
        let mode = if found.is_dir() {
            DIRECTORY_MODE
        } else if found.is_file() {
            FILE_MODE
        } else {
            continue;
        };
        if found.permissions().mode() & OTHERS != 0 {
            match fs::set_permissions(entry.path(), Permissions::from_mode(mode)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
    }
    Ok(())
}

fn holds_only_a_store(directory: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if !is_ours(&entry.file_name()) && !entry.file_type()?.is_socket() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether the store, or the audit log beside it, makes files of this name.
fn is_ours(name: &OsStr) -> bool {
    const NAMES: [&str; 11] = [
        LOG_NAME,
        CONFIGURATION_NAME,
        BLOBS_NAME,
        super::format::FORMAT_NAME,
        super::opening::LOCK_NAME,
        super::mark::CLOSED_NAME,
        super::ledger::LEDGER_NAME,
        super::space::RESERVE_NAME,
        AUDIT_NAME,
        super::tail::TAIL_NAMES[0],
        super::tail::TAIL_NAMES[1],
    ];
    let Some(name) = name.to_str() else { return false };
    let name = name.strip_suffix(".new").unwrap_or(name);
    NAMES.contains(&name)
        || name.starts_with(SNAPSHOT_PREFIX)
        || name.starts_with(super::opening::ASIDE_PREFIX)
        || name.starts_with(super::copies::LAST_NAME)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    fn opened(path: &Path) {
        fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn a_directory_of_the_store_alone_is_closed() {
        let directory = tempfile::tempdir().unwrap();
        opened(directory.path());
        close_directory(directory.path()).unwrap();
        assert_eq!(mode(directory.path()), 0o700);
        opened(directory.path());
        for name in ["db", "snap.1", "ledger", "closed.new"] {
            fs::write(directory.path().join(name), "").unwrap();
            opened(&directory.path().join(name));
        }
        let _socket =
            std::os::unix::net::UnixListener::bind(directory.path().join("admin.sock")).unwrap();
        close_directory(directory.path()).unwrap();
        assert_eq!(mode(directory.path()), 0o700);
        close_files(directory.path()).unwrap();
        for name in ["db", "snap.1", "ledger", "closed.new"] {
            assert_eq!(mode(&directory.path().join(name)), 0o600, "{name}");
        }
    }

    #[test]
    fn what_belongs_to_others_keeps_its_mode() {
        let directory = tempfile::tempdir().unwrap();
        let theirs = directory.path().join("theirs");
        fs::write(&theirs, "").unwrap();
        std::os::unix::fs::symlink(&theirs, directory.path().join("snap.1")).unwrap();
        opened(&theirs);
        opened(directory.path());
        close_directory(directory.path()).unwrap();
        close_files(directory.path()).unwrap();
        assert_eq!(mode(directory.path()), 0o755);
        assert_eq!(mode(&theirs), 0o755);
    }
}
