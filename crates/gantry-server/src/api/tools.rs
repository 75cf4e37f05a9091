//! `/api/v1/tools` and `/api/v1/explain`: what a caller may use, and why.

use super::query::{self, Answer, Query, Sender};
use crate::Identity;
use crate::error::ApiError;
use crate::model::{ExplainQuery, Explained, ToolQuery};
use axum::Json;
use axum::http::StatusCode;
use axum::response::Response;
use gantry_core::format::Format;
use gantry_core::{EntryPoint, raw};

/// The format with everything that Gantry knows about each tool.
const OWN_FORMAT: &str = "json";

pub(super) async fn list(sender: Sender, Query(query): Query<ToolQuery>) -> Result<Response, ApiError> {
    let format = query.format.as_deref().filter(|word| *word != OWN_FORMAT).map(named).transpose()?;
    let context = sender.context(query.project.as_deref(), query.agent.as_deref()).await?;
    let rt = &context.runtime;
    let caller = sender.caller(&rt.project, context.agent.clone());
    let session = rt.shared_session(caller, entry_point(&sender)).await?;
    let items = match format {
        None => rt.listing(&session),
        Some(format) => rt.formatted(&session, format),
    };
    let body = raw::object([("items", &*items), ("next", "null")]);
    Ok(query::json_response(StatusCode::OK, body))
}

fn named(word: &str) -> Result<Format, ApiError> {
    Format::named(word).ok_or_else(|| {
        let others = Format::ALL.map(Format::as_str).join(", ");
        ApiError::invalid(format!("format is one of {OWN_FORMAT}, {others}"))
    })
}

/// Requests of the owner come from the command line and share its session.
pub(super) fn entry_point(who: &Identity) -> EntryPoint {
    if who.owner { EntryPoint::Cli } else { EntryPoint::Http }
}

pub(super) async fn explain(sender: Sender, Query(query): Query<ExplainQuery>) -> Answer<Explained> {
    sender.require_admin("explaining what others may use")?;
    let context = sender.context(query.project.as_deref(), query.agent.as_deref()).await?;
    Ok(Json(match &query.tool {
        Some(tool) => Explained::Tool(context.runtime.explain(tool, context.agent.as_deref(), query.depth)),
        None => Explained::Warnings { warnings: context.runtime.warnings() },
    }))
}
