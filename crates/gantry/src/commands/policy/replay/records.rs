//! The recorded calls, and what the policies made of each when it was made.

use crate::cli::Replay;
use crate::client::{ApiClient, query};
use gantry_core::State;
use gantry_server::model::{CallRecord, List, RecordedError};

/// Calls of one page.
const PAGE: &str = "1000";

/// What the policies of then made of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RecordedOutcome {
    /// It ran, or was about to.
    Ran,
    /// It needed an approval, and got none.
    Held,
    /// It needed an approval, and got one.
    Approved,
    /// A policy refused it.
    Denied,
}

impl RecordedOutcome {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Ran => "ran",
            Self::Held => "held",
            Self::Approved => "approved",
            Self::Denied => "denied",
        }
    }

    /// `None` for a call that was refused before policies decided.
    pub(super) fn of(call: &CallRecord) -> Option<Self> {
        if call.decision.is_some() {
            return Some(Self::Approved);
        }
        let code = call.error.as_ref().map_or("", |error| &error.code);
        match call.state {
            State::PendingApproval
            | State::ApprovedReady
            | State::RejectedByUser
            | State::RejectedByTimeout => Some(Self::Held),
            State::Refused if code == "APPROVAL_REQUIRED" => Some(Self::Held),
            State::Refused if call.error.as_ref().is_some_and(is_policy) => Some(Self::Denied),
            // Policies did not decide about it, or it was canceled before.
            State::Refused | State::CancelledBySystem => None,
            State::ScheduledForExecution
            | State::Executing
            | State::CompletedSuccess
            | State::CompletedFailure
            | State::OutcomeUnknown => Some(Self::Ran),
        }
    }
}

/// Whether a policy refused the call. Tools refuse with the same code, so the message decides.
fn is_policy(error: &RecordedError) -> bool {
    let message = error.message.as_deref().unwrap_or_default();
    error.code == "PERMISSION_DENIED"
        && (message.starts_with("denied by policy ") || message.contains(" could not be judged, "))
}

/// Hands over the recorded calls that are asked for, newest first.
pub(super) async fn fetch_records(
    client: &ApiClient,
    args: &Replay,
    mut see: impl FnMut(CallRecord),
) -> anyhow::Result<()> {
    let mut cursor: Option<String> = None;
    loop {
        let query = query(&[
            ("project", args.project.name()),
            ("since", args.since.as_deref()),
            ("until", args.until.as_deref()),
            ("cursor", cursor.as_deref()),
            ("limit", Some(PAGE)),
        ]);
        let page: List<CallRecord> = client.get(&format!("/api/v1/audit{query}")).await?;
        page.items.into_iter().for_each(&mut see);
        if page.next.is_none() {
            return Ok(());
        }
        cursor = page.next;
    }
}
