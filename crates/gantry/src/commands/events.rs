//! `gantry events`: the server's stream, or what the ledger remembers where no server runs.

mod words;

use crate::cli::Events;
use crate::client::{ApiClient, CommandContext, Scope, query};
use crate::exit::{Outcome, UsageError};
use crate::term;
use bytes::Bytes;
use gantry_egress::LocalServer;
use http::StatusCode;
use serde_json::Value;

/// Bytes of one event; a longer one is not ours.
const EVENT_BYTES: usize = 1024 * 1024;

pub(super) async fn run(context: CommandContext, wanted: &Events) -> anyhow::Result<Outcome> {
    let json = context.json;
    if let Some(server) = context.running_server()? {
        return streamed(&server, wanted, json).await;
    }
    if wanted.follow {
        return Err(UsageError(
            "no server runs on this data folder, so there is nothing to follow; start one with gantry serve"
                .into(),
        )
        .into());
    }
    let client = context.connect(Scope::LedgerOnly).await?;
    let done = remembered(&client, wanted, json).await;
    client.close().await;
    done
}

async fn streamed(server: &LocalServer, wanted: &Events, json: bool) -> anyhow::Result<Outcome> {
    let follow = wanted.follow.to_string();
    let query = query(&[("project", wanted.project.name()), ("follow", Some(&follow))]);
    let request = http::Request::builder().uri(format!("/api/v1/events{query}"));
    let mut answer = server.open(request, Bytes::new()).await?;
    if answer.status() == StatusCode::NOT_FOUND {
        let project = wanted.project.name().unwrap_or_default();
        return Err(UsageError(format!("the running Gantry has no project {project:?}")).into());
    }
    anyhow::ensure!(answer.status().is_success(), "the server answered {}", answer.status());
    let mut pending = String::new();
    while let Some(chunk) = answer.chunk().await? {
        pending.push_str(&String::from_utf8_lossy(&chunk));
        while let Some((event, rest)) =
            pending.split_once("\n\n").map(|(event, rest)| (event.to_owned(), rest.to_owned()))
        {
            for data in event.lines().filter_map(|line| line.strip_prefix("data:")) {
                show(data.trim(), json);
            }
            // Whoever read this has seen enough.
            if term::stdout_error().is_some() {
                return Ok(Outcome::Success);
            }
            pending = rest;
        }
        anyhow::ensure!(pending.len() <= EVENT_BYTES, "the server sent an event without an end");
    }
    Ok(Outcome::Success)
}

/// Calls that ended, as events, oldest first.
async fn remembered(client: &ApiClient, wanted: &Events, json: bool) -> anyhow::Result<Outcome> {
    let query = query(&[("project", wanted.project.name()), ("limit", Some("100"))]);
    let body = client.get::<Value>(&format!("/api/v1/audit{query}")).await?;
    let calls = body.get("items").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    if calls.is_empty() && !json {
        term::eprint("Nothing has happened here yet.");
    }
    // What waits or runs has not ended.
    for call in calls.iter().rev().filter(|call| call.get("finishedAt").is_some_and(Value::is_string)) {
        let accounting = |key: &str| call.pointer(&format!("/accounting/{key}")).cloned().unwrap_or_default();
        let event = serde_json::json!({
            "type": "tool_finished",
            "at": call.get("finishedAt").or(call.get("startedAt")), "project": call.get("project"),
            "call": call.get("id"), "session": call.get("session"), "tool": call.get("tool"),
            "namespace": call.get("namespace"), "status": accounting("status"), "code": call.pointer("/error/code"),
            "latencyMs": accounting("latencyMs"), "charactersOut": accounting("charactersOut"),
        });
        show(&event.to_string(), json);
    }
    Ok(Outcome::Success)
}

fn show(data: &str, as_json: bool) {
    if as_json {
        term::print(data);
        return;
    }
    let event: Value = serde_json::from_str(data).unwrap_or_default();
    term::print(&term::sanitize(&words::line(&event)));
}
