//! A running `gantry serve`, and small clients for it.

use crate::home::Home;
use bytes::Bytes;
use gantry_egress::LocalServer;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How long a server may take to answer, to stop, or to send what a test waits for.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server that runs until dropped.
#[derive(Debug)]
pub struct Server {
    child: Child,
    /// Where it listens.
    pub address: SocketAddr,
    /// The key of its data folder.
    pub key: String,
    said: Arc<Mutex<String>>,
    /// Ends with the server's standard error.
    listening: Option<std::thread::JoinHandle<()>>,
}

/// An answer over HTTP.
#[derive(Debug)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: http::HeaderMap,
    /// The body.
    pub text: String,
}

impl Answer {
    /// The body as JSON.
    #[must_use]
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("not JSON: {error}\n{self:?}"))
    }
}

impl Server {
    pub(crate) fn start(home: &Home, args: &[&str]) -> Self {
        // An address of the test's own takes the place of the usual one.
        let bind: &[&str] = if args.contains(&"--bind") { &[] } else { &["--bind", "127.0.0.1:0"] };
        let mut command = home.command(["serve"].iter().chain(bind).chain(args));
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        let said = Arc::new(Mutex::new(String::new()));
        let mut address = None;
        for line in lines.by_ref() {
            let line = line.expect("UTF-8");
            let found =
                line.trim().strip_prefix("open  http://").map(|rest| rest.trim_end_matches('/').to_owned());
            said.lock().unwrap().push_str(&format!("{line}\n"));
            if let Some(found) = found {
                address = Some(found.parse().expect("an address"));
                break;
            }
        }
        let Some(address) = address else { panic!("the server did not start:\n{}", said.lock().unwrap()) };
        let sink = Arc::clone(&said);
        let listening = std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                sink.lock().unwrap().push_str(&format!("{line}\n"));
            }
        });
        let key = std::fs::read_to_string(home.path().join(".gantry/admin.key")).expect("the key");
        Self { child, address, key, said, listening: Some(listening) }
    }

    /// Everything it said on standard error so far.
    #[must_use]
    pub fn said(&self) -> String {
        self.said.lock().unwrap().clone()
    }

    /// Waits until it has said something with this in it: what it says is read beside what it answers.
    #[track_caller]
    pub fn says(&self, text: &str) {
        self.eventually(&format!("it says {text:?}"), || self.said().contains(text));
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// A client without a key, for async tests.
    #[must_use]
    pub fn client(&self) -> LocalServer {
        LocalServer::new(self.address, None)
    }

    /// A client with the key.
    #[must_use]
    pub fn admin(&self) -> LocalServer {
        LocalServer::new(self.address, Some(self.key.clone()))
    }

    /// `GET`, without a key.
    pub fn get(&self, path: &str) -> Answer {
        send(&self.client(), Method::GET, path, &[], "")
    }

    /// `GET`, with the key.
    pub fn get_as_admin(&self, path: &str) -> Answer {
        send(&self.admin(), Method::GET, path, &[], "")
    }

    /// `POST`, without a key.
    pub fn post(&self, path: &str, body: &str) -> Answer {
        send(&self.client(), Method::POST, path, &[("content-type", "application/json")], body)
    }

    /// Any request.
    pub fn request(&self, method: Method, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        send(&self.client(), method, path, headers, body)
    }

    /// `POST /api/v1/calls`, without a key.
    pub fn call(&self, tool: &str, arguments: &Value) -> Answer {
        self.post("/api/v1/calls", &json!({ "tool": tool, "arguments": arguments }).to_string())
    }

    /// A connection that stays open between requests.
    #[track_caller]
    pub fn connect(&self) -> crate::Connection {
        crate::Connection::open(self.address).expect("it listens")
    }

    /// Sends bytes as they are and returns what comes back until the connection is closed or quiet for a second.
    pub fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(1))).expect("a timeout");
        // It may close before it has read everything; what it answered counts.
        stream.write_all(bytes).ok();
        let mut answer = Vec::new();
        let mut chunk = [0; 4096];
        while let Ok(n) = stream.read(&mut chunk) {
            if n == 0 {
                break;
            }
            answer.extend_from_slice(&chunk[..n]);
        }
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// Ends it like a crash.
    pub fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }

    /// Asks it to stop, waits, and returns its exit code and everything it said.
    pub fn stop(mut self) -> (i32, String) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
        let code = self.child.wait().expect("it ends").code().unwrap_or(-1);
        if let Some(listening) = self.listening.take() {
            listening.join().expect("its last words are read");
        }
        (code, self.said())
    }

    /// Waits until a condition holds, looking again and again.
    #[track_caller]
    pub fn eventually(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let end = std::time::Instant::now() + PATIENCE;
        while !holds() {
            assert!(std::time::Instant::now() < end, "never: {what}\n{}", self.said());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Sends one request from a test that is not async.
pub fn send(
    server: &LocalServer,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Answer {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut request = http::Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let sent =
        async { tokio::time::timeout(PATIENCE, server.send(request, Bytes::from(body.to_owned()))).await };
    let (status, headers, bytes): (StatusCode, _, _) =
        runtime.block_on(sent).expect("an answer in time").expect("an answer");
    Answer { status: status.as_u16(), headers, text: String::from_utf8(bytes.into()).expect("UTF-8") }
}
