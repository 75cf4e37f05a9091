//! One HTTP/1.1 connection in plain bytes, kept alive: for load, and for requests that no honest client sends.

use crate::server::Answer;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(60);

/// Bytes of an answer's body; a longer one is not ours.
const BODY_BYTES: u64 = 64 * 1024 * 1024;

#[derive(Debug)]
pub struct Connection {
    stream: BufReader<TcpStream>,
    address: SocketAddr,
}

impl Connection {
    pub fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        Ok(Self { stream: BufReader::new(stream), address })
    }

    /// Sends bytes as they are.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    /// Reads one answer, whose length its headers tell.
    pub fn answer(&mut self) -> io::Result<Answer> {
        let status = self.line()?.split(' ').nth(1).and_then(|code| code.parse().ok());
        let status = status.ok_or_else(|| malformed("no status line"))?;
        let mut headers = HeaderMap::new();
        loop {
            let line = self.line()?;
            if line.is_empty() {
                break;
            }
            let pair = line.split_once(':').and_then(|(name, value)| {
                Some((name.parse::<HeaderName>().ok()?, value.trim().parse::<HeaderValue>().ok()?))
            });
            let (name, value) = pair.ok_or_else(|| malformed("no header"))?;
            headers.append(name, value);
        }
        let length = headers.get(http::header::CONTENT_LENGTH);
        let length = length.and_then(|value| value.to_str().ok()?.parse::<u64>().ok()).unwrap_or(0);
        let mut body = Vec::new();
        self.stream.by_ref().take(length.min(BODY_BYTES)).read_to_end(&mut body)?;
        if u64::try_from(body.len()) != Ok(length) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let text = String::from_utf8(body).map_err(|_invalid| malformed("not UTF-8"))?;
        Ok(Answer { status, headers, text })
    }

    /// Sends a request with a right Host header and reads the answer. A body is JSON unless a header says otherwise.
    pub fn request(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<Answer> {
        let mut bytes = format!("{method} {path} HTTP/1.1\r\nhost: {}\r\n", self.address).into_bytes();
        if !body.is_empty() {
            write!(bytes, "content-length: {}\r\n", body.len())?;
        }
        if !body.is_empty() && !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
            bytes.extend_from_slice(b"content-type: application/json\r\n");
        }
        for (name, value) in headers {
            write!(bytes, "{name}: {value}\r\n")?;
        }
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(body);
        self.send(&bytes)?;
        self.answer()
    }

    /// `POST /api/v1/calls`.
    pub fn call(&mut self, tool: &str, arguments: &Value) -> io::Result<Answer> {
        let body = json!({ "tool": tool, "arguments": arguments }).to_string();
        self.request("POST", "/api/v1/calls", &[], body.as_bytes())
    }

    /// Whether the server closes the connection without another byte; waits for up to a minute.
    pub fn is_closed(&mut self) -> bool {
        match self.stream.read(&mut [0]) {
            Ok(n) => n == 0,
            Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
        }
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end().to_owned())
    }
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
