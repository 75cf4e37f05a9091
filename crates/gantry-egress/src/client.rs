//! The HTTP client: no cookies, no redirects, bounded answers.
//!
//! Its errors tell a request that cannot have reached the server from one that may have ([`HttpError::was_sent`]):
//! callers decide by that whether an effect can have happened.

use crate::address_guard::{self, AddressGuard, IpNet};
use crate::{local, tls};
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderName, Method, StatusCode, header};
use reqwest::ClientBuilder;
use std::{error::Error as _, net::IpAddr, sync::Arc, time::Duration};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::OnceCell;

/// How long connecting may take, DNS and TLS included.
const CONNECT: Duration = Duration::from_secs(10);

/// How long an idle connection is kept. Common servers (Node, uvicorn) close theirs after five seconds; a request sent
/// into a connection that is just being closed may or may not have been processed.
const IDLE: Duration = Duration::from_secs(4);

/// Idle connections that are kept per server.
const IDLE_PER_HOST: usize = 32;

/// Interval of TCP keep-alive probes.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// Headers about one connection, which are neither forwarded nor set by callers.
pub const HOP_BY_HOP: [HeaderName; 11] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::EXPECT,
    HeaderName::from_static("http2-settings"),
];

/// Why a request got no answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum HttpError {
    /// The request is malformed; nothing was sent.
    #[error("{address:?} cannot be asked: {reason}")]
    Request { address: String, reason: String },
    /// No connection: nothing listens there, the certificate is not trusted, or TLS cannot be set up. Nothing was sent.
    #[error("cannot connect to {address}: {reason}")]
    Connect { address: String, reason: String },
    /// The host has an address that the guard refuses. No connection was made.
    #[error("{address} is at {found}, which is not a public address and was not opened")]
    NotAllowed { address: String, found: IpAddr },
    /// The server redirects. Following it could carry credentials to another server.
    #[error("{address} redirects to {target}; configure that address if it is the right one")]
    Redirect { address: String, target: String },
    /// The connection broke after the request was sent.
    #[error("the connection to {address} broke: {reason}")]
    Broken { address: String, reason: String },
    /// The body is longer than the caller reads.
    #[error("the answer of {address} is longer than {limit} bytes")]
    TooLarge { address: String, limit: usize },
}

impl HttpError {
    /// Whether the server may have got the request.
    #[must_use]
    pub fn was_sent(&self) -> bool {
        matches!(self, Self::Broken { .. } | Self::TooLarge { .. })
    }
}

/// A client with a pool of connections, built on first use. Cloning it shares the pool.
#[derive(Debug, Clone)]
pub struct HttpClient {
    inner: Arc<OnceCell<reqwest::Client>>,
    configure: fn(ClientBuilder) -> ClientBuilder,
    /// Decides where the client may connect; none means anywhere.
    guard: Option<AddressGuard>,
}

impl HttpClient {
    /// A client that connects anywhere, through the proxy that the environment names. It trusts the authorities in the
    /// system's store, or those in `SSL_CERT_FILE` and `SSL_CERT_DIR` instead, as they are at its first request.
    #[must_use]
    pub fn unguarded() -> Self {
        Self::configured(|builder| builder, None)
    }

    /// A client that connects to public addresses and to the given private ranges only. It uses no proxy, which would
    /// resolve names by itself. Compressed bodies are unpacked piece by piece, so that limits count unpacked bytes.
    #[must_use]
    pub fn guarded(private: &[IpNet]) -> Self {
        Self::guarded_by(AddressGuard::new(private))
    }

    fn guarded_by(guard: AddressGuard) -> Self {
        Self::configured(|builder| builder.gzip(true).deflate(true), Some(guard))
    }

    /// A client for the Gantry server on this machine: no proxy, no certificates to load, and a connection for each
    /// request.
    pub(crate) fn local() -> Self {
        let configure = |builder: ClientBuilder| {
            let builder = builder.no_proxy().tls_certs_only([]);
            builder.connect_timeout(local::CONNECT).pool_max_idle_per_host(0)
        };
        Self::configured(configure, None)
    }

    /// A client for [`crate::proxy`]: guarded, and bodies stay compressed as they came.
    pub(crate) fn relaying(guard: AddressGuard) -> Self {
        Self::configured(|builder| builder, Some(guard))
    }

    fn configured(configure: fn(ClientBuilder) -> ClientBuilder, guard: Option<AddressGuard>) -> Self {
        Self { inner: Arc::default(), configure, guard }
    }

    fn builder(&self) -> ClientBuilder {
        let builder = (self.configure)(builder());
        match &self.guard {
            Some(guard) => builder.no_proxy().dns_resolver(guard.clone()),
            None => builder,
        }
    }

    fn build(&self) -> Result<reqwest::Client, String> {
        // A machine without trusted authorities still reaches servers without TLS.
        let built = self.builder().build().or_else(|_| self.builder().tls_certs_only([]).build());
        built.map_err(reason)
    }

    /// Sends a request and returns when the head of the answer is there. A redirect is an error.
    ///
    /// Cancel-safety: dropping the future closes the connection.
    pub async fn send(
        &self,
        method: Method,
        url: &str,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<HttpResponse, HttpError> {
        let response = self.exchange(method, url, headers, body.into()).await?;
        if response.status().is_redirection() {
            let target = response.headers().get(header::LOCATION).and_then(|target| target.to_str().ok());
            let target = target.map_or_else(|| "nowhere".to_owned(), display_url);
            return Err(HttpError::Redirect { address: response.address, target });
        }
        Ok(response)
    }

    /// [`Self::send`] with a body that may be a stream; a redirect is an answer like any other.
    pub(crate) async fn exchange(
        &self,
        method: Method,
        url: &str,
        headers: HeaderMap,
        body: reqwest::Body,
    ) -> Result<HttpResponse, HttpError> {
        let address = display_url(url);
        if let Some(Err(refused)) = self.guard.as_ref().map(|guard| guard.check_literal(url)) {
            return Err(HttpError::NotAllowed { address, found: refused.0 });
        }
        // Loading the trusted authorities takes a while, so the client is built on a thread that may block.
        let build = async || {
            let client = self.clone();
            let built = tokio::task::spawn_blocking(move || client.build()).await;
            let built = built.unwrap_or_else(|crash| Err(crash.to_string()));
            built.map_err(|reason| HttpError::Connect { address: address.clone(), reason })
        };
        let mut request = self.inner.get_or_try_init(build).await?.request(method, url).headers(headers);
        if body.as_bytes().is_none_or(|bytes| !bytes.is_empty()) {
            request = request.body(body);
        }
        match request.send().await {
            Ok(inner) => Ok(HttpResponse { address, inner }),
            Err(error) if let Some(refused) = address_guard::refusal(&error) => {
                Err(HttpError::NotAllowed { address, found: refused.0 })
            }
            Err(error) if error.is_connect() => {
                let secure = address.starts_with("https:");
                let about_tls = secure.then(|| tls::explain(&error)).flatten();
                let reason = about_tls.unwrap_or_else(|| reason(error));
                Err(HttpError::Connect { address, reason })
            }
            Err(error) if error.is_builder() => Err(HttpError::Request { address, reason: reason(error) }),
            Err(error) => Err(HttpError::Broken { address, reason: reason(error) }),
        }
    }
}

fn builder() -> ClientBuilder {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Another thread may have installed it in between; it is the same one.
        rustls::crypto::ring::default_provider().install_default().unwrap_or_default();
    }
    reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .connect_timeout(CONNECT)
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(IDLE_PER_HOST)
        .tcp_nodelay(true)
        .tcp_keepalive(KEEP_ALIVE)
        // Answers of MCP servers are passed on as they came.
        .no_gzip()
        .no_deflate()
        .user_agent(concat!("gantry/", env!("CARGO_PKG_VERSION")))
}

/// An answer whose body is still to be read.
#[derive(Debug)]
pub struct HttpResponse {
    address: String,
    pub(crate) inner: reqwest::Response,
}

impl HttpResponse {
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.inner.status()
    }

    #[must_use]
    pub fn headers(&self) -> &HeaderMap {
        self.inner.headers()
    }

    /// The next piece of the body; `None` at its end.
    ///
    /// Cancel-safety: no piece is lost when the future is dropped.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, HttpError> {
        let broken = |error| HttpError::Broken { address: self.address.clone(), reason: reason(error) };
        self.inner.chunk().await.map_err(broken)
    }

    /// The whole body, if it has at most `limit` bytes.
    ///
    /// # Errors
    /// The connection broke, or there is more.
    pub async fn body(mut self, limit: usize) -> Result<Bytes, HttpError> {
        let mut whole = BytesMut::new();
        while let Some(chunk) = self.chunk().await? {
            if whole.len() + chunk.len() > limit {
                return Err(HttpError::TooLarge { address: self.address, limit });
            }
            if whole.is_empty() && self.inner.content_length() == Some(chunk.len() as u64) {
                return Ok(chunk);
            }
            whole.extend_from_slice(&chunk);
        }
        Ok(whole.freeze())
    }

    /// The bare connection after `101 Switching Protocols`.
    pub async fn upgrade(self) -> Result<impl AsyncRead + AsyncWrite + Send + Unpin + 'static, HttpError> {
        let broken = |error| HttpError::Broken { address: self.address, reason: reason(error) };
        self.inner.upgrade().await.map_err(broken)
    }
}

/// A URL as it may be shown and logged: without user, query and fragment, which may hold secrets.
#[must_use]
pub fn display_url(url: &str) -> String {
    match reqwest::Url::parse(url) {
        Ok(mut url) => {
            url.set_query(None);
            url.set_fragment(None);
            let cleared = url.set_username("").is_ok() && url.set_password(None).is_ok();
            if cleared { url.into() } else { url.scheme().to_owned() }
        }
        Err(_) => url.split(['?', '#']).next().unwrap_or_default().to_owned(),
    }
}

/// The chain of causes; the outermost one alone says little more than "error sending request".
fn reason(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    for cause in std::iter::successors(error.source(), |&cause| cause.source()).map(ToString::to_string) {
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address_guard::parse_range;
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
    };

    impl HttpClient {
        /// A guarded client that trusts one authority only.
        pub(crate) fn trusting(guard: &AddressGuard, authority: &reqwest::Certificate) -> Self {
            let client = Self::relaying(guard.clone());
            let built = client.builder().tls_certs_only([authority.clone()]).build().unwrap();
            Self { inner: Arc::new(OnceCell::from(built)), ..client }
        }
    }

    /// A server that answers one request with these bytes.
    async fn once(answer: &'static [u8]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp?key=s3cret", listener.local_addr().unwrap());
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            stream.write_all(answer).await.unwrap();
        });
        url
    }

    async fn get(url: &str) -> Result<HttpResponse, HttpError> {
        HttpClient::unguarded().send(Method::GET, url, HeaderMap::new(), Bytes::new()).await
    }

    #[tokio::test]
    async fn a_redirect_is_an_error_that_names_its_target_without_secrets() {
        let url = once(
            b"HTTP/1.1 307 T\r\nlocation: https://u:p@other.example/x?key=1\r\ncontent-length: 0\r\n\r\n",
        )
        .await;
        let error = get(&url).await.unwrap_err();
        assert!(!error.was_sent());
        let text = error.to_string();
        assert!(text.contains("redirects to https://other.example/x;"), "{text}");
        assert!(!text.contains("s3cret"), "{text}");
    }

    #[tokio::test]
    async fn a_guarded_client_connects_only_where_it_may() {
        let post = async |private: &[&str], url: &str| {
            let private: Vec<IpNet> = private.iter().map(|range| parse_range(range).unwrap()).collect();
            let client = HttpClient::guarded(&private);
            client.send(Method::POST, url, HeaderMap::new(), Bytes::from_static(b"{}")).await
        };
        let refused = async |private: &[&str], url: &str| {
            let error = post(private, url).await.unwrap_err();
            assert!(matches!(error, HttpError::NotAllowed { .. }) && !error.was_sent(), "{error}");
            error.to_string()
        };
        // Nothing is accepted here: a connection is noticed.
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        for host in ["127.0.0.1", "0x7f000001", "[::ffff:127.0.0.1]", "localhost"] {
            let text = refused(&["10.0.0.0/8"], &format!("http://{host}:{port}/hook?key=s3cret")).await;
            assert!(text.contains("not a public address") && !text.contains("s3cret"), "{text}");
        }
        tokio::select! {
            biased;
            _ = listener.accept() => panic!("a client has connected"),
            () = std::future::ready(()) => {}
        }
        // The literal address, and a name whose addresses are all open.
        for host in ["127.0.0.1", "localhost"] {
            let url = once(b"HTTP/1.1 204 N\r\n\r\n").await.replace("127.0.0.1", host);
            let answer = post(&["127.0.0.1/32", "::1/128"], &url).await.unwrap();
            assert_eq!(answer.status(), StatusCode::NO_CONTENT);
        }
    }

    #[tokio::test]
    async fn a_name_is_looked_up_once_for_each_request_and_checked_each_time() {
        use std::sync::atomic::{AtomicUsize, Ordering};
        let looked_up = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&looked_up);
        let guard = AddressGuard::scripted(&[parse_range("127.0.0.1").unwrap()], move |_| {
            let first = counted.fetch_add(1, Ordering::SeqCst) == 0;
            vec![if first { "127.0.0.1" } else { "169.254.169.254" }.parse().unwrap()]
        });
        let client = HttpClient::guarded_by(guard);
        let url = once(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").await;
        let url = url.replace("127.0.0.1", "flip.example");
        let ask = || client.send(Method::GET, &url, HeaderMap::new(), Bytes::new());
        assert_eq!(ask().await.unwrap().status(), StatusCode::OK);
        assert!(
            matches!(ask().await, Err(HttpError::NotAllowed { found, .. }) if found.to_string() == "169.254.169.254")
        );
        assert_eq!(looked_up.load(Ordering::SeqCst), 2);
    }

    #[tokio::test]
    async fn a_body_is_read_up_to_a_limit() {
        let url = once(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello").await;
        assert_eq!(get(&url).await.unwrap().body(5).await.unwrap(), "hello");
        let url = once(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nhello!").await;
        assert!(matches!(get(&url).await.unwrap().body(5).await, Err(HttpError::TooLarge { limit: 5, .. })));
    }

    #[tokio::test]
    async fn requests_that_were_not_sent_differ_from_those_that_broke() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        drop(listener);
        assert!(!get(&url).await.unwrap_err().was_sent());
        let url = once(b"").await;
        assert!(get(&url).await.unwrap_err().was_sent());
        assert!(matches!(get("mailto:a").await, Err(error) if !error.was_sent()));
    }
}
