//! Approvals as plain values: a call that waits for a person or for its time, and what was decided about it.

use crate::row::{CallHead, IdempotencyKey, State};
use gantry_core::digest::Digest;
use gantry_core::id::{ApprovalId, CallId, GrantId, NodeId, SessionId};
use gantry_core::{Priority, Role};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// For how long a yes holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// For this call.
    #[default]
    Once,
    /// For calls of this tool until the session ends.
    Session,
    /// For calls of this tool until it is revoked or the tool changes.
    Always,
}

/// What somebody decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Yes.
    Approved,
    /// No.
    Denied,
}

/// A decision about an approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DecisionRow {
    /// Yes or no.
    pub verdict: Verdict,
    /// Who decided.
    pub by: Arc<str>,
    /// By which door: `cli`, `http`, `page`, `elicitation`, `webhook`.
    pub via: Arc<str>,
    /// When, in microseconds of Unix time.
    pub at_us: i64,
    /// Why, in words that the caller reads.
    pub reason: Option<Arc<str>>,
    /// The arguments that were approved instead, the text of an object. They are kept beside the rest.
    #[serde(skip)]
    pub modified_args: Option<Arc<str>>,
    /// What exactly was decided about: the binding of the call with the arguments that were approved.
    pub binding: Digest,
    /// For how long it holds.
    pub scope: Scope,
    /// The grant that it made, if it holds for longer than the call.
    pub grant: Option<GrantId>,
}

/// A decision that was turned away: whoever gave it may not decide, or came too late.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RefusedDecision {
    /// The approval.
    pub approval: ApprovalId,
    /// Who wanted to decide.
    pub by: Arc<str>,
    /// By which door.
    pub via: Arc<str>,
    /// Whether they wanted to say yes; unknown if they may not decide at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved: Option<bool>,
    /// Why it does not count.
    pub why: Arc<str>,
    /// When, in microseconds of Unix time.
    pub at_us: i64,
}

/// How much of an approval the webhook of its project has taken. Each step is sent after those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Announced {
    /// Not even that it waits for a person.
    Nothing,
    /// That it waits for a person.
    Request,
    /// That its call was approved.
    Decision,
    /// How it ended. Also: there is no webhook, or nothing to send to it.
    All,
}

impl Announced {
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
}

/// An approval about which a webhook has something to take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unsent {
    /// Its place in lists.
    pub seq: i64,
    /// The approval.
    pub id: ApprovalId,
    /// The process that holds it.
    pub node: NodeId,
}

/// A call that waits, waited, or ran after it had waited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalRow {
    /// Its place in lists; 0 before it is stored.
    pub seq: i64,
    /// The approval.
    pub id: ApprovalId,
    /// The call that is held. A call that is asked about again has several approvals, one after the other.
    pub call: CallId,
    /// The session of the call.
    pub session: SessionId,
    /// The call below which it was made.
    pub parent: Option<CallId>,
    /// The project.
    pub project: Arc<str>,
    /// Who called.
    pub principal: Arc<str>,
    /// The agent as which they acted.
    pub agent: Option<Arc<str>>,
    /// The displayed name of the tool.
    pub name: Arc<str>,
    /// Equal for calls that are the same request: of one caller, with one binding and one idempotency key.
    pub dedup_key: Digest,
    /// Where it stands.
    pub state: State,
    /// The process that holds it.
    pub node: NodeId,
    /// When it was held, in microseconds of Unix time.
    pub created_us: i64,
    /// When it expires (while it is pending), or runs (while it is scheduled). None means never.
    pub deadline_us: Option<i64>,
    /// When it ended.
    pub ended_us: Option<i64>,
    /// Whether a caller was given the outcome. A repetition of the request is a new call from then on.
    pub collected: bool,
    /// How much of it the webhook has taken.
    pub announced: Announced,
    /// How often its execution was tried.
    pub attempts: u32,
    /// What was decided.
    pub decision: Option<DecisionRow>,
    /// Why it ended as it did, where the state does not say it.
    pub message: Option<Arc<str>>,
    /// The approval that this one takes the place of, because what was approved had changed.
    pub supersedes: Option<ApprovalId>,
    /// The rest, which never changes.
    pub asked: Asked,
    /// What a list has left out because it is long. Who needs it reads the row by its id.
    pub omitted: Omitted,
}

/// The bytes of what a list has left out of a row; what is there is `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Omitted {
    /// Of the arguments, which are empty then.
    pub arguments: Option<usize>,
    /// Of the arguments that were approved instead, of which there are none then.
    pub modified_args: Option<usize>,
}

impl ApprovalRow {
    /// The same without any arguments, for those who only have to know that there is such a call.
    #[must_use]
    pub fn without_arguments(&self) -> Self {
        let mut row = self.clone();
        let arguments = std::mem::take(&mut row.asked.arguments);
        row.omitted.arguments = row.omitted.arguments.or(Some(arguments.len()));
        let modified = row.decision.as_mut().and_then(|decision| decision.modified_args.take());
        row.omitted.modified_args = row.omitted.modified_args.or(modified.map(|text| text.len()));
        row
    }

    /// How many bytes of arguments are here.
    #[must_use]
    pub fn argument_bytes(&self) -> usize {
        let modified = self.decision.as_ref().and_then(|decision| decision.modified_args.as_ref());
        self.asked.arguments.len() + modified.map_or(0, |text| text.len())
    }

    /// What the webhook is to be sent next: it will have taken this much then. A request that ended before the webhook took
    /// it is not sent at all. This is the rule of the column `unsent`.
    #[must_use]
    pub fn next_announcement(&self) -> Option<Announced> {
        let is_approved =
            self.decision.as_ref().is_some_and(|decision| decision.verdict == Verdict::Approved);
        match (self.announced, self.state) {
            (Announced::Nothing, State::PendingApproval) => Some(Announced::Request),
            (Announced::Nothing, _) | (Announced::Request, State::PendingApproval) => None,
            (Announced::Request, state) if is_approved || !state.is_over() => Some(Announced::Decision),
            (Announced::Request | Announced::Decision, state) => state.is_over().then_some(Announced::All),
            (Announced::All, _) => None,
        }
    }

    /// Whether nothing was left out.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.omitted == Omitted::default()
    }
}

/// What is asked, as it was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Asked {
    /// The role of the caller.
    pub role: Role,
    /// By which door the call came: `cli`, `http`, `mcp`.
    pub door: Arc<str>,
    /// The agents above the caller, the topmost first, and the caller's own last.
    pub agent_path: Vec<Arc<str>>,
    /// The id of the tool's provider.
    pub provider: Arc<str>,
    /// The tool's name at the provider.
    pub tool: Arc<str>,
    /// `read`, `write` or `destructive`.
    pub effect: Arc<str>,
    /// The fingerprint of the tool's definition.
    pub fingerprint: Digest,
    /// The arguments exactly as they were sent, the text of an object. A day after the end, secrets in them are masked.
    /// They are kept beside the rest.
    #[serde(skip)]
    pub arguments: Arc<str>,
    /// What the decision is bound to.
    pub binding: Digest,
    /// The revision of the rules that ask.
    pub policy: Digest,
    /// Why a person is asked, in words.
    pub reason: Arc<str>,
    /// The rules that ask.
    pub rules: Vec<Arc<str>>,
    /// Who may decide: somebody of every list.
    pub approvers: Vec<Vec<Arc<str>>>,
    /// What the call is estimated to cost.
    pub estimated_cost: u64,
    /// How long it waits after the yes, in milliseconds.
    pub delay_ms: u64,
    /// Whether it is rejected when nobody decides in time.
    pub auto_reject: bool,
    /// The idempotency key.
    pub idempotency_key: Option<String>,
    /// The time limit that the caller set, in milliseconds.
    pub timeout_ms: Option<u64>,
    /// How urgent it is.
    pub priority: Priority,
    /// The turn of the session in which it was made.
    pub turn: u32,
    /// Which provider it was exactly that had the tool, where that can be told.
    #[serde(default)]
    pub source: Option<Arc<str>>,
    /// The digest of the canonical arguments that were sent, if these are not those but a person's.
    #[serde(default)]
    pub sent: Option<Digest>,
    /// Whether the session is the caller's own, from its beginning to its end, so that a yes for the session says for
    /// how long it holds. One that all requests of a caller share never ends by itself.
    #[serde(default)]
    pub own_session: bool,
}

/// A call to be held.
#[derive(Debug, Clone)]
pub struct NewApproval {
    /// The call as the ledger is to have it.
    pub head: CallHead,
    /// The key under which a repetition is recognised.
    pub idempotency: Option<IdempotencyKey>,
    /// The approval; its state is `PendingApproval` or `ScheduledForExecution`.
    pub row: ApprovalRow,
}

/// How many calls may wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HoldLimits {
    /// Of one caller: a project, a principal and an agent.
    pub per_caller: u32,
    /// Of all.
    pub total: u32,
}

/// What became of a call that was to be held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeldAs {
    /// It is held, durably.
    Fresh(Box<ApprovalRow>),
    /// The same request waits already, runs, or has ended and nobody was given its outcome: this is it. Nothing was
    /// recorded for the new one.
    Joined(Box<ApprovalRow>),
}

/// A step of an approval.
#[derive(Debug, Clone)]
pub struct Settled {
    /// Its next state.
    pub to: State,
    /// The decision that brings it there, if one does.
    pub decision: Option<DecisionRow>,
    /// When it is to run, for `ScheduledForExecution`.
    pub deadline_us: Option<i64>,
    /// Why, where neither state nor decision says it.
    pub message: Option<Arc<str>>,
    /// When, in microseconds of Unix time.
    pub at_us: i64,
}

/// A held call whose turn to run has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ready {
    /// The approval.
    pub id: ApprovalId,
    /// Its place in their order.
    pub(crate) due_us: i64,
    pub(crate) seq: i64,
}

/// Which approvals to list; what is `None` does not restrict.
#[derive(Debug, Clone, Default)]
pub struct ApprovalFilter {
    /// In this state.
    pub state: Option<State>,
    /// Of these projects.
    pub projects: Option<Vec<Arc<str>>>,
    /// Of this caller.
    pub principal: Option<Arc<str>>,
    /// Of the tool with this displayed name.
    pub name: Option<Arc<str>>,
    /// Of this session.
    pub session: Option<SessionId>,
    /// Of this call.
    pub call: Option<CallId>,
    /// After the page that gave this as `next`.
    pub cursor: Option<i64>,
    /// At most so many, up to 1000; 0 means 50.
    pub limit: u32,
}
