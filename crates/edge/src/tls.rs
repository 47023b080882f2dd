//! TLS for the listener: certificate and key from PEM files, reloaded in place while connections go on.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::{CryptoProvider, aws_lc_rs};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{self, ServerConfig};
use tokio_rustls::server::TlsStream;

/// A handshake is two round trips; slower is a client that holds the door.
pub const TLS_HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Handshakes cost the most CPU of all that a stranger can ask for. Further clients wait, and may be evicted meanwhile.
const HANDSHAKES: usize = 64;

/// How often the files are looked at. A renewal comes days before the old certificate ends.
pub const TLS_RELOAD_INTERVAL: Duration = Duration::from_secs(5);

/// The first byte of every TLS connection: a handshake record.
pub(crate) const TLS_FIRST_BYTE: u8 = 0x16;

/// The PEM files a server proves itself with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate of the server first, then those that lead to its authority.
    pub cert: PathBuf,
    pub key: PathBuf,
}

/// Why the files cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{path} cannot be read as {what}: {cause}")]
    File { path: PathBuf, what: &'static str, cause: String },
    #[error("the certificate in {cert} and the key in {key} do not go together: {cause}")]
    Pair { cert: PathBuf, key: PathBuf, cause: String },
    #[error("TLS cannot be set up: {0}")]
    Setup(String),
}

/// A TLS listener's identity. Clones share it, so that a reload reaches all.
#[derive(Clone)]
pub struct Tls {
    acceptor: TlsAcceptor,
    files: TlsFiles,
    current: Arc<CurrentCertificate>,
    handshakes: Arc<Semaphore>,
}

/// The certificate that new connections get.
#[derive(Debug)]
struct CurrentCertificate(RwLock<Loaded>);

#[derive(Debug)]
struct Loaded {
    key: Arc<CertifiedKey>,
    version: FileVersion,
}

/// What changes when a file is replaced: time and length of both.
type FileVersion = [Option<(SystemTime, u64)>; 2];

impl ResolvesServerCert for CurrentCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.read().unwrap_or_else(PoisonError::into_inner).key.clone())
    }
}

impl Tls {
    pub fn load(files: TlsFiles) -> Result<Self, Error> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let loaded = Loaded { version: version(&files), key: Arc::new(read(&files, &provider)?) };
        let current = Arc::new(CurrentCertificate(RwLock::new(loaded)));
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| Error::Setup(error.to_string()))?
            .with_no_client_auth()
            .with_cert_resolver(current.clone());
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(config));
        Ok(Self { acceptor, files, current, handshakes: Arc::new(Semaphore::new(HANDSHAKES)) })
    }

    /// Whether the files are others than those in use.
    pub fn has_changed(&self) -> bool {
        version(&self.files) != self.current.0.read().unwrap_or_else(PoisonError::into_inner).version
    }

    /// Reads the files again. If they cannot be used, the certificate in use stays, and so does the error until they change.
    pub fn reload(&self) -> Result<(), Error> {
        let version = version(&self.files);
        let key = read(&self.files, &aws_lc_rs::default_provider());
        let mut current = self.current.0.write().unwrap_or_else(PoisonError::into_inner);
        current.version = version;
        current.key = Arc::new(key?);
        Ok(())
    }

    /// None for a client that does not get through the handshake in time.
    pub(crate) async fn accept(&self, stream: TcpStream) -> Option<Box<TlsStream<TcpStream>>> {
        let handshake = async {
            let _permit = self.handshakes.acquire().await.ok()?;
            self.acceptor.accept(stream).await.ok()
        };
        timeout(TLS_HANDSHAKE_TIMEOUT, handshake).await.ok().flatten().map(Box::new)
    }
}

fn read(files: &TlsFiles, provider: &CryptoProvider) -> Result<CertifiedKey, Error> {
    let unreadable = |path: &Path, what, cause: String| Error::File { path: path.to_owned(), what, cause };
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(&files.cert)
        .and_then(Iterator::collect)
        .map_err(|error| unreadable(&files.cert, "certificates in PEM", error.to_string()))?;
    if chain.is_empty() {
        return Err(unreadable(&files.cert, "certificates in PEM", "it holds none".into()));
    }
    let key = PrivateKeyDer::from_pem_file(&files.key)
        .map_err(|error| unreadable(&files.key, "a private key in PEM", error.to_string()))?;
    CertifiedKey::from_der(chain, key, provider).map_err(|error: rustls::Error| Error::Pair {
        cert: files.cert.clone(),
        key: files.key.clone(),
        cause: error.to_string(),
    })
}

fn version(files: &TlsFiles) -> FileVersion {
    [&files.cert, &files.key].map(|path| {
        let found = fs::metadata(path).ok()?;
        Some((found.modified().ok()?, found.len()))
    })
}
