//! `/api/v1/agents`: the agents of the projects, what they may use, and which of them is active.

use super::query::{self, Path, Query};
use crate::error::ApiError;
use crate::{App, Identity};
use axum::Json;
use axum::body::Body;
use axum::extract::State;
use gantry_core::pattern::Pattern;
use gantry_core::toolset::ToolSelector;
use gantry_core::{ErrorCode, Role, Toolset};
use gantry_runtime::projects::{Agent, DEFAULT};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The project that a request is about.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Of {
    project: Option<String>,
}

pub(super) async fn list(
    State(app): State<App>,
    who: Identity,
    Query(of): Query<Of>,
) -> Result<Json<Value>, ApiError> {
    let project =
        of.project.as_deref().map(|name| query::known_project(&app, &who, Some(name))).transpose()?;
    let mut agents = app.projects.agents(project.as_deref());
    agents.retain(|agent| who.reaches(&agent.project) && who.acting_as(Some(&agent.name)).is_ok());
    let items: Vec<Value> =
        agents.iter().map(|agent| glance(agent, toolset(&app, agent).as_deref()).into()).collect();
    Ok(query::list(&items, None))
}

pub(super) async fn show(
    State(app): State<App>,
    who: Identity,
    Path(name): Path<String>,
    Query(of): Query<Of>,
) -> Result<Json<Value>, ApiError> {
    let project = query::known_project(&app, &who, of.project.as_deref())?;
    who.acting_as(Some(&name))?;
    let agent = find(&app, &project, &name).ok_or_else(|| unknown(&app, &project, &name))?;
    let toolset = toolset(&app, &agent);
    let mut shown = glance(&agent, toolset.as_deref());
    shown.insert("toolNames".into(), names(toolset.as_deref()));
    if who.role == Role::Admin {
        let texts = |patterns: &[Pattern]| -> Vec<Value> {
            patterns.iter().map(|pattern| pattern.as_str().into()).collect()
        };
        let (selection, prompt) = (&agent.options.selection, &agent.options.prompt);
        let uses: Vec<&str> = selection.include.iter().map(ToolSelector::as_str).collect();
        shown.insert("uses".into(), uses.into());
        shown.insert("allowed".into(), selection.allowed.as_deref().map(texts).into());
        shown.insert("autoApprove".into(), texts(&selection.auto_approve).into());
        shown.insert("prompt".into(), prompt.as_deref().into());
    }
    Ok(Json(shown.into()))
}

pub(super) async fn activate(
    State(app): State<App>,
    who: Identity,
    Path(name): Path<String>,
    Query(of): Query<Of>,
    body: Body,
) -> Result<Json<Value>, ApiError> {
    who.administers("making an agent active")?;
    let project = meant(&app, &who, of, body).await?;
    // Whether there is such an agent is asked afterwards: the switch reads the configuration, which may bring it.
    let switched = app.projects.activate(&project, Some(&name)).await;
    let switched = switched.map_err(|refusal| match find(&app, &project, &name) {
        Some(_) => ApiError::from(refusal),
        None => unknown(&app, &project, &name),
    })?;
    Ok(Json(json!(switched)))
}

pub(super) async fn deactivate(
    State(app): State<App>,
    who: Identity,
    Path(name): Path<String>,
    Query(of): Query<Of>,
    body: Body,
) -> Result<Json<Value>, ApiError> {
    who.administers("making no agent active")?;
    let project = meant(&app, &who, of, body).await?;
    // One that is not configured any more can still be the active one.
    if app.projects.active(&project).is_some_and(|active| *active == *name) {
        return Ok(Json(json!(app.projects.activate(&project, None).await?)));
    }
    find(&app, &project, &name).ok_or_else(|| unknown(&app, &project, &name))?;
    let message = format!("agent {name} is not active in {project}");
    Err(ApiError::new(StatusCode::CONFLICT, ErrorCode::InvalidArguments, message))
}

/// The project that the query or the body of a request names, or else the one that its sender means.
async fn meant(app: &App, who: &Identity, of: Of, body: Body) -> Result<Arc<str>, ApiError> {
    let bytes = query::body(body).await?;
    let written: Of = if bytes.is_empty() {
        Of::default()
    } else {
        serde_json::from_str(query::json_text(&bytes)?)
            .map_err(|error| ApiError::invalid(format!("the body can only name the project: {error}")))?
    };
    if let (Some(query), Some(body)) = (&of.project, &written.project)
        && query != body
    {
        return Err(ApiError::invalid("the query and the body name different projects"));
    }
    query::known_project(app, who, of.project.or(written.project).as_deref())
}

fn find(app: &App, project: &str, name: &str) -> Option<Agent> {
    app.projects.agents(Some(project)).into_iter().find(|agent| *agent.name == *name)
}

fn unknown(app: &App, project: &str, name: &str) -> ApiError {
    let known: Vec<Arc<str>> =
        app.projects.agents(Some(project)).into_iter().map(|agent| agent.name).collect();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    let shown: String = name.chars().take(64).collect();
    let place = if project == DEFAULT { String::new() } else { format!(" in project {project}") };
    ApiError::not_found(format!("there is no agent {shown:?}{place}; configured: {known}"))
}

/// What an agent sees now; nothing while there is no runtime for it.
pub(super) fn toolset(app: &App, agent: &Agent) -> Option<Arc<Toolset>> {
    app.projects.peek(&agent.project, Some(&agent.name))?.runtime.toolset(Some(&agent.name)).ok()
}

/// What everybody may know about an agent.
fn glance(agent: &Agent, toolset: Option<&Toolset>) -> Map<String, Value> {
    let aliases = toolset.map(|toolset| -> Map<String, Value> {
        let aliases = toolset.entries().filter(|entry| entry.alias);
        aliases.map(|entry| (entry.name.to_owned(), entry.tool.name.to_string().into())).collect()
    });
    let members = [
        ("name", json!(*agent.name)),
        ("project", json!(*agent.project)),
        ("description", json!(agent.options.description)),
        ("model", json!(agent.options.model)),
        ("active", json!(agent.active)),
        ("tools", json!(toolset.map(Toolset::len))),
        ("aliases", json!(aliases)),
    ];
    members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

fn names(toolset: Option<&Toolset>) -> Value {
    json!(toolset.map(|toolset| toolset.tools().map(|tool| &*tool.name).collect::<Vec<&str>>()))
}
