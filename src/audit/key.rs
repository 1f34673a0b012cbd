//! The key that signs checkpoints: made at the first start, kept beside the segments.
//!
//! `signing.key` is for the server alone; `signing.pub` is for whoever checks the log, best from a
//! copy on another machine. Both are PEM as openssl reads it.

use std::fmt;
use std::io::{self, Read as _};
use std::path::Path;

use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::AuditError;
use super::directory::{PUBLIC_KEY_NAME, SIGNING_KEY_NAME};
use crate::rt::files::{open_regular, replace};

const PRIVATE_LABEL: &str = "PRIVATE KEY";
const PUBLIC_LABEL: &str = "PUBLIC KEY";
const KEY_FILE_BYTES_MAX: u64 = 64 << 10;
/// What stands before the key in its DER form (RFC 8410 section 4).
const PUBLIC_DER_PREFIX: [u8; 12] = [0x30, 0x2a, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 3, 0x21, 0];

/// The public half.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PublicKey([u8; 32]);

impl PublicKey {
    /// Reads its text in a segment's header.
    pub(super) fn parse(text: &str) -> Option<Self> {
        Some(Self(STANDARD.decode(text).ok()?.try_into().ok()?))
    }

    /// Reads `signing.pub`, or a copy of it.
    pub(super) fn read(path: &Path) -> Result<Self, AuditError> {
        let text = read(path).map_err(|source| AuditError::io("read", path, source))?;
        from_pem(&text, PUBLIC_LABEL)
            .and_then(|der| der.strip_prefix(&PUBLIC_DER_PREFIX)?.try_into().ok())
            .map(Self)
            .ok_or_else(|| AuditError::Key { path: path.to_owned() })
    }

    /// Whether the private half of this key has signed `message`.
    pub(super) fn has_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ED25519, &self.0).verify(message, signature).is_ok()
    }

    fn to_pem(self) -> String {
        to_pem(&[&PUBLIC_DER_PREFIX[..], &self.0].concat(), PUBLIC_LABEL)
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&STANDARD.encode(self.0))
    }
}

/// Both halves.
pub(super) struct SigningKey {
    pair: Ed25519KeyPair,
    public: PublicKey,
}

impl SigningKey {
    /// Reads the key in `directory`.
    pub(super) fn read(directory: &Path) -> Result<Self, AuditError> {
        let path = directory.join(SIGNING_KEY_NAME);
        let text = match read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(AuditError::KeyMissing { path });
            }
            text => text.map_err(|source| AuditError::io("read", &path, source))?,
        };
        let key = from_pem(&text, PRIVATE_LABEL)
            .and_then(|der| Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der).ok())
            .and_then(Self::of)
            .ok_or(AuditError::Key { path })?;
        key.publish(directory)?;
        Ok(key)
    }

    /// Makes a key in `directory`. Before it is there, `prepare` may sign with it.
    pub(super) fn make(
        directory: &Path,
        prepare: impl FnOnce(&Self) -> io::Result<()>,
    ) -> Result<Self, AuditError> {
        let path = directory.join(SIGNING_KEY_NAME);
        let made = || {
            let no_key = || io::Error::other("no key could be made");
            let key = Ed25519KeyPair::generate().ok().and_then(Self::of).ok_or_else(no_key)?;
            let der = key.pair.to_pkcs8v1().map_err(|_| no_key())?;
            prepare(&key)?;
            replace(directory, SIGNING_KEY_NAME, to_pem(der.as_ref(), PRIVATE_LABEL).as_bytes())?;
            Ok(key)
        };
        let key = made().map_err(|source| AuditError::io("make", &path, source))?;
        key.publish(directory)?;
        Ok(key)
    }

    fn of(pair: Ed25519KeyPair) -> Option<Self> {
        let public = PublicKey(pair.public_key().as_ref().try_into().ok()?);
        Some(Self { pair, public })
    }

    /// Puts the public half beside, where it is not there.
    fn publish(&self, directory: &Path) -> Result<(), AuditError> {
        let path = directory.join(PUBLIC_KEY_NAME);
        if PublicKey::read(&path).is_ok_and(|found| found == self.public) {
            return Ok(());
        }
        replace(directory, PUBLIC_KEY_NAME, self.public.to_pem().as_bytes())
            .map_err(|source| AuditError::io("write", &path, source))
    }

    /// The public half.
    pub(super) fn public(&self) -> PublicKey {
        self.public
    }

    pub(super) fn sign(&self, message: &[u8]) -> Vec<u8> {
        self.pair.sign(message).as_ref().to_vec()
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey").field("public", &self.public).finish_non_exhaustive()
    }
}

fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    open_regular(path)?.take(KEY_FILE_BYTES_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > KEY_FILE_BYTES_MAX {
        return Err(io::Error::other("too large to be a key"));
    }
    Ok(text)
}

fn to_pem(der: &[u8], label: &str) -> String {
    // Short keys: the body is less than two lines of base64, and readers take one longer line.
    let body = STANDARD.encode(der);
    let (first, rest) = body.split_at(body.len().min(64));
    let newline = if rest.is_empty() { "" } else { "\n" };
    format!("-----BEGIN {label}-----\n{first}{newline}{rest}\n-----END {label}-----\n")
}

fn from_pem(text: &str, label: &str) -> Option<Vec<u8>> {
    let (_, rest) = text.split_once(&format!("-----BEGIN {label}-----"))?;
    let (body, _) = rest.split_once(&format!("-----END {label}-----"))?;
    let body: String = body.split_ascii_whitespace().collect();
    STANDARD.decode(body).ok()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::process::Command;

    use super::*;

    #[test]
    fn a_key_is_made_once_and_found_again() {
        let directory = tempfile::tempdir().unwrap();
        let missing = SigningKey::read(directory.path());
        assert!(matches!(missing, Err(AuditError::KeyMissing { .. })));
        let path = directory.path().join(SIGNING_KEY_NAME);
        let made = SigningKey::make(directory.path(), |_| {
            assert!(!path.exists());
            Ok(())
        });
        let made = made.unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let found = SigningKey::read(directory.path()).unwrap();
        assert_eq!(made.public(), found.public());
        let signature = found.sign(b"message");
        assert!(made.public().has_signed(b"message", &signature));
        assert!(!made.public().has_signed(b"massage", &signature));
        fs::remove_file(directory.path().join(PUBLIC_KEY_NAME)).unwrap();
        SigningKey::read(directory.path()).unwrap();
        let public = PublicKey::read(&directory.path().join(PUBLIC_KEY_NAME)).unwrap();
        assert_eq!(public, made.public());
        assert_eq!(PublicKey::parse(&public.to_string()), Some(public));
        fs::write(&path, "not a key").unwrap();
        assert!(matches!(SigningKey::read(directory.path()), Err(AuditError::Key { .. })));
    }

    #[test]
    fn openssl_reads_both_files() {
        let directory = tempfile::tempdir().unwrap();
        SigningKey::make(directory.path(), |_| Ok(())).unwrap();
        let openssl = |arguments: &[&str]| {
            Command::new("openssl").args(arguments).current_dir(directory.path()).output()
        };
        let Ok(made) = openssl(&["pkey", "-in", SIGNING_KEY_NAME, "-pubout"]) else {
            eprintln!("no openssl here");
            return;
        };
        let public = fs::read(directory.path().join(PUBLIC_KEY_NAME)).unwrap();
        assert_eq!(String::from_utf8_lossy(&made.stdout), String::from_utf8_lossy(&public));
    }
}
