//! A git server on this machine: git's own `http-backend` behind a port, which remembers every request.

use crate::TestServer;
use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

/// Bytes of one request.
const BODY_BYTES: usize = 64 * 1024 * 1024;

/// A server with one empty repository, until it is dropped.
#[must_use]
#[derive(Debug)]
pub struct GitServer {
    server: TestServer,
    served: Arc<Served>,
}

#[derive(Debug)]
struct Served {
    folder: TempDir,
    /// The value of the header Authorization that every request must have.
    wanted: Option<String>,
    /// The path and the header Authorization of every request.
    requests: Mutex<Vec<(String, Option<String>)>>,
}

impl std::ops::Deref for GitServer {
    type Target = TestServer;

    fn deref(&self) -> &TestServer {
        &self.server
    }
}

impl GitServer {
    /// A server that asks for no credentials.
    pub fn open() -> Self {
        Self::start(None)
    }

    /// A server that wants to see this header Authorization.
    pub fn wanting(authorization: &str) -> Self {
        Self::start(Some(authorization.to_owned()))
    }

    fn start(wanted: Option<String>) -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        let made = std::process::Command::new("git")
            .args(["init", "--quiet", "--bare", "--initial-branch=main", "x.git"])
            .current_dir(folder.path())
            .status();
        assert!(made.expect("git is installed").success());
        let served = Arc::new(Served { folder, wanted, requests: Mutex::default() });
        let router = Router::new().fallback(answer).with_state(Arc::clone(&served));
        Self { server: TestServer::spawn(router), served }
    }

    /// The folder of the repository, as the server has it.
    pub fn repository(&self) -> PathBuf {
        self.served.folder.path().join("x.git")
    }

    pub fn url(&self) -> String {
        self.server.url("/x.git")
    }

    /// The header Authorization of every request so far.
    pub fn authorizations(&self) -> Vec<Option<String>> {
        self.served
            .requests
            .lock()
            .unwrap()
            .iter()
            .map(|(_path, authorization)| authorization.clone())
            .collect()
    }

    /// The path of every request so far.
    pub fn requests(&self) -> Vec<String> {
        self.served.requests.lock().unwrap().iter().map(|(path, _authorization)| path.clone()).collect()
    }
}

async fn answer(State(served): State<Arc<Served>>, request: Request) -> Response {
    let (request, body) = request.into_parts();
    let header = |name| request.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let authorization = header(header::AUTHORIZATION);
    served.requests.lock().unwrap().push((request.uri.path().to_owned(), authorization.clone()));
    if served.wanted.is_some() && served.wanted != authorization {
        return (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, "Basic realm=\"git\"")])
            .into_response();
    }
    let mut command = backend(served.folder.path());
    command
        .env("REQUEST_METHOD", request.method.as_str())
        .env("PATH_INFO", request.uri.path())
        .env("QUERY_STRING", request.uri.query().unwrap_or_default())
        .env("CONTENT_TYPE", header(header::CONTENT_TYPE).unwrap_or_default())
        .env("HTTP_CONTENT_ENCODING", header(header::CONTENT_ENCODING).unwrap_or_default());
    let body = to_bytes(body, BODY_BYTES).await.expect("a body");
    cgi_response(&run(command, body).await)
}

/// Git as a CGI program; it takes pushes from a named user only.
fn backend(folder: &Path) -> Command {
    let mut command = Command::new("git");
    command
        .arg("http-backend")
        .env("GIT_PROJECT_ROOT", folder)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("REMOTE_USER", "test")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true);
    command
}

async fn run(mut command: Command, body: Bytes) -> Vec<u8> {
    command.env("CONTENT_LENGTH", body.len().to_string());
    let mut child = command.spawn().expect("git is installed");
    let mut input = child.stdin.take().expect("a pipe");
    let feeding = tokio::spawn(async move { input.write_all(&body).await });
    let output = child.wait_with_output().await.expect("it ends");
    // It may have answered before it had read everything.
    feeding.await.expect("no crash").ok();
    output.stdout
}

/// What a CGI program printed: headers, an empty line, the body.
fn cgi_response(output: &[u8]) -> Response {
    let end = output.windows(4).position(|four| four == b"\r\n\r\n").expect("headers");
    let mut response = Response::builder();
    for line in String::from_utf8_lossy(&output[..end]).lines() {
        let (name, value) = line.split_once(": ").expect("a header");
        response = match name {
            "Status" => response.status(value.split(' ').next().expect("a number")),
            _ => response.header(name, value),
        };
    }
    response.body(Body::from(output[end + 4..].to_vec())).expect("an answer")
}
