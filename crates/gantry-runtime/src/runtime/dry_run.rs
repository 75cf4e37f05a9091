//! A dry run: the decision about a call by the same stages as for a real one, with nothing run and no person asked.

use super::Runtime;
use crate::context::PipelineContext;
use crate::pipeline;
use gantry_core::error::{ErrorCode, ToolError};
use gantry_core::{CallRequest, Tool, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What would be decided about a call. Grants are not looked at: what they answer is shown as held.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "PolicyTest")]
pub struct DryRun {
    /// What it would come to.
    pub outcome: Outcome,
    /// The displayed name of the tool, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<Arc<str>>,
    /// The rules that ask.
    pub rules: Vec<Arc<str>>,
    /// Why they ask.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Who may decide: one person of every list. No list means every approver.
    pub approvers: Vec<Vec<Arc<str>>>,
    /// How long it would wait before it runs.
    pub delay_ms: u64,
    /// What it is estimated to cost.
    pub estimated_cost: u64,
    /// Why it would be refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ToolError>,
}

/// What a call would come to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "PolicyOutcome")]
pub enum Outcome {
    /// It would run.
    Allowed,
    /// It would wait for a person.
    Held,
    /// A policy would refuse it.
    Denied,
    /// It would be refused for another reason.
    #[default]
    Refused,
}

impl Runtime {
    pub async fn dry_run(&self, cx: &PipelineContext, request: &CallRequest) -> DryRun {
        let dry_run = |outcome, tool: &Arc<Tool>| {
            let policies = &self.snapshot().options.policies;
            let delay = policies.approval_rules().delay(tool);
            DryRun {
                outcome,
                tool: Some(Arc::clone(&tool.name)),
                delay_ms: delay.as_millis().try_into().unwrap_or(u64::MAX),
                estimated_cost: policies.approval_rules().cost(tool),
                ..DryRun::default()
            }
        };
        match pipeline::verdict(self, cx, request).await {
            Verdict::Allow(permit) => dry_run(Outcome::Allowed, permit.tool()),
            Verdict::Ask(question) => DryRun {
                rules: question.rules().cloned().collect(),
                reason: Some(question.reason()),
                approvers: question.approvers().map(<[_]>::to_vec).collect(),
                ..dry_run(Outcome::Held, question.call().tool())
            },
            Verdict::Deny(refusal) => {
                let error = refusal.error().clone();
                let is_denied = error.code == ErrorCode::PermissionDenied;
                let outcome = if is_denied { Outcome::Denied } else { Outcome::Refused };
                DryRun { outcome, error: Some(error), ..DryRun::default() }
            }
        }
    }
}
