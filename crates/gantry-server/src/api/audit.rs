//! `/api/v1/audit/verify`: proves that the audit trail is whole. The trail itself is the list of calls.

use crate::error::ApiError;
use crate::model::{AuditVerification, BadEntry};
use crate::{App, Identity};
use axum::Json;
use axum::extract::State;

pub(super) async fn verify(
    State(app): State<App>,
    who: Identity,
) -> Result<Json<AuditVerification>, ApiError> {
    who.administers_all("verifying the ledger")?;
    let found = app.projects.store().verify().await?;
    let first_bad = found.bad.map(|bad| BadEntry { node: bad.node, entry: bad.seq, what: bad.what.into() });
    Ok(Json(AuditVerification { ok: first_bad.is_none(), entries: found.entries, first_bad }))
}
