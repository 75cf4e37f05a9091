//! The load's MCP client: one connection, one request at a time, as little work per call as it takes.

use super::load::Worker;
use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, header, response};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use std::net::SocketAddr;
use tokio::net::TcpStream;

/// Ids have nine digits from the first to the last, so that every request of a kind has the same length.
const FIRST_ID: u64 = 100_000_000;

/// The session that a server which knows no sessions is sent.
const NO_SESSION: &str = "0123456789abcdef0123456789abcdef";

/// How a client speaks MCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Era {
    /// With a handshake and a session.
    Legacy,
    /// Without either: every request says what it needs.
    Modern,
}

impl Era {
    pub(super) fn version(self) -> &'static str {
        match self {
            Self::Legacy => "2025-11-25",
            Self::Modern => "2026-07-28",
        }
    }
}

/// What a right answer contains: it is the one of `test__noop`, and of the minimal server.
const RIGHT: &[u8] = br#""content":[{"type":"text","text":"ok"}],"isError":false"#;

/// The body of a request to call `test__noop`, after its id.
fn call(era: Era) -> String {
    let meta = match era {
        Era::Legacy => String::new(),
        Era::Modern => format!(
            r#","_meta":{{"io.modelcontextprotocol/protocolVersion":"{}","io.modelcontextprotocol/clientInfo":{{"name":"bench","version":"1"}},"io.modelcontextprotocol/clientCapabilities":{{}}}}"#,
            era.version(),
        ),
    };
    format!(r#","method":"tools/call","params":{{"name":"test__noop","arguments":{{}}{meta}}}}}"#)
}

/// A worker that sends requests over a connection of its own.
#[derive(Debug)]
pub(super) struct Client {
    sender: SendRequest<Full<Bytes>>,
    headers: HeaderMap,
    /// The body of a request after its id.
    call: String,
    id: u64,
}

impl Client {
    /// Connects to Gantry, with a handshake where the era has one.
    pub(super) async fn to_gantry(address: SocketAddr, era: Era) -> Result<Self> {
        let mut client = Self::to_minimal(address, era).await?;
        if era == Era::Legacy {
            let version = client.headers.remove("mcp-protocol-version").context("no version")?;
            client.headers.remove("mcp-session-id");
            let hello = format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"{}","capabilities":{{}},"clientInfo":{{"name":"bench","version":"1"}}}}}}"#,
                era.version()
            );
            let (parts, _) = client.exchange(hello).await?;
            let session = parts.headers.get("mcp-session-id").context("there is no session id")?;
            client.headers.insert("mcp-session-id", session.clone());
            client.headers.insert("mcp-protocol-version", version);
            let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
            let (parts, _) = client.exchange(ready.to_owned()).await?;
            ensure!(parts.status == 202, "a wrong answer: {parts:?}");
        }
        Ok(client)
    }

    /// Connects to the minimal server, which is sent the same bytes as Gantry.
    pub(super) async fn to_minimal(address: SocketAddr, era: Era) -> Result<Self> {
        let stream =
            TcpStream::connect(address).await.with_context(|| format!("cannot connect to {address}"))?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        let host = address.to_string();
        let mut pairs = vec![
            ("host", host.as_str()),
            (header::CONTENT_TYPE.as_str(), "application/json"),
            (header::ACCEPT.as_str(), "application/json, text/event-stream"),
            ("mcp-protocol-version", era.version()),
        ];
        match era {
            Era::Legacy => pairs.push(("mcp-session-id", NO_SESSION)),
            Era::Modern => pairs.extend([("mcp-method", "tools/call"), ("mcp-name", "test__noop")]),
        }
        let typed =
            |(name, value): (&str, &str)| Ok((name.parse::<HeaderName>()?, value.parse::<HeaderValue>()?));
        let headers = pairs.into_iter().map(typed).collect::<Result<HeaderMap>>()?;
        Ok(Self { sender, headers, call: call(era), id: FIRST_ID })
    }

    async fn exchange(&mut self, body: String) -> Result<(response::Parts, Bytes)> {
        let mut request = Request::post("/mcp").body(Full::from(body))?;
        request.headers_mut().clone_from(&self.headers);
        self.sender.ready().await?;
        let (parts, body) = self.sender.send_request(request).await?.into_parts();
        Ok((parts, body.collect().await?.to_bytes()))
    }
}

impl Worker for Client {
    async fn call(&mut self) -> Result<()> {
        self.id += 1;
        let body = format!(r#"{{"jsonrpc":"2.0","id":{}{}"#, self.id, self.call);
        let (parts, body) = self.exchange(body).await?;
        let begins = format!(r#"{{"jsonrpc":"2.0","id":{},"#, self.id);
        let is_right = parts.status == 200
            && body.starts_with(begins.as_bytes())
            && body.windows(RIGHT.len()).any(|window| window == RIGHT);
        ensure!(is_right, "a wrong answer: {} {}", parts.status, String::from_utf8_lossy(&body));
        Ok(())
    }
}
