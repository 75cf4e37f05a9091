//! `/api/v1/servers`: the MCP servers, how they are doing, and adding and removing them until the process ends.

use super::query::{self, Answer, Path, Query, Sender};
use crate::error::ApiError;
use crate::model::{ChangedServer, InProject, List, NewServer, OfProject, Removed, Server, ServerInUse};
use crate::{App, Identity};
use axum::Json;
use axum::body::Body;
use gantry_core::{ErrorCode, Role};
use http::StatusCode;
use serde_json::Value;
use std::sync::Arc;

pub(super) async fn list(Sender(app, who): Sender, Query(of): Query<OfProject>) -> Answer<List<Server>> {
    let project = query::listed_project(&app, &who, of)?;
    let mut servers = app.projects.servers(project.as_deref());
    servers.extend(app.projects.apis(project.as_deref()));
    servers.retain(|server| who.can_access_project(&server.project));
    Ok(Json(List::whole(servers.into_iter().map(|server| shown(server, &who)).collect())))
}

pub(super) async fn show(
    Sender(app, who): Sender,
    Path(id): Path<String>,
    Query(query): Query<InProject>,
) -> Answer<Server> {
    let project = query::known_project(&app, &who, query.project.as_deref())?;
    let api = || app.projects.apis(Some(&project)).into_iter().find(|api| *api.id == *id);
    let found = find(&app, &project, &id).or_else(api).ok_or_else(|| unknown(&id))?;
    Ok(Json(shown(found, &who)))
}

pub(super) async fn add(
    Sender(app, who): Sender,
    Query(query): Query<InProject>,
    body: Body,
) -> Result<(StatusCode, Json<ChangedServer>), ApiError> {
    // The program of a server can reach everything that Gantry can.
    who.require_global_admin("adding a server")?;
    let NewServer { id, entry } = query::read("a server", body).await?;
    let project = query::known_project(&app, &who, query.project.as_deref())?;
    if find(&app, &project, &id).is_some() {
        let message = format!("there is a server {id:?} already; remove it first, or choose another id");
        return Err(ApiError::new(StatusCode::CONFLICT, ErrorCode::InvalidArguments, message));
    }
    let (settings, warnings) =
        (app.parse_server)(&project, &id, &Value::Object(entry).to_string()).map_err(ApiError::invalid)?;
    app.projects.add_server(&project, settings).await.map_err(ApiError::invalid)?;
    Ok((StatusCode::CREATED, Json(changed(&app, &project, &id, &who, warnings))))
}

pub(super) async fn remove(
    Sender(app, who): Sender,
    Path(id): Path<String>,
    Query(query): Query<InProject>,
) -> Answer<Removed> {
    who.require_global_admin("removing a server")?;
    if !app.projects.remove_server(&query::known_project(&app, &who, query.project.as_deref())?, &id).await {
        return Err(unknown(&id));
    }
    Ok(Json(Removed { id, removed: true }))
}

pub(super) async fn restart(
    Sender(app, who): Sender,
    Path(id): Path<String>,
    Query(query): Query<InProject>,
) -> Answer<ChangedServer> {
    who.require_global_admin("restarting a server")?;
    let project = query::known_project(&app, &who, query.project.as_deref())?;
    if !app.projects.restart_server(&project, &id).await {
        return Err(unknown(&id));
    }
    Ok(Json(changed(&app, &project, &id, &who, Vec::new())))
}

fn find(app: &App, project: &str, id: &str) -> Option<Server> {
    app.projects.servers(Some(project)).into_iter().find(|server| &*server.id == id)
}

/// A server that was there just now; the active agent may have no use for it.
fn changed(app: &App, project: &Arc<str>, id: &str, who: &Identity, warnings: Vec<String>) -> ChangedServer {
    let server = match find(app, project, id) {
        Some(server) => ServerInUse::Used(Box::new(shown(server, who))),
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
