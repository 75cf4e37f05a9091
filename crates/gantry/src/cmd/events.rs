//! `gantry events`: the server's stream, or what the ledger remembers where no server runs.

mod words;

use crate::cli::Events;
use crate::desk::{Desk, Setup, query};
use crate::exit::{Done, Usage};
use crate::output;
use bytes::Bytes;
use gantry_egress::LocalServer;
use http::StatusCode;
use serde_json::{Value, json};

/// Bytes of one event; a longer one is not ours.
const EVENT_BYTES: usize = 1024 * 1024;

pub(super) async fn run(setup: Setup, wanted: &Events) -> anyhow::Result<Done> {
    if let Some(server) = setup.server()? {
        return streamed(&server, wanted).await;
    }
    if wanted.follow {
        return Err(Usage(
            "no server runs on this data folder, so there is nothing to follow; start one with gantry serve"
                .into(),
        )
        .into());
    }
    let desk = setup.records().await?;
    let done = remembered(&desk, wanted).await;
    desk.close().await;
    done
}

async fn streamed(server: &LocalServer, wanted: &Events) -> anyhow::Result<Done> {
    let follow = wanted.follow.to_string();
    let query = query(&[("project", wanted.of.project.as_deref()), ("follow", Some(&follow))]);
    let request = http::Request::builder().uri(format!("/api/v1/events{query}"));
    let mut answer = server.open(request, Bytes::new()).await?;
    if answer.status() == StatusCode::NOT_FOUND {
        let project = wanted.of.project.as_deref().unwrap_or_default();
        return Err(Usage(format!("the running Gantry has no project {project:?}")).into());
    }
    anyhow::ensure!(answer.status().is_success(), "the server answered {}", answer.status());
    let mut pending = String::new();
    while let Some(chunk) = answer.chunk().await? {
        pending.push_str(&String::from_utf8_lossy(&chunk));
        while let Some((event, rest)) =
            pending.split_once("\n\n").map(|(event, rest)| (event.to_owned(), rest.to_owned()))
        {
            for data in event.lines().filter_map(|line| line.strip_prefix("data:")) {
                show(data.trim(), wanted.json);
            }
            // Whoever read this has seen enough.
            if output::lost().is_some() {
                return Ok(Done::Well);
            }
            pending = rest;
        }
        anyhow::ensure!(pending.len() <= EVENT_BYTES, "the server sent an event without an end");
    }
    Ok(Done::Well)
}

/// Calls that ended, as events, oldest first.
async fn remembered(desk: &Desk, wanted: &Events) -> anyhow::Result<Done> {
    let query = query(&[("project", wanted.of.project.as_deref()), ("limit", Some("100"))]);
    let body = desk.get(&format!("/api/v1/audit{query}")).await?.expect_ok()?;
    let calls = body.get("items").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    if calls.is_empty() && !wanted.json {
        output::talk("Nothing has happened here yet.");
    }
    // What waits or runs has not ended.
    for call in calls.iter().rev().filter(|call| call.get("finishedAt").is_some_and(Value::is_string)) {
        let accounting = |key: &str| call.pointer(&format!("/accounting/{key}")).cloned().unwrap_or_default();
        let event = json!({
            "type": "tool_finished",
            "at": call.get("finishedAt").or(call.get("startedAt")), "project": call.get("project"),
            "call": call.get("id"), "session": call.get("session"), "tool": call.get("tool"),
            "namespace": call.get("namespace"), "status": accounting("status"), "code": call.pointer("/error/code"),
            "latencyMs": accounting("latencyMs"), "charactersOut": accounting("charactersOut"),
        });
        show(&event.to_string(), wanted.json);
    }
    Ok(Done::Well)
}

fn show(data: &str, as_json: bool) {
    if as_json {
        output::data(data);
        return;
    }
    let event: Value = serde_json::from_str(data).unwrap_or_default();
    output::data(&output::clean(&words::line(&event)));
}
