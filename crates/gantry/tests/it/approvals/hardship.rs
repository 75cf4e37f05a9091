//! Approved calls in hard times: their MCP server is down, the disk is full, the Gantry that their caller waits at dies.

mod down;
mod full;
mod gone;

use super::held::{Held, item};
use gantry_testkit::Server;
use serde_json::Value;

/// Waits so many seconds for a call, as its caller, and says how it stands then.
#[track_caller]
fn wait(server: &Server, held: &Held, seconds: u64) -> Value {
    let answer = server.get(&format!("/api/v1/calls/{}?wait={seconds}", held.call));
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

/// Waits until an approval is in this state.
#[track_caller]
fn reaches(server: &Server, held: &Held, state: &str) {
    server.eventually(&format!("it is {state}"), || item(server, &held.id)["state"] == state);
}
