//! The tools at work; each module knows some of them by name.

mod faults;
mod plain;
mod talk;

use super::catalogue;
use super::link::Request;
use super::options::Fault;
use super::wire::{Failure, INVALID_PARAMS, Reply};
use super::{STDERR_BYTES_PER_CALL, flood_stderr};
use serde::Deserialize;
use serde_json::json;
use std::sync::atomic::Ordering;

/// The arguments of all tools together.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Arguments {
    text: String,
    level: String,
    uri: String,
    ms: u64,
    /// A file: the call lasts until it is there.
    until: String,
    mb: usize,
    count: u64,
    steps: u64,
    notes: Option<u64>,
    rounds: Option<u64>,
    a: i64,
    b: i64,
}

/// Runs the tool that the request names.
pub(super) async fn call(request: &Request) -> Reply {
    let (server, name) = (request.server(), request.params.name.as_str());
    if !catalogue::has(server, name) {
        return Failure::new(INVALID_PARAMS, format!("Unknown tool: {name}")).into();
    }
    server.n_calls.fetch_add(1, Ordering::Relaxed);
    if server.options.has(Fault::StderrFlood) {
        flood_stderr(STDERR_BYTES_PER_CALL);
    }
    if server.options.has(Fault::ExitMidCall) {
        faults::die(request);
    }
    if server.options.has(Fault::CloseSocketOnCall) {
        return faults::hang_up(request).await;
    }
    if name == "params" {
        return text(&request.raw_params); // Before anybody finds its arguments wrong.
    }
    let arguments: Arguments = match request.arguments() {
        Ok(arguments) => arguments,
        Err(reply) => return reply,
    };
    if let Some(reply) = plain::call(request, name, &arguments).await {
        return reply;
    }
    if let Some(reply) = talk::call(request, name, &arguments).await {
        return reply;
    }
    match faults::call(request, name, &arguments).await {
        Some(reply) => reply,
        // What has no work of its own proves that it was the one that was called.
        None => text(name),
    }
}

/// A result with one text.
fn text(text: &str) -> Reply {
    let content = json!([{ "type": "text", "text": text }]);
    Reply::Result(json!({ "content": content, "isError": false }).to_string())
}

/// A result that says the tool failed.
pub(super) fn failed(why: &str) -> Reply {
    let content = json!([{ "type": "text", "text": why }]);
    Reply::Result(json!({ "content": content, "isError": true }).to_string())
}
