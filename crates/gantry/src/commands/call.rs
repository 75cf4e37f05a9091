//! `gantry call`.

mod held;

use crate::cli::Call;
use crate::client::{ApiClient, CommandContext, Scope};
use crate::commands::reply::CallResult;
use crate::commands::{arguments, unavailable_servers};
use crate::exit::Outcome;
use crate::signals::Signals;
use crate::term;
use gantry_core::error::ErrorCode;
use gantry_server::model::CallRequest;
use held::HeldOutcome;
use http::Method;

pub(super) async fn run(context: CommandContext, call: Call) -> anyhow::Result<Outcome> {
    let (body, json) = (serde_json::to_string(&request(&call)?)?, context.json);
    let project = call.caller.project.name();
    let servers = context.loaded.config.project(project).into_iter().flat_map(|project| &project.mcp_servers);
    let unprefixed: Vec<String> =
        servers.filter(|(_, server)| !server.options.prefix).map(|(id, _)| id.to_string()).collect();
    let client = context.connect(Scope::Project(project)).await?;
    let mut signals = Signals::listen()?;
    let done = execute(&client, &call, json, body, &mut signals).await;
    if let Ok((Outcome::Interrupted(_), _)) = done {
        term::eprint(match client.is_remote() {
            true => "\nThe call goes on in the running Gantry.",
            false => "\nStopping: the call is canceled. Press again to stop at once.",
        });
        signals.kill_on_next_signal();
        client.stop().await;
        return done.map(|(outcome, _)| outcome);
    }
    if let Ok((_, Some(ErrorCode::ToolNotFound))) = done {
        unavailable_servers::warn_possible_owner(&client, project, &call.tool, &unprefixed).await?;
    }
    client.close().await;
    done.map(|(outcome, _)| outcome)
}

fn request(call: &Call) -> anyhow::Result<CallRequest> {
    Ok(CallRequest {
        tool: call.tool.clone(),
        arguments: Some(arguments::read(&call.arguments)?),
        agent: call.caller.agent.clone(),
        project: Some(call.caller.project.name().to_owned()),
        idempotency_key: call.idempotency_key.clone(),
        priority: call.priority,
        timeout_ms: call.timeout,
        approve: call.yes,
        ..CallRequest::default()
    })
}

/// Makes the call and prints its result. Returns the error code beside the outcome.
async fn execute(
    client: &ApiClient,
    call: &Call,
    json: bool,
    body: String,
    signals: &mut Signals,
) -> anyhow::Result<(Outcome, Option<ErrorCode>)> {
    let response = tokio::select! {
        response = client.send(Method::POST, "/api/v1/calls", body) => response?,
        signal = signals.recv() => return Ok((Outcome::Interrupted(signal), None)),
    };
    let mut result = CallResult::new(response.text)?;
    if held::is_held(&result) {
        let outcome = tokio::select! {
            outcome = held::handle_held(client, call.wait, json, &result) => outcome?,
            // Ctrl-C ends the prompt or the waiting, not the process.
            signal = signals.recv_terminate() => return Ok((Outcome::Interrupted(signal), None)),
        };
        match outcome {
            HeldOutcome::Ended(ended) => result = *ended,
            HeldOutcome::StillHeld => {
                if json {
                    term::print(result.text.trim_end());
                }
                return Ok((Outcome::Failure, None));
            }
        }
    }
    Ok((result.print(json), result.reply.error.map(|error| error.code)))
}
