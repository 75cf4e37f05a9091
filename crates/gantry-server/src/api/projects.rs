//! `/api/v1/projects`: which projects there are, and what each has.

use super::query::{Query, Sender};
use crate::model::{List, NoQuery, Project};
use crate::{App, Identity};
use axum::Json;
use gantry_runtime::projects::Context;
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
        let context = app.projects.peek(&name, None);
        let toolset = |it: Context| it.runtime.toolset(it.agent.as_deref()).ok();
        Project {
            active: app.projects.active(&name),
            agents: app.projects.agents(Some(&name)).len(),
            servers: servers.len(),
            tools: context.and_then(toolset).map(|toolset| toolset.len()),
            name,
        }
    };
    let names = app.projects.names().into_iter().filter(|name| who.can_access_project(name));
    names.map(item).collect()
}
