//! The reply: what every door makes its answer of. Only a receipt of the record stage becomes one.

use gantry_core::error::{EffectState, Refusal, ToolError, Upstream};
use gantry_core::id::CallId;
use gantry_core::raw;
use gantry_core::tool::Tool;
use gantry_provider::RawOutput;
use gantry_store::{ApprovalRow, State};
use serde_json::{Map, Value, json};
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
    Whole(Arc<RawOutput>),
    /// The message that stands for a stored output, as JSON text.
    Stored(Arc<str>),
}

impl Body {
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Whole(output) => output.text(),
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

    /// The result as JSON text, if the tool gave JSON and it is shown whole.
    #[must_use]
    pub fn structured(&self) -> Option<&str> {
        match &self.body {
            Body::Whole(output) => match &**output {
                RawOutput::Json(text) => Some(text),
                RawOutput::Content(content) => content.structured(),
                RawOutput::Text(_) => None,
            },
            Body::Stored(_) => None,
        }
    }

    /// The result of an MCP server word for word, if it is one and is shown whole.
    #[must_use]
    pub fn content(&self) -> Option<&Arc<str>> {
        match &self.body {
            Body::Whole(output) => match &**output {
                RawOutput::Content(content) => Some(content.result()),
                RawOutput::Json(_) | RawOutput::Text(_) => None,
            },
            Body::Stored(_) => None,
        }
    }

    fn write_json(&self, out: &mut String) {
        match &self.body {
            Body::Whole(output) => output.write_json(out),
            Body::Stored(message) => out.push_str(message),
        }
    }
}

/// Proof that a call is on record.
#[derive(Debug)]
pub(crate) struct Receipt(pub(crate) Reply);

impl Receipt {
    pub(crate) fn into_reply(self) -> Reply {
        self.0
    }
}

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
    /// The person who said yes, if one was asked.
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
    pub fn shed(id: CallId, refusal: &Refusal) -> Self {
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
    pub fn conversation(&self) -> String {
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
        let mut rest = json!({
            "latencyMs": u64::try_from(self.latency.as_millis()).unwrap_or(u64::MAX),
            "kind": self.tool.as_ref().map(|tool| tool.kind.as_str()),
            "namespace": self.tool.as_ref().map(|tool| &*tool.namespace),
            "extras": self.extras(),
            "id": self.id,
            "state": self.state.as_str(),
        });
        if let (Some(approval), Some(rest)) = (&self.approval, rest.as_object_mut()) {
            rest.insert("approvalId".into(), approval.id.to_string().into());
        }
        let rest = rest.to_string();
        out.push(',');
        out.push_str(rest.strip_prefix('{').unwrap_or_default());
        out
    }

    fn extras(&self) -> Value {
        let mut extras = Map::new();
        if let Some(tool) = &self.tool {
            extras.insert("tool".into(), (*tool.name).into());
        }
        if self.outcome.as_ref().is_ok_and(|shaped| matches!(shaped.body, Body::Stored(_))) {
            extras.insert("stored".into(), true.into());
        }
        if self.outcome.as_ref().is_ok_and(|shaped| shaped.cached) {
            extras.insert("cached".into(), true.into());
        }
        if self.outcome.is_err() {
            extras.insert("effect".into(), self.effect.as_str().into());
        }
        if let Some(person) = &self.approved_by {
            extras.insert("approvedBy".into(), (**person).into());
        }
        if let Some(arguments) = &self.executed_arguments {
            let arguments = serde_json::from_str(arguments).unwrap_or_else(|_| (**arguments).into());
            extras.insert("executedArguments".into(), arguments);
        }
        if let Some(earlier) = &self.repeats {
            extras.insert("repeats".into(), earlier.to_string().into());
        }
        if self.budget_exceeded {
            extras.insert("toolBudgetExceeded".into(), true.into());
        }
        extras.into()
    }
}
