//! A WebSocket to the Gantry server on this machine.

use crate::{Error, LocalServer};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use http::{HeaderName, HeaderValue, header};
use std::net::SocketAddr;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

/// What the server says.
#[derive(Debug)]
pub struct SocketReader {
    frames: SplitStream<WebSocketStream<TcpStream>>,
    address: SocketAddr,
}

/// What the server hears.
#[derive(Debug)]
pub struct SocketWriter {
    frames: SplitSink<WebSocketStream<TcpStream>, Message>,
    address: SocketAddr,
}

impl LocalServer {
    /// Opens a WebSocket at a path, with the subprotocol `mcp`.
    ///
    /// # Errors
    /// The server cannot be reached, or does not let the client in.
    pub async fn websocket(&self, path: &str) -> Result<(SocketReader, SocketWriter), Error> {
        let address = self.address();
        let connect = |reason: String| Error::Connect { address, reason };
        let mut request = format!("ws://{address}{path}")
            .into_client_request()
            .map_err(|error| connect(error.to_string()))?;
        let protocol = HeaderName::from_static("sec-websocket-protocol");
        request.headers_mut().insert(protocol, HeaderValue::from_static("mcp"));
        if let Some(key) = self.key() {
            let bearer = HeaderValue::from_str(&format!("Bearer {key}")).map_err(http::Error::from)?;
            request.headers_mut().insert(header::AUTHORIZATION, bearer);
        }
        let stream = self.reach().await?;
        let (socket, _) = client_async(request, stream).await.map_err(|error| connect(refusal(&error)))?;
        let (writer, reader) = socket.split();
        Ok((SocketReader { frames: reader, address }, SocketWriter { frames: writer, address }))
    }
}

/// Why the handshake failed; the server says it in the body of its answer.
fn refusal(error: &tungstenite::Error) -> String {
    let tungstenite::Error::Http(response) = error else { return error.to_string() };
    let said = response.body().as_deref().map(String::from_utf8_lossy).unwrap_or_default();
    format!("{} {said}", response.status())
}

impl SocketReader {
    /// The next message; `None` when the server has ended the connection.
    ///
    /// # Errors
    /// The connection broke.
    pub async fn next(&mut self) -> Result<Option<String>, Error> {
        loop {
            match self.frames.next().await {
                Some(Ok(Message::Text(text))) => return Ok(Some(text.as_str().to_owned())),
                Some(Ok(Message::Close(_)) | Err(tungstenite::Error::ConnectionClosed)) | None => {
                    return Ok(None);
                }
                Some(Ok(Message::Binary(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {}
                Some(Err(error)) => {
                    return Err(Error::Broken { address: self.address, reason: error.to_string() });
                }
            }
        }
    }
}

impl SocketWriter {
    /// Sends a message. An empty one says that there will be no more.
    ///
    /// # Errors
    /// The connection broke.
    pub async fn send(&mut self, text: String) -> Result<(), Error> {
        let sent = self.frames.send(Message::Text(text.into())).await;
        sent.map_err(|error| Error::Broken { address: self.address, reason: error.to_string() })
    }
}
