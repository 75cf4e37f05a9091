//! TLS in front of a plain test server: an authority of the test's own, and relays with certificates that it signs.

use crate::TestServer;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;

/// The names of a relay as a client on this machine reaches it.
pub const HERE: [&str; 2] = ["localhost", "127.0.0.1"];

/// Limit: connections that a relay serves at once; more wait for their turn.
const CONNECTIONS: usize = 64;

/// A certificate authority that clients trust only where they are configured to.
#[derive(Debug)]
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    /// A new one of this name, with a key of its own.
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::new([]).expect("no names are wrong");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().expect("a key");
        Self { issuer: CertifiedIssuer::self_signed(params, key).expect("a certificate") }
    }

    /// Writes its certificate as `ca.pem` into a folder, for a client that is to trust it.
    pub fn write(&self, folder: &Path) -> PathBuf {
        let path = folder.join("ca.pem");
        std::fs::write(&path, self.issuer.pem()).expect("the file");
        path
    }

    /// Serves what a plain server says behind TLS, on a free port, with a certificate for these names.
    pub fn relay(&self, target: SocketAddr, names: &[&str]) -> Relay {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(names).expect("names");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        Relay::start(target, &certificate, &key)
    }

    /// The same with the authority's own certificate, as many tools make one that signs itself.
    pub fn relay_as_itself(&self, target: SocketAddr) -> Relay {
        Relay::start(target, self.issuer.as_ref(), self.issuer.key())
    }
}

/// A port that speaks TLS and passes on what is inside, until it is dropped.
#[must_use]
#[derive(Debug)]
pub struct Relay {
    pub address: SocketAddr,
    counts: Arc<Counts>,
    _server: TestServer,
}

#[derive(Debug, Default)]
struct Counts {
    accepted: AtomicUsize,
    trusted: AtomicUsize,
    /// How many connections are still hung up on.
    to_hang_up: AtomicUsize,
}

impl Relay {
    fn start(target: SocketAddr, certificate: &rcgen::Certificate, key: &KeyPair) -> Self {
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions of TLS")
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key.into())
            .expect("a certificate with its key");
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let counts = Arc::<Counts>::default();
        let server = TestServer::listen(|listener| serve(listener, acceptor, target, Arc::clone(&counts)));
        Self { address: server.address, counts, _server: server }
    }

    /// Hangs up on the next connections, so many of them, before TLS stands: such a client has sent nothing
    /// for the server behind.
    pub fn hang_up_on(&self, connections: usize) {
        self.counts.to_hang_up.store(connections, Ordering::Release);
    }

    pub fn n_accepted(&self) -> usize {
        self.counts.accepted.load(Ordering::Acquire)
    }

    /// How many clients have accepted the certificate. Only what they send reaches the server behind.
    pub fn n_trusted(&self) -> usize {
        self.counts.trusted.load(Ordering::Acquire)
    }
}

async fn serve(listener: TcpListener, acceptor: TlsAcceptor, target: SocketAddr, counts: Arc<Counts>) {
    let slots = Arc::new(tokio::sync::Semaphore::new(CONNECTIONS));
    loop {
        let slot = Arc::clone(&slots).acquire_owned().await.expect("the slots are never closed");
        let (stream, _) = listener.accept().await.expect("a connection");
        counts.accepted.fetch_add(1, Ordering::Release);
        let fewer = |left: usize| left.checked_sub(1);
        if counts.to_hang_up.fetch_update(Ordering::AcqRel, Ordering::Acquire, fewer).is_ok() {
            continue;
        }
        let (acceptor, counts) = (acceptor.clone(), Arc::clone(&counts));
        tokio::spawn(async move {
            // Some tests are about clients that hang up in the middle, because they do not trust the certificate.
            pass(stream, acceptor, target, &counts.trusted).await.ok();
            drop(slot);
        });
    }
}

async fn pass(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    target: SocketAddr,
    n_trusted: &AtomicUsize,
) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut outside = acceptor.accept(stream).await?;
    n_trusted.fetch_add(1, Ordering::Release);
    let mut inside = TcpStream::connect(target).await?;
    inside.set_nodelay(true)?;
    tokio::io::copy_bidirectional(&mut outside, &mut inside).await?;
    Ok(())
}
