//! `/api/v1/tools`, `/api/v1/explain` and `/api/v1/policy/test`: what a caller may use, and why.

use super::query::{self, Answer, Query, Sender};
use crate::Identity;
use crate::error::ApiError;
use crate::model::{ExplainQuery, Explained, NoQuery, PolicyTest, PolicyTestRequest, ToolQuery};
use axum::Json;
use axum::body::Body;
use axum::http::StatusCode;
use axum::response::Response;
use gantry_core::format::Format;
use gantry_core::{CallRequest, Caller, EntryPoint, raw};
use gantry_runtime::PipelineContext;
use gantry_runtime::projects::Context;
use std::sync::Arc;

/// The format with everything that Gantry knows about each tool.
const OWN_FORMAT: &str = "json";

pub(super) async fn list(sender: Sender, Query(query): Query<ToolQuery>) -> Result<Response, ApiError> {
    let format = query.format.as_deref().filter(|word| *word != OWN_FORMAT).map(named).transpose()?;
    let (rt, session) = sender.shared_session(query.project.as_deref(), query.agent.as_deref()).await?;
    let items = match format {
        None => rt.listing(&session),
        Some(format) => rt.formatted(&session, format),
    };
    let body = raw::object([("items", &*items), ("next", "null")]);
    Ok(query::json_response(StatusCode::OK, body))
}

fn named(word: &str) -> Result<Format, ApiError> {
    Format::parse(word).ok_or_else(|| {
        let others = Format::ALL.iter().map(|format| format.as_str()).collect::<Vec<_>>().join(", ");
        ApiError::invalid(format!("format is one of {OWN_FORMAT}, {others}"))
    })
}

pub(super) async fn explain(sender: Sender, Query(query): Query<ExplainQuery>) -> Answer<Explained> {
    sender.require_admin("explaining what others may use")?;
    let context = sender.context(query.project.as_deref(), query.agent.as_deref()).await?;
    Ok(Json(match &query.tool {
        Some(tool) => Explained::Tool(context.runtime.explain(tool, context.agent.as_deref(), query.depth)),
        None => Explained::Warnings { warnings: context.runtime.warnings() },
    }))
}

/// What would be decided about a call, with nothing run and no person asked.
pub(super) async fn test_policy(sender: Sender, _: NoQuery, body: Body) -> Answer<PolicyTest> {
    sender.require_admin("testing the policies for others")?;
    let call: PolicyTestRequest = query::read("a call", body).await?;
    let Context { runtime, agent } = sender.context(call.project.as_deref(), call.agent.as_deref()).await?;
    let local = Identity::local();
    let caller = Caller {
        principal: call.principal.map_or(local.principal, Into::into),
        role: call.role.unwrap_or(local.role),
        agent,
        parent_agents: Arc::default(),
        project: Arc::clone(&runtime.project),
    };
    // A session of its own: the one that callers of this name share may be in another role.
    let session = runtime.open_session(caller, EntryPoint::Http).await?;
    let arguments = call.arguments.map(|raw| Box::<str>::from(raw).into());
    let request = CallRequest { tool: call.tool, arguments, ..CallRequest::default() };
    let dry_run = runtime.dry_run(&PipelineContext::new(&session), &request).await;
    runtime.close_session(&session).await;
    Ok(Json(dry_run))
}
