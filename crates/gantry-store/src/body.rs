//! The JSON body of a ledger entry: everything about a call that nothing is filtered by.
//!
//! What has a column of its own is not repeated here, and fields that are absent are left out, so that the usual
//! entry stays small. Unknown fields are ignored when reading: a later version may add some.

use crate::approval::{Scope, Settled, Verdict};
use crate::error::Error;
use crate::row::{CallHead, CalledTool, IdempotencyKey, Outcome, SessionKey, State};
use gantry_core::digest::Digest;
use gantry_core::id::{ApprovalId, CallId, GrantId, SessionId};
use gantry_core::limits::RECORDED_ARGUMENT_BYTES;
use gantry_core::truncate::truncate;
use gantry_core::{json, redact};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::sync::Arc;

/// The body of a `held` or an `intent` (without an outcome) or of a `whole` (with one).
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HeadBody<'a> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parent: Option<CallId>,
    turn: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agent: Option<Cow<'a, str>>,
    door: Cow<'a, str>,
    provider: Cow<'a, str>,
    tool: Cow<'a, str>,
    kind: Cow<'a, str>,
    namespace: Cow<'a, str>,
    effect: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fingerprint: Option<Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    arguments_digest: Option<Digest>,
    arguments: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    decision: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    idempotency: Option<KeyBody<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    approval: Option<ApprovalId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    supersedes: Option<ApprovalId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    outcome: Option<OutcomeBody<'a>>,
}

/// The body of a `decision`: what a person decided, or why nobody did, and how the call ended if it did.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DecisionBody<'a> {
    approval: ApprovalId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    decision: Option<DecidedBody<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    deadline_us: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    outcome: Option<OutcomeBody<'a>>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct DecidedBody<'a> {
    verdict: Verdict,
    by: Cow<'a, str>,
    via: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<Cow<'a, str>>,
    /// The arguments that were approved instead, masked and cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    arguments: Option<Cow<'a, str>>,
    binding: Digest,
    scope: Scope,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    grant: Option<GrantId>,
}

/// The body of an `outcome` or of a `recovered`, and the end of a `whole`.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OutcomeBody<'a> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    code: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message: Option<Cow<'a, str>>,
    effect_state: Cow<'a, str>,
    latency_us: u64,
    characters_in: u64,
    characters_out: u64,
    cost_micros: u64,
    finished_us: i64,
    #[serde(default, skip_serializing_if = "is_zero")]
    attempts: u32,
    cached: bool,
}

#[derive(Serialize, Deserialize)]
struct KeyBody<'a> {
    key: Cow<'a, str>,
    arguments: Digest,
}

/// The columns that a head is put together with.
pub(crate) struct HeadColumns {
    pub(crate) id: CallId,
    pub(crate) session: SessionId,
    pub(crate) project: Arc<str>,
    pub(crate) principal: Arc<str>,
    pub(crate) name: Arc<str>,
    pub(crate) at: i64,
    pub(crate) state: State,
}

impl<'a> HeadBody<'a> {
    pub(crate) fn new(
        head: &'a CallHead,
        key: Option<&'a IdempotencyKey>,
        outcome: Option<&'a Outcome>,
    ) -> Self {
        Self {
            parent: head.parent,
            turn: head.turn,
            agent: head.caller.agent.as_deref().map(Cow::Borrowed),
            door: Cow::Borrowed(&head.caller.door),
            provider: Cow::Borrowed(&head.tool.provider),
            tool: Cow::Borrowed(&head.tool.tool),
            kind: Cow::Borrowed(&head.tool.kind),
            namespace: Cow::Borrowed(&head.tool.namespace),
            effect: Cow::Borrowed(&head.tool.effect),
            fingerprint: head.tool.fingerprint,
            arguments_digest: head.arguments_digest,
            arguments: Cow::Borrowed(&head.arguments),
            decision: head.decision.as_deref().map(Cow::Borrowed),
            idempotency: key.map(|key| KeyBody { key: Cow::Borrowed(&key.key), arguments: key.arguments }),
            approval: None,
            supersedes: None,
            outcome: outcome.map(OutcomeBody::new),
        }
    }

    /// Names the approval that holds the call or lets it run, and the one whose place that has taken.
    pub(crate) fn under(self, approval: ApprovalId, supersedes: Option<ApprovalId>) -> Self {
        Self { approval: Some(approval), supersedes, ..self }
    }

    /// The parts of a call row that this entry says.
    pub(crate) fn into_parts(
        self,
        columns: HeadColumns,
    ) -> (CallHead, Option<IdempotencyKey>, Option<Outcome>) {
        let outcome = self.outcome.map(|outcome| outcome.into_outcome(columns.state));
        let idempotency = self
            .idempotency
            .map(|key| IdempotencyKey { key: key.key.into_owned(), arguments: key.arguments });
        let head = CallHead {
            id: columns.id,
            session: columns.session,
            parent: self.parent,
            turn: self.turn,
            caller: SessionKey {
                project: columns.project,
                principal: columns.principal,
                agent: self.agent.map(Into::into),
                door: Cow::Owned(self.door.into_owned()),
            },
            tool: CalledTool {
                provider: self.provider.into(),
                tool: self.tool.into(),
                name: columns.name,
                kind: Cow::Owned(self.kind.into_owned()),
                namespace: self.namespace.into(),
                effect: Cow::Owned(self.effect.into_owned()),
                fingerprint: self.fingerprint,
            },
            arguments_digest: self.arguments_digest,
            arguments: self.arguments.into(),
            decision: self.decision.map(Cow::into_owned),
            started_us: columns.at,
        };
        (head, idempotency, outcome)
    }
}

impl<'a> DecisionBody<'a> {
    pub(crate) fn new(approval: ApprovalId, step: &'a Settled, outcome: Option<&'a Outcome>) -> Self {
        let decided = step.decision.as_ref().map(|decision| DecidedBody {
            verdict: decision.verdict,
            by: Cow::Borrowed(&decision.by),
            via: Cow::Borrowed(&decision.via),
            reason: decision.reason.as_deref().map(Cow::Borrowed),
            arguments: decision
                .modified_args
                .as_deref()
                .map(|arguments| Cow::Owned(masked(arguments, RECORDED_ARGUMENT_BYTES))),
            binding: decision.binding,
            scope: decision.scope,
            grant: decision.grant,
        });
        Self {
            approval,
            decision: decided,
            deadline_us: step.deadline_us,
            message: step.message.as_deref().map(|text| truncate(text, RECORDED_ARGUMENT_BYTES).into()),
            outcome: outcome.map(OutcomeBody::new),
        }
    }

    pub(crate) fn into_outcome(self, state: State) -> Option<Outcome> {
        self.outcome.map(|outcome| outcome.into_outcome(state))
    }
}

impl<'a> OutcomeBody<'a> {
    pub(crate) fn new(outcome: &'a Outcome) -> Self {
        Self {
            code: outcome.code.as_deref().map(Cow::Borrowed),
            message: outcome.message.as_deref().map(Cow::Borrowed),
            effect_state: Cow::Borrowed(&outcome.effect_state),
            latency_us: outcome.latency_us,
            characters_in: outcome.characters_in,
            characters_out: outcome.characters_out,
            cost_micros: outcome.cost_micros,
            finished_us: outcome.finished_us,
            attempts: outcome.attempts,
            cached: outcome.cached,
        }
    }

    pub(crate) fn into_outcome(self, state: State) -> Outcome {
        Outcome {
            state,
            code: self.code.map(|code| Cow::Owned(code.into_owned())),
            message: self.message.map(Cow::into_owned),
            effect_state: Cow::Owned(self.effect_state.into_owned()),
            latency_us: self.latency_us,
            characters_in: self.characters_in,
            characters_out: self.characters_out,
            cost_micros: self.cost_micros,
            finished_us: self.finished_us,
            attempts: self.attempts,
            cached: self.cached,
            result: None,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The arguments without their secrets, at most `limit` bytes long.
pub(crate) fn masked(arguments: &str, limit: usize) -> String {
    match json::canonical(arguments) {
        Ok(arguments) => redact::redacted(&arguments, limit),
        // What cannot be read may hold anything.
        Err(_) => format!("{{\"arguments\":\"{}\"}}", redact::MASK),
    }
}

/// The text of a body.
pub(crate) fn encode(body: &impl Serialize) -> Result<String, Error> {
    serde_json::to_string(body).map_err(Error::unexpected)
}

/// The body of a text that was read from the entry at `seq`.
pub(crate) fn decode<'a, T: Deserialize<'a>>(text: &'a str, seq: i64) -> Result<T, Error> {
    serde_json::from_str(text).map_err(|error| Error::corrupt(format!("ledger entry {seq}: {error}")))
}
