//! `/api/v1/policy/test`: what would be decided about a call, with nothing run and no person asked.

use super::query::{self, Answer, Sender};
use crate::Identity;
use crate::model::{NoQuery, PolicyTest, PolicyTestRequest};
use axum::Json;
use axum::body::Body;
use gantry_core::{CallRequest, Caller, EntryPoint};
use gantry_runtime::PipelineContext;
use gantry_runtime::projects::Context;
use std::sync::Arc;

pub(super) async fn test(sender: Sender, _: NoQuery, body: Body) -> Answer<PolicyTest> {
    sender.require_admin("testing the policies for others")?;
    let call: PolicyTestRequest = query::read("a call", body).await?;
    let context = sender.context(call.project.as_deref(), call.agent.as_deref()).await?;
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
    let arguments = call.arguments.map(|raw| Box::<str>::from(raw).into());
    let request = CallRequest { tool: call.tool, arguments, ..CallRequest::default() };
    let dry_run = runtime.dry_run(&PipelineContext::new(&session), &request).await;
    runtime.close_session(&session).await;
    Ok(Json(dry_run))
}
