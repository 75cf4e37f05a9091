//! `/api/v1/projects`: which projects there are, and what each has.

use super::query::{Query, Sender};
use crate::App;
use crate::model::{List, NoQuery, Project};
use axum::Json;
use std::collections::BTreeSet;
use std::sync::Arc;

pub(super) async fn list(Sender(app, who): Sender, Query(NoQuery {}): Query<NoQuery>) -> Json<List<Project>> {
    let projects = &app.projects;
    let item = |name: &Arc<str>| {
        // While an agent is active, a server can run twice: for that agent, and for the others.
        let servers: BTreeSet<_> = projects.servers(Some(name)).into_iter().map(|server| server.id).collect();
        Project {
            name: Arc::clone(name),
            active: projects.active(name),
            agents: projects.agents(Some(name)).len(),
            servers: servers.len(),
            tools: count_tools(&app, name),
        }
    };
    let mut names = projects.names();
    names.retain(|name| who.can_access_project(name));
    Json(List::whole(names.iter().map(item).collect()))
}

/// Number of tools visible without an agent; `None` while the project has no runtime.
pub(super) fn count_tools(app: &App, project: &str) -> Option<usize> {
    let context = app.projects.peek(project, None)?;
    Some(context.runtime.toolset(context.agent.as_deref()).ok()?.len())
}
