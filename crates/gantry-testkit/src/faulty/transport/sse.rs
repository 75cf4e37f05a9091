//! The older HTTP+SSE: a GET holds the stream, POSTs bring the messages.

use super::super::connection::Connection;
use super::super::server::Server;
use super::events::{self, Until};
use super::http::headers_as_json;
use anyhow::Result;
use axum::Router;
use axum::extract::{Query, State};
use axum::response::Response;
use axum::routing::{get, post};
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::json;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;

/// The server, and the streams by their sessions' numbers.
#[derive(Debug)]
struct Streams {
    server: Arc<Server>,
    connections: Mutex<HashMap<u64, Connection>>,
}

#[derive(Debug, Deserialize)]
struct Address {
    session: u64,
}

pub(super) async fn serve(server: Arc<Server>, listener: TcpListener) -> Result<()> {
    let streams = Streams { server: server.clone(), connections: Mutex::default() };
    let app = Router::new().route("/sse", get(open)).route("/messages", post(receive));
    super::serve_http(server, listener, app.with_state(Arc::new(streams))).await
}

async fn open(State(streams): State<Arc<Streams>>) -> Response {
    super::admit(&streams.server, None).await;
    let (connection, frames) = Connection::open(&streams.server, json!({}));
    let number = connection.session.number;
    let mut connections = streams.connections.lock().unwrap();
    connections.retain(|_, connection| !connection.sender.is_closed());
    connections.insert(number, connection);
    let endpoint = format!("event: endpoint\ndata: /messages?session={number}\n\n");
    events::stream(Ok(endpoint.into()), frames, Until::Dropped)
}

async fn receive(
    State(streams): State<Arc<Streams>>,
    Query(address): Query<Address>,
    headers: HeaderMap,
    body: Bytes,
) -> (StatusCode, &'static str) {
    let connection = streams.connections.lock().unwrap().get(&address.session).cloned();
    let Some(connection) = connection.filter(|connection| !connection.sender.is_closed()) else {
        return (StatusCode::NOT_FOUND, "there is no such session");
    };
    let connection = Connection { headers: Arc::new(headers_as_json(&headers)), ..connection };
    connection.receive_text(&body).await;
    (StatusCode::ACCEPTED, "Accepted")
}
