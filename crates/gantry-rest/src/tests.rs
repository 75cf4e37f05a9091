//! REST tools, called as the pipeline calls them, against a real server on this machine.

mod apis;
mod calls;
mod faults;
mod packed;
mod places;
mod sending;
mod sent;
mod server;
mod streams;
mod tokens;

use super::inline::InlineTools;
use super::*;
use crate::openapi::Method;
use gantry_core::policy::{Preflight, Verdict};
use gantry_core::tool::Settings;
use gantry_core::toolset::{Candidate, Pool, Selection, SpawnContext};
use gantry_core::{CallFailure, EffectState, Permit, Toolset};
use gantry_provider::client::NoClient;
use gantry_provider::testing::{caller, judged, yes};
use gantry_provider::{CallContext, RawOutput};
use serde_json::{Value, json};
use server::{Server, ok};
use std::collections::BTreeSet;
use std::time::Duration;

/// How long a call may take.
const LIMIT: Duration = Duration::from_secs(50);

/// The context of a call without a client.
fn cx(limit: Duration) -> CallContext {
    CallContext::detached(caller(), limit)
}

fn client() -> Arc<RestClient> {
    Arc::new(RestClient::new(vec!["127.0.0.1/32".parse().unwrap()]))
}

/// A tool that takes anything.
fn inline(method: Method, url: impl Into<String>) -> Inline {
    Inline {
        name: "t".into(),
        description: "A tool.".into(),
        method,
        url: url.into(),
        query: Vec::new(),
        headers: Vec::new(),
        body_template: None,
        parameters_schema: Value::Null,
        effect: None,
        streaming: None,
    }
}

/// The tools of a provider as an agent has them.
fn toolset(provider: &dyn Provider) -> Toolset {
    let candidates = provider.tools().into_iter().map(|spec| Candidate {
        origin: provider.origin().clone(),
        style: provider.naming(),
        spec,
        settings: Settings::default(),
    });
    let pool = Arc::new(Pool::build(candidates.collect()));
    Toolset::resolve(&pool, &Selection::everything(), &SpawnContext::top(2)).0
}

/// The permit for a call; a person says yes where one is asked.
fn permit(provider: &dyn Provider, tool: &str, arguments: &Value) -> Permit {
    let name = format!("{NAMESPACE}__{tool}");
    let verdict = judged(&toolset(provider), (&name, arguments), |_| Ok(Preflight::default()));
    match verdict {
        Ok(Verdict::Allow(permit)) => permit,
        Ok(Verdict::Ask(question)) => yes(question),
        other => panic!("no permit: {other:?}"),
    }
}

/// Calls the tool `t`.
async fn call(tool: Inline, arguments: Value) -> Result<RawOutput, CallFailure> {
    let tools = InlineTools::new(&[tool], &client()).unwrap();
    tools.execute(&cx(LIMIT), &permit(&tools, "t", &arguments)).await
}

async fn called(tool: Inline, arguments: Value) -> RawOutput {
    call(tool, arguments).await.unwrap()
}

async fn failed(tool: Inline, arguments: Value) -> CallFailure {
    call(tool, arguments).await.unwrap_err()
}

fn code(fault: &CallFailure) -> (&'static str, EffectState) {
    (fault.error.code.as_str(), fault.effect)
}
