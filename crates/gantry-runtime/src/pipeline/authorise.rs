//! Authorise: policies, then the schema, then the tool's own rule, which may have to look at the world.

use crate::context::CallCx;
use crate::runtime::{Runtime, State};
use gantry_core::error::{ErrorCode, Refusal};
use gantry_core::policy::{self, Judged, OwnVerdict};
use gantry_core::tool::OwnRule;
use gantry_core::{ResolvedCall, Verdict};

/// The policies and the schema.
pub(super) fn judge(state: &State, cx: &CallCx, call: ResolvedCall) -> Result<Judged, Refusal> {
    policy::judge(&state.setup.policies, cx.caller(), call)
}

/// The tool's own rule, and the verdict.
pub(super) async fn verdict(rt: &Runtime, state: &State, cx: &CallCx, judged: Judged) -> Verdict {
    match own_rule(state, cx, judged.call()).await {
        Ok(mut own) => {
            // The precondition stays: what was looked at must still be so when the call runs.
            let lifted = || {
                state.setup.policies.gates().lifts_own_rule(judged.call().tool())
                    || rt.auto_approves(state, &cx.session, judged.call())
            };
            if own.ask.is_some() && lifted() {
                own.ask = None;
            }
            judged.into_verdict(cx.caller(), own)
        }
        Err(refusal) => Verdict::Deny(refusal),
    }
}

async fn own_rule(state: &State, cx: &CallCx, call: &ResolvedCall) -> Result<OwnVerdict, Refusal> {
    let provider = match call.tool().spec.own_rule {
        // A tool of a server has no rule of its own, but says what it may do.
        OwnRule::Never => {
            let ask = state.setup.policies.gates().effect_ask(call.tool());
            return Ok(OwnVerdict { ask, precondition: state.identity_of(&call.tool().key.provider) });
        }
        OwnRule::Always => {
            let reason = format!("{} always asks", call.tool().name);
            return Ok(OwnVerdict { ask: Some(reason), precondition: None });
        }
        OwnRule::Depends => state.provider(&call.tool().key.provider)?,
    };
    let limit = state.setup.limits.tool_timeout;
    // Cancel-safety: looking changes nothing, so it may be given up anywhere.
    tokio::select! {
        biased;
        () = cx.cancel.cancelled() => Err(Refusal::new(ErrorCode::Canceled, "canceled; nothing was run")),
        looked = tokio::time::timeout(limit, provider.inspect(call)) => {
            looked.unwrap_or_else(|_elapsed| {
                let message = "looking at what the call would change took too long; nothing was run";
                Err(Refusal::new(ErrorCode::Timeout, message))
            })
        }
    }
}
