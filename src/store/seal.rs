//! The seal over what must not be read from a disk: AES-256-GCM under a key that is not in the store.
//!
//! The key comes from the systemd credential [`CREDENTIAL_NAME`], or from the file [`FILE_NAME`] in
//! the data directory, which is made at the first start, for the process alone. Where both are
//! there the credential seals and both open, so a key is changed by giving the new one as a
//! credential and starting once: what was sealed with another is sealed again then.
//!
//! What is sealed begins with the id of its key, and is bound to the name of its record: it cannot
//! be opened under another name. A key is never made where something sealed lies already.

use std::env;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::digest::{Context, SHA256};
use aws_lc_rs::rand;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use parking_lot::RwLock;

/// The key's file in the data directory.
pub const FILE_NAME: &str = "seal.key";
/// The key's name among systemd's credentials.
pub const CREDENTIAL_NAME: &str = "seal.key";

const KEY_BYTES: usize = 32;
const ID_BYTES: usize = 8;
const FILE_BYTES_MAX: u64 = 4 * 1024;
/// Where systemd puts the credentials of a service.
const SYSTEMD_DIRECTORY: &str = "CREDENTIALS_DIRECTORY";

/// What is sealed cannot be read, or nothing can be sealed.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// The key's file cannot be read or made.
    #[error("cannot {action} the seal key {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file holds something else.
    #[error(
        "{} holds no seal key, which is 32 bytes in base64: put the key back from where you keep a \
         copy; nothing was changed",
        path.display()
    )]
    Key {
        /// The file.
        path: PathBuf,
    },
    /// The key that something was sealed with is not here.
    #[error(
        "{name} in the store is sealed with key {id}, which is neither the systemd credential \
         `{CREDENTIAL_NAME}` nor in {}: put that key back; nothing was changed. Where it is lost, so \
         are the secrets that the store holds: move the data directory away, start anew, and apply \
         the catalog files with their secrets",
        path.display()
    )]
    UnknownKey {
        /// The record.
        name: String,
        /// The key's id.
        id: String,
        /// The file.
        path: PathBuf,
    },
    /// It was changed, or belongs to another record.
    #[error("{name} in the store is damaged: its seal does not open; nothing was changed")]
    Damaged {
        /// The record.
        name: String,
    },
    /// The machine gives no randomness.
    #[error("nothing can be sealed: the system gives no random bytes")]
    NoRandomness,
}

/// The keys there are.
pub struct Seal {
    path: PathBuf,
    /// The first one seals.
    keys: RwLock<Vec<Key>>,
}

struct Key {
    id: [u8; ID_BYTES],
    cipher: RandomizedNonceKey,
}

impl Seal {
    /// Finds the keys of a data directory. There may be none yet: see [`Seal::ensure`].
    ///
    /// # Errors
    /// A key that cannot be read.
    pub fn open(data_directory: &Path) -> Result<Self, SealError> {
        let credential = env::var_os(SYSTEMD_DIRECTORY)
            .map(|directory| PathBuf::from(directory).join(CREDENTIAL_NAME));
        let path = data_directory.join(FILE_NAME);
        let mut keys = Vec::new();
        for path in credential.iter().chain([&path]) {
            keys.extend(Key::read(path)?);
        }
        Ok(Self { path, keys: RwLock::new(keys) })
    }

    /// Makes a key where there is none. Call it when everything sealed has been opened: a key that
    /// is missing must be missed, not replaced.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn ensure(&self) -> Result<(), SealError> {
        let mut keys = self.keys.write();
        if keys.is_empty() {
            let mut bytes = [0; KEY_BYTES];
            rand::fill(&mut bytes).map_err(|_| SealError::NoRandomness)?;
            let key = Key::new(&bytes).ok_or(SealError::NoRandomness)?;
            write(&self.path, &bytes).map_err(|source| SealError::Io {
                action: "make",
                path: self.path.clone(),
                source,
            })?;
            keys.push(key);
        }
        Ok(())
    }

    /// Seals `plain` for the record of this name.
    ///
    /// # Errors
    /// There is no key: [`Seal::ensure`] was not called; or no randomness.
    pub fn seal(&self, name: &[u8], plain: &[u8]) -> Result<Vec<u8>, SealError> {
        let keys = self.keys.read();
        let key = keys.first().ok_or_else(|| SealError::Key { path: self.path.clone() })?;
        let mut body = plain.to_vec();
        let nonce = key
            .cipher
            .seal_in_place_append_tag(Aad::from(name), &mut body)
            .map_err(|_| SealError::NoRandomness)?;
        Ok([&key.id[..], nonce.as_ref(), &body].concat())
    }

    /// Opens what was sealed for the record of this name.
    ///
    /// # Errors
    /// Its key is not here, or it was changed.
    pub fn unseal(&self, name: &[u8], sealed: &[u8]) -> Result<Vec<u8>, SealError> {
        let shown = || String::from_utf8_lossy(name).into_owned();
        let damaged = || SealError::Damaged { name: shown() };
        let (id, rest) = sealed.split_first_chunk::<ID_BYTES>().ok_or_else(damaged)?;
        let (nonce, body) = rest.split_first_chunk::<NONCE_LEN>().ok_or_else(damaged)?;
        let keys = self.keys.read();
        let key = keys.iter().find(|key| key.id == *id).ok_or_else(|| SealError::UnknownKey {
            name: shown(),
            id: hexadecimal(id),
            path: self.path.clone(),
        })?;
        let mut body = body.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let opened = key.cipher.open_in_place(nonce, Aad::from(name), &mut body);
        let bytes = opened.map_err(|_| damaged())?.len();
        body.truncate(bytes);
        Ok(body)
    }

    /// Whether it is sealed with the key that seals now.
    pub fn is_current(&self, sealed: &[u8]) -> bool {
        self.keys.read().first().is_some_and(|key| sealed.starts_with(&key.id))
    }
}

impl fmt::Debug for Seal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids: Vec<String> = self.keys.read().iter().map(|key| hexadecimal(&key.id)).collect();
        formatter.debug_struct("Seal").field("keys", &ids).finish_non_exhaustive()
    }
}

impl Key {
    fn new(bytes: &[u8; KEY_BYTES]) -> Option<Self> {
        let cipher = RandomizedNonceKey::new(&AES_256_GCM, bytes).ok()?;
        let mut digest = Context::new(&SHA256);
        digest.update(b"ringway seal key");
        digest.update(bytes);
        let mut id = [0; ID_BYTES];
        id.copy_from_slice(digest.finish().as_ref().get(..ID_BYTES)?);
        Some(Self { id, cipher })
    }

    /// Nothing where there is no file.
    fn read(path: &Path) -> Result<Option<Self>, SealError> {
        let io = |source| SealError::Io { action: "read", path: path.to_owned(), source };
        let found = match fs::metadata(path) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io(error)),
        };
        let unusable = || SealError::Key { path: path.to_owned() };
        if found.len() > FILE_BYTES_MAX || !found.is_file() {
            return Err(unusable());
        }
        let text = fs::read(path).map_err(io)?;
        let bytes = STANDARD.decode(text.trim_ascii()).ok().and_then(|all| all.try_into().ok());
        bytes.and_then(|bytes| Self::new(&bytes)).map(Some).ok_or_else(unusable)
    }
}

/// There whole or not at all, for this user alone, and never over a key that is there.
fn write(path: &Path, bytes: &[u8; KEY_BYTES]) -> io::Result<()> {
    let unfinished = path.with_extension("key.new");
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
    file.write_all(format!("{}\n", STANDARD.encode(bytes)).as_bytes())?;
    file.sync_all()?;
    // Unlike a rename, a link replaces nothing.
    fs::hard_link(&unfinished, path)?;
    fs::remove_file(&unfinished)?;
    match path.parent() {
        Some(directory) => File::open(directory)?.sync_all(),
        None => Ok(()),
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    use fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn opened(directory: &Path) -> Seal {
        let seal = Seal::open(directory).unwrap();
        seal.ensure().unwrap();
        seal
    }

    #[test]
    fn what_is_sealed_opens_under_its_name_alone_and_looks_different_each_time() {
        let directory = tempfile::tempdir().unwrap();
        let seal = opened(directory.path());
        let one = seal.seal(b"connection/a/b", b"s3cr3t").unwrap();
        let two = seal.seal(b"connection/a/b", b"s3cr3t").unwrap();
        assert!(one != two && seal.is_current(&one));
        assert!(!one.windows(6).any(|part| part == b"s3cr3t"));
        // After a restart too.
        let again = opened(directory.path());
        assert_eq!(again.unseal(b"connection/a/b", &one).unwrap(), b"s3cr3t");
        let elsewhere = again.unseal(b"connection/a/c", &one).unwrap_err();
        assert!(matches!(elsewhere, SealError::Damaged { .. }), "{elsewhere}");
        for at in 0..one.len() {
            let mut changed = one.clone();
            changed[at] ^= 1;
            assert!(again.unseal(b"connection/a/b", &changed).is_err(), "{at}");
            assert!(again.unseal(b"connection/a/b", &one[..at]).is_err(), "{at}");
        }
        assert!(!format!("{again:?}").contains("s3cr3t"));
    }

    #[test]
    fn the_key_is_for_its_owner_alone_and_never_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(FILE_NAME);
        let none = Seal::open(directory.path()).unwrap();
        assert!(!path.exists() && none.seal(b"a", b"b").is_err());
        let seal = opened(directory.path());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        let sealed = seal.seal(b"a", b"b").unwrap();
        // Two starts at once: the second one does not take the first one's key away.
        assert!(none.ensure().is_err());
        assert_eq!(opened(directory.path()).unseal(b"a", &sealed).unwrap(), b"b");

        fs::remove_file(&path).unwrap();
        let other = opened(directory.path());
        let error = other.unseal(b"a", &sealed).unwrap_err().to_string();
        assert!(error.contains("seal.key") && error.contains("put that key back"), "{error}");
        assert!(!other.is_current(&sealed));
        fs::write(&path, "nonsense").unwrap();
        assert!(matches!(Seal::open(directory.path()), Err(SealError::Key { .. })));
    }
}
