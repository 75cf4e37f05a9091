//! `gantry call`: makes a call. If it is held, asks the user on a terminal, waits for the decision or the scheduled time,
//! or says how to continue.

use crate::cli::{Call, WaitArgs};
use crate::client::{ApiClient, CommandContext, SHUTDOWN_GRACE_PERIOD, Scope};
use crate::commands::approvals::decide::{WaitResult, print_still_running, wait_for_call};
use crate::commands::approvals::prompt::{self, Answer, LEAVE};
use crate::commands::approvals::terminal::Input;
use crate::commands::approvals::{self, format};
use crate::commands::reply::CallResult;
use crate::commands::{arguments, unavailable_servers};
use crate::exit::Outcome;
use crate::signals::Signals;
use crate::term;
use gantry_core::State;
use gantry_core::error::ErrorCode;
use gantry_server::model::{Approval, CallRequest};
use http::{Method, StatusCode};
use std::time::Duration;
use tokio::time::timeout;

pub(super) async fn run(context: CommandContext, call: Call) -> anyhow::Result<Outcome> {
    let project = call.caller.project.name();
    let body = serde_json::to_string(&CallRequest {
        tool: call.tool.clone(),
        arguments: Some(arguments::read(&call.arguments)?),
        agent: call.caller.agent.clone(),
        project: Some(project.to_owned()),
        idempotency_key: call.idempotency_key.clone(),
        priority: call.priority,
        timeout_ms: call.timeout,
        approve: call.yes,
        ..CallRequest::default()
    })?;
    let servers = context.loaded.config.project(project).into_iter().flat_map(|project| &project.mcp_servers);
    let unprefixed: Vec<String> =
        servers.filter(|(_, server)| !server.options.prefix).map(|(id, _)| id.to_string()).collect();
    let client = context.connect(Scope::Project(project)).await?;
    let mut signals = Signals::listen()?;
    let done = execute(&client, &call, body, &unprefixed, &mut signals).await;
    if let Ok(Outcome::Interrupted(_)) = done {
        term::eprint(match client.is_remote() {
            true => "\nThe call goes on in the running Gantry.",
            false => "\nStopping: the call is canceled. Press again to stop at once.",
        });
        signals.kill_on_next_signal();
        client.close(Duration::ZERO).await;
    } else {
        client.close(SHUTDOWN_GRACE_PERIOD).await;
    }
    done
}

async fn execute(
    client: &ApiClient,
    call: &Call,
    body: String,
    unprefixed: &[String],
    signals: &mut Signals,
) -> anyhow::Result<Outcome> {
    let response = tokio::select! {
        response = client.send(Method::POST, "/api/v1/calls", body) => response?,
        signal = signals.recv() => return Ok(Outcome::Interrupted(signal)),
    };
    let mut result = CallResult::new(response.text)?;
    // A held call waits for an approval or for its scheduled time.
    if result.approval_id.is_some() && result.state.is_some_and(|state| !state.is_over()) {
        let ended = tokio::select! {
            ended = handle_held(client, call.wait, &result) => ended?,
            // Ctrl-C ends the prompt or the waiting, not the process.
            signal = signals.recv_terminate() => return Ok(Outcome::Interrupted(signal)),
        };
        match ended {
            Some(ended) => result = *ended,
            None => {
                if client.json {
                    term::print(result.text.trim_end());
                }
                return Ok(Outcome::Failure);
            }
        }
    }
    let outcome = result.print(client.json);
    if result.error.is_some_and(|error| error.code == ErrorCode::ToolNotFound) {
        let project = call.caller.project.name();
        unavailable_servers::warn_possible_owner(client, project, &call.tool, unprefixed).await?;
    }
    Ok(outcome)
}

/// Handles a held call as the options say. Returns its result, or `None` if it waits on.
async fn handle_held(
    client: &ApiClient,
    options: WaitArgs,
    result: &CallResult,
) -> anyhow::Result<Option<Box<CallResult>>> {
    let approval = approvals::get(client, result.approval_id.clone().unwrap_or_default()).await?;
    let is_pending = result.state == Some(State::PendingApproval);
    let asks = is_pending && options.wait.is_none();
    if options.no_wait || (asks && (client.json || !term::is_interactive())) {
        if !client.json {
            result.print_error();
            print_how_to_continue(client, &approval, is_pending);
        }
        return Ok(None);
    }
    let mut input = Input::new()?;
    if asks {
        return ask(client, approval, &mut input).await;
    }
    let (tool, id, due) = (term::sanitize(&approval.tool), approval.id, format::due(&approval));
    let what = if is_pending { "an approval" } else { "its scheduled time" };
    term::eprint(&format!("{tool} waits for {what} as {id} ({due}). Ctrl-C leaves it waiting."));
    let limit = options.wait.flatten().map_or(Duration::MAX, Duration::from_secs);
    let waiting = timeout(limit, wait_for_call(client, &approval, true, &mut input));
    match waiting.await.unwrap_or(Ok(WaitResult::Stopped))? {
        WaitResult::Over(result) => Ok(Some(result)),
        WaitResult::Stopped | WaitResult::NeedsApproval => Ok(leave(client, &approval, is_pending)),
    }
}

/// Asks until the call is over or left waiting. A call that has changed since its approval needs another one.
async fn ask(
    client: &ApiClient,
    mut approval: Approval,
    input: &mut Input,
) -> anyhow::Result<Option<Box<CallResult>>> {
    loop {
        if approval.state == State::PendingApproval {
            match prompt::ask(client, &approval, input, LEAVE).await? {
                Answer::Decided(approval) | Answer::Over(approval) => print_decision(&approval),
                Answer::Refused(StatusCode::FORBIDDEN) | Answer::Skipped | Answer::Interrupted => {
                    return Ok(leave(client, &approval, true));
                }
                Answer::Refused(_) => {}
            }
        }
        match wait_for_call(client, &approval, false, input).await? {
            WaitResult::Over(result) => return Ok(Some(result)),
            WaitResult::NeedsApproval => {}
            WaitResult::Stopped => {
                print_still_running(client, approval.id);
                return Ok(None);
            }
        }
        approval = match approvals::pending_request(client, &approval).await? {
            Some(again) => {
                term::eprint("What you approved has changed since you looked, so you are asked again.");
                again
            }
            // The new request has been decided already.
            None => approvals::get(client, approval.id).await?,
        };
    }
}

fn leave(client: &ApiClient, approval: &Approval, is_pending: bool) -> Option<Box<CallResult>> {
    let id = approval.id;
    term::eprint(&format!("It waits as {id}."));
    term::eprint(&format!("hint: {}", next_step_hint(client, approval, is_pending)));
    term::eprint(&format!("hint: gantry approvals cancel {id} withdraws it"));
    None
}

fn print_how_to_continue(client: &ApiClient, approval: &Approval, is_pending: bool) {
    term::eprint(&format!("hint: {}", next_step_hint(client, approval, is_pending)));
    term::eprint(&if is_pending {
        "hint: the same call again with --wait waits for the decision".to_owned()
    } else {
        format!("hint: gantry approvals cancel {} withdraws it", approval.id)
    });
}

fn next_step_hint(client: &ApiClient, approval: &Approval, is_pending: bool) -> String {
    let id = approval.id;
    if is_pending && !format::may_local_user_approve(approval) {
        return term::sanitize(&format::approvers(&approval.approvers).refusal());
    }
    match (is_pending, client.is_remote()) {
        (true, true) => format!("gantry approvals approve {id} lets it run"),
        (true, false) => format!(
            "gantry approvals approve {id} lets it run; no Gantry runs here, so it runs with that command"
        ),
        (false, true) => format!("gantry approvals show {id} shows its state"),
        (false, false) => "no Gantry runs here; it runs with the next gantry serve".to_owned(),
    }
}

fn print_decision(approval: &Approval) {
    let state = || format::state(approval.state).to_owned();
    let decision = format::decision(approval).unwrap_or_else(state);
    let due = format::due(approval);
    let due = if due.is_empty() { due } else { format!("; it {due}") };
    term::eprint(&term::sanitize(&format!("{decision}{due}")));
}
