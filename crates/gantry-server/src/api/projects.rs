//! `/api/v1/projects`: which projects there are, and what each has.

use super::query::{Query, Sender};
use crate::model::{List, NoQuery, Project};
use crate::{App, Identity};
use axum::Json;
use std::collections::BTreeSet;
use std::sync::Arc;

pub(super) async fn list(Sender(app, who): Sender, Query(NoQuery {}): Query<NoQuery>) -> Json<List<Project>> {
    Json(List::whole(visible(&app, &who)))
}

/// The projects that the sender may see.
pub(super) fn visible(app: &App, who: &Identity) -> Vec<Project> {
    let item = |name: Arc<str>| {
        // While an agent is active, a server can run twice: for that agent, and for the others.
        let servers = app.projects.servers(Some(&name));
        let servers: BTreeSet<_> = servers.into_iter().map(|server| server.id).collect();
        Project {
            active: app.projects.active(&name),
            agents: app.projects.agents(Some(&name)).len(),
            servers: servers.len(),
            tools: count_tools(app, &name),
            name,
        }
    };
    let names = app.projects.names().into_iter().filter(|name| who.can_access_project(name));
    names.map(item).collect()
}

/// Number of tools visible without an agent; `None` while the project has no runtime.
fn count_tools(app: &App, project: &str) -> Option<usize> {
    let context = app.projects.peek(project, None)?;
    Some(context.runtime.toolset(context.agent.as_deref()).ok()?.len())
}
