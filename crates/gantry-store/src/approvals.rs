//! Approvals: calls that wait for a person or for their time, and the decisions about them.

mod queries;
mod transitions;

#[cfg(test)]
pub(crate) use queries::{APPROVALS, query};
pub(crate) use queries::{mask, newest_of, orphans, prune};

#[cfg(test)]
pub(crate) const ALL_STATEMENTS: [&[crate::sql::Statement]; 2] =
    [queries::STATEMENTS, transitions::STATEMENTS];

use crate::ledger::{CallHead, IdempotencyKey};
use crate::sql::record;
use gantry_core::approval::{Remember, Scope};
use gantry_core::digest::Digest;
use gantry_core::id::{ApprovalId, CallId, GrantId, ProcessId, SessionId};
use gantry_core::{Priority, Role, State};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Approved,
    Denied,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DecisionRow {
    pub verdict: Verdict,
    pub by: Arc<str>,
    /// By which entry point: `cli`, `http`, `page`, `elicitation`, `webhook`.
    pub via: Arc<str>,
    pub at_us: i64,
    /// Why, for the caller to read.
    pub reason: Option<Arc<str>>,
    /// The arguments that were approved instead, the text of an object; a column of its own.
    #[serde(skip)]
    pub modified_args: Option<Arc<str>>,
    /// The binding of the call with the arguments that were approved.
    pub binding: Digest,
    pub scope: Scope,
    /// The grant that it made, if it holds for longer than the call.
    pub grant: Option<GrantId>,
}

/// A decision that was refused: its sender may not decide, or came too late.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RefusedDecision {
    pub approval: ApprovalId,
    pub by: Arc<str>,
    /// By which entry point.
    pub via: Arc<str>,
    /// Whether they wanted to approve; unknown if they may not decide at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved: Option<bool>,
    /// Why it does not count.
    pub why: Arc<str>,
    pub at_us: i64,
}

/// How many messages about an approval the webhook of its project has taken. Each is sent after those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WebhookSent {
    Nothing,
    /// That the call waits for a person.
    Request,
    /// That the call was approved.
    Decision,
    /// How the call ended. Also: there is no webhook, or nothing to send to it.
    All,
}

impl WebhookSent {
    pub(crate) fn as_number(self) -> i64 {
        self as i64
    }

    pub(crate) fn from_number(number: i64) -> Self {
        match number {
            0 => Self::Nothing,
            1 => Self::Request,
            2 => Self::Decision,
            _ => Self::All,
        }
    }

    /// Whether there is a message to send in that state. A request that ended before the webhook took it is not sent.
    fn is_unsent(self, state: State) -> bool {
        match self {
            Self::Nothing => state == State::PendingApproval,
            Self::Request => state != State::PendingApproval,
            Self::Decision => state.is_over(),
            Self::All => false,
        }
    }
}

/// An approval about which a webhook has a message to take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unsent {
    pub id: ApprovalId,
    pub process: ProcessId,
}

/// A call that waits, waited, or ran after it had waited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalRow {
    pub id: ApprovalId,
    /// The call that is held. A call that is asked about again has several approvals, one after the other.
    pub call: CallId,
    /// The step of the call's entry that holds it, or in rows of an older layout the number of the approval within its call.
    /// The newest approval of a call has the largest, and only this order is used. 0 before it is stored.
    pub step: i64,
    pub session: SessionId,
    /// The call below which it was made.
    pub parent: Option<CallId>,
    pub project: Arc<str>,
    pub principal: Arc<str>,
    pub agent: Option<Arc<str>>,
    pub name: Arc<str>,
    /// Equal for calls that are the same request: of one caller, with one binding and one idempotency key.
    pub request_key: Digest,
    pub state: State,
    pub process: ProcessId,
    /// When it was held, in microseconds of Unix time.
    pub created_us: i64,
    /// When it expires (while it is pending), or runs (while it is scheduled). None means never.
    pub deadline_us: Option<i64>,
    pub ended_us: Option<i64>,
    /// Whether a caller was given the outcome. A repetition of the request is a new call from then on.
    pub delivered: bool,
    pub webhook_sent: WebhookSent,
    /// How often its execution was tried.
    pub attempts: u32,
    pub decision: Option<DecisionRow>,
    /// Why it ended as it did, where the state does not say it.
    pub message: Option<Arc<str>>,
    /// The approval that this one takes the place of, because the call that was approved had changed.
    pub supersedes: Option<ApprovalId>,
    /// The rest, which never changes.
    pub details: ApprovalDetails,
    /// What a list has left out because it is long. Read the row by its id to get it.
    pub omitted: Omitted,
}

/// The bytes that a list has left out of a row; `None` for a part that is there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Omitted {
    /// Of the arguments, which are empty then.
    pub arguments: Option<usize>,
    /// Of the arguments that were approved instead, of which there are none then.
    pub modified_args: Option<usize>,
}

record!(ApprovalRow: id, call, step, session, parent, project, principal, agent, name, request_key, state, process,
    created_us, deadline_us, ended_us, delivered, webhook_sent, attempts, decision, message, supersedes, details;
    default omitted);

impl ApprovalRow {
    /// The same without any arguments, for readers that only have to know that there is such a call.
    #[must_use]
    pub fn without_arguments(&self) -> Self {
        let mut row = self.clone();
        let arguments = std::mem::take(&mut row.details.arguments);
        row.omitted.arguments = row.omitted.arguments.or(Some(arguments.len()));
        let modified = row.decision.as_mut().and_then(|decision| decision.modified_args.take());
        row.omitted.modified_args = row.omitted.modified_args.or(modified.map(|text| text.len()));
        row
    }

    pub fn argument_bytes(&self) -> usize {
        self.details.arguments.len() + self.modified_args().map_or(0, |text| text.len())
    }

    /// The next message to send to the webhook: it will have taken this much then.
    pub fn next_webhook_message(&self) -> Option<WebhookSent> {
        let is_approved =
            self.decision.as_ref().is_some_and(|decision| decision.verdict == Verdict::Approved);
        let next = match self.webhook_sent {
            WebhookSent::Nothing => WebhookSent::Request,
            WebhookSent::Request if is_approved || !self.state.is_over() => WebhookSent::Decision,
            WebhookSent::Request | WebhookSent::Decision | WebhookSent::All => WebhookSent::All,
        };
        self.webhook_sent.is_unsent(self.state).then_some(next)
    }

    fn modified_args(&self) -> Option<&Arc<str>> {
        self.decision.as_ref().and_then(|decision| decision.modified_args.as_ref())
    }

    /// When a worker has to look at it: at its deadline while it waits, at once when it was approved or is scheduled for
    /// no time at all.
    fn due_us(&self) -> Option<i64> {
        if self.state == State::PendingApproval {
            self.deadline_us
        } else if self.state == State::ScheduledForExecution {
            Some(self.deadline_us.unwrap_or(0))
        } else {
            (self.state == State::ApprovedReady).then_some(0)
        }
    }
}

/// The question to the approvers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalDetails {
    pub role: Role,
    /// The entry point of the call: `cli`, `http`, `mcp`.
    pub door: Arc<str>,
    /// The agents above the caller, the topmost first, and the caller's own last.
    pub agent_path: Vec<Arc<str>>,
    pub provider: Arc<str>,
    pub tool: Arc<str>,
    /// `read`, `write` or `destructive`.
    pub effect: Arc<str>,
    pub fingerprint: Digest,
    /// The arguments exactly as they were sent, the text of an object; a column of their own. A day after the end, secrets
    /// in them are masked.
    #[serde(skip)]
    pub arguments: Arc<str>,
    /// What the decision is bound to.
    pub binding: Digest,
    pub policy: Digest,
    pub reason: Arc<str>,
    pub rules: Vec<Arc<str>>,
    /// How far a yes may reach, by these rules.
    #[serde(default)]
    pub remember: Remember,
    /// Who may decide: a member of every list.
    pub approvers: Vec<Vec<Arc<str>>>,
    pub estimated_cost: u64,
    /// How long it waits after it was approved, in milliseconds.
    pub delay_ms: u64,
    /// Whether it is rejected when it is not decided in time.
    pub auto_reject: bool,
    pub idempotency_key: Option<String>,
    /// The time limit that the caller set, in milliseconds.
    pub timeout_ms: Option<u64>,
    pub priority: Priority,
    pub turn: u32,
    /// Which provider exactly had the tool, where that is known.
    #[serde(default)]
    pub source: Option<Arc<str>>,
    /// The digest of the canonical arguments that the caller sent, if these arguments are those of a person.
    #[serde(default)]
    pub sent: Option<Digest>,
    /// Whether the session is the caller's own, from its beginning to its end, so that an approval for the session says
    /// for how long it holds. A session that all requests of a caller share never ends by itself.
    #[serde(default)]
    pub own_session: bool,
}

#[derive(Debug, Clone)]
pub struct NewApproval {
    pub head: CallHead,
    /// The key under which a repetition is recognised.
    pub idempotency: Option<IdempotencyKey>,
    /// The approval; its state is `PendingApproval` or `ScheduledForExecution`.
    pub row: ApprovalRow,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HoldLimits {
    /// Of one caller: a project, a principal and an agent.
    pub per_caller: u32,
    pub total: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HoldOutcome {
    /// It is held, durably.
    Held(Box<ApprovalRow>),
    /// The same request waits already, runs, or has ended and its outcome was given to no caller: this is it. Nothing was
    /// recorded for the new one.
    Joined(Box<ApprovalRow>),
}

#[derive(Debug, Clone)]
pub struct Transition {
    pub to: State,
    /// The decision that brings it there, if one does.
    pub decision: Option<DecisionRow>,
    /// When it is to run, for `ScheduledForExecution`.
    pub deadline_us: Option<i64>,
    /// Why, where neither state nor decision says it.
    pub message: Option<Arc<str>>,
    pub at_us: i64,
}

/// A held call that may run now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ready {
    pub id: ApprovalId,
    due_us: i64,
}

/// Which approvals to list; a field that is `None` does not restrict.
#[derive(Debug, Clone, Default)]
pub struct ApprovalFilter {
    pub state: Option<State>,
    pub projects: Option<Vec<Arc<str>>>,
    pub principal: Option<Arc<str>>,
    pub name: Option<Arc<str>>,
    pub session: Option<SessionId>,
    pub call: Option<CallId>,
    /// After the page that gave this as `next`.
    pub cursor: Option<ApprovalId>,
    /// At most so many, up to 1000; 0 means 50.
    pub limit: u32,
}
