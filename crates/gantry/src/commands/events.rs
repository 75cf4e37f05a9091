//! `gantry events`: the event stream of the running server, else the recorded calls.

use crate::cli::Events;
use crate::client::{ApiClient, CommandContext, Scope, query_string};
use crate::exit::{Outcome, UsageError};
use crate::term;
use anyhow::Context as _;
use bytes::Bytes;
use gantry_core::ErrorCode;
use gantry_core::invisible::escape_invisible;
use gantry_egress::{LocalServer, SseParser};
use gantry_runtime::event::Finished;
use gantry_server::model::{CallRecord, Event, EventKind, EventLine, Missed};
use http::StatusCode;

/// Bytes of one event; a longer one does not come from Gantry.
const MAX_EVENT_BYTES: usize = 1024 * 1024;

pub(super) async fn run(context: CommandContext, args: &Events) -> anyhow::Result<Outcome> {
    if args.follow && context.running_server()?.is_none() {
        let message =
            "no Gantry runs on this data folder, so there is nothing to follow; start one with gantry serve";
        return Err(UsageError(message.into()).into());
    }
    let work = async |client: &ApiClient| match client.remote() {
        Some(server) => stream(server, args, client.json).await,
        None => recorded(client, args).await,
    };
    context.with_client(Scope::LedgerOnly, work).await
}

async fn stream(server: &LocalServer, args: &Events, json: bool) -> anyhow::Result<Outcome> {
    let follow = args.follow.to_string();
    let query = query_string(&[("project", args.project.name()), ("follow", Some(&follow))]);
    let request = http::Request::builder().uri(format!("/api/v1/events{query}"));
    let mut answer = server.open(request, Bytes::new()).await?;
    if answer.status() == StatusCode::NOT_FOUND {
        let project = args.project.name().unwrap_or_default();
        return Err(UsageError(format!("the running Gantry has no project {project:?}")).into());
    }
    anyhow::ensure!(answer.status().is_success(), "the server answered {}", answer.status());
    let (mut parser, mut events) = (SseParser::new(MAX_EVENT_BYTES), Vec::new());
    while let Some(chunk) = answer.chunk().await? {
        parser.push(&chunk, &mut events).context("the server sent an event without an end")?;
        for event in events.drain(..) {
            print_event(&event.data, json)?;
            // A reader that went away (`| head`) ends the command.
            if term::stdout_error().is_some() {
                return Ok(Outcome::Success);
            }
        }
    }
    Ok(Outcome::Success)
}

fn print_event(data: &str, json: bool) -> anyhow::Result<()> {
    if json {
        term::print(&escape_invisible(data));
    } else if let Ok(Missed { message, .. }) = serde_json::from_str(data) {
        term::print(&term::sanitize(&message));
    } else {
        print_line(&serde_json::from_str(data).context("the server sent an event that cannot be read")?);
    }
    Ok(())
}

fn print_line(event: &EventLine) {
    let time: String = event.at.to_string().chars().skip(11).take(12).collect();
    term::print(&term::sanitize(&format!("{time:12} {}", event.message)));
}

/// The recorded calls that have ended as events, oldest first.
async fn recorded(client: &ApiClient, args: &Events) -> anyhow::Result<Outcome> {
    let query = [("project", args.project.name()), ("limit", Some("100"))];
    let calls: Vec<CallRecord> = client.list("/api/v1/audit", &query).await?;
    if calls.is_empty() && !client.json {
        term::eprint("No calls are recorded yet.");
    }
    let ended = calls.iter().rev().filter_map(|call| Some((call, call.finished_at?)));
    for ((call, at), seq) in ended.zip(0..) {
        let kind = finished(call);
        let project = Some(call.project.clone());
        let line = EventLine { seq, at, message: kind.message(project.as_deref()), project };
        if client.json {
            term::print(&escape_invisible(&serde_json::to_string(&Event { line, kind: &kind })?));
        } else {
            print_line(&line);
        }
    }
    Ok(Outcome::Success)
}

fn finished(call: &CallRecord) -> EventKind {
    let (accounting, error) = (call.accounting.as_ref(), call.error.as_ref());
    let is_ok = accounting.is_some_and(|accounting| accounting.status == "ok");
    EventKind::ToolFinished(Box::new(Finished {
        call: call.id,
        session: call.session,
        tool: call.tool.clone(),
        namespace: call.namespace.clone(),
        status: if is_ok { "ok" } else { "failed" },
        code: error.and_then(|error| ErrorCode::parse(&error.code)).map(ErrorCode::as_str),
        error: error
            .map(|error| format!("{} {}", error.code, error.message.as_deref().unwrap_or_default()).into()),
        latency_ms: accounting.map_or(0, |accounting| accounting.latency_ms),
        latency_us: 0,
        characters_in: accounting.map_or(0, |accounting| accounting.characters_in),
        characters_out: accounting.map_or(0, |accounting| accounting.characters_out),
        cached: call.cached.unwrap_or_default(),
    }))
}
