//! A web service on this machine that tells what it received, for tests of REST tools.
//!
//! Any path answers with the request as JSON: `method`, `path` and `query` as they came (still encoded), `headers` as
//! lists, `cookies` as pairs, and `body`. A few paths do something else; [`special`] has them. The
//! service remembers every request, so that a test compares what arrived with what a specification says.

mod body;
mod hang_up;
mod special;
mod token;

pub use hang_up::HangUp;
pub use token::{CLIENT_ID, CLIENT_SECRET};

use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::response::Response;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use token::Tokens;
use tokio::runtime::Runtime;

/// Bytes of one request.
const BODY_BYTES: usize = 64 << 20;

/// A service that runs until it is dropped.
#[derive(Debug)]
pub struct Echo {
    /// Where it listens, in the clear.
    pub address: SocketAddr,
    state: Arc<Served>,
    runtime: Option<Runtime>,
}

/// What the service knows.
#[derive(Debug, Default)]
struct Served {
    /// Every request as it is told, oldest first.
    came: Mutex<Vec<Value>>,
    /// The documents below `/spec/`, by path, with their media types.
    documents: Mutex<BTreeMap<String, (String, String)>>,
    tokens: Mutex<Tokens>,
    at_once: Mutex<AtOnce>,
}

/// Requests that are being answered slowly.
#[derive(Debug, Default)]
struct AtOnce {
    now: usize,
    most: usize,
}

impl Echo {
    /// Starts it on a free port.
    #[must_use]
    pub fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).expect("a free port");
        let address = listener.local_addr().expect("its address");
        let state = Arc::new(Served::default());
        let router = Router::new().fallback(answer).with_state(Arc::clone(&state));
        runtime.spawn(async move { axum::serve(listener, router).await });
        Self { address, state, runtime: Some(runtime) }
    }

    /// The address of a path.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Serves this document at `/spec/NAME`, and gives its address. A document of that name before it is gone.
    pub fn document(&self, name: &str, media: &str, text: &str) -> String {
        let path = format!("/spec/{name}");
        self.state.documents.lock().unwrap().insert(path.clone(), (media.to_owned(), text.to_owned()));
        self.url(&path)
    }

    /// Every request so far.
    #[must_use]
    pub fn requests(&self) -> Vec<Value> {
        self.state.came.lock().unwrap().clone()
    }

    /// The newest request.
    #[must_use]
    #[track_caller]
    pub fn last(&self) -> Value {
        self.state.came.lock().unwrap().last().cloned().expect("somebody has asked")
    }

    /// How often a path was asked for, whatever the query.
    #[must_use]
    pub fn hits(&self, path: &str) -> usize {
        self.state.came.lock().unwrap().iter().filter(|request| request["path"] == path).count()
    }

    /// How many requests to `/slow` were here at once, at most.
    #[must_use]
    pub fn most_at_once(&self) -> usize {
        self.state.at_once.lock().unwrap().most
    }

    /// Makes every token that was given out until now worthless.
    pub fn revoke(&self) {
        self.state.tokens.lock().unwrap().revoke();
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn answer(State(served): State<Arc<Served>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, BODY_BYTES).await.expect("a body");
    let told = told(&parts, &body);
    served.came.lock().unwrap().push(told.clone());
    special::answer(&served, &parts, told).await
}

/// A request as JSON.
fn told(parts: &Parts, body: &[u8]) -> Value {
    let mut headers = Map::new();
    for (name, value) in &parts.headers {
        let values = headers.entry(name.as_str()).or_insert_with(|| json!([]));
        let value = String::from_utf8_lossy(value.as_bytes());
        values.as_array_mut().expect("a list").push(json!(value));
    }
    let media = header(parts, "content-type").unwrap_or_default();
    json!({
        "method": parts.method.as_str(),
        "path": parts.uri.path(),
        "query": parts.uri.query(),
        "headers": headers,
        "cookies": cookies(&header(parts, "cookie").unwrap_or_default()),
        "body": body::told(&media, body),
    })
}

/// The text of a header.
fn header(parts: &Parts, name: &str) -> Option<String> {
    parts.headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
}

/// The pairs of a header `Cookie`, in order.
fn cookies(text: &str) -> Vec<(String, String)> {
    let pairs = text.split("; ").filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}
