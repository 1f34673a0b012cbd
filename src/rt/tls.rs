//! TLS as it is set up: certificates, keys, trusted roots.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::client::ResolvesClientCert;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, RootCertStore, ServerConfig, SignatureScheme};

use super::files;

/// Largest file of certificates or a key: the roots of all the world have less.
const PEM_BYTES_MAX: u64 = 8 << 20;

/// Certificates or keys are of no use. Says which file and what is wrong with it.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The file cannot be read or holds nothing of its kind.
    #[error("{path}: no usable {what}: {reason}")]
    File {
        /// The file.
        path: PathBuf,
        /// What was looked for.
        what: &'static str,
        /// What was wrong.
        reason: String,
    },
    /// Key and certificate are not a pair, or of a kind that is not supported.
    #[error("{certificate} and {key} cannot be used together: {reason}")]
    Pair {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of the key.
        key: PathBuf,
        /// What was wrong.
        reason: String,
    },
    /// Nothing to trust: the system has no roots and no file was named. No fault of any setting:
    /// whoever calls nobody over TLS can go on without.
    #[error(
        "no trusted root certificates were found: {reason} \
         (install the system's CA certificates, or name a file in downstream.extra_roots)"
    )]
    NoRoots {
        /// What the system said.
        reason: String,
    },
    /// The TLS library refuses the setup.
    #[error("TLS cannot be set up: {reason}")]
    Setup {
        /// What it said.
        reason: String,
    },
}

/// Makes aws-lc-rs the cryptography of all TLS in this process. Calling it again does nothing.
pub fn install_crypto_provider() {
    // An error says that one is installed already.
    drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
}

/// The server's side of TLS: a certificate that can be exchanged while connections are served.
#[derive(Clone)]
pub struct ServerTls {
    shared: Arc<ServerShared>,
}

struct ServerShared {
    config: Arc<ServerConfig>,
    current: Arc<Current>,
    certificate: PathBuf,
    key: PathBuf,
}

struct Current {
    pair: ArcSwap<CertifiedKey>,
}

impl ServerTls {
    /// Reads certificate chain and private key (PEM) and checks that they belong together.
    ///
    /// # Errors
    ///
    /// Names the file and what is wrong with it.
    pub fn load(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        install_crypto_provider();
        let pair = load_pair(certificate, key)?;
        let current = Arc::new(Current { pair: ArcSwap::from_pointee(pair) });
        let mut config = ServerConfig::builder()
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(&current) as Arc<dyn ResolvesServerCert>);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        config.ticketer = rustls::crypto::aws_lc_rs::Ticketer::new().map_err(setup)?;
        let shared = ServerShared {
            config: Arc::new(config),
            current,
            certificate: certificate.to_owned(),
            key: key.to_owned(),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Reads the files again. New handshakes use what was read; connections go on as they are.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load); the certificate in use stays.
    pub fn reload(&self) -> Result<(), TlsError> {
        let pair = load_pair(&self.shared.certificate, &self.shared.key)?;
        self.shared.current.pair.store(Arc::new(pair));
        Ok(())
    }

    pub(super) fn session(&self) -> Result<rustls::ServerConnection, rustls::Error> {
        rustls::ServerConnection::new(Arc::clone(&self.shared.config))
    }
}

impl ResolvesServerCert for Current {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.pair.load_full())
    }
}

impl fmt::Debug for Current {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Current").finish_non_exhaustive()
    }
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ServerTls")
            .field("certificate", &self.shared.certificate)
            .field("key", &self.shared.key)
            .finish_non_exhaustive()
    }
}

/// The client's side of TLS: whom it trusts, and what it shows.
#[derive(Clone)]
pub struct ClientTls {
    config: Arc<ClientConfig>,
}

impl ClientTls {
    /// Trusts the roots of the system and those in the PEM files named. Reads files: for the start
    /// of the process, not for a core.
    ///
    /// # Errors
    ///
    /// Names the file and what is wrong with it. [`TlsError::NoRoots`] where there is nothing to
    /// trust at all.
    pub fn new(extra_roots: &[PathBuf]) -> Result<Self, TlsError> {
        Self::build(extra_roots, None)
    }

    /// As [`new`](Self::new), and shows whoever asks for one this certificate (PEM, with those
    /// between it and its authority).
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new); also where certificate and key do not belong together.
    pub fn with_certificate(
        extra_roots: &[PathBuf],
        certificate: &Path,
        key: &Path,
    ) -> Result<Self, TlsError> {
        Self::build(extra_roots, Some((certificate, key)))
    }

    fn build(extra_roots: &[PathBuf], own: Option<(&Path, &Path)>) -> Result<Self, TlsError> {
        install_crypto_provider();
        let own = own.map(|(certificate, key)| load_pair(certificate, key)).transpose()?;
        let mut roots = RootCertStore::empty();
        let native = rustls_native_certs::load_native_certs();
        // A system store may hold a few old certificates that are of no use; that is no reason to
        // trust none of it.
        roots.add_parsable_certificates(native.certs);
        for path in extra_roots {
            for certificate in read_certificates(path)? {
                roots.add(certificate).map_err(|error| TlsError::File {
                    path: path.clone(),
                    what: "root certificate",
                    reason: error.to_string(),
                })?;
            }
        }
        if roots.is_empty() {
            let reason = native
                .errors
                .first()
                .map_or_else(|| "the store is empty".to_owned(), ToString::to_string);
            return Err(TlsError::NoRoots { reason });
        }
        let builder = ClientConfig::builder().with_root_certificates(roots);
        let mut config = match own {
            None => builder.with_no_client_auth(),
            Some(pair) => builder.with_client_cert_resolver(Arc::new(Shown(Arc::new(pair)))),
        };
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { config: Arc::new(config) })
    }

    pub(super) fn session(&self, host: &str) -> Result<rustls::ClientConnection, String> {
        let name = rustls::pki_types::ServerName::try_from(host.to_owned())
            .map_err(|error| error.to_string())?;
        rustls::ClientConnection::new(Arc::clone(&self.config), name)
            .map_err(|error| error.to_string())
    }
}

/// The one certificate that is shown to whoever asks.
struct Shown(Arc<CertifiedKey>);

impl ResolvesClientCert for Shown {
    fn resolve(&self, _: &[&[u8]], schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.0.key.choose_scheme(schemes).map(|_| Arc::clone(&self.0))
    }

    fn has_certs(&self) -> bool {
        true
    }
}

impl fmt::Debug for Shown {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Shown").finish_non_exhaustive()
    }
}

impl fmt::Debug for ClientTls {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ClientTls").finish_non_exhaustive()
    }
}

fn load_pair(certificate: &Path, key: &Path) -> Result<CertifiedKey, TlsError> {
    let chain = read_certificates(certificate)?;
    let problem = |reason: String| {
        let (path, what) = (key.to_owned(), "private key");
        TlsError::File { path, what, reason }
    };
    let pem =
        files::read_regular(key, PEM_BYTES_MAX).map_err(|error| problem(error.to_string()))?;
    let private =
        PrivateKeyDer::from_pem_slice(&pem).map_err(|error| problem(error.to_string()))?;
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    CertifiedKey::from_der(chain, private, &provider).map_err(|error| TlsError::Pair {
        certificate: certificate.to_owned(),
        key: key.to_owned(),
        reason: error.to_string(),
    })
}

fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let problem =
        |reason: String| TlsError::File { path: path.to_owned(), what: "certificate", reason };
    let pem =
        files::read_regular(path, PEM_BYTES_MAX).map_err(|error| problem(error.to_string()))?;
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(&pem)
        .collect::<Result<_, _>>()
        .map_err(|error| problem(error.to_string()))?;
    if certificates.is_empty() {
        return Err(problem("the file holds none".to_owned()));
    }
    Ok(certificates)
}

fn setup(error: rustls::Error) -> TlsError {
    TlsError::Setup { reason: error.to_string() }
}
