//! The pipeline: one order for every door, the shape of replies, validation, time limits and the response cache.

mod arguments;
mod cache;
mod order;
mod replies;
mod timeouts;

use gantry_testkit::server::{Answer, send};
use gantry_testkit::{Server, TestDir};
use http::Method;
use serde_json::{Value, json};

/// A file of the home as an argument.
pub(crate) fn file(home: &TestDir, name: &str) -> Value {
    json!(home.path().join(name))
}

/// How many lines a file of the home has; none if it is not there.
pub(crate) fn lines(home: &TestDir, name: &str) -> usize {
    std::fs::read_to_string(home.path().join(name)).map_or(0, |text| text.lines().count())
}

/// `POST /api/v1/calls` with any body, as the person who has the key.
pub(crate) fn post_as_person(server: &Server, body: &Value) -> Answer {
    let headers = [("content-type", "application/json")];
    send(&server.admin(), Method::POST, "/api/v1/calls", &headers, &body.to_string())
}

/// `POST /api/v1/calls` with any body, without a key.
pub(crate) fn post(server: &Server, body: &Value) -> Answer {
    server.post("/api/v1/calls", &body.to_string())
}
