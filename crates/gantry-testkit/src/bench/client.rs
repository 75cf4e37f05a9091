//! The load's own HTTP client: one connection, one request at a time, as little work per call as it takes.

use super::load::Worker;
use anyhow::{Context as _, Result, bail, ensure};
use std::io::Write as _;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Ids have nine digits from the first to the last, so that every request of a kind has the same length.
const FIRST_ID: u64 = 100_000_000;

/// The largest answer that is read.
const ANSWER_BYTES: usize = 64 << 20;

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

/// What is asked again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ask {
    /// `tools/call` of `test__noop`.
    Call,
    /// `tools/list`.
    List,
}

impl Ask {
    fn method(self) -> &'static str {
        match self {
            Self::Call => "tools/call",
            Self::List => "tools/list",
        }
    }

    /// What a right answer contains.
    fn mark(self) -> &'static str {
        match self {
            Self::Call => r#""content":[{"type":"text","text":"ok"}],"isError":false"#,
            Self::List => r#""tools":["#,
        }
    }

    /// The body of the request, up to its id and after it.
    fn body(self, era: Era) -> (String, String) {
        let call = match self {
            Self::Call => r#""name":"test__noop","arguments":{}"#,
            Self::List => "",
        };
        let meta = match era {
            Era::Legacy => String::new(),
            Era::Modern => format!(
                r#"{}"_meta":{{"io.modelcontextprotocol/protocolVersion":"{}","io.modelcontextprotocol/clientInfo":{{"name":"bench","version":"1"}},"io.modelcontextprotocol/clientCapabilities":{{}}}}"#,
                if call.is_empty() { "" } else { "," },
                era.version(),
            ),
        };
        let after = format!(r#","method":"{}","params":{{{call}{meta}}}}}"#, self.method());
        (r#"{"jsonrpc":"2.0","id":"#.to_owned(), after)
    }
}

/// A worker that asks over a connection of its own.
#[derive(Debug)]
pub(super) struct Client {
    connection: Connection,
    /// The request up to its id, and after it.
    request: (String, String),
    mark: &'static str,
    id: u64,
    sending: Vec<u8>,
}

impl Client {
    /// Connects to Gantry, with a handshake where the era has one.
    pub(super) async fn to_gantry(address: SocketAddr, era: Era, ask: Ask) -> Result<Self> {
        let mut connection = Connection::open(address).await?;
        let session = match era {
            Era::Legacy => connection.handshake(address).await.context("the handshake failed")?,
            Era::Modern => String::new(),
        };
        Ok(Self::over(connection, address, (era, ask), &session))
    }

    /// Connects to the echo, which is sent the same bytes as Gantry.
    pub(super) async fn to_echo(address: SocketAddr, era: Era, ask: Ask) -> Result<Self> {
        Ok(Self::over(Connection::open(address).await?, address, (era, ask), NO_SESSION))
    }

    fn over(connection: Connection, address: SocketAddr, (era, ask): (Era, Ask), session: &str) -> Self {
        let version = era.version();
        let headers = match (era, ask) {
            (Era::Legacy, _) => format!("Mcp-Session-Id: {session}\r\nMcp-Protocol-Version: {version}\r\n"),
            (Era::Modern, Ask::Call) => {
                format!(
                    "Mcp-Protocol-Version: {version}\r\nMcp-Method: tools/call\r\nMcp-Name: test__noop\r\n"
                )
            }
            (Era::Modern, Ask::List) => {
                format!("Mcp-Protocol-Version: {version}\r\nMcp-Method: tools/list\r\n")
            }
        };
        let (before, after) = ask.body(era);
        let length = before.len() + FIRST_ID.to_string().len() + after.len();
        let request = (head(address, &headers, length) + &before, after);
        Self { connection, request, mark: ask.mark(), id: FIRST_ID, sending: Vec::new() }
    }

    /// The body of the last answer.
    pub(super) fn last_body(&self) -> Result<&str> {
        answer(&self.connection.received).map(|answer| answer.body)
    }
}

impl Worker for Client {
    async fn call(&mut self) -> Result<()> {
        self.id += 1;
        self.sending.clear();
        write!(self.sending, "{}{}{}", self.request.0, self.id, self.request.1)?;
        let answer = self.connection.exchange(&self.sending).await?;
        let id = answer.body.strip_prefix(r#"{"jsonrpc":"2.0","id":"#).and_then(|rest| rest.get(..9));
        let right = answer.status == 200
            && id.is_some_and(|id| id.parse() == Ok(self.id))
            && answer.body.contains(self.mark);
        ensure!(right, "a wrong answer: {answer:?}");
        Ok(())
    }
}

fn head(address: SocketAddr, headers: &str, length: usize) -> String {
    format!(
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\n{headers}Content-Length: {length}\r\n\r\n"
    )
}

/// A connection that is kept.
#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    received: Vec<u8>,
}

/// An answer as it was received.
#[derive(Debug, PartialEq)]
struct Answer<'a> {
    status: u16,
    head: &'a str,
    body: &'a str,
}

impl Connection {
    async fn open(address: SocketAddr) -> Result<Self> {
        let stream =
            TcpStream::connect(address).await.with_context(|| format!("cannot connect to {address}"))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, received: Vec::with_capacity(4096) })
    }

    /// Opens a session and returns its id.
    async fn handshake(&mut self, address: SocketAddr) -> Result<String> {
        let version = Era::Legacy.version();
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"{version}","capabilities":{{}},"clientInfo":{{"name":"bench","version":"1"}}}}}}"#
        );
        let answer = self.exchange((head(address, "", body.len()) + &body).as_bytes()).await?;
        let session = header(answer.head, "mcp-session-id").context("there is no session id")?.to_owned();
        let headers = format!("Mcp-Session-Id: {session}\r\nMcp-Protocol-Version: {version}\r\n");
        let body = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        let answer = self.exchange((head(address, &headers, body.len()) + body).as_bytes()).await?;
        ensure!(answer.status == 202, "a wrong answer: {answer:?}");
        Ok(session)
    }

    async fn exchange(&mut self, request: &[u8]) -> Result<Answer<'_>> {
        self.stream.write_all(request).await?;
        self.received.clear();
        let mut whole = None;
        while whole.is_none_or(|whole| self.received.len() < whole) {
            let n = self.stream.read_buf(&mut self.received).await?;
            ensure!(n > 0, "the server hung up");
            if whole.is_none() {
                whole = length(&self.received)?;
                self.received.reserve(whole.unwrap_or(0).saturating_sub(self.received.len()));
            }
        }
        answer(&self.received)
    }
}

/// The length of an answer, head and body, once its head is there.
fn length(received: &[u8]) -> Result<Option<usize>> {
    let Some(head) = received.windows(4).position(|bytes| bytes == b"\r\n\r\n") else { return Ok(None) };
    let text = std::str::from_utf8(&received[..head])?;
    let body: usize = header(text, "content-length").context("an answer without Content-Length")?.parse()?;
    if body > ANSWER_BYTES {
        bail!("an answer of {body} bytes; at most {ANSWER_BYTES} are read");
    }
    Ok(Some(head + 4 + body))
}

/// Takes an answer apart that is there as a whole.
fn answer(received: &[u8]) -> Result<Answer<'_>> {
    let (head, body) = std::str::from_utf8(received)?.split_once("\r\n\r\n").context("half an answer")?;
    let status = head.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)).context("not HTTP")?;
    Ok(Answer { status: status.parse()?, head, body })
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let fields = head.lines().filter_map(|line| line.split_once(':'));
    fields.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_whole_when_its_length_says_so() {
        let text = b"HTTP/1.1 202 Accepted\r\nContent-Length: 2\r\nMcp-Session-Id: x\r\n\r\n{}";
        assert_eq!(length(&text[..20]).unwrap(), None);
        assert_eq!(length(text).unwrap(), Some(text.len()));
        let answer = answer(text).unwrap();
        assert_eq!((answer.status, answer.body), (202, "{}"));
        assert_eq!(header(answer.head, "mcp-session-id"), Some("x"));
        assert!(length(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
        assert!(length(b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n").is_err());
    }
}
