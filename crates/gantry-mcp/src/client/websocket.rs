//! WebSocket: one message per text frame.

use super::{
    dispatcher::Dispatcher,
    duplex::{Duplex, Ends},
    http::{Site, refusal},
    limits::{LAST_WORDS, MESSAGE_BYTES},
    types::Failure,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use std::sync::Arc;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::timeout,
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Message,
        handshake::derive_accept_key,
        protocol::{Role, WebSocketConfig},
    },
};

const SUBPROTOCOL: &str = "mcp";

/// Opens a link to a `ws://` or `wss://` address.
pub(super) async fn open(
    dispatcher: &Arc<Dispatcher>,
    url: &str,
    headers: &[(String, String)],
) -> Result<Duplex, Failure> {
    let url = match url.split_once("://") {
        Some(("ws" | "http", rest)) => format!("http://{rest}"),
        Some(("wss" | "https", rest)) => format!("https://{rest}"),
        _ => {
            return Err(Failure::Unavailable(
                "the address of a WebSocket begins with ws:// or wss://".into(),
            ));
        }
    };
    let socket = upgrade(&Site::new(&url, headers)?).await?;
    let (duplex, ends) = Duplex::open(dispatcher, None);
    serve(socket, ends);
    Ok(duplex)
}

async fn upgrade(
    site: &Site,
) -> Result<WebSocketStream<impl AsyncRead + AsyncWrite + Send + Unpin + 'static>, Failure> {
    let refused = |what: &str| Failure::Unavailable(format!("the server does not open a WebSocket: {what}"));
    let key = STANDARD.encode(uuid::Uuid::new_v4().as_bytes());
    let mut headers = site.headers.clone();
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
    headers.insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(SUBPROTOCOL));
    headers.insert(
        header::SEC_WEBSOCKET_KEY,
        HeaderValue::try_from(&*key).map_err(|error| refused(&error.to_string()))?,
    );
    let response = site.client.send(Method::GET, &site.url, headers, Bytes::new()).await;
    let response = response.map_err(|error| Failure::Unavailable(error.to_string()))?;
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        return Err(Failure::Unavailable(Failure::from(refusal(response, None, None).await).to_string()));
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
    let stream = response.upgrade().await.map_err(|error| Failure::Unavailable(error.to_string()))?;
    let config =
        WebSocketConfig::default().max_message_size(Some(MESSAGE_BYTES)).max_frame_size(Some(MESSAGE_BYTES));
    Ok(WebSocketStream::from_raw_socket(stream, Role::Client, Some(config)).await)
}

fn serve(socket: WebSocketStream<impl AsyncRead + AsyncWrite + Send + Unpin + 'static>, ends: Ends) {
    let Ends { dispatcher, outbox, mut frames, no_more, stop } = ends;
    let (mut sink, mut stream) = socket.split();
    let write_stop = stop.clone();
    let writer = Arc::clone(&dispatcher);
    tokio::spawn(async move {
        let write = async {
            while let Some(frame) = Ends::next_frame(&mut frames, &no_more).await {
                sink.send(Message::text(frame.text)).await?;
            }
            Ok::<_, tokio_tungstenite::tungstenite::Error>(())
        };
        let written = tokio::select! {
            written = write => written,
            () = write_stop.cancelled() => Ok(()),
        };
        if let Err(error) = written {
            writer.end(format!("the WebSocket broke: {error}"));
        } else if timeout(LAST_WORDS, sink.close()).await.is_err() {
            tracing::debug!("the WebSocket was not closed in time");
        }
    });
    tokio::spawn(async move {
        let read = async {
            loop {
                match stream.next().await {
                    Some(Ok(Message::Text(text))) => dispatcher.receive(&text, None, &outbox),
                    Some(Ok(Message::Binary(bytes))) => match std::str::from_utf8(&bytes) {
                        Ok(text) => dispatcher.receive(text, None, &outbox),
                        Err(_) => dispatcher.count_garbage("(not UTF-8)"),
                    },
                    Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {}
                    Some(Ok(Message::Close(_))) | None => {
                        return "the server closed the WebSocket".to_owned();
                    }
                    Some(Err(error)) => return format!("the WebSocket broke: {error}"),
                }
                tokio::task::coop::consume_budget().await;
            }
        };
        tokio::select! {
            reason = read => dispatcher.end(reason),
            () = stop.cancelled() => dispatcher.end("the connection was dropped"),
        }
    });
}
