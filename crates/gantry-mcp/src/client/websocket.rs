//! WebSocket: one message per text frame.

use super::duplex::Duplex;
use super::http::{HttpEndpoint, error_response};
use super::limits::{CLOSE_TIMEOUT, MESSAGE_BYTES};
use super::queue::Frames;
use super::types::{Target, UpstreamError};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{self, Message};

const SUBPROTOCOL: &str = "mcp";

pub(super) async fn open(
    frames: Frames,
    url: &str,
    headers: &[(String, String)],
) -> Result<Duplex, UpstreamError> {
    let (scheme, rest) = url.split_once("://").unwrap_or_default();
    let url = match scheme.to_ascii_lowercase().as_str() {
        "ws" | "http" => format!("http://{rest}"),
        "wss" | "https" => format!("https://{rest}"),
        _ => {
            return Err(UpstreamError::NotSent(
                "the address of a WebSocket begins with ws:// or wss://".into(),
            ));
        }
    };
    let socket = upgrade(&frames.dispatcher.target, &HttpEndpoint::new(&url, headers)?).await?;
    Ok(serve(socket, frames))
}

async fn upgrade(
    target: &Target,
    endpoint: &HttpEndpoint,
) -> Result<WebSocketStream<impl AsyncRead + AsyncWrite + Send + Unpin + 'static>, UpstreamError> {
    let refused =
        |what: &str| UpstreamError::NotSent(format!("the server does not open a WebSocket: {what}"));
    let key = STANDARD.encode(uuid::Uuid::new_v4().as_bytes());
    let mut headers = endpoint.headers.clone();
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
    headers.insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(SUBPROTOCOL));
    headers.insert(
        header::SEC_WEBSOCKET_KEY,
        HeaderValue::try_from(&*key).map_err(|error| refused(&error.to_string()))?,
    );
    let response = endpoint.client.send(Method::GET, &endpoint.url, headers, Bytes::new()).await;
    let response = response.map_err(|error| UpstreamError::NotSent(error.to_string()))?;
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        return Err(UpstreamError::NotSent(
            UpstreamError::from(error_response(target, response, false, None).await).to_string(),
        ));
    }
    let said = |headers: &HeaderMap, name| {
        headers.get(name).and_then(|value| value.to_str().ok().map(str::to_owned))
    };
    if said(response.headers(), header::SEC_WEBSOCKET_ACCEPT) != Some(derive_accept_key(key.as_bytes())) {
        return Err(refused("its answer does not fit the question"));
    }
    if said(response.headers(), header::SEC_WEBSOCKET_PROTOCOL)
        .is_some_and(|protocol| protocol != SUBPROTOCOL)
    {
        return Err(refused("it wants another subprotocol than mcp"));
    }
    let stream = response.upgrade().await.map_err(|error| UpstreamError::NotSent(error.to_string()))?;
    let config =
        WebSocketConfig::default().max_message_size(Some(MESSAGE_BYTES)).max_frame_size(Some(MESSAGE_BYTES));
    Ok(WebSocketStream::from_raw_socket(stream, Role::Client, Some(config)).await)
}

fn serve(
    socket: WebSocketStream<impl AsyncRead + AsyncWrite + Send + Unpin + 'static>,
    frames: Frames,
) -> Duplex {
    let (mut sink, mut stream) = socket.split();
    let broke = |error: tungstenite::Error| format!("the WebSocket broke: {error}");
    Duplex::start(
        frames,
        None,
        move |dispatcher| async move {
            loop {
                match stream.next().await {
                    Some(Ok(Message::Text(text))) => dispatcher.receive(&text, None),
                    Some(Ok(Message::Binary(bytes))) => dispatcher.receive_bytes(&bytes, None),
                    Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {}
                    Some(Ok(Message::Close(_))) | None => {
                        return "the server closed the WebSocket".to_owned();
                    }
                    Some(Err(error)) => return broke(error),
                }
                tokio::task::coop::consume_budget().await;
            }
        },
        move |mut frames| async move {
            while let Some(frame) = frames.next().await {
                sink.send(Message::text(frame.text)).await.map_err(broke)?;
            }
            if timeout(CLOSE_TIMEOUT, sink.close()).await.is_err() {
                tracing::debug!("the WebSocket was not closed in time");
            }
            Ok(())
        },
    )
}
