//! `/api/v1/projects`: which projects there are, and what each has.

use super::query::{self, NoQuery, Query};
use crate::{App, Identity};
use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

pub(super) async fn list(
    State(app): State<App>,
    who: Identity,
    Query(NoQuery {}): Query<NoQuery>,
) -> Json<Value> {
    let projects = &app.projects;
    let item = |name: &Arc<str>| {
        // While an agent is active, a server can run twice: for that agent, and for the others.
        let servers: BTreeSet<_> = projects.servers(Some(name)).into_iter().map(|server| server.id).collect();
        json!({
            "name": **name,
            "active": projects.active(name).as_deref(),
            "agents": projects.agents(Some(name)).len(),
            "servers": servers.len(),
            "tools": count_tools(&app, name),
        })
    };
    let mut names = projects.names();
    names.retain(|name| who.reaches(name));
    query::list(&names.iter().map(item).collect::<Vec<_>>(), None)
}

/// How many tools somebody has who comes to a project as nobody in particular; nothing while nobody can come.
pub(super) fn count_tools(app: &App, project: &str) -> Option<usize> {
    let context = app.projects.peek(project, None)?;
    Some(context.runtime.toolset(context.agent.as_deref()).ok()?.len())
}
