//! `/api/v1/agents`: the agents of the projects, what they may use, and which of them is active.

use super::query::{self, Answer, Path, Query, Sender};
use crate::error::ApiError;
use crate::model::{Agent, AgentConfiguration, AgentDetails, InProject, List, OfProject, Switched};
use crate::{App, Identity};
use axum::Json;
use axum::body::Body;
use gantry_core::pattern::Pattern;
use gantry_core::toolset::Entry;
use gantry_core::{ErrorCode, Role, Toolset};
use gantry_runtime::projects::{self, DEFAULT};
use http::StatusCode;
use std::sync::Arc;

pub(super) async fn list(Sender(app, who): Sender, Query(of): Query<OfProject>) -> Answer<List<Agent>> {
    let project = query::listed_project(&app, &who, of)?;
    let agents = visible(&app, &who, project.as_deref());
    Ok(Json(List::whole(agents.filter(|agent| who.effective_agent(Some(&agent.name)).is_ok()).collect())))
}

/// The agents of a project, or of all that the sender may see.
pub(super) fn visible(app: &App, who: &Identity, project: Option<&str>) -> impl Iterator<Item = Agent> {
    let agents = app.projects.agents(project).into_iter();
    let agents = agents.filter(|agent| who.can_access_project(&agent.project));
    agents.map(|agent| summary(&agent, toolset(app, &agent).as_deref()))
}

pub(super) async fn show(
    Sender(app, who): Sender,
    Path(name): Path<String>,
    Query(of): Query<InProject>,
) -> Answer<AgentDetails> {
    let project = query::known_project(&app, &who, of.project.as_deref())?;
    who.effective_agent(Some(&name))?;
    let agent = find(&app, &project, &name).ok_or_else(|| unknown(&app, &project, &name))?;
    let toolset = toolset(&app, &agent);
    let names = |toolset: &Arc<Toolset>| toolset.tools().map(|tool| tool.name.to_string()).collect();
    Ok(Json(AgentDetails {
        agent: summary(&agent, toolset.as_deref()),
        tool_names: toolset.as_ref().map(names),
        configured: (who.role == Role::Admin).then(|| configuration(&agent)),
    }))
}

pub(super) async fn activate(
    Sender(app, who): Sender,
    Path(name): Path<String>,
    Query(query): Query<InProject>,
    body: Body,
) -> Answer<Switched> {
    who.require_admin("making an agent active")?;
    let project = resolve_project(&app, &who, query, body).await?;
    // Looked up afterwards: the switch reads the configuration, which may bring the agent.
    let switched = app.projects.activate(&project, Some(&name)).await;
    let switched = switched.map_err(|refusal| match find(&app, &project, &name) {
        Some(_) => ApiError::from(refusal),
        None => unknown(&app, &project, &name),
    })?;
    Ok(Json(switched))
}

pub(super) async fn deactivate(
    Sender(app, who): Sender,
    Path(name): Path<String>,
    Query(query): Query<InProject>,
    body: Body,
) -> Answer<Switched> {
    who.require_admin("making no agent active")?;
    let project = resolve_project(&app, &who, query, body).await?;
    // One that is not configured any more can still be the active one.
    if app.projects.active(&project).is_some_and(|active| *active == *name) {
        return Ok(Json(app.projects.activate(&project, None).await?));
    }
    find(&app, &project, &name).ok_or_else(|| unknown(&app, &project, &name))?;
    let message = format!("agent {name} is not active in {project}");
    Err(ApiError::new(StatusCode::CONFLICT, ErrorCode::InvalidArguments, message))
}

/// The project that the query or the body names, or else the default of the sender.
async fn resolve_project(
    app: &App,
    who: &Identity,
    query: InProject,
    body: Body,
) -> Result<Arc<str>, ApiError> {
    let body: InProject = query::read_optional("the name of a project", body).await?;
    if let (Some(query), Some(body)) = (&query.project, &body.project)
        && query != body
    {
        return Err(ApiError::invalid("the query and the body name different projects"));
    }
    query::known_project(app, who, query.project.or(body.project).as_deref())
}

fn find(app: &App, project: &str, name: &str) -> Option<projects::Agent> {
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
fn toolset(app: &App, agent: &projects::Agent) -> Option<Arc<Toolset>> {
    app.projects.peek(&agent.project, Some(&agent.name))?.runtime.toolset(Some(&agent.name)).ok()
}

/// What every caller may know about an agent.
fn summary(agent: &projects::Agent, toolset: Option<&Toolset>) -> Agent {
    let alias = |entry: Entry<'_>| (entry.name.to_owned(), entry.tool.name.to_string());
    Agent {
        name: Arc::clone(&agent.name),
        project: Arc::clone(&agent.project),
        description: agent.options.description.clone(),
        model: agent.options.model.clone(),
        active: agent.active,
        tools: toolset.map(Toolset::len),
        aliases: toolset.map(|toolset| toolset.entries().filter(|entry| entry.alias).map(alias).collect()),
    }
}

fn configuration(agent: &projects::Agent) -> AgentConfiguration {
    let texts = |patterns: &[Pattern]| patterns.iter().map(|pattern| pattern.as_str().to_owned()).collect();
    let selection = &agent.options.selection;
    AgentConfiguration {
        uses: selection.include.iter().map(|selector| selector.as_str().to_owned()).collect(),
        allowed: selection.allowed.as_deref().map(texts),
        auto_approve: texts(&selection.auto_approve),
        prompt: agent.options.prompt.clone(),
    }
}
