//! `/api/v1/grants`: the yeses that hold for more than one call, and their revocation.

use super::query::{self, Part, Path, Query};
use crate::auth::now_us;
use crate::error::ApiError;
use crate::model::{Grant, GrantQuery, List, Revoked, Timestamp};
use crate::{App, Identity};
use axum::Json;
use axum::extract::State;
use gantry_core::Role;
use gantry_core::id::GrantId;
use gantry_runtime::ledger::{GrantFilter, GrantRow, Scope};
use std::sync::Arc;

pub(super) async fn list(
    State(app): State<App>,
    who: Identity,
    Query(query): Query<GrantQuery>,
) -> Result<Json<List<Grant>>, ApiError> {
    query.project.as_deref().map(|name| who.check_project(name)).transpose()?;
    let part = Part::new(query.cursor.as_deref(), query.limit)?;
    let project = query.project.as_deref().map(|name| vec![name.into()]);
    let projects = project.or_else(|| who.projects.as_ref().map(|projects| projects.to_vec()));
    let filter = GrantFilter { projects, revoked: query.revoked, ..GrantFilter::default() };
    let store = app.projects.store();
    let fetch = |cursor, limit| store.grants(GrantFilter { cursor, limit, ..filter.clone() });
    let page = query::gather(part, fetch, |row| row.id, |_| 0, |row| is_shown_to(row, &who)).await?;
    // What was granted in a project that is gone can still be looked up.
    if let Some(project) = query.project.as_deref().filter(|_| page.items.is_empty()) {
        query::known_project(&app, &who, Some(project))?;
    }
    Ok(query::list(page))
}

pub(super) async fn revoke(
    State(app): State<App>,
    who: Identity,
    Path(id): Path<String>,
) -> Result<Json<Revoked>, ApiError> {
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
    Ok(Json(Revoked { id: id.to_string(), name: None, revoked: true, held }))
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

impl From<&GrantRow> for Grant {
    fn from(row: &GrantRow) -> Self {
        let key = &row.key;
        let agents = key.agent_path.split(" > ").filter(|name| !name.is_empty());
        Self {
            id: row.id,
            project: Arc::clone(&key.project),
            principal: Arc::clone(&key.principal),
            agent_path: agents.map(str::to_owned).collect(),
            provider: Arc::clone(&key.provider),
            tool: Arc::clone(&row.name),
            original: Arc::clone(&key.tool),
            fingerprint: row.fingerprint,
            rules: row.rules.clone(),
            scope: if row.session.is_some() { Scope::Session } else { Scope::Always },
            session: row.session,
            granted_by: Arc::clone(&row.by),
            approval_id: row.approval,
            created_at: Timestamp(row.created_us),
            expires_at: row.until_us.map(Timestamp),
            revoked_at: row.revoked.as_ref().map(|(at_us, _)| Timestamp(*at_us)),
            revoked_by: row.revoked.as_ref().map(|(_, by)| Arc::clone(by)),
        }
    }
}
