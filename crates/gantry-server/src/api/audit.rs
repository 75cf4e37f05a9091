//! `/api/v1/audit/verify`: proves that the audit trail is whole. The trail itself is the list of calls.

use super::query::{Answer, Sender};
use crate::model::{AuditVerification, BadEntry};
use axum::Json;

pub(super) async fn verify(Sender(app, who): Sender) -> Answer<AuditVerification> {
    who.require_global_admin("verifying the ledger")?;
    let found = app.projects.store().verify().await?;
    let first_bad = found.bad.map(|bad| BadEntry { node: bad.node, entry: bad.seq, what: bad.what.into() });
    Ok(Json(AuditVerification { ok: first_bad.is_none(), entries: found.entries, first_bad }))
}
