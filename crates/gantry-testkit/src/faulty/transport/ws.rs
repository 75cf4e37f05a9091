//! One message a WebSocket frame, under the subprotocol `mcp`.

use super::super::connection::Connection;
use super::super::server::{Frame, Server};
use super::http::headers_as_json;
use anyhow::Result;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use http::header::SEC_WEBSOCKET_PROTOCOL;
use http::{HeaderValue, StatusCode};
use serde_json::Value;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{Callback, ErrorResponse, Request, Response};

const SUBPROTOCOL: &str = "mcp";

type Socket = WebSocketStream<TcpStream>;

/// Serves one connection until either side closes it.
pub(super) async fn serve(server: &Arc<Server>, stream: TcpStream) -> Result<()> {
    let mut headers = Value::Null;
    let socket = tokio_tungstenite::accept_hdr_async(stream, Handshake(&mut headers)).await?;
    let (connection, frames) = Connection::open(server, headers);
    let (sink, messages) = socket.split();
    tokio::select! {
        ended = read(&connection, messages) => ended,
        ended = write(sink, frames) => ended,
    }
}

async fn read(connection: &Connection, mut messages: SplitStream<Socket>) -> Result<()> {
    connection.server.ready().await;
    while let Some(message) = messages.next().await.transpose()? {
        match message {
            Message::Text(text) => connection.receive_text(text.as_bytes()).await,
            Message::Close(_) => return Ok(()),
            Message::Binary(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
        }
    }
    Ok(())
}

async fn write(mut sink: SplitSink<Socket, Message>, mut frames: mpsc::Receiver<Frame>) -> Result<()> {
    while let Some(frame) = frames.recv().await {
        match frame {
            Frame::Answer(text, _) | Frame::Note(text) | Frame::Garbage(text) => {
                sink.send(Message::text(text)).await?;
            }
            Frame::HangUp => return Ok(()),
        }
    }
    Ok(())
}

/// Takes a client that offers the subprotocol, and no other; keeps its headers.
struct Handshake<'a>(&'a mut Value);

impl Callback for Handshake<'_> {
    fn on_request(self, request: &Request, mut response: Response) -> Result<Response, ErrorResponse> {
        *self.0 = headers_as_json(request.headers());
        let offers = request.headers().get_all(SEC_WEBSOCKET_PROTOCOL);
        let mut names =
            offers.iter().filter_map(|value| value.to_str().ok()).flat_map(|list| list.split(','));
        if names.any(|name| name.trim() == SUBPROTOCOL) {
            response.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(SUBPROTOCOL));
            return Ok(response);
        }
        let mut refusal = ErrorResponse::new(Some("the subprotocol mcp is needed".to_owned()));
        *refusal.status_mut() = StatusCode::BAD_REQUEST;
        Err(refusal)
    }
}
