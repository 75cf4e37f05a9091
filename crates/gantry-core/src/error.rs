//! The errors of a call, divided by whether the effect can have happened.
//!
//! * [`Refusal`]: Gantry decided not to run the call. Nothing happened.
//! * [`CallFailure`]: it was tried and failed; [`CallFailure::effect`] says how far it may have got.
//! * [`CallError::Held`]: it waits for a person.
//!
//! This decides the HTTP status, the JSON-RPC response, the exit code and the message for a model.

use crate::id::ApprovalId;
use crate::state::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $name:ident = $text:literal),+ $(,)?) => {
        words! {
            /// The closed list of error codes, in the order of the reference page.
            pub enum ErrorCode {
                $($(#[doc = $doc])+ $name = $text),+
            }
        }

        impl ErrorCode {
            /// What the code means, for the reference page.
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$name => concat!($($doc),+)),+ }
            }
        }
    };
}

codes! {
    /// No tool of this name is available to the caller.
    ToolNotFound = "TOOL_NOT_FOUND",
    /// The arguments are not JSON, or do not fit the tool's schema; every failing field is named.
    InvalidArguments = "INVALID_ARGUMENTS",
    /// A path is malformed or leaves the workspace.
    InvalidPath = "INVALID_PATH",
    /// The file or directory does not exist.
    FileNotFound = "FILE_NOT_FOUND",
    /// A policy, a protected path or the operating system does not allow it.
    PermissionDenied = "PERMISSION_DENIED",
    /// The call waits: a person has to say yes first, or its time has not come. Nothing was run yet, unless the message says
    /// that the same call runs.
    ApprovalRequired = "APPROVAL_REQUIRED",
    /// A person said no. Nothing was run.
    RejectedByUser = "REJECTED_BY_USER",
    /// No approver decided in time. Nothing was run.
    RejectedByTimeout = "REJECTED_BY_TIMEOUT",
    /// Too many calls wait already. Nothing was run; try again later.
    QueueFull = "QUEUE_FULL",
    /// The call was cancelled.
    Canceled = "CANCELED",
    /// The approval has been decided already, or has ended; what was decided first stands.
    AlreadyDecided = "ALREADY_DECIDED",
    /// The time limit was reached.
    Timeout = "TIMEOUT",
    /// The tool ran and failed.
    ExecutionError = "EXECUTION_ERROR",
    /// The result does not fit the session's budget any more and was dropped.
    BudgetExceeded = "BUDGET_EXCEEDED",
    /// The provider is not reachable. Nothing was sent.
    UpstreamUnavailable = "UPSTREAM_UNAVAILABLE",
    /// It cannot be known whether the call took effect: Gantry or its connection died in between.
    OutcomeUnknown = "OUTCOME_UNKNOWN",
    /// The idempotency key was used for another call, or for one that still runs. Nothing was run.
    IdempotencyConflict = "IDEMPOTENCY_CONFLICT",
    /// There is no such call, run, project or address.
    NotFound = "NOT_FOUND",
    /// The tool is quarantined: its definition cannot be trusted or used.
    ToolQuarantined = "TOOL_QUARANTINED",
    /// Gantry itself failed; the log says more.
    InternalError = "INTERNAL_ERROR",
}

/// An error as every entry point shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Error")]
pub struct ToolError {
    pub code: ErrorCode,
    /// What happened and what to do, for people and models.
    pub message: String,
    /// More for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// The provider's own response, for an entry point that speaks the provider's protocol.
    #[serde(skip)]
    pub upstream: Option<Box<Upstream>>,
}

/// A provider's own response about a failure, word for word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Upstream {
    /// A result that says that the tool failed: the text of a JSON object.
    Result(Arc<str>),
    /// The text of a JSON-RPC error object.
    Error(Arc<str>),
}

impl ToolError {
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), details: None, upstream: None }
    }

    #[must_use]
    pub fn with_details(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }

    #[must_use]
    pub fn with_upstream(mut self, upstream: Upstream) -> Self {
        self.upstream = Some(Box::new(upstream));
        self
    }

    /// The text that a conversation has in place of a result: `(tool failed: …)`.
    pub fn conversation(&self) -> String {
        if self.message.starts_with("(tool failed:") {
            return self.message.clone();
        }
        format!("(tool failed: {})", self.message)
    }

    /// The message for the log, without the wrapping of a conversation.
    pub fn logged(&self) -> &str {
        self.message
            .strip_prefix("(tool failed: ")
            .and_then(|rest| rest.strip_suffix(')'))
            .unwrap_or(&self.message)
    }
}

/// Gantry decided not to run a call. Nothing happened, so repeating it is safe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal(ToolError);

impl Refusal {
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self(ToolError::new(code, message))
    }

    pub fn error(&self) -> &ToolError {
        &self.0
    }
}

impl From<ToolError> for Refusal {
    fn from(error: ToolError) -> Self {
        Self(error)
    }
}

words! {
    /// How far a failed call may have got.
    pub enum EffectState {
        /// Nothing was changed.
        None = "none",
        /// It may have taken effect, in full or in part.
        Possible = "possible",
        /// It took effect; only its result was lost.
        Done = "done",
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallFailure {
    pub error: ToolError,
    pub effect: EffectState,
}

impl CallFailure {
    pub fn without_effect(error: ToolError) -> Self {
        Self { error, effect: EffectState::None }
    }

    pub fn with_possible_effect(error: ToolError) -> Self {
        Self { error, effect: EffectState::Possible }
    }
}

/// A call that waits for an approval or a delay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingApproval {
    pub approval: ApprovalId,
    /// The state of the call: `PendingApproval`, or a later one.
    pub state: State,
    /// Why a person is asked, in words for that person.
    pub reason: Arc<str>,
    pub rules: Vec<Arc<str>>,
}

impl PendingApproval {
    /// The error for the caller.
    pub fn error(&self) -> ToolError {
        let Self { approval, state, reason, .. } = self;
        let message = if *state == State::ScheduledForExecution {
            format!("this call waits for its time ({approval}). Nothing was run yet.")
        } else if matches!(state, State::ApprovedReady | State::Executing) {
            format!(
                "the same call was approved and runs as {approval}. Do not make it anew; ask for that one."
            )
        } else {
            format!(
                "a person has to approve this call: {reason}. Nothing was run yet; it waits as {approval}."
            )
        };
        let rule = self.rules.first().map_or("", |rule| rule);
        ToolError::new(ErrorCode::ApprovalRequired, message).with_details(serde_json::json!({
            "approvalId": approval, "state": state, "reason": reason, "rule": rule
        }))
    }

    pub fn effect(&self) -> EffectState {
        if self.state == State::Executing { EffectState::Possible } else { EffectState::None }
    }
}

/// Why a call has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallError {
    Refused(Refusal),
    Failed(CallFailure),
    Held(PendingApproval),
}

impl CallError {
    /// The error for the caller.
    pub fn error(&self) -> ToolError {
        match self {
            Self::Refused(refusal) => refusal.error().clone(),
            Self::Failed(failure) => failure.error.clone(),
            Self::Held(pending) => pending.error(),
        }
    }

    pub fn effect(&self) -> EffectState {
        match self {
            Self::Refused(_) => EffectState::None,
            Self::Held(pending) => pending.effect(),
            Self::Failed(failure) => failure.effect,
        }
    }
}

impl From<Refusal> for CallError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<CallFailure> for CallError {
    fn from(failure: CallFailure) -> Self {
        Self::Failed(failure)
    }
}

impl From<PendingApproval> for CallError {
    fn from(pending: PendingApproval) -> Self {
        Self::Held(pending)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_written_alike_and_explained() {
        for code in ErrorCode::ALL {
            assert!(code.as_str().bytes().all(|b| b.is_ascii_uppercase() || b == b'_'), "{code}");
            assert!(code.meaning().len() > 10, "{code}");
        }
    }

    #[test]
    fn a_call_that_runs_already_is_not_said_to_wait() {
        let held = |state| PendingApproval {
            approval: ApprovalId::generate(),
            state,
            reason: "a rule".into(),
            rules: vec![],
        };
        let seen = |state| {
            let error = CallError::from(held(state));
            (error.error().message, error.effect())
        };
        let (waits, none) = seen(State::PendingApproval);
        assert!(waits.contains("a person has to approve this call") && none == EffectState::None, "{waits}");
        for (state, effect) in
            [(State::ApprovedReady, EffectState::None), (State::Executing, EffectState::Possible)]
        {
            let (runs, how_far) = seen(state);
            assert!(runs.contains("was approved and runs as appr_"), "{runs}");
            assert!(!runs.contains("Nothing was run"), "{runs}");
            assert_eq!(how_far, effect);
        }
    }

    #[test]
    fn a_conversation_wraps_a_message_once() {
        let timeout = ToolError::new(ErrorCode::Timeout, "(tool failed: timeout)");
        assert_eq!(timeout.conversation(), "(tool failed: timeout)");
        assert_eq!(timeout.logged(), "timeout");
        assert_eq!(ToolError::new(ErrorCode::ExecutionError, "boom").conversation(), "(tool failed: boom)");
    }
}
