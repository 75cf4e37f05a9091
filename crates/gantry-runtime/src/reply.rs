//! The reply, from which every entry point makes its answer. Only a receipt of the record stage becomes one.

use crate::ledger_view::CallRecord;
use gantry_core::CallError;
use gantry_core::error::{EffectState, Refusal, ToolError, Upstream};
use gantry_core::id::{ApprovalId, CallId};
use gantry_core::raw;
use gantry_core::tool::{Tool, ToolKind};
use gantry_provider::RawOutput;
use gantry_store::{ApprovalRow, State};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::sync::Arc;
use std::time::Duration;

/// An output that fits the conversation.
#[derive(Debug, Clone)]
pub struct Shaped {
    pub(crate) body: Body,
    pub(crate) cached: bool,
}

#[derive(Debug, Clone)]
pub(crate) enum Body {
    Inline(Arc<RawOutput>),
    /// The message that stands for a stored output, as JSON text.
    Stored(Arc<str>),
}

impl Body {
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Inline(output) => output.text(),
            Self::Stored(message) => message,
        }
    }
}

impl Shaped {
    pub fn text(&self) -> &str {
        self.body.text()
    }

    /// The output itself, if it is shown whole.
    fn inline(&self) -> Option<&RawOutput> {
        if let Body::Inline(output) = &self.body { Some(output) } else { None }
    }

    /// The result as JSON text, if the tool gave JSON and it is shown whole.
    pub fn structured(&self) -> Option<&str> {
        match self.inline()? {
            RawOutput::Json(text) => Some(text),
            RawOutput::Content(content) => content.structured(),
            RawOutput::Text(_) => None,
        }
    }

    /// The result of an MCP server word for word, if it is one and is shown whole.
    pub fn content(&self) -> Option<&Arc<str>> {
        if let RawOutput::Content(content) = self.inline()? { Some(content.result()) } else { None }
    }

    fn write_json(&self, out: &mut String) {
        match &self.body {
            Body::Inline(output) => output.write_json(out),
            Body::Stored(message) => out.push_str(message),
        }
    }
}

/// How far a call may have got that ended like this.
pub(crate) fn effect_of(outcome: &Result<Shaped, CallError>) -> EffectState {
    outcome.as_ref().map_or_else(CallError::effect, |_| EffectState::Done)
}

/// Proof that a call is on record.
#[derive(Debug)]
pub(crate) struct Receipt(pub(crate) Reply);

#[derive(Debug, Clone)]
pub struct Reply {
    pub id: CallId,
    pub state: State,
    /// What it gave, or why it gave nothing.
    pub outcome: Result<Shaped, ToolError>,
    pub effect: EffectState,
    pub latency: Duration,
    pub tool: Option<Arc<Tool>>,
    pub approved_by: Option<Arc<str>>,
    /// The arguments that a person approved instead of those that were sent, as the ledger may show them.
    pub executed_arguments: Option<Arc<str>>,
    /// The approval that the call waits for, or has waited for.
    pub approval: Option<Arc<ApprovalRow>>,
    /// The earlier call with the same idempotency key whose result this is.
    pub repeats: Option<CallId>,
    pub budget_exceeded: bool,
}

impl Reply {
    /// The answer to a call that never entered the pipeline.
    pub fn rejected_before_entry(id: CallId, refusal: &Refusal) -> Self {
        Self {
            id,
            state: State::Refused,
            outcome: Err(refusal.error().clone()),
            effect: EffectState::None,
            latency: Duration::ZERO,
            tool: None,
            approved_by: None,
            executed_arguments: None,
            approval: None,
            repeats: None,
            budget_exceeded: false,
        }
    }

    /// Whether the call was held and is not over yet.
    pub fn is_held(&self) -> bool {
        self.approval.is_some() && !self.state.is_over()
    }

    pub fn is_ok(&self) -> bool {
        self.outcome.is_ok()
    }

    /// What stands in a conversation: the result, or `(tool failed: …)`.
    pub fn model_text(&self) -> String {
        match &self.outcome {
            Ok(shaped) => shaped.text().to_owned(),
            Err(error) => error.conversation(),
        }
    }

    /// The reply as the ledger keeps it: what [`Reply::to_json`] gives, and a provider's own words beside it.
    pub(crate) fn to_kept_json(&self) -> String {
        let own = match &self.outcome {
            Ok(shaped) => shaped.content(),
            Err(error) => error.upstream.as_deref().map(|upstream| match upstream {
                Upstream::Result(text) | Upstream::Error(text) => text,
            }),
        };
        let reply = self.to_json();
        own.map_or_else(|| reply.clone(), |own| raw::with(&reply, "upstream", own))
    }

    /// The reply as `gantry call --json` and the HTTP API give it.
    pub fn to_json(&self) -> String {
        let reply = serde_json::to_string(&CallReply::from(self)).unwrap_or_default();
        let Ok(shaped) = &self.outcome else { return reply };
        // The result is written as it is, without being read once more.
        let (ok, rest) = reply.split_at("{\"ok\":true".len());
        let mut out = String::with_capacity(reply.len() + shaped.text().len() + 16);
        out.extend([ok, ",\"result\":"]);
        shaped.write_json(&mut out);
        out.push_str(rest);
        out
    }

    fn extras(&self) -> Extras {
        let shaped = self.outcome.as_ref().ok();
        let executed = |text: &Arc<str>| serde_json::from_str(text).unwrap_or_else(|_| Value::from(&**text));
        Extras {
            tool: self.tool.as_ref().map(|tool| Arc::clone(&tool.name)),
            stored: shaped.is_some_and(|shaped| shaped.inline().is_none()),
            cached: shaped.is_some_and(|shaped| shaped.cached),
            effect: shaped.is_none().then_some(self.effect),
            approved_by: self.approved_by.clone(),
            executed_arguments: self.executed_arguments.as_ref().map(executed),
            repeats: self.repeats,
            tool_budget_exceeded: self.budget_exceeded,
        }
    }
}

/// The answer to a call, as the API gives it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallReply {
    /// Whether it succeeded.
    pub ok: bool,
    /// What the tool gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Value>")]
    pub result: Option<Box<RawValue>>,
    /// Why it failed, or what it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ToolError>,
    /// Not in the answer to a deferred call, and not where the ledger has no reply of a call.
    #[serde(flatten)]
    pub measured: Option<Measured>,
    /// The id of the call.
    pub id: CallId,
    /// Its state.
    pub state: State,
    /// The approval that the call waits for, or has waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_id: Option<ApprovalId>,
    /// The provider's own response word for word, in replies that were kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Value>")]
    pub upstream: Option<Box<RawValue>>,
    /// The call as the ledger has it, where it is looked up by its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<Box<CallRecord>>,
}

impl CallReply {
    /// The reply to a call of which nothing but its state is known.
    pub fn unmeasured(id: CallId, state: State) -> Self {
        Self {
            ok: state == State::CompletedSuccess,
            result: None,
            error: None,
            measured: None,
            id,
            state,
            approval_id: None,
            upstream: None,
            record: None,
        }
    }
}

/// How a call ran.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Measured {
    /// How long it took.
    pub latency_ms: u64,
    /// The kind of the tool's provider; null where no tool was found.
    pub kind: Option<ToolKind>,
    /// The namespace of the tool's provider; null where no tool was found.
    pub namespace: Option<Arc<str>>,
    /// What else there is to know about it.
    pub extras: Extras,
}

/// What else there is to know about a call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[expect(clippy::struct_excessive_bools, reason = "flags of the API, which may be set in any combination")]
pub struct Extras {
    /// The displayed name of the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<Arc<str>>,
    /// Whether the result was too large for the conversation and was stored.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stored: bool,
    /// Whether the result came from the cache.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cached: bool,
    /// How far a failed call may have got.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<EffectState>,
    /// Who approved it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approved_by: Option<Arc<str>>,
    /// The arguments that were approved instead of those that were sent, with secrets masked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub executed_arguments: Option<Value>,
    /// The earlier call with the same idempotency key, whose reply this is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeats: Option<CallId>,
    /// Whether the session has run out of budget.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub tool_budget_exceeded: bool,
}

/// Everything but the result, which may be large: [`Reply::to_json`] adds it.
impl From<&Reply> for CallReply {
    fn from(reply: &Reply) -> Self {
        let tool = reply.tool.as_ref();
        let measured = Measured {
            latency_ms: reply.latency.as_millis().try_into().unwrap_or(u64::MAX),
            kind: tool.map(|tool| tool.kind),
            namespace: tool.map(|tool| Arc::clone(&tool.namespace)),
            extras: reply.extras(),
        };
        Self {
            ok: reply.is_ok(),
            error: reply.outcome.as_ref().err().cloned(),
            measured: Some(measured),
            approval_id: reply.approval.as_ref().map(|approval| approval.id),
            ..Self::unmeasured(reply.id, reply.state)
        }
    }
}
