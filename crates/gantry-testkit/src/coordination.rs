//! Stand-ins for the tools by which agents start agents, as far as the rules about them can be shown without a model: a
//! spawned agent makes the calls that it is told to.

use gantry_core::error::{CallFailure, ErrorCode, ToolError};
use gantry_core::names::Style;
use gantry_core::pattern::Pattern;
use gantry_core::tool::{Annotations, ApprovalRule, Origin, ToolKind, ToolSpec};
use gantry_core::{CallRequest, Permit};
use gantry_provider::{BoxFuture, CallContext, Provider, RawOutput};
use gantry_runtime::PipelineContext;
use serde::Deserialize;
use serde_json::{Value, json};

/// The provider `coordination`.
#[derive(Debug)]
pub struct Coordination {
    origin: Origin,
}

/// An agent, and the calls that it makes.
#[derive(Debug, Deserialize)]
struct Spawn {
    agent: String,
    #[serde(default)]
    calls: Vec<Wanted>,
    narrow: Option<Vec<String>>,
}

#[derive(Debug, Deserialize)]
struct Wanted {
    tool: String,
    arguments: Option<Box<serde_json::value::RawValue>>,
}

impl Default for Coordination {
    fn default() -> Self {
        let (provider, kind) = ("coordination".into(), ToolKind::Builtin);
        Self { origin: Origin { provider, namespace: "coordination".into(), kind } }
    }
}

impl Coordination {
    /// Lets the agent see its tools and make its calls, and tells what came of them.
    async fn spawn(&self, cx: &CallContext, arguments: &str) -> Result<RawOutput, CallFailure> {
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
        for wanted in spawn.calls {
            let arguments = wanted.arguments.map(|raw| raw.get().into());
            let request = CallRequest { tool: wanted.tool, arguments, ..CallRequest::default() };
            let reply = runtime.call(cx.child_in_session(&child), request).await.to_json();
            replies.push(serde_json::from_str::<Value>(&reply).unwrap_or_default());
        }
        let depth = child.place().depth;
        let told = json!({
            "agent": spawn.agent, "depth": depth, "tools": tools, "names": names, "replies": replies,
        });
        runtime.close_session(&child).await;
        Ok(RawOutput::Json(told.to_string()))
    }
}

impl Provider for Coordination {
    fn origin(&self) -> &Origin {
        &self.origin
    }

    fn naming(&self) -> Style {
        Style::Bare
    }

    fn tools(&self) -> Vec<ToolSpec> {
        ["spawn_agents", "list_available_agents"].map(tool).into()
    }

    fn execute<'a>(
        &'a self,
        cx: &'a CallContext,
        permit: &'a Permit,
    ) -> BoxFuture<'a, Result<RawOutput, CallFailure>> {
        Box::pin(async move {
            if &*permit.tool().key.tool == "spawn_agents" {
                return self.spawn(cx, permit.arguments()).await;
            }
            let cx = PipelineContext::from_provider(cx).ok_or_else(|| fault("no engine"))?;
            let runtime = cx.session.runtime().ok_or_else(|| fault("no runtime"))?;
            Ok(RawOutput::Json(json!({ "agents": runtime.agents() }).to_string()))
        })
    }
}

fn fault(message: &str) -> CallFailure {
    CallFailure::without_effect(ToolError::new(ErrorCode::ExecutionError, message))
}

fn tool(name: &str) -> ToolSpec {
    ToolSpec {
        name: name.into(),
        title: None,
        description: format!("The test tool {name}"),
        input_schema: json!({ "type": "object" }).into(),
        output_schema: None,
        // What agents that are started do has effects; to list them has none.
        annotations: Annotations { read_only_hint: Some(name != "spawn_agents"), ..Annotations::default() },
        approval_rule: ApprovalRule::Never,
        raw: None,
        target: None,
    }
}
