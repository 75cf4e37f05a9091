//! What a request means after a handshake (2024-11-05 to 2025-11-25).

use super::{Job, Reply, Step, Task, answer, params::Params};
use crate::{
    ErrorObject, Version,
    envelope::{Id, Notification, Request},
};
use http::StatusCode;

/// Decides what a request in a session means.
pub(super) fn step(request: Request<'_>, params: &Params<'_>, version: Version) -> Step {
    if request.method == "ping" {
        return Step::Answer(Reply::ok(answer::empty(&request.id)));
    }
    match task(&request.method, params, version) {
        Ok(task) => Step::Run(Job { id: request.id.into_owned(), version, task }),
        Err(error) => Step::Answer(Reply::error(StatusCode::OK, Some(&request.id), &error)),
    }
}

/// Decides what a request means on a connection that has not shaken hands. Only `ping` may come so early.
pub(super) fn step_before_handshake(request: &Request<'_>) -> Step {
    if request.method == "ping" {
        return Step::Answer(Reply::ok(answer::empty(&request.id)));
    }
    let message = "send initialize first, or the _meta fields of 2026-07-28 with every request";
    Step::Answer(Reply::error(StatusCode::OK, Some(&request.id), &ErrorObject::invalid_request(message)))
}

fn task(method: &str, params: &Params<'_>, version: Version) -> Result<Task, ErrorObject> {
    match method {
        "tools/list" => params.first_page().map(|()| Task::List),
        "tools/call" => params.call(version).map(Task::Call),
        "initialize" => {
            let message = "this session is initialized already; open a new one to negotiate again";
            Err(ErrorObject::invalid_request(message))
        }
        other => Err(ErrorObject::method_not_found(other)),
    }
}

/// The id of the request that a notification withdraws.
pub(super) fn withdrawn<'a>(notification: &Notification<'a>) -> Option<Id<'a>> {
    if notification.method != "notifications/cancelled" {
        return None;
    }
    Params::read(notification.params).ok()?.request_id.and_then(Id::parse)
}
