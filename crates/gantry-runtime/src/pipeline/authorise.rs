//! Authorise: policies, then the schema, then the tool's own approval rule, for which its provider may run a preflight.

use super::CallScope;
use gantry_core::error::{ErrorCode, Refusal};
use gantry_core::policy::{self, Evaluated, Preflight};
use gantry_core::tool::ApprovalRule;
use gantry_core::{ResolvedCall, Verdict};

pub(super) fn judge(scope: &CallScope<'_>, call: ResolvedCall) -> Result<Evaluated, Refusal> {
    policy::judge(&scope.snapshot.options.policies, scope.cx.caller(), call)
}

pub(super) async fn verdict(scope: &CallScope<'_>, judged: Evaluated) -> Verdict {
    let CallScope { snapshot, cx, .. } = scope;
    match approval_rule(scope, judged.call()).await {
        Ok(mut own) => {
            // The precondition stays: what was looked at must still be so when the call runs.
            let lifted = || {
                snapshot.options.policies.approval_rules().waives_tool_rule(judged.call().tool())
                    || snapshot.auto_approves(&cx.session, judged.call())
            };
            if own.ask.is_some() && lifted() {
                own.ask = None;
            }
            judged.into_verdict(cx.caller(), own)
        }
        Err(refusal) => Verdict::Deny(refusal),
    }
}

async fn approval_rule(scope: &CallScope<'_>, call: &ResolvedCall) -> Result<Preflight, Refusal> {
    let CallScope { snapshot, cx, .. } = scope;
    let provider = match call.tool().spec.approval_rule {
        // A tool of a server has no rule of its own, but says what it may do.
        ApprovalRule::Never => {
            let ask = snapshot.options.policies.approval_rules().effect_ask(call.tool());
            return Ok(Preflight { ask, precondition: snapshot.identity_of(&call.tool().key.provider) });
        }
        ApprovalRule::Always => {
            let reason = format!("{} always asks", call.tool().name);
            return Ok(Preflight { ask: Some(reason), precondition: None });
        }
        ApprovalRule::Depends => snapshot.provider(&call.tool().key.provider)?,
    };
    let limit = snapshot.options.limits.tool_timeout.get();
    // Cancel-safety: looking changes nothing, so it may be given up anywhere.
    tokio::select! {
        biased;
        () = cx.cancel.cancelled() => Err(Refusal::new(ErrorCode::Canceled, "canceled; nothing was run")),
        looked = tokio::time::timeout(limit, provider.preflight(call)) => {
            looked.unwrap_or_else(|_elapsed| {
                let message = "looking at what the call would change took too long; nothing was run";
                Err(Refusal::new(ErrorCode::Timeout, message))
            })
        }
    }
}
