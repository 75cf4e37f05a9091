//! A running `gantry serve`, and small clients for it.

use crate::process::ChildGuard;
use crate::test_dir::TestDir;
use bytes::Bytes;
use gantry_egress::LocalServer;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How long a server may take to answer, to stop, or to send what a test waits for.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A server that runs until dropped.
#[must_use]
#[derive(Debug)]
pub struct Server {
    child: ChildGuard,
    pub address: SocketAddr,
    /// The key of its data folder.
    pub key: String,
    stderr: Arc<Mutex<String>>,
    /// Ends with the server's standard error.
    reader: std::thread::JoinHandle<()>,
}

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: http::HeaderMap,
    pub text: String,
}

impl Answer {
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("not JSON: {error}\n{self:?}"))
    }
}

impl Server {
    pub(crate) fn start(home: &TestDir, args: &[&str]) -> Self {
        // An address of the test's own takes the place of the usual one.
        let bind: &[&str] = if args.contains(&"--bind") { &[] } else { &["--bind", "127.0.0.1:0"] };
        let mut command = home.command(["serve"].iter().chain(bind).chain(args));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = ChildGuard(command.spawn().expect("it starts"));
        let mut lines = BufReader::new(child.0.stderr.take().expect("a pipe")).lines().map_while(Result::ok);
        let stderr = Arc::new(Mutex::new(String::new()));
        let address = lines.by_ref().find_map(|line| {
            stderr.lock().unwrap().push_str(&format!("{line}\n"));
            let address = line.trim().strip_prefix("open  http://")?;
            Some(address.trim_end_matches('/').parse().expect("an address"))
        });
        let Some(address) = address else { panic!("the server did not start:\n{}", stderr.lock().unwrap()) };
        let sink = Arc::clone(&stderr);
        let reader = std::thread::spawn(move || {
            lines.for_each(|line| sink.lock().unwrap().push_str(&format!("{line}\n")));
        });
        let key = std::fs::read_to_string(home.path().join(".gantry/admin.key")).expect("the key");
        Self { child, address, key, stderr, reader }
    }

    pub fn stderr(&self) -> String {
        self.stderr.lock().unwrap().clone()
    }

    /// Waits until its standard error contains this: it is read beside what the server answers.
    #[track_caller]
    pub fn says(&self, text: &str) {
        self.eventually(&format!("standard error contains {text:?}"), || self.stderr().contains(text));
    }

    pub fn pid(&self) -> u32 {
        self.child.pid()
    }

    /// A client without a key, for async tests.
    pub fn client(&self) -> LocalServer {
        LocalServer::new(self.address, None)
    }

    pub fn admin(&self) -> LocalServer {
        LocalServer::new(self.address, Some(self.key.clone()))
    }

    /// `GET`, without a key.
    pub fn get(&self, path: &str) -> Answer {
        send(&self.client(), Method::GET, path, &[], "")
    }

    pub fn get_as_admin(&self, path: &str) -> Answer {
        send(&self.admin(), Method::GET, path, &[], "")
    }

    /// `POST`, without a key.
    pub fn post(&self, path: &str, body: &str) -> Answer {
        send(&self.client(), Method::POST, path, &[("content-type", "application/json")], body)
    }

    pub fn request(&self, method: Method, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        send(&self.client(), method, path, headers, body)
    }

    /// `POST /api/v1/calls`, without a key.
    pub fn call(&self, tool: &str, arguments: &Value) -> Answer {
        self.post("/api/v1/calls", &json!({ "tool": tool, "arguments": arguments }).to_string())
    }

    /// Reads the configuration again, and applies it also if it is held.
    #[track_caller]
    pub fn apply_configuration(&self) -> Answer {
        let post = |path: &str, body: &str| send(&self.admin(), Method::POST, path, &[], body);
        let read = post("/api/v1/config/reload", "");
        let held = if read.status == 200 { read.json()["held"]["revision"].take() } else { Value::Null };
        if held.is_null() {
            read
        } else {
            post("/api/v1/config/apply", &json!({ "revision": held }).to_string())
        }
    }

    /// A connection that stays open between requests.
    #[track_caller]
    pub fn connect(&self) -> crate::Connection {
        crate::Connection::open(self.address).expect("it listens")
    }

    /// Ends it like a crash.
    pub fn kill(mut self) {
        self.child.0.kill().expect("it runs");
        self.child.0.wait().expect("it ends");
    }

    /// Asks it to stop, waits, and returns its exit code and its whole standard error.
    pub fn stop(mut self) -> (i32, String) {
        let pid = rustix::process::Pid::from_child(&self.child.0);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
        let code = self.child.0.wait().expect("it ends").code().unwrap_or(-1);
        self.reader.join().expect("its standard error is read to its end");
        let stderr = self.stderr.lock().unwrap().clone();
        (code, stderr)
    }

    /// Waits until a condition holds, looking again and again.
    #[track_caller]
    pub fn eventually(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let end = std::time::Instant::now() + TIMEOUT;
        while !holds() {
            assert!(std::time::Instant::now() < end, "never: {what}\n{}", self.stderr());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Sends one request from a test that is not async. A body is JSON unless a header says otherwise.
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
    if !body.is_empty() && !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
        request = request.header("content-type", "application/json");
    }
    let sent =
        async { tokio::time::timeout(TIMEOUT, server.send(request, Bytes::from(body.to_owned()))).await };
    let (status, headers, bytes): (StatusCode, _, _) =
        runtime.block_on(sent).expect("an answer in time").expect("an answer");
    Answer { status: status.as_u16(), headers, text: String::from_utf8(bytes.into()).expect("UTF-8") }
}
