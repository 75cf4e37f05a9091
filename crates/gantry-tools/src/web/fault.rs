//! What the web tools say when something goes wrong.
//!
//! A caller that may name hosts could learn from the messages which of them exist here. So a host that does not answer, one that
//! cannot be trusted and one that Gantry does not connect to get the same words and the same code.

use gantry_core::{ErrorCode, Fault, ToolError};
use gantry_egress::{HttpError, Url};
use http::Method;
use serde_json::json;
use std::time::Duration;

pub(super) fn invalid(message: impl Into<String>) -> ToolError {
    ToolError::new(ErrorCode::InvalidArguments, message)
}

pub(super) fn denied(message: impl Into<String>) -> ToolError {
    ToolError::new(ErrorCode::PermissionDenied, message)
}

/// The allow-list has changed since the call was judged, so no person has approved it.
pub(super) fn outdated() -> ToolError {
    ToolError::new(
        ErrorCode::ApprovalRequired,
        "the url is no longer on the allow-list; call again to ask a person",
    )
}

/// A request that only reads has no effect.
pub(super) fn after_sending(method: &Method, error: ToolError) -> Fault {
    if *method == Method::GET { Fault::without_effect(error) } else { Fault::with_possible_effect(error) }
}

/// What an HTTP error comes to. The reason goes to the log only.
pub(super) fn http(method: &Method, url: &Url, error: &HttpError) -> Fault {
    let host = url.host_str().unwrap_or_default();
    tracing::info!(host, %error, "web_fetch got no answer");
    match error {
        HttpError::Setup(_) | HttpError::Connect { .. } | HttpError::NotAllowed { .. } => {
            Fault::without_effect(ToolError::new(
                ErrorCode::UpstreamUnavailable,
                format!(
                    "{host} cannot be reached from here. Nothing was sent. Check the url, or use another one."
                ),
            ))
        }
        HttpError::Request { .. } => Fault::without_effect(invalid("the request cannot be sent as it is")),
        HttpError::Broken { .. } | HttpError::Redirect { .. } | HttpError::TooLarge { .. } => {
            let message = format!("the connection to {host} broke before the answer was complete");
            after_sending(method, ToolError::new(ErrorCode::ExecutionError, message))
        }
    }
}

pub(super) fn timeout(method: &Method, url: &Url, limit: Duration) -> Fault {
    let host = url.host_str().unwrap_or_default();
    let message = format!("{host} did not answer completely within {} s", limit.as_secs_f64());
    after_sending(method, ToolError::new(ErrorCode::Timeout, message))
}

/// A redirect that is not followed. Only what is asked for by a safe method is ever redirected, so nothing has happened.
pub(super) fn redirect(from: &Url, to: &str, why: &str) -> Fault {
    let error = denied(format!("{from} redirects to {to}, which was not followed: {why}"));
    Fault::without_effect(error.with_details(json!({ "url": from.as_str(), "redirect": to })))
}

pub(super) fn too_many_redirects(from: &Url, most: usize) -> Fault {
    let message = format!("{from} redirects more than {most} times");
    Fault::without_effect(ToolError::new(ErrorCode::ExecutionError, message))
}
