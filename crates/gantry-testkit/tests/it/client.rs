//! A client that knows lines and JSON and nothing of MCP beyond the handshake.

use gantry_testkit::faulty::{Faulty, LEGACY, MODERN};
use gantry_testkit::process::ChildGuard;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

/// How long one read over a socket may take.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Something that carries messages both ways.
pub(crate) trait Wire {
    fn send(&mut self, text: &str);

    /// The next message as it came; `None` at the end.
    fn next_text(&mut self) -> Option<String>;

    #[track_caller]
    fn next(&mut self) -> Value {
        let text = self.next_text().expect("another message");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("not JSON: {error}: {text}"))
    }

    /// Sends a request and gives what comes before its answer, and the answer.
    #[track_caller]
    fn request_noting(&mut self, id: u64, method: &str, params: &Value) -> (Vec<Value>, Value) {
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string());
        let mut notes = Vec::new();
        loop {
            let message = self.next();
            if message["id"] == id && message.get("method").is_none() {
                return (notes, message);
            }
            notes.push(message);
        }
    }

    /// Sends a request and gives its answer.
    #[track_caller]
    fn request(&mut self, id: u64, method: &str, params: &Value) -> Value {
        self.request_noting(id, method, params).1
    }

    fn notify(&mut self, method: &str, params: &Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string());
    }

    /// The handshake of a client with these capabilities.
    #[track_caller]
    fn initialize(&mut self, capabilities: &Value) -> Value {
        let answer = self.request(0, "initialize", &handshake(capabilities));
        self.notify("notifications/initialized", &json!({}));
        answer
    }

    /// Calls a tool the older way and gives its result.
    #[track_caller]
    fn call(&mut self, id: u64, tool: &str, arguments: &Value) -> Value {
        let answer = self.request(id, "tools/call", &json!({ "name": tool, "arguments": arguments }));
        answer["result"].clone()
    }
}

/// The parameters of `initialize`.
pub(crate) fn handshake(capabilities: &Value) -> Value {
    json!({
        "protocolVersion": LEGACY,
        "capabilities": capabilities,
        "clientInfo": { "name": "test", "version": "1" },
    })
}

/// Parameters as a modern request has them.
pub(crate) fn modern(mut params: Value, capabilities: &Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    });
    params
}

/// The text of a result.
#[track_caller]
pub(crate) fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {result}"))
}

/// A server that was started over stdio.
#[derive(Debug)]
pub(crate) struct Process {
    child: ChildGuard,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Process {
    /// The faulty server, with an environment of its own.
    pub(crate) fn faulty(args: &[&str]) -> Self {
        let mut command = Command::new(Faulty::program());
        command.args(args).env_clear().env("FAULTY_TEST", "1");
        Self::start(command)
    }

    pub(crate) fn start(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the server starts");
        // The server must not block on a full pipe that is not read.
        let mut stderr = child.stderr.take().expect("a pipe");
        std::thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()));
        let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        Self { stdin: child.stdin.take(), child: ChildGuard(child), stdout }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.pid()
    }

    /// Closes its input, and gives the rest of its output and its exit code.
    pub(crate) fn close(mut self) -> (String, Option<i32>) {
        drop(self.stdin.take());
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).expect("UTF-8");
        (rest, self.child.0.wait().expect("it ends").code())
    }
}

impl Wire for Process {
    fn send(&mut self, text: &str) {
        let line = format!("{text}\n");
        self.stdin.as_mut().expect("an open pipe").write_all(line.as_bytes()).expect("the server reads");
    }

    fn next_text(&mut self) -> Option<String> {
        next_line(&mut self.stdout)
    }
}

/// A connection with one message a line.
#[derive(Debug)]
pub(crate) struct Tcp(BufReader<TcpStream>);

impl Tcp {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        Self(BufReader::new(connect(address)))
    }
}

impl Wire for Tcp {
    fn send(&mut self, text: &str) {
        self.0.get_mut().write_all(format!("{text}\n").as_bytes()).expect("the server reads");
    }

    fn next_text(&mut self) -> Option<String> {
        next_line(&mut self.0)
    }
}

pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("the server listens");
    stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
    stream
}

fn next_line(reader: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    let n = reader.read_line(&mut line).expect("UTF-8 in time");
    (n > 0).then(|| line.trim_end().to_owned())
}
