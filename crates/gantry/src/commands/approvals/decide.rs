//! `gantry approvals approve`, `deny` and `cancel`.

use super::format;
use super::terminal::Input;
use super::wait::{WaitLimit, WaitResult, wait_for_call};
use crate::cli::{Approve, Deny};
use crate::client::{ApiClient, ApiResponse, CommandContext, Scope};
use crate::commands::arguments;
use crate::exit::{Outcome, UsageError};
use crate::term;
use gantry_core::id::ApprovalId;
use gantry_core::{State, raw};
use gantry_server::model::{Approval, Decision};
use http::{Method, StatusCode};

/// The server's answer to a decision.
pub(in crate::commands) enum DecisionResult {
    Accepted(Box<Approval>),
    /// The decision came too late, or the user may not make it.
    Conflict(ApiResponse),
    /// The decision cannot be carried out, for example because of its arguments. Nothing was decided.
    Invalid(ApiResponse),
}

/// Sends a decision.
pub(in crate::commands) async fn decide(
    client: &ApiClient,
    id: impl ToString,
    decision: &Decision,
) -> anyhow::Result<DecisionResult> {
    let path = format!("{}/decision", super::path(&id.to_string()));
    let response = client.send(Method::POST, &path, serde_json::to_string(decision)?).await?;
    Ok(match response.status {
        status if is_conflict(status) => DecisionResult::Conflict(response),
        StatusCode::BAD_REQUEST => DecisionResult::Invalid(response),
        _ => DecisionResult::Accepted(response.into_result()?),
    })
}

fn is_conflict(status: StatusCode) -> bool {
    matches!(status, StatusCode::FORBIDDEN | StatusCode::CONFLICT | StatusCode::GONE)
}

pub(super) async fn approve(context: CommandContext, wanted: Approve) -> anyhow::Result<Outcome> {
    let modified_args = wanted.args.as_deref().map(arguments::read_object).transpose()?;
    if wanted.no_wait && context.running_server()?.is_none() {
        let message = "no Gantry runs on this data folder, so the call runs in this process, which has to wait for it; \
                       leave --no-wait out, or start gantry serve first";
        return Err(UsageError(message.into()).into());
    }
    let json = context.json;
    // Without a running server the call runs in this process, with the MCP servers of its project.
    context
        .with_client(Scope::All, async |client| {
            let scope = wanted.scope();
            let decision = Decision { approved: true, modified_args, reason: wanted.reason.clone(), scope };
            let approval = match decide(client, &wanted.id, &decision).await? {
                DecisionResult::Accepted(approval) => approval,
                DecisionResult::Conflict(response) => return print_conflict(&response, json),
                DecisionResult::Invalid(response) => return Err(response.into_error()),
            };
            if wanted.wait || !client.is_remote() {
                return wait(client, &approval, json).await;
            }
            print_decided(&approval, json)
        })
        .await
}

/// Waits until an approved call has ended, and prints its result.
async fn wait(client: &ApiClient, approval: &Approval, json: bool) -> anyhow::Result<Outcome> {
    if approval.state == State::ScheduledForExecution && !client.is_remote() {
        term::eprint("No Gantry runs on this data folder. The call runs if gantry serve runs at that time.");
        return print_decided(approval, json);
    }
    let mut input = Input::new()?;
    term::eprint(&format!("{}. Ctrl-C stops waiting.", summary(approval)));
    let limit = WaitLimit { deadline: None, while_pending: false };
    let result = match wait_for_call(client, approval, limit, &mut input).await? {
        WaitResult::Ended(result) => result,
        WaitResult::NeedsApproval => {
            let again = super::pending_request(client, approval).await?;
            let id = again.map_or_else(|| "a new request".to_owned(), |again| again.id.to_string());
            term::eprint(&format!(
                "Nothing was run: what you approved has changed since it was requested. It needs another approval as \
                 {id}; see gantry approvals show {id}"
            ));
            return Ok(Outcome::Failure);
        }
        WaitResult::TimedOut | WaitResult::Interrupted => {
            print_still_running(client, approval.id);
            return Ok(Outcome::Failure);
        }
    };
    if json {
        let approval = serde_json::to_string(&super::get(client, approval.id).await?)?;
        term::print(&term::pretty_json(&raw::with(&approval, "reply", result.text.trim())));
        return Ok(result.outcome());
    }
    if result.reply.ok {
        let (tool, ms) = (term::sanitize(&approval.tool), result.reply.latency_ms);
        term::eprint(&format!("done: {tool} succeeded after {ms} ms"));
    }
    Ok(result.print(false))
}

/// Says what becomes of a call that the user no longer waits for.
pub(in crate::commands) fn print_still_running(client: &ApiClient, id: ApprovalId) {
    let still = if client.is_remote() { "It goes on in the running Gantry" } else { "It is cut off" };
    term::eprint(&format!("{still}; gantry approvals show {id} shows its state."));
}

pub(super) async fn deny(context: CommandContext, wanted: Deny) -> anyhow::Result<Outcome> {
    let json = context.json;
    context
        .with_client(Scope::LedgerOnly, async |client| {
            let decision = Decision { reason: wanted.reason, ..Decision::default() };
            match decide(client, &wanted.id, &decision).await? {
                DecisionResult::Accepted(approval) => print_decided(&approval, json),
                DecisionResult::Conflict(response) => print_conflict(&response, json),
                DecisionResult::Invalid(response) => Err(response.into_error()),
            }
        })
        .await
}

pub(super) async fn cancel(context: CommandContext, id: &str) -> anyhow::Result<Outcome> {
    let json = context.json;
    context
        .with_client(Scope::LedgerOnly, async |client| {
            let path = format!("{}/cancel", super::path(id));
            let response = client.send(Method::POST, &path, String::new()).await?;
            if is_conflict(response.status) {
                return print_conflict(&response, json);
            }
            print_decided(&response.into_result()?, json)
        })
        .await
}

/// Prints a request that was just decided.
fn print_decided(approval: &Approval, json: bool) -> anyhow::Result<Outcome> {
    if json {
        term::print_json(approval);
    } else {
        term::print(&summary(approval));
    }
    Ok(Outcome::Success)
}

/// What a decision came to, on one line.
fn summary(approval: &Approval) -> String {
    let (id, tool, state) = (approval.id, &approval.tool, format::state(approval.state));
    let text = if matches!(approval.state, State::ApprovedReady | State::Executing) {
        format!("approved {id}: {tool} runs now")
    } else if approval.state == State::ScheduledForExecution {
        let time = approval.scheduled_for.map(format::utc).unwrap_or_default();
        format!("approved {id}: {tool} {} ({time})", format::due(approval))
    } else if matches!(approval.state, State::RejectedByUser | State::CancelledBySystem) {
        format!("{state} {id}: {tool} does not run")
    } else {
        format!("{state} {id}: {tool}")
    };
    term::sanitize(&text)
}

/// Prints why a decision was not accepted.
pub(in crate::commands) fn print_conflict(response: &ApiResponse, json: bool) -> anyhow::Result<Outcome> {
    if json {
        term::print(&term::pretty_json(&response.text));
    }
    term::eprint(&format!("error: {}", term::sanitize(&response.error_message()?)));
    Ok(Outcome::Failure)
}
