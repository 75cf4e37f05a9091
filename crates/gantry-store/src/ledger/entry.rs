//! Calls as the ledger has them: row types, and the JSON body of an entry.
//!
//! An entry is of one of these kinds:
//! - `held`: a call waits for a person or for its time;
//! - `decision`: a call that waits was decided about, expired or was withdrawn;
//! - `refusal`: a decision about a call was refused, and its state is as before;
//! - `intent`: a call is about to have an effect;
//! - `whole`: a call without a durable intent, recorded after it ended;
//! - `outcome`: a call ended;
//! - `recovered`: the process of a call ended first.
//!
//! A body holds the fields of the row types that have no column of their own. Absent fields are left out, so that the usual
//! entry stays small, and unknown fields are ignored when reading: a later version may add some.
//!
//! Texts that repeat from call to call are `Arc<str>` and words of closed sets are `Cow<'static, str>`, so that recording a
//! call copies pointers.

use crate::approvals::{DecisionRow, RefusedDecision, Transition};
use crate::sessions::SessionKey;
use gantry_core::digest::Digest;
use gantry_core::id::{ApprovalId, CallId, ProcessId, SessionId};
use gantry_core::limits::RECORDED_ARGUMENT_BYTES;
use gantry_core::truncate::truncate;
use gantry_core::{State, json, redact};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::sync::Arc;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CalledTool {
    pub provider: Arc<str>,
    /// Its name at the provider.
    pub tool: Arc<str>,
    #[serde(skip)]
    pub name: Arc<str>,
    pub kind: Cow<'static, str>,
    pub namespace: Arc<str>,
    /// `read`, `write` or `destructive`.
    pub effect: Cow<'static, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<Digest>,
}

/// A call as it is known before it runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallHead {
    #[serde(skip, default = "no_call")]
    pub id: CallId,
    #[serde(skip, default = "no_session")]
    pub session: SessionId,
    /// The call below which it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<CallId>,
    pub turn: u32,
    #[serde(flatten)]
    pub caller: SessionKey,
    #[serde(flatten)]
    pub tool: CalledTool,
    /// The digest of its canonical arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments_digest: Option<Digest>,
    /// Its arguments, redacted and cut.
    pub arguments: Arc<str>,
    /// The decision under which it runs, such as `approved by person`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<String>,
    /// When it began, in microseconds of Unix time.
    #[serde(skip)]
    pub started_us: i64,
}

/// A caller's promise that two requests with this key are one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdempotencyKey {
    /// The key, unique per project and principal.
    pub key: String,
    /// The digest of the arguments it was first used with.
    pub arguments: Digest,
}

/// A call that is about to have an effect.
#[derive(Debug, Clone)]
pub struct Intent {
    pub head: CallHead,
    /// The key under which a repetition is recognised.
    pub idempotency: Option<IdempotencyKey>,
    /// The approval under which it runs: it must be `ApprovedReady`, or `ScheduledForExecution` and due by the caller's
    /// clock, and is `Executing` from then on. So it is used once.
    pub approval: Option<ApprovalId>,
    /// The binding of the decision that the call was resumed with. If the approval has another one by now, the call does
    /// not begin.
    pub decided: Option<Digest>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Outcome {
    /// Its state from now on; never `Executing`.
    #[serde(skip, default = "state_of_column")]
    pub state: State,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Cow<'static, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Whether it had its effect: `none`, `possible` or `done`.
    pub effect_state: Cow<'static, str>,
    pub latency_us: u64,
    /// Characters of the request.
    pub characters_in: u64,
    /// Characters of the reply.
    pub characters_out: u64,
    /// Its cost, in millionths of the currency.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cost_micros: u64,
    /// When it ended, in microseconds of Unix time.
    pub finished_us: i64,
    /// How often its execution was tried; 0 and 1 are the usual.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attempts: u32,
    /// Whether the reply came from the cache.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cached: bool,
    /// The reply, given only for calls that may be asked for it later.
    #[serde(skip)]
    pub result: Option<String>,
}

impl Outcome {
    /// The outcome of a call that Gantry ended, with nothing measured.
    pub(crate) fn unmeasured(state: State, code: &'static str, message: String, finished_us: i64) -> Self {
        Self {
            state,
            code: Some(Cow::Borrowed(code)),
            message: Some(message),
            effect_state: Cow::Borrowed("none"),
            latency_us: 0,
            characters_in: 0,
            characters_out: 0,
            cost_micros: 0,
            finished_us,
            attempts: 0,
            cached: false,
            result: None,
        }
    }
}

/// A call that is recorded once, after it ended.
#[derive(Debug, Clone)]
pub struct WholeCall {
    pub head: CallHead,
    pub outcome: Outcome,
}

#[derive(Debug)]
pub enum IntentOutcome {
    /// The intent is durable; the call may run.
    Recorded,
    /// The key has been used: this is the call that used it, and nothing was recorded.
    Duplicate(Box<CallRow>),
}

/// A call put together from its entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallRow {
    /// The process that made its newest entry.
    pub process: ProcessId,
    pub head: CallHead,
    /// The state of its newest entry.
    pub state: State,
    pub idempotency: Option<IdempotencyKey>,
    /// How it ended. Lists leave `result` out.
    pub outcome: Option<Outcome>,
    /// Decisions about it that were refused, the oldest first.
    pub refused: Vec<RefusedDecision>,
}

/// The body of a `held` or an `intent` (without an outcome) or of a `whole` (with one).
#[derive(Serialize, Deserialize)]
pub(crate) struct HeadBody<'a> {
    #[serde(flatten)]
    pub(crate) head: Cow<'a, CallHead>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) idempotency: Option<Cow<'a, IdempotencyKey>>,
    /// The approval that holds the call or lets it run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) approval: Option<ApprovalId>,
    /// The approval that `approval` takes the place of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) supersedes: Option<ApprovalId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) outcome: Option<Cow<'a, Outcome>>,
}

impl<'a> HeadBody<'a> {
    pub(crate) fn new(head: &'a CallHead, key: Option<&'a IdempotencyKey>) -> Self {
        let idempotency = key.map(Cow::Borrowed);
        Self { head: Cow::Borrowed(head), idempotency, approval: None, supersedes: None, outcome: None }
    }
}

/// The body of a `decision`: the decision of a person, or why there was none, and how the call ended if it did.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TransitionBody<'a> {
    approval: ApprovalId,
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<DecisionBody<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline_us: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<&'a Outcome>,
}

#[derive(Serialize)]
struct DecisionBody<'a> {
    #[serde(flatten)]
    decision: &'a DecisionRow,
    /// The arguments that were approved instead, masked and cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<String>,
}

impl<'a> TransitionBody<'a> {
    pub(crate) fn new(approval: ApprovalId, step: &'a Transition, outcome: Option<&'a Outcome>) -> Self {
        let decision = step.decision.as_ref().map(|decision| {
            let modified = decision.modified_args.as_deref();
            DecisionBody { decision, arguments: modified.map(|text| masked(text, RECORDED_ARGUMENT_BYTES)) }
        });
        let message = step.message.as_deref().map(|text| truncate(text, RECORDED_ARGUMENT_BYTES).into());
        Self { approval, decision, deadline_us: step.deadline_us, message, outcome }
    }
}

/// The part of a [`TransitionBody`] that is read again.
#[derive(Deserialize)]
pub(crate) struct EndBody {
    #[serde(default)]
    pub(crate) outcome: Option<Outcome>,
}

fn no_call() -> CallId {
    CallId::from_bytes([0; 16])
}

fn no_session() -> SessionId {
    SessionId::from_bytes([0; 16])
}

fn state_of_column() -> State {
    State::OutcomeUnknown
}

fn is_zero<N: Default + PartialEq>(number: &N) -> bool {
    *number == N::default()
}

/// The arguments without their secrets, at most `limit` bytes long.
pub(crate) fn masked(arguments: &str, limit: usize) -> String {
    match json::canonical(arguments) {
        Ok(arguments) => redact::redacted(&arguments, limit),
        // A text that cannot be parsed may hold anything.
        Err(_) => format!("{{\"arguments\":\"{}\"}}", redact::MASK),
    }
}
