//! Waits for a call that is held or runs.

use super::terminal::Input;
use crate::client::ApiClient;
use crate::commands::reply::CallResult;
use crate::term;
use anyhow::Context as _;
use gantry_core::State;
use gantry_core::id::ApprovalId;
use gantry_server::model::Approval;
use http::Method;
use std::time::Duration;
use tokio::time::Instant;

/// Seconds that one request waits at the server for a change.
pub(super) const LONG_POLL_SECONDS: u64 = 30;

/// The same where a new request for an approval ends the waiting, which the server does not report as a change.
const SHORT_POLL_SECONDS: u64 = 2;

/// The pause between two requests, in case the server answers at once.
pub(super) const POLL_PAUSE: Duration = Duration::from_millis(250);

/// Why waiting ended.
pub(in crate::commands) enum WaitResult {
    /// The call is over.
    Ended(Box<CallResult>),
    /// The call needs an approval again.
    NeedsApproval,
    /// The limit was reached.
    TimedOut,
    /// The user pressed Ctrl-C.
    Interrupted,
}

/// When to stop waiting before the call is over.
#[derive(Debug, Clone, Copy)]
pub(in crate::commands) struct WaitLimit {
    pub(in crate::commands) deadline: Option<Instant>,
    /// Whether to wait on while the call needs an approval, for another user to decide.
    pub(in crate::commands) while_pending: bool,
}

/// Waits until the call of a request is over or the limit is reached.
pub(in crate::commands) async fn wait_for_call(
    client: &ApiClient,
    approval: &Approval,
    limit: WaitLimit,
    input: &mut Input,
) -> anyhow::Result<WaitResult> {
    loop {
        let remaining = limit.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let longest = if limit.while_pending { LONG_POLL_SECONDS } else { SHORT_POLL_SECONDS };
        let seconds = remaining.map_or(longest, |time| time.as_secs().saturating_add(1).min(longest));
        let path = format!("/api/v1/calls/{}?wait={seconds}", approval.call_id);
        let response = tokio::select! {
            response = client.send(Method::GET, &path, String::new()) => response.with_context(|| cut_off(approval.id))?,
            () = input.interrupted() => {
                // The terminal has echoed ^C on this line.
                term::eprint("");
                return Ok(WaitResult::Interrupted);
            }
        };
        if !response.status.is_success() {
            return Err(response.into_error());
        }
        let result = CallResult::from_record(&response.text)?;
        match result.reply.state {
            Some(State::PendingApproval) if !limit.while_pending => return Ok(WaitResult::NeedsApproval),
            Some(state) if !state.is_over() => {}
            _ => return Ok(WaitResult::Ended(Box::new(result))),
        }
        if remaining.is_some_and(|time| time.is_zero()) {
            return Ok(WaitResult::TimedOut);
        }
        tokio::time::sleep(POLL_PAUSE).await;
    }
}

/// What to do when the connection to the server is lost.
fn cut_off(approval: ApprovalId) -> String {
    format!(
        "the connection was lost while waiting for the call. When Gantry runs again, `gantry approvals show {approval}` \
         shows the state of the call; look at it before you repeat the call"
    )
}
