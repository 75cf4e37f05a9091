//! `gantry call`.

mod held;

use crate::cli::{Call, Priority};
use crate::cmd::{absent, arguments, reply};
use crate::desk::{Desk, Setup};
use crate::exit::Done;
use crate::output;
use crate::signals::Signals;
use held::After;
use serde_json::Value;
use serde_json::value::RawValue;

pub(super) async fn run(setup: Setup, call: Call) -> anyhow::Result<Done> {
    let body = body(&call)?;
    let project = call.who.place.name();
    let servers = setup.loaded.config.project(project).into_iter().flat_map(|project| &project.mcp_servers);
    let unprefixed: Vec<String> =
        servers.filter(|(_, server)| !server.options.prefix).map(|(id, _)| id.clone()).collect();
    let desk = setup.desk_in(Some(project)).await?;
    let mut signals = Signals::listen()?;
    let done = called(&desk, &call, body, &unprefixed, &mut signals).await;
    if let Ok(Done::Stopped(_)) = done {
        output::talk(match desk.is_running() {
            true => "\nThe call goes on in the running Gantry.",
            false => "\nStopping: the call is canceled. Once more stops at once.",
        });
        signals.end_at_once();
        desk.stop().await;
    } else {
        desk.close().await;
    }
    done
}

async fn called(
    desk: &Desk,
    call: &Call,
    body: String,
    unprefixed: &[String],
    signals: &mut Signals,
) -> anyhow::Result<Done> {
    let answer = tokio::select! {
        answer = desk.post("/api/v1/calls", body) => answer?,
        asked = signals.asked() => return Ok(Done::Stopped(asked)),
    };
    let answer = if held::is_held(&answer) {
        let after = tokio::select! {
            after = held::go_on(desk, call, answer) => after?,
            // Ctrl-C leaves the question, or the call, waiting.
            asked = signals.terminated() => return Ok(Done::Stopped(asked)),
        };
        match after {
            After::Over(answer) => answer,
            After::Left(answer) => {
                if call.json {
                    output::data(answer.text.trim_end());
                }
                return Ok(Done::Badly);
            }
        }
    } else {
        answer
    };
    let done = reply::show(&answer, call.json);
    if answer.body.pointer("/error/code").and_then(Value::as_str) == Some("TOOL_NOT_FOUND") {
        absent::tell_of(desk, call.who.place.name(), &call.tool, unprefixed).await?;
    }
    Ok(done)
}

/// The request, with the arguments exactly as they were typed.
fn body(call: &Call) -> anyhow::Result<String> {
    let arguments = arguments::read(&call.arguments)?;
    #[derive(serde::Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Body<'a> {
        tool: &'a str,
        arguments: &'a RawValue,
        #[serde(skip_serializing_if = "Option::is_none")]
        agent: Option<&'a str>,
        project: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        idempotency_key: Option<&'a str>,
        priority: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        timeout_ms: Option<u64>,
        approve: bool,
    }
    let priority = match call.priority {
        Priority::Low => "low",
        Priority::Normal => "normal",
        Priority::High => "high",
    };
    Ok(serde_json::to_string(&Body {
        tool: &call.tool,
        arguments: &arguments,
        agent: call.who.agent.as_deref(),
        project: call.who.place.name(),
        idempotency_key: call.idempotency_key.as_deref(),
        priority,
        timeout_ms: call.timeout,
        approve: call.yes,
    })?)
}
