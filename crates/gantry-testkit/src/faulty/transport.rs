//! How messages come in and go out: one module per kind, and where the sockets are opened.

mod events;
mod http;
mod lines;
mod sse;
mod ws;

use super::options::Kind;
use super::server::Server;
use anyhow::{Context as _, Result};
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::serve::ListenerExt as _;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::io::AsyncReadExt as _;
use tokio::net::{TcpListener, TcpStream};

/// Serves until the client of stdio, or the process that holds standard input, is gone.
pub(super) async fn serve(server: Arc<Server>) -> Result<()> {
    let (kind, port) = (server.options.over, server.options.port);
    if kind == Kind::Stdio {
        server.n_connections.fetch_add(1, Ordering::Relaxed);
        return lines::serve(&server, tokio::io::stdin(), tokio::io::stdout())
            .await
            .context("standard input or output broke");
    }
    let listener = TcpListener::bind(("127.0.0.1", port)).await.context("cannot listen")?;
    let address = listener.local_addr()?;
    let (scheme, path) = match kind {
        Kind::Stdio | Kind::Tcp => ("tcp", ""),
        Kind::Http => ("http", "/mcp"),
        Kind::Sse => ("http", "/sse"),
        Kind::Ws => ("ws", "/"),
    };
    writeln!(std::io::stdout(), "{scheme}://{address}{path}")?;
    tokio::select! {
        ended = accept(server, kind, listener) => ended,
        ended = until_input_ends() => ended,
    }
}

async fn accept(server: Arc<Server>, kind: Kind, listener: TcpListener) -> Result<()> {
    match kind {
        Kind::Http => return http::serve(server, listener).await,
        Kind::Sse => return sse::serve(server, listener).await,
        Kind::Stdio | Kind::Tcp | Kind::Ws => {}
    }
    loop {
        let (stream, _) = listener.accept().await?;
        connected(&server, &stream);
        let server = server.clone();
        tokio::spawn(async move {
            // A connection that breaks is no failure of the server; the next one is served all the same.
            if kind == Kind::Ws {
                ws::serve(&server, stream).await.ok();
            } else {
                let (reader, writer) = stream.into_split();
                lines::serve(&server, reader, writer).await.ok();
            }
        });
    }
}

/// Limit: bytes of a body over HTTP.
const BODY_BYTES: usize = 256 * 1024 * 1024;

async fn serve_http(server: Arc<Server>, listener: TcpListener, app: Router) -> Result<()> {
    let listener = listener.tap_io(move |stream| connected(&server, stream));
    let app = app.layer(DefaultBodyLimit::max(BODY_BYTES));
    axum::serve(listener, app).await.context("the server stopped serving")
}

/// Waits until a request over HTTP may be looked at; for ever, if it is never answered.
async fn admit(server: &Server, method: Option<&str>) {
    server.ready().await;
    if server.is_mute(method) {
        std::future::pending().await
    }
}

/// Counts a connection, and lets small messages leave at once.
fn connected(server: &Server, stream: &TcpStream) {
    server.n_connections.fetch_add(1, Ordering::Relaxed);
    stream.set_nodelay(true).ok(); // A connection that is gone already needs none.
}

async fn until_input_ends() -> Result<()> {
    let mut ignored = [0; 64];
    while tokio::io::stdin().read(&mut ignored).await? > 0 {}
    Ok(())
}
