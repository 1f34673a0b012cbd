//! The key that signs checkpoints: made at the first start, kept beside the segments.
//!
//! `signing.key` is for the server alone; `signing.pub` is for whoever checks the log, best from a
//! copy on another machine. Both are PEM as openssl reads it.

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::AuditError;
use super::directory::{PUBLIC_KEY_NAME, SIGNING_KEY_NAME, replace};

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
    /// Reads the key in `directory`, or makes one where `may_make`.
    pub(super) fn open(directory: &Path, may_make: bool) -> Result<Self, AuditError> {
        let path = directory.join(SIGNING_KEY_NAME);
        let key_error = || AuditError::Key { path: path.clone() };
        let pair = match read(&path) {
            Ok(text) => {
                let der = from_pem(&text, PRIVATE_LABEL).ok_or_else(key_error)?;
                Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der).map_err(|_| key_error())?
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound && may_make => {
                make(directory).map_err(|source| AuditError::io("make", &path, source))?
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(AuditError::KeyMissing { path });
            }
            Err(source) => return Err(AuditError::io("read", &path, source)),
        };
        let public: [u8; 32] = pair.public_key().as_ref().try_into().map_err(|_| key_error())?;
        let key = Self { pair, public: PublicKey(public) };
        let public_path = directory.join(PUBLIC_KEY_NAME);
        if !PublicKey::read(&public_path).is_ok_and(|found| found == key.public) {
            replace(directory, PUBLIC_KEY_NAME, key.public.to_pem().as_bytes())
                .map_err(|source| AuditError::io("write", &public_path, source))?;
        }
        Ok(key)
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

fn make(directory: &Path) -> io::Result<Ed25519KeyPair> {
    let no_key = |_| io::Error::other("no key could be made");
    let pair = Ed25519KeyPair::generate().map_err(no_key)?;
    let der = pair.to_pkcs8v1().map_err(no_key)?;
    replace(directory, SIGNING_KEY_NAME, to_pem(der.as_ref(), PRIVATE_LABEL).as_bytes())?;
    Ok(pair)
}

fn read(path: &Path) -> io::Result<String> {
    if fs::metadata(path)?.len() > KEY_FILE_BYTES_MAX {
        return Err(io::Error::other("too large to be a key"));
    }
    fs::read_to_string(path)
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
    use std::os::unix::fs::PermissionsExt as _;
    use std::process::Command;

    use super::*;

    #[test]
    fn a_key_is_made_once_and_found_again() {
        let directory = tempfile::tempdir().unwrap();
        assert!(matches!(
            SigningKey::open(directory.path(), false),
            Err(AuditError::KeyMissing { .. })
        ));
        let made = SigningKey::open(directory.path(), true).unwrap();
        let path = directory.path().join(SIGNING_KEY_NAME);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let found = SigningKey::open(directory.path(), false).unwrap();
        assert_eq!(made.public(), found.public());
        let signature = found.sign(b"message");
        assert!(made.public().has_signed(b"message", &signature));
        assert!(!made.public().has_signed(b"massage", &signature));
        fs::remove_file(directory.path().join(PUBLIC_KEY_NAME)).unwrap();
        SigningKey::open(directory.path(), false).unwrap();
        let public = PublicKey::read(&directory.path().join(PUBLIC_KEY_NAME)).unwrap();
        assert_eq!(public, made.public());
        assert_eq!(PublicKey::parse(&public.to_string()), Some(public));
        fs::write(&path, "not a key").unwrap();
        assert!(matches!(SigningKey::open(directory.path(), true), Err(AuditError::Key { .. })));
    }

    #[test]
    fn openssl_reads_both_files() {
        let directory = tempfile::tempdir().unwrap();
        SigningKey::open(directory.path(), true).unwrap();
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
