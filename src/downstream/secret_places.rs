//! Secrets where they are kept: the environment, files, systemd's credentials.
//!
//! Read off the cores and remembered for all of them. A file is looked at again when what is known
//! of it is [`LOOKED_AGAIN_AFTER`] old, and read again where it has changed; whoever asks meanwhile
//! is given what was there. Bounded by size ([`SECRET_BYTES_MAX`]) and number. No message holds
//! anything of a secret.

use std::collections::HashMap;
use std::env;
use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::catalog::{ClientCertificate, Connection, Secret, SecretReference, SecretSource};
use crate::rt::{self, WorkerPool};

/// Largest secret.
const SECRET_BYTES_MAX: u64 = 64 * 1024;
/// How old what is known of a file may be.
const LOOKED_AGAIN_AFTER: Duration = Duration::from_secs(3);
/// How many places are remembered.
const PLACES_MAX: usize = 4_096;
/// Where systemd puts the credentials of a service.
const SYSTEMD_DIRECTORY: &str = "CREDENTIALS_DIRECTORY";

/// The secrets that were read. Shared by all cores.
#[derive(Clone, Default)]
pub(crate) struct SecretPlaces {
    known: Arc<Mutex<HashMap<SecretReference, Known>>>,
}

struct Known {
    found: Result<Secret, Arc<str>>,
    stamp: Option<Stamp>,
    looked_at: Instant,
}

/// Changes when a file does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl SecretPlaces {
    /// The secret at a place, or why there is none.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub(crate) async fn find(
        &self,
        workers: &WorkerPool,
        reference: &SecretReference,
    ) -> Result<Secret, String> {
        let now = Instant::now();
        let before = {
            let mut known = self.known.lock();
            match known.get_mut(reference) {
                None => None,
                Some(known) => {
                    let is_fresh = now.duration_since(known.looked_at) < LOOKED_AGAIN_AFTER;
                    if is_fresh || matches!(reference, SecretReference::Environment(_)) {
                        return known.found.clone().map_err(|reason| reason.to_string());
                    }
                    // The others need not wait while this one looks.
                    known.looked_at = now;
                    known.stamp
                }
            }
        };
        let (asked, places) = (reference.clone(), self.clone());
        let looked = workers.run(move || places.look(asked, before, now)).await;
        looked.unwrap_or_else(|error| Err(error.to_string()))
    }

    /// Looks at a place, and reads it unless it is as it was. Blocks.
    fn look(
        &self,
        reference: SecretReference,
        before: Option<Stamp>,
        now: Instant,
    ) -> Result<Secret, String> {
        let path = path_of(&reference).ok();
        let stamp = path.as_deref().and_then(stamp);
        if before.is_some()
            && stamp == before
            && let Some(known) = self.known.lock().get(&reference)
        {
            return known.found.clone().map_err(|reason| reason.to_string());
        }
        let found = find(&reference);
        let mut known = self.known.lock();
        if known.len() >= PLACES_MAX {
            known.clear();
        }
        let kept = found.clone().map_err(Arc::from);
        known.insert(reference, Known { found: kept, stamp, looked_at: now });
        found
    }
}

impl fmt::Debug for SecretPlaces {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.known.lock().len();
        formatter.debug_struct("SecretPlaces").field("known", &count).finish_non_exhaustive()
    }
}

/// How a file looks from outside; nothing where there is none.
pub(crate) fn stamp(path: &Path) -> Option<Stamp> {
    let found = fs::metadata(path).ok()?;
    Some(Stamp {
        device: found.dev(),
        inode: found.ino(),
        bytes: found.size(),
        modified: (found.mtime(), found.mtime_nsec()),
        changed: (found.ctime(), found.ctime_nsec()),
    })
}

/// The secret at a place, or why there is none: the reason names the place. Blocks.
fn find(reference: &SecretReference) -> Result<Secret, String> {
    let at = |reason: &str| format!("{reference}: {reason}");
    let text = match reference {
        SecretReference::Environment(name) => match env::var(name) {
            Ok(text) => text,
            Err(env::VarError::NotPresent) => return Err(at("is not set")),
            Err(env::VarError::NotUnicode(_)) => return Err(at("is not text")),
        },
        SecretReference::File(_) | SecretReference::SystemdCredential(_) => {
            let bytes = path_of(reference)
                .and_then(|path| read(&path).map_err(|error| error.to_string()))
                .map_err(|reason| at(&reason))?;
            String::from_utf8(bytes).map_err(|_| at("is not text"))?
        }
    };
    let text = match reference {
        SecretReference::Environment(_) => text.as_str(),
        _ => text.trim_end_matches(['\n', '\r']),
    };
    if text.is_empty() { Err(at("is empty")) } else { Ok(Secret::new(text)) }
}

fn path_of(reference: &SecretReference) -> Result<PathBuf, String> {
    match reference {
        SecretReference::Environment(_) => Err("is no file".to_owned()),
        SecretReference::File(path) => Ok(path.clone()),
        SecretReference::SystemdCredential(name) => match env::var_os(SYSTEMD_DIRECTORY) {
            Some(directory) => Ok(PathBuf::from(directory).join(name)),
            None => Err(format!(
                "systemd gave none to this process ({SYSTEMD_DIRECTORY} is not set): use \
                 LoadCredential= or SetCredentialEncrypted= in its unit"
            )),
        },
    }
}

fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    rt::files::read_regular(path, SECRET_BYTES_MAX)
}

/// What a connection names and is not where it should be. Reads files: not for a core.
pub(crate) fn missing(connection: &Connection) -> Vec<String> {
    let mut missing = Vec::new();
    for (place, credential) in connection.credentials.iter().enumerate() {
        if let Some((field, SecretSource::Elsewhere(reference))) = credential.secret()
            && let Err(reason) = find(reference)
        {
            missing.push(format!("credentials[{place}].{field}: {reason}"));
        }
    }
    if let Some(ClientCertificate { certificate, key }) = &connection.client_certificate {
        for (field, path) in [("certificate", certificate), ("key", key)] {
            if let Err(error) = read(path) {
                missing.push(format!("client_certificate.{field}: {}: {error}", path.display()));
            }
        }
    }
    missing
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rt::CoreOptions;

    fn file(path: &Path) -> SecretReference {
        SecretReference::File(path.to_owned())
    }

    #[test]
    fn places_are_read_and_what_is_wrong_names_them() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("good"), "s3cr3t \r\n").unwrap();
        assert_eq!(find(&file(&at("good"))).unwrap().expose(), "s3cr3t ");
        fs::write(at("empty"), "\n").unwrap();
        fs::write(at("binary"), [0xff, 0xfe]).unwrap();
        fs::write(at("large"), vec![b'x'; 65 * 1024]).unwrap();
        for (name, expected) in [
            ("empty", "is empty"),
            ("binary", "is not text"),
            ("large", "larger than 65536"),
            ("none", "No such file"),
            ("", "is not a regular file"),
        ] {
            let reason = find(&file(&at(name))).unwrap_err();
            assert!(reason.contains(expected) && reason.starts_with("the file /"), "{reason}");
        }
        let variable = |name: &str| find(&SecretReference::Environment(name.to_owned()));
        assert!(variable("PATH").is_ok());
        let reason = variable("RINGWAY_NOBODY_SETS_THIS").unwrap_err();
        assert_eq!(reason, "the environment variable `RINGWAY_NOBODY_SETS_THIS`: is not set");
        let credential = find(&SecretReference::SystemdCredential("api".to_owned()));
        assert!(
            credential.unwrap_err().contains("the systemd credential `api`: systemd gave none")
        );
    }

    #[test]
    fn a_file_that_changes_is_read_again_but_not_at_every_call() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("secret");
        fs::write(&path, "one").unwrap();
        let workers = WorkerPool::start(1, 8).unwrap();
        let places = SecretPlaces::default();
        rt::run_once(CoreOptions::default(), async {
            let read = async || places.find(&workers, &file(&path)).await;
            assert_eq!(read().await.unwrap().expose(), "one");
            fs::write(&path, "second").unwrap();
            assert_eq!(read().await.unwrap().expose(), "one");
            for known in places.known.lock().values_mut() {
                known.looked_at = Instant::now().checked_sub(2 * LOOKED_AGAIN_AFTER).unwrap();
            }
            assert_eq!(read().await.unwrap().expose(), "second");
            fs::remove_file(&path).unwrap();
            for known in places.known.lock().values_mut() {
                known.looked_at = Instant::now().checked_sub(2 * LOOKED_AGAIN_AFTER).unwrap();
            }
            assert!(read().await.unwrap_err().contains("No such file"));
        })
        .unwrap();
    }
}
