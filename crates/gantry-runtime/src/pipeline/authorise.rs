//! Authorise: policies, then the schema, then the tool's own rule, which may have to look at the world.

use crate::context::CallCx;
use crate::runtime::Runtime;
use gantry_core::error::{ErrorCode, Refusal};
use gantry_core::policy::{self, Judged, OwnVerdict};
use gantry_core::tool::OwnRule;
use gantry_core::{ResolvedCall, Verdict};

/// The policies and the schema.
pub(super) fn judge(rt: &Runtime, cx: &CallCx, call: ResolvedCall) -> Result<Judged, Refusal> {
    policy::judge(&rt.policies.load(), cx.caller(), call)
}

/// The tool's own rule, and the verdict.
pub(super) async fn verdict(rt: &Runtime, cx: &CallCx, judged: Judged) -> Verdict {
    match own_rule(rt, cx, judged.call()).await {
        Ok(own) => judged.conclude(cx.caller(), own),
        Err(refusal) => Verdict::Deny(refusal),
    }
}

async fn own_rule(rt: &Runtime, cx: &CallCx, call: &ResolvedCall) -> Result<OwnVerdict, Refusal> {
    let provider = match call.tool().spec.own_rule {
        OwnRule::Never => return Ok(OwnVerdict::default()),
        OwnRule::Always => {
            let reason = format!("{} always asks", call.tool().name);
            return Ok(OwnVerdict { ask: Some(reason), precondition: None });
        }
        OwnRule::Depends => rt.provider(&call.tool().key.provider)?,
    };
    // Cancel-safety: looking changes nothing, so it may be given up anywhere.
    tokio::select! {
        biased;
        () = cx.cancel.cancelled() => Err(Refusal::new(ErrorCode::Canceled, "canceled; nothing was run")),
        looked = tokio::time::timeout(rt.limits.tool_timeout, provider.inspect(cx, call)) => {
            looked.unwrap_or_else(|_elapsed| {
                let message = "looking at what the call would change took too long; nothing was run";
                Err(Refusal::new(ErrorCode::Timeout, message))
            })
        }
    }
}
