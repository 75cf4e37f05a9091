//! The smallest MCP server that a client accepts: an envelope that is read, an answer that is written, no more. Gantry is
//! compared with it, and put in front of it.

use crate::process::ChildGuard;
use anyhow::{Context as _, Result};
use axum::Router;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use axum::serve::ListenerExt as _;
use bytes::Bytes;
use clap::ValueEnum;
use http::{StatusCode, header};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use std::io::Write;
use std::net::SocketAddr;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _};

const INITIALIZED: &str = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"minimal","version":"1"}}"#;
const LISTED: &str =
    r#"{"tools":[{"name":"noop","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}"#;
/// The result of every call; it is the one that `test__noop` has.
const CALLED: &str = r#"{"content":[{"type":"text","text":"ok"}],"isError":false}"#;

/// How a minimal server is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Kind {
    Http,
    Stdio,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Stdio => "stdio",
        }
    }
}

/// The configuration of a server that Gantry starts itself.
pub(super) fn stdio_entry() -> Result<Value> {
    Ok(json!({ "command": std::env::current_exe()?, "args": ["--minimal", "stdio"], "protocol": "legacy" }))
}

/// Serves until its input ends, which it does with the process that started this one.
pub(super) async fn serve(kind: Kind, out: &mut impl Write) -> Result<()> {
    match kind {
        Kind::Http => serve_http(out).await,
        Kind::Stdio => serve_stdio().await,
    }
}

async fn serve_http(out: &mut impl Write) -> Result<()> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    writeln!(out, "{}", listener.local_addr()?)?;
    out.flush()?;
    let listener = listener.tap_io(|stream| {
        stream.set_nodelay(true).ok(); // A connection that is gone already needs none.
    });
    let app = Router::new().route("/mcp", post(answer_http));
    let mut nothing = [0; 1];
    tokio::select! {
        ended = axum::serve(listener, app) => ended.context("the server stopped serving"),
        ended = async { tokio::io::stdin().read(&mut nothing).await } => ended.map(drop).context("standard input broke"),
    }
}

async fn serve_stdio() -> Result<()> {
    let mut input = tokio::io::BufReader::new(tokio::io::stdin());
    let mut output = tokio::io::BufWriter::new(tokio::io::stdout());
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line).await? > 0 {
        if let Some(answer) = answered(&line) {
            output.write_all(answer.as_bytes()).await?;
            output.write_all(b"\n").await?;
        }
        line.clear();
        // More requests may be there already; their answers go out together.
        if input.buffer().is_empty() {
            output.flush().await?;
        }
    }
    Ok(())
}

async fn answer_http(body: Bytes) -> Response {
    match answered(&body) {
        Some(answer) => ([(header::CONTENT_TYPE, "application/json")], answer).into_response(),
        None => StatusCode::ACCEPTED.into_response(),
    }
}

/// What every gateway has to read of a request.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: &'a str,
    #[serde(borrow, rename = "params")]
    _params: Option<&'a RawValue>,
}

fn answered(message: &[u8]) -> Option<String> {
    let envelope: Envelope<'_> = serde_json::from_slice(message).ok()?;
    let (member, value) = match envelope.method {
        "tools/call" => ("result", CALLED),
        "tools/list" => ("result", LISTED),
        "initialize" => ("result", INITIALIZED),
        "ping" => ("result", "{}"),
        _ => ("error", r#"{"code":-32601,"message":"there is no such method"}"#),
    };
    Some(answer(envelope.id?.get(), member, value))
}

fn answer(id: &str, member: &str, value: &str) -> String {
    let mut text = String::with_capacity(id.len() + value.len() + 48);
    for part in [r#"{"jsonrpc":"2.0","id":"#, id, ",\"", member, "\":", value, "}"] {
        text.push_str(part);
    }
    text
}

/// Starts a minimal server behind a port.
pub(super) fn start_http() -> Result<(ChildGuard, SocketAddr)> {
    let mut server = start(Kind::Http)?;
    let address = server.first_line().parse().context("the server does not say where it listens")?;
    Ok((server, address))
}

/// Starts a minimal server, and gives its pipes.
pub(super) fn start_stdio() -> Result<(ChildGuard, ChildStdin, ChildStdout)> {
    let mut server = start(Kind::Stdio)?;
    let pipes = server.0.stdin.take().zip(server.0.stdout.take());
    let (input, output) = pipes.context("the server has no pipes")?;
    Ok((server, input, output))
}

fn start(kind: Kind) -> Result<ChildGuard> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--minimal", kind.name()]).stdin(Stdio::piped()).stdout(Stdio::piped());
    Ok(ChildGuard(command.spawn().context("the server does not start")?))
}
