//! The server that Gantry is compared with: axum, an envelope that is read and an answer that is written, no more.

use anyhow::{Context as _, Result};
use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use axum::routing::post;
use axum::serve::ListenerExt as _;
use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::io::{BufRead as _, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;

/// The result of every call; it is the one that `test__noop` has.
const CALLED: &str = r#"{"content":[{"type":"text","text":"ok"}],"isError":false}"#;

/// Serves until standard input ends, which it does with the process that started this one.
pub(super) async fn serve(list_bytes: usize, out: &mut impl Write) -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    writeln!(out, "{}", listener.local_addr()?)?;
    out.flush()?;
    let listener = listener.tap_io(|stream| {
        stream.set_nodelay(true).ok(); // A connection that is gone already needs none.
    });
    let app = Router::new().route("/mcp", post(echo)).with_state(listed(list_bytes));
    let mut nothing = [0; 1];
    tokio::select! {
        ended = axum::serve(listener, app) => ended.context("the echo stopped serving"),
        ended = async { tokio::io::stdin().read(&mut nothing).await } => ended.map(drop).context("standard input broke"),
    }
}

/// A list that makes the whole answer, to a request with an id of nine digits, this long.
fn listed(answer_bytes: usize) -> Arc<str> {
    let empty = r#"{"tools":[""]}"#;
    let filler = "x".repeat(answer_bytes.saturating_sub(answer("123456789", empty).len()));
    format!(r#"{{"tools":["{filler}"]}}"#).into()
}

/// What every gateway has to read of a request.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    id: &'a RawValue,
    method: &'a str,
    #[serde(borrow, rename = "params")]
    _params: Option<&'a RawValue>,
}

async fn echo(State(list): State<Arc<str>>, body: Bytes) -> Response {
    let Ok(envelope) = serde_json::from_slice::<Envelope<'_>>(&body) else {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::BAD_REQUEST;
        return response;
    };
    let result = if envelope.method == "tools/list" { &*list } else { CALLED };
    let mut response = Response::new(Body::from(answer(envelope.id.get(), result)));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn answer(id: &str, result: &str) -> String {
    let mut text = String::with_capacity(id.len() + result.len() + 40);
    for part in [r#"{"jsonrpc":"2.0","id":"#, id, r#","result":"#, result, "}"] {
        text.push_str(part);
    }
    text
}

/// An echo that runs, as a process of its own, until this is dropped.
#[derive(Debug)]
pub(super) struct Echo {
    child: Child,
    pub(super) address: SocketAddr,
}

impl Echo {
    /// Starts one whose answers to `tools/list` have this many bytes.
    pub(super) fn start(list_bytes: usize) -> Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["echo", &list_bytes.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("the echo does not start")?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("the echo has no output")?).read_line(&mut line)?;
        let address = line.trim_end().parse().context("the echo does not say where it listens")?;
        Ok(Self { child, address })
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_as_long_as_it_is_asked_to_be() {
        assert_eq!(answer("123456789", &listed(5000)).len(), 5000);
    }
}
