//! The tools by which agents start agents, as far as the rules about them can be shown without a model: a spawned agent
//! makes the calls that are listed in the arguments.

use crate::provider::{TestProvider, fault, tool};
use gantry_core::error::CallFailure;
use gantry_core::names::Style;
use gantry_core::pattern::Pattern;
use gantry_core::tool::{Origin, ToolKind};
use gantry_core::{CallRequest, Permit};
use gantry_provider::{CallContext, RawOutput};
use gantry_runtime::PipelineContext;
use serde::Deserialize;
use serde_json::{Value, json};

pub fn coordination() -> TestProvider {
    let (provider, kind) = ("coordination".into(), ToolKind::Builtin);
    TestProvider {
        origin: Origin { provider, namespace: "coordination".into(), kind },
        style: Style::Bare,
        // What agents that are started do has effects; to list them has none.
        tools: vec![tool("spawn_agents", false, ""), tool("list_available_agents", true, "")],
        run: |cx, permit| Box::pin(run(cx, permit)),
    }
}

async fn run(cx: &CallContext, permit: &Permit) -> Result<RawOutput, CallFailure> {
    if &*permit.tool().key.tool == "spawn_agents" {
        return spawn(cx, permit.arguments()).await;
    }
    let cx = PipelineContext::from_provider(cx).ok_or_else(|| fault("no engine"))?;
    let runtime = cx.session.runtime().ok_or_else(|| fault("no runtime"))?;
    Ok(RawOutput::Json(json!({ "agents": runtime.agents() }).to_string()))
}

/// An agent, and the calls that it makes.
#[derive(Debug, Deserialize)]
struct Spawn {
    agent: String,
    #[serde(default)]
    calls: Vec<Call>,
    narrow: Option<Vec<String>>,
}

#[derive(Debug, Deserialize)]
struct Call {
    tool: String,
    arguments: Option<Box<serde_json::value::RawValue>>,
}

/// Lets the agent see its tools and make its calls, and returns their replies.
async fn spawn(cx: &CallContext, arguments: &str) -> Result<RawOutput, CallFailure> {
    let spawn: Spawn = serde_json::from_str(arguments).map_err(|error| fault(&error.to_string()))?;
    let cx = &PipelineContext::from_provider(cx).ok_or_else(|| fault("no engine"))?;
    let runtime = cx.session.runtime().ok_or_else(|| fault("no runtime"))?;
    let narrow = spawn.narrow.map(|texts| texts.iter().flat_map(|text| Pattern::parse(text)).collect());
    let child = runtime.spawn_session(cx, &spawn.agent, narrow).await;
    let child = child.map_err(|refusal| fault(&refusal.error().message))?;
    let toolset = child.toolset();
    let tools: Vec<&str> = toolset.tools().map(|tool| &*tool.name).collect();
    let names: Vec<&str> = toolset.entries().map(|entry| entry.name).collect();
    let mut replies = Vec::new();
    for call in spawn.calls {
        let arguments = call.arguments.map(|raw| raw.get().into());
        let request = CallRequest { tool: call.tool, arguments, ..CallRequest::default() };
        let reply = runtime.call(cx.child_in_session(&child), request).await.to_json();
        replies.push(serde_json::from_str::<Value>(&reply).unwrap_or_default());
    }
    let depth = child.place().depth;
    let outcome = json!({
        "agent": spawn.agent, "depth": depth, "tools": tools, "names": names, "replies": replies,
    });
    runtime.close_session(&child).await;
    Ok(RawOutput::Json(outcome.to_string()))
}
