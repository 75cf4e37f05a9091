//! `/api/v1/servers`: the MCP servers, how they are doing, and adding and removing them until the process ends.

use super::query::{self, Answer, Path, Query, Sender};
use crate::Identity;
use crate::error::ApiError;
use crate::model::{ChangedServer, InProject, List, NewServer, OfProject, Removed, Server, ServerInUse};
use axum::Json;
use axum::body::Body;
use gantry_core::Role;
use http::StatusCode;
use serde_json::Value;
use std::sync::Arc;

pub(super) async fn list(sender: Sender, Query(of): Query<OfProject>) -> Answer<List<Server>> {
    let project = sender.listed_project(of.project.as_deref())?;
    let mut servers = sender.app.projects.servers(project.as_deref());
    servers.extend(sender.app.projects.apis(project.as_deref()));
    servers.retain(|server| sender.can_access_project(&server.project));
    Ok(Json(List::whole(servers.into_iter().map(|server| shown(server, &sender)).collect())))
}

pub(super) async fn show(
    sender: Sender,
    Path(id): Path<String>,
    Query(query): Query<InProject>,
) -> Answer<Server> {
    let project = sender.known_project(query.project.as_deref())?;
    let api = || sender.app.projects.apis(Some(&project)).into_iter().find(|api| *api.id == *id);
    let found = find(&sender, &project, &id).or_else(api).ok_or_else(|| unknown(&id))?;
    Ok(Json(shown(found, &sender)))
}

pub(super) async fn add(
    sender: Sender,
    Query(query): Query<InProject>,
    body: Body,
) -> Result<(StatusCode, Json<ChangedServer>), ApiError> {
    // The program of a server can reach everything that Gantry can.
    sender.require_global_admin("adding a server")?;
    let NewServer { id, entry } = query::read("a server", body).await?;
    let project = sender.known_project(query.project.as_deref())?;
    if find(&sender, &project, &id).is_some() {
        let message = format!("there is a server {id:?} already; remove it first, or choose another id");
        return Err(ApiError::conflict(message));
    }
    let (settings, warnings) = (sender.app.parse_server)(&project, &id, &Value::Object(entry).to_string())
        .map_err(ApiError::invalid)?;
    sender.app.projects.add_server(&project, settings).await.map_err(ApiError::invalid)?;
    Ok((StatusCode::CREATED, Json(changed(&sender, &project, &id, warnings))))
}

pub(super) async fn remove(
    sender: Sender,
    Path(id): Path<String>,
    Query(query): Query<InProject>,
) -> Answer<Removed> {
    sender.require_global_admin("removing a server")?;
    let project = sender.known_project(query.project.as_deref())?;
    if !sender.app.projects.remove_server(&project, &id).await {
        return Err(unknown(&id));
    }
    Ok(Json(Removed { id, removed: true }))
}

pub(super) async fn restart(
    sender: Sender,
    Path(id): Path<String>,
    Query(query): Query<InProject>,
) -> Answer<ChangedServer> {
    sender.require_global_admin("restarting a server")?;
    let project = sender.known_project(query.project.as_deref())?;
    if !sender.app.projects.restart_server(&project, &id).await {
        return Err(unknown(&id));
    }
    Ok(Json(changed(&sender, &project, &id, Vec::new())))
}

fn find(sender: &Sender, project: &str, id: &str) -> Option<Server> {
    sender.app.projects.servers(Some(project)).into_iter().find(|server| &*server.id == id)
}

/// A server that was there just now; the active agent may have no use for it.
fn changed(sender: &Sender, project: &Arc<str>, id: &str, warnings: Vec<String>) -> ChangedServer {
    let server = match find(sender, project, id) {
        Some(server) => ServerInUse::Used(Box::new(shown(server, sender))),
        None => ServerInUse::Unused { id: id.to_owned(), project: Arc::clone(project) },
    };
    ChangedServer { server, warnings }
}

pub(super) fn unknown(id: &str) -> ApiError {
    ApiError::not_found(format!("there is no server {id:?}; gantry servers and /api/v1/servers list them"))
}

/// A server as the sender may see it: failures and addresses tell of the inside of the machine.
fn shown(mut server: Server, who: &Identity) -> Server {
    if who.role != Role::Admin {
        server.last_error = None;
        server.replicas = Vec::new();
    }
    server
}
