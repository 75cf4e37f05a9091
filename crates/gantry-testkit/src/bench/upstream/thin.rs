//! The thinnest MCP server that a client accepts: one tool that says `ok`, over HTTP or stdio, with a handshake.

use anyhow::{Context as _, Result};
use axum::Router;
use axum::body::Body;
use axum::response::Response;
use axum::routing::post;
use axum::serve::ListenerExt as _;
use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use std::io::{BufRead as _, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _};

const INITIALIZED: &str = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"thin","version":"1"}}"#;
const LISTED: &str =
    r#"{"tools":[{"name":"noop","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}"#;
const CALLED: &str = r#"{"content":[{"type":"text","text":"ok"}],"isError":false}"#;

/// How a thin server is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Streamable HTTP.
    Http,
    /// Standard input and output.
    Stdio,
}

impl Kind {
    pub(super) const ALL: [Self; 2] = [Self::Http, Self::Stdio];

    /// The word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Stdio => "stdio",
        }
    }

    /// The kind of that word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == word)
    }

    /// How Gantry is told of such a server; one over HTTP runs already, one over stdio is started by Gantry.
    pub(super) fn server(self, running: Option<&Thin>) -> Result<Value> {
        Ok(match (self, running) {
            (Self::Http, Some(thin)) => {
                json!({ "type": "http", "url": format!("http://{}/mcp", thin.address()?), "protocol": "legacy" })
            }
            (Self::Http, None) | (Self::Stdio, _) => {
                json!({ "command": std::env::current_exe()?, "args": ["thin", "stdio"], "protocol": "legacy" })
            }
        })
    }
}

/// Is a thin server until its input ends.
///
/// # Errors
/// The port or the pipes break.
pub(in crate::bench) async fn serve(kind: Kind, out: &mut impl Write) -> Result<()> {
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
    loop {
        line.clear();
        if input.read_until(b'\n', &mut line).await? == 0 {
            return Ok(());
        }
        if let Some(mut answer) = answered(&line) {
            answer.push('\n');
            output.write_all(answer.as_bytes()).await?;
        }
        // More requests may be there already; their answers go out together.
        if input.buffer().is_empty() {
            output.flush().await?;
        }
    }
}

async fn answer_http(body: Bytes) -> Response {
    let Some(answer) = answered(&body) else {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::ACCEPTED;
        return response;
    };
    let mut response = Response::new(Body::from(answer));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: &'a str,
}

fn answered(message: &[u8]) -> Option<String> {
    let envelope: Envelope<'_> = serde_json::from_slice(message).ok()?;
    let id = envelope.id?.get();
    let (member, value) = match envelope.method {
        "tools/call" => ("result", CALLED),
        "tools/list" => ("result", LISTED),
        "initialize" => ("result", INITIALIZED),
        "ping" => ("result", "{}"),
        _ => ("error", r#"{"code":-32601,"message":"there is no such method"}"#),
    };
    let mut text = String::with_capacity(id.len() + value.len() + 48);
    for part in [r#"{"jsonrpc":"2.0","id":"#, id, ",\"", member, "\":", value, "}"] {
        text.push_str(part);
    }
    Some(text)
}

/// A thin server that runs, as a process of its own, until this is dropped.
#[derive(Debug)]
pub(super) struct Thin {
    child: Child,
    pipes: std::cell::RefCell<Option<(ChildStdin, ChildStdout)>>,
    address: Option<SocketAddr>,
}

impl Thin {
    pub(super) fn start(kind: Kind) -> Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["thin", kind.name()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("the server does not start")?;
        let output = child.stdout.take().context("the server has no output")?;
        match kind {
            Kind::Http => {
                let mut line = String::new();
                BufReader::new(output).read_line(&mut line)?;
                let address = line.trim_end().parse().context("the server does not say where it listens")?;
                Ok(Self { child, pipes: None.into(), address: Some(address) })
            }
            Kind::Stdio => {
                let input = child.stdin.take().context("the server has no input")?;
                Ok(Self { child, pipes: Some((input, output)).into(), address: None })
            }
        }
    }

    pub(super) fn address(&self) -> Result<SocketAddr> {
        self.address.context("the server does not listen")
    }

    pub(super) fn pipes(&self) -> Result<(ChildStdin, ChildStdout)> {
        self.pipes.borrow_mut().take().context("the pipes are taken")
    }
}

impl Drop for Thin {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
