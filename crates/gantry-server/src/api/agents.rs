//! `/api/v1/agents` and `/api/v1/projects`: the agents of the projects, what they may use, and which of them is active;
//! which projects there are, and what each has.

use super::query::{self, Answer, Path, Query, Sender};
use crate::App;
use crate::error::ApiError;
use crate::model::{
    Agent, AgentConfiguration, AgentDetails, InProject, List, NoQuery, OfProject, Project, Switched,
};
use axum::Json;
use axum::body::Body;
use gantry_core::pattern::Pattern;
use gantry_core::toolset::Entry;
use gantry_core::{Role, Toolset};
use gantry_runtime::projects::{self, Context, DEFAULT};
use std::collections::BTreeSet;
use std::sync::Arc;

pub(super) async fn list(sender: Sender, Query(of): Query<OfProject>) -> Answer<List<Agent>> {
    let project = sender.listed_project(of.project.as_deref())?;
    let agents = visible(&sender, project.as_deref());
    Ok(Json(List::whole(agents.filter(|agent| sender.effective_agent(Some(&agent.name)).is_ok()).collect())))
}

/// The agents of a project, or of all that the sender may see.
pub(super) fn visible(sender: &Sender, project: Option<&str>) -> impl Iterator<Item = Agent> {
    let agents = sender.app.projects.agents(project).into_iter();
    let agents = agents.filter(|agent| sender.can_access_project(&agent.project));
    agents.map(|agent| summary(&agent, toolset(&sender.app, &agent).as_deref()))
}

pub(super) async fn show(
    sender: Sender,
    Path(name): Path<String>,
    Query(of): Query<InProject>,
) -> Answer<AgentDetails> {
    let project = sender.known_project(of.project.as_deref())?;
    sender.effective_agent(Some(&name))?;
    let agent = find(&sender.app, &project, &name)?;
    let toolset = toolset(&sender.app, &agent);
    let names = |toolset: &Arc<Toolset>| toolset.tools().map(|tool| tool.name.to_string()).collect();
    Ok(Json(AgentDetails {
        agent: summary(&agent, toolset.as_deref()),
        tool_names: toolset.as_ref().map(names),
        configured: (sender.role == Role::Admin).then(|| configuration(&agent)),
    }))
}

pub(super) async fn activate(
    sender: Sender,
    Path(name): Path<String>,
    Query(query): Query<InProject>,
    body: Body,
) -> Answer<Switched> {
    sender.require_admin("making an agent active")?;
    let project = resolve_project(&sender, query, body).await?;
    // Looked up afterwards: the switch reads the configuration, which may bring the agent.
    match sender.app.projects.activate(&project, Some(&name)).await {
        Ok(switched) => Ok(Json(switched)),
        Err(refusal) => find(&sender.app, &project, &name).and(Err(refusal.into())),
    }
}

pub(super) async fn deactivate(
    sender: Sender,
    Path(name): Path<String>,
    Query(query): Query<InProject>,
    body: Body,
) -> Answer<Switched> {
    sender.require_admin("making no agent active")?;
    let project = resolve_project(&sender, query, body).await?;
    // One that is not configured any more can still be the active one.
    let projects = &sender.app.projects;
    if projects.active(&project).is_some_and(|active| *active == *name) {
        return Ok(Json(projects.activate(&project, None).await?));
    }
    find(&sender.app, &project, &name)?;
    Err(ApiError::conflict(format!("agent {name} is not active in {project}")))
}

/// The project that the query or the body names, or else the default of the sender.
async fn resolve_project(sender: &Sender, query: InProject, body: Body) -> Result<Arc<str>, ApiError> {
    let body: InProject = query::read_optional("the name of a project", body).await?;
    if let (Some(query), Some(body)) = (&query.project, &body.project)
        && query != body
    {
        return Err(ApiError::invalid("the query and the body name different projects"));
    }
    sender.known_project(query.project.or(body.project).as_deref())
}

fn find(app: &App, project: &str, name: &str) -> Result<projects::Agent, ApiError> {
    let agents = app.projects.agents(Some(project));
    if let Some(found) = agents.iter().find(|agent| *agent.name == *name) {
        return Ok(found.clone());
    }
    let known: Vec<Arc<str>> = agents.into_iter().map(|agent| agent.name).collect();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    let shown: String = name.chars().take(64).collect();
    let place = if project == DEFAULT { String::new() } else { format!(" in project {project}") };
    Err(ApiError::not_found(format!("there is no agent {shown:?}{place}; configured: {known}")))
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

pub(super) async fn list_projects(sender: Sender, _: NoQuery) -> Json<List<Project>> {
    Json(List::whole(visible_projects(&sender)))
}

/// The projects that the sender may see.
pub(super) fn visible_projects(sender: &Sender) -> Vec<Project> {
    let projects = &sender.app.projects;
    let item = |name: Arc<str>| {
        // While an agent is active, a server can run twice: for that agent, and for the others.
        let servers = projects.servers(Some(&name));
        let servers: BTreeSet<_> = servers.into_iter().map(|server| server.id).collect();
        let context = projects.peek(&name, None);
        let toolset = |it: Context| it.runtime.toolset(it.agent.as_deref()).ok();
        Project {
            active: projects.active(&name),
            agents: projects.agents(Some(&name)).len(),
            servers: servers.len(),
            tools: context.and_then(toolset).map(|toolset| toolset.len()),
            name,
        }
    };
    let names = projects.names().into_iter().filter(|name| sender.can_access_project(name));
    names.map(item).collect()
}
