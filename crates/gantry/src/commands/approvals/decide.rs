//! `gantry approvals approve`, `deny` and `cancel`, and waiting for a call that is held or runs.

use super::format;
use super::terminal::Input;
use crate::cli::Approve;
use crate::client::{ApiClient, ApiResponse, CommandContext};
use crate::commands::arguments;
use crate::commands::reply::CallResult;
use crate::exit::{Outcome, UsageError};
use crate::term;
use anyhow::Context as _;
use gantry_core::id::ApprovalId;
use gantry_core::{State, raw};
use gantry_server::model::{Approval, Decision};
use http::{Method, StatusCode};
use std::time::Duration;

/// Sends a decision. The inner error is an answer by which nothing was decided: the decision came too late, the user may
/// not make it, or it cannot be carried out, for example because of its arguments.
pub(super) async fn decide(
    client: &ApiClient,
    id: impl ToString,
    decision: &Decision,
) -> anyhow::Result<Result<Approval, ApiResponse>> {
    let path = format!("{}/decision", super::path(&id));
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
    let modified_args = wanted.args.as_deref().map(arguments::read).transpose()?;
    if modified_args.as_ref().is_some_and(|arguments| !arguments.get().starts_with('{')) {
        return Err(UsageError("--args takes an object, such as '{\"path\": \"copy.txt\"}'".into()).into());
    }
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

fn print_decided(client: &ApiClient, approval: &Approval) -> Outcome {
    term::print_value(approval, client.json, |approval| vec![summary(approval)]);
    Outcome::Success
}

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

/// Seconds that one request waits at the server for a change. That a call needs another approval is none, so they are few.
pub(super) const POLL_SECONDS: u64 = 2;

/// The pause between two requests, in case the server answers at once.
pub(super) const POLL_PAUSE: Duration = Duration::from_millis(250);

pub(in crate::commands) enum WaitResult {
    Over(Box<CallResult>),
    NeedsApproval,
    /// The user pressed Ctrl-C, or the caller's limit was reached.
    Stopped,
}

/// Waits until the call of a request is over; with `while_pending` also while it needs an approval, for another user to
/// decide.
pub(in crate::commands) async fn wait_for_call(
    client: &ApiClient,
    approval: &Approval,
    while_pending: bool,
    input: &mut Input,
) -> anyhow::Result<WaitResult> {
    // What to do when the connection to the server is lost.
    let cut_off = || {
        format!(
            "the connection was lost while waiting for the call. When Gantry runs again, `gantry approvals show {id}` \
             shows the state of the call; look at it before you repeat the call",
            id = approval.id
        )
    };
    loop {
        let path = format!("/api/v1/calls/{}?wait={POLL_SECONDS}", approval.call_id);
        let response = tokio::select! {
            response = client.send(Method::GET, &path, String::new()) => response.with_context(cut_off)?,
            () = input.interrupted() => {
                // The terminal has echoed ^C on this line.
                term::eprint("");
                return Ok(WaitResult::Stopped);
            }
        };
        if !response.status.is_success() {
            return Err(response.into_error());
        }
        let result = CallResult::from_record(&response.text)?;
        match result.state {
            Some(State::PendingApproval) if !while_pending => return Ok(WaitResult::NeedsApproval),
            Some(state) if !state.is_over() => {}
            _ => return Ok(WaitResult::Over(Box::new(result))),
        }
        tokio::time::sleep(POLL_PAUSE).await;
    }
}
