//! `gantry call`.

mod held;

use crate::cli::Call;
use crate::client::{ApiClient, CommandContext, Scope};
use crate::commands::{arguments, reply, unavailable_servers};
use crate::exit::Outcome;
use crate::signals::Signals;
use crate::term;
use held::After;
use serde_json::Value;
use serde_json::value::RawValue;

pub(super) async fn run(context: CommandContext, call: Call) -> anyhow::Result<Outcome> {
    let (body, json) = (body(&call)?, context.json);
    let project = call.caller.project.name();
    let servers = context.loaded.config.project(project).into_iter().flat_map(|project| &project.mcp_servers);
    let unprefixed: Vec<String> =
        servers.filter(|(_, server)| !server.options.prefix).map(|(id, _)| id.clone()).collect();
    let client = context.connect(Scope::Project(project)).await?;
    let mut signals = Signals::listen()?;
    let done = called(&client, (&call, json), body, &unprefixed, &mut signals).await;
    if let Ok(Outcome::Interrupted(_)) = done {
        term::eprint(match client.is_remote() {
            true => "\nThe call goes on in the running Gantry.",
            false => "\nStopping: the call is canceled. Once more stops at once.",
        });
        signals.kill_on_next_signal();
        client.stop().await;
    } else {
        client.close().await;
    }
    done
}

async fn called(
    client: &ApiClient,
    (call, json): (&Call, bool),
    body: String,
    unprefixed: &[String],
    signals: &mut Signals,
) -> anyhow::Result<Outcome> {
    let answer = tokio::select! {
        answer = client.send(http::Method::POST, "/api/v1/calls", body) => answer?,
        asked = signals.recv() => return Ok(Outcome::Interrupted(asked)),
    };
    let answer = if held::is_held(&answer) {
        let after = tokio::select! {
            after = held::go_on(client, (call, json), answer) => after?,
            // Ctrl-C leaves the question, or the call, waiting.
            asked = signals.recv_terminate() => return Ok(Outcome::Interrupted(asked)),
        };
        match after {
            After::Over(answer) => answer,
            After::Left(answer) => {
                if json {
                    term::print(answer.text.trim_end());
                }
                return Ok(Outcome::Failure);
            }
        }
    } else {
        answer
    };
    let done = reply::show(&answer, json);
    if answer.body.pointer("/error/code").and_then(Value::as_str) == Some("TOOL_NOT_FOUND") {
        unavailable_servers::warn_possible_owner(client, call.caller.project.name(), &call.tool, unprefixed)
            .await?;
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
        priority: gantry_core::Priority,
        #[serde(skip_serializing_if = "Option::is_none")]
        timeout_ms: Option<u64>,
        approve: bool,
    }
    Ok(serde_json::to_string(&Body {
        tool: &call.tool,
        arguments: &arguments,
        agent: call.caller.agent.as_deref(),
        project: call.caller.project.name(),
        idempotency_key: call.idempotency_key.as_deref(),
        priority: call.priority,
        timeout_ms: call.timeout,
        approve: call.yes,
    })?)
}
