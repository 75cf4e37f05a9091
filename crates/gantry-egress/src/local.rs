//! The Gantry server on this machine, as the command line talks to it: plain HTTP with the key of the data folder, and
//! one WebSocket for `gantry mcp`.

use crate::{HttpClient, HttpError, HttpResponse};
use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

/// How long connecting may take; the server is on this machine.
pub(crate) const CONNECT: Duration = Duration::from_secs(2);

/// Largest answer that [`LocalServer::send`] reads.
const ANSWER_BYTES: usize = 64 * 1024 * 1024;

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
    /// The server at this address. The key, if any, is sent with every request.
    #[must_use]
    pub fn new(address: SocketAddr, key: Option<String>) -> Self {
        Self { address, key }
    }

    /// Sends a request, whose URI is a path, and returns the answer with its body still to be read.
    pub async fn open(
        &self,
        request: http::request::Builder,
        body: Bytes,
    ) -> Result<HttpResponse, HttpError> {
        let request = request.body(()).map_err(|error| self.unsendable(&error))?;
        let (mut parts, ()) = request.into_parts();
        self.authorize(&mut parts.headers)?;
        let url = format!("http://{}{}", self.address, parts.uri);
        HttpClient::local().exchange(parts.method, &url, parts.headers, body.into()).await
    }

    /// Sends a request and reads the whole answer, up to a limit.
    pub async fn send(
        &self,
        request: http::request::Builder,
        body: Bytes,
    ) -> Result<(StatusCode, HeaderMap, Bytes), HttpError> {
        let response = self.open(request, body).await?;
        let (status, headers) = (response.status(), response.headers().clone());
        Ok((status, headers, response.body(ANSWER_BYTES).await?))
    }

    /// Opens a WebSocket with the subprotocol `mcp` at a path.
    pub async fn websocket(&self, path: &str) -> Result<(SocketReader, SocketWriter), HttpError> {
        let address = self.address;
        let url = format!("ws://{address}{path}");
        let mut request = url.into_client_request().map_err(|error| self.unsendable(&error))?;
        let protocol = HeaderName::from_static("sec-websocket-protocol");
        request.headers_mut().insert(protocol, HeaderValue::from_static("mcp"));
        self.authorize(request.headers_mut())?;
        let failed = |reason: String| HttpError::Connect { address: address.to_string(), reason };
        let stream = match timeout(CONNECT, TcpStream::connect(address)).await {
            Ok(connected) => connected.map_err(|error| failed(error.to_string()))?,
            Err(_elapsed) => return Err(failed("it does not answer".into())),
        };
        stream.set_nodelay(true).map_err(|error| failed(error.to_string()))?;
        let (socket, _) = client_async(request, stream).await.map_err(|error| failed(refusal(&error)))?;
        let (writer, reader) = socket.split();
        Ok((SocketReader(reader), SocketWriter(writer)))
    }

    fn authorize(&self, headers: &mut HeaderMap) -> Result<(), HttpError> {
        let Some(key) = &self.key else { return Ok(()) };
        let bearer =
            HeaderValue::from_str(&format!("Bearer {key}")).map_err(|error| self.unsendable(&error))?;
        headers.insert(header::AUTHORIZATION, bearer);
        Ok(())
    }

    fn unsendable(&self, error: &dyn std::error::Error) -> HttpError {
        HttpError::Request { address: self.address.to_string(), reason: error.to_string() }
    }
}

/// Why the handshake failed; the server says it in the body of its answer.
fn refusal(error: &tungstenite::Error) -> String {
    let tungstenite::Error::Http(response) = error else { return error.to_string() };
    let said = response.body().as_deref().map(String::from_utf8_lossy).unwrap_or_default();
    format!("{} {said}", response.status())
}

fn broken(error: &tungstenite::Error) -> HttpError {
    HttpError::Broken { address: "the Gantry server".to_owned(), reason: error.to_string() }
}

/// The receiving half of a WebSocket.
#[derive(Debug)]
pub struct SocketReader(SplitStream<WebSocketStream<TcpStream>>);

impl SocketReader {
    /// The next text message; `None` when the server has closed the connection.
    pub async fn next(&mut self) -> Result<Option<String>, HttpError> {
        loop {
            match self.0.next().await {
                Some(Ok(Message::Text(text))) => return Ok(Some(text.as_str().to_owned())),
                Some(Ok(Message::Close(_)) | Err(tungstenite::Error::ConnectionClosed)) | None => {
                    return Ok(None);
                }
                Some(Ok(Message::Binary(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {}
                Some(Err(error)) => return Err(broken(&error)),
            }
        }
    }
}

/// The sending half of a WebSocket.
#[derive(Debug)]
pub struct SocketWriter(SplitSink<WebSocketStream<TcpStream>, Message>);

impl SocketWriter {
    /// Sends a text message. An empty one tells the server that no more will follow.
    pub async fn send(&mut self, text: String) -> Result<(), HttpError> {
        self.0.send(Message::Text(text.into())).await.map_err(|error| broken(&error))
    }
}
