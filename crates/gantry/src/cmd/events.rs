//! `gantry events`: the server's stream, or what the ledger remembers where no server runs.

use crate::cli::Events;
use crate::desk::{Desk, Setup};
use crate::exit::{Done, Usage};
use crate::output;
use bytes::Bytes;
use gantry_egress::LocalServer;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};

/// Bytes of one event; a longer one is not ours.
const EVENT_BYTES: usize = 1024 * 1024;

/// Names of tools on one line.
const NAMES: usize = 6;

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
    let done = remembered(&desk, wanted.json).await;
    desk.close().await;
    done
}

async fn streamed(server: &LocalServer, wanted: &Events) -> anyhow::Result<Done> {
    let request = http::Request::builder().uri(format!("/api/v1/events?follow={}", wanted.follow));
    let answer = server.open(request, Bytes::new()).await?;
    anyhow::ensure!(answer.status().is_success(), "the server answered {}", answer.status());
    let mut body = answer.into_body();
    let mut pending = String::new();
    while let Some(frame) = body.frame().await {
        let Some(chunk) = frame?.into_data().ok() else { continue };
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
async fn remembered(desk: &Desk, as_json: bool) -> anyhow::Result<Done> {
    let body = desk.get("/api/v1/audit?limit=100").await?.expect_ok()?;
    let calls = body.get("items").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    if calls.is_empty() && !as_json {
        output::talk("Nothing has happened here yet.");
    }
    for call in calls.iter().rev() {
        let accounting = |key: &str| call.pointer(&format!("/accounting/{key}")).cloned().unwrap_or_default();
        let event = json!({
            "type": "tool_finished",
            "at": call.get("finishedAt").or(call.get("startedAt")),
            "call": call.get("id"), "session": call.get("session"), "tool": call.get("tool"),
            "namespace": call.get("namespace"), "status": accounting("status"), "code": call.pointer("/error/code"),
            "latencyMs": accounting("latencyMs"), "charactersOut": accounting("charactersOut"),
        });
        show(&event.to_string(), as_json);
    }
    Ok(Done::Well)
}

fn show(data: &str, as_json: bool) {
    if as_json {
        output::data(data);
        return;
    }
    let event: Value = serde_json::from_str(data).unwrap_or_default();
    let time = text(&event, "at").chars().skip(11).take(12).collect::<String>();
    let (kind, about) = match event.get("missed").and_then(Value::as_u64) {
        Some(missed) => ("missed".to_owned(), format!("{missed} events, which were not read in time")),
        None => (text(&event, "type"), told(&event)),
    };
    output::data(&output::clean(&format!("{time:12} {kind:16} {about}")));
}

/// An event in words. One that this program does not know is told as it came.
fn told(event: &Value) -> String {
    let text = |key: &str| text(event, key);
    let words = match text("type").as_str() {
        "session_opened" => {
            let agent = present("as", &text("agent"));
            vec![text("session"), format!("for {}", text("principal")), agent, format!("by {}", text("door"))]
        }
        "session_closed" | "session_canceled" => vec![text("session")],
        "tool_started" => vec![text("tool"), text("parameters")],
        "tool_finished" => {
            let cached = if event.get("cached") == Some(&Value::Bool(true)) { "cached" } else { "" };
            let latency = format!("{} ms", text("latencyMs"));
            vec![text("tool"), text("status"), text("code"), latency, cached.to_owned()]
        }
        "output_stored" => vec![text("handle"), format!("{} bytes of", text("bytes")), text("call")],
        "calls_recovered" => {
            let calls = event.get("calls").and_then(Value::as_array).map_or(0, Vec::len);
            vec![format!("{calls} open calls; see gantry audit --state OUTCOME_UNKNOWN")]
        }
        "server_up" => vec![text("server"), format!("{} tools, protocol {}", text("tools"), text("era"))],
        "server_down" => vec![format!("{}:", text("server")), text("reason")],
        "tools_changed" => {
            let changes = ["added", "changed", "removed"].map(|key| present(key, &names(event, key)));
            [vec![text("server")], changes.to_vec()].concat()
        }
        "request_answered" => vec![text("method"), text("subject"), text("status"), text("error")],
        "mcp_frame" => {
            let direction = if event.get("sent") == Some(&Value::Bool(true)) { "→" } else { "←" };
            vec![text("server"), direction.to_owned(), text("text")]
        }
        _ => vec![event.to_string()],
    };
    words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

fn text(event: &Value, key: &str) -> String {
    match event.get(key) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    }
}

/// A text behind its word, or nothing where there is no text.
fn present(word: &str, text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("{word} {text}") }
}

/// The first few names of a list, and how many more there are.
fn names(event: &Value, key: &str) -> String {
    let all = event.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut names: Vec<String> =
        all.iter().take(NAMES).filter_map(Value::as_str).map(str::to_owned).collect();
    if all.len() > NAMES {
        names.push(format!("and {} more", all.len() - NAMES));
    }
    names.join(", ")
}
