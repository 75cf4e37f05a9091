//! The HTTP front: requests that no honest client sends, who may see what, and the shapes of every answer.

mod api;
mod foreign_page;
mod gates;
mod keys;
mod requests;

use gantry_testkit::Server;
use gantry_testkit::server::Answer;

/// A call that leaves a file behind where it gets in.
const CALL: &str = r#"{"tool":"write_file","arguments":{"path":"got-in.txt","content":"x"}}"#;

/// Sends a request as bytes and reads the one answer to it; `HOST` stands for the right host.
fn raw(server: &Server, request: &str) -> Answer {
    let mut connection = server.connect();
    let bytes = request.replace("HOST", &server.address.to_string());
    // It may refuse before it has read everything; what it answers counts.
    connection.send(bytes.as_bytes()).ok();
    connection.answer().unwrap_or_else(|error| panic!("no answer ({error}) to {request:.200}"))
}

/// The error of an answer in the one shape that every error has.
#[track_caller]
fn error(answer: &Answer) -> (u16, String, String) {
    assert_eq!(answer.headers["content-type"], "application/json", "{answer:?}");
    let body = answer.json();
    assert_eq!(body["ok"], false, "{body}");
    let text = |name: &str| body["error"][name].as_str().expect("a text").to_owned();
    (answer.status, text("code"), text("message"))
}

/// Sends a `GET` with headers of one's own.
fn get(server: &Server, path: &str, headers: &[(&str, &str)]) -> Answer {
    server.connect().request("GET", path, headers, b"").expect("an answer")
}
