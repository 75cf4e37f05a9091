//! Credentials that the job never holds.

use super::*;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::PrivatePkcs8KeyDer;
use tokio_rustls::TlsAcceptor;

/// A TLS server for `git.test`, and the authority that vouches for it.
async fn secure(answer: &'static str) -> (SocketAddr, reqwest::Certificate, Arc<Mutex<Vec<String>>>) {
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let names = vec!["git.test".to_owned()];
    let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &authority).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivatePkcs8KeyDer::from(key.serialize_der()).into(),
        )
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = Arc::clone(&asked);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            if let Ok(mut stream) = acceptor.accept(stream).await {
                one(&mut stream, &log, answer).await;
            }
        }
    });
    (address, reqwest::Certificate::from_der(authority.der()).unwrap(), asked)
}

async fn bench(rules: Rules, authority: &reqwest::Certificate) -> Bench {
    let guard = AddressGuard::scripted(&rules.private, |_| vec!["127.0.0.1".parse().unwrap()]);
    let secure = crate::HttpClient::trusting(&guard, authority);
    let mut session = ProxySession::guarded_by(guard, Arc::new(rules));
    session.secure = secure;
    Bench::behind(session).await
}

#[tokio::test]
async fn a_request_in_the_clear_goes_out_over_tls_with_the_credential() {
    let (address, authority, asked) = secure(
        "HTTP/1.1 302 Found\r\nset-cookie: a=b\r\nlocation: https://elsewhere.test/\r\ncontent-length: 5\r\n\r\nhello",
    )
    .await;
    let port = address.port();
    let credential =
        Credential::new(&format!("https://git.test:{port}/acme/repo.git"), "Basic c2VjcmV0").unwrap();
    assert!(!format!("{credential:?}").contains("c2VjcmV0"));
    let rules =
        Rules { private: loopback(), credentials: vec![credential], hosts: Some(vec![]), ..Rules::default() };
    let bench = bench(rules, &authority).await;
    let said = bench
        .say(&format!(
            "POST http://git.test:{port}/acme/repo.git/git-receive-pack?x=1 HTTP/1.1\r\nHost: evil.example\r\n\
             Authorization: Bearer of-the-job\r\nConnection: close\r\nContent-Length: 4\r\n\r\npack"
        ))
        .await;
    // Not followed, and without the cookie.
    assert!(said.starts_with("HTTP/1.1 302") && said.ends_with("hello"), "{said}");
    assert!(said.contains("elsewhere.test") && !said.contains("a=b") && !said.contains("c2VjcmV0"), "{said}");
    let request = asked.lock().unwrap().join("\n");
    assert!(request.starts_with("POST /acme/repo.git/git-receive-pack?x=1 HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("authorization: Basic c2VjcmV0\r\n"), "{request}");
    assert!(!request.contains("of-the-job") && !request.contains("evil"), "{request}");
    assert!(request.ends_with("pack") && request.contains("content-length: 4"), "{request}");
    // Beside the path, above it, or beside the server there is no credential, and here no way either.
    for beside in [
        "/acme/repo.gitx/a",
        "/acme/",
        "/acme/repo.git/../other",
        "/acme/repo.git/%2e%2e/other",
        "/acme/repo.git%2f..",
    ] {
        let said = bench.get(&format!("http://git.test:{port}{beside}")).await;
        assert!(said.contains("not among"), "{beside}: {said}");
    }
    assert!(bench.get("http://git.test/acme/repo.git").await.contains("not among"));
    assert_eq!(asked.lock().unwrap().len(), 1);
    assert_eq!(bench.end().await.hosts, [format!("git.test:{port}")]);
}

#[tokio::test]
async fn a_credential_goes_to_trusted_servers_at_allowed_addresses_only() {
    let (address, authority, asked) = secure(HELLO).await;
    let (_, stranger, _) = secure(HELLO).await;
    let port = address.port();
    let rules = |private| Rules {
        private,
        credentials: vec![Credential::new(&format!("https://git.test:{port}"), "Basic c2VjcmV0").unwrap()],
        ..Rules::default()
    };
    let url = format!("http://git.test:{port}/");
    let said = bench(rules(loopback()), &stranger).await.get(&url).await;
    assert!(said.starts_with("HTTP/1.1 502"), "{said}");
    let closed = bench(rules(Vec::new()), &authority).await;
    let said = closed.get(&url).await;
    assert!(said.starts_with("HTTP/1.1 403") && said.contains("public address"), "{said}");
    assert_eq!(closed.end().await.refused, [format!("git.test:{port}")]);
    assert!(asked.lock().unwrap().is_empty());
}

#[test]
fn a_credential_is_for_tls_only_and_for_one_host() {
    for bad in [
        "http://a.example",
        "a.example",
        "https://u:p@a.example",
        "https://a.example/?q",
        "https://",
        "ssh://a",
    ] {
        assert!(matches!(Credential::new(bad, "x"), Err(BadCredential::Address(_))), "{bad}");
    }
    assert!(matches!(Credential::new("https://a.example", "a\r\nb: c"), Err(BadCredential::Value(_))));
}
