//! `/api/v1/policy/test`: what would be decided about a call, with nothing run and nobody asked.

use super::query::{self, NoQuery, Query};
use crate::error::ApiError;
use crate::{App, Identity};
use axum::Json;
use axum::body::Body;
use axum::extract::State;
use gantry_core::{CallRequest, Caller, EntryPoint, Role};
use gantry_runtime::projects::Context;
use gantry_runtime::{DryRun, PipelineContext};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::sync::Arc;

/// The body of `POST /api/v1/policy/test`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Imagined<'a> {
    tool: String,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    agent: Option<String>,
    project: Option<String>,
    /// Who would call; anybody on this machine unless said.
    principal: Option<String>,
    role: Option<Role>,
}

pub(super) async fn test(
    State(app): State<App>,
    who: Identity,
    Query(NoQuery {}): Query<NoQuery>,
    body: Body,
) -> Result<Json<DryRun>, ApiError> {
    who.administers("testing the policies for others")?;
    let bytes = query::body(body).await?;
    let call: Imagined<'_> = serde_json::from_str(query::json_text(&bytes)?)
        .map_err(|error| ApiError::invalid(format!("the body is not a call: {error}")))?;
    let context = query::context(&app, &who, call.project.as_deref(), call.agent.as_deref()).await?;
    let Context { runtime, agent } = context;
    let local = Identity::local();
    let caller = Caller {
        principal: call.principal.map_or(local.principal, Into::into),
        role: call.role.unwrap_or(local.role),
        agent: agent.as_deref().map(Into::into),
        parent_agents: Arc::default(),
        project: Arc::clone(&runtime.project),
    };
    // A session of its own: the one that callers of this name share may be in another role.
    let session = runtime.open_session(caller, EntryPoint::Http).await?;
    let arguments = call.arguments.map(|raw| raw.get().into());
    let request = CallRequest { tool: call.tool, arguments, ..CallRequest::default() };
    let dry_run = runtime.dry_run(&PipelineContext::new(&session), &request).await;
    runtime.close_session(&session).await;
    Ok(Json(dry_run))
}
