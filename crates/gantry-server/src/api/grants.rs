//! `/api/v1/grants`: approvals that hold for more than one call, and their revocation.

use super::query::{self, Answer, Path, Query, Sender};
use super::short_id::ShortId;
use crate::Identity;
use crate::auth::now_us;
use crate::error::ApiError;
use crate::model::{Grant, GrantQuery, List, Revoked, Timestamp};
use axum::Json;
use gantry_core::Role;
use gantry_core::id::GrantId;
use gantry_runtime::ledger::{GrantFilter, GrantRow};
use std::sync::Arc;

pub(super) async fn list(sender: Sender, Query(query): Query<GrantQuery>) -> Answer<List<Grant>> {
    let projects = sender.recorded_projects(query.project.as_deref())?;
    let filter = GrantFilter { projects, revoked: query.revoked, ..GrantFilter::default() };
    let store = sender.store();
    let fetch = |cursor, limit| store.grants(GrantFilter { cursor, limit, ..filter.clone() });
    let keep = |row: &GrantRow| is_shown_to(row, &sender);
    let page: List<Grant> = query::list(query.cursor, query.limit, fetch, |row| (row.id, 0), keep).await?;
    if page.items.is_empty() {
        sender.listed_project(query.project.as_deref())?;
    }
    Ok(Json(page))
}

pub(super) async fn revoke(sender: Sender, Path(id): Path<String>) -> Answer<Revoked> {
    if sender.role < Role::Approver {
        return Err(ApiError::forbidden("revoking a grant takes the key of an approver"));
    }
    let store = sender.store();
    let id = match id.parse() {
        Ok(id) => id,
        Err(_) => resolve(&sender, &id).await?,
    };
    let found = store.grant_of(id).await?.filter(|row| decides(row, &sender));
    if found.is_none() {
        return Err(ApiError::not_found(format!("there is no grant {id}; /api/v1/grants lists them")));
    }
    let held = store.revoke_grant(id, Arc::clone(&sender.principal), now_us()).await?;
    Ok(Json(Revoked { id: id.to_string(), name: None, revoked: true, held }))
}

/// The id whose last digits a path names, of the grants that hold and that the sender may see.
async fn resolve(sender: &Sender, text: &str) -> Result<GrantId, ApiError> {
    let list = "gantry approvals grants";
    let short = ShortId::parse(text, "grant_", list)?;
    let found = sender.store().grants_ending(short.bytes()).await?;
    let found = found.iter().filter(|row| short.is_end_of(&row.id) && is_shown_to(row, sender));
    let unknown = || ApiError::not_found(format!("there is no grant {text}; {list} lists them"));
    short.only(found.map(|row| row.id).collect())?.ok_or_else(unknown)
}

/// Whether the sender may know of a grant: it decides about such calls, or the grant is its own.
fn is_shown_to(row: &GrantRow, who: &Identity) -> bool {
    let own = row.key.principal == who.principal && who.can_access_project(&row.key.project);
    own || decides(row, who)
}

fn decides(row: &GrantRow, who: &Identity) -> bool {
    let spelled = format!("{}__{}", row.key.provider, row.key.tool);
    who.role >= Role::Approver && who.can_access_tool(&row.key.project, [&row.name, &spelled])
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
            scope: row.scope(),
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
