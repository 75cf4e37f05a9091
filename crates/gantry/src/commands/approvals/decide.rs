//! `gantry approvals approve`, `deny` and `cancel`.

use super::format;
use super::terminal::Input;
use super::wait::{WaitResult, wait_for_call};
use crate::cli::Approve;
use crate::client::{ApiClient, ApiResponse, CommandContext};
use crate::commands::arguments;
use crate::exit::{Outcome, UsageError};
use crate::term;
use gantry_core::id::ApprovalId;
use gantry_core::{State, raw};
use gantry_server::model::{Approval, Decision};
use http::{Method, StatusCode};

/// Sends a decision. The inner error is an answer by which nothing was decided: the decision came too late, the user may
/// not make it, or it cannot be carried out, for example because of its arguments.
pub(super) async fn decide(
    client: &ApiClient,
    id: impl ToString,
    decision: &Decision,
) -> anyhow::Result<Result<Approval, ApiResponse>> {
    let path = format!("{}/decision", super::path(id));
    let response = client.send(Method::POST, &path, serde_json::to_string(decision)?).await?;
    if is_conflict(response.status) || response.status == StatusCode::BAD_REQUEST {
        return Ok(Err(response));
    }
    response.into_result().map(Ok)
}

fn is_conflict(status: StatusCode) -> bool {
    matches!(status, StatusCode::FORBIDDEN | StatusCode::CONFLICT | StatusCode::GONE)
}

/// Fails if the approved call would run in this process and the user does not want to wait for it.
pub(super) fn check(context: &CommandContext, wanted: &Approve) -> anyhow::Result<()> {
    if wanted.no_wait && context.running_server()?.is_none() {
        let message = "no Gantry runs on this data folder, so the call runs in this process, which has to wait for it; \
                       leave --no-wait out, or start gantry serve first";
        return Err(UsageError(message.into()).into());
    }
    Ok(())
}

pub(super) async fn approve(client: &ApiClient, wanted: Approve) -> anyhow::Result<Outcome> {
    let modified_args = wanted.args.as_deref().map(arguments::read_object).transpose()?;
    let (scope, waits) = (wanted.scope(), wanted.wait || !client.is_remote());
    let decision = Decision { approved: true, modified_args, reason: wanted.reason, scope };
    match decide(client, &wanted.id, &decision).await? {
        Ok(approval) if waits => wait(client, &approval).await,
        decided => print_result(client, decided),
    }
}

pub(super) async fn deny(client: &ApiClient, id: &str, reason: Option<String>) -> anyhow::Result<Outcome> {
    let decision = Decision { reason, ..Decision::default() };
    print_result(client, decide(client, id, &decision).await?)
}

pub(super) async fn cancel(client: &ApiClient, id: &str) -> anyhow::Result<Outcome> {
    let path = format!("{}/cancel", super::path(id));
    let response = client.send(Method::POST, &path, String::new()).await?;
    if is_conflict(response.status) {
        return print_result(client, Err(response));
    }
    print_result(client, Ok(response.into_result()?))
}

/// Waits until an approved call has ended, and prints its result.
async fn wait(client: &ApiClient, approval: &Approval) -> anyhow::Result<Outcome> {
    if approval.state == State::ScheduledForExecution && !client.is_remote() {
        term::eprint("No Gantry runs on this data folder. The call runs if gantry serve runs at that time.");
        return Ok(print_decided(client, approval));
    }
    term::eprint(&format!("{}. Ctrl-C stops waiting.", summary(approval)));
    let result = match wait_for_call(client, approval, false, &mut Input::new()?).await? {
        WaitResult::Over(result) => result,
        WaitResult::NeedsApproval => {
            let again = super::pending_request(client, approval).await?;
            let id = again.map_or_else(|| "a new request".to_owned(), |again| again.id.to_string());
            term::eprint(&format!(
                "Nothing was run: what you approved has changed since it was requested. It needs another approval as \
                 {id}; see gantry approvals show {id}"
            ));
            return Ok(Outcome::Failure);
        }
        WaitResult::Stopped => {
            print_still_running(client, approval.id);
            return Ok(Outcome::Failure);
        }
    };
    if client.json {
        let approval = serde_json::to_string(&super::get(client, approval.id).await?)?;
        term::print(&term::pretty_json(&raw::with(&approval, "reply", result.text.trim())));
        return Ok(Outcome::of(result.ok));
    }
    if result.ok {
        let (tool, ms) = (term::sanitize(&approval.tool), result.latency_ms);
        term::eprint(&format!("done: {tool} succeeded after {ms} ms"));
    }
    Ok(result.print(false))
}

/// Says what becomes of a call that the user no longer waits for.
pub(in crate::commands) fn print_still_running(client: &ApiClient, id: ApprovalId) {
    let still = if client.is_remote() { "It goes on in the running Gantry" } else { "It is cut off" };
    term::eprint(&format!("{still}; gantry approvals show {id} shows its state."));
}

fn print_result(client: &ApiClient, decided: Result<Approval, ApiResponse>) -> anyhow::Result<Outcome> {
    match decided {
        Ok(approval) => Ok(print_decided(client, &approval)),
        Err(response) if response.status == StatusCode::BAD_REQUEST => Err(response.into_error()),
        Err(response) => {
            if client.json {
                term::print(&term::pretty_json(&response.text));
            }
            print_refused(&response)?;
            Ok(Outcome::Failure)
        }
    }
}

/// Prints a request that was just decided.
fn print_decided(client: &ApiClient, approval: &Approval) -> Outcome {
    term::print_value(approval, client.json, |approval| vec![summary(approval)]);
    Outcome::Success
}

/// Prints why a decision was not accepted.
pub(super) fn print_refused(response: &ApiResponse) -> anyhow::Result<()> {
    term::eprint(&format!("error: {}", term::sanitize(&response.error_message()?)));
    Ok(())
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
