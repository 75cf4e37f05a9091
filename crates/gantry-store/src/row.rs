//! The rows of the store as plain values: calls, outcomes, sessions, filters and pages.
//!
//! Texts that repeat from call to call are `Arc<str>` and words of closed sets are `Cow<'static, str>`, so that
//! recording a call copies pointers and not letters.

use crate::approval::{ApprovalRow, RefusedDecision};
pub use gantry_core::State;
use gantry_core::digest::Digest;
use gantry_core::id::{ApprovalId, CallId, NodeId, SessionId};
use std::borrow::Cow;
use std::sync::Arc;

/// Who acts, for whom and by which door; what makes two connections one session.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SessionKey {
    /// The project.
    pub project: Arc<str>,
    /// The authenticated identity.
    pub principal: Arc<str>,
    /// The agent as which it acts.
    pub agent: Option<Arc<str>>,
    /// The way by which it came: `cli`, `http`, `mcp`.
    pub door: Cow<'static, str>,
}

/// The tool that a call names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CalledTool {
    /// The id of its provider.
    pub provider: Arc<str>,
    /// Its name at the provider.
    pub tool: Arc<str>,
    /// Its displayed name.
    pub name: Arc<str>,
    /// The kind of its provider.
    pub kind: Cow<'static, str>,
    /// The namespace of its provider.
    pub namespace: Arc<str>,
    /// `read`, `write` or `destructive`.
    pub effect: Cow<'static, str>,
    /// The fingerprint of its definition.
    pub fingerprint: Option<Digest>,
}

/// What is known of a call before it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallHead {
    /// The call.
    pub id: CallId,
    /// The session it belongs to.
    pub session: SessionId,
    /// The call below which it was made.
    pub parent: Option<CallId>,
    /// The turn of the session in which it was made.
    pub turn: u32,
    /// Who makes it.
    pub caller: SessionKey,
    /// What it names.
    pub tool: CalledTool,
    /// The digest of its canonical arguments.
    pub arguments_digest: Option<Digest>,
    /// Its arguments, redacted and cut.
    pub arguments: Arc<str>,
    /// The decision under which it runs, such as `approved by person`.
    pub decision: Option<String>,
    /// When it began, in microseconds of Unix time.
    pub started_us: i64,
}

/// A caller's promise that two requests with this key are one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// The key, unique per project and principal.
    pub key: String,
    /// The digest of the arguments it was first used with.
    pub arguments: Digest,
}

/// A call that is about to have an effect.
#[derive(Debug, Clone)]
pub struct Intent {
    /// The call.
    pub head: CallHead,
    /// The key under which a repetition is recognised.
    pub idempotency: Option<IdempotencyKey>,
    /// The approval under which it runs: it must be `ApprovedReady`, or `ScheduledForExecution` and due by the caller's
    /// clock, and is `Executing` from then on. So it is used once.
    pub approval: Option<ApprovalId>,
    /// The binding of the decision that is redeemed with it. If the approval has another one by now, the call does not
    /// begin.
    pub decided: Option<Digest>,
}

/// How a call ended, or for what it waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Its state from now on; never `Executing`.
    pub state: State,
    /// The error code of a failure or refusal.
    pub code: Option<Cow<'static, str>>,
    /// The error message of a failure or refusal.
    pub message: Option<String>,
    /// Whether it had its effect: `none`, `possible` or `done`.
    pub effect_state: Cow<'static, str>,
    /// How long it took, in microseconds.
    pub latency_us: u64,
    /// Characters of the request.
    pub characters_in: u64,
    /// Characters of the reply.
    pub characters_out: u64,
    /// Its cost, in millionths of the currency.
    pub cost_micros: u64,
    /// When it ended, in microseconds of Unix time.
    pub finished_us: i64,
    /// How often its execution was tried; 0 and 1 are the usual.
    pub attempts: u32,
    /// Whether the reply came from the cache.
    pub cached: bool,
    /// The reply, given only for calls that may be asked for it later.
    pub result: Option<String>,
}

/// A call that is recorded once, after it ended.
#[derive(Debug, Clone)]
pub struct WholeCall {
    /// The call.
    pub head: CallHead,
    /// How it ended.
    pub outcome: Outcome,
}

/// The answer to an intent.
#[derive(Debug)]
pub enum Intended {
    /// The intent is durable; the call may run.
    Fresh,
    /// The key has been used: this is the call that used it, and nothing was recorded.
    Repeated(Box<CallRow>),
}

/// A call as the ledger knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallRow {
    /// The place of its first entry in the ledger; the cursor of lists.
    pub seq: i64,
    /// The process that made its newest entry.
    pub node: NodeId,
    /// What was known before it ran.
    pub head: CallHead,
    /// The state of its newest entry.
    pub state: State,
    /// The key it was made with.
    pub idempotency: Option<IdempotencyKey>,
    /// How it ended. Lists leave `result` out.
    pub outcome: Option<Outcome>,
    /// Decisions about it that were turned away, the oldest first.
    pub refused: Vec<RefusedDecision>,
}

/// One run of an agent, or one connected client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    /// The session.
    pub id: SessionId,
    /// Whose it is.
    pub key: SessionKey,
    /// The call that started it, for the session of a sub-agent.
    pub parent: Option<CallId>,
    /// When it began, in microseconds of Unix time.
    pub started_us: i64,
    /// When it was last used.
    pub last_us: i64,
    /// When it ended.
    pub ended_us: Option<i64>,
}

/// Sums over the calls of one session, without those of the sessions below it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Calls that ended or whose outcome is unknown.
    pub calls: u64,
    /// Those of them that did not end well: failed, refused or unknown.
    pub failed: u64,
    /// Those of them that were not run.
    pub refused: u64,
    /// Those of them of which nobody knows whether they had their effect.
    pub unknown: u64,
    /// Time, in microseconds.
    pub latency_us: u64,
    /// Characters of the requests.
    pub characters_in: u64,
    /// Characters of the replies.
    pub characters_out: u64,
    /// Cost, in millionths of the currency.
    pub cost_micros: u64,
}

/// A session and its sums.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSummary {
    /// Its place in lists.
    pub seq: i64,
    /// The session.
    pub session: SessionRow,
    /// The sums.
    pub totals: Totals,
}

/// Which calls to list; what is `None` does not restrict.
#[derive(Debug, Clone, Default)]
pub struct CallFilter {
    /// Of this project.
    pub project: Option<Arc<str>>,
    /// Of this identity.
    pub principal: Option<Arc<str>>,
    /// Of this session.
    pub session: Option<SessionId>,
    /// Of the tool with this displayed name.
    pub name: Option<Arc<str>>,
    /// In this state now.
    pub state: Option<State>,
    /// Begun at or after this time.
    pub since_us: Option<i64>,
    /// Begun before this time.
    pub until_us: Option<i64>,
    /// After the page that gave this as `next`.
    pub cursor: Option<i64>,
    /// At most so many, up to 1000; 0 means 50.
    pub limit: u32,
}

/// Which sessions to list; what is `None` does not restrict.
#[derive(Debug, Clone, Default)]
pub struct SessionFilter {
    /// Of this project.
    pub project: Option<Arc<str>>,
    /// Of this identity.
    pub principal: Option<Arc<str>>,
    /// Of this agent.
    pub agent: Option<Arc<str>>,
    /// Started by this call.
    pub parent: Option<CallId>,
    /// Started by a call of this session.
    pub below: Option<SessionId>,
    /// After the page that gave this as `next`.
    pub cursor: Option<i64>,
    /// At most so many, up to 1000; 0 means 50.
    pub limit: u32,
}

/// A part of a list.
#[derive(Debug, Clone)]
pub struct Page<T> {
    /// The rows.
    pub items: Vec<T>,
    /// What to give as the cursor to get the rows after these; `None` at the end.
    pub next: Option<i64>,
}

/// What was found when the store was opened.
#[derive(Debug)]
pub struct Recovery {
    /// Calls that were running in processes that have died; their outcome is unknown.
    pub unknown: Vec<CallRow>,
    /// Approvals that nobody had decided, of calls below one that had been running in a process that has died; they
    /// are cancelled.
    pub orphaned: Vec<ApprovalRow>,
    /// How many processes had died, or had shut down while calls were running.
    pub dead_nodes: usize,
}

/// The result of walking the hash chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verification {
    /// Entries that fit the chain.
    pub entries: u64,
    /// The first place where the chain breaks.
    pub bad: Option<BadEntry>,
}

/// A place where the chain breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadEntry {
    /// The place in the ledger.
    pub seq: i64,
    /// What is wrong there.
    pub what: &'static str,
}

/// Counters of the writer since the store was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stats {
    /// Committed groups.
    pub commits: u64,
    /// Ledger entries in them.
    pub entries: u64,
    /// Records that could not be written even at the second try.
    pub lost: u64,
    /// Messages that wait for the writer.
    pub queue_depth: usize,
}
