//! Outbound HTTP, made in one place only.
//!
//! [`LocalServer`] is the Gantry server that runs on the same machine, for the command line; [`HttpClient`] reaches
//! other people's servers, and [`proxy`] lets jailed jobs do so. Nothing outside this crate opens an HTTP connection.

pub mod guard;
pub mod host;
mod http_client;
pub mod proxy;

/// An address, read as browsers read it: every spelling of an IP address comes out as that address.
pub use reqwest::Url;

pub use http_client::{HttpClient, HttpError, HttpResponse};

mod tls;

mod local_socket;

pub use local_socket::{SocketReader, SocketWriter};

use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::handshake;
use hyper_util::rt::TokioIo;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpStream;

/// How long connecting may take; the server is on this machine.
const CONNECT: Duration = Duration::from_secs(2);

/// Bytes of an answer that is read whole.
const ANSWER_BYTES: usize = 64 * 1024 * 1024;

/// Why a request to the local server got no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing listens there.
    #[error("cannot reach the server at {address}: {reason}")]
    Connect { address: SocketAddr, reason: String },
    /// The connection broke.
    #[error("the connection to {address} broke: {reason}")]
    Broken { address: SocketAddr, reason: String },
    /// The request cannot be sent.
    #[error("the request cannot be sent: {0}")]
    Request(#[from] http::Error),
}

/// The Gantry server on this machine.
#[derive(Clone)]
pub struct LocalServer {
    address: SocketAddr,
    key: Option<String>,
}

impl std::fmt::Debug for LocalServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LocalServer").field("address", &self.address).finish_non_exhaustive()
    }
}

impl LocalServer {
    /// The server at this address; the key, if any, is sent with every request.
    #[must_use]
    pub fn new(address: SocketAddr, key: Option<String>) -> Self {
        Self { address, key }
    }

    /// The address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sends a request and returns the answer with its body still to be read.
    ///
    /// # Errors
    /// The server cannot be reached, or the connection breaks.
    pub async fn open(
        &self,
        request: http::request::Builder,
        body: Bytes,
    ) -> Result<Response<Incoming>, Error> {
        let stream = self.reach().await?;
        let broken = |error: hyper::Error| Error::Broken { address: self.address, reason: error.to_string() };
        let (mut sender, connection) =
            handshake::<_, Full<Bytes>>(TokioIo::new(stream)).await.map_err(broken)?;
        tokio::spawn(connection);
        sender.send_request(self.prepared(request, body)?).await.map_err(broken)
    }

    /// Sends a request and reads the whole answer, up to a limit.
    ///
    /// # Errors
    /// The server cannot be reached, or the connection breaks.
    pub async fn send(
        &self,
        request: http::request::Builder,
        body: Bytes,
    ) -> Result<(StatusCode, http::HeaderMap, Bytes), Error> {
        let (parts, incoming) = self.open(request, body).await?.into_parts();
        let limited = http_body_util::Limited::new(incoming, ANSWER_BYTES);
        let whole = limited
            .collect()
            .await
            .map_err(|error| Error::Broken { address: self.address, reason: error.to_string() })?;
        Ok((parts.status, parts.headers, whole.to_bytes()))
    }

    async fn reach(&self) -> Result<TcpStream, Error> {
        let connect = |reason: String| Error::Connect { address: self.address, reason };
        let stream = match tokio::time::timeout(CONNECT, TcpStream::connect(self.address)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return Err(connect(error.to_string())),
            Err(_) => return Err(connect("it does not answer".into())),
        };
        stream.set_nodelay(true).map_err(|error| connect(error.to_string()))?;
        Ok(stream)
    }

    fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    fn prepared(&self, request: http::request::Builder, body: Bytes) -> Result<Request<Full<Bytes>>, Error> {
        let mut request = request.header(header::HOST, self.address.to_string());
        if let Some(key) = &self.key {
            request = request.header(header::AUTHORIZATION, format!("Bearer {key}"));
        }
        Ok(request.body(Full::new(body))?)
    }
}
