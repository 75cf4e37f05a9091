//! What a request means after a handshake (2024-11-05 to 2025-11-25).

use super::{
    Reply, Step, answer,
    caller::Habits,
    handler::Features,
    params::Params,
    request::{self, Job, Note, Task},
};
use crate::{
    ErrorObject, Version,
    envelope::{Id, Notification, Request},
    limits::SUBSCRIPTIONS,
};
use http::StatusCode;

/// Decides what a request in a session means.
pub(super) fn step(
    request: Request<'_>,
    params: &Params<'_>,
    version: Version,
    habits: &Habits,
    features: impl FnOnce() -> Features,
) -> Step<Job> {
    if request.method == "ping" {
        return Step::Answer(Reply::ok(answer::empty(&request.id)));
    }
    match task(&request.method, params, version, features) {
        Ok(task) if is_done(&task, habits) => Step::Answer(Reply::ok(answer::empty(&request.id))),
        Ok(Task::Ask(_, Some(Note::Watch(_)))) if !habits.may_watch() => {
            let message =
                format!("a session watches at most {SUBSCRIPTIONS} resources; unsubscribe from others first");
            Step::Answer(refused(&request.id, &ErrorObject::invalid_request(message)))
        }
        Ok(task) => {
            let wishes = params.wishes();
            Step::Run(Job { id: request.id.into_owned(), version, task, wishes })
        }
        Err(error) => Step::Answer(refused(&request.id, &error)),
    }
}

/// Whether a session is already as the request wants it. The handler is told once of each resource.
fn is_done(task: &Task, habits: &Habits) -> bool {
    match task {
        Task::Ask(_, Some(Note::Watch(uri))) => habits.watches(uri),
        Task::Ask(_, Some(Note::Unwatch(uri))) => !habits.watches(uri),
        Task::Ask(..) | Task::List(..) | Task::Call(_) => false,
    }
}

fn refused(id: &Id<'_>, error: &ErrorObject) -> Reply {
    Reply::error(StatusCode::OK, Some(id), error)
}

/// The answer on a connection that has not shaken hands. Only `ping` may come so early.
pub(super) fn before_handshake(request: &Request<'_>) -> Reply {
    if request.method == "ping" {
        return Reply::ok(answer::empty(&request.id));
    }
    let message = "send initialize first, or the _meta fields of 2026-07-28 with every request";
    refused(&request.id, &ErrorObject::invalid_request(message))
}

fn task(
    method: &str,
    params: &Params<'_>,
    version: Version,
    features: impl FnOnce() -> Features,
) -> Result<Task, ErrorObject> {
    if method == "initialize" {
        let message = "this session is initialized already; open a new one to negotiate again";
        return Err(ErrorObject::invalid_request(message));
    }
    request::task(method, params, version, features)
}

/// The id of the request that a notification withdraws.
pub(super) fn withdrawn<'a>(notification: &Notification<'a>) -> Option<Id<'a>> {
    if notification.method != "notifications/cancelled" {
        return None;
    }
    Params::read(notification.params).ok()?.request_id.and_then(Id::parse)
}
