//! The reply, from which every entry point makes its answer. Only a receipt of the record stage becomes one.

use crate::ledger_view::with_known;
use gantry_core::CallError;
use gantry_core::error::{EffectState, Refusal, ToolError, Upstream};
use gantry_core::id::CallId;
use gantry_core::raw;
use gantry_core::tool::Tool;
use gantry_provider::RawOutput;
use gantry_store::{ApprovalRow, State};
use serde_json::{Value, json};
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
    /// The output itself.
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
    /// The result as a conversation shows it.
    #[must_use]
    pub fn text(&self) -> &str {
        self.body.text()
    }

    /// The output itself, if it is shown whole.
    fn inline(&self) -> Option<&RawOutput> {
        if let Body::Inline(output) = &self.body { Some(output) } else { None }
    }

    /// The result as JSON text, if the tool gave JSON and it is shown whole.
    #[must_use]
    pub fn structured(&self) -> Option<&str> {
        match self.inline()? {
            RawOutput::Json(text) => Some(text),
            RawOutput::Content(content) => content.structured(),
            RawOutput::Text(_) => None,
        }
    }

    /// The result of an MCP server word for word, if it is one and is shown whole.
    #[must_use]
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

/// The answer to a call.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The call.
    pub id: CallId,
    /// Its state in the ledger.
    pub state: State,
    /// What it gave, or why it gave nothing.
    pub outcome: Result<Shaped, ToolError>,
    /// How far it may have got.
    pub effect: EffectState,
    /// How long it took.
    pub latency: Duration,
    /// The tool, if one was found.
    pub tool: Option<Arc<Tool>>,
    /// The person that approved it, if one was asked.
    pub approved_by: Option<Arc<str>>,
    /// The arguments that a person approved instead of those that were sent, as the ledger may show them.
    pub executed_arguments: Option<Arc<str>>,
    /// The approval that the call waits for, or has waited for.
    pub approval: Option<Arc<ApprovalRow>>,
    /// The earlier call with the same idempotency key whose result this is.
    pub repeats: Option<CallId>,
    /// Whether the session has run out of budget.
    pub budget_exceeded: bool,
}

impl Reply {
    /// The answer to a call that never entered the pipeline.
    #[must_use]
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
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.approval.is_some() && !self.state.is_over()
    }

    /// Whether the call succeeded.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.outcome.is_ok()
    }

    /// What stands in a conversation: the result, or `(tool failed: …)`.
    #[must_use]
    pub fn model_text(&self) -> String {
        match &self.outcome {
            Ok(shaped) => shaped.text().to_owned(),
            Err(error) => error.conversation(),
        }
    }

    /// The reply as the ledger keeps it: what [`Reply::to_json`] gives, and a provider's own words beside it.
    #[must_use]
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
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut out = String::with_capacity(256);
        match &self.outcome {
            Ok(shaped) => {
                out.push_str("{\"ok\":true,\"result\":");
                shaped.write_json(&mut out);
            }
            Err(error) => {
                out.push_str("{\"ok\":false,\"error\":");
                out.push_str(&json!(error).to_string());
            }
        }
        let rest = json!({
            "latencyMs": u64::try_from(self.latency.as_millis()).unwrap_or(u64::MAX),
            "kind": self.tool.as_ref().map(|tool| tool.kind.as_str()),
            "namespace": self.tool.as_ref().map(|tool| &*tool.namespace),
            "extras": self.extras(),
            "id": self.id,
            "state": self.state.as_str(),
        });
        let approval = json!({ "approvalId": self.approval.as_ref().map(|approval| approval.id) });
        let rest = with_known(rest, approval).to_string();
        out.push(',');
        out.push_str(rest.strip_prefix('{').unwrap_or_default());
        out
    }

    fn extras(&self) -> Value {
        let (shaped, arguments) = (self.outcome.as_ref().ok(), self.executed_arguments.as_deref());
        let executed = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
        let extras = json!({
            "tool": self.tool.as_ref().map(|tool| &*tool.name),
            "stored": shaped.filter(|shaped| shaped.inline().is_none()).map(|_| true),
            "cached": shaped.filter(|shaped| shaped.cached).map(|_| true),
            "effect": self.outcome.is_err().then_some(self.effect.as_str()),
            "approvedBy": self.approved_by,
            "executedArguments": arguments.map(executed),
            "repeats": self.repeats,
            "toolBudgetExceeded": self.budget_exceeded.then_some(true),
        });
        with_known(json!({}), extras)
    }
}
