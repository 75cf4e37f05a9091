//! MCP over WebSocket: one message per text frame, subprotocol `mcp`.
//!
//! A WebSocket cannot be closed in one direction only, so an empty frame ends the messages of the client: requests that
//! are running are still answered before the connection ends.

use super::http::{Target, gateway};
use crate::api::query::{Path, Sender};
use crate::error::ApiError;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use gantry_core::ErrorCode;
use gantry_mcp::limits::{CONNECTIONS, LINE_BYTES};
use http::StatusCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval, timeout};

/// How often a client is asked whether it is still there.
const PING_INTERVAL: Duration = Duration::from_secs(30);

const SEND_TIMEOUT: Duration = Duration::from_secs(30);

/// `/ws`, `/ws/{project}`, and `/ws/{project}/agents/{agent}`: the tools of this agent.
pub(crate) async fn open_socket(
    sender: Sender,
    Path(target): Path<Target>,
    upgrade: WebSocketUpgrade,
) -> Result<Response, ApiError> {
    let gateway = gateway(&sender, &target)?;
    gateway.settled().await;
    let wait_until_invalid = Arc::clone(&sender.app.keys).wait_until_invalid(sender.key);
    let Some((messages, responses)) = sender.app.mcp.connect(gateway) else {
        let message = format!("{CONNECTIONS} connections are open already; close one and try again");
        return Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, ErrorCode::QueueFull, message));
    };
    let upgrade = upgrade.protocols(["mcp"]).max_message_size(LINE_BYTES).max_frame_size(LINE_BYTES);
    Ok(upgrade.on_upgrade(|socket| carry(socket, messages, responses, wait_until_invalid)))
}

/// Carries frames until the server ends the connection, the client is gone, or its key is void.
async fn carry(
    socket: WebSocket,
    messages: mpsc::Sender<Vec<u8>>,
    responses: mpsc::Receiver<String>,
    wait_until_invalid: impl Future<Output = ()>,
) {
    let (mut sink, stream) = socket.split();
    tokio::select! {
        // Dropping the sender ends the input; requests that are running are answered by the other half.
        () = async { receive(stream, messages).await; std::future::pending().await } => {}
        () = send(&mut sink, responses) => {}
        () = wait_until_invalid => {}
    }
    // A client that does not read is not waited for.
    timeout(SEND_TIMEOUT, sink.send(Message::Close(None))).await.ok();
}

/// Passes text frames on until the client ends them. A frame that cannot be read ends the connection.
async fn receive(mut stream: SplitStream<WebSocket>, messages: mpsc::Sender<Vec<u8>>) {
    loop {
        // A permit first, so that a frame is read only when it can be passed on.
        let Ok(permit) = messages.reserve().await else { return };
        match stream.next().await {
            Some(Ok(Message::Text(text))) if text.is_empty() => return,
            Some(Ok(Message::Text(text))) => permit.send(text.as_str().into()),
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
            Some(Ok(Message::Binary(_) | Message::Close(_)) | Err(_)) | None => return,
        }
    }
}

/// Sends messages of the server, and pings in between.
async fn send(sink: &mut SplitSink<WebSocket, Message>, mut responses: mpsc::Receiver<String>) {
    let mut ping = interval(PING_INTERVAL);
    ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let frame = tokio::select! {
            response = responses.recv() => match response {
                Some(text) => Message::Text(text.into()),
                None => return,
            },
            _ = ping.tick() => Message::Ping(Vec::new().into()),
        };
        match timeout(SEND_TIMEOUT, sink.send(frame)).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) | Err(_) => return,
        }
    }
}
