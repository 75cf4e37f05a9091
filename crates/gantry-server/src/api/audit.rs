//! `/api/v1/audit/verify`: the proof that the trail is whole. The trail itself is the list of calls.

use crate::error::ApiError;
use crate::{App, Identity};
use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};

pub(super) async fn verify(State(app): State<App>, who: Identity) -> Result<Json<Value>, ApiError> {
    who.administers_all("verifying the ledger")?;
    let found = app.projects.store().verify().await?;
    let bad = found.bad.map(|bad| json!({ "node": bad.node, "entry": bad.seq, "what": bad.what }));
    Ok(Json(json!({ "ok": bad.is_none(), "entries": found.entries, "firstBad": bad })))
}
