//! `/api/v1/audit`: the trail of every call, and the proof that it is whole.

use super::calls::Filter;
use super::query::{self, Query};
use crate::error::ApiError;
use crate::{App, Identity};
use axum::Json;
use axum::extract::State;
use gantry_core::Role;
use gantry_runtime::records;
use serde_json::{Value, json};

pub(super) async fn list(
    State(app): State<App>,
    who: Identity,
    Query(filter): Query<Filter>,
) -> Result<Json<Value>, ApiError> {
    let page = app.runtime.store().calls(filter.of(&app, &who)?).await?;
    let items: Vec<Value> = page.items.iter().map(records::call).collect();
    Ok(query::list(&items, page.next))
}

pub(super) async fn verify(State(app): State<App>, who: Identity) -> Result<Json<Value>, ApiError> {
    if who.role != Role::Admin {
        return Err(ApiError::forbidden(
            "verifying reads the whole ledger; it takes the key of the data folder",
        ));
    }
    let found = app.runtime.store().verify().await?;
    let bad = found.bad.map(|bad| json!({ "entry": bad.seq, "what": bad.what }));
    Ok(Json(json!({ "ok": bad.is_none(), "entries": found.entries, "firstBad": bad })))
}
