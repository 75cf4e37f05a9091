//! Waits for a call that is held or runs.

use super::terminal::Input;
use crate::client::ApiClient;
use crate::commands::reply::CallResult;
use crate::term;
use anyhow::Context as _;
use gantry_core::State;
use gantry_server::model::Approval;
use http::Method;
use std::time::Duration;

/// Seconds that one request waits at the server for a change. That a call needs another approval is none, so they are few.
pub(super) const POLL_SECONDS: u64 = 2;

/// The pause between two requests, in case the server answers at once.
pub(super) const POLL_PAUSE: Duration = Duration::from_millis(250);

/// Why waiting ended.
pub(in crate::commands) enum WaitResult {
    Over(Box<CallResult>),
    /// The call needs an approval again.
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
