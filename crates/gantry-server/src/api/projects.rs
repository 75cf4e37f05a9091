//! `/api/v1/projects`: which projects there are, and what each has.

use super::query::Sender;
use crate::model::{List, NoQuery, Project};
use axum::Json;
use gantry_runtime::projects::Context;
use std::collections::BTreeSet;
use std::sync::Arc;

pub(super) async fn list(sender: Sender, _: NoQuery) -> Json<List<Project>> {
    Json(List::whole(visible(&sender)))
}

/// The projects that the sender may see.
pub(super) fn visible(sender: &Sender) -> Vec<Project> {
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
