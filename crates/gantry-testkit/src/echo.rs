//! A web service on this machine that answers with what it received, for tests of REST tools.
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

use crate::TestServer;
use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::response::Response;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use token::Tokens;

/// Bytes of one request.
const BODY_BYTES: usize = 64 << 20;

/// A service that runs until it is dropped.
#[must_use]
#[derive(Debug)]
pub struct Echo {
    server: TestServer,
    state: Arc<Served>,
}

/// What the service knows.
#[derive(Debug, Default)]
struct Served {
    /// Every request as JSON, oldest first.
    requests: Mutex<Vec<Value>>,
    /// The documents below `/spec/`, by path, with their media types.
    documents: Mutex<BTreeMap<String, (String, String)>>,
    tokens: Mutex<Tokens>,
    /// Requests to `/slow` that are here now, and at most.
    at_once: Mutex<(usize, usize)>,
}

impl std::ops::Deref for Echo {
    type Target = TestServer;

    fn deref(&self) -> &TestServer {
        &self.server
    }
}

impl Echo {
    /// Starts it on a free port.
    pub fn start() -> Self {
        let state = Arc::<Served>::default();
        let router = Router::new().fallback(answer).with_state(Arc::clone(&state));
        Self { server: TestServer::spawn(router), state }
    }

    /// Serves this document at `/spec/NAME`, and gives its address. A document of that name before it is gone.
    pub fn document(&self, name: &str, media: &str, text: &str) -> String {
        let path = format!("/spec/{name}");
        self.state.documents.lock().unwrap().insert(path.clone(), (media.to_owned(), text.to_owned()));
        self.url(&path)
    }

    pub fn requests(&self) -> Vec<Value> {
        self.state.requests.lock().unwrap().clone()
    }

    #[track_caller]
    pub fn last(&self) -> Value {
        self.state.requests.lock().unwrap().last().cloned().expect("a request")
    }

    /// How often a path was asked for, with any query.
    pub fn hits(&self, path: &str) -> usize {
        self.state.requests.lock().unwrap().iter().filter(|request| request["path"] == path).count()
    }

    /// How many requests to `/slow` were here at once, at most.
    pub fn most_at_once(&self) -> usize {
        self.state.at_once.lock().unwrap().1
    }

    /// Makes every token that was given out until now worthless.
    pub fn revoke(&self) {
        self.state.tokens.lock().unwrap().revoke();
    }
}

async fn answer(State(served): State<Arc<Served>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, BODY_BYTES).await.expect("a body");
    let request = request_json(&parts, &body);
    served.requests.lock().unwrap().push(request.clone());
    special::answer(&served, &parts, request).await
}

fn request_json(parts: &Parts, body: &[u8]) -> Value {
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
        "body": body::to_json(&media, body),
    })
}

fn header(parts: &Parts, name: &str) -> Option<String> {
    parts.headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
}

/// The pairs of a header `Cookie`, in order.
fn cookies(text: &str) -> Vec<(String, String)> {
    let pairs = text.split("; ").filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}
