//! `/api/v1/grants`: the yeses that hold for more than one call, and their revocation.

use super::query::{self, Part, Path, Query};
use crate::auth::now_us;
use crate::error::ApiError;
use crate::{App, Identity};
use axum::Json;
use axum::extract::State;
use gantry_core::Role;
use gantry_core::id::GrantId;
use gantry_runtime::clock::iso;
use gantry_runtime::ledger::{GrantFilter, GrantRow};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Asked {
    project: Option<String>,
    /// Also those that were revoked.
    #[serde(default)]
    revoked: bool,
    cursor: Option<String>,
    limit: Option<u32>,
}

pub(super) async fn list(
    State(app): State<App>,
    who: Identity,
    Query(asked): Query<Asked>,
) -> Result<Json<Value>, ApiError> {
    asked.project.as_deref().map(|name| who.check_project(name)).transpose()?;
    let part = Part::new(asked.cursor.as_deref(), asked.limit)?;
    let project = asked.project.as_deref().map(|name| vec![name.into()]);
    let projects = project.or_else(|| who.projects.as_ref().map(|projects| projects.to_vec()));
    let filter = GrantFilter { projects, revoked: asked.revoked, ..GrantFilter::default() };
    let store = app.projects.store();
    let fetch = |cursor, limit| store.grants(GrantFilter { cursor, limit, ..filter.clone() });
    let page = query::gather(part, fetch, |row| row.id, |_| 0, |row| is_shown_to(row, &who)).await?;
    // What was granted in a project that is gone can still be looked up.
    if let Some(project) = asked.project.as_deref().filter(|_| page.items.is_empty()) {
        query::known_project(&app, &who, Some(project))?;
    }
    let items: Vec<Value> = page.items.iter().map(item).collect();
    Ok(query::list(&items, page.next.map(|next| next.to_string()).as_deref()))
}

pub(super) async fn revoke(
    State(app): State<App>,
    who: Identity,
    Path(id): Path<String>,
) -> Result<Json<Value>, ApiError> {
    if who.role < Role::Approver {
        return Err(ApiError::forbidden("revoking a grant takes the key of an approver"));
    }
    let id: GrantId = query::id(&id)?;
    let store = app.projects.store();
    let found = store.grant_of(id).await?.filter(|row| decides(row, &who));
    if found.is_none() {
        return Err(ApiError::not_found(format!("there is no grant {id}; /api/v1/grants lists them")));
    }
    let held = store.revoke_grant(id, Arc::clone(&who.principal), now_us()).await?;
    Ok(Json(json!({ "id": id, "revoked": true, "held": held })))
}

/// Whether somebody may know of a grant: because they decide about such calls, or because it is theirs.
fn is_shown_to(row: &GrantRow, who: &Identity) -> bool {
    let own = row.key.principal == who.principal && who.reaches(&row.key.project);
    own || decides(row, who)
}

fn decides(row: &GrantRow, who: &Identity) -> bool {
    let spelled = format!("{}__{}", row.key.provider, row.key.tool);
    who.role >= Role::Approver && who.covers(&row.key.project, [&row.name, &spelled])
}

fn item(row: &GrantRow) -> Value {
    json!({
        "id": row.id,
        "project": &*row.key.project,
        "principal": &*row.key.principal,
        "agentPath": row.key.agent_path.split(" > ").filter(|name| !name.is_empty()).collect::<Vec<_>>(),
        "provider": &*row.key.provider,
        "tool": &*row.name,
        "original": &*row.key.tool,
        "fingerprint": row.fingerprint,
        "rules": row.rules,
        "scope": if row.session.is_some() { "session" } else { "always" },
        "session": row.session,
        "grantedBy": &*row.by,
        "approvalId": row.approval,
        "createdAt": iso(row.created_us),
        "expiresAt": row.until_us.map(iso),
        "revokedAt": row.revoked.as_ref().map(|(at, _)| iso(*at)),
        "revokedBy": row.revoked.as_ref().map(|(_, by)| &**by),
    })
}
