//! Requests after a handshake (2024-11-05 to 2025-11-25).

use super::connection::{Connection, SettingChange};
use super::request::{Operation, ParsedRequest};
use super::{Reply, response};
use crate::ErrorObject;
use crate::envelope::{Id, Notification, Request};
use crate::limits::SUBSCRIPTIONS;
use http::StatusCode;

/// Parses a request of a client with a handshake.
///
/// # Errors
/// The response, where the request needs no work.
pub(super) fn parse(request: Request<'_>, connection: &Connection) -> Result<ParsedRequest, Reply> {
    let (Request { id, method, params }, settings) = (request, &connection.settings);
    let refuse = |error: &ErrorObject| Reply::error(StatusCode::OK, Some(&id), error);
    match &*method {
        "ping" => return Err(Reply::ok(response::empty(&id))),
        "initialize" => {
            let message = "this session is initialized already; open a new one to negotiate again";
            return Err(refuse(&ErrorObject::invalid_request(message)));
        }
        _ => {}
    }
    let operation = Operation::read(&method, &params, connection.version, &*connection.handler);
    let operation = operation.map_err(|error| refuse(&error))?;
    if let Operation::Forward { change: Some(change), .. } = &operation {
        // The handler gets one subscription per resource.
        let is_done = match change {
            SettingChange::Watch(uri) => settings.watches(uri),
            SettingChange::Unwatch(uri) => !settings.watches(uri),
            SettingChange::Level(_) => false,
        };
        if is_done {
            return Err(Reply::ok(response::empty(&id)));
        }
        if matches!(change, SettingChange::Watch(_)) && !settings.can_watch_more() {
            let message =
                format!("a session watches at most {SUBSCRIPTIONS} resources; unsubscribe from others first");
            return Err(refuse(&ErrorObject::invalid_request(message)));
        }
    }
    Ok(ParsedRequest { id: id.into_owned(), operation, options: params.options() })
}

/// The response on a connection before its handshake. Only `ping` may come so early.
pub(super) fn before_handshake(request: &Request<'_>) -> Reply {
    if request.method == "ping" {
        return Reply::ok(response::empty(&request.id));
    }
    let message = "send initialize first, or the _meta fields of 2026-07-28 with every request";
    Reply::error(StatusCode::OK, Some(&request.id), &ErrorObject::invalid_request(message))
}

pub(super) fn cancelled<'a>(notification: &Notification<'a>) -> Option<Id<'a>> {
    if notification.method != "notifications/cancelled" {
        return None;
    }
    notification.params.get("requestId").and_then(Id::parse)
}
