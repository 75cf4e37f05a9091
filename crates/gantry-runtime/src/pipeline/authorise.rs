//! Authorise: policies, then the schema, then the tool's own rule, which may have to look at the world.

use crate::context::CallCx;
use crate::runtime::Runtime;
use gantry_core::policy::{OwnVerdict, judge};
use gantry_core::tool::OwnRule;
use gantry_core::{Refusal, ResolvedCall, Verdict};

pub(super) async fn call(rt: &Runtime, cx: &CallCx, call: ResolvedCall) -> Verdict {
    let policies = rt.policies.load();
    let judged = match judge(&policies, cx.caller(), call) {
        Ok(judged) => judged,
        Err(refusal) => return Verdict::Deny(refusal),
    };
    drop(policies);
    match own_rule(rt, cx, judged.call()).await {
        Ok(own) => judged.conclude(cx.caller(), own),
        Err(refusal) => Verdict::Deny(refusal),
    }
}

async fn own_rule(rt: &Runtime, cx: &CallCx, call: &ResolvedCall) -> Result<OwnVerdict, Refusal> {
    match call.tool().spec.own_rule {
        OwnRule::Never => Ok(OwnVerdict::default()),
        OwnRule::Always => {
            let reason = format!("{} always asks", call.tool().name);
            Ok(OwnVerdict { ask: Some(reason), precondition: None })
        }
        OwnRule::Depends => rt.provider(&call.tool().key.provider)?.inspect(cx, call).await,
    }
}
